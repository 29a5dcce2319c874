"""The kernels of 128-bit integers: a value is two int64 words, low and high, in two's complement.

    value = high · 2^64 + (low mod 2^64)

Sums wrap around at 2^128, which is what makes running sums reversible; products, quotients and conversions report overflow.
Words are cast to unsigned where the arithmetic is, since Numba would turn mixed operands into floats.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bools, Ints

U = np.uint64
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
ZERO = np.uint64(0)
ONE = np.uint64(1)
TOP = np.uint64(1 << 63)
CHUNK = 18
"""The most decimal digits by which one step multiplies or divides: 10^18 is below 2^63."""


@inlined
def _add(a_low: Word, a_high: Word, b_low: Word, b_high: Word) -> Word:
    low = U(a_low) + U(b_low)
    carry = 1 if low < U(a_low) else 0
    return np.int64(low), np.int64(a_high + b_high + carry)


@inlined
def _negate(low: Word, high: Word) -> Word:
    return np.int64(ZERO - U(low)), np.int64(~high + (1 if low == 0 else 0))


@inlined
def _multiply_unsigned(a: Word, b: Word) -> Word:
    """The 128-bit product of two unsigned words, low and high, from products of their halves."""
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    low, cross = a0 * b0, a1 * b0
    middle = cross + (low >> HALF)
    other = a0 * b1 + (middle & LOW)
    return (other << HALF) | (low & LOW), a1 * b1 + (middle >> HALF) + (other >> HALF)


@inlined
def _multiply(a: Word, b: Word) -> Word:
    """The 128-bit product of two signed words."""
    low, high = _multiply_unsigned(U(a), U(b))
    signed = np.int64(high)
    if a < 0:
        signed -= b
    if b < 0:
        signed -= a
    return np.int64(low), signed


@inlined
def _magnitude(low: Word, high: Word) -> Word:
    if high < 0:
        low, high = _negate(low, high)
    return U(low), U(high)


@inlined
def _signed(low: Word, high: Word, negative: Word) -> Word:
    """The value with this magnitude and sign, and whether it fits."""
    fits = high < TOP or (negative and high == TOP and low == ZERO)
    if negative:
        a, b = _negate(np.int64(low), np.int64(high))
        return a, b, fits
    return np.int64(low), np.int64(high), fits


@inlined
def _multiply_word(low: Word, high: Word, by: Word) -> Word:
    """A 128-bit value times a word, and whether the product fits."""
    a_low, a_high = _magnitude(low, high)
    b = U(-by) if by < 0 else U(by)
    p_low, p_middle = _multiply_unsigned(a_low, b)
    q_low, q_high = _multiply_unsigned(a_high, b)
    p_high = p_middle + q_low
    is_whole = q_high == ZERO and p_high >= p_middle
    r_low, r_high, fits = _signed(p_low, p_high, (high < 0) != (by < 0))
    return r_low, r_high, is_whole and fits


@inlined
def _divide_step(high: Word, low: Word, by: Word) -> Word:
    """Quotient and remainder of a double word by a word, where ``high < by <= 2^63``: two digits of base 2^32."""
    if high == ZERO:
        return low // by, low % by
    shift = ZERO
    while by << shift < TOP:
        shift += ONE
    v = by << shift
    v1, v0 = v >> HALF, v & LOW
    u = (high << shift) | ((low >> ONE) >> (np.uint64(63) - shift))
    rest = low << shift
    digits = ZERO
    for k in range(2):
        digit = (rest >> HALF) if k == 0 else (rest & LOW)
        q, r = u // v1, u % v1
        while q > LOW or q * v0 > ((r << HALF) | digit):
            q -= ONE
            r += v1
            if r > LOW:
                break
        u = (u << HALF) + digit - q * v
        digits = (digits << HALF) | q
    return digits, u >> shift


@inlined
def _divide_magnitude(low: Word, high: Word, by: Word) -> Word:
    """Quotient (low, high) and remainder of an unsigned 128-bit value by a word up to 2^63."""
    q_high = high // by
    q_low, rest = _divide_step(high % by, low, by)
    return q_low, q_high, rest


@inlined
def _round_up(low: Word, high: Word, rest: Word, by: Word) -> Word:
    """Add 1 if the remainder is at least half the divisor: HALF_UP on magnitudes."""
    if rest >= by - rest:
        low += ONE
        if low == ZERO:
            high += ONE
    return low, high


@inlined
def _power_of_ten(digits: Word) -> Word:
    power = np.int64(1)
    for _ in range(digits):
        power *= np.int64(10)
    return power


@kernel
def add(a: Ints, b: Ints, out: Ints) -> None:
    """The sum a + b, wrapping around."""
    for i in range(a.shape[0]):
        out[i, 0], out[i, 1] = _add(a[i, 0], a[i, 1], b[i, 0], b[i, 1])


@kernel
def negate(a: Ints, out: Ints) -> None:
    """The negative -a, wrapping around."""
    for i in range(a.shape[0]):
        out[i, 0], out[i, 1] = _negate(a[i, 0], a[i, 1])


@kernel
def compare(a: Ints, b: Ints, out: Ints) -> None:
    """-1, 0 or 1 as a is below, equal to or above b."""
    for i in range(a.shape[0]):
        if a[i, 1] != b[i, 1]:
            out[i] = 1 if a[i, 1] > b[i, 1] else -1
        elif a[i, 0] != b[i, 0]:
            out[i] = 1 if U(a[i, 0]) > U(b[i, 0]) else -1
        else:
            out[i] = 0


@kernel
def multiply(a: Ints, b: Ints, out: Ints) -> None:
    """The exact product of words."""
    for i in range(a.shape[0]):
        out[i, 0], out[i, 1] = _multiply(a[i], b[i])


@kernel
def multiply_word(a: Ints, b: Ints, out: Ints, fits: Bools) -> None:
    """A wide value times a word."""
    for i in range(a.shape[0]):
        out[i, 0], out[i, 1], fits[i] = _multiply_word(a[i, 0], a[i, 1], b[i])


@kernel
def scale_up(a: Ints, digits: Word, out: Ints, fits: Bools) -> None:
    """The product a · 10^digits."""
    chunks = max(digits - 1, 0) // CHUNK
    chunk, last = _power_of_ten(CHUNK), _power_of_ten(digits - chunks * CHUNK)
    for i in range(a.shape[0]):
        low, high, is_whole = a[i, 0], a[i, 1], True
        for _ in range(chunks):
            low, high, is_fitting = _multiply_word(low, high, chunk)
            is_whole = is_whole and is_fitting
        low, high, is_fitting = _multiply_word(low, high, last)
        out[i, 0], out[i, 1], fits[i] = low, high, is_whole and is_fitting


@kernel
def scale_down(a: Ints, digits: Word, out: Ints) -> None:
    """The quotient a / 10^digits, half away from zero.

    Divided in steps; the last step decides the rounding alone, because its divisor is even: the digits cut off before it are
    less than one unit of its remainder, and cannot carry the remainder past one half.
    """
    chunks = max(digits - 1, 0) // CHUNK
    chunk, last = U(_power_of_ten(CHUNK)), U(_power_of_ten(digits - chunks * CHUNK))
    for i in range(a.shape[0]):
        low, high = _magnitude(a[i, 0], a[i, 1])
        for _ in range(chunks):
            low, high, _rest = _divide_magnitude(low, high, chunk)
        if digits > 0:
            low, high, rest = _divide_magnitude(low, high, last)
            low, high = _round_up(low, high, rest, last)
        out[i, 0], out[i, 1], _ = _signed(low, high, a[i, 1] < 0)


@kernel
def divide_word(a: Ints, b: Ints, out: Ints) -> None:
    """The quotient a / b, half away from zero; b is not 0."""
    for i in range(a.shape[0]):
        low, high = _magnitude(a[i, 0], a[i, 1])
        by = U(-b[i]) if b[i] < 0 else U(b[i])
        low, high, left = _divide_magnitude(low, high, by)
        low, high = _round_up(low, high, left, by)
        out[i, 0], out[i, 1], _ = _signed(low, high, (a[i, 1] < 0) != (b[i] < 0))


@kernel
def to_float(a: Ints, out: npt.NDArray[np.float64]) -> None:
    """The nearest float: the upper 64 bits of the magnitude with the bits below them folded into the last one."""
    for i in range(a.shape[0]):
        low, high = _magnitude(a[i, 0], a[i, 1])
        scale = 1.0
        while high != ZERO:
            low = (low >> ONE) | (low & ONE) | ((high & ONE) << np.uint64(63))
            high >>= ONE
            scale *= 2.0
        value = np.float64(low) * scale
        out[i] = -value if a[i, 1] < 0 else value


@kernel
def scatter_add(payload: Ints, column: Word, words: Word, slots: Ints, values: Ints, weights: Ints) -> None:
    """payload[slot, column…] += value · weight, exact in ``words`` (2 or 3) words; values are ``[n, 1]`` or wide ``[n, 2]``."""
    is_wide = values.shape[1] == 2
    for i in range(slots.shape[0]):
        slot, weight = slots[i], weights[i]
        low, high = _multiply(values[i, 0], weight)
        top = high >> 63
        if is_wide:
            # low as an unsigned word times the weight, plus high times the weight, one word higher
            if values[i, 0] < 0:
                high += weight
                top = top + (weight >> 63) + (1 if U(high) < U(weight) else 0)
            more_low, more_high = _multiply(values[i, 1], weight)
            total = U(high) + U(more_low)
            top += more_high + (1 if total < U(high) else 0)
            high = np.int64(total)
        at = U(payload[slot, column])
        sum_low = at + U(low)
        carry = ONE if sum_low < at else ZERO
        at = U(payload[slot, column + 1])
        sum_high = at + U(high)
        over = 1 if sum_high < at else 0
        sum_high += carry
        if carry == ONE and sum_high == ZERO:
            over += 1
        payload[slot, column] = np.int64(sum_low)
        payload[slot, column + 1] = np.int64(sum_high)
        if words == 3:
            payload[slot, column + 2] += top + over
