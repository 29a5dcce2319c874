"""Products of matrices that are kept fresh: ``db.create_matrix_chain`` and the handle that it gives.

Matrices are tables (i, j, v), so that whatever changes a table changes the product with it, in the same transaction.
``update`` adds U · Vᵀ to a matrix and hands the two factors on: the product moves in time of r · n² instead of n³.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import KeepsMatrices
from everview.backends.rank_change import RankChange
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.errors import InvalidChange, InvalidQuery, UnknownName, UnsupportedOperation, did_you_mean
from everview.learn.moments import FloatArray
from everview.planner.matrix_chain import MatrixTable, chain_of, chain_plan, chain_sql
from everview.relational.column_names import find_column
from everview.relational.types import Float32, Float64, Int8, Int16, Int32, Int64
from everview.session.relations import View

if TYPE_CHECKING:
    from everview.session.core import Core
    from everview.session.transaction import Commit

STORAGES = ("auto", "dense", "sparse")
SPARSE = 1 / 32
"""A matrix with fewer cells than this part of those it could have is sparse."""
SMALL = 1 << 20
"""Cells that a matrix could have, up to which it is dense whatever it holds."""
_INTEGERS = (Int8, Int16, Int32, Int64)


class MatrixChain(View):
    """A product of matrices: a view (i, j, v) that can be read as an array, and takes updates of low rank."""

    @property
    def matrices(self) -> tuple[str, ...]:
        """The tables that are multiplied, in order."""
        return tuple(m.table for m in self._parts)

    @property
    def _parts(self) -> tuple[MatrixTable, ...]:
        found = chain_of(self._definition.plan)
        assert found is not None, "a chain has the plan of a chain"
        return found

    def to_numpy(self, *, shape: tuple[int, int] | None = None, first_index: int = 0) -> FloatArray:
        """The product as an array.

        Args:
            shape: Its shape; by default up to the largest i and j that the first and the last matrix have, or, with sparse
                storage over tables that keep no rows, that the product has.
            first_index: The index of the first row and column.

        Raises:
            UnsupportedOperation: an index is below ``first_index``, or beyond the shape.
        """
        with self._locked():
            backend = self._core.backend
            if isinstance(backend, KeepsMatrices) and self._definition.options.representation == "matrix":
                rows, columns, cells = backend.matrix(self.name)
                at, to = rows - first_index, columns - first_index
                if shape is None:
                    shape = _extent(at), _extent(to)
                self._check_within(at, to, shape, first_index)
                made = np.zeros(shape)
                made[np.ix_(at, to)] = cells
                return made
            listed = self.to_arrow()
            at, to = (listed.column(c).to_numpy().astype(np.int64) - first_index for c in (0, 1))
            if shape is None:
                shape = max(_extent(at), self._outer(0, first_index)), max(_extent(to), self._outer(1, first_index))
            self._check_within(at, to, shape, first_index)
            made = np.zeros(shape)
            made[at, to] = listed.column(2).to_numpy()
            return made

    def _outer(self, side: int, first_index: int) -> int:
        """How many rows the first matrix has, or columns the last, by its cells; 0 where its table keeps no rows."""
        part = self._parts[-side]
        if not self._core.catalog.table(part.table).retain:
            return 0
        cells = self._core.backend.read(part.table).select([part.places[0], part.places[1], part.places[2]]).drop_null()
        return _extent(cells.column(side).to_numpy().astype(np.int64) - first_index)

    def _check_within(
        self, at: npt.NDArray[np.int64], to: npt.NDArray[np.int64], shape: tuple[int, int], first_index: int
    ) -> None:
        for name, found, size in (("i", at, shape[0]), ("j", to, shape[1])):
            wrong = found[(found < 0) | (found >= size)]
            if len(wrong):
                raise UnsupportedOperation(
                    f"an array of shape {shape} has no place for {name} = {wrong[0] + first_index}.",
                    hint="give first_index= or shape=, or read the cells with rows().",
                )

    def update(self, matrix: str, u: npt.ArrayLike, v: npt.ArrayLike, *, first_index: int = 0) -> Commit:
        """Adds U · Vᵀ to a matrix, as one transaction.

        In a table with a primary key the cells get new values, in others a row is added for each cell in which U · Vᵀ may be
        other than 0. A table with ``retain=False`` makes no rows.

        Args:
            matrix: One of the tables.
            u: U: a vector, or a matrix with a column for each rank; its rows are the rows of the matrix, in order.
            v: V in the same way for the columns; also Vᵀ, if that has as many rows as U has columns and V could not be meant.
            first_index: The index of the first row and column.
        """
        self._check()
        part = next((p for p in self._parts if p.table.lower() == matrix.lower()), None)
        if part is None:
            hint = did_you_mean(matrix, self.matrices)
            raise UnknownName(f"'{matrix}' is not one of the matrices of '{self.name}'.", hint=hint)
        left, right = _factors(u, v)
        rows, columns = (np.flatnonzero(f.any(axis=1)) for f in (left, right))
        with self._locked():
            table = self._core.catalog.table(part.table)
            indexes = rows + first_index, columns + first_index
            old = self._old_cells(table, part, *indexes) if table.primary_key and table.retain else None
            change = RankChange(table, part.places, *indexes, left[rows], right[columns], old)
            return self._core.run([change])

    def _old_cells(
        self, table: TableDefinition, part: MatrixTable, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]
    ) -> FloatArray:
        """The values of cells before an update, 0 where there is none."""
        found = np.zeros((len(rows), len(columns)))
        held = self._core.backend.read(table.name).select([part.places[0], part.places[1], part.places[2]])
        held = pa.table(held.columns, names=["i", "j", "v"]).drop_null()
        wanted = pc.and_(pc.is_in(held["i"], pa.array(rows)), pc.is_in(held["j"], pa.array(columns)))
        held = held.filter(wanted)
        at = np.searchsorted(rows, held["i"].to_numpy())
        found[at, np.searchsorted(columns, held["j"].to_numpy())] = held["v"].to_numpy()
        return found


def create_matrix_chain(core: Core, name: str, matrices: tuple[str, ...], storage: str) -> MatrixChain:
    """Maintains the product of matrices, which are tables (i, j, v): a missing cell is 0, several rows for one add up.

    Args:
        core: The database.
        name: The name of the product, a view (i, j, v).
        matrices: The tables to multiply, in order; one may occur more than once.
        storage: ``dense`` keeps arrays, ``sparse`` the cells that there are; ``auto`` decides by what the tables hold.

    Raises:
        InvalidQuery: a table is no matrix, or its columns are of another type than the next one's rows.
    """
    if storage not in STORAGES:
        raise UnsupportedOperation(f"there is no storage '{storage}'.", hint=f"it is one of {', '.join(STORAGES)}.")
    if not matrices:
        raise InvalidQuery("a product of matrices has at least one matrix.")
    with core.locked():
        core.catalog.check_name(name)
        parts = [_matrix_of(core.catalog.table(m)) for m in matrices]
        for a, b in pairwise(parts):
            own, other = a.fields[a.places[1]], b.fields[b.places[0]]
            if own.type != other.type:
                raise InvalidQuery(
                    f"the columns of '{a.table}' are indexed by {own.type}, the rows of '{b.table}' by {other.type}.",
                    hint="give both columns the same type.",
                )
        is_dense = storage == "dense" or (storage == "auto" and _is_dense(core, parts))
        keeps = is_dense and isinstance(core.backend, KeepsMatrices)
        if storage == "dense" and not keeps:
            raise UnsupportedOperation(f"the {core.backend.name} backend keeps no matrices in arrays.")
        options = ViewOptions(representation="matrix" if keeps else "auto")
        definition = ViewDefinition(name, chain_plan(parts), chain_sql(parts), "UTC", options)
        core.add_view(definition)
        return MatrixChain(core, definition)


def matrix_chain(core: Core, name: str) -> MatrixChain:
    """The chain of this name."""
    definition = core.catalog.view(name)
    if chain_of(definition.plan) is None:
        raise UnknownName(f"view '{definition.name}' is no product of matrices.")
    return MatrixChain(core, definition)


def _matrix_of(table: TableDefinition) -> MatrixTable:
    """A table as a matrix: its columns named i, j and v, or its three columns in order.

    Raises:
        InvalidQuery: it is none.
    """
    fields, owner = table.fields, f"table '{table.name}'"
    if len(fields) != 3:
        raise InvalidQuery(f"{owner} has {len(fields)} columns; a matrix has three.", hint="they are i, j and v.")
    by_name = {f.name.lower() for f in fields} == {"i", "j", "v"}
    i, j, v = (find_column(owner, fields, c) for c in "ijv") if by_name else (0, 1, 2)
    for place in (i, j):
        if not isinstance(fields[place].type, _INTEGERS):
            raise InvalidQuery(
                f"column '{fields[place].name}' of {owner} is {fields[place].type}; an index is an integer."
            )
    if not isinstance(fields[v].type, Float32 | Float64 | Int8 | Int16 | Int32 | Int64):
        raise InvalidQuery(
            f"column '{fields[v].name}' of {owner} is {fields[v].type}; a cell is a DOUBLE, FLOAT or integer."
        )
    return MatrixTable(table.name, fields, (i, j, v))


def _is_dense(core: Core, parts: list[MatrixTable]) -> bool:
    """Whether arrays suit the matrices: each is dense, or small, or empty so far."""
    for part in parts:
        if not core.catalog.table(part.table).retain:
            continue
        held = core.backend.read(part.table)
        possible = 1
        for place in part.places[:2]:
            possible *= max(1, pc.count_distinct(held.column(place)).as_py())
        if possible > SMALL and held.num_rows < SPARSE * possible:
            return False
    return True


def _extent(positions: npt.NDArray[np.int64]) -> int:
    return int(positions.max()) + 1 if len(positions) else 0


def _factors(u: npt.ArrayLike, v: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """U and V with a column for each rank.

    Raises:
        InvalidChange: they are no vectors or matrices of one rank, or not finite.
    """
    left, right = (np.asarray(f, dtype=np.float64) for f in (u, v))
    if left.ndim == 1 and right.ndim == 1:
        left, right = left[:, None], right[:, None]
    if left.ndim == 2 and right.ndim == 2 and left.shape[1] != right.shape[1] and left.shape[1] == right.shape[0]:
        right = right.T
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise InvalidChange(
            f"u of shape {np.shape(u)} and v of shape {np.shape(v)} are no factors of an update.",
            hint="they are vectors, or matrices with a column for each rank.",
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise InvalidChange("u or v has a value that is not finite.")
    return left, right
