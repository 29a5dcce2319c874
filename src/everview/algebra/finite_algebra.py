"""Rings made of a ring: vectors over it, multiplied by a table.

A *finite algebra* over a ring D has as elements the sums Σ a_i·e_i of basis elements e_0 … e_(d-1) with coefficients a_i in D,
and multiplies them by a table of integers, e_i * e_j = Σ_k c_ijk·e_k. Complex numbers, quaternions, matrices and polynomials
are such algebras. The table must be associative and have a unit, which is checked when the ring is made.

``MonomialRing`` is the one whose basis are products of variables, of which only some are wanted: counts, sums and sums of
products that are kept *together*, so that a product needs those of its factors only. It multiplies in divided powers,

    X^[a] * X^[b] = (a+b choose a)·X^[a+b],      lift(x) = 1 + x·X + x²·X^[2] + …

so that the coefficient of a monomial in Σ_rows Π lift(x_f) is Σ_rows of that monomial of the values. With all monomials of
degree 2 and less over m variables this is the covariance ring of degree m (F-IVM, definition 32), of which it keeps the half
above the diagonal. Products outside the wanted set are dropped; the set has all divisors of its members, hence what is
dropped is an ideal, and the rest a ring.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from everview.algebra.floats import FLOATS, FloatRing
from everview.algebra.integers import IntegerRing
from everview.algebra.ring import Addition, Bools, ColumnValues, Ints, Payloads, Ring

Table = Mapping[tuple[int, int], Mapping[int, int]]
"""(i, j) → {k: c_ijk}; pairs whose product is 0 may be left out."""
Term = tuple[int, int, int, int]
"""i, j, k and c of e_i * e_j = … + c·e_k."""
_NUMBERS: tuple[Term, ...] = ((0, 0, 0, 1),)
_MOST_TERMS = 1 << 14
"""A larger table is left to NumPy: the words of an instruction have to be read for every chunk of rows."""
Monomial = tuple[int, ...]
"""The factors of a product, by number, each as often as it occurs; () is the empty product, 1."""


class FiniteAlgebra(Ring):
    """Vectors over ``base`` with a multiplication table.

    Args:
        base: The commutative ring of the coefficients.
        dimension: How many basis elements there are.
        table: Their products.
        unit: The coefficients of 1; by default the first basis element.

    >>> from everview.algebra.integers import INTEGERS
    >>> gauss = FiniteAlgebra(INTEGERS, 2, {(0, 0): {0: 1}, (0, 1): {1: 1}, (1, 0): {1: 1}, (1, 1): {0: -1}})
    >>> gauss.multiply(np.array([[1, 2]]), np.array([[3, 4]])).tolist()  # (1 + 2i)(3 + 4i)
    [[-5, 10]]
    """

    def __init__(self, base: Ring, dimension: int, table: Table, unit: Mapping[int, int] | None = None) -> None:
        self.base = base
        self.dimension = dimension
        self.width = dimension * base.width
        self.dtype = base.dtype
        self._unit = {0: 1} if unit is None else dict(unit)
        _check_table(table, dimension, self._unit, base)
        terms = [(i, j, k, c) for (i, j), products in table.items() for k, c in products.items() if c]
        self.is_commutative = sorted(terms) == sorted((j, i, k, c) for i, j, k, c in terms)
        self._lefts, self._rights, results, self._constants = np.array(terms, dtype=np.int64).reshape(-1, 4).T
        self._rounds = _rounds(results.tolist())
        self.terms = tuple(terms)
        """The table as i, j, k and c."""

    def __str__(self) -> str:
        return f"{type(self).__name__} over {self.base}"

    def coefficients(self, payloads: Payloads, index: int) -> Payloads:
        """The coefficients of one basis element, as payloads of the base ring."""
        width = self.base.width
        return np.ascontiguousarray(payloads[:, index * width : (index + 1) * width])

    def assemble(self, parts: Mapping[int, Payloads], count: int) -> Payloads:
        """Payloads with these coefficients, and 0 for the basis elements that are not given."""
        whole, width = self.zeros(count), self.base.width
        for index, part in parts.items():
            whole[:, index * width : (index + 1) * width] = part
        return whole

    def ones(self, count: int) -> Payloads:
        """The unit."""
        ones = self.base.ones(count)
        parts = {k: self.base.scale(ones, np.full(count, c, dtype=np.int64)) for k, c in self._unit.items()}
        return self.assemble(parts, count)

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        """By the table: all products of coefficients at once, then one addition for each further term of a coefficient."""
        count, base = len(a), self.base
        left, right = (p.reshape(count, self.dimension, base.width) for p in (a, b))
        flat = base.multiply(self._rows(left[:, self._lefts]), self._rows(right[:, self._rights]))
        if (self._constants != 1).any():
            flat = base.scale(flat, np.tile(self._constants, count))
        terms = flat.reshape(count, len(self._lefts), base.width)
        sums = np.zeros((count, self.dimension, base.width), dtype=self.dtype)
        for chosen, places in self._rounds:
            added = base.add(self._rows(sums[:, places]), self._rows(terms[:, chosen]))
            sums[:, places] = added.reshape(count, len(places), base.width)
        return sums.reshape(count, self.width)

    def add(self, a: Payloads, b: Payloads) -> Payloads:
        """Coefficient by coefficient."""
        return self.base.add(self._rows(a), self._rows(b)).reshape(len(a), self.width)

    def negate(self, a: Payloads) -> Payloads:
        """Coefficient by coefficient."""
        return self.base.negate(self._rows(a)).reshape(len(a), self.width)

    def scale(self, a: Payloads, weights: Ints) -> Payloads:
        """Coefficient by coefficient."""
        return self.base.scale(self._rows(a), np.repeat(weights, self.dimension)).reshape(len(a), self.width)

    @property
    def addition(self) -> Addition:
        """As the coefficients."""
        is_inherited = type(self).add is FiniteAlgebra.add and type(self).scale is FiniteAlgebra.scale
        return self.base.addition if is_inherited else Addition.OWN

    def sum_by(self, payloads: Payloads, group_of_row: Ints, groups: int) -> Payloads:
        """Coefficient by coefficient: those of one basis element in one group are a group of the base ring."""
        places = group_of_row[:, None] * self.dimension + np.arange(self.dimension)
        sums = self.base.sum_by(self._rows(payloads), places.ravel(), groups * self.dimension)
        return sums.reshape(groups, self.width)

    def is_zero(self, a: Payloads) -> Bools:
        """All coefficients are 0."""
        zeros = self.base.is_zero(self._rows(a)).reshape(len(a), self.dimension)
        zero: Bools = np.logical_and.reduce(zeros, axis=1)
        return zero

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        """x·e_position: a vector is given coordinate by coordinate. Algebras with a meaning of their own say otherwise."""
        return self.assemble({position: self.base.lift(position, column)}, len(column))

    def values(self, payloads: Payloads) -> list[Any]:
        """Tuples of the coefficients' values."""
        values = self.base.values(self._rows(payloads))
        flat = values.tolist() if isinstance(values, np.ndarray) else values
        return [tuple(flat[i : i + self.dimension]) for i in range(0, len(flat), self.dimension)]

    def _rows(self, payloads: Payloads) -> Payloads:
        """All coefficients, one below the other, as payloads of the base ring."""
        return np.ascontiguousarray(payloads).reshape(-1, self.base.width)


def terms_of(ring: Ring) -> tuple[Term, ...] | None:
    """The multiplication table of a ring over the integers or the floats; None if it multiplies in a way of its own.

    >>> terms_of(FiniteAlgebra(FLOATS, 2, {(0, 0): {0: 1}, (0, 1): {1: 1}, (1, 0): {1: 1}, (1, 1): {0: -1}}))
    ((0, 0, 0, 1), (0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, -1))
    >>> terms_of(FLOATS)
    ((0, 0, 0, 1),)
    """
    if isinstance(ring, FiniteAlgebra):
        has_own = type(ring).multiply is not FiniteAlgebra.multiply or terms_of(ring.base) != _NUMBERS
        return None if has_own or len(ring.terms) > _MOST_TERMS else ring.terms
    is_number = type(ring).multiply in (IntegerRing.multiply, FloatRing.multiply)
    return _NUMBERS if is_number and ring.addition is not Addition.OWN else None


class MonomialRing(FiniteAlgebra):
    """Counts, sums and sums of products of variables, by their monomials.

    >>> from everview.algebra.integers import INTEGERS
    >>> ring = MonomialRing(INTEGERS, [(0, 0), (0, 1)])
    >>> ring.monomials
    ((), (0,), (1,), (0, 0), (0, 1))
    >>> rows = ring.multiply(ring.lift(0, np.array([2, 3])), ring.lift(1, np.array([10, 100])))
    >>> ring.values(ring.sum_by(rows, np.zeros(2, dtype=np.int64), 1))  # count, Σx, Σy, Σx², Σxy
    [(2, 5, 110, 13, 320)]
    """

    def __init__(self, base: Ring, wanted: Iterable[Monomial]) -> None:
        divisors = {d for monomial in wanted for d in _divisors(tuple(sorted(monomial)))} | {()}
        self.monomials: tuple[Monomial, ...] = tuple(sorted(divisors, key=lambda m: (len(m), m)))
        place = {monomial: i for i, monomial in enumerate(self.monomials)}
        table: dict[tuple[int, int], dict[int, int]] = {}
        for i, a in enumerate(self.monomials):
            for j, b in enumerate(self.monomials):
                product = tuple(sorted((*a, *b)))
                if product in place:
                    table[i, j] = {place[product]: _ways(product, a)}
        super().__init__(base, len(self.monomials), table)

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        """1 + x·X + x²·X^[2] + …, as far as there are powers of the variable."""
        powers = {0: self.base.ones(len(column))}
        lifted = self.base.lift(position, column)
        power = lifted
        for i, monomial in enumerate(self.monomials):  # by degree: each power comes after the one before it
            if monomial and set(monomial) == {position}:
                powers[i] = power
                power = self.base.multiply(power, lifted)
        return self.assemble(powers, len(column))


def covariance_ring(variables: int, base: Ring = FLOATS) -> MonomialRing:
    """The covariance ring: the count, the sum of each variable, and the sum of the product of each pair."""
    return MonomialRing(base, combinations_with_replacement(range(variables), 2))


def _divisors(monomial: Monomial) -> Iterable[Monomial]:
    return {tuple(m for i, m in enumerate(monomial) if chosen >> i & 1) for chosen in range(1 << len(monomial))}


def _ways(product: Monomial, part: Monomial) -> int:
    """In how many ways the divided powers of a product can be told apart into those of a part and the rest."""
    ways = 1
    for variable in set(product):
        ways *= comb(product.count(variable), part.count(variable))
    return ways


def _rounds(results: Sequence[int]) -> list[tuple[Ints, Ints]]:
    """Which terms can be added at once, since they belong to different results: the terms and the results of each round."""
    rounds: list[tuple[list[int], list[int]]] = []
    seen: defaultdict[int, int] = defaultdict(int)
    for term, result in enumerate(results):
        if seen[result] == len(rounds):
            rounds.append(([], []))
        rounds[seen[result]][0].append(term)
        rounds[seen[result]][1].append(result)
        seen[result] += 1
    return [(np.array(terms), np.array(places)) for terms, places in rounds]


def _check_table(table: Table, dimension: int, unit: Mapping[int, int], base: Ring) -> None:
    if not base.is_commutative:
        raise ValueError(f"the coefficients of an algebra commute with each other, those of {base} do not")
    places = {i for pair, terms in table.items() for i in (*pair, *terms)} | set(unit)
    if not all(0 <= i < dimension for i in places):
        raise ValueError(f"a table of dimension {dimension} that names the basis elements {sorted(places)}")
    basis = [{i: 1} for i in range(dimension)]
    for element in basis:
        if not _product(table, unit, element) == element == _product(table, element, unit):
            raise ValueError(f"the unit {dict(unit)} does not leave basis element {next(iter(element))} as it is")
    for i, j in table:
        for k in range(dimension):
            left = _product(table, _product(table, basis[i], basis[j]), basis[k])
            if left != _product(table, basis[i], _product(table, basis[j], basis[k])):
                raise ValueError(f"the table is not associative: (e{i} e{j}) e{k} is not e{i} (e{j} e{k})")


def _product(table: Table, a: Mapping[int, int], b: Mapping[int, int]) -> dict[int, int]:
    sums: defaultdict[int, int] = defaultdict(int)
    for i, x in a.items():
        for j, y in b.items():
            for k, constant in table.get((i, j), {}).items():
                sums[k] += x * y * constant
    return {k: c for k, c in sums.items() if c}
