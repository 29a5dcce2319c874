"""GROUP BY: one slot a group, one accumulator an aggregate, and the change of the groups that a batch touches.

Each group keeps how many rows it has; a group without rows does not exist, except the one group of a global aggregate,
which always does. For a touched group the old answer is taken back and the new one given, unless they are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.operators.accumulator import Accumulator
from everview.backends.embedded.operators.accumulators import accumulator_for
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.sums import add_counts
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.slot_array import SlotArray
from everview.backends.embedded.vectors import Batch, Ints, KeyLayout, Vector, concatenate
from everview.relational.expressions import Expression
from everview.relational.nodes import Aggregate
from everview.relational.schema import is_nullable, schema
from everview.trigger.row_cost import Cost


@dataclass(slots=True)
class _Touched:
    """The groups a transaction touches, and what they were before."""

    slots: Ints
    existed: Any
    rows: Ints
    saved: list[Any]


@dataclass(frozen=True, slots=True)
class _Call:
    """An aggregate: where its arguments and its filter stand among the projected expressions."""

    accumulator: Accumulator
    args: tuple[int, ...]
    filter: int | None


class AggregateOperator(Operator):
    """Groups with accumulators."""

    def __init__(self, node: Aggregate, child: Operator, dictionary: Dictionary) -> None:
        super().__init__(schema(node), (child,))
        self._is_global = not node.keys
        self._key_layout = KeyLayout(tuple(k.type for k in node.keys), tuple(is_nullable(k) for k in node.keys))
        self._groups = KeyMap(self._key_layout.width)
        self._rows = SlotArray(self._groups, np.int64)
        projected: list[Expression] = list(node.keys)
        self._calls: list[_Call] = []
        for call in node.aggregates:
            args = tuple(range(len(projected), len(projected) + len(call.args)))
            projected.extend(call.args)
            where = None
            if call.filter is not None:
                where = len(projected)
                projected.append(call.filter)
            self._calls.append(_Call(accumulator_for(call, self._groups, dictionary), args, where))
        self._key_count = len(node.keys)
        self._project = compile_projection(tuple(projected), dictionary)
        self._touched: _Touched | None = None
        self._text = ", ".join(node.names[len(node.keys) :])
        if self._is_global:
            self._groups.upsert(np.zeros((1, 1), dtype=np.int64))

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        (delta,) = deltas
        if delta is None or not len(delta):
            return None
        touched = self._add(delta)
        existed, exists = touched.existed, self._exist(touched.slots)
        old, new = self._before, self._answers(touched.slots[exists])
        return self._difference(old, existed, new, exists)

    def load(self, contents: Sequence[Batch]) -> Batch:
        if len(contents[0]):
            self._add(contents[0])
        return self.content()

    def _add(self, delta: Batch) -> _Touched:
        vectors = self._project(delta.columns, len(delta))
        if self._is_global:
            slots = np.zeros(len(delta), dtype=np.int64)
        else:
            slots = self._groups.upsert(self._key_layout.pack(vectors[: self._key_count], len(delta)))
        distinct = np.unique(slots)
        existed = self._exist(distinct)
        self._before = self._answers(distinct[existed])
        saved = [c.accumulator.save(distinct) for c in self._calls]
        self._touched = _Touched(distinct, existed, self._rows.data[distinct, 0], saved)
        add_counts(self._rows.data, 0, slots, delta.weights)
        for call in self._calls:
            self._accumulate(call, slots, vectors, delta.weights)
        return self._touched

    def _accumulate(self, call: _Call, slots: Ints, vectors: Sequence[Vector], weights: Ints) -> None:
        args = [vectors[i] for i in call.args]
        if call.filter is not None:
            condition = vectors[call.filter]
            mask = condition.values != 0
            if condition.nulls is not None:
                mask &= ~condition.nulls
            args = [a.take(mask) for a in args]
            slots, weights = slots[mask], weights[mask]
        call.accumulator.add(slots, args, weights)

    def _exist(self, slots: Ints) -> Any:
        if self._is_global:
            return np.ones(len(slots), dtype=np.bool_)
        return self._rows.data[slots, 0] != 0

    def _answers(self, slots: Ints) -> tuple[Vector, ...]:
        keys = self._key_layout.unpack(self._groups.store.take(slots, axis=0)) if self._key_count else ()
        return (*keys, *(c.accumulator.result(slots) for c in self._calls))

    def _difference(self, old: tuple[Vector, ...], existed: Any, new: tuple[Vector, ...], exists: Any) -> Batch | None:
        """Minus the old answers, plus the new ones, without the groups whose answer has stayed the same."""
        before = self.layout.pack(old, int(existed.sum()))
        after = self.layout.pack(new, int(exists.sum()))
        both = existed & exists
        same = np.zeros(len(existed), dtype=np.bool_)
        same[both] = (before[both[existed]] == after[both[exists]]).all(axis=1)
        gone, come = ~same[existed], ~same[exists]
        parts = []
        if gone.any():
            parts.append(Batch(tuple(v.take(gone) for v in old), np.full(int(gone.sum()), -1, dtype=np.int64)))
        if come.any():
            parts.append(Batch(tuple(v.take(come) for v in new), np.ones(int(come.sum()), dtype=np.int64)))
        return concatenate(parts) if parts else None

    def content(self) -> Batch:
        slots = self._groups.live_slots()
        slots = slots[self._exist(slots)]
        return Batch(self._answers(slots), np.ones(len(slots), dtype=np.int64))

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.content()

    def commit(self) -> None:
        if self._touched is None:
            return
        for call in self._calls:
            call.accumulator.commit()
        if not self._is_global:
            slots = self._touched.slots
            self._remove(slots[self._rows.data[slots, 0] == 0])
        self._touched = None

    def rollback(self) -> None:
        touched = self._touched
        if touched is None:
            return
        for call, saved in zip(self._calls, touched.saved, strict=True):
            call.accumulator.rollback(touched.slots, saved)
        self._rows.data[touched.slots, 0] = touched.rows
        if not self._is_global:
            self._remove(touched.slots[~touched.existed])
        self._touched = None

    def _remove(self, slots: Ints) -> None:
        if len(slots):
            self._groups.remove(slots)
        if self._groups.is_sparse:
            live = self._groups.live_slots()
            self._groups.compact()
            for call in self._calls:
                call.accumulator.renumber(live)

    def nbytes(self) -> dict[str, int]:
        sizes = {"groups": self._groups.nbytes + self._rows.nbytes}
        for i, call in enumerate(self._calls):
            sizes[f"accumulator {i}"] = call.accumulator.nbytes
        return sizes

    def python_parts(self) -> list[str]:
        return list(self._project.definitions(tuple(f.name for f in self.inputs[0].fields)))

    def describe(self) -> str:
        keys = ", ".join(f.name for f in self.fields[: self._key_count])
        cost = max((c.accumulator.cost for c in self._calls), default=Cost.CONSTANT)
        return f"aggregate by [{keys}] [{self._text}]: look-up of the group, {cost} per row"
