"""The aggregate of a registered ring: one payload of the ring a group, and the number of rows in it.

A batch adds Σ_rows weight · Π_i lift_i(x_i) to the payload of each group, with the ring's own operations over all rows at once.
A group whose rows have all gone has payload 0 exactly, whatever the ring has rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from everview.algebra.registry import ring_named
from everview.algebra.ring import ColumnValues, Payloads
from everview.backends.embedded.arrow_columns import vector_from_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import Cells
from everview.backends.embedded.expressions.words import value_reader, words_of_cells
from everview.backends.embedded.operators.accumulator import Accumulator, without_nulls
from everview.backends.embedded.operators.sums import add_counts
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.slot_array import SlotArray
from everview.backends.embedded.vectors import Ints, Vector
from everview.relational.arrow import column_to_arrow
from everview.relational.nodes import AggregateCall
from everview.relational.ring_values import lift_column, lift_dtype, ring_values
from everview.relational.types import Value


class RingAccumulator(Accumulator):
    """Σ Π lift(x) in a ring that a user has registered."""

    def __init__(self, call: AggregateCall, groups: KeyMap, dictionary: Dictionary) -> None:
        self._call = call
        self._entry = ring_named(call.function)
        self._ring = self._entry.ring
        self._dictionary = dictionary
        self._payloads = SlotArray(groups, self._ring.dtype, self._ring.width)
        self._rows = SlotArray(groups, np.int64)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, given, weights = without_nulls(slots, args, weights)
        if not len(slots):
            return
        ring = self._ring
        products = self._entry.product([lifted_column(v, self._dictionary) for v in given])
        touched, group_of_row = np.unique(slots, return_inverse=True)
        change = ring.sum_by(ring.scale(products, weights), group_of_row, len(touched))
        self._payloads.data[touched] = ring.add(self._payloads.data[touched], change)
        add_counts(self._rows.data, 0, slots, weights)
        emptied = touched[self._rows.data[touched, 0] == 0]
        self._payloads.data[emptied] = 0

    def result(self, slots: Ints) -> Vector:
        return ring_answers(self._call, self._payloads.data[slots], self._rows.data[slots, 0], self._dictionary)

    def save(self, slots: Ints) -> Any:
        return self._payloads.data[slots], self._rows.data[slots]

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._payloads.data[slots], self._rows.data[slots] = saved

    @property
    def nbytes(self) -> int:
        return self._payloads.nbytes + self._rows.nbytes


def ring_answers(call: AggregateCall, payloads: Payloads, rows: Ints, dictionary: Dictionary) -> Vector:
    """What the reader of a view sees of payloads: NULL where they sum no rows."""
    has_rows = rows != 0
    values: list[Value] = [None] * len(rows)
    answers = ring_values(ring_named(call.function), np.ascontiguousarray(payloads[has_rows]), call.type)
    for place, answer in zip(np.flatnonzero(has_rows).tolist(), answers, strict=True):
        values[place] = answer
    return vector_from_arrow(column_to_arrow(values, call.type), call.type, dictionary)


def lifted_column(vector: Vector, dictionary: Dictionary) -> ColumnValues:
    """A vector without NULL as the column that a lift gets; decimals, strings and nested values take a step a row."""
    dtype = lift_dtype(vector.type)
    if dtype != np.dtype(object):
        return np.ascontiguousarray(vector.values).astype(dtype, copy=False)
    read = value_reader(vector.type, dictionary)
    return lift_column([read(word) for word in words_of_cells(Cells(vector.values))], vector.type)
