"""COUNT, SUM and AVG: integers and decimals exactly, in 128 bits; floats with the rounding error carried along."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as PythonDecimal
from typing import Any

import numpy as np

from everview.backends.embedded.operators.accumulator import Accumulator, without_nulls
from everview.backends.embedded.operators.scatter import (
    add_counts,
    add_floats,
    add_integers,
    add_wides,
    fits_word,
    wide_from_python,
    wide_to_float,
    wide_to_python,
)
from everview.backends.embedded.state.keymap import KeyMap, SlotArray
from everview.backends.embedded.vectors import Bools, Ints, Kind, Values, Vector, kind_of
from everview.relational.functions.decimals import CONTEXT
from everview.relational.functions.failures import arithmetic_overflow, numeric_value_out_of_range
from everview.relational.nodes import AggregateCall
from everview.relational.types import INT64, Decimal, is_floating

_LARGEST_WORD = np.iinfo(np.int64).max


class CountAccumulator(Accumulator):
    """COUNT(*), COUNT(x), COUNT(x, y): the rows without NULL arguments."""

    def __init__(self, groups: KeyMap) -> None:
        self._count = SlotArray(groups, np.int64)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, _, weights = without_nulls(slots, args, weights)
        add_counts(self._count.data, slots, weights)

    def result(self, slots: Ints) -> Vector:
        return Vector(INT64, self._count.data[slots, 0])

    def save(self, slots: Ints) -> Any:
        return self._count.data[slots]

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._count.data[slots] = saved

    @property
    def nbytes(self) -> int:
        return self._count.nbytes


class IntegerSumAccumulator(Accumulator):
    """SUM and AVG of integers, decimals and intervals: a 128-bit sum and a count."""

    def __init__(self, call: AggregateCall, groups: KeyMap) -> None:
        self._call = call
        self._is_average = call.function.endswith("avg")
        self._gives_null = call.function.startswith("try_")
        self._argument = call.args[0].type
        self._add = add_wides if kind_of(self._argument) is Kind.WIDE else add_integers
        self._sums = SlotArray(groups, np.int64, 3)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values,), weights = without_nulls(slots, args, weights)
        self._add(self._sums.data, slots, values.values, weights)

    def result(self, slots: Ints) -> Vector:
        words, counts = self._sums.data[slots, :2], self._sums.data[slots, 2]
        nulls = counts == 0
        if self._is_average:
            return self._average(words, counts, nulls)
        if isinstance(self._call.type, Decimal):
            return self._decimal(words, nulls)
        bad = ~fits_word(words) & ~nulls
        if bad.any() and not self._gives_null:
            raise arithmetic_overflow("a sum", "try_sum")
        return _vector(self._call, words[:, 0].copy(), nulls | bad)

    def _decimal(self, words: Ints, nulls: Bools) -> Vector:
        decimal = self._call.type
        assert isinstance(decimal, Decimal)
        if kind_of(decimal) is Kind.INT:
            bad = (~fits_word(words) | (np.abs(words[:, 0]) >= 10**decimal.precision)) & ~nulls
            values: Values = words[:, 0].copy()
        else:
            bad, values = ~fits_word(words) & ~nulls, words.copy()
            if bad.any():
                limit = 10**decimal.precision
                large = np.flatnonzero(bad)
                bad[large] = [abs(v) >= limit for v in wide_to_python(words[large])]
        if bad.any() and not self._gives_null:
            first = wide_to_python(words[np.flatnonzero(bad)[:1]])[0]
            raise numeric_value_out_of_range(CONTEXT.scaleb(PythonDecimal(first), -decimal.scale), decimal)
        return _vector(self._call, values, nulls | bad)

    def _average(self, words: Ints, counts: Ints, nulls: Bools) -> Vector:
        decimal = self._call.type
        divisor = np.where(nulls, 1, counts)
        if is_floating(decimal):
            return _vector(self._call, wide_to_float(words) / divisor, nulls)
        places = 0
        if isinstance(decimal, Decimal):
            assert isinstance(self._argument, Decimal)
            places = decimal.scale - self._argument.scale
        scale = 10**places
        small = fits_word(words) & (np.abs(words[:, 0]) < _LARGEST_WORD // scale // 2)
        rounded = _divide_half_up(np.where(small, words[:, 0], 0) * scale, divisor)
        if kind_of(decimal) is Kind.INT and small.all():
            return _vector(self._call, rounded, nulls)
        exact = rounded.tolist()
        for i in np.flatnonzero(~small):
            (total,) = wide_to_python(words[i : i + 1])
            exact[i] = _divide_python(total * scale, int(divisor[i]))
        wide = kind_of(decimal) is Kind.WIDE
        values = wide_from_python(exact) if wide else np.array(exact, dtype=np.int64)
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
        self._counters = SlotArray(groups, np.int64, 4)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values,), weights = without_nulls(slots, args, weights)
        add_floats(self._sums.data, self._counters.data, slots, values.values, weights)

    def result(self, slots: Ints) -> Vector:
        counters = self._counters.data[slots]
        counts = counters.sum(axis=1)
        nulls = counts == 0
        totals = float_totals(self._sums.data[slots], counters)
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


def float_totals(sums: Any, counters: Ints) -> Any:
    """The sums, with NaN and the infinities as IEEE arithmetic has them."""
    totals = sums[:, 0] + sums[:, 1]
    if counters[:, 1:].any():
        totals = np.where(counters[:, 2] > 0, np.inf, totals)
        totals = np.where(counters[:, 3] > 0, -np.inf, totals)
        undefined = (counters[:, 1] > 0) | ((counters[:, 2] > 0) & (counters[:, 3] > 0))
        totals = np.where(undefined, np.nan, totals)
    return totals


def _vector(call: AggregateCall, values: Values, nulls: Bools) -> Vector:
    if not nulls.any():
        return Vector(call.type, values)
    values[nulls] = 0
    return Vector(call.type, values, nulls)


def _divide_half_up(values: Ints, divisor: Ints) -> Ints:
    """Quotients rounded half away from zero."""
    magnitude = np.abs(values)
    quotient, remainder = magnitude // divisor, magnitude % divisor
    quotient += 2 * remainder >= divisor
    return np.where(values < 0, -quotient, quotient)


def _divide_python(value: int, divisor: int) -> int:
    quotient, remainder = divmod(abs(value), divisor)
    quotient += 2 * remainder >= divisor
    return -quotient if value < 0 else quotient
