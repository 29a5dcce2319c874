"""The rows of a table with a primary key: a row log, and an index from key to row number.

An insert-only transaction costs one probe a row: claiming the key and noticing that it was taken are the same step. Everything
else is turned into weighted rows first (an upsert is the delete of what has the key now, and an insert), summed up, and then
judged: a row that goes must be the one that has its key, a row that comes must find its key free. No column but the key's is
encoded; rows are compared in Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.arrow_columns import vector_from_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state.consolidate import consolidate
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.tables.row_log import RowLog
from everview.backends.embedded.tables.strictness import keyed_violation, repetition
from everview.backends.embedded.tables.transaction_rows import (
    TableDelta,
    WeightedRows,
    are_surely_equal,
    consolidated,
    joined,
    rows_of,
    select_rows,
)
from everview.backends.embedded.vectors import Bools, Ints, KeyLayout
from everview.backends.rejections import absent_keys
from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema, rows_from_arrow


class _Found(NamedTuple):
    """Where the index has some keys: ``slots`` and row ``numbers``, both -1 for keys that no row has."""

    slots: Ints
    numbers: Ints


class KeyedRows:
    """Rows, at most one for each primary key."""

    def __init__(self, definition: TableDefinition, dictionary: Dictionary) -> None:
        self._definition = definition
        self._dictionary = dictionary
        self._schema = arrow_schema(definition.fields)
        self._positions = definition.key_positions
        self._key_types = tuple(f.type for f in definition.key_fields)
        self._layout = KeyLayout(self._key_types, (False,) * len(self._positions))
        self._log = RowLog(self._schema)
        self._index = KeyMap(self._layout.width, inline=1)  # the row's number
        self._undo: Callable[[], None] | None = None

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self._index)

    @property
    def data_bytes(self) -> int:
        """Memory of the Arrow data."""
        return self._log.data_bytes

    @property
    def index_bytes(self) -> int:
        """Memory of the index."""
        return self._index.nbytes + self._log.index_bytes

    def content(self, columns: Sequence[int]) -> tuple[pa.Table, Ints]:
        """The rows of some columns, with their weights."""
        return self._log.content(columns)

    def lookup(self, keys: pa.Table) -> tuple[Ints, pa.Table]:
        """The positions of the keys that a row has, and those rows; ``keys`` has the key's columns."""
        numbers = self._find(self._words(keys.columns, keys.num_rows)).numbers
        positions = np.flatnonzero(numbers >= 0)
        return positions, self._log.take(numbers[positions])

    def prepare(self, changes: Sequence[Change]) -> TableDelta:
        """Applies the changes of one transaction, in order, and returns their net effect."""
        parts: list[WeightedRows] = []
        distinct = len(changes) == 1
        for change in changes:
            match change.kind:
                case ChangeKind.WEIGHTED:
                    parts.append(rows_of(change))
                    distinct = False
                case ChangeKind.UPSERT:
                    replaced = self._taken_out(parts, change, "upsert")
                    distinct = distinct and not replaced
                    parts += [*replaced, WeightedRows(change.rows, None)]
                case ChangeKind.DELETE_KEYS:
                    parts += self._taken_out(parts, change, "delete_keys")
        total = joined(parts, self._schema)
        if total.weights is None:
            return self._insert(total)
        keys = self._keys_of(total.rows)
        if not distinct and not _are_distinct(keys):
            total = consolidated(total, self._definition.fields)
            keys = self._keys_of(total.rows)
        return self._exchange(total, keys)

    def commit(self) -> None:
        """Keeps what was prepared; tidies up, at a constant price per change in the long run."""
        self._undo = None
        if self._log.dead * 2 <= len(self._log):
            self._log.tidy()
        elif len(self._index) == 0:
            self._log = RowLog(self._schema)
            self._index.clear()
        else:
            renumbered = self._log.compact()
            if self._index.is_sparse:
                self._index.compact()
            slots = self._index.live_slots()
            self._index.inline[slots, 0] = renumbered[self._index.inline[slots, 0]]

    def rollback(self) -> None:
        """Undoes what was prepared."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _insert(self, given: WeightedRows) -> TableDelta:
        keys = self._keys_of(given.rows)
        slots, created = self._index.upsert_new(keys)
        if not created.all():
            self._index.remove(slots[created])
            raise self._violation(given, keys)
        self._append(given.rows, slots)
        return TableDelta(given.rows, given.each_weight(), has_deletes=False)
