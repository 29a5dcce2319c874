"""Arithmetic and bits of integers and intervals, on 64-bit words with a check of the range.

Rows that overflow or divide by zero are suspects: the definition raises their error, or gives the NULL of a ``try_`` form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import (
    UNBOUNDED,
    WORD,
    Cells,
    any_of,
    outside,
    product_fits,
    sum_fits,
    type_bound,
)
from everview.backends.embedded.expressions.step import Builder, Compiled, Native
from everview.backends.embedded.vectors import Bools, Ints
from everview.relational.expressions import Call
from everview.relational.types import (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    INT64,
    DataType,
    DayTimeInterval,
    YearMonthInterval,
    integer_bounds,
    is_integral,
)

_LOWEST: Final = -(2**63)
_STORED: Final[dict[DataType, Any]] = {INT8: np.int8, INT16: np.int16, INT32: np.int32}


def storage_bounds(t: DataType) -> tuple[int, int] | None:
    """The range of an integer or interval type; None for others."""
    if is_integral(t):
        return integer_bounds(t)
    if isinstance(t, YearMonthInterval):
        return integer_bounds(INT32)
    return integer_bounds(INT64) if isinstance(t, DayTimeInterval) else None


def _have_type(args: tuple[Compiled, ...], t: DataType) -> bool:
    return all(a.type == t for a in args)


def sum_kernel(call: Call, args: tuple[Compiled, ...], sign: int) -> Native | None:
    """``a + b`` or ``a - b``."""
    bounds = storage_bounds(call.type)
    if bounds is None or not _have_type(args, call.type):
        return None
    low, high = bounds
    operation = np.add if sign > 0 else np.subtract

    def kernel(a: Cells, b: Cells) -> Cells:
        bound = a.bound + b.bound
        values = operation(a.values, b.values)
        if bound <= high:
            return Cells(values, None, bound)
        if len(values) == 1 and sum_fits(a, 1, b, 1) and high == WORD:
            return Cells(values, None, a.bound + b.bound)
        if high < WORD:
            return Cells(values, None, high + 1, outside(values, low, high))
        # The sign of a sum is wrong exactly when it differs from both operands' (of a difference, b's sign is turned).
        changed = (a.values ^ values) & ((b.values if sign > 0 else ~b.values) ^ values)
        overflow = changed < 0
        return Cells(values, None, UNBOUNDED, overflow if any_of(overflow) else None)

    static = args[0].bound + args[1].bound
    return Native(kernel, can_fail=static > high, bound=min(static, high + 1))


def product_kernel(call: Call, args: tuple[Compiled, ...]) -> Native | None:
    """``a * b``."""
    bounds = storage_bounds(call.type)
    if bounds is None or not _have_type(args, call.type):
        return None
    low, high = bounds

    def kernel(a: Cells, b: Cells) -> Cells:
        if not product_fits(a, b):
            # A product of doubles is off by less than 2**-52 of itself.
            near = a.values.astype(np.float64) * b.values
            return Cells(a.values * b.values, None, UNBOUNDED, np.abs(near) > 9.2e18)
        values, bound = a.values * b.values, a.bound * b.bound
        return Cells(values, None, min(bound, high + 1), outside(values, low, high) if bound > high else None)

    static = args[0].bound * args[1].bound
    return Native(kernel, can_fail=static > high, bound=min(static, high + 1))


def _whole_divisor(b: Ints) -> tuple[Ints, Bools | None]:
    """The divisors with 1 for 0, and where they are 0."""
    zero = b == 0
    if not any_of(zero):
        return b, None
    return np.where(zero, 1, b), zero


def quotient_kernel(args: tuple[Compiled, ...]) -> Native | None:
    """``a div b`` of bigints."""
    if not all(is_integral(a.type) for a in args):
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        divisor, suspects = _whole_divisor(b.values)
        if a.bound >= UNBOUNDED:
            overflow = (a.values == _LOWEST) & (divisor == -1)
            if any_of(overflow):
                suspects = overflow if suspects is None else suspects | overflow
                divisor = np.where(overflow, 1, divisor)
        return Cells(truncated_quotient(a.values, divisor), None, a.bound, suspects)

    return Native(kernel, can_fail=True, bound=args[0].bound)


def truncated_quotient(a: Ints, b: Ints) -> Ints:
    """``a / b`` rounded toward zero; ``b`` has no 0."""
    quotient: Ints = a // b
    inexact = (quotient * b != a) & ((a < 0) != (b < 0))
    quotient += inexact
    return quotient


def remainder_kernel(call: Call, args: tuple[Compiled, ...]) -> Native | None:
    """``a % b`` with the sign of a."""
    if not is_integral(call.type) or not _have_type(args, call.type):
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        divisor, suspects = _whole_divisor(b.values)
        return Cells(np.fmod(a.values, divisor), None, min(a.bound, b.bound), suspects)

    return Native(kernel, can_fail=True, bound=min(args[0].bound, args[1].bound))


def positive_remainder_kernel(call: Call, args: tuple[Compiled, ...]) -> Native | None:
    """``pmod(a, b)``; Java's wrapping sums for negative divisors are left to the definition."""
    if not is_integral(call.type) or not _have_type(args, call.type):
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        divisor, suspects = _whole_divisor(b.values)
        rest = np.fmod(a.values, divisor)
        negative = rest < 0
        if any_of(negative):
            odd = negative & (divisor < 0)
            suspects = odd if suspects is None else suspects | odd
            rest = np.where(negative, rest + divisor, rest)
        return Cells(rest, None, type_bound(call.type), suspects)

    return Native(kernel, can_fail=True, bound=args[1].bound)


def negative_kernel(call: Call, args: tuple[Compiled, ...], operation: Callable[[Ints], Ints]) -> Native | None:
    """``-a`` or ``abs(a)``."""
    bounds = storage_bounds(call.type)
    if bounds is None:
        return None
    low, high = bounds

    def kernel(a: Cells) -> Cells:
        values = operation(a.values)
        if a.bound <= high:
            return Cells(values, None, a.bound)
        lowest = a.values == low
        return Cells(values, None, a.bound, lowest if any_of(lowest) else None)

    return Native(kernel, can_fail=args[0].bound > high, bound=args[0].bound)


def _bitwise(operation: Callable[..., Any]) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
        if not is_integral(call.type) or not _have_type(args, call.type):
            return None
        bound = type_bound(call.type)
        return Native(lambda *cells: Cells(operation(*[c.values for c in cells]), None, bound), bound=bound)

    return build


def _shift(operation: Callable[[Ints, Ints], Ints], is_unsigned: bool) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
        t = call.type
        if not is_integral(t) or args[0].type != t or not is_integral(args[1].type):
            return None
        width = 64 if t == INT64 else 32
        mask = np.uint64(2**width - 1)
        bound = type_bound(t)

        def kernel(a: Cells, by: Cells) -> Cells:
            distance = by.values % width
            if is_unsigned:
                bits = a.values.astype(np.int64).view(np.uint64) & mask
                values = (bits >> distance.astype(np.uint64)).view(np.int64)
            else:
                values = operation(a.values, distance)
            return Cells(values if t == INT64 else values.astype(_STORED[t]).astype(np.int64), None, bound)

        return Native(kernel, bound=bound)

    return build


def _bit_count(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if not is_integral(args[0].type) and args[0].type != BOOLEAN:
        return None
    return Native(
        lambda a: Cells(np.bitwise_count(a.values.astype(np.int64).view(np.uint64)).astype(np.int64), None, 64),
        bound=64,
    )


def _bit_get(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if not is_integral(args[0].type):
        return None
    last = integer_bounds(args[0].type)[1].bit_length()

    def kernel(a: Cells, position: Cells) -> Cells:
        values = (a.values >> (position.values & 63)) & 1
        wrong = outside(position.values, 0, last)
        return Cells(values, None, 1, wrong)

    return Native(kernel, can_fail=True, bound=1)


NATIVE: Final[dict[str, Builder]] = {
    "&": _bitwise(np.bitwise_and),
    "|": _bitwise(np.bitwise_or),
    "^": _bitwise(np.bitwise_xor),
    "~": _bitwise(np.bitwise_not),
    "shiftleft": _shift(np.left_shift, is_unsigned=False),
    "shiftright": _shift(np.right_shift, is_unsigned=False),
    "shiftrightunsigned": _shift(np.right_shift, is_unsigned=True),
    "bit_count": _bit_count,
    "bit_get": _bit_get,
}
