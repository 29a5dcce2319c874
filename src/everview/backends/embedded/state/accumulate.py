"""Sums per slot: kernels that add ``value · weight`` into payload matrices, for ints and floats.

Float sums must forget: a value added and taken away again leaves no trace. So an accumulator is a double-double (a sum and the
rounding error of that sum, about 106 bits), products with weights are split into exact parts, and what cannot be subtracted is
counted: NaN, infinities, and the overflow in units of 2^1022.

    value = (sum + error) + overflow · 2^1022        unless a NaN or an infinity is counted

Exact sums of wide integers are in `wide.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.kernel import inlined, kernel
from everview.backends.embedded.vectors import Ints

Floats = npt.NDArray[np.float64]

NAN, PLUS, MINUS, OVERFLOW = range(4)
"""Columns of the counters of a float accumulator."""
FLOAT_COUNTERS = 4

UNIT = 2.0**1022
LARGE = 2.0**960  # a value below it times a weight below SMALL_WEIGHT is far from overflow
SMALL_WEIGHT = 1 << 26
SPLITTER = -(1 << 27)  # keeps the upper 26 bits of a float's mantissa


@kernel
def scatter_add_int(payload: Ints, column: int, slots: Ints, values: Ints, weights: Ints) -> None:
    """payload[slot, column] += value · weight, wrapping around at 2^64."""
    for i in range(slots.shape[0]):
        payload[slots[i], column] += values[i] * weights[i]


@kernel
def scatter_add_weight(payload: Ints, column: int, slots: Ints, weights: Ints) -> None:
    """payload[slot, column] += weight: counts."""
    for i in range(slots.shape[0]):
        payload[slots[i], column] += weights[i]


@inlined
def _add_float(payload: Floats, counters: Ints, slot: int, column: int, first: int, value: float) -> None:
    """Add a float below UNIT in magnitude to a double-double of which the same holds, keeping the invariant."""
    total, error = payload[slot, column], payload[slot, column + 1]
    new = total + value
    part = new - total
    error += (total - (new - part)) + (value - part)
    total = new + error
    error -= total - new
    if abs(total) >= UNIT:
        unit = UNIT if total > 0 else -UNIT
        total -= unit
        counters[slot, first + OVERFLOW] += 1 if unit > 0 else -1
    payload[slot, column] = total
    payload[slot, column + 1] = error


@kernel
def _add_large(payload: Floats, counters: Ints, slot: int, column: int, first: int, value: float, weight: int) -> None:
    """Add a product that may be out of range: bit by bit of the weight, whole units counted aside."""
    if weight < 0:
        value, weight = -value, -weight
    units = 0
    while weight > 0:
        while abs(value) >= UNIT:
            step = 1 if value > 0 else -1
            value -= step * UNIT
            units += step
        if weight & 1:
            _add_float(payload, counters, slot, column, first, value)
            counters[slot, first + OVERFLOW] += units
        value *= 2.0
        units *= 2
        weight >>= 1


@kernel
def scatter_add_float(
    payload: Floats, column: int, counters: Ints, first: int, slots: Ints, values: Floats, weights: Ints
) -> None:
    """Add ``value · weight`` to the float accumulator of each slot.

    ``payload[slot, column]`` and the next column are the double-double; ``counters[slot, first]`` and the next three columns
    count NaN, infinity, minus infinity and overflow.
    """
    for i in range(slots.shape[0]):
        slot, value, weight = slots[i], values[i], weights[i]
        size = abs(value)
        if size < LARGE and abs(weight) == 1:
            _add_float(payload, counters, slot, column, first, value * weight)
        elif size < LARGE and -SMALL_WEIGHT < weight < SMALL_WEIGHT:
            upper = np.int64(np.float64(value).view(np.int64) & SPLITTER).view(np.float64)
            _add_float(payload, counters, slot, column, first, upper * weight)
            _add_float(payload, counters, slot, column, first, (value - upper) * weight)
        elif size < np.inf:
            _add_large(payload, counters, slot, column, first, value, weight)
        elif value > 0:
            counters[slot, first + PLUS] += weight
        elif value < 0:
            counters[slot, first + MINUS] += weight
        else:
            counters[slot, first + NAN] += weight


def float_totals(sums: Floats, counters: Ints) -> Floats:
    """The values of float accumulators: ``sums`` float64[n, 2], ``counters`` int64[n, 4]."""
    with np.errstate(over="ignore"):
        totals: Floats = sums[:, 0] + sums[:, 1]
        units = counters[:, OVERFLOW]
        if units.any():
            # Halved, so that the sum itself does not overflow before it must.
            totals = np.where(units != 0, (totals / 4 + units * (UNIT / 4)) * 4, totals)
    plus, minus = counters[:, PLUS] != 0, counters[:, MINUS] != 0
    totals[plus] = np.inf
    totals[minus] = -np.inf
    totals[(counters[:, NAN] != 0) | (plus & minus)] = np.nan
    return totals
