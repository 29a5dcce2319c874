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
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.tables.row_log import Mark, RowLog
from everview.backends.embedded.tables.strictness import keyed_violation, repetition
from everview.backends.embedded.tables.transaction_rows import (
    TableDelta,
    WeightedRows,
    are_distinct,
    are_surely_equal,
    rows_of,
    select_rows,
    sums_of_rows,
)
from everview.backends.embedded.tables.working_rows import WorkingRows
from everview.backends.embedded.vectors import Ints, KeyLayout
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
        working = WorkingRows(self._definition.fields, self._keys_of)
        is_trusted = True
        for change in changes:
            match change.kind:
                case ChangeKind.WEIGHTED:
                    given = rows_of(change)
                    working.add(given)
                    is_trusted = is_trusted and not given.has_deletes
                case ChangeKind.UPSERT:
                    self._take_out(working, change)
                    working.add(WeightedRows(change.rows, None))
                case ChangeKind.DELETE_KEYS:
                    self._take_out(working, change)
        total = working.total()
        if total.weights is None:
            return self._insert(total)
        rows, weights, keys = total.rows, total.weights, self._keys_of(total.rows)
        if not are_distinct(keys):
            first, weights = sums_of_rows(total, self._definition.fields)
            rows, keys = select_rows(rows, first), keys[first]
        return self._exchange(rows, weights, keys, is_trusted=is_trusted)

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

    def _take_out(self, working: WorkingRows, change: Change) -> None:
        """Deletes the rows that have the keys of an upsert, or of a delete by key, as of the changes before it."""
        by_key = change.kind is ChangeKind.DELETE_KEYS
        keys = self._words(change.rows.columns, len(change.rows)) if by_key else self._keys_of(change.rows)
        if not are_distinct(keys):
            raise repetition(self._definition, "delete_keys" if by_key else "upsert", change.rows)
        numbers = self._find(keys).numbers
        present = working.with_keys(keys, self._log.take(numbers[numbers >= 0]))
        if by_key:
            self._check_presence(change.rows, keys, self._keys_of(present.rows))
        if len(present):
            working.add(WeightedRows(present.rows, -present.each_weight()))

    def _check_presence(self, given: pa.Table, keys: Ints, present: Ints) -> None:
        """Raises unless each key is among those that are present, where one may occur more than once."""
        if len(present) == len(keys) and are_distinct(present):
            return
        having_row = KeyMap(self._layout.width)
        having_row.upsert(present)
        absent = np.flatnonzero(having_row.find(keys) < 0)
        if len(absent):
            rows = rows_from_arrow(select_rows(given, absent), self._definition.key_fields)
            raise absent_keys(self._definition, rows)

    def _insert(self, given: WeightedRows) -> TableDelta:
        keys = self._keys_of(given.rows)
        slots, created = self._index.upsert_new(keys)
        if not created.all():
            self._index.remove(slots[created])
            self._reject(given, keys)
        mark = self._append(given.rows, slots)

        def undo() -> None:
            self._index.remove(slots)
            self._log.cut_back(mark)

        self._undo = undo
        return TableDelta(given.rows, given.each_weight(), has_deletes=False)

    def _exchange(self, rows: pa.Table, weights: Ints, keys: Ints, *, is_trusted: bool) -> TableDelta:
        """Takes distinct rows out and puts others in.

        Args:
            rows: The rows.
            weights: Their weights.
            keys: Their keys.
            is_trusted: Whether the rows with negative weight are known to be rows of the table.
        """
        going, coming = np.flatnonzero(weights < 0), np.flatnonzero(weights > 0)
        going_keys, coming_keys = keys[going], keys[coming]
        slots, numbers = self._find(going_keys)
        leaving, arriving = select_rows(rows, going), select_rows(rows, coming)
        if not (is_trusted or self._are_stored(leaving, numbers)) or bool((np.abs(weights) != 1).any()):
            self._reject(WeightedRows(rows, weights), keys)
        self._index.remove(slots)
        new_slots, created = self._index.upsert_new(coming_keys)
        if not created.all():
            self._index.remove(new_slots[created])
            self._put_back(going_keys, numbers)
            self._reject(WeightedRows(rows, weights), keys)
        self._log.bury(numbers)
        mark = self._append(arriving, new_slots)

        def undo() -> None:
            self._index.remove(new_slots)
            self._log.cut_back(mark)
            self._log.revive(numbers)
            self._put_back(going_keys, numbers)

        self._undo = undo
        return TableDelta(rows, weights, has_deletes=len(going) > 0)

    def _are_stored(self, rows: pa.Table, numbers: Ints) -> bool:
        """Whether the rows with these numbers are these rows, as far as can be told quickly."""
        if bool((numbers < 0).any()):
            return False
        return are_surely_equal(self._log.take(numbers), rows, self._definition.fields)

    def _reject(self, delta: WeightedRows, keys: Ints) -> None:
        """Raises what is wrong with a change, if anything is."""
        numbers = np.unique(self._find(keys).numbers)
        violation = keyed_violation(self._definition, self._log.take(numbers[numbers >= 0]), delta)
        if violation is not None:
            raise violation

    def _append(self, rows: pa.Table, slots: Ints) -> Mark:
        mark = self._log.mark()
        first = self._log.append(rows)
        self._index.inline[slots, 0] = np.arange(first, first + len(slots))
        return mark

    def _put_back(self, keys: Ints, numbers: Ints) -> None:
        slots = self._index.upsert(keys)
        self._index.inline[slots, 0] = numbers

    def _find(self, keys: Ints) -> _Found:
        slots = self._index.find(keys)
        return _Found(slots, np.where(slots >= 0, self._index.inline[slots, 0], -1))

    def _keys_of(self, rows: pa.Table) -> Ints:
        return self._words([rows.column(i) for i in self._positions], rows.num_rows)

    def _words(self, columns: Sequence[pa.ChunkedArray], count: int) -> Ints:
        vectors = [vector_from_arrow(c, t, self._dictionary) for c, t in zip(columns, self._key_types, strict=True)]
        return self._layout.pack(vectors, count)
