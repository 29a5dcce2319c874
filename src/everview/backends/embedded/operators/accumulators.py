"""The state of one aggregate call for all groups: what is added per row, and how the answer is read off.

Sums are exact (128-bit integers) or compensated (two floats, whose rounding errors cancel again on deletion); MIN, MAX and
their kind keep their values in order; registered rings keep a payload; DISTINCT keeps a count for each value and passes on
first and last occurrences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.accumulator import Accumulator
from everview.backends.embedded.operators.bitmaps import BitmapAccumulator
from everview.backends.embedded.operators.distinct_sketch import DistinctSketchAccumulator
from everview.backends.embedded.operators.extremes import ExtremeAccumulator
from everview.backends.embedded.operators.moments import MomentAccumulator
from everview.backends.embedded.operators.ordered_aggregates import (
    BitAccumulator,
    ExtremesByKAccumulator,
    ListAccumulator,
    ModeAccumulator,
    PercentileAccumulator,
    SparkAccumulator,
)
from everview.backends.embedded.operators.ring_sums import RingAccumulator
from everview.backends.embedded.operators.sums import (
    CountAccumulator,
    FloatSumAccumulator,
    IntegerSumAccumulator,
)
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Ints, KeyLayout, Vector
from everview.relational.definitions.ordered_aggregates import ORDERED_AGGREGATES, PERCENTILES
from everview.relational.definitions.spark_aggregates import is_bitmap, is_sketch
from everview.relational.definitions.sum_aggregates import SUM_AGGREGATES, Summed
from everview.relational.nodes import AggregateCall
from everview.relational.schema import is_nullable
from everview.relational.types import is_floating

_EXTREMES = frozenset({"min", "max", "min_by", "max_by"})


def accumulator_for(call: AggregateCall, groups: KeyMap, dictionary: Dictionary) -> Accumulator:
    """The accumulator of an aggregate call, its payload following the slots of ``groups``."""
    inner = _plain(call, groups, dictionary)
    return DistinctAccumulator(call, inner) if call.distinct else inner


def _plain(call: AggregateCall, groups: KeyMap, dictionary: Dictionary) -> Accumulator:
    if call.is_ring:
        return RingAccumulator(call, groups, dictionary)
    name = call.function.removeprefix("try_")
    if name == "count":
        return CountAccumulator(groups)
    if name in _EXTREMES:
        return ExtremeAccumulator(call, dictionary)
    if name in ORDERED_AGGREGATES:
        return _ordered(call, groups, dictionary)
    declared = SUM_AGGREGATES.get(name)
    if declared is not None and declared.summed is Summed.FLOATS:
        return MomentAccumulator(call, groups)
    if is_floating(call.args[0].type):
        return FloatSumAccumulator(call, groups)
    return IntegerSumAccumulator(call, groups)


def _ordered(call: AggregateCall, groups: KeyMap, dictionary: Dictionary) -> Accumulator:
    match call.function:
        case name if name in PERCENTILES:
            return PercentileAccumulator(call, dictionary)
        case "max_by_k" | "min_by_k":
            return ExtremesByKAccumulator(call, dictionary)
        case "mode" | "mode_first" | "mode_last":
            return ModeAccumulator(call, dictionary)
        case "bit_and" | "bit_or" | "bit_xor":
            return BitAccumulator(call, groups)
        case "spark_aggregate" if is_sketch(call):
            return DistinctSketchAccumulator(call, dictionary)
        case "spark_aggregate" if is_bitmap(call):
            return BitmapAccumulator(call, dictionary)
        case "spark_aggregate":
            return SparkAccumulator(call, dictionary)
        case _:
            return ListAccumulator(call, dictionary)


class DistinctAccumulator(Accumulator):
    """Each distinct argument once: the inner accumulator sees a value when it first comes and when it last goes."""

    def __init__(self, call: AggregateCall, inner: Accumulator) -> None:
        self._inner = inner
        self.cost = inner.cost
        self._layout = KeyLayout(tuple(a.type for a in call.args), tuple(is_nullable(a) for a in call.args))
        self._values = WeightMap(1 + self._layout.width)
        self._applied: list[tuple[Ints, Ints]] = []

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        if not len(slots):
            return
        keys = np.empty((len(slots), 1 + self._layout.width), dtype=np.int64)
        keys[:, 0] = slots
        keys[:, 1:] = self._layout.pack(args, len(slots))
        changes = self._values.add_weights(keys, weights)
        self._applied.append((keys, weights))
        turn = (changes.new > 0).astype(np.int64) - (changes.old > 0).astype(np.int64)
        turned = np.flatnonzero(turn)
        rows = changes.rows[turned]
        self._inner.add(slots[rows], [a.take(rows) for a in args], turn[turned])

    def result(self, slots: Ints) -> Vector:
        return self._inner.result(slots)

    def save(self, slots: Ints) -> Any:
        return self._inner.save(slots)

    def commit(self) -> None:
        self._applied.clear()
        self._inner.commit()

    def rollback(self, slots: Ints, saved: Any) -> None:
        for keys, weights in reversed(self._applied):
            self._values.add_weights(keys, -weights)
        self._applied.clear()
        self._inner.rollback(slots, saved)

    def renumber(self, live: Ints) -> None:
        held = self._values.live_slots()
        keys, weights = self._values.keys[held].copy(), self._values.weights[held].copy()
        keys[:, 0] = np.searchsorted(live, keys[:, 0])
        self._values.clear()
        if len(keys):
            self._values.add_weights(keys, weights)
        self._inner.renumber(live)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._inner.nbytes
