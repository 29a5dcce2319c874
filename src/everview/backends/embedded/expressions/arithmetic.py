"""``+ - * / div % pmod``, negation, absolute value and rounding: by the type of the operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import decimals, floats, integers
from everview.backends.embedded.expressions.cells import WORD, Cells, any_of
from everview.backends.embedded.expressions.step import Builder, Compiled, Native
from everview.backends.embedded.vectors import NARROW_PRECISION, Ints
from everview.relational.expressions import Call
from everview.relational.types import INT64, Decimal, is_floating, is_integral


def _sum(sign: int) -> Builder:
    operation = np.add if sign > 0 else np.subtract

    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
        if isinstance(call.type, Decimal):
            return decimals.sum_kernel(call.type, args, sign)
        if is_floating(call.type):
            return floats.ring_kernel(call, args, operation)
        return integers.sum_kernel(call, args, sign)

    return build


def _product(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if isinstance(call.type, Decimal):
        return decimals.product_kernel(call.type, args)
    if is_floating(call.type):
        return floats.ring_kernel(call, args, np.multiply)
    return integers.product_kernel(call, args)


def _quotient(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if isinstance(call.type, Decimal):
        return decimals.quotient_kernel(call.type, args)
    return floats.quotient_kernel(args)


def _integral_quotient(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    return integers.quotient_kernel(args) or decimals.integral_quotient_kernel(args)


def _remainder(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if isinstance(call.type, Decimal):
        return decimals.remainder_kernel(call.type, args, is_positive=False)
    return floats.remainder_kernel(args) if is_floating(call.type) else integers.remainder_kernel(call, args)


def _positive_remainder(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if isinstance(call.type, Decimal):
        return decimals.remainder_kernel(call.type, args, is_positive=True)
    return None if is_floating(call.type) else integers.positive_remainder_kernel(call, args)


def _negative(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if isinstance(call.type, Decimal):
        return decimals.negative_kernel(call.type, args[0], is_absolute=False)
    if is_floating(call.type):
        return Native(lambda a: Cells(-a.values))
    return integers.negative_kernel(call, args, np.negative)


def _absolute(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if isinstance(call.type, Decimal):
        return decimals.negative_kernel(call.type, args[0], is_absolute=True)
    if is_floating(call.type):
        return Native(lambda a: Cells(np.abs(a.values)))
    return integers.negative_kernel(call, args, np.abs)


def _trying(build: Builder) -> Builder:
    """The ``try_`` form: it never fails, and the definition turns its suspects into NULLs."""

    def attempt(call: Call, args: tuple[Compiled, ...], dictionary: Dictionary) -> Native | Compiled | None:
        native = build(call, args, dictionary)
        return Native(native.kernel, bound=native.bound) if isinstance(native, Native) else native

    return attempt


def _dividing(values: Ints, digits: int, mode: str) -> Ints:
    """One-word integers divided by ``10**digits`` and rounded."""
    if mode == "half up":
        return decimals.half_up(values, digits)
    unit = 10**digits
    quotient: Ints = (-values if mode == "ceiling" else values) // unit
    if mode == "half even":
        twice = 2 * (values - quotient * unit)
        quotient += (twice > unit) | ((twice == unit) & (quotient & 1 == 1))
    return -quotient if mode == "ceiling" else quotient


def _rounding(mode: str) -> Builder:
    """ROUND, BROUND, FLOOR, CEIL of decimals, and of what is whole already; floats go through their digits."""

    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | Compiled | None:
        places = 0
        if len(args) == 2:
            literal = args[1].literal
            if literal is None or literal.value is None:
                return None
            places = literal.value
        source = args[0].type
        if isinstance(source, Decimal) and isinstance(call.type, Decimal):
            return _round_decimal(args[0], call.type, places, mode)
        if is_integral(source) and source == call.type:
            return args[0] if places >= 0 else None
        if call.type != INT64 or len(args) != 1:
            return None
        if is_integral(source):
            return args[0].retyped(INT64)
        return Native(_whole(mode), can_fail=True) if is_floating(source) else None

    return build


def _round_decimal(a: Compiled, target: Decimal, places: int, mode: str) -> Native | None:
    assert isinstance(a.type, Decimal)
    kept = min(places, target.scale, a.type.scale)
    dropped, padding = a.type.scale - kept, target.scale - kept
    if dropped > NARROW_PRECISION or padding > NARROW_PRECISION:
        return None
    unit, limit = 10**padding, 10**target.precision

    def bound_of(bound: int) -> int:
        return int((bound // 10**dropped + 1) * unit)

    def kernel(a: Cells, *_places: Cells) -> Cells:
        if a.values.ndim == 1 and bound_of(a.bound) > WORD and not a.is_tight:
            a.tighten()
        if a.values.ndim == 2 or bound_of(a.bound) > WORD:
            return decimals.all_suspects(a)
        values = _dividing(a.values, dropped, mode) if dropped else a.values
        return decimals.finish(values * unit, bound_of(a.bound), 0, target.precision)

    return Native(kernel, can_fail=bound_of(a.bound) >= limit, bound=min(bound_of(a.bound), limit - 1))


def _whole(mode: str) -> Callable[[Cells], Cells]:
    """FLOOR or CEIL of floats as a bigint; NaN, infinities and what is near the ends are left to the definition."""
    operation = np.floor if mode == "floor" else np.ceil

    def kernel(a: Cells) -> Cells:
        values = operation(a.values)
        odd = ~(np.abs(values) < 9.2e18)
        if not any_of(odd):
            return Cells(values.astype(np.int64))
        return Cells(np.where(odd, 0.0, values).astype(np.int64), suspects=odd)

    return kernel


NATIVE: Final[dict[str, Builder]] = {
    "+": _sum(1),
    "-": _sum(-1),
    "*": _product,
    "/": _quotient,
    "div": _integral_quotient,
    "%": _remainder,
    "pmod": _positive_remainder,
    "negative": _negative,
    "abs": _absolute,
    "try_add": _trying(_sum(1)),
    "try_subtract": _trying(_sum(-1)),
    "try_multiply": _trying(_product),
    "try_divide": _trying(_quotient),
    "try_mod": _trying(_remainder),
    "round": _rounding("half up"),
    "bround": _rounding("half even"),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceiling"),
}
