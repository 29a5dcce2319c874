"""VAR, STDDEV, COVAR, CORR and REGR from sums of values, squares and products, as ``relational.definitions`` declares them.

Every sum has some 200 bits, since terms nearly cancel when means are large. Products enter exactly: a float product is the sum
of its rounded value and its rounding error. Rows with values whose squares are beyond that are summed exactly, aside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from everview.algebra.floats import two_product
from everview.algebra.moments import CentralMoments, Corrected, FeatureProduct, Floats
from everview.algebra.ring import Payloads
from everview.backends.embedded.operators.accumulator import Accumulator, without_nulls
from everview.backends.embedded.operators.sums import add_floats
from everview.backends.embedded.state.accumulate import (
    FLOAT_COUNTERS,
    FLOAT_PARTS,
    LARGE,
    SMALL_WEIGHT,
    distill,
    scatter_add_float,
)
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.large_floats import UNIT_BITS, LargeFloats, in_units, to_float
from everview.backends.embedded.state.slot_array import SlotArray
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.relational.definitions.sum_aggregates import SUM_AGGREGATES
from everview.relational.nodes import AggregateCall

_LARGE = LARGE**0.5
"""The square of a smaller value is not too large."""


class MomentAccumulator(Accumulator):
    """One sum for each product of arguments, with the number of rows."""

    def __init__(self, call: AggregateCall, groups: KeyMap) -> None:
        self._call = call
        self._products = SUM_AGGREGATES[call.function].products
        self._sums = [SlotArray(groups, np.float64, FLOAT_PARTS) for _ in self._products]
        self._large = LargeFloats(groups, len(self._products))
        self._counters = [SlotArray(groups, np.int64, FLOAT_COUNTERS + 1) for _ in self._products]

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, vectors, weights = without_nulls(slots, args, weights)
        if not len(slots):
            return
        values = self._moderate(slots, [v.values for v in vectors], weights)
        for product, sums, counters in zip(self._products, self._sums, self._counters, strict=True):
            if len(product) == 1:
                add_floats(sums.data, counters.data, slots, values[product[0]], weights)
                continue
            a, b = product
            with np.errstate(over="ignore", invalid="ignore"):
                rounded, error = two_product(values[a], values[b])
            add_floats(sums.data, counters.data, slots, rounded, weights)
            exact = np.isfinite(error) & (counters.data[slots, FLOAT_COUNTERS] != 0)
            terms = slots[exact], error[exact], weights[exact]
            scatter_add_float(sums.data, 0, counters.data, 0, *terms)

    def _moderate(self, slots: Ints, values: list[Any], weights: Ints) -> list[Any]:
        """The values, 0 in the rows that are summed aside, NaN for those that are not finite."""
        is_left = (weights <= -SMALL_WEIGHT) | (weights >= SMALL_WEIGHT)
        finite = [np.isfinite(column) for column in values]
        for column, is_finite in zip(values, finite, strict=True):
            is_left |= is_finite & (np.abs(column) >= _LARGE)
        if is_left.any():
            rows = zip(
                *(np.where(f, c, 0.0)[is_left].tolist() for c, f in zip(values, finite, strict=True)), strict=True
            )
            self._large.add(slots[is_left].tolist(), (self._in_units(row) for row in rows), weights[is_left].tolist())
            values = [np.where(is_left, 0.0, column) for column in values]
        return [c if f.all() else np.where(f, c, np.nan) for c, f in zip(values, finite, strict=True)]

    def _in_units(self, row: tuple[float, ...]) -> list[int]:
        """The products of a row, in units of 2^-1074 for each factor."""
        units = [in_units(v) for v in row]
        return [units[p[0]] if len(p) == 1 else units[p[0]] * units[p[1]] for p in self._products]

    def result(self, slots: Ints) -> Vector:
        counts = self._counters[0].data[slots, FLOAT_COUNTERS]
        finite: dict[FeatureProduct, Bools] = {
            p: np.all(c.data[slots, :FLOAT_COUNTERS] == 0, axis=1)
            for p, c in zip(self._products, self._counters, strict=True)
        }
        sums = {p: _pairs(s.data[slots]) for p, s in zip(self._products, self._sums, strict=True)}
        return finish_moments(self._call, counts, sums, finite, self._corrected(slots, counts))

    def _corrected(self, slots: Ints, counts: Ints) -> Corrected | None:
        """What replaces the moments of the groups that have exact sums aside."""
        found = [
            (i, self._exact(int(slots[i]), large), int(counts[i]))
            for i, large in self._large.found(slots)
            if counts[i] > 0
        ]

        def correct(product: FeatureProduct, moments: Floats) -> None:
            for i, exact, count in found:
                if len(product) == 1:
                    moments[i] = to_float(exact[product], UNIT_BITS, count)
                else:
                    a, b = product
                    moments[i] = to_float(count * exact[product] - exact[a,] * exact[b,], 2 * UNIT_BITS, count)

        return correct if found else None

    def _exact(self, slot: int, large: tuple[int, ...]) -> dict[FeatureProduct, int]:
        """The sums of a group as integers, in units of 2^-1074 for each factor."""
        exact = {}
        for product, aside, sums in zip(self._products, large, self._sums, strict=True):
            near = sum(in_units(part) for part in sums.data[slot].tolist())
            exact[product] = aside + (near << UNIT_BITS * (len(product) - 1))
        return exact

    def save(self, slots: Ints) -> Any:
        held = [(s.data[slots], c.data[slots]) for s, c in zip(self._sums, self._counters, strict=True)]
        return held, self._large.found(slots)

    def rollback(self, slots: Ints, saved: Any) -> None:
        held, large = saved
        for (sums, counters), s, c in zip(held, self._sums, self._counters, strict=True):
            s.data[slots], c.data[slots] = sums, counters
        self._large.restore(slots, large)

    @property
    def nbytes(self) -> int:
        return self._large.nbytes + sum(a.nbytes for a in (*self._sums, *self._counters))


def _pairs(parts: Floats) -> Payloads:
    """Sums of several parts as double-doubles; ``parts`` is changed."""
    distill(parts)
    return parts[:, :2]


def finish_moments(
    call: AggregateCall,
    counts: Ints,
    sums: Mapping[FeatureProduct, Payloads],
    finite: Mapping[FeatureProduct, Bools],
    corrected: Corrected | None = None,
) -> Vector:
    """The answers of groups from their sums; a moment is NaN where a number that went into it is not finite."""
    declared = SUM_AGGREGATES[call.function]  # of whatever rows: DISTINCT is for the caller to see to
    assert declared.finish is not None, f"{call.function} is read off moments"
    nulls = counts < declared.least

    def correct(product: FeatureProduct, moments: Floats) -> None:
        if corrected is not None:
            corrected(product, moments)
        moments[~finite[product]] = np.nan

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values, undefined = declared.finish(CentralMoments(np.maximum(counts, 1), sums, correct))
    if undefined is not None:
        nulls = nulls | undefined
    if not nulls.any():
        return Vector(call.type, values)
    values[nulls] = 0
    return Vector(call.type, values, nulls)
