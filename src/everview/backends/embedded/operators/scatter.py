"""Kernels that add a batch of weighted values to accumulators by slot.

Integers are summed in 128 bits, as two words, modulo 2**128: no order of additions can lose anything that the final sum can
hold. Floats are summed as an unevaluated pair (high, low) by error-free addition, so that what is added and taken away again
leaves nothing behind that 106 bits can see; NaN and the infinities are counted, not added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from everview.backends.embedded.vectors import Ints

LOW, HIGH, COUNT = 0, 1, 2
"""Words of an integer sum: the 128-bit total, and how many values are in it."""

VALUES, NANS, INFINITIES, NEGATIVE_INFINITIES = 0, 1, 2, 3
"""Counters of a float sum: finite values, and the three that are not."""


@njit(cache=True, nogil=True)
def add_counts(payload, slots, weights):  # type: ignore[no-untyped-def]  # Numba infers
    """payload[slot, 0] += weight."""
    for i in range(len(slots)):
        payload[slots[i], 0] += weights[i]


@njit(cache=True, nogil=True)
def _add_product(payload, slot, low, high, weight):  # type: ignore[no-untyped-def]  # Numba infers
    """payload[slot] += (high:low) * weight, all modulo 2**128."""
    a, w = np.uint64(low), np.uint64(weight)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, w0, w1 = a & mask, a >> half, w & mask, w >> half
    p00, p01, p10, p11 = a0 * w0, a0 * w1, a1 * w0, a1 * w1
    middle = (p00 >> half) + (p01 & mask) + (p10 & mask)
    product_low = (p00 & mask) | (middle << half)
    product_high = p11 + (p01 >> half) + (p10 >> half) + (middle >> half)
    # Both words are signed: correct the unsigned product for a negative weight, and add the high word's share.
    product_high += np.uint64(high) * w
    if weight < 0:
        product_high -= a
    total = np.uint64(payload[slot, 0]) + product_low
    carry = np.uint64(1) if total < product_low else np.uint64(0)
    payload[slot, 1] = np.int64(np.uint64(payload[slot, 1]) + product_high + carry)
    payload[slot, 0] = np.int64(total)


@njit(cache=True, nogil=True)
def add_integers(payload, slots, values, weights):  # type: ignore[no-untyped-def]  # Numba infers
    """Adds 64-bit values to sums (low, high, count)."""
    for i in range(len(slots)):
        slot, weight, value = slots[i], weights[i], values[i]
        payload[slot, 2] += weight
        high = np.int64(-1) if value < 0 else np.int64(0)
        if weight == 1:
            low = np.uint64(payload[slot, 0]) + np.uint64(value)
            carry = np.int64(1) if low < np.uint64(value) else np.int64(0)
            payload[slot, 0] = np.int64(low)
            payload[slot, 1] += high + carry
        else:
            _add_product(payload, slot, value, high, weight)


@njit(cache=True, nogil=True)
def add_wides(payload, slots, values, weights):  # type: ignore[no-untyped-def]  # Numba infers
    """Adds 128-bit values to sums (low, high, count)."""
    for i in range(len(slots)):
        payload[slots[i], 2] += weights[i]
        _add_product(payload, slots[i], values[i, 0], values[i, 1], weights[i])


@njit(cache=True, nogil=True)
def add_floats(sums, counters, slots, values, weights):  # type: ignore[no-untyped-def]  # Numba infers
    """Adds floats to compensated sums; a sum without finite values is exactly 0."""
    for i in range(len(slots)):
        slot, weight, value = slots[i], weights[i], values[i]
        if np.isnan(value):
            counters[slot, 1] += weight
            continue
        if np.isinf(value):
            counters[slot, 2 if value > 0 else 3] += weight
            continue
        counters[slot, 0] += weight
        if counters[slot, 0] == 0:
            sums[slot, 0] = 0.0
            sums[slot, 1] = 0.0
            continue
        times = 1 if weight > 0 else -1
        for _ in range(abs(weight)):
            _add_exactly(sums, slot, value * times)


@njit(cache=True, nogil=True)
def add_errors(sums, counters, slots, values, weights):  # type: ignore[no-untyped-def]  # Numba infers
    """Adds the rounding errors of values that ``add_floats`` has added: they do not count again."""
    for i in range(len(slots)):
        slot, weight, value = slots[i], weights[i], values[i]
        if counters[slot, 0] != 0 and np.isfinite(value) and value != 0.0:
            times = 1 if weight > 0 else -1
            for _ in range(abs(weight)):
                _add_exactly(sums, slot, value * times)


@njit(cache=True, nogil=True)
def _add_exactly(sums, slot, value):  # type: ignore[no-untyped-def]  # Numba infers
    """(high, low) += value, with the rounding error of each addition kept."""
    high = sums[slot, 0]
    total = high + value
    back = total - high
    error = (high - (total - back)) + (value - back)
    low = sums[slot, 1] + error
    renormalised = total + low
    sums[slot, 0] = renormalised
    sums[slot, 1] = low - (renormalised - total)


@njit(cache=True, nogil=True)
def distinct_slots(slots, marks, out):  # type: ignore[no-untyped-def]  # Numba infers
    """The distinct slots in order of first occurrence, into ``out``; ``marks`` is all 0 before and after."""
    count = 0
    for i in range(len(slots)):
        slot = slots[i]
        if marks[slot, 0] == 0:
            marks[slot, 0] = 1
            out[count] = slot
            count += 1
    for i in range(count):
        marks[out[i], 0] = 0
    return count


def wide_to_python(words: Ints) -> list[int]:
    """128-bit integers as Python's."""
    return [(int(high) << 64) | (int(low) & 0xFFFFFFFFFFFFFFFF) for low, high in words.tolist()]


def wide_from_python(values: list[int]) -> Ints:
    """Python's integers as 128-bit ones."""
    words = np.empty((len(values), 2), dtype=np.int64)
    for i, value in enumerate(values):
        words[i, 0] = _signed(value & 0xFFFFFFFFFFFFFFFF)
        words[i, 1] = value >> 64
    return words


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def fits_word(words: Ints) -> Any:
    """Which 128-bit integers are 64-bit ones."""
    return words[:, 1] == words[:, 0] >> 63


def wide_to_float(words: Ints) -> Any:
    """128-bit integers as doubles."""
    low = np.ascontiguousarray(words[:, 0])
    wide = words[:, 1].astype(np.float64) * 2.0**64 + low.view(np.uint64).astype(np.float64)
    return np.where(
        fits_word(words), low.astype(np.float64), wide
    )  # a small negative number is no difference of large ones
