"""In which order to multiply matrices: the textbook dynamic program over sizes, and what changes cost in the order found.

The order is the variable order of the chain: the variable that a product sums out is the root of its part. Of orders with
equally many multiplications the one of least depth is taken, since a change of a matrix passes through all products above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Multiplication:
    """The product of the matrices ``first`` to ``last``: of two parts, or a single matrix."""

    first: int
    last: int
    left: Multiplication | None = None
    right: Multiplication | None = None

    def path(self, matrix: int) -> list[Multiplication]:
        """The products that a matrix is part of, innermost first."""
        if self.left is None or self.right is None:
            return []
        below = self.left if matrix <= self.left.last else self.right
        return [*below.path(matrix), self]

    def products(self) -> list[Multiplication]:
        """All products, each after its parts."""
        if self.left is None or self.right is None:
            return []
        return [*self.left.products(), *self.right.products(), self]

    def text(self, names: Sequence[str]) -> str:
        """With parentheses: ``(A1 · A2) · A3``."""
        if self.left is None or self.right is None:
            return names[self.first]
        parts = (self.left, self.right)
        return " · ".join(p.text(names) if p.left is None else f"({p.text(names)})" for p in parts)


def multiplication_order(sizes: Sequence[int]) -> Multiplication:
    """The order with the fewest multiplications, for matrices of ``sizes[n]`` rows and ``sizes[n + 1]`` columns.

    >>> multiplication_order([10, 1000, 10, 10]).text("ABC")
    '(A · B) · C'
    >>> multiplication_order([10, 10, 1000, 10]).text("ABC")
    'A · (B · C)'
    >>> multiplication_order([5, 5, 5, 5, 5]).text("ABCD")
    '(A · B) · (C · D)'
    """

    @cache
    def best(first: int, last: int) -> tuple[int, int, Multiplication]:
        if first == last:
            return 0, 0, Multiplication(first, last)
        found: tuple[int, int, Multiplication] | None = None
        for cut in range(first, last):
            (cost, deep, left), (other, deeper, right) = best(first, cut), best(cut + 1, last)
            total = cost + other + sizes[first] * sizes[cut + 1] * sizes[last + 1]
            depth = 1 + max(deep, deeper)
            if found is None or (total, depth) < found[:2]:
                found = total, depth, Multiplication(first, last, left, right)
        assert found is not None
        return found

    return best(0, len(sizes) - 2)[2]


def multiplications(product: Multiplication, sizes: Sequence[int]) -> int:
    """How many numbers are multiplied for one product, its parts at hand."""
    assert product.left is not None, "a matrix is no product"
    return sizes[product.first] * sizes[product.left.last + 1] * sizes[product.last + 1]


def change_cost(order: Multiplication, matrix: int, sizes: Sequence[int], rank: int) -> int:
    """How many numbers are multiplied to take a change of some rank through all products above a matrix."""
    total, at = 0, Multiplication(matrix, matrix)
    for product in order.path(matrix):
        assert product.left is not None
        assert product.right is not None
        other = product.right if product.left.last == at.last and product.left.first == at.first else product.left
        total += rank * sizes[other.first] * sizes[other.last + 1]
        total += rank * sizes[product.first] * sizes[product.last + 1]
        at = product
    return total
