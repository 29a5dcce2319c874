"""MIN, MAX, MIN_BY and MAX_BY: the values of every group in one ordered index, O(log n) to add, delete and ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.accumulator import Accumulator
from everview.backends.embedded.ordered_rows import OrderedRows, OrderTerm
from everview.backends.embedded.vectors import Ints, Vector, empty_values
from everview.relational.nodes import AggregateCall
from everview.trigger.row_cost import Cost


class ExtremeAccumulator(Accumulator):
    """Entries (group, ordering value[, given value]); a group's answer is the first or last with its prefix."""

    cost = Cost.LOGARITHMIC

    def __init__(self, call: AggregateCall, dictionary: Dictionary) -> None:
        self._type = call.type
        self._takes_last = call.function in ("max", "max_by")
        terms = [OrderTerm(a.type) for a in reversed(call.args)]  # MIN_BY orders by its second argument
        self._given = len(terms) - 1  # for MIN and MAX the ordering value itself
        self._values = OrderedRows(1, terms, dictionary)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        values = list(reversed(args))
        nulls = values[0].nulls
        if nulls is not None:
            kept = ~nulls
            slots, weights, values = slots[kept], weights[kept], [v.take(kept) for v in values]
        if len(slots):
            self._values.add(slots.reshape(-1, 1), values, weights)

    def result(self, slots: Ints) -> Vector:
        if not len(self._values.index):
            return Vector(self._type, empty_values(self._type, len(slots)), np.ones(len(slots), dtype=np.bool_))
        prefixes = np.ascontiguousarray(slots.reshape(-1, 1))
        index = self._values.index
        places = index.last(prefixes) if self._takes_last else index.first(prefixes)
        missing = places < 0
        found = self._values.value_at(np.where(missing, 0, places), self._given)
        if not missing.any():
            return found
        nulls = missing if found.nulls is None else missing | found.nulls
        found.values[missing] = 0
        return Vector(self._type, found.values, nulls)

    def commit(self) -> None:
        self._values.commit()

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._values.rollback()

    def renumber(self, live: Ints) -> None:
        self._values.renumber_prefix(live)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes
