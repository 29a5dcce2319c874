"""Decimal arithmetic on unscaled integers: 64 bits where the bounds or the data prove that they suffice, else 128.

A result is computed exactly and rounded half up into its type, as in the definition. What 128 bits cannot hold on the way
(products of two numbers of more than 18 digits, quotients by such numbers) are suspects, and left to the definition.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.expressions import wide_vectors as wide
from everview.backends.embedded.expressions.cells import (
    POWERS,
    UNBOUNDED,
    WORD,
    Cells,
    any_of,
    outside,
    product_fits,
    sum_fits,
    widened,
)
from everview.backends.embedded.expressions.integers import truncated_quotient
from everview.backends.embedded.expressions.step import Compiled, Native
from everview.backends.embedded.vectors import NARROW_PRECISION, AnyArray, Bools, Ints
from everview.relational.types import Decimal

WIDE_BOUND = 2**127
_NEGATED_DIGITS = 34
_FEW = 6


def decimal_types(args: tuple[Compiled, ...]) -> tuple[Decimal, ...] | None:
    """The types of the arguments if all are decimals."""
    types = tuple(a.type for a in args if isinstance(a.type, Decimal))
    return types if len(types) == len(args) else None


def all_suspects(cells: Cells, *others: Cells, dtype: npt.DTypeLike = np.int64) -> Cells:
    """A result that the definition has to compute for every row."""
    count = max([len(cells.values), *(len(c.values) for c in others)])
    if any(len(c.values) == 0 for c in (cells, *others)):
        count = 0
    return Cells(np.zeros(count, dtype), None, UNBOUNDED, np.ones(count, dtype=np.bool_))


def is_small(*cells: Cells) -> bool:
    """Whether there are so few rows that the definition is faster than many operations on small arrays."""
    return max([len(c.values) for c in cells]) <= _FEW


def half_up(values: Ints, digits: int) -> Ints:
    """One-word integers divided by ``10**digits`` (at most 18), rounded half away from zero."""
    return _half_up_quotient(values, np.full(1, 10**digits))


def finish(values: AnyArray, bound: int, dropped: int, precision: int, overflow: Bools | None = None) -> Cells:
    """Rounds away ``dropped`` digits and makes suspects of what then has more digits than the type."""
    limit = POWERS[precision]
    if values.ndim == 2:
        if dropped:
            values = wide.divide_power_of_ten(values, dropped)
        suspects = wide.exceeds(values, precision)
        if overflow is not None:
            suspects |= overflow
        if precision <= NARROW_PRECISION:
            values = np.where(suspects, 0, values[:, 0])
        return Cells(values, None, WIDE_BOUND, suspects if any_of(suspects) else None)
    if dropped > NARROW_PRECISION:
        return finish(widened(Cells(values)), WIDE_BOUND, dropped, precision)
    if dropped:
        values, bound = half_up(values, dropped), bound // POWERS[dropped] + 1
    suspects_or_none = None
    if bound >= limit:
        suspects_or_none = outside(values, 1 - limit, limit - 1)
        bound = limit - 1
    return Cells(values, None, bound, suspects_or_none)


def sum_kernel(result: Decimal, args: tuple[Compiled, ...], sign: int) -> Native | None:
    """``a + b`` or ``a - b``."""
    types = decimal_types(args)
    if types is None:
        return None
    scale = max(t.scale for t in types)
    shifts = [scale - t.scale for t in types]
    factors = [10**s for s in shifts]
    a_factor, b_factor = factors
    dropped = scale - result.scale
    if dropped < 0:
        return None
    operation = np.add if sign > 0 else np.subtract

    def kernel(a: Cells, b: Cells) -> Cells:
        if a.values.ndim == b.values.ndim == 1 and sum_fits(a, a_factor, b, b_factor):
            left = a.values if a_factor == 1 else a.values * a_factor
            right = b.values if b_factor == 1 else b.values * b_factor
            bound = a.bound * a_factor + b.bound * b_factor
            return finish(operation(left, right), bound, dropped, result.precision)
        if is_small(a, b):
            return all_suspects(a, b)
        x, lost_x = wide.multiply_power_of_ten(widened(a), shifts[0])
        y, lost_y = wide.multiply_power_of_ten(widened(b), shifts[1])
        total, overflow = wide.add(x, y if sign > 0 else wide.negate(y))
        return finish(total, WIDE_BOUND, dropped, result.precision, overflow | lost_x | lost_y)

    static = (args[0].bound * factors[0] + args[1].bound * factors[1]) // 10**dropped + (dropped > 0)
    limit = 10**result.precision
    return Native(kernel, can_fail=static >= limit, bound=min(static, limit - 1))


def product_kernel(result: Decimal, args: tuple[Compiled, ...]) -> Native | None:
    """``a * b``."""
    types = decimal_types(args)
    if types is None:
        return None
    dropped = sum(t.scale for t in types) - result.scale
    if dropped < 0:
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        if a.values.ndim == 2:
            a, b = b, a
        if a.values.ndim == 2:
            return all_suspects(a, b)
        if b.values.ndim == 1 and product_fits(a, b):
            return finish(a.values * b.values, a.bound * b.bound, dropped, result.precision)
        if is_small(a, b):
            return all_suspects(a, b)
        product, overflow = wide.multiply(widened(b), a.values)
        return finish(product, WIDE_BOUND, dropped, result.precision, overflow)

    static = args[0].bound * args[1].bound // 10**dropped + (dropped > 0)
    limit = 10**result.precision
    return Native(kernel, can_fail=static >= limit, bound=min(static, limit - 1))


def quotient_kernel(result: Decimal, args: tuple[Compiled, ...]) -> Native | None:
    """``a / b``: the dividend with as many more digits as the result needs, divided by one word."""
    types = decimal_types(args)
    if types is None:
        return None
    digits = result.scale - types[0].scale + types[1].scale
    if digits < 0:
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        if b.values.ndim == 2 or is_small(a, b):
            return all_suspects(a, b)
        zero = b.values == 0
        divisor = np.where(zero, 1, b.values) if any_of(zero) else b.values
        if a.values.ndim == 1 and _extended_fits(a, digits):
            done = finish(_half_up_quotient(a.values * POWERS[digits], divisor), WORD, 0, result.precision)
        else:
            dividend, overflow = wide.multiply_power_of_ten(widened(a), digits)
            done = finish(wide.divide(dividend, divisor), WIDE_BOUND, 0, result.precision, overflow)
        if any_of(zero):
            done.suspects = zero if done.suspects is None else done.suspects | zero
        return done

    return Native(kernel, can_fail=True, bound=10**result.precision - 1)


def _extended_fits(a: Cells, digits: int) -> bool:
    """Whether ``a * 10**digits`` stays within 64 bits."""
    if a.bound * POWERS[digits] > WORD and not a.is_tight:
        a.tighten()
    return a.bound * POWERS[digits] <= WORD and digits <= NARROW_PRECISION


def _half_up_quotient(a: Ints, b: Ints) -> Ints:
    """``a / b`` of words, rounded half away from zero."""
    size, by = np.abs(a), np.abs(b)
    quotient: Ints = size // by
    rest = size - quotient * by
    quotient += rest >= by - rest
    result: Ints = np.where((a < 0) != (b < 0), -quotient, quotient)
    return result


def remainder_kernel(result: Decimal, args: tuple[Compiled, ...], is_positive: bool) -> Native | None:
    """``a % b`` with the sign of a, or ``pmod(a, b)``."""
    types = decimal_types(args)
    if types is None:
        return None
    scale = max(t.scale for t in types)
    factors = [10 ** (scale - t.scale) for t in types]
    dropped = scale - result.scale
    if dropped < 0:
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        if not (a.values.ndim == b.values.ndim == 1 and sum_fits(a, factors[0], b, factors[1])):
            return all_suspects(a, b)
        dividend, divisor = a.values * factors[0], b.values * factors[1]
        zero = divisor == 0
        divisor = np.where(zero, 1, divisor)
        rest = np.fmod(dividend, divisor)
        if is_positive:
            rest = np.where(rest < 0, np.fmod(rest + divisor, divisor), rest)
        done = finish(rest, b.bound * factors[1], dropped, result.precision)
        if any_of(zero):
            done.suspects = zero if done.suspects is None else done.suspects | zero
        return done

    return Native(kernel, can_fail=True, bound=10**result.precision - 1)


def integral_quotient_kernel(args: tuple[Compiled, ...]) -> Native | None:
    """``a div b``, truncated to a bigint."""
    types = decimal_types(args)
    if types is None:
        return None
    scale = max(t.scale for t in types)
    factors = [10 ** (scale - t.scale) for t in types]

    def kernel(a: Cells, b: Cells) -> Cells:
        if not (a.values.ndim == b.values.ndim == 1 and sum_fits(a, factors[0], b, factors[1])):
            return all_suspects(a, b)
        divisor = b.values * factors[1]
        zero = divisor == 0
        values = truncated_quotient(a.values * factors[0], np.where(zero, 1, divisor))
        return Cells(values, None, UNBOUNDED, zero if any_of(zero) else None)

    return Native(kernel, can_fail=True)


def negative_kernel(t: Decimal, arg: Compiled, is_absolute: bool) -> Native:
    """``-a`` or ``abs(a)``; numbers of more than 34 digits, which Spark rounds here, are left to the definition."""

    def kernel(a: Cells) -> Cells:
        if a.values.ndim == 1:
            return Cells(np.abs(a.values) if is_absolute else -a.values, None, a.bound)
        long = wide.exceeds(a.values, _NEGATED_DIGITS)
        values = wide.absolute(a.values) if is_absolute else wide.negate(a.values)
        return Cells(values, None, a.bound, long if any_of(long) else None)

    return Native(kernel, can_fail=t.precision > _NEGATED_DIGITS, bound=arg.bound)


def rescaled(a: Cells, from_scale: int, target: Decimal) -> Cells:
    """The same numbers in another decimal type, rounded half up."""
    more = target.scale - from_scale
    factor = 10 ** max(more, 0)
    if a.values.ndim == 1 and a.bound * factor > WORD and not a.is_tight:
        a.tighten()
    is_narrow = a.values.ndim == 1 and a.bound * factor <= WORD and factor <= WORD
    if more <= 0:
        return finish(a.values if is_narrow else widened(a), a.bound, -more, target.precision)
    if is_narrow:
        return finish(a.values * factor, a.bound * factor, 0, target.precision)
    if is_small(a):
        return all_suspects(a)
    values, overflow = wide.multiply_power_of_ten(widened(a), more)
    return finish(values, WIDE_BOUND, 0, target.precision, overflow)
