"""A change of a table of cells (i, j, v) as a product of thin matrices: δ = U · Vᵀ, the rank-r update of LINVIEW.

It stands for one row (i, j, Σ uᵢ · vⱼ) for each combination of the rows of U and V, or, where the table has a primary key,
for cells that are replaced by their old value plus that. Whoever needs rows reads ``given`` as of any other change; the
product of a matrix chain reads the factors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema


class RankChange(Change):
    """A change of rank r.

    Attributes:
        places: Which columns of the table are i, j and v.
        rows_changed: The values of i: (n,), each once.
        columns: The values of j: (m,), each once.
        u: (n, r).
        v: (m, r).
        old: The values of the cells before, 0 where there is none: (n, m); None for a table without a key.
    """

    __slots__ = ("_cells", "_schema", "columns", "old", "places", "rows_changed", "u", "v")

    def __init__(
        self,
        table: TableDefinition,
        places: tuple[int, int, int],
        rows: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int64],
        u: npt.NDArray[np.float64],
        v: npt.NDArray[np.float64],
        old: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.table = table.name
        self.kind = ChangeKind.WEIGHTED if old is None else ChangeKind.UPSERT
        self.weights = None
        self.decomposed = None
        self.places, self.rows_changed, self.columns, self.u, self.v, self.old = places, rows, columns, u, v, old
        self._schema = arrow_schema(table.fields)
        self._cells: pa.Table | None = None

    @property
    def size(self) -> int:
        """How many cells it changes."""
        return len(self.rows_changed) * len(self.columns)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self._schema

    @property
    def given(self) -> pa.Table:
        """The rows, expanded."""
        if self._cells is None:
            values = self.u @ self.v.T
            if self.old is not None:
                values = values + self.old
            n, m = values.shape
            cells = (np.repeat(self.rows_changed, m), np.tile(self.columns, n), values.ravel())
            made = {p: pa.array(c).cast(self._schema.field(p).type) for p, c in zip(self.places, cells, strict=True)}
            self._cells = pa.Table.from_arrays([made[p] for p in range(3)], schema=self._schema)
        return self._cells

    def __repr__(self) -> str:
        return f"<change of {self.table}: {len(self.rows_changed)} × {len(self.columns)} cells, rank {self.u.shape[1]}>"
