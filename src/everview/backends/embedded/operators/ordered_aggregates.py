"""Aggregates that read the ordered values of a group: percentiles, modes, lists, the k greatest; and bits, which are counted.

All values of one call stand in one ordered index, (group, value), with the number of times each occurs. A percentile is a way
down to a rank, O(log n); so is each of the k rows of ``max_by(x, y, k)``. A mode keeps (group, how often, value) in order as
well. Lists are as long as their group, and are read whole; so are the values of which no smaller summary is kept (skewness,
kurtosis).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from everview.backends.embedded.arrow_columns import vector_from_arrow, vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.accumulator import Accumulator, without_nulls
from everview.backends.embedded.ordered_rows import OrderedRows, OrderTerm
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.slot_array import SlotArray
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Bools, Ints, KeyLayout, Vector, empty_values
from everview.relational import spark_code
from everview.relational.arrow import column_to_arrow, rows_from_arrow
from everview.relational.definitions.ordered_aggregates import (
    ORDERED_AGGREGATES,
    between,
    directions_of,
    parameter,
    percentage_ranks,
    percentages_of,
)
from everview.relational.definitions.spark_aggregates import spark_function
from everview.relational.nodes import AggregateCall, Field
from everview.relational.types import FLOAT64, Array, DataType, Decimal, Row, Value
from everview.trigger.row_cost import Cost


class OrderedValues(Accumulator):
    """The values of every group in order; rows with NULL in the argument ``required`` do not count."""

    cost = Cost.LOGARITHMIC

    def __init__(
        self, places: Sequence[int], terms: Sequence[OrderTerm], required: int | None, dictionary: Dictionary
    ) -> None:
        self._places = tuple(places)
        self._required = required
        self._values = OrderedRows(1, terms, dictionary)
        self._dictionary = dictionary

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        nulls = None if self._required is None else args[self._required].nulls
        values = [args[place] for place in self._places]
        if nulls is not None:
            kept = ~nulls
            slots, weights, values = slots[kept], weights[kept], [v.take(kept) for v in values]
        if len(slots):
            self._values.add(slots.reshape(-1, 1), values, weights)

    def _ranks(self, slots: Ints) -> tuple[Ints, Ints]:
        """Of each group the number of values before it, and its own."""
        prefixes = np.ascontiguousarray(slots.reshape(-1, 1))
        before = self._values.index.prefix_sum(prefixes)
        return before, self._values.index.prefix_sum(prefixes, after=True) - before

    def _entries(self, slots: Ints) -> tuple[Ints, Ints]:
        """All entries of the groups, in order: of each the position of its group in ``slots``, and its place in the index."""
        prefixes = np.ascontiguousarray(slots.reshape(-1, 1))
        index = self._values.index
        first = index.rank(prefixes)
        return index.from_ranks(first, index.rank(prefixes, after=True) - first)

    def _python(self, vector: Vector) -> list[Value]:
        """The values of a vector as the definitions have them."""
        column = pa.table([vector_to_arrow(vector, self._dictionary)], names=["value"])
        return [value for (value,) in rows_from_arrow(column, (Field("value", vector.type, True),))]

    def _vector(self, values: Sequence[Value], data_type: DataType) -> Vector:
        return vector_from_arrow(column_to_arrow(values, data_type), data_type, self._dictionary)

    def commit(self) -> None:
        self._values.commit()

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._values.rollback()

    def renumber(self, live: Ints) -> None:
        self._values.renumber_prefix(live)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes


class PercentileAccumulator(OrderedValues):
    """PERCENTILE, MEDIAN, PERCENTILE_CONT, PERCENTILE_DISC, APPROX_PERCENTILE: the values at one or two ranks."""

    def __init__(self, call: AggregateCall, dictionary: Dictionary) -> None:
        super().__init__((0,), (OrderTerm(call.args[0].type),), 0, dictionary)
        self._call = call
        self._percentages, self._is_array = percentages_of(call)

    def result(self, slots: Ints) -> Vector:
        before, counts = self._ranks(slots)
        missing = counts == 0
        found = [self._percentile(p, before[~missing], counts[~missing]) for p in self._percentages]
        if not self._is_array:
            return _with_nulls(found[0], missing)
        answers: list[Value] = [None] * len(slots)
        columns = [self._python(vector) for vector in found]
        for place, values in zip(np.flatnonzero(~missing).tolist(), zip(*columns, strict=True), strict=True):
            answers[place] = values
        return self._vector(answers, self._call.type)

    def _percentile(self, percentage: float, before: Ints, counts: Ints) -> Vector:
        lower, higher, share = percentage_ranks(self._call.function, percentage, counts)
        low, high = (self._values.value_at(self._values.index.select(before + ranks), 0) for ranks in (lower, higher))
        element = self._call.type.element if isinstance(self._call.type, Array) else self._call.type
        if element == FLOAT64 and self._call.function != "approx_percentile" and not isinstance(low.type, Decimal):
            a, b = low.values.astype(np.float64), high.values.astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                return Vector(
                    FLOAT64, np.where((low.values == high.values) | (share == 0), a, (1.0 - share) * a + share * b)
                )
        pairs = zip(self._python(low), self._python(high), share.tolist(), strict=True)
        return self._vector([between(self._call, a, b, s) for a, b, s in pairs], element)


class ExtremesByKAccumulator(OrderedValues):
    """MAX_BY(x, y, k) and MIN_BY(x, y, k): k ways down from the end of the group."""

    def __init__(self, call: AggregateCall, dictionary: Dictionary) -> None:
        value, order = call.args[:2]
        super().__init__((1, 0), (OrderTerm(order.type), OrderTerm(value.type)), 1, dictionary)
        self._call = call
        self._most = parameter(call, 2)

    def result(self, slots: Ints) -> Vector:
        before, counts = self._ranks(slots)
        taken = np.minimum(counts, self._most)
        ends = np.cumsum(taken)
        places = np.arange(int(taken.sum())) - np.repeat(ends - taken, taken)
        if self._call.function == "max_by_k":
            places = np.repeat(counts, taken) - 1 - places
        found = self._values.value_at(self._values.index.select(np.repeat(before, taken) + places), 1)
        values = self._python(found)
        answers = [tuple(values[a:b]) if b > a else None for a, b in pairwise([0, *ends.tolist()])]
        return self._vector(answers, self._call.type)


class ListAccumulator(OrderedValues):
    """COLLECT_LIST, COLLECT_SET, LISTAGG in index order, and what its definition computes from all values of a group."""

    cost = Cost.PARTITION

    def __init__(self, call: AggregateCall, dictionary: Dictionary) -> None:
        places, terms = [0], [OrderTerm(call.args[0].type)]
        if call.function == "listagg":
            words = directions_of(call)
            order = [
                OrderTerm(arg.type, word[0] == "d", word[1] == "f")
                for arg, word in zip(call.args[3:], words, strict=True)
            ]
            places, terms = [*range(3, 3 + len(order)), 0], [*order, *terms]
            self._delimiter = parameter(call, 1)
        super().__init__(places, terms, 0, dictionary)
        self._call = call

    def result(self, slots: Ints) -> Vector:
        rows, places = self._entries(slots)
        values = self._python(self._values.value_at(places, len(self._places) - 1))
        counts = self._values.index.weights_at(places).tolist()
        bounds = np.searchsorted(rows, np.arange(len(slots) + 1)).tolist()
        answers = [self._answer(values[a:b], counts[a:b]) for a, b in pairwise(bounds)]
        return self._vector(answers, self._call.type)

    def _answer(self, values: list[Value], counts: list[int]) -> Value:
        if self._call.function == "collect_set":
            return tuple(values)
        repeated = [v for v, n in zip(values, counts, strict=True) for _ in range(n)]
        match self._call.function:
            case "collect_list":
                return tuple(repeated)
            case "listagg":
                delimiter = values[0][:0] if values and self._delimiter is None else self._delimiter
                return delimiter.join(repeated) if repeated else None
            case name:
                rows: list[Row] = [(v,) for v in repeated]
                return ORDERED_AGGREGATES[name](self._call, rows)


class SparkAccumulator(OrderedValues):
    """Aggregates that Spark's own code computes, from all rows of the groups that changed: one call a batch."""

    cost = Cost.PARTITION

    def __init__(self, call: AggregateCall, dictionary: Dictionary) -> None:
        types = [a.type for a in call.args[:-1]]
        super().__init__(range(len(types)), [OrderTerm(t) for t in types], None, dictionary)
        self._function = spark_function(call)

    def result(self, slots: Ints) -> Vector:
        rows, places = self._entries(slots)
        counts = self._values.index.weights_at(places)
        sizes = np.bincount(rows, weights=counts, minlength=len(slots)).astype(np.int64)
        repeated = np.repeat(places, counts)
        inputs = [vector_to_arrow(self._values.value_at(repeated, place), self._dictionary) for place in self._places]
        found = spark_code.compute_groups(self._function, inputs, sizes.tolist())
        return vector_from_arrow(found, self._function.type, self._dictionary)


class ModeAccumulator(Accumulator):
    """MODE: a second order of the values, by how often they occur."""

    cost = Cost.LOGARITHMIC

    def __init__(self, call: AggregateCall, dictionary: Dictionary) -> None:
        self._type = call.type
        self._takes_last = call.function == "mode_last"
        self._layout = KeyLayout((call.type,), (False,))
        self._counts = WeightMap(1 + self._layout.width)
        self._frequent = OrderedRows(2, (OrderTerm(call.type),), dictionary)
        self._applied: list[tuple[Ints, Ints]] = []

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values,), weights = without_nulls(slots, args[:1], weights)
        if not len(slots):
            return
        keys = np.empty((len(slots), 1 + self._layout.width), dtype=np.int64)
        keys[:, 0] = slots
        keys[:, 1:] = self._layout.pack((values,), len(slots))
        changes = self._counts.add_weights(keys, weights)
        self._applied.append((keys, weights))
        for counts, sign in ((changes.old, -1), (changes.new, 1)):
            there = np.flatnonzero(counts > 0)
            rows = changes.rows[there]
            order = counts[there] if self._takes_last else ~counts[there]
            prefix = np.stack([slots[rows], order], axis=1)
            self._frequent.add(prefix, [values.take(rows)], np.full(len(rows), sign, dtype=np.int64))

    def result(self, slots: Ints) -> Vector:
        prefixes = np.ascontiguousarray(slots.reshape(-1, 1))
        index = self._frequent.index
        places = index.last(prefixes) if self._takes_last else index.first(prefixes)
        return _with_nulls(self._frequent.value_at(places[places >= 0], 0), places < 0)

    def commit(self) -> None:
        self._applied.clear()
        self._frequent.commit()

    def rollback(self, slots: Ints, saved: Any) -> None:
        for keys, weights in reversed(self._applied):
            self._counts.add_weights(keys, -weights)
        self._applied.clear()
        self._frequent.rollback()

    def renumber(self, live: Ints) -> None:
        held = self._counts.live_slots()
        keys, weights = self._counts.keys[held].copy(), self._counts.weights[held].copy()
        keys[:, 0] = np.searchsorted(live, keys[:, 0])
        self._counts.clear()
        if len(keys):
            self._counts.add_weights(keys, weights)
        self._frequent.renumber_prefix(live)

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes + self._frequent.nbytes


_BITS = 64


class BitAccumulator(Accumulator):
    """BIT_AND, BIT_OR, BIT_XOR: how many values of the group have each bit."""

    def __init__(self, call: AggregateCall, groups: KeyMap) -> None:
        self._call = call
        self._counts = SlotArray(groups, np.int64, _BITS + 1)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values,), weights = without_nulls(slots, args, weights)
        bits = (values.values.reshape(-1, 1) >> np.arange(_BITS)) & 1
        np.add.at(
            self._counts.data, slots, np.column_stack([bits, np.ones(len(slots), dtype=np.int64)]) * weights[:, None]
        )

    def result(self, slots: Ints) -> Vector:
        counts, rows = self._counts.data[slots, :_BITS], self._counts.data[slots, _BITS]
        match self._call.function:
            case "bit_and":
                held = counts == rows[:, None]
            case "bit_or":
                held = counts > 0
            case _:
                held = (counts & 1) == 1
        words = (held.astype(np.int64) << np.arange(_BITS)).sum(axis=1)
        nulls: Bools = rows == 0
        words[nulls] = 0
        return Vector(self._call.type, words, nulls if nulls.any() else None)

    def save(self, slots: Ints) -> Any:
        return self._counts.data[slots]

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._counts.data[slots] = saved

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes


def _with_nulls(found: Vector, missing: Bools) -> Vector:
    """The values found, in order, where they are not missing, and NULL where they are."""
    if not missing.any():
        return found
    values = empty_values(found.type, len(missing))
    values[~missing] = found.values
    return Vector(found.type, values, missing)
