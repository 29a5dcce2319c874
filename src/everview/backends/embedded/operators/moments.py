"""VAR, STDDEV, COVAR and CORR from sums of values, squares and products.

    n·var = Σx² - (Σx)²/n

The two terms nearly cancel when the mean is large, so every sum is kept, and the difference taken, in pairs of floats (106
bits). Products enter exactly: a float product is the sum of its rounded value and its rounding error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from everview.backends.embedded.operators.accumulator import Accumulator, without_nulls
from everview.backends.embedded.operators.sums import add_floats
from everview.backends.embedded.state.accumulate import FLOAT_COUNTERS, scatter_add_float
from everview.backends.embedded.state.keymap import KeyMap, SlotArray
from everview.backends.embedded.vectors import Ints, Vector
from everview.relational.nodes import AggregateCall

Pair = tuple[Any, Any]
"""An unevaluated sum of two float arrays, the second small."""

_SPLIT = 134217729.0  # 2**27 + 1
_ROUNDING = 2.0**-98


class MomentAccumulator(Accumulator):
    """One compensated sum for each of x, x·x (and y, y·y, x·y), and the number of rows."""

    def __init__(self, call: AggregateCall, groups: KeyMap) -> None:
        self._call = call
        self._pairs = [(0, 0)] if len(call.args) == 1 else [(0, 0), (1, 1), (0, 1)]
        sums = len(call.args) + len(self._pairs)
        self._sums = [SlotArray(groups, np.float64, 2) for _ in range(sums)]
        self._counters = [SlotArray(groups, np.int64, FLOAT_COUNTERS + 1) for _ in range(sums)]

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, vectors, weights = without_nulls(slots, args, weights)
        if not len(slots):
            return
        values = [v.values for v in vectors]
        for i, column in enumerate(values):
            add_floats(self._sums[i].data, self._counters[i].data, slots, column, weights)
        for i, (a, b) in enumerate(self._pairs, start=len(values)):
            with np.errstate(over="ignore", invalid="ignore"):
                product, error = _two_product(values[a], values[b])
            add_floats(self._sums[i].data, self._counters[i].data, slots, product, weights)
            exact = np.isfinite(error) & (self._counters[i].data[slots, FLOAT_COUNTERS] != 0)
            terms = slots[exact], error[exact], weights[exact]
            scatter_add_float(self._sums[i].data, 0, self._counters[i].data, 0, *terms)

    def result(self, slots: Ints) -> Vector:
        counts = self._counters[0].data[slots, FLOAT_COUNTERS]
        finite = np.ones(len(slots), dtype=np.bool_)
        for counters in self._counters:
            finite &= ~counters.data[slots, :FLOAT_COUNTERS].any(axis=1)
        sample = self._call.function.endswith("_samp")
        few = 1 if sample or self._call.function == "corr" else 0
        nulls = counts <= few
        divisor = np.where(nulls, 1, counts)
        moments = [self._central(slots, i, divisor) for i in range(len(self._pairs))]
        values = np.where(finite, self._finished(moments, np.where(nulls, 1, counts - sample)), np.nan)
        if self._call.function == "corr":  # a constant correlates with nothing
            nulls = nulls | (finite & ((moments[0] == 0) | (moments[1] == 0)))
        if not nulls.any():
            return Vector(self._call.type, values)
        values[nulls] = 0
        return Vector(self._call.type, values, nulls)

    def _central(self, slots: Ints, pair: int, counts: Ints) -> Any:
        """Σab - Σa·Σb/n of one pair."""
        a, b = self._pairs[pair]
        first, second = self._sum(slots, a), self._sum(slots, b)
        product = self._sum(slots, (2 if len(self._pairs) > 1 else 1) + pair)
        with np.errstate(over="ignore", invalid="ignore"):
            mean_part = _divided(_multiplied(first, second), counts.astype(np.float64))
            high, low = _added(product, (-mean_part[0], -mean_part[1]))
        central = high + low
        if a == b:  # what is left of equal values is rounding, in the last of 106 bits
            return np.where(central <= np.abs(product[0]) * _ROUNDING, 0.0, central)
        return central

    def _sum(self, slots: Ints, i: int) -> Pair:
        sums = self._sums[i].data[slots]
        return sums[:, 0], sums[:, 1]

    def _finished(self, moments: list[Any], divisor: Any) -> Any:
        name = self._call.function
        if name == "corr":
            spread = np.sqrt(moments[0]) * np.sqrt(moments[1])
            return moments[2] / np.where(spread == 0, 1.0, spread)
        if name.startswith("covar"):
            return moments[2] / divisor
        variance = moments[0] / divisor
        return np.sqrt(variance) if name.startswith("stddev") else variance

    def save(self, slots: Ints) -> Any:
        return [(s.data[slots], c.data[slots]) for s, c in zip(self._sums, self._counters, strict=True)]

    def rollback(self, slots: Ints, saved: Any) -> None:
        for (sums, counters), s, c in zip(saved, self._sums, self._counters, strict=True):
            s.data[slots], c.data[slots] = sums, counters

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self._sums, *self._counters))


def _two_product(a: Any, b: Any) -> Pair:
    """a·b as the rounded product and its exact error (Dekker)."""
    product = a * b
    a_high = _SPLIT * a - (_SPLIT * a - a)
    b_high = _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _two_sum(a: Any, b: Any) -> Pair:
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _added(a: Pair, b: Pair) -> Pair:
    high, error = _two_sum(a[0], b[0])
    return _two_sum(high, error + a[1] + b[1])


def _multiplied(a: Pair, b: Pair) -> Pair:
    product, error = _two_product(a[0], b[0])
    return _two_sum(product, error + a[0] * b[1] + a[1] * b[0])


def _divided(a: Pair, b: Any) -> Pair:
    quotient = a[0] / b
    product, error = _two_product(quotient, b)
    rest = ((a[0] - product) - error + a[1]) / b
    return _two_sum(quotient, rest)
