"""Sums, products and extremes of sliding frames, as machine code.

Float sums are exact: an accumulator is an expansion (Shewchuk), a sum of floats that do not overlap, so what enters a frame and
leaves it again leaves no trace, and the value read off is the correctly rounded sum, as ``math.fsum`` gives it. Extremes are
found with the queue of rows that can still become one. Both cost amortised O(1) a row when frames move forward, as all do but
those whose bounds are timestamps plus days across a change of the clock; those cost what they move.

Frames are ``[start, end)``. Expansions lie in ``scratch`` from ``base`` on, smallest first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bools, Ints

Floats = npt.NDArray[np.float64]

EXPANSION = 64
"""Room for an expansion: 2,100 bits of exponents in pieces of 53 make 40."""
SPLIT = 134217729.0  # 2**27 + 1


@inlined
def _grow(scratch: Floats, base: int, size: int, value: float) -> Word:
    """Add a float to an expansion; returns its new size."""
    kept = 0
    for i in range(size):
        other = scratch[base + i]
        if abs(value) < abs(other):
            value, other = other, value
        high = value + other
        low = other - (high - value)
        if low != 0.0:
            scratch[base + kept] = low
            kept += 1
        value = high
    if value != 0.0:
        scratch[base + kept] = value
        kept += 1
    return kept


@inlined
def _rounded(scratch: Floats, base: int, size: int) -> Word:
    """The float nearest to an expansion, ties to even."""
    if size == 0:
        return 0.0
    at = size - 1
    high = scratch[base + at]
    low = 0.0
    while at > 0:
        at -= 1
        before, other = high, scratch[base + at]
        high = before + other
        low = other - (high - before)
        if low != 0.0:
            break
    # Half an ulp is left, and more of the same sign below it: round the other way.
    if at > 0 and ((low < 0.0 and scratch[base + at - 1] < 0.0) or (low > 0.0 and scratch[base + at - 1] > 0.0)):
        twice = low * 2.0
        moved = high + twice
        if twice == moved - high:
            high = moved
    return high


@inlined
def _grow_product(scratch: Floats, base: int, size: int, a: float, b: float) -> Word:
    """Add a·b to an expansion, exactly (Dekker)."""
    product = a * b
    a_high = SPLIT * a - (SPLIT * a - a)
    b_high = SPLIT * b - (SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    size = _grow(scratch, base, size, error)
    return _grow(scratch, base, size, product)


@kernel
def frame_sums(values: Floats, start: Ints, end: Ints, scratch: Floats, out: Floats) -> None:
    """The correctly rounded sum of the values in each frame; they must be finite and far from overflow."""
    low = high = size = 0
    for i in range(start.shape[0]):
        first, last = start[i], end[i]
        if i > 0 and first == low and last == high:
            out[i] = out[i - 1]
            continue
        if first >= high or last <= low:
            low = high = first
            size = 0
        while high < last:
            size = _grow(scratch, 0, size, values[high])
            high += 1
        while low > first:
            low -= 1
            size = _grow(scratch, 0, size, values[low])
        while low < first:
            size = _grow(scratch, 0, size, -values[low])
            low += 1
        while high > last:
            high -= 1
            size = _grow(scratch, 0, size, -values[high])
        out[i] = _rounded(scratch, 0, size)


@kernel
def _move(x: Floats, y: Floats, row: int, sign: float, scratch: Floats, sizes: Ints) -> None:
    """Let a row enter (sign 1) or leave (sign -1) the sums of x, y and x·y."""
    sizes[0] = _grow(scratch, 0, sizes[0], sign * x[row])
    sizes[1] = _grow(scratch, EXPANSION, sizes[1], sign * y[row])
    sizes[2] = _grow_product(scratch, 2 * EXPANSION, sizes[2], sign * x[row], y[row])


@kernel
def _central(count: float, scratch: Floats, sizes: Ints) -> Word:
    """n·Σxy - Σx·Σy, exact until it is rounded once."""
    base, size = 3 * EXPANSION, 0
    for i in range(sizes[2]):
        size = _grow_product(scratch, base, size, count, scratch[2 * EXPANSION + i])
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            size = _grow_product(scratch, base, size, -scratch[i], scratch[EXPANSION + j])
    return _rounded(scratch, base, size)


@kernel
def frame_moments(
    x: Floats, y: Floats, counts: Ints, start: Ints, end: Ints, scratch: Floats, sizes: Ints, out: Floats
) -> None:
    """n·Σxy - Σx·Σy of each frame, in which n values count; those that do not must be 0.

    Magnitudes must be within 2^-400 and 2^400, so that no product is rounded.
    """
    low = high = 0
    sizes[:] = 0
    for i in range(start.shape[0]):
        first, last = start[i], end[i]
        if i > 0 and first == low and last == high:
            out[i] = out[i - 1]
            continue
        if first >= high or last <= low:
            low = high = first
            sizes[:] = 0
        while high < last:
            _move(x, y, high, 1.0, scratch, sizes)
            high += 1
        while low > first:
            low -= 1
            _move(x, y, low, 1.0, scratch, sizes)
        while low < first:
            _move(x, y, low, -1.0, scratch, sizes)
            low += 1
        while high > last:
            high -= 1
            _move(x, y, high, -1.0, scratch, sizes)
        out[i] = _central(float(counts[i]), scratch, sizes)


@kernel
def frame_minima(keys: Ints, counts: Bools, start: Ints, end: Ints, queue: Ints, out: Ints) -> None:
    """The position of a least key in each frame among the rows that count; -1 where there is none.

    The queue holds, from ``head`` to ``tail``, the rows with no smaller key after them: keys ascend along it.
    """
    low = high = head = tail = 0
    for i in range(start.shape[0]):
        first, last = start[i], end[i]
        if first < low or first >= high or last < high:
            high = first
            head = tail = 0
        low = first
        while high < last:
            if counts[high]:
                while tail > head and keys[queue[tail - 1]] > keys[high]:
                    tail -= 1
                queue[tail] = high
                tail += 1
            high += 1
        while head < tail and queue[head] < low:
            head += 1
        out[i] = queue[head] if head < tail else -1
