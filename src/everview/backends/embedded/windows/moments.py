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
from everview.backends.embedded.windows.function import FrameArguments, WindowFunction, count_within, without_nulls
from everview.backends.embedded.windows.partitions import Partitions, with_nulls
from everview.relational.nodes import WindowCall

_LEAST, _GREATEST = 2.0**-400, 2.0**400
"""Between these magnitudes no product of sums under- or overflows; values beyond them are left to the definition."""


class Moment(WindowFunction):
    """One moment of one or two float arguments."""

    def __init__(
        self, call: WindowCall, frame: FrameBounds, dictionary: Dictionary, definition: ByDefinition
    ) -> None:
        self._call = call
        self._arguments = FrameArguments(call, frame, dictionary)
        self._definition = definition
        self._is_sample = call.function.endswith("_samp")
        self._is_correlation = call.function == "corr"

    def definitions(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return self._arguments.definitions(names)

    def __call__(self, view: Partitions) -> Vector:
        values, kept = self._arguments(view)
        counted = without_nulls(values, kept)
        start, end = self._arguments.frame(view)
        counts = count_within(counted, start, end)
        finite = counted.copy()
        for vector in values:
            finite &= np.isfinite(vector.values)
        columns = [np.where(finite, v.values, 0.0) for v in values]
        if not all(_is_moderate(c) for c in columns):
            return self._definition(view)
        nulls = counts <= (1 if self._is_sample or self._is_correlation else 0)
        results = self._finished(columns, np.where(nulls, 1, counts), nulls, start, end)
        if not np.array_equal(finite, counted):
            results[count_within(counted & ~finite, start, end) > 0] = np.nan
        return with_nulls(self._call.type, results, nulls)

    def _finished(self, columns: list[Floats], counts: Ints, nulls: Bools, start: Ints, end: Ints) -> Floats:
        central = _scaled_central(columns[0], columns[-1], counts, start, end)
        if self._is_correlation:
            spreads = [_scaled_central(c, c, counts, start, end) for c in columns]
            constant = (spreads[0] == 0) | (spreads[1] == 0)  # a constant correlates with nothing
            nulls |= constant & self._is_finite(columns, start, end)
            root = np.sqrt(spreads[0]) * np.sqrt(spreads[1])
            return central / np.where(constant, 1.0, root)
        divisor = counts.astype(np.float64) * np.where(nulls, 1, counts - self._is_sample)
        results = central / divisor
        return np.sqrt(results) if self._call.function.startswith("stddev") else results
