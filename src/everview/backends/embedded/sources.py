"""Where deltas enter the DAG: scans of tables, and constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.column_reader import ColumnReader, Rows
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import constant_vector
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.tables.stored_table import StoredTable
from everview.backends.embedded.vectors import Batch, Ints, Vector
from everview.relational.expressions import Literal
from everview.relational.nodes import Values


class TableInput:
    """One table as all scans of it see it: a column of a change is encoded once, for the first scan that reads it."""

    def __init__(self, table: StoredTable, dictionary: Dictionary) -> None:
        self.table = table
        self.fields = table.definition.fields
        self.scans: dict[tuple[int, ...], ScanOperator] = {}
        self._dictionary = dictionary
        self._rows: Rows | None = None
        self._weights: Ints = np.zeros(0, dtype=np.int64)
        self._encoded: dict[int, Vector] = {}
        self._read_for: tuple[tuple[int, ...], ...] = ()
        self._reader = ColumnReader(self.fields, (), dictionary)

    def offer(self, rows: Rows, weights: Ints) -> None:
        """The table's change in the transaction at hand."""
        self._rows, self._weights = rows, weights
        self._encoded = {}

    def withdraw(self) -> None:
        """The transaction is over."""
        self._rows = None
        self._encoded = {}

    def delta(self, columns: Sequence[int]) -> Batch:
        """The change, in these columns."""
        if not self._encoded:
            self._encoded = self._read()
        encoded = self._encoded
        return Batch(tuple([encoded[c] for c in columns]), self._weights)

    def _read(self) -> dict[int, Vector]:
        """All columns that some scan reads, in one go."""
        assert self._rows is not None, "a delta was asked for outside a transaction"
        scans = tuple(self.scans)
        if scans != self._read_for:
            self._read_for = scans
            self._reader = ColumnReader(self.fields, sorted({c for scan in scans for c in scan}), self._dictionary)
        return self._reader.read(self._rows)

    def content(self, columns: Sequence[int]) -> Batch:
        """The whole table, in these columns."""
        rows, weights = self.table.content(columns)
        vectors = ColumnReader([self.fields[c] for c in columns], range(len(columns)), self._dictionary).read(rows)
        return Batch(tuple(vectors[i] for i in range(len(columns))), weights)


class ScanOperator(Operator):
    """Some columns of a table."""

    def __init__(self, source: TableInput, columns: tuple[int, ...]) -> None:
        super().__init__(tuple(source.fields[c] for c in columns), ())
        self.source = source
        self.columns = columns

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        delta = self.source.delta(self.columns)
        return delta if len(delta) else None

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        # A table that keeps no rows has none before its views exist, and no view is made after some have come.
        definition = self.source.table.definition
        return self.source.content(self.columns) if definition.retain else self.nothing()

    def load(self, contents: Sequence[Batch]) -> Batch:
        return self.recompute(contents)

    def describe(self) -> str:
        return f"scan {self.source.table.name} [{', '.join(f.name for f in self.fields)}]"


class ConstantOperator(Operator):
    """A bag that never changes."""

    def __init__(self, node: Values, dictionary: Dictionary) -> None:
        super().__init__(node.fields, ())
        count = len(node.rows)
        columns = tuple(_column([row[i] for row in node.rows], f.type, dictionary) for i, f in enumerate(node.fields))
        self._rows = Batch(columns, np.ones(count, dtype=np.int64))

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        return None

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self._rows

    def load(self, contents: Sequence[Batch]) -> Batch:
        return self._rows

    def describe(self) -> str:
        return f"values, {len(self._rows)} rows"


def _column(values: list[object], data_type: object, dictionary: Dictionary) -> Vector:
    parts = [constant_vector(Literal(v, data_type), 1, dictionary) for v in values]  # type: ignore[arg-type]
    masks = [np.zeros(1, dtype=np.bool_) if p.nulls is None else p.nulls for p in parts]
    nulls = np.concatenate(masks) if masks else None
    if not parts:
        return constant_vector(Literal(None, data_type), 0, dictionary)  # type: ignore[arg-type]
    joined = np.concatenate([p.values for p in parts])
    return Vector(parts[0].type, joined, nulls if nulls is not None and nulls.any() else None)
