"""VAR, STDDEV, COVAR and CORR over frames, from sums that are exact until the end.

    n·Σxy - (Σx)·(Σy)  =  n·Σ(x - mean x)(y - mean y)

The two terms nearly cancel when the mean is large; they are expansions of floats, so that nothing is lost in the difference.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.backends.embedded.windows.by_definition import ByDefinition
from everview.backends.embedded.windows.frame_kernels import EXPANSION, Floats, frame_moments
from everview.backends.embedded.windows.frames import FrameBounds
from everview.backends.embedded.windows.function import (
    FrameArguments,
    WindowFunction,
    count_within,
    partitions_with,
    without_nulls,
)
from everview.backends.embedded.windows.partitions import Partitions, with_nulls
from everview.relational.nodes import WindowCall

_LEAST, _GREATEST = 2.0**-400, 2.0**400
"""Between these magnitudes no product of sums under- or overflows; partitions with others are left to the definition."""


class WindowMoment(WindowFunction):
    """One moment of one or two float arguments."""

    def __init__(self, call: WindowCall, frame: FrameBounds, dictionary: Dictionary, definition: ByDefinition) -> None:
        self._call = call
        self._arguments = FrameArguments(call, frame, dictionary)
        self.parts = (self._arguments,)
        self._definition = definition
        self._is_sample = call.function.endswith("_samp")
        self._is_correlation = call.function == "corr"

    def _values(self, view: Partitions) -> Vector:
        values, kept = self._arguments(view)
        counted = without_nulls(values, kept)
        start, end = self._arguments.frame(view)
        counts = count_within(counted, start, end)
        columns, is_finite = [], []
        for vector in values:
            finite = counted & np.isfinite(vector.values)
            columns.append(np.where(finite, vector.values, 0.0))
            is_finite.append(count_within(counted & ~finite, start, end) == 0)
        left_out = partitions_with(view, np.logical_or.reduce([_is_extreme(c) for c in columns]))
        for column in columns:
            column[left_out] = 0.0
        nulls = counts <= (1 if self._is_sample or self._is_correlation else 0)
        central = _scaled_central(columns[0], columns[-1], counts, start, end)
        if self._is_correlation:
            results = self._correlation(central, columns, is_finite, counts, nulls, start, end)
        else:
            divisor = np.where(nulls, 1, counts).astype(np.float64) * np.where(nulls, 1, counts - self._is_sample)
            results = central / divisor
        if self._call.function.startswith("stddev"):
            results = np.sqrt(results)
        results[~np.logical_and.reduce(is_finite)] = np.nan
        return self._definition.replace(view, with_nulls(self._call.type, results, nulls), left_out)

    def _correlation(
        self,
        central: Floats,
        columns: list[Floats],
        is_finite: list[Bools],
        counts: Ints,
        nulls: Bools,
        start: Ints,
        end: Ints,
    ) -> Floats:
        divisor = np.maximum(counts, 1)
        spreads = [_scaled_central(c, c, counts, start, end) / divisor for c in columns]
        with np.errstate(over="ignore"):
            spread = spreads[0] * spreads[1]  # as Spark has it, also where a double cannot hold it
        for own, finite in zip(spreads, is_finite, strict=True):
            nulls |= finite & (own == 0)  # a constant correlates with nothing, not even with NaN
        nulls |= np.logical_and.reduce(is_finite) & (spread == 0)
        return central / divisor / np.sqrt(np.where(spread == 0, 1.0, spread))


def _is_extreme(values: Floats) -> Bools:
    sizes = np.abs(values)
    is_extreme: Bools = (sizes != 0) & ((sizes < _LEAST) | (sizes > _GREATEST))
    return is_extreme


def _scaled_central(x: Floats, y: Floats, counts: Ints, start: Ints, end: Ints) -> Floats:
    out = np.empty(len(start), dtype=np.float64)
    scratch, sizes = np.empty(4 * EXPANSION, dtype=np.float64), np.zeros(3, dtype=np.int64)
    frame_moments(x, y, counts, start, end, scratch, sizes, out)
    return out
