"""COUNT, SUM and AVG: integers and decimals exactly, in 128 bits; floats with the rounding error carried along."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as PythonDecimal
from typing import Any

import numpy as np

from everview.backends.embedded.operators.accumulator import Accumulator, without_nulls
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.accumulate import (
    FLOAT_COUNTERS,
    float_totals,
    scatter_add_float,
    scatter_add_weight,
)
from everview.backends.embedded.state.keymap import KeyMap, SlotArray
from everview.backends.embedded.vectors import Bools, Ints, Kind, Values, Vector, kind_of
from everview.errors import EvaluationError
from everview.relational.functions.decimals import CONTEXT
from everview.relational.functions.failures import arithmetic_overflow, interval_overflow, numeric_value_out_of_range
from everview.relational.nodes import AggregateCall
from everview.relational.types import INT64, INTERVALS, YEAR_MONTH_INTERVAL, Decimal, is_floating


class CountAccumulator(Accumulator):
    """COUNT(*), COUNT(x), COUNT(x, y): the rows without NULL arguments."""

    def __init__(self, groups: KeyMap) -> None:
        self._count = SlotArray(groups, np.int64)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, _, weights = without_nulls(slots, args, weights)
        scatter_add_weight(self._count.data, 0, slots, weights)

    def result(self, slots: Ints) -> Vector:
        return Vector(INT64, self._count.data[slots, 0])

    def save(self, slots: Ints) -> Any:
        return self._count.data[slots]

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._count.data[slots] = saved

    @property
    def nbytes(self) -> int:
        return self._count.nbytes


_MOST_MONTHS = (1 << 31) - 1
_SUM_WORDS = 3
"""Words of a sum: more than the 128 bits of a value, so that no order of additions overflows on the way."""


class IntegerSumAccumulator(Accumulator):
    """SUM and AVG of integers, decimals and intervals: an exact sum and a count."""

    def __init__(self, call: AggregateCall, groups: KeyMap) -> None:
        self._call = call
        self._is_average = call.function.endswith("avg")
        self._gives_null = call.function.startswith("try_")
        self._argument = call.args[0].type
        self._sums = SlotArray(groups, np.int64, _SUM_WORDS + 1)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values,), weights = without_nulls(slots, args, weights)
        wide.scatter_add_wide(self._sums.data, slots, values.values, weights, words=_SUM_WORDS)
        scatter_add_weight(self._sums.data, _SUM_WORDS, slots, weights)

    def result(self, slots: Ints) -> Vector:
        counts = self._sums.data[slots, _SUM_WORDS]
        sums, fits = wide.narrow(self._sums.data[slots, :_SUM_WORDS])
        nulls = counts == 0
        if self._is_average:
            return self._average(slots, sums, counts, nulls)
        if isinstance(self._call.type, Decimal):
            bad = ~(fits & wide.fits_precision(sums, self._call.type.precision))
            values: Values = sums if kind_of(self._call.type) is Kind.WIDE else sums[:, 0].copy()
        else:
            values, is_word = wide.to_int64(sums)
            bad = ~(fits & is_word)
            if self._call.type == YEAR_MONTH_INTERVAL:  # months are 32 bits wide
                bad |= np.abs(values) > _MOST_MONTHS
        if bad.any() and not self._gives_null:
            raise self._failure(slots[bad][:1])
        return _vector(self._call, values, nulls | bad)

    def _failure(self, slots: Ints) -> EvaluationError:
        if self._call.type in INTERVALS:
            return interval_overflow("a sum")
        if not isinstance(self._call.type, Decimal):
            return arithmetic_overflow("a sum", "try_sum")
        (total,) = wide.to_ints(self._sums.data[slots, :_SUM_WORDS])
        value = CONTEXT.scaleb(PythonDecimal(total), -self._call.type.scale)
        return numeric_value_out_of_range(value, self._call.type)

    def _average(self, slots: Ints, sums: Ints, counts: Ints, nulls: Bools) -> Vector:
        divisor = np.where(nulls, 1, counts)
        if is_floating(self._call.type):
            return _vector(self._call, wide.to_float64(sums) / divisor, nulls)
        places = 0
        if isinstance(self._call.type, Decimal):
            assert isinstance(self._argument, Decimal)
            places = self._call.type.scale - self._argument.scale
        scaled, fits = wide.scale(sums, places)
        quotients = wide.divide_word(scaled, divisor)
        for i in np.flatnonzero(~fits):  # more than 128 bits on the way: rare, and Python has as many as it takes
            (total,) = wide.to_ints(self._sums.data[slots[i : i + 1], :_SUM_WORDS])
            quotients[i] = wide.from_ints([_divide_half_up(total * 10**places, int(divisor[i]))])[0]
        values: Values = quotients if kind_of(self._call.type) is Kind.WIDE else quotients[:, 0].copy()
        return _vector(self._call, values, nulls)

    def save(self, slots: Ints) -> Any:
        return self._sums.data[slots]

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._sums.data[slots] = saved

    @property
    def nbytes(self) -> int:
        return self._sums.nbytes


class FloatSumAccumulator(Accumulator):
    """SUM and AVG of floats."""

    def __init__(self, call: AggregateCall, groups: KeyMap) -> None:
        self._call = call
        self._is_average = call.function.endswith("avg")
        self._sums = SlotArray(groups, np.float64, 2)
        self._counters = SlotArray(groups, np.int64, FLOAT_COUNTERS + 1)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values,), weights = without_nulls(slots, args, weights)
        add_floats(self._sums.data, self._counters.data, slots, values.values, weights)

    def result(self, slots: Ints) -> Vector:
        counters = self._counters.data[slots]
        counts = counters[:, FLOAT_COUNTERS]
        nulls = counts == 0
        totals = float_totals(self._sums.data[slots], counters[:, :FLOAT_COUNTERS].copy())
        if self._is_average:
            totals = totals / np.where(nulls, 1, counts)
        return _vector(self._call, totals, nulls)

    def save(self, slots: Ints) -> Any:
        return self._sums.data[slots], self._counters.data[slots]

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._sums.data[slots], self._counters.data[slots] = saved

    @property
    def nbytes(self) -> int:
        return self._sums.nbytes + self._counters.nbytes


def add_floats(sums: Any, counters: Any, slots: Ints, values: Any, weights: Ints) -> None:
    """Adds floats to compensated sums, and counts them in the last counter; a sum of nothing is exactly 0."""
    scatter_add_float(sums, 0, counters, 0, slots, values, weights)
    scatter_add_weight(counters, FLOAT_COUNTERS, slots, weights)
    emptied = slots[counters[slots, FLOAT_COUNTERS] == 0]
    if len(emptied):
        sums[emptied] = 0.0


def _vector(call: AggregateCall, values: Values, nulls: Bools) -> Vector:
    if not nulls.any():
        return Vector(call.type, values)
    values[nulls] = 0
    return Vector(call.type, values, nulls)


def _divide_half_up(value: int, divisor: int) -> int:
    """The quotient rounded half away from zero."""
    quotient, remainder = divmod(abs(value), divisor)
    quotient += 2 * remainder >= divisor
    return -quotient if value < 0 else quotient
