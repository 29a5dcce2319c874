"""Exact decimals: sums of products of scaled integers, in two words each.

A decimal of scale s is an integer number of units of 10^-s. Sums keep the scale and a product has the sum of the scales, so a
sum of products over factors of scales s1, s2, … is an integer number of units of 10^-(s1 + s2 + …), computed without any
rounding. Two words make this the ring Z/2^128: exact wherever the true result fits 127 bits and a sign (38 digits do), by the
same homomorphism as in ``integers.py``, whatever happens on the way.

Words are two's complement, the low word first, which is how the embedded backend and Arrow keep wide decimals too.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context
from decimal import Decimal as Number
from typing import Any

import numpy as np

from everview.algebra.ring import INT64, Bools, Column, Ints, Payloads, Ring

_HALF = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)
_CONTEXT = Context(prec=60)  # more digits than 128 bits have


class DecimalRing(Ring):
    """Z/2^128, read as decimals whose scale is the sum of the scales of the factors.

    >>> price_times_share = DecimalRing(scales=(2, 3))
    >>> product = price_times_share.multiply(
    ...     price_times_share.lift(0, np.array([Number("19.99")])), price_times_share.lift(1, np.array([Number("0.125")]))
    ... )
    >>> price_times_share.values(product)
    [Decimal('2.49875')]
    """

    width = 2
    dtype = INT64
    name = "decimals"

    def __init__(self, scales: Sequence[int] = (0,)) -> None:
        self.scales = tuple(scales)

    @property
    def scale_of_values(self) -> int:
        """Fractional digits of what ``values`` returns."""
        return sum(self.scales)

    def ones(self, count: int) -> Payloads:
        """The integer 1, of scale 0."""
        ones = self.zeros(count)
        ones[:, 0] = 1
        return ones

    def add(self, a: Payloads, b: Payloads) -> Payloads:
        """The sum modulo 2^128."""
        sums = np.empty_like(a, order="C")
        sums[:, 0] = a[:, 0] + b[:, 0]
        carry = sums[:, 0].view(np.uint64) < a[:, 0].astype(np.uint64)
        sums[:, 1] = a[:, 1] + b[:, 1] + carry
        return sums

    def negate(self, a: Payloads) -> Payloads:
        """Two's complement: all bits turned, plus 1."""
        negative = np.empty_like(a, order="C")
        negative[:, 0] = -a[:, 0]
        negative[:, 1] = ~a[:, 1] + (a[:, 0] == 0)
        return negative

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        """The product modulo 2^128: low · low in full, and what the high words add to the high word."""
        product = np.empty((len(a), 2), dtype=np.int64)
        low, high = _full_product(a[:, 0].astype(np.uint64), b[:, 0].astype(np.uint64))
        product[:, 0] = low.view(np.int64)
        product[:, 1] = high.view(np.int64) + a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0]
        return product

    def scale(self, a: Payloads, weights: Ints) -> Payloads:
        """The product with an integer of scale 0."""
        return self.multiply(a, widened(weights))

    def sum_by(self, payloads: Payloads, group_of_row: Ints, groups: int) -> Payloads:
        """Sums of quarters of 32 bits, which do not overflow for fewer than 2^31 rows, and then the carries."""
        quarters = np.ascontiguousarray(payloads).view(np.uint32).astype(np.int64)  # low to high, as memory has them
        sums = np.zeros((groups, 4), dtype=np.int64)
        for i in range(4):
            np.add.at(sums[:, i], group_of_row, quarters[:, i])
        for i in range(3):
            sums[:, i + 1] += sums[:, i] >> 32
        return sums.astype(np.uint32).view(np.int64)

    def is_zero(self, a: Payloads) -> Bools:
        """Both words are 0."""
        zero: Bools = (a[:, 0] | a[:, 1]) == 0
        return zero

    def lift(self, position: int, column: Column) -> Payloads:
        """Decimals in Python's own type, or as unscaled integers: int64[n], or two words each, int64[n, 2]."""
        if column.ndim == 2:
            return np.ascontiguousarray(column, dtype=np.int64)
        if column.dtype != np.dtype(object):
            return widened(column.astype(np.int64, copy=False))
        digits = self.scales[position]
        return from_ints([_unscaled(value, digits) for value in column.tolist()])

    def values(self, payloads: Payloads) -> list[Number]:
        """The decimals."""
        digits = -self.scale_of_values
        return [Number(unscaled).scaleb(digits, _CONTEXT) for unscaled in to_ints(payloads)]


def _unscaled(value: Any, digits: int) -> int:
    scaled = Number(value).scaleb(digits, _CONTEXT)
    if scaled != int(scaled):
        raise ValueError(f"{value} has more than {digits} fractional digits")
    return int(scaled)


def _full_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The low and the high word of the products of unsigned words, by halves of 32 bits."""
    a_low, a_high = a & _MASK, a >> _HALF
    b_low, b_high = b & _MASK, b >> _HALF
    low = a_low * b_low
    first = a_high * b_low + (low >> _HALF)
    second = a_low * b_high + (first & _MASK)
    return a * b, a_high * b_high + (first >> _HALF) + (second >> _HALF)


def widened(words: Ints) -> Ints:
    """Integers of one word in two, the sign carried on."""
    wide = np.empty((len(words), 2), dtype=np.int64)
    wide[:, 0] = words
    wide[:, 1] = words >> 63
    return wide


def from_ints(values: Sequence[int]) -> Ints:
    """Python's integers, modulo 2^128, in two words each."""
    data = b"".join([(v % 2**128).to_bytes(16, "little") for v in values])
    return np.frombuffer(data, dtype=np.int64).reshape(len(values), 2).copy()


def to_ints(payloads: Payloads) -> list[int]:
    """Two words each as Python's integers, from -2^127 to 2^127 - 1."""
    return [(high << 64) + (low % 2**64) for low, high in payloads.tolist()]


DECIMALS = DecimalRing()
