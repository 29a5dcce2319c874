"""ORDER BY with LIMIT and OFFSET: all rows in one ordered index, the answer its first ones.

A change costs O(log n) per row and O(offset + limit) to read the new answer, whose difference from the old one is the delta.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.operators.base import Operator, consolidated
from everview.backends.embedded.ordered_rows import OrderedRows, OrderTerm
from everview.backends.embedded.vectors import Batch, Ints, concatenate
from everview.relational.nodes import TopK
from everview.relational.schema import schema


class TopOperator(Operator):
    """Rows ``offset … offset + limit`` in order, ties broken by the whole row."""

    def __init__(self, node: TopK, child: Operator, dictionary: Dictionary) -> None:
        super().__init__(schema(node), (child,))
        self._node = node
        self._sort_values = compile_projection(tuple(k.expression for k in node.order), dictionary)
        sort = [OrderTerm(k.expression.type, k.descending, k.nulls_first) for k in node.order]
        self._rows = OrderedRows(0, [*sort, *(OrderTerm(t) for t in self.types)], dictionary)
        self._shown = self.nothing()
        self._before: Batch | None = None
        self._entries: Ints | None = None  # those that the answer was read from, as far as they are known

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        (delta,) = deltas
        if delta is None or not len(delta):
            return None
        values = self._sort_values(delta.columns, len(delta))
        self._rows.add(None, [*values, *delta.columns], delta.weights)
        places = self._first_places()
        entries = self._rows.index.entries_at(places)
        if self._entries is not None and np.array_equal(entries, self._entries):
            return None
        if self._before is None:
            self._before = self._shown
        old, self._shown, self._entries = self._shown, self._top(entries), entries
        change = consolidated(concatenate([self._shown, old.negated()]), self.layout)
        return change if len(change) else None

    def _first_places(self) -> Ints:
        """Where the index has the entries that the answer may be in."""
        limit, offset = self._node.limit, self._node.offset
        index = self._rows.index
        return index.at(np.arange(len(index) if limit is None else min(len(index), offset + limit), dtype=np.int64))

    def _top(self, entries: Ints) -> Batch:
        """The rows of the answer, read off the first entries of the index."""
        limit, offset = self._node.limit, self._node.offset
        if not len(entries):
            return self.nothing()
        weights, first = entries[:, -1].copy(), len(self._node.order)
        ends = np.cumsum(weights)
        high = int(ends[-1]) if limit is None else offset + limit
        if offset or ends[-1] > high:
            starts = ends - weights
            weights = np.clip(ends, offset, high) - np.clip(starts, offset, high)
            shown = weights > 0
            entries, weights = entries.compress(shown, axis=0), weights[shown]
        return Batch(tuple(self._rows.value_of(entries, first + i) for i in range(len(self.types))), weights)

    def content(self) -> Batch:
        return self._shown

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self._shown

    def commit(self) -> None:
        self._rows.commit()
        self._before = None

    def rollback(self) -> None:
        self._rows.rollback()
        if self._before is not None:
            self._shown, self._before = self._before, None
        self._entries = None

    def nbytes(self) -> dict[str, int]:
        return {"ordered rows": self._rows.nbytes}

    def describe(self) -> str:
        limit = "all" if self._node.limit is None else str(self._node.offset + self._node.limit)
        return f"top by an ordered index: O(log n) per row, then the first {limit}"
