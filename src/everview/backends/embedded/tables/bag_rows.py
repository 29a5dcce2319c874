"""The rows of a table without a primary key: a bag.

As long as nothing is deleted, that is a row log and no more. The first delete needs to know what is there, and turns the table
into a map from whole rows, packed into words, to weights; from then on that map is the table. A table that is emptied is a row
log again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.arrow_columns import vector_to_arrow
from everview.backends.embedded.column_reader import ColumnReader, Rows
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state.accumulate import total_weight
from everview.backends.embedded.state.weight_map import WeightChanges, WeightMap
from everview.backends.embedded.tables.row_log import RowLog
from everview.backends.embedded.tables.strictness import missing_rows
from everview.backends.embedded.tables.transaction_rows import (
    Content,
    TableDelta,
    WeightedRows,
    consolidated,
    joined,
    rows_of,
    select_rows,
)
from everview.backends.embedded.vectors import Ints, KeyLayout
from everview.catalog import TableDefinition
from everview.errors import InvalidChange
from everview.relational.arrow import arrow_schema


class BagRows:
    """Rows, each any number of times."""

    def __init__(self, definition: TableDefinition, dictionary: Dictionary) -> None:
        self._definition = definition
        self._dictionary = dictionary
        self._schema = arrow_schema(definition.fields)
        self._types = tuple(f.type for f in definition.fields)
        self._layout = KeyLayout(self._types, tuple(f.nullable for f in definition.fields))
        self._reader = ColumnReader(definition.fields, range(len(definition.fields)), dictionary)
        self._log = RowLog(self._schema)
        self._map: WeightMap | None = None
        self._undo: Callable[[], None] | None = None
        self.row_count = 0
        """The sum of all weights."""

    @property
    def data_bytes(self) -> int:
        """Memory of the Arrow data."""
        return self._log.data_bytes

    @property
    def index_bytes(self) -> int:
        """Memory of the map, or of what finds a row in the log."""
        return self._log.index_bytes if self._map is None else self._map.nbytes

    def content(self, columns: Sequence[int]) -> tuple[pa.Table, Ints]:
        """The rows of some columns, with their weights."""
        if self._map is None:
            return self._log.content(columns)
        slots = self._map.live_slots()
        words = self._map.keys[:, list(self._layout.words(columns))][slots]
        vectors = self._layout.part(columns).unpack(words)
        arrays = [vector_to_arrow(vector, self._dictionary) for vector in vectors]
        schema = pa.schema([self._schema.field(c) for c in columns])
        return pa.Table.from_arrays(arrays, schema=schema), self._map.weights[slots]

    def frozen(self) -> Content:
        """What gives all rows as they are now, whenever it is asked; a map is read at once, since it changes in place."""
        if self._map is None:
            return self._log.frozen().content
        rows, weights = self.content(range(len(self._types)))
        return lambda columns: (rows.select(list(columns)), weights)

    def prepare(self, changes: Sequence[Change]) -> TableDelta:
        """Applies the changes of one transaction and returns their net effect."""
        assert all(change.kind is ChangeKind.WEIGHTED for change in changes), "a change by key, and no key"
        given = joined([rows_of(change) for change in changes])
        if self._map is not None:
            return self._add(given, self._map)
        if not given.has_deletes:
            return self._append(given)
        net = consolidated(given, self._definition.fields)
        return self._add(net, self._as_map()) if net.has_deletes else self._append(net)

    def commit(self) -> None:
        """Keeps what was prepared."""
        self._undo = None
        if self._map is None:
            self._log.tidy()
        elif len(self._map) == 0:
            self._map = None
        elif self._map.is_sparse:
            self._map.compact()

    def rollback(self) -> None:
        """Undoes what was prepared."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _append(self, given: WeightedRows) -> TableDelta:
        mark, before = self._log.mark(), self.row_count

        def undo() -> None:
            self._log.cut_back(mark)
            self.row_count = before

        self._undo = undo  # before the first change: there may be no memory for the rest of it
        self._log.append(given.rows, given.weights)
        weights = given.each_weight()
        self.row_count += total_weight(weights)
        return TableDelta(given.rows, weights, has_deletes=False)

    def _as_map(self) -> WeightMap:
        """The table as a map, which it then is."""
        rows, weights = self._log.content(range(len(self._types)))
        self._map = WeightMap(self._layout.width)
        self._map.reserve(len(self._log))
        at = 0
        for batch in rows.to_batches():
            self._map.add_weights(self._words(batch), weights[at : at + len(batch)])
            at += len(batch)
        self._log = RowLog(self._schema)
        return self._map

    def _add(self, given: WeightedRows, rows: WeightMap) -> TableDelta:
        words, weights = self._words(given.rows), given.each_weight()
        changes = rows.add_weights(words, weights)
        before = self.row_count
        has_deletes = given.has_deletes
        if has_deletes and int(changes.new.min()) < 0:
            violation = self._missing(given, changes)
            rows.add_weights(words, -weights)
            raise violation
        self.row_count += total_weight(weights)

        def undo() -> None:
            rows.add_weights(words, -weights)
            self.row_count = before

        self._undo = undo
        if not has_deletes:
            return TableDelta(given.rows, weights, has_deletes=False)
        effect = changes.new - changes.old
        moved = np.flatnonzero(effect)
        net = WeightedRows(select_rows(given.rows, changes.rows[moved]), effect[moved])
        return TableDelta(net.rows, net.each_weight(), has_deletes=net.has_deletes)

    def _missing(self, given: WeightedRows, changes: WeightChanges) -> InvalidChange:
        """Names the rows that are deleted too often: those that are there first, as they lie in the map."""
        wrong = np.flatnonzero(changes.new < 0)
        is_new = changes.old[wrong] == 0
        wrong = wrong[np.lexsort((np.where(is_new, changes.rows[wrong], changes.slots[wrong]), is_new))]
        return missing_rows(
            self._definition, given.rows.take(pa.array(changes.rows[wrong])), (-changes.new[wrong]).tolist()
        )

    def _words(self, rows: Rows) -> Ints:
        vectors = self._reader.read(rows)
        return self._layout.pack([vectors[c] for c in range(len(self._types))], rows.num_rows)
