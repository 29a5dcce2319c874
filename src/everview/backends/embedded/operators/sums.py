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
    FLOAT_PARTS,
    float_totals,
    is_left,
    mark_specials,
    scatter_add_float,
    scatter_add_weight,
)
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.large_floats import UNIT_BITS, LargeFloats, in_units, to_float
from everview.backends.embedded.state.slot_array import SlotArray
from everview.backends.embedded.vectors import AnyArray, Bools, Ints, Kind, Vector, kind_of
from everview.errors import EvaluationError
from everview.relational.functions.decimals import CONTEXT
from everview.relational.functions.failures import (
    arithmetic_overflow,
    count_overflow,
    interval_overflow,
    numeric_value_out_of_range,
)
from everview.relational.nodes import AggregateCall
from everview.relational.types import INT64, INTERVALS, YEAR_MONTH_INTERVAL, Decimal, is_floating


class CountAccumulator(Accumulator):
    """COUNT(*), COUNT(x), COUNT(x, y): the rows without NULL arguments."""

    def __init__(self, groups: KeyMap) -> None:
        self._count = SlotArray(groups, np.int64)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, _, weights = without_nulls(slots, args, weights)
        add_counts(self._count.data, 0, slots, weights)

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
SUM_WORDS = 3
"""Words of a sum: more than the 128 bits of a value, so that no order of additions overflows on the way."""


class IntegerSumAccumulator(Accumulator):
    """SUM and AVG of integers, decimals and intervals: an exact sum and a count."""

    def __init__(self, call: AggregateCall, groups: KeyMap) -> None:
        self._call = call
        self._sums = SlotArray(groups, np.int64, SUM_WORDS + 1)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values,), weights = without_nulls(slots, args, weights)
        wide.scatter_add_wide(self._sums.data, slots, values.values, weights, words=SUM_WORDS)
        add_counts(self._sums.data, SUM_WORDS, slots, weights)

    def result(self, slots: Ints) -> Vector:
        totals = self._sums.data[slots]
        return finish_exact_sum(self._call, totals[:, :SUM_WORDS], totals[:, SUM_WORDS])

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
        self._sums = SlotArray(groups, np.float64, FLOAT_PARTS)
        self._counters = SlotArray(groups, np.int64, FLOAT_COUNTERS + 1)
        self._large = LargeFloats(groups)

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values,), weights = without_nulls(slots, args, weights)
        if add_floats(self._sums.data, self._counters.data, slots, values.values, weights):
            left = is_left(values.values, weights)
            units = ((in_units(v),) for v in values.values[left].tolist())
            self._large.add(slots[left].tolist(), units, weights[left].tolist())

    def result(self, slots: Ints) -> Vector:
        sums, counters = self._sums.data[slots], self._counters.data[slots]
        totals = float_totals(sums, counters[:, :FLOAT_COUNTERS])
        for i, (large,) in self._large.found(slots):
            totals[i] = to_float(large + sum(in_units(part) for part in sums[i].tolist()), UNIT_BITS)
        if self._large:
            mark_specials(totals, counters[:, :FLOAT_COUNTERS])
        return finish_float_sum(self._call, totals, counters[:, FLOAT_COUNTERS])

    def save(self, slots: Ints) -> Any:
        return self._sums.data[slots], self._counters.data[slots], self._large.found(slots)

    def rollback(self, slots: Ints, saved: Any) -> None:
        self._sums.data[slots], self._counters.data[slots], large = saved
        self._large.restore(slots, large)

    @property
    def nbytes(self) -> int:
        return self._sums.nbytes + self._counters.nbytes + self._large.nbytes


def add_counts(counts: Any, column: int, slots: Ints, weights: Ints) -> None:
    """Adds weights to counts.

    Raises:
        EvaluationError: there are more rows than a BIGINT can count.
    """
    if not scatter_add_weight(counts, column, slots, weights):
        raise count_overflow()


def add_floats(sums: Any, counters: Any, slots: Ints, values: Any, weights: Ints) -> bool:
    """Adds floats to sums, and counts them in the last counter; a sum of nothing is exactly 0.

    Returns:
        Whether there were values too large, which are still to be added.
    """
    left = scatter_add_float(sums, 0, counters, 0, slots, values, weights)
    add_counts(counters, FLOAT_COUNTERS, slots, weights)
    emptied = slots[counters[slots, FLOAT_COUNTERS] == 0]
    if len(emptied):
        sums[emptied] = 0.0
    return left > 0


def finish_exact_sum(call: AggregateCall, totals: Ints, counts: Ints) -> Vector:
    """SUM or AVG from exact totals (``SUM_WORDS`` words each) and the numbers of values summed; NULL where that is 0.

    Raises:
        EvaluationError: a sum does not fit its type.
    """
    sums, fits = wide.narrow(totals)
    nulls = counts == 0
    if call.function.endswith("avg"):
        return _average(call, totals, sums, counts, nulls)
    if isinstance(call.type, Decimal):
        bad = ~(fits & wide.fits_precision(sums, call.type.precision))
        values: AnyArray = sums if kind_of(call.type) is Kind.WIDE else sums[:, 0].copy()
    else:
        values, is_word = wide.to_int64(sums)
        bad = ~(fits & is_word)
        if call.type == YEAR_MONTH_INTERVAL:  # months are 32 bits wide
            bad |= np.abs(values) > _MOST_MONTHS
    if bad.any() and not call.function.startswith("try_"):
        raise _failure(call, totals[bad][:1])
    return answer_vector(call, values, nulls | bad)


def _failure(call: AggregateCall, totals: Ints) -> EvaluationError:
    if call.type in INTERVALS:
        return interval_overflow("a sum")
    if not isinstance(call.type, Decimal):
        return arithmetic_overflow("a sum", "try_sum")
    (total,) = wide.to_ints(totals)
    value = CONTEXT.scaleb(PythonDecimal(total), -call.type.scale)
    return numeric_value_out_of_range(value, call.type)


def _average(call: AggregateCall, totals: Ints, sums: Ints, counts: Ints, nulls: Bools) -> Vector:
    divisor = np.where(nulls, 1, counts)
    if is_floating(call.type):
        return answer_vector(call, wide.to_float64(sums) / divisor, nulls)
    places = 0
    if isinstance(call.type, Decimal):
        argument = call.args[0].type
        assert isinstance(argument, Decimal)
        places = call.type.scale - argument.scale
    scaled, fits = wide.scale(sums, places)
    quotients = wide.divide_word(scaled, divisor)
    for i in np.flatnonzero(~fits):  # more than 128 bits on the way: rare, and Python has as many as it takes
        (total,) = wide.to_ints(totals[i : i + 1])
        quotients[i] = wide.from_ints([divide_half_up(total * 10**places, int(divisor[i]))])[0]
    values: AnyArray = quotients if kind_of(call.type) is Kind.WIDE else quotients[:, 0].copy()
    return answer_vector(call, values, nulls)


def finish_float_sum(call: AggregateCall, totals: Any, counts: Ints) -> Vector:
    """SUM or AVG of floats from their sums and the numbers of values summed."""
    nulls = counts == 0
    if call.function.endswith("avg"):
        totals = totals / np.where(nulls, 1, counts)
    return answer_vector(call, totals, nulls)


def answer_vector(call: AggregateCall, values: AnyArray, nulls: Bools) -> Vector:
    """The answers of an aggregate, with NULL where the mask says so; ``values`` may be changed."""
    if not np.count_nonzero(nulls):
        return Vector(call.type, values)
    values[nulls] = 0
    return Vector(call.type, values, nulls)


def divide_half_up(value: int, divisor: int) -> int:
    """The quotient rounded half away from zero."""
    quotient, remainder = divmod(abs(value), divisor)
    quotient += 2 * remainder >= divisor
    return -quotient if value < 0 else quotient
