"""Sums per slot: kernels that add ``value · weight`` into payload matrices, for ints and floats.

Float sums must forget: a value added and taken away again leaves no trace. So an accumulator is a sum, the sum of its rounding
errors, the sum of theirs, and so on, ``FLOAT_PARTS`` in all: some 200 bits below the largest value that has gone in. Products
with weights are split into exact parts. What cannot be subtracted is counted: NaN and the infinities. The few values too large
for 200 bits, or for their weight, are left to the caller, who has ``state/large_floats.py`` for them.

Exact sums of wide integers are in `wide.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.intrinsics import multiply_overflows
from everview.backends.embedded.state.kernel import inlined, kernel
from everview.backends.embedded.vectors import Bools, Ints
from everview.relational.functions.failures import count_overflow

Floats = npt.NDArray[np.float64]

NAN, PLUS, MINUS = range(3)
"""Columns of the counters of a float accumulator."""
FLOAT_COUNTERS = 3
FLOAT_PARTS = 4
"""Columns of the sums of a float accumulator."""

LARGE = 2.0**150
"""Finite values from here on are left to the caller."""
SMALL_WEIGHT = 1 << 26
"""So are those with weights from here on."""
SPLITTER = -(1 << 27)  # keeps the upper 26 bits of a float's mantissa


@kernel
def scatter_add_int(payload: Ints, column: int, slots: Ints, values: Ints, weights: Ints) -> None:
    """payload[slot, column] += value · weight, wrapping around at 2^64."""
    for i in range(slots.shape[0]):
        payload[slots[i], column] += values[i] * weights[i]


@kernel
def scatter_add_weight(payload: Ints, column: int, slots: Ints, weights: Ints) -> bool:
    """payload[slot, column] += weight: counts. Returns whether all are still what 64 bits hold."""
    wrapped = 0
    for i in range(slots.shape[0]):
        before, weight = payload[slots[i], column], weights[i]
        after = before + weight
        wrapped |= (before ^ after) & (weight ^ after)
        payload[slots[i], column] = after
    return wrapped >= 0


@kernel
def multiply_weights(a: Ints, b: Ints, out: Ints) -> bool:
    """The products of weights, for joined rows. Returns whether all are what 64 bits hold."""
    wrapped = 0
    for i in range(out.shape[0]):
        wrapped |= multiply_overflows(a[i], b[i])
        out[i] = a[i] * b[i]
    return wrapped == 0


def joined_weights(a: Ints, b: Ints) -> Ints:
    """The weights of joined rows.

    Raises:
        EvaluationError: a row would be there more often than 64 bits can say.
    """
    out = np.empty(len(a), dtype=np.int64)
    if not multiply_weights(a, b, out):
        raise count_overflow()
    return out


def total_weight(weights: Ints) -> int:
    """The sum of all weights, whatever its size."""
    return (int((weights >> 32).sum()) << 32) + int((weights & 0xFFFFFFFF).sum())


@inlined
def _add_float(payload: Floats, slot: int, column: int, value: float) -> None:
    """Add a float to a sum, the rounding error to the sum of errors, and so on until nothing is left."""
    for part in range(column, column + FLOAT_PARTS):
        total = payload[slot, part]
        new = total + value
        added = new - total
        payload[slot, part] = new
        value = (total - (new - added)) + (value - added)
        if value == 0.0:
            break


@kernel
def scatter_add_float(
    payload: Floats, column: int, counters: Ints, first: int, slots: Ints, values: Floats, weights: Ints
) -> int:
    """Add ``value · weight`` to the float accumulator of each slot; returns how many rows are left to the caller.

    ``payload[slot, column]`` and the next ``FLOAT_PARTS`` - 1 columns are the sums; ``counters[slot, first]`` and the next two
    columns count NaN, infinity and minus infinity.
    """
    left = 0
    for i in range(slots.shape[0]):
        slot, value, weight = slots[i], values[i], weights[i]
        size = abs(value)
        if size < LARGE and abs(weight) == 1:
            _add_float(payload, slot, column, value * weight)
        elif size < LARGE and -SMALL_WEIGHT < weight < SMALL_WEIGHT:
            upper = np.int64(np.float64(value).view(np.int64) & SPLITTER).view(np.float64)
            _add_float(payload, slot, column, upper * weight)
            _add_float(payload, slot, column, (value - upper) * weight)
        elif size < np.inf:
            left += 1
        elif value > 0:
            counters[slot, first + PLUS] += weight
        elif value < 0:
            counters[slot, first + MINUS] += weight
        else:
            counters[slot, first + NAN] += weight
    return left


@kernel
def distill(parts: Floats) -> None:
    """Put the parts of sums in order: the first becomes the sum, rounded, the next what that lacks, and so on.

    Each part is added to the one before it, which keeps the sum and leaves the rounding error, again and again.
    """
    last = parts.shape[1] - 1
    for i in range(parts.shape[0]):
        for _ in range(last + 1):
            for k in range(last, 0, -1):
                total, value = parts[i, k - 1], parts[i, k]
                new = total + value
                added = new - total
                parts[i, k - 1] = new
                parts[i, k] = (total - (new - added)) + (value - added)


def is_left(values: Floats, weights: Ints) -> Bools:
    """The rows that ``scatter_add_float`` leaves to the caller."""
    found: Bools = np.isfinite(values) & (
        (np.abs(values) >= LARGE) | (weights <= -SMALL_WEIGHT) | (weights >= SMALL_WEIGHT)
    )
    return found


def float_totals(sums: Floats, counters: Ints) -> Floats:
    """The values of float accumulators: ``sums`` float64[n, parts], which are distilled, ``counters`` int64[n, 3]."""
    distill(sums)
    totals: Floats = sums[:, 0].copy()
    mark_specials(totals, counters)
    return totals


def mark_specials(totals: Floats, counters: Ints) -> None:
    """What IEEE arithmetic makes of the NaNs and infinities that are counted."""
    if not counters.any():
        return
    plus, minus = counters[:, PLUS] != 0, counters[:, MINUS] != 0
    totals[plus] = np.inf
    totals[minus] = -np.inf
    totals[(counters[:, NAN] != 0) | (plus & minus)] = np.nan
