"""The product of a chain of matrices, kept under changes of any of them (section 8.4 of F-IVM; LINVIEW).

Every matrix and every product of the multiplication order is a dense array. A change δB = L · R of one matrix passes
through the products above it as its two factors:

    A · (L · R) = (A · L) · R             (L · R) · C = L · (R · C)

so that a change of rank r of n × n matrices takes O(r · n²), where multiplying again takes O(n³). A change of so high a rank
that multiplying is less work is multiplied. There is no delta of the listing: a change of one cell may change them all.

Roundings add up in products that are changed often, so that they are multiplied again when changes have taken some times the
work of that; a cell of a matrix that loses its last row becomes 0 exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from everview.backends.embedded.matrix.cell_changes import CellChange, cell_changes
from everview.backends.embedded.matrix.index_domain import IndexDomain
from everview.backends.embedded.matrix.stored_matrix import Floats, LowRank, StoredMatrix
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.vectors import Batch, Ints, Vector
from everview.errors import EvaluationError, InternalError
from everview.planner.multiplication_order import (
    Multiplication,
    change_cost,
    multiplication_order,
    multiplications,
)
from everview.relational.nodes import Schema

_AGAIN = 16
"""How many times the work of multiplying everything is spent on changes before everything is multiplied again."""


class MatrixChainOperator(Operator):
    """The cells (i, j, v) of a product of matrices, whose cells are the rows of the inputs."""

    def __init__(self, fields: Schema, names: Sequence[str], inputs: tuple[Operator, ...]) -> None:
        super().__init__(fields, inputs)
        count = len(inputs)
        self._names = tuple(names)
        self._domains = [IndexDomain() for _ in range(count + 1)]
        self._cells = [StoredMatrix() for _ in range(count)]
        self._counts = [StoredMatrix() for _ in range(count)]
        self._products: dict[tuple[int, int], StoredMatrix] = {}
        self._planned_for = [0] * (count + 1)
        self.order = multiplication_order(self._sizes)
        self._set_order(self.order)
        self._work = 0

    @property
    def _sizes(self) -> list[int]:
        return [len(d) for d in self._domains]

    def _set_order(self, order: Multiplication) -> None:
        self.order = order
        self._planned_for = self._sizes
        self._products = {(p.first, p.last): StoredMatrix() for p in order.products()}
        self._fit()

    def _matrix(self, part: Multiplication) -> StoredMatrix:
        return self._cells[part.first] if part.first == part.last else self._products[part.first, part.last]

    def _fit(self) -> None:
        """Gives every matrix the size that its indexes have now."""
        sizes = self._sizes
        for n, (cells, counts) in enumerate(zip(self._cells, self._counts, strict=True)):
            cells.resize(sizes[n], sizes[n + 1])
            counts.resize(sizes[n], sizes[n + 1])
        for (first, last), product in self._products.items():
            product.resize(sizes[first], sizes[last + 1])

    # Changes

    def load(self, contents: Sequence[Batch]) -> Batch:
        for side, content in enumerate(contents):
            for change in self._changes(side, content):
                self._take_cells(side, change)
        self._commit_all()
        self._set_order(multiplication_order(self._sizes))
        self._multiply_all()
        self._commit_all()
        return self.nothing()

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        for side, delta in enumerate(deltas):
            if delta is not None:
                for change in self._changes(side, delta):
                    self._propagate(side, self._take_cells(side, change))
        return None

    def _changes(self, side: int, delta: Batch) -> list[CellChange]:
        changes = list(cell_changes(delta, self._domains[side], self._domains[side + 1]))
        self._fit()
        shape = self._cells[side].shape
        return [CellChange(c.values.on_all(shape), c.counts and c.counts.on_all(shape)) for c in changes]

    def _take_cells(self, side: int, change: CellChange) -> LowRank:
        """Adds a change to its matrix, and returns it as it is to be passed on."""
        cells, counts, values, counted = self._cells[side], self._counts[side], change.values, change.counts
        if counted is None:
            rows, columns = _on(values, cells.shape)
            missing = (counts.block(rows, columns) == 0).astype(np.float64)
            counted = LowRank(rows, None, missing, columns) if missing.any() else None
        elif counted.left is None or counted.right is None:
            values = self._emptied(side, values, counted)
        if counted is not None:
            counts.add(counted)
        cells.add(values)
        return values

    def _emptied(self, side: int, values: LowRank, counted: LowRank) -> LowRank:
        """The change with the exact loss of cells that lose their last row."""
        less = counted.product()
        if not (less < 0).any():
            return values
        rows, columns = _on(values, self._cells[side].shape)
        gone = (less < 0) & (self._counts[side].block(rows, columns) + less == 0)
        if not gone.any():
            return values
        exact = np.where(gone, -self._cells[side].block(rows, columns), values.product())
        return LowRank(rows, None, exact, columns) if values.left is None else LowRank(rows, exact, None, columns)

    def _propagate(self, side: int, change: LowRank) -> None:
        sizes, path = self._sizes, self.order.path(side)
        cost = change_cost(self.order, side, sizes, change.rank)
        if cost >= sum(multiplications(p, sizes) for p in path):
            for product in path:
                self._multiply(product)
            return
        self._work += cost
        at = Multiplication(side, side)
        for product in path:
            assert product.left is not None
            assert product.right is not None
            if (product.left.first, product.left.last) == (at.first, at.last):
                right = self._matrix(product.right).times_left(change.right, change.columns)
                change = LowRank(change.rows, change.left, right, None)
                made = right
            else:
                made = self._matrix(product.left).times(change.rows, change.left)
                change = LowRank(None, made, change.right, change.columns)
            self._check(made)
            self._matrix(product).add(change)
            at = product

    def _multiply(self, product: Multiplication) -> None:
        assert product.left is not None
        assert product.right is not None
        with np.errstate(over="ignore", invalid="ignore"):
            made = self._matrix(product.left).content() @ self._matrix(product.right).content()
        self._check(made)
        self._matrix(product).replace(made)

    def _multiply_all(self) -> None:
        for product in self.order.products():
            self._multiply(product)
        self._work = 0

    def _check(self, made: Floats) -> None:
        if not np.isfinite(made).all():
            raise EvaluationError(
                "the product of matrices has a cell beyond the range of a double.",
                condition="ARITHMETIC_OVERFLOW",
                hint="create_matrix_chain(…, storage='sparse') takes such numbers.",
            )

    def _every(self) -> list[StoredMatrix]:
        return [*self._cells, *self._counts, *self._products.values()]

    def _commit_all(self) -> None:
        for matrix in self._every():
            matrix.commit()

    def commit(self) -> None:
        self._commit_all()
        sizes = self._sizes
        if any(now > 2 * then for now, then in zip(sizes, self._planned_for, strict=True)):
            order = multiplication_order(sizes)
            self._planned_for = sizes
            if order != self.order:
                self._set_order(order)
                self._work = -1
        if self._work < 0 or self._work > _AGAIN * sum(multiplications(p, sizes) for p in self.order.products()):
            self._multiply_all()
            self._commit_all()

    def rollback(self) -> None:
        for matrix in self._every():
            matrix.rollback()

    # Reads

    def matrix(self) -> tuple[Ints, Ints, Floats]:
        """The values of i, those of j, and the cells; rows and columns without a cell in the outer matrices are left out."""
        rows, columns = self._outer()
        cells = self._matrix(self.order).array()
        if len(rows) < cells.shape[0] or len(columns) < cells.shape[1]:
            cells = cells[np.ix_(rows, columns)]
        return self._domains[0].values[rows], self._domains[-1].values[columns], cells

    def _outer(self) -> tuple[Ints, Ints]:
        """The positions of i and j that some cell of the first and of the last matrix has."""
        first, last = self._counts[0].array(), self._counts[-1].array()
        return np.flatnonzero(first.any(axis=1)), np.flatnonzero(last.any(axis=0))

    def _present(self) -> tuple[Ints, Ints]:
        """The positions of the cells that some path of rows leads to, multiplied out when they are asked for."""
        paths = self._counts[0].array() > 0
        for counts in self._counts[1:]:
            paths = paths.astype(np.float32) @ (counts.array() > 0).astype(np.float32) > 0
        found = np.nonzero(paths)
        return found[0], found[1]

    def content(self) -> Batch:
        rows, columns = self._present()
        cells = self._matrix(self.order).array()[rows, columns]
        made = (self._domains[0].values[rows], self._domains[-1].values[columns], cells)
        vectors = tuple(Vector(t, v) for t, v in zip(self.types, made, strict=True))
        return Batch(vectors, np.ones(len(cells), dtype=np.int64))

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.content()

    def count(self) -> int:
        return len(self._present()[0])

    def lookup(self, columns: Sequence[int], values: Sequence[Vector]) -> Batch:
        found = self.content()
        for column, value in zip(columns, values, strict=True):
            if value.nulls is not None and value.nulls.any():
                return self.nothing()
            found = found.take(found.columns[column].values == value.values[0])
        return found

    def arranged(self) -> NoReturn:
        raise InternalError("a product of matrices has no delta, so nothing can be kept by it.")

    def nbytes(self) -> dict[str, int]:
        sizes = {f"matrix {n}": m.nbytes for n, m in zip(self._names, self._cells, strict=True)}
        sizes["counts of rows"] = sum(c.nbytes for c in self._counts)
        for product in self.order.products():
            sizes[f"product {product.text(self._names)}"] = self._matrix(product).nbytes
        return sizes

    def describe(self) -> str:
        return f"product of matrices {self.order.text(self._names)}, dense"

    def details(self) -> list[str]:
        """Sizes, and what changes cost, for ``explain``."""
        sizes = self._sizes
        lines = [f"sizes: {' × '.join(str(s) for s in sizes)}"]
        for side, name in enumerate(self._names):
            path = self.order.path(side)
            again = sum(multiplications(p, sizes) for p in path)
            one = change_cost(self.order, side, sizes, 1)
            lines.append(f"a change of {name} of rank r: {one:,} · r multiplications; multiplying again: {again:,}")
        return lines


def _on(change: LowRank, shape: tuple[int, int]) -> tuple[Ints, Ints]:
    rows = np.arange(shape[0]) if change.rows is None else change.rows
    return rows, np.arange(shape[1]) if change.columns is None else change.columns
