"""Operators that are a function of how often each row occurs in each input: DISTINCT, monus, min, max.

For each row the counts in all inputs are kept; the output count is f(counts), and the delta is f(new) - f(old), which makes
it strongly minimal (views-with-duplicates, figure 3: these are the general forms of its rules).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.sums import add_counts
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.slot_array import SlotArray
from everview.backends.embedded.vectors import Batch, Ints, KeyLayout
from everview.relational.nodes import Distinct, ExceptAll, IntersectAll, UnionMax
from everview.relational.schema import schema

Combine = Callable[[Ints], Ints]
"""From the matrix of counts, a column an input, to the output counts."""

_COMBINE: dict[type, tuple[str, Combine]] = {
    Distinct: ("distinct", lambda counts: (counts[:, 0] > 0).astype(np.int64)),
    ExceptAll: ("except all", lambda counts: np.maximum(counts[:, 0] - counts[:, 1], 0)),
    IntersectAll: ("intersect all", lambda counts: np.minimum(counts[:, 0], counts[:, 1])),
    UnionMax: ("union max", lambda counts: np.maximum(counts[:, 0], counts[:, 1])),
}


class CountedOperator(Operator):
    """Keeps the count of every row in every input."""

    def __init__(self, node: Distinct | ExceptAll | IntersectAll | UnionMax, inputs: tuple[Operator, ...]) -> None:
        super().__init__(schema(node), inputs)
        self._name, self._combine = _COMBINE[type(node)]
        # Rows of any input are looked up here, also with a NULL that the output cannot have.
        nullable = tuple(any(flags) for flags in zip(*(i.layout.nullable for i in inputs), strict=True))
        self._layout = KeyLayout(self.types, nullable)
        self._rows = KeyMap(self._layout.width)
        self._counts = SlotArray(self._rows, np.int64, len(inputs))
        self._touched: Ints = np.zeros(0, dtype=np.int64)
        self._before: Ints = np.zeros((0, len(inputs)), dtype=np.int64)

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        given = [(i, d) for i, d in enumerate(deltas) if d is not None and len(d)]
        if not given:
            return None
        located = [(i, d.weights, self._rows.upsert(self._layout.pack(d.columns, len(d)))) for i, d in given]
        touched = np.unique(np.concatenate([slots for _, _, slots in located]))
        before = self._counts.data[touched]
        self._touched, self._before = touched, before
        for i, weights, slots in located:
            add_counts(self._counts.data, i, slots, weights)
        change = self._combine(self._counts.data[touched]) - self._combine(before)
        moved = change != 0
        if not moved.any():
            return None
        return Batch(self._layout.unpack(self._rows.store.take(touched[moved], axis=0)), change[moved])

    def commit(self) -> None:
        dead = self._touched[~self._counts.data[self._touched].any(axis=1)]
        self._forget()
        if len(dead):
            self._rows.remove(dead)

    def rollback(self) -> None:
        touched = self._touched
        self._counts.data[touched] = self._before
        created = touched[~self._before.any(axis=1)]
        self._forget()
        if len(created):
            self._rows.remove(created)

    def _forget(self) -> None:
        self._touched, self._before = self._touched[:0], self._before[:0]

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        slots = self._rows.live_slots()
        weights = self._combine(self._counts.data[slots])
        shown = weights != 0
        return Batch(self._layout.unpack(self._rows.store.take(slots[shown], axis=0)), weights[shown])

    def content(self) -> Batch:
        return self.recompute(())

    def nbytes(self) -> dict[str, int]:
        return {"counts": self._rows.nbytes + self._counts.nbytes}

    def describe(self) -> str:
        return f"{self._name}, counts per row"
