"""128-bit integers as arrays of two 64-bit words, low word first, in two's complement: int64[n, 2].

Only what decimals need: sums, products with one word, comparison, and division by powers of ten. Magnitudes stay below
2**127, so that a sign and an absolute value always exist; an operation whose result would not says so in a mask.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.vectors import Bools, Ints

Unsigned = npt.NDArray[np.uint64]
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)


def sign_and_magnitude(a: Ints) -> tuple[Bools, Unsigned, Unsigned]:
    """Whether negative, and the low and high words of the absolute value."""
    negative = a[:, 1] < 0
    low, high = np.ascontiguousarray(a[:, 0]).view(np.uint64), np.ascontiguousarray(a[:, 1]).view(np.uint64)
    return (negative, *_negated_where(negative, low, high))


def from_sign_and_magnitude(negative: Bools, low: Unsigned, high: Unsigned) -> Ints:
    """The integers with these signs and absolute values (below 2**127)."""
    result = np.empty((len(low), 2), dtype=np.int64)
    result[:, 0], result[:, 1] = (w.view(np.int64) for w in _negated_where(negative, low, high))
    return result


def _negated_where(negative: Bools, low: Unsigned, high: Unsigned) -> tuple[Unsigned, Unsigned]:
    flipped_low = ~low + np.uint64(1)
    flipped_high = ~high + (flipped_low == 0).astype(np.uint64)
    return np.where(negative, flipped_low, low), np.where(negative, flipped_high, high)


def add(a: Ints, b: Ints) -> tuple[Ints, Bools]:
    """The sums, and where they overflow."""
    low = a[:, 0].view(np.uint64) + b[:, 0].view(np.uint64)
    carry = low < a[:, 0].view(np.uint64)
    high = a[:, 1] + b[:, 1] + carry
    overflow = ((a[:, 1] ^ high) & (b[:, 1] ^ high)) < 0
    return _paired(low.view(np.int64), high), overflow


def negate(a: Ints) -> Ints:
    """The opposite numbers."""
    low = -a[:, 0]
    return _paired(low, ~a[:, 1] + (low == 0))


def absolute(a: Ints) -> Ints:
    """The absolute values."""
    return np.where((a[:, 1] < 0)[:, None], negate(a), a)


def less(a: Ints, b: Ints) -> Bools:
    """Where ``a < b``."""
    low_less = a[:, 0].view(np.uint64) < b[:, 0].view(np.uint64)
    result: Bools = np.where(a[:, 1] == b[:, 1], low_less, a[:, 1] < b[:, 1])
    return result


def equal(a: Ints, b: Ints) -> Bools:
    """Where ``a = b``."""
    result: Bools = (a[:, 0] == b[:, 0]) & (a[:, 1] == b[:, 1])
    return result


def multiply(a: Ints, b: Ints) -> tuple[Ints, Bools]:
    """The products of wide ``a`` with one-word ``b``, and where they do not fit 127 bits."""
    negative_a, low, high = sign_and_magnitude(a)
    negative_b = b < 0
    factor = np.where(negative_b, -b, b).view(np.uint64)
    low_product, carry = _product(low, factor)
    high_product, lost = _product(high, factor)
    top = high_product + carry
    overflow = (lost != 0) | (top < high_product) | (top >> np.uint64(63) != 0)
    return from_sign_and_magnitude(negative_a != negative_b, low_product, top), overflow


def _product(a: Unsigned, b: Unsigned) -> tuple[Unsigned, Unsigned]:
    """The low and high words of unsigned products."""
    a0, a1, b0, b1 = a & _LOW_HALF, a >> _HALF, b & _LOW_HALF, b >> _HALF
    low, cross, other, high = a0 * b0, a1 * b0, a0 * b1, a1 * b1
    middle = (low >> _HALF) + (cross & _LOW_HALF) + (other & _LOW_HALF)
    return (low & _LOW_HALF) | (middle << _HALF), high + (cross >> _HALF) + (other >> _HALF) + (middle >> _HALF)


def multiply_power_of_ten(a: Ints, digits: int) -> tuple[Ints, Bools]:
    """The numbers times ``10**digits``, and where they do not fit 127 bits."""
    overflow: Bools = np.zeros(len(a), dtype=np.bool_)
    while digits > 0:
        step = min(digits, 18)
        a, lost = multiply(a, np.full(len(a), 10**step, dtype=np.int64))
        overflow |= lost
        digits -= step
    return a, overflow


def shifted_sum(a: Ints, digits: int, more: Ints) -> Ints:
    """``a * 10**digits + more`` of positive numbers, with at most 18 digits and a result that fits."""
    factor = np.full(1, 10**digits, dtype=np.uint64)
    low, carry = _product(np.ascontiguousarray(a[:, 0]).view(np.uint64), factor)
    total = low + more.view(np.uint64)
    high = np.ascontiguousarray(a[:, 1]).view(np.uint64) * factor + carry + (total < low)
    return _paired(total.view(np.int64), high.view(np.int64))


def divide_power_of_ten(a: Ints, digits: int) -> Ints:
    """The numbers divided by ``10**digits``, rounded half up (away from zero)."""
    negative, low, high = sign_and_magnitude(a)
    low, high = _truncated_quotient(low, high, digits - 1)
    low = low + np.uint64(5)
    high = high + (low < 5)
    return from_sign_and_magnitude(negative, *_truncated_quotient(low, high, 1))


def truncate_power_of_ten(a: Ints, digits: int) -> Ints:
    """The numbers divided by ``10**digits``, rounded toward zero."""
    negative, low, high = sign_and_magnitude(a)
    return from_sign_and_magnitude(negative, *_truncated_quotient(low, high, digits))


def _truncated_quotient(low: Unsigned, high: Unsigned, digits: int) -> tuple[Unsigned, Unsigned]:
    """School division by up to nine digits at a time, over limbs of 32 bits."""
    while digits > 0:
        step = min(digits, 9)
        divisor = np.uint64(10**step)
        quotients = []
        rest = np.zeros(len(low), dtype=np.uint64)
        for limb in (high >> _HALF, high & _LOW_HALF, low >> _HALF, low & _LOW_HALF):
            part = (rest << _HALF) | limb
            quotients.append(part // divisor)
            rest = part - quotients[-1] * divisor
        high, low = (quotients[0] << _HALF) | quotients[1], (quotients[2] << _HALF) | quotients[3]
        digits -= step
    return low, high


def exceeds(a: Ints, precision: int) -> Bools:
    """Where the numbers have more than ``precision`` digits."""
    limit = 10**precision
    _, low, high = sign_and_magnitude(a)
    limit_low, limit_high = np.uint64(limit & (2**64 - 1)), np.uint64(limit >> 64)
    result: Bools = (high > limit_high) | ((high == limit_high) & (low >= limit_low))
    return result


def _paired(low: Any, high: Any) -> Ints:
    result = np.empty((len(low), 2), dtype=np.int64)
    result[:, 0], result[:, 1] = low, high
    return result
