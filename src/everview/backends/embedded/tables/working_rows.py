"""A transaction on a keyed table while its changes are read one by one: an upsert sees those before it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from everview.backends.embedded.column_reader import Rows
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.tables.transaction_rows import WeightedRows, consolidated, joined, select_rows
from everview.backends.embedded.vectors import Ints
from everview.relational.nodes import Schema


class WorkingRows:
    """Weighted rows, in the order in which they were added.

    Args:
        fields: The table's columns.
        keys_of: The primary keys of rows.
    """

    def __init__(self, fields: Schema, keys_of: Callable[[Rows], Ints]) -> None:
        self._fields = fields
        self._keys_of = keys_of
        self._parts: list[WeightedRows] = []
        self._touched: KeyMap | None = None  # the keys of the first parts, of as many as ...
        self._covered = 0  # ... this number says

    def add(self, part: WeightedRows) -> None:
        """Adds rows."""
        self._parts.append(part)

    def total(self) -> WeightedRows:
        """All rows; some have been added."""
        return joined(self._parts)

    def with_keys(self, keys: Ints, stored: pa.Table) -> WeightedRows:
        """The rows, with positive weights, that have one of these keys now.

        Args:
            keys: The keys.
            stored: The rows that had them before the transaction.
        """
        before = WeightedRows(stored, None)
        if not self._parts or not self._have_touched(keys):
            return before
        self._parts = [consolidated(self.total(), self._fields)]  # so that the same work is not done for each change
        self._covered = 1
        (own,) = self._parts
        wanted = KeyMap(keys.shape[1])
        wanted.upsert(keys)
        among = np.flatnonzero(wanted.find(self._keys_of(own.rows)) >= 0)
        ours = WeightedRows(select_rows(own.rows, among), own.each_weight()[among])
        now = consolidated(joined([before, ours]), self._fields)
        positive = np.flatnonzero(now.each_weight() > 0)
        return WeightedRows(select_rows(now.rows, positive), now.each_weight()[positive])

    def _have_touched(self, keys: Ints) -> bool:
        if self._touched is None:
            self._touched = KeyMap(keys.shape[1])
        for part in self._parts[self._covered :]:
            self._touched.upsert(self._keys_of(part.rows))
        self._covered = len(self._parts)
        return bool((self._touched.find(keys) >= 0).any())
