"""VAR, STDDEV, COVAR, CORR and REGR from sums of values, squares and products, as ``relational.definitions`` declares them.

Every sum is a pair of floats (106 bits), since terms nearly cancel when means are large. Products enter exactly: a float
product is the sum of its rounded value and its rounding error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from everview.algebra.floats import two_product
from everview.algebra.moments import Moments, Product
from everview.algebra.ring import Payloads
from everview.backends.embedded.operators.accumulator import Accumulator, without_nulls
from everview.backends.embedded.operators.sums import add_floats
from everview.backends.embedded.state.accumulate import FLOAT_COUNTERS, scatter_add_float
from everview.backends.embedded.state.keymap import KeyMap, SlotArray
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.relational.definitions.sum_aggregates import sum_aggregate
from everview.relational.nodes import AggregateCall


class MomentAccumulator(Accumulator):
    """One compensated sum for each product of arguments, with the number of rows."""

    def __init__(self, call: AggregateCall, groups: KeyMap) -> None:
        self._call = call
        declared = sum_aggregate(call)
        assert declared is not None, f"{call.function} is a function of sums"
        self._products = declared.products
        self._sums = [SlotArray(groups, np.float64, 2) for _ in self._products]
        self._counters = [SlotArray(groups, np.int64, FLOAT_COUNTERS + 1) for _ in self._products]

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, vectors, weights = without_nulls(slots, args, weights)
        if not len(slots):
            return
        values = [v.values for v in vectors]
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

    def result(self, slots: Ints) -> Vector:
        counts = self._counters[0].data[slots, FLOAT_COUNTERS]
        finite = np.ones(len(slots), dtype=np.bool_)
        for counters in self._counters:
            finite &= ~counters.data[slots, :FLOAT_COUNTERS].any(axis=1)
        sums = {p: s.data[slots] for p, s in zip(self._products, self._sums, strict=True)}
        return finish_moments(self._call, counts, sums, finite)

    def save(self, slots: Ints) -> Any:
        return [(s.data[slots], c.data[slots]) for s, c in zip(self._sums, self._counters, strict=True)]

    def rollback(self, slots: Ints, saved: Any) -> None:
        for (sums, counters), s, c in zip(saved, self._sums, self._counters, strict=True):
            s.data[slots], c.data[slots] = sums, counters

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self._sums, *self._counters))


def finish_moments(call: AggregateCall, counts: Ints, sums: Mapping[Product, Payloads], finite: Bools) -> Vector:
    """The answers of groups from their sums; NaN where a number that went into them is not finite."""
    declared = sum_aggregate(call)
    assert declared is not None, f"{call.function} is a function of sums"
    assert declared.finish is not None, f"{call.function} is read off moments"
    nulls = counts < declared.least
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values, undefined = declared.finish(Moments(np.maximum(counts, 1), sums))
    values = np.where(finite, values, np.nan)
    if undefined is not None:
        nulls = nulls | (finite & undefined)
    if not nulls.any():
        return Vector(call.type, values)
    values[nulls] = 0
    return Vector(call.type, values, nulls)
