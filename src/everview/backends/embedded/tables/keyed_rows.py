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
from everview.backends.embedded.column_reader import KeyReader, Rows
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.tables.batch_rows import are_comparable, places_of, rows_are_same, widths_of
from everview.backends.embedded.tables.row_log import RowLog
from everview.backends.embedded.tables.strictness import keyed_violation, repetition
from everview.backends.embedded.tables.transaction_rows import (
    Content,
    TableDelta,
    WeightedRows,
    are_distinct,
    are_surely_equal,
    in_one_batch,
    rows_of,
    select_rows,
    sums_of_rows,
)
from everview.backends.embedded.tables.working_rows import WorkingRows
from everview.backends.embedded.vectors import Ints, unit_weights
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
        self._schema = arrow_schema(definition.fields)
        self._keys_of = KeyReader(definition.fields, definition.key_positions, dictionary).read
        key_reader = KeyReader(definition.key_fields, range(len(definition.key_fields)), dictionary)
        self._read_keys = key_reader.read
        self._log = RowLog(self._schema)
        self._index = KeyMap(key_reader.layout.width, inline=1)  # the row's number
        self._undo: Callable[[], None] | None = None
        self._widths = widths_of(definition.fields) if are_comparable(definition.fields) else None

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

    def frozen(self) -> Content:
        """What gives all rows as they are now, whenever it is asked."""
        return self._log.frozen().content

    def lookup(self, keys: pa.Table) -> tuple[Ints, pa.Table]:
        """The positions of the keys that a row has, and those rows; ``keys`` has the key's columns."""
        numbers = self._find(self._read_keys(keys)).numbers
        positions = np.flatnonzero(numbers >= 0)
        return positions, self._log.take(numbers[positions])

    def prepare(self, changes: Sequence[Change]) -> TableDelta:
        """Applies the changes of one transaction, in order, and returns their net effect."""
        if len(changes) == 1 and changes[0].kind is ChangeKind.WEIGHTED and changes[0].weights is None:
            return self._insert(WeightedRows(changes[0].given, None))
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
                    working.add(WeightedRows(change.given, None))
                case ChangeKind.DELETE_KEYS:
                    self._take_out(working, change)
        total = working.total()
        if total.weights is None:
            return self._insert(total)
        rows, weights = in_one_batch(total.rows), total.weights
        keys = self._keys_of(rows)
        kept = self._net_rows(WeightedRows(rows, weights), keys)
        if kept is not None:
            rows, weights, keys = select_rows(rows, kept[0]), kept[1], keys[kept[0]]
        return self._exchange(rows, weights, keys, is_trusted=is_trusted)

    def _net_rows(self, given: WeightedRows, keys: Ints) -> tuple[Ints, Ints] | None:
        """The positions of the distinct rows whose weights do not sum up to 0, and the sums; None if that is all as given."""
        touched = KeyMap(keys.shape[1], len(keys))
        slots, is_first = touched.upsert_new(keys)
        if is_first.all():
            return None
        if self._widths is None or not self._lies_as_stored(given.rows):
            return sums_of_rows(given, self._definition.fields)
        # Mostly each key is there twice, for a row that goes and another that comes: it is enough to compare these two.
        later = np.flatnonzero(~is_first)
        if np.bincount(slots).max() > 2:
            return sums_of_rows(given, self._definition.fields)
        first_of = np.empty(touched.capacity, dtype=np.int64)
        first_of[slots[is_first]] = np.flatnonzero(is_first)
        places = places_of(given.rows)
        same = rows_are_same(self._widths, places, first_of[slots[later]], places, None, later)
        return sums_of_rows(given, self._definition.fields) if same.any() else None

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
        by_key, keys = change.kind is ChangeKind.DELETE_KEYS, self._keys_in(change)
        if not are_distinct(keys):
            raise repetition(self._definition, "delete_keys" if by_key else "upsert", change.given)
        numbers = self._find(keys).numbers
        present = working.with_keys(keys, self._log.take(numbers[numbers >= 0]))
        if by_key:
            self._check_presence(change.given, keys, self._keys_of(present.rows))
        if len(present):
            working.add(WeightedRows(present.rows, -present.each_weight()))

    def _keys_in(self, change: Change) -> Ints:
        return self._read_keys(change.given) if change.kind is ChangeKind.DELETE_KEYS else self._keys_of(change.given)

    def has_distinct_keys(self, change: Change) -> bool:
        """Whether a change by key names no key twice."""
        return are_distinct(self._keys_in(change))

    def _check_presence(self, given: Rows, keys: Ints, present: Ints) -> None:
        """Raises unless each key is among those that are present, where one may occur more than once."""
        if len(present) == len(keys) and are_distinct(present):
            return
        having_row = KeyMap(self._index.width)
        having_row.upsert(present)
        absent = np.flatnonzero(having_row.find(keys) < 0)
        if len(absent):
            rows = rows_from_arrow(select_rows(given, absent), self._definition.key_fields)
            raise absent_keys(self._definition, rows)

    def _insert(self, given: WeightedRows) -> TableDelta:
        keys = self._keys_of(given.rows)
        slots = self._index.insert(keys, len(self._log))
        if len(slots) < len(keys):
            self._index.remove(slots)
            self._reject(given, keys)
        mark = self._log.mark()
        self._log.append(given.rows)

        def undo() -> None:
            self._index.remove(slots)
            self._log.cut_back(mark)

        self._undo = undo
        weights = unit_weights(len(given)) if given.weights is None else given.weights
        return TableDelta(given.rows, weights, has_deletes=False)

    def _exchange(self, rows: Rows, weights: Ints, keys: Ints, *, is_trusted: bool) -> TableDelta:
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
        arriving = select_rows(rows, coming)
        if not (is_trusted or self._are_stored(rows, going, numbers)) or bool((np.abs(weights) != 1).any()):
            self._reject(WeightedRows(rows, weights), keys)
        self._index.remove(slots)
        try:
            new_slots = self._index.insert(coming_keys, len(self._log))
        except MemoryError:
            self._put_back(going_keys, numbers)
            raise
        if len(new_slots) < len(coming_keys):
            self._index.remove(new_slots)
            self._put_back(going_keys, numbers)
            self._reject(WeightedRows(rows, weights), keys)
        self._log.bury(numbers)
        mark = self._log.mark()
        self._log.append(arriving)

        def undo() -> None:
            self._index.remove(new_slots)
            self._log.cut_back(mark)
            self._log.revive(numbers)
            self._put_back(going_keys, numbers)

        self._undo = undo
        return TableDelta(rows, weights, has_deletes=len(going) > 0)

    def _are_stored(self, rows: Rows, positions: Ints, numbers: Ints) -> bool:
        """Whether the rows with these numbers are the given ones at these positions, as far as can be told quickly."""
        if bool((numbers < 0).any()):
            return False
        if self._widths is not None and self._lies_as_stored(rows):
            return self._log.are(numbers, rows, positions, self._widths)
        return are_surely_equal(self._log.take(numbers), select_rows(rows, positions), self._definition.fields)

    def _lies_as_stored(self, rows: Rows) -> bool:
        """Whether rows can be compared with ours by address: one batch, of the very types."""
        return isinstance(rows, pa.RecordBatch) and bool(rows.schema.equals(self._schema))

    def _reject(self, delta: WeightedRows, keys: Ints) -> None:
        """Raises what is wrong with a change, if anything is."""
        numbers = np.unique(self._find(keys).numbers)
        violation = keyed_violation(self._definition, self._log.take(numbers[numbers >= 0]), delta)
        if violation is not None:
            raise violation

    def _put_back(self, keys: Ints, numbers: Ints) -> None:
        slots = self._index.upsert(keys)
        self._index.inline[slots, 0] = numbers

    def _find(self, keys: Ints) -> _Found:
        slots = self._index.find(keys)
        return _Found(slots, np.where(slots >= 0, self._index.inline[slots, 0], -1))
