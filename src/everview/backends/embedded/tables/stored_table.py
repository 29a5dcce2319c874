"""A base table of the embedded engine: strict, atomic, and cheap to append to.

Contract: ``prepare`` applies one transaction's changes, so that the table answers for the next version, or raises and has
changed nothing; ``commit`` keeps them, ``rollback`` undoes them. Deletes of absent rows, duplicate keys and changes of a loaded
static table are judged on the net effect, in the words of ``backends.rejections``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from everview.backends.base import AlteredTable, Change, ChangeKind
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.tables.bag_rows import BagRows
from everview.backends.embedded.tables.keyed_rows import KeyedRows
from everview.backends.embedded.tables.passing_rows import PassingRows
from everview.backends.embedded.tables.transaction_rows import Content, TableDelta, rows_of
from everview.backends.embedded.vectors import Ints
from everview.backends.rejections import not_retained, static_changed
from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema, rows_to_arrow


@dataclass(frozen=True, slots=True)
class TableBytes:
    """The memory of a table; what its strings take in the engine's dictionary is not counted."""

    data: int
    index: int


@dataclass(frozen=True, slots=True)
class TableContent:
    """All rows of a table, without weights where each is 1; ``received`` is whether any change ever came.

    Of a table that keeps no rows: what has passed, summed up, in the columns that views read.
    """

    table: str
    rows: pa.Table
    weights: pa.Array | pa.ChunkedArray | None
    received: bool


class _Rows(Protocol):
    """A way to keep rows; ``prepare`` gets at least one change, none of them empty."""

    @property
    def row_count(self) -> int: ...

    @property
    def data_bytes(self) -> int: ...

    @property
    def index_bytes(self) -> int: ...

    def content(self, columns: Sequence[int]) -> tuple[pa.Table, Ints]: ...

    def frozen(self) -> Content: ...

    def prepare(self, changes: Sequence[Change]) -> TableDelta: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class StoredTable:
    """The rows of one table.

    Args:
        definition: Its columns and key, and whether it is static and retained.
        dictionary: The engine's dictionary; it learns the key's strings, and all strings once rows without a key are deleted.
    """

    def __init__(self, definition: TableDefinition, dictionary: Dictionary) -> None:
        self.definition = definition
        self._dictionary = dictionary
        self.has_received_rows = False
        """Whether any change ever arrived, also where it left no trace."""
        self.received_before = False
        self.is_loaded_in_pieces = False
        """Whether what it is to hold for good comes in several transactions, which are parts of one."""
        """The same before the transaction at hand, or the last one."""
        self.is_prepared = False
        """Whether a transaction is under way."""
        self._rows: _Rows
        if not definition.retain:
            self._rows = PassingRows(definition)
        elif definition.primary_key:
            self._rows = KeyedRows(definition, dictionary)
        else:
            self._rows = BagRows(definition, dictionary)

    @property
    def name(self) -> str:
        """The table's name."""
        return self.definition.name

    @property
    def row_count(self) -> int:
        """The number of rows, each as often as it is there; 0 where none are kept."""
        return self._rows.row_count

    @property
    def nbytes(self) -> TableBytes:
        """The memory of the rows and of their index."""
        return TableBytes(self._rows.data_bytes, self._rows.index_bytes)

    def prepare(self, changes: Sequence[Change]) -> TableDelta:
        """Applies the changes of one transaction to this table, in order, until ``commit`` or ``rollback``.

        Raises:
            InvalidChange: the table cannot be in the state that the changes lead to.
        """
        assert not self.is_prepared, f"table '{self.name}' is in a transaction"
        changes = [change for change in changes if change.given.num_rows]
        if self.definition.static and self.has_received_rows and changes and not self.is_loaded_in_pieces:
            raise static_changed(self.definition)
        if changes:
            try:
                delta = self._rows.prepare(changes)
            except MemoryError:
                self._rows.rollback()
                raise
        else:
            empty = arrow_schema(self.definition.fields).empty_table()
            delta = TableDelta(empty, np.zeros(0, dtype=np.int64), has_deletes=False)
        self.is_prepared = True
        self.received_before = self.has_received_rows
        self.has_received_rows = self.has_received_rows or bool(changes)
        return delta

    def may_be_cut(self, change: Change) -> bool:
        """Whether parts of a change, one after the other, come to the same: a change by key must name no key twice."""
        if change.kind is ChangeKind.WEIGHTED:
            return True
        return isinstance(self._rows, KeyedRows) and self._rows.has_distinct_keys(change)

    def commit(self) -> None:
        """Keeps what was prepared."""
        assert self.is_prepared, f"table '{self.name}' is in no transaction"
        self.is_prepared = False
        self._rows.commit()

    def rollback(self) -> None:
        """Undoes what was prepared."""
        assert self.is_prepared, f"table '{self.name}' is in no transaction"
        self.is_prepared = False
        self.has_received_rows = self.received_before
        self._rows.rollback()

    def content(self, columns: Sequence[int]) -> tuple[pa.Table, Ints]:
        """The rows of some columns and their weights, which are positive; a row may occur more than once.

        Raises:
            UnsupportedOperation: the table keeps no rows.
        """
        return self._rows.content(columns)

    def whole(self) -> Callable[[], TableContent]:
        """What gives all that the table keeps now, which is nothing without ``retain``; it may be asked later, elsewhere."""
        name, received = self.name, self.has_received_rows
        if not self.definition.retain:
            empty = arrow_schema(self.definition.fields).empty_table()
            return lambda: TableContent(name, empty, None, received)
        content, columns = self._rows.frozen(), range(len(self.definition.fields))

        def read() -> TableContent:
            rows, weights = content(columns)
            is_plain = bool((weights == 1).all())
            return TableContent(name, rows, None if is_plain else pa.array(weights), received)

        return read

    def restore(self, content: TableContent) -> None:
        """Takes in what ``whole`` gave; the table is new. One that keeps no rows holds them until ``let_go``."""
        if isinstance(self._rows, PassingRows):
            self._rows.held = rows_of(Change(self.name, ChangeKind.WEIGHTED, content.rows, content.weights))
        elif content.rows.num_rows:
            self.prepare([Change(self.name, ChangeKind.WEIGHTED, content.rows, content.weights)])
            self.commit()
        self.has_received_rows = content.received

    def let_go(self) -> None:
        """The views over the table are made: what it does not keep, it forgets."""
        if isinstance(self._rows, PassingRows):
            self._rows.held = None

    @property
    def has_rows_to_read(self) -> bool:
        """Whether ``content`` can be asked for: the rows are kept, or held for the moment."""
        return not isinstance(self._rows, PassingRows) or self._rows.held is not None

    def altered(self, altered: AlteredTable) -> StoredTable:
        """Another table: the rows of this one in the columns that are asked for."""
        made, content = StoredTable(altered.definition, self._dictionary), self.whole()()
        fields, count = altered.definition.fields, content.rows.num_rows
        columns = [
            rows_to_arrow([(altered.filling.value,)], (field,))
            .take(pa.array(np.zeros(count, dtype=np.int64)))
            .column(0)
            if before is None
            else content.rows.column(before)
            for field, before in zip(fields, altered.columns, strict=True)
        ]
        rows = pa.table(columns, schema=arrow_schema(fields))
        made.restore(TableContent(made.name, rows, content.weights, content.received))
        made.let_go()
        return made

    def lookup(self, keys: pa.Table) -> tuple[Ints, pa.Table]:
        """The positions of the keys that some row has, ascending, and those rows.

        Args:
            keys: The columns of the primary key, which the table has, in the key's order.

        Raises:
            UnsupportedOperation: the table keeps no rows.
        """
        if isinstance(self._rows, PassingRows):
            raise not_retained(self.definition)
        assert isinstance(self._rows, KeyedRows), f"table '{self.name}' has no primary key"
        return self._rows.lookup(keys)
