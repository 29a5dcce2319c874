"""128-bit integers as the decimal kernels want them: ``state.wide`` over cells of any memory layout and over literals.

Operands are int64[n, 2], or of one row, which stands for all. What could overflow also returns the mask of rows that do.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state import wide
from everview.backends.embedded.vectors import Bools, Ints


def _ready(a: Ints, count: int) -> Ints:
    """The words as machine code takes them: as many as there are rows, contiguous and writable."""
    if len(a) != count:
        a = np.repeat(a, count, axis=0)
    return np.require(a, requirements=["C", "W"])


def _matched(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    count = len(b) if len(a) == 1 else len(a)
    return _ready(a, count), _ready(b, count)


def add(a: Ints, b: Ints) -> tuple[Ints, Bools]:
    """The sums, and where they overflow."""
    a, b = _matched(a, b)
    total = wide.add(a, b)
    overflow: Bools = ((a[:, 1] ^ total[:, 1]) & (b[:, 1] ^ total[:, 1])) < 0
    return total, overflow


def negate(a: Ints) -> Ints:
    """The opposite numbers."""
    return wide.negate(_ready(a, len(a)))


def absolute(a: Ints) -> Ints:
    """The absolute values."""
    return np.where((a[:, 1] < 0)[:, None], negate(a), a)


def less(a: Ints, b: Ints) -> Bools:
    """Where ``a < b``."""
    result: Bools = wide.compare(*_matched(a, b)) < 0
    return result


def equal(a: Ints, b: Ints) -> Bools:
    """Where ``a = b``."""
    result: Bools = (a[:, 0] == b[:, 0]) & (a[:, 1] == b[:, 1])
    return result


def multiply(a: Ints, b: Ints) -> tuple[Ints, Bools]:
    """The products of wide ``a`` with words ``b``, and where they overflow."""
    product, fits = wide.multiply_word(*_matched(a, b))
    return product, ~fits


def divide(a: Ints, b: Ints) -> Ints:
    """The quotients of wide ``a`` by words ``b``, none of them 0, rounded half up (away from zero)."""
    return wide.divide_word(*_matched(a, b))


def multiply_power_of_ten(a: Ints, digits: int) -> tuple[Ints, Bools]:
    """The numbers times ``10**digits``, and where they overflow."""
    if digits == 0:
        return a, np.zeros(len(a), dtype=np.bool_)
    product, fits = wide.scale(_ready(a, len(a)), digits)
    return product, ~fits


def divide_power_of_ten(a: Ints, digits: int) -> Ints:
    """The numbers divided by ``10**digits``, rounded half up (away from zero)."""
    return wide.scale(_ready(a, len(a)), -digits)[0]


def truncate_power_of_ten(a: Ints, digits: int) -> Ints:
    """The numbers, of at most 38 digits, divided by ``10**digits`` and rounded toward zero."""
    if digits == 0:
        return a
    rounded = divide_power_of_ten(a, digits)
    back = multiply_power_of_ten(rounded, digits)[0]
    is_rounded_up = less(absolute(a), absolute(back))
    step = np.where(a[:, 1] < 0, 1, -1) * is_rounded_up
    return wide.add(rounded, wide.from_int64(step))


def exceeds(a: Ints, precision: int) -> Bools:
    """Where the numbers have more than ``precision`` digits."""
    return ~wide.fits_precision(_ready(a, len(a)), precision)
