"""Decimal arithmetic on unscaled integers: 64 bits where the bounds or the data prove that they suffice, else 128.

A result is computed exactly and rounded half up into its type, as in the definition. What 128 bits cannot hold on the way
(products of two numbers of more than 18 digits, quotients by such numbers) are suspects, and left to the definition.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.expressions import wide_vectors as wide
from everview.backends.embedded.expressions.cells import (
    UNBOUNDED,
    WORD,
    Cells,
    any_of,
    magnitude,
    narrowed,
    outside,
    product_fits,
    sum_fits,
    widened,
)
from everview.backends.embedded.expressions.integers import truncated_quotient
from everview.backends.embedded.expressions.step import Native, Step
from everview.backends.embedded.vectors import NARROW_PRECISION, Bools, Ints, Values
from everview.relational.types import Decimal

WIDE_BOUND = 2**127


def decimal_types(args: tuple[Step, ...]) -> tuple[Decimal, ...] | None:
    """The types of the arguments if all are decimals."""
    types = tuple(a.type for a in args if isinstance(a.type, Decimal))
    return types if len(types) == len(args) else None


def all_suspects(cells: Cells, *others: Cells) -> Cells:
    """A result that the definition has to compute for every row."""
    count = max([len(cells.values), *(len(c.values) for c in others)])
    if any(len(c.values) == 0 for c in (cells, *others)):
        count = 0
    return Cells(np.zeros(count, dtype=np.int64), None, UNBOUNDED, np.ones(count, dtype=np.bool_))


def half_up(values: Ints, digits: int) -> Ints:
    """One-word integers divided by ``10**digits`` (at most 18), rounded half away from zero."""
    unit = 10**digits
    size = np.abs(values)
    quotient = size // unit
    rest = size - quotient * unit
    quotient += rest >= unit - rest
    return np.where(values < 0, -quotient, quotient)


def finish(values: Values, bound: int, dropped: int, precision: int, overflow: Bools | None = None) -> Cells:
    """Rounds away ``dropped`` digits and makes suspects of what then has more digits than the type."""
    limit = 10**precision
    if values.ndim == 2:
        if dropped:
            values = wide.divide_power_of_ten(values, dropped)
        suspects = wide.exceeds(values, precision)
        if overflow is not None:
            suspects |= overflow
        return Cells(values, None, WIDE_BOUND, suspects if any_of(suspects) else None)
    if dropped > NARROW_PRECISION:
        return finish(widened(Cells(values)), WIDE_BOUND, dropped, precision)
    if dropped:
        values, bound = half_up(values, dropped), bound // 10**dropped + 1
    suspects_or_none = None
    if bound >= limit:
        suspects_or_none = outside(values, 1 - limit, limit - 1)
        bound = limit - 1
    return Cells(values, None, bound, suspects_or_none)


def _is_narrow(*cells: Cells) -> bool:
    return all(c.values.ndim == 1 for c in cells)


def sum_kernel(result: Decimal, args: tuple[Step, ...], sign: int) -> Native | None:
    """``a + b`` or ``a - b``."""
    types = decimal_types(args)
    if types is None:
        return None
    scale = max(t.scale for t in types)
    shifts = [scale - t.scale for t in types]
    factors = [10**s for s in shifts]
    dropped = scale - result.scale
    if dropped < 0:
        return None
    operation = np.add if sign > 0 else np.subtract

    def kernel(a: Cells, b: Cells) -> Cells:
        if _is_narrow(a, b) and sum_fits(a, factors[0], b, factors[1]):
            left = a.values if shifts[0] == 0 else a.values * factors[0]
            right = b.values if shifts[1] == 0 else b.values * factors[1]
            bound = a.bound * factors[0] + b.bound * factors[1]
            return finish(operation(left, right), bound, dropped, result.precision)
        x, lost_x = wide.multiply_power_of_ten(widened(a), shifts[0])
        y, lost_y = wide.multiply_power_of_ten(widened(b), shifts[1])
        total, overflow = wide.add(x, y if sign > 0 else wide.negate(y))
        return finish(total, WIDE_BOUND, dropped, result.precision, overflow | lost_x | lost_y)

    static = (args[0].bound * factors[0] + args[1].bound * factors[1]) // 10**dropped + (dropped > 0)
    limit = 10**result.precision
    return Native(kernel, can_fail=static >= limit, bound=min(static, limit - 1))


def product_kernel(result: Decimal, args: tuple[Step, ...]) -> Native | None:
    """``a * b``."""
    types = decimal_types(args)
    if types is None:
        return None
    dropped = sum(t.scale for t in types) - result.scale
    if dropped < 0:
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        if not _is_narrow(a):
            a, b = b, a
        if not _is_narrow(a):
            return all_suspects(a, b)
        if _is_narrow(b) and product_fits(a, b):
            return finish(a.values * b.values, a.bound * b.bound, dropped, result.precision)
        product, overflow = wide.multiply(widened(b), a.values)
        return finish(product, WIDE_BOUND, dropped, result.precision, overflow)

    static = args[0].bound * args[1].bound // 10**dropped + (dropped > 0)
    limit = 10**result.precision
    return Native(kernel, can_fail=static >= limit, bound=min(static, limit - 1))


def quotient_kernel(result: Decimal, args: tuple[Step, ...]) -> Native | None:
    """``a / b``: school division, as many digits at a time as fit a word."""
    types = decimal_types(args)
    if types is None:
        return None
    digits = result.scale - types[0].scale + types[1].scale
    # The definition rounds first to 39 digits; that differs from rounding once only for divisors beyond this.
    largest = min((10 ** (39 - result.scale) - 1) // 2, WORD // 10)

    def kernel(a: Cells, b: Cells) -> Cells:
        if digits < 0 or not _is_narrow(a, b):
            return all_suspects(a, b)
        if b.bound > largest and not b.is_tight:
            b.tighten()
        if b.bound > largest or (a.bound > WORD and outside(a.values, -WORD, WORD) is not None):
            return all_suspects(a, b)
        zero = b.values == 0
        divisor = np.abs(b.values)
        if any_of(zero):
            divisor = np.where(zero, 1, divisor)
        values, bound = _quotient(np.abs(a.values), divisor, max(b.bound, 1), digits)
        negative = (a.values < 0) != (b.values < 0)
        if values.ndim == 2:
            values = np.where(negative[:, None], wide.negate(values), values)
        else:
            values = np.where(negative, -values, values)
        done = finish(values, bound, 0, result.precision)
        if any_of(zero):
            zero = np.broadcast_to(zero, negative.shape)
            done.suspects = zero if done.suspects is None else done.suspects | zero
        return done

    return Native(kernel, can_fail=True, bound=10**result.precision - 1)


def _quotient(a: Ints, b: Ints, b_bound: int, digits: int) -> tuple[Values, int]:
    """``a * 10**digits / b`` of positive numbers, rounded half up, and a bound on it."""
    quotient: Values = a // b
    rest = a - quotient * b
    bound = (magnitude(quotient) + 1) * 10**digits
    if bound > 10**38:
        digits_limit = np.zeros((len(quotient), 2), dtype=np.int64)  # too many digits for any type: a suspect
        digits_limit[:, 1] = WORD
        return digits_limit, WIDE_BOUND
    if bound > WORD:
        quotient = widened(Cells(quotient))
    at_once = len(str(WORD // b_bound)) - 1
    while digits > 0:
        step = min(at_once, digits)
        rest = rest * 10**step
        more = rest // b
        rest = rest - more * b
        quotient = _shifted_sum(quotient, step, more)
        digits -= step
    up = (rest >= b - rest).astype(np.int64)
    return _shifted_sum(quotient, 0, up), bound


def _shifted_sum(quotient: Values, digits: int, more: Ints) -> Values:
    """``quotient * 10**digits + more``."""
    if quotient.ndim == 1:
        return quotient * 10**digits + more
    shifted, _ = wide.multiply_power_of_ten(quotient, digits)
    return wide.add(shifted, widened(Cells(more)))[0]


def remainder_kernel(result: Decimal, args: tuple[Step, ...], is_positive: bool) -> Native | None:
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
        if not (_is_narrow(a, b) and sum_fits(a, factors[0], b, factors[1])):
            return all_suspects(a, b)
        dividend, divisor = a.values * factors[0], b.values * factors[1]
        zero = divisor == 0
        divisor = np.where(zero, 1, divisor)
        rest = np.fmod(dividend, divisor)
        if is_positive:
            rest = np.where(rest < 0, np.fmod(rest + divisor, divisor), rest)
        done = finish(rest, b.bound * factors[1], dropped, result.precision)
        if any_of(zero):
            zero = np.broadcast_to(zero, rest.shape)
            done.suspects = zero if done.suspects is None else done.suspects | zero
        return done

    return Native(kernel, can_fail=True, bound=10**result.precision - 1)


def integral_quotient_kernel(args: tuple[Step, ...]) -> Native | None:
    """``a div b``, truncated to a bigint."""
    types = decimal_types(args)
    if types is None:
        return None
    scale = max(t.scale for t in types)
    factors = [10 ** (scale - t.scale) for t in types]

    def kernel(a: Cells, b: Cells) -> Cells:
        if not (_is_narrow(a, b) and sum_fits(a, factors[0], b, factors[1])):
            return all_suspects(a, b)
        divisor = b.values * factors[1]
        zero = divisor == 0
        values = truncated_quotient(a.values * factors[0], np.where(zero, 1, divisor))
        return Cells(values, None, UNBOUNDED, np.broadcast_to(zero, values.shape) if any_of(zero) else None)

    return Native(kernel, can_fail=True)


def negative(a: Cells) -> Cells:
    """``-a``."""
    return Cells(-a.values if a.values.ndim == 1 else wide.negate(a.values), None, a.bound)


def absolute(a: Cells) -> Cells:
    """``abs(a)``."""
    return Cells(np.abs(a.values) if a.values.ndim == 1 else wide.absolute(a.values), None, a.bound)


def rescaled(a: Cells, from_scale: int, target: Decimal) -> Cells:
    """The same numbers in another decimal type, rounded half up."""
    more = target.scale - from_scale
    if more <= 0:
        return finish(a.values, a.bound, -more, target.precision)
    factor = 10**more
    if a.values.ndim == 1:
        if a.bound * factor > WORD and not a.is_tight:
            a.tighten()
        if a.bound * factor <= WORD:
            return finish(a.values * factor, a.bound * factor, 0, target.precision)
    values, overflow = wide.multiply_power_of_ten(widened(a), more)
    return finish(values, WIDE_BOUND, 0, target.precision, overflow)


def trimmed(cells: Cells) -> Cells:
    """Wide cells in one word where they fit: what follows is then cheaper."""
    if cells.values.ndim == 1:
        return cells
    done = narrowed(Cells(cells.values, cells.nulls, cells.bound))
    done.suspects = cells.suspects
    return done
