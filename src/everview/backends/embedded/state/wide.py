"""Integers of 128 bits in batches: decimals of more than 18 digits, and exact sums of anything.

A batch is ``int64[n, 2]``, C-contiguous: low word, high word, two's complement, the layout of WIDE vectors. Sums and
differences wrap around at 2^128; what can overflow otherwise also returns a mask of the rows that fit. Rounding is
HALF_UP, Spark's: half away from zero.

    >>> to_ints(multiply(np.array([10**18]), np.array([-(10**18)])))
    [-1000000000000000000000000000000000000]
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state import wide_kernels as kernels
from everview.backends.embedded.vectors import Bools, Ints

WORD = 1 << 64


def from_int64(values: Ints) -> Ints:
    """Words as wide values."""
    return np.stack([values, values >> 63], axis=1)


def to_int64(values: Ints) -> tuple[Ints, Bools]:
    """The low words, and which values fit one word."""
    low = np.ascontiguousarray(values[:, 0])
    return low, values[:, 1] == low >> 63


def from_ints(values: Iterable[int]) -> Ints:
    """Python integers as wide values; each must lie between -2^127 and 2^127 - 1."""
    data = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    return np.frombuffer(data, dtype="<i8").astype(np.int64).reshape(-1, 2)


def to_ints(values: Ints) -> list[int]:
    """Wide values as Python integers; also of accumulators of three words."""
    words: list[list[int]] = values.tolist()
    return [
        sum((word % WORD) << 64 * j for j, word in enumerate(row[:-1])) + (row[-1] << 64 * (len(row) - 1))
        for row in words
    ]


def add(a: Ints, b: Ints) -> Ints:
    """The sum a + b, wrapping around."""
    out = np.empty_like(a)
    kernels.add(a, b, out)
    return out


def subtract(a: Ints, b: Ints) -> Ints:
    """The difference a - b, wrapping around."""
    return add(a, negate(b))


def negate(a: Ints) -> Ints:
    """-a, wrapping around (the smallest value is its own negative)."""
    out = np.empty_like(a)
    kernels.negate(a, out)
    return out


def compare(a: Ints, b: Ints) -> Ints:
    """-1, 0 or 1 as a is below, equal to or above b."""
    out = np.empty(len(a), dtype=np.int64)
    kernels.compare(a, b, out)
    return out


def multiply(a: Ints, b: Ints) -> Ints:
    """The exact product of two columns of words."""
    out = np.empty((len(a), 2), dtype=np.int64)
    kernels.multiply(a, b, out)
    return out


def multiply_word(a: Ints, b: Ints) -> tuple[Ints, Bools]:
    """Wide values times words, and which products fit."""
    out, fits = np.empty_like(a), np.empty(len(a), dtype=np.bool_)
    kernels.multiply_word(a, b, out, fits)
    return out, fits


def divide_word(a: Ints, b: Ints) -> Ints:
    """Wide values by words, none of them 0, rounded HALF_UP: an average of decimals is its sum by its count."""
    out = np.empty_like(a)
    kernels.divide_word(a, b, out)
    return out


def scale(a: Ints, digits: int) -> tuple[Ints, Bools]:
    """Change a decimal's scale: a · 10^digits, for negative digits rounded HALF_UP, and which results fit."""
    out, fits = np.empty_like(a), np.ones(len(a), dtype=np.bool_)
    if digits >= 0:
        kernels.scale_up(a, digits, out, fits)
    else:
        kernels.scale_down(a, -digits, out)
    return out, fits


def fits_precision(a: Ints, precision: int) -> Bools:
    """Which values have at most so many decimal digits (38 at most)."""
    limit = np.broadcast_to(from_ints([10**precision]), a.shape).copy()
    return (compare(a, limit) < 0) & (compare(a, negate(limit)) > 0)


def to_float64(a: Ints) -> npt.NDArray[np.float64]:
    """The nearest floats."""
    out = np.empty(len(a), dtype=np.float64)
    kernels.to_float(a, out)
    return out


def scatter_add_wide(
    payload: Ints, slots: Ints, values: Ints, weights: Ints, *, column: int = 0, words: int = 2
) -> None:
    """Add ``value · weight`` to the wide accumulator of each slot, exactly.

    Args:
        payload: ``int64[slots, columns]``; an accumulator is ``words`` columns from ``column`` on, the low word first.
        slots: The slot of each row; slots may repeat.
        values: Words ``int64[n]``, or wide values ``int64[n, 2]``.
        weights: The weight of each row.
        column: Where the accumulator begins.
        words: 2, where sums wrap around at 2^128, or 3, where they cannot: for decimals of 38 digits, whose sums may leave 128
            bits and come back. ``narrow`` makes two words of three.
    """
    matrix = values.reshape(len(values), 1) if values.ndim == 1 else values
    kernels.scatter_add(payload, column, words, slots, matrix, weights)


def narrow(sums: Ints) -> tuple[Ints, Bools]:
    """Accumulators of three words as wide values, and which fit."""
    value = np.ascontiguousarray(sums[:, :2])
    return value, sums[:, 2] == value[:, 1] >> 63
