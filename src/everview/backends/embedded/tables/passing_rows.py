"""The rows of a table that keeps none (``retain=False``): they pass, and deletes are trusted.

While a database is opened, what has passed before is held for as long as the views over it are made.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.tables.transaction_rows import (
    Content,
    TableDelta,
    WeightedRows,
    consolidated,
    joined,
    rows_of,
)
from everview.backends.embedded.vectors import Ints, unit_weights
from everview.backends.rejections import not_retained
from everview.catalog import TableDefinition


class PassingRows:
    """Nothing, or what views are being made of."""

    row_count = 0
    data_bytes = 0
    index_bytes = 0

    def __init__(self, definition: TableDefinition) -> None:
        self._definition = definition
        self.held: WeightedRows | None = None
        """Some columns of what has passed, while views are made of it."""

    def content(self, columns: Sequence[int]) -> tuple[pa.Table, Ints]:
        """What is held.

        Raises:
            UnsupportedOperation: nothing is.
        """
        if self.held is None:
            raise not_retained(self._definition)
        names = [self._definition.fields[c].name for c in columns]
        return self.held.rows.select(names), self.held.each_weight()

    def frozen(self) -> Content:
        """Raises: there is none."""
        raise not_retained(self._definition)

    def prepare(self, changes: Sequence[Change]) -> TableDelta:
        """The rows, summed up where some could cancel each other.

        Raises:
            UnsupportedOperation: a change by key, which needs the old rows; the session refuses it earlier, in its own words.
        """
        for change in changes:
            if change.kind is not ChangeKind.WEIGHTED:
                raise not_retained(self._definition)
        if len(changes) == 1 and changes[0].weights is None:
            rows = changes[0].given
            return TableDelta(rows, unit_weights(rows.num_rows), has_deletes=False)
        given = joined([rows_of(change) for change in changes])
        if given.has_deletes and given.has_inserts:
            given = consolidated(given, self._definition.fields)
        return TableDelta(given.rows, given.each_weight(), has_deletes=given.has_deletes)

    def commit(self) -> None:
        """Nothing to keep."""

    def rollback(self) -> None:
        """Nothing to undo."""
