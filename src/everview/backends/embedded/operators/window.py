"""Window functions: the partitions that a change touches are computed anew, the others are left alone.

The child's rows are kept sliced by partition. For each touched partition the old rows (the new ones minus the delta) and
the new ones are evaluated, and the difference is the delta. Both are subsets of one set of distinct rows, which is sorted,
and on which arguments are evaluated, once; a row whose values have stayed the same goes no further.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator, Searched, consolidated
from everview.backends.embedded.operators.join import Side
from everview.backends.embedded.state.consolidate import consolidate
from everview.backends.embedded.vectors import Batch, Ints, Vector
from everview.backends.embedded.windows import Partitions, RowOrder, WindowFunctions
from everview.relational.nodes import Window
from everview.relational.schema import schema


class WindowOperator(Operator):
    """Partition columns must be columns of the child (lowering sees to it)."""

    def __init__(self, node: Window, child: Operator, partition: tuple[int, ...], dictionary: Dictionary) -> None:
        super().__init__(schema(node), (child,))
        self._child = child
        self._side = Side(child, partition, (True,) * len(partition), needs_distinct_rows=True)
        self._order = RowOrder(node, dictionary)
        self._functions = WindowFunctions(node, dictionary)
        width = len(child.fields)
        self._added = self.layout.part(range(width, len(self.fields)))

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        (delta,) = deltas
        if delta is None or not len(delta):
            return None
        delta = consolidated(delta, self._child.layout)
        if not len(delta):
            return None
        change = self._difference(*self._touched(delta))
        return change if len(change) else None

    def load(self, contents: Sequence[Batch]) -> Batch:
        return self.recompute(contents)

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        # The arrangement holds the same rows, each once and with one form of every float, as ``push`` will see them.
        content = self._side.rows.content()
        rows, places = self._order.sort(content.columns, len(content))
        view = Partitions(rows, content.weights[places])
        return Batch(
            tuple(view.spread(c) for c in rows.columns) + self._functions(view), np.ones(view.count, dtype=np.int64)
        )

    def _touched(self, delta: Batch) -> tuple[tuple[Vector, ...], Ints, Ints]:
        """The distinct rows of the touched partitions, before or after the delta, with their old and new weights."""
        arrangement = self._side.rows.whole
        slots = self._slots(delta)
        found = arrangement.rows.entries_at(slots)
        now = found[:, -1].copy()
        keys = np.concatenate([found[:, :-1], arrangement.layout.pack(delta.columns, len(delta))])
        first, sums = consolidate(keys, np.concatenate([now, -delta.weights]))
        old, new = np.zeros((2, len(keys)), dtype=np.int64)
        # A row of the delta that is still there comes second, and its weight has gone to the first.
        old[first] = sums
        new[: len(now)] = now
        present = (old != 0) | (new != 0)
        return arrangement.layout.unpack(keys[present]), old[present], new[present]

    def _slots(self, delta: Batch) -> Ints:
        arrangement = self._side.rows.whole
        if not self._side.columns:
            return arrangement.rows.live_slots()
        keys, _ = self._side.probe_keys([delta.columns[c] for c in self._side.columns], len(delta))
        first, _ = consolidate(keys, np.ones(len(keys), dtype=np.int64))
        _, slots = arrangement.index(self._side.columns).expand(np.ascontiguousarray(keys[first]))
        return slots

    def _difference(self, columns: tuple[Vector, ...], old: Ints, new: Ints) -> Batch:
        rows, places = self._order.sort(columns, len(old))
        old, new = old[places], new[places]
        view = Partitions(rows, old, new)
        values = self._functions(view)
        changed = _changed(self._added.pack(values, view.count), old, new)
        columns = tuple(c.take(view.rows[changed]) for c in rows.columns)
        weights = np.where(changed < view.worlds[1], -1, 1)
        return consolidated(Batch(columns + tuple(v.take(changed) for v in values), weights), self.layout)

    def searches(self) -> tuple[Searched, ...]:
        return (self._side.rows,)

    def describe(self) -> str:
        names = ", ".join(self._child.fields[c].name for c in self._side.columns)
        return f"window: slice of the touched partitions by [{names}], each computed anew"

    def python_parts(self) -> list[str]:
        names = tuple(f.name for f in self._child.fields)
        return [*self._order.definitions(names), *self._functions.definitions(names)]


def _changed(values: Ints, old: Ints, new: Ints) -> Ints:
    """The positions of the old and of the new rows that do not have the same values among the others.

    Of the distinct row i there are ``old[i]`` copies, and after those of all rows ``new[i]``. The k-th copy of a row is
    compared with its k-th copy.
    """
    common = np.minimum(old, new)
    row = np.repeat(np.arange(len(common)), common)
    copy = np.arange(len(row)) - (np.cumsum(common) - common)[row]
    was, is_now = (np.cumsum(old) - old)[row] + copy, (np.cumsum(new) - new)[row] + copy + int(old.sum())
    same = (values[was] == values[is_now]).all(axis=1)
    changed = np.ones(len(values), dtype=np.bool_)
    changed[was[same]] = False
    changed[is_now[same]] = False
    return np.flatnonzero(changed)
