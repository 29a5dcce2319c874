"""COUNT, SUM and AVG over frames: differences of running sums where those are exact, expansions where values are floats.

Running sums of integers wrap around at 2^64, and so do their differences: they are exact when no frame's own sum can leave 64
bits. Otherwise values are cut into limbs of 32 bits, whose running sums are exact, and put together in three words.
"""

from __future__ import annotations

from decimal import Decimal as PythonDecimal

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.sums import divide_half_up
from everview.backends.embedded.state import wide
from everview.backends.embedded.vectors import AnyArray, Bools, Ints, Kind, Vector, kind_of
from everview.backends.embedded.windows.by_definition import ByDefinition
from everview.backends.embedded.windows.frame_kernels import EXPANSION, Floats, frame_sums
from everview.backends.embedded.windows.frames import FrameBounds
from everview.backends.embedded.windows.function import (
    FrameArguments,
    WindowFunction,
    count_within,
    partitions_with,
    without_nulls,
)
from everview.backends.embedded.windows.partitions import Partitions, with_nulls
from everview.errors import EvaluationError
from everview.relational.functions.decimals import CONTEXT
from everview.relational.functions.failures import arithmetic_overflow, numeric_value_out_of_range
from everview.relational.nodes import WindowCall
from everview.relational.types import INT64, Decimal

_GREATEST = 2.0**960
"""Sums of floats below it are far from overflow; partitions with others are left to the definition."""
_LIMB = np.int64(0xFFFFFFFF)


class Count(WindowFunction):
    """COUNT(*), COUNT(x), COUNT(x, y): the rows without NULL arguments."""

    def __init__(self, call: WindowCall, frame: FrameBounds, dictionary: Dictionary) -> None:
        self._arguments = FrameArguments(call, frame, dictionary)
        self.parts = (self._arguments,)

    def _values(self, view: Partitions) -> Vector:
        values, kept = self._arguments(view)
        return Vector(INT64, count_within(without_nulls(values, kept), *self._arguments.frame(view)))


class FloatSum(WindowFunction):
    """SUM and AVG with a float result."""

    def __init__(self, call: WindowCall, frame: FrameBounds, dictionary: Dictionary, definition: ByDefinition) -> None:
        self._type = call.type
        self._is_average = call.function.endswith("avg")
        self._arguments = FrameArguments(call, frame, dictionary)
        self.parts = (self._arguments,)
        self._definition = definition

    def _values(self, view: Partitions) -> Vector:
        (vector,), kept = self._arguments(view)
        counted = without_nulls((vector,), kept)
        start, end = self._arguments.frame(view)
        counts = count_within(counted, start, end)
        values = np.where(counted, vector.values, 0.0)
        finite = np.isfinite(values)
        finites = np.where(finite, values, 0.0)
        left_out = partitions_with(view, np.abs(finites) >= _GREATEST)
        finites[left_out] = 0.0
        totals = _float_sums(finites, start, end)
        if not finite.all():
            _mark_infinite(totals, values, start, end)
        if self._is_average:
            totals = totals / np.maximum(counts, 1)
        return self._definition.replace(view, with_nulls(self._type, totals, counts == 0), left_out)


def _float_sums(values: Floats, start: Ints, end: Ints) -> Floats:
    totals = np.empty(len(start), dtype=np.float64)
    frame_sums(values, start, end, np.empty(EXPANSION, dtype=np.float64), totals)
    return totals


def _mark_infinite(totals: Floats, values: Floats, start: Ints, end: Ints) -> None:
    """What IEEE arithmetic makes of the infinities and NaNs in a frame."""
    plus = count_within(values == np.inf, start, end) > 0
    minus = count_within(values == -np.inf, start, end) > 0
    totals[plus] = np.inf
    totals[minus] = -np.inf
    totals[(plus & minus) | (count_within(np.isnan(values), start, end) > 0)] = np.nan


class ExactSum(WindowFunction):
    """SUM and AVG of integers, decimals and intervals with a result of the same kind."""

    def __init__(self, call: WindowCall, frame: FrameBounds, dictionary: Dictionary) -> None:
        self._type = call.type
        self._argument = call.args[0].type
        self._is_average = call.function.endswith("avg")
        self._gives_null = call.function.startswith("try_")
        self._arguments = FrameArguments(call, frame, dictionary)
        self.parts = (self._arguments,)

    def _values(self, view: Partitions) -> Vector:
        (vector,), kept = self._arguments(view)
        counted = without_nulls((vector,), kept)
        start, end = self._arguments.frame(view)
        counts = count_within(counted, start, end)
        nulls = counts == 0
        if vector.values.ndim == 1:
            values = np.where(counted, vector.values, 0)
            if _fits_a_word(values, start, end):
                totals = _differences(values, start, end)
                if not self._is_average and not isinstance(self._type, Decimal):
                    return with_nulls(self._type, totals, nulls)
                return self._finished(_three_words(wide.from_int64(totals)), counts, nulls)
            return self._finished(_limb_sums(wide.from_int64(values), start, end), counts, nulls)
        values = np.where(counted[:, None], vector.values, 0)
        return self._finished(_limb_sums(values, start, end), counts, nulls)

    def _finished(self, totals: Ints, counts: Ints, nulls: Bools) -> Vector:
        """The results for exact sums of three words."""
        sums, fits = wide.narrow(totals)
        if self._is_average:
            sums, fits = self._averages(totals, sums, fits, np.maximum(counts, 1))
        if isinstance(self._type, Decimal):
            bad = ~(fits & wide.fits_precision(sums, self._type.precision))
            values: AnyArray = sums if kind_of(self._type) is Kind.WIDE else sums[:, 0].copy()
        else:
            values, is_word = wide.to_int64(sums)
            bad = ~(fits & is_word)
        if bad.any() and not self._gives_null:
            raise self._failure(totals[bad][:1], int(counts[bad][0]))
        return with_nulls(self._type, values, nulls | bad)

    def _averages(self, totals: Ints, sums: Ints, fits: Bools, counts: Ints) -> tuple[Ints, Bools]:
        places = self._places
        scaled, scales = wide.scale(sums, places)
        quotients = wide.divide_word(scaled, counts)
        within = fits & scales
        for i in np.flatnonzero(~within):  # more than 128 bits on the way: rare, and Python has as many as it takes
            (total,) = wide.to_ints(totals[i : i + 1])
            quotient = divide_half_up(total * 10**places, int(counts[i]))
            within[i] = abs(quotient) < 1 << 127
            quotients[i] = wide.from_ints([quotient if within[i] else 0])[0]
        return quotients, within

    @property
    def _places(self) -> int:
        """The digits by which an average is finer than its argument."""
        if isinstance(self._type, Decimal) and isinstance(self._argument, Decimal):
            return self._type.scale - self._argument.scale
        return 0

    def _failure(self, total: Ints, count: int) -> EvaluationError:
        if not isinstance(self._type, Decimal):
            return arithmetic_overflow("a sum", "try_sum")
        (unscaled,) = wide.to_ints(total)
        assert isinstance(self._argument, Decimal)
        value = CONTEXT.scaleb(PythonDecimal(unscaled), -self._argument.scale)
        if self._is_average:
            value = CONTEXT.divide(value, PythonDecimal(count))
        return numeric_value_out_of_range(value, self._type)


def _fits_a_word(values: Ints, start: Ints, end: Ints) -> bool:
    """Whether no frame's sum can leave 64 bits, whatever the values' signs."""
    greatest = max(int(values.max()), -int(values.min()))
    return greatest * int((end - start).max()) < 1 << 63


def _differences(values: Ints, start: Ints, end: Ints) -> Ints:
    """The sums of frames, modulo 2^64."""
    running = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=running[1:])
    return running[end] - running[start]


def _limb_sums(values: Ints, start: Ints, end: Ints) -> Ints:
    """The exact sums of wide values over frames, as three words."""
    low, high = values[:, 0], values[:, 1]
    limbs = [low & _LIMB, (low >> 32) & _LIMB, high & _LIMB, high >> 32]
    sums = [_differences(limb, start, end) for limb in limbs]
    for i in range(3):
        sums[i + 1] += sums[i] >> 32
        sums[i] &= _LIMB
    return np.stack([sums[0] | sums[1] << 32, sums[2] | sums[3] << 32, sums[3] >> 32], axis=1)


def _three_words(values: Ints) -> Ints:
    return np.concatenate([values, values[:, 1:] >> 63], axis=1)
