"""CAST between numbers, booleans, dates and timestamps; with text, and of floats to decimals, it is left to the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from everview.backends.embedded.expressions import decimals
from everview.backends.embedded.expressions import wide_vectors as wide
from everview.backends.embedded.expressions.cells import (
    WORD,
    Cells,
    any_of,
    either,
    outside,
    type_bound,
)
from everview.backends.embedded.expressions.floats import rounded_to
from everview.backends.embedded.expressions.integers import truncated_quotient
from everview.backends.embedded.expressions.step import Compiled, Native
from everview.backends.embedded.expressions.timestamps import beyond_safe
from everview.backends.embedded.expressions.zone_offsets import offsets_of
from everview.backends.embedded.vectors import NARROW_PRECISION, Ints
from everview.relational.expressions import Cast
from everview.relational.functions.civil import MICROS_PER_DAY, MICROS_PER_SECOND
from everview.relational.types import (
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
    Null,
    integer_bounds,
    is_floating,
    is_integral,
)

Offer = Native | Compiled | None
_EXACT_DOUBLE: Final = 2**53
_EXACT_POWER: Final = 22
"""10**22 is the last power of ten that is a double."""


def native_cast(cast: Cast, child: Compiled) -> Offer:
    """The kernel of a cast; the child itself where its cells are already right; None where only the definition has it."""
    source, target = cast.child.type, cast.type
    if source == target or isinstance(source, Null):
        return child.retyped(target)
    if target == BOOLEAN:
        return _to_boolean(source)
    if is_integral(target):
        return _to_integer(child, source, target)
    if is_floating(target):
        is_wider = is_floating(source) and target != FLOAT32
        return child.retyped(target) if is_wider else _to_floating(source, target)
    if isinstance(target, Decimal):
        return _to_decimal(child, source, target)
    return _TO_TIME[target](cast, child) if target in _TO_TIME else None


def _to_boolean(source: DataType) -> Offer:
    if isinstance(source, Decimal):
        return Native(lambda a: Cells(a.values != 0 if a.values.ndim == 1 else (a.values != 0).any(axis=1)))
    return Native(lambda a: Cells(a.values != 0)) if is_integral(source) or is_floating(source) else None


def _to_integer(child: Compiled, source: DataType, target: DataType) -> Offer:
    low, high = integer_bounds(target)
    bound = type_bound(target)
    if source == BOOLEAN:
        return Native(lambda a: Cells(a.values.astype(np.int64), None, 1), bound=1)
    if is_integral(source) or source == YEAR_MONTH_INTERVAL:
        if child.bound <= high or type_bound(source) <= bound:
            return child.retyped(target)

        def checked(a: Cells) -> Cells:
            return Cells(a.values, None, min(a.bound, bound), outside(a.values, low, high))

        return Native(checked, can_fail=True, bound=bound)
    if isinstance(source, Decimal):
        return _decimal_to_integer(child, source, target)
    if source == TIMESTAMP:
        return _divided(lambda a: a.values // MICROS_PER_SECOND, low, high)
    if source == DAY_TIME_INTERVAL:
        return _divided(lambda a: truncated_quotient(a.values, np.full(1, MICROS_PER_SECOND)), low, high)
    if not is_floating(source):
        return None

    def from_float(a: Cells) -> Cells:
        whole = np.trunc(a.values)
        odd = ~((whole >= low) & (whole <= min(high, 2**53)) if high < WORD else np.abs(whole) < 9.2e18)
        if any_of(odd):
            return Cells(np.where(odd, 0.0, whole).astype(np.int64), None, bound, odd)
        return Cells(whole.astype(np.int64), None, bound)

    return Native(from_float, can_fail=True, bound=bound)


def _divided(compute: Callable[[Cells], Ints], low: int, high: int) -> Native:
    def kernel(a: Cells) -> Cells:
        values = compute(a)
        return Cells(values, None, high + 1, outside(values, low, high))

    return Native(kernel, can_fail=high < WORD // MICROS_PER_SECOND, bound=high + 1)


def _decimal_to_integer(child: Compiled, source: Decimal, target: DataType) -> Offer:
    low, high = integer_bounds(target)
    unit = 10**source.scale

    def kernel(a: Cells) -> Cells:
        if a.values.ndim == 2:
            whole = wide.truncate_power_of_ten(a.values, source.scale)
            suspects = whole[:, 1] != whole[:, 0] >> 63
            suspects |= (whole[:, 0] < low) | (whole[:, 0] > high)
            return Cells(whole[:, 0].copy(), None, high + 1, suspects if any_of(suspects) else None)
        if source.scale > NARROW_PRECISION:
            return Cells(np.zeros(len(a.values), dtype=np.int64), None, 0)
        values = truncated_quotient(a.values, np.full(1, unit)) if unit > 1 else a.values
        bound = a.bound // unit
        return Cells(values, None, min(bound, high + 1), outside(values, low, high) if bound > high else None)

    static = child.bound // unit
    return Native(kernel, can_fail=static > high, bound=min(static, high + 1))


def _to_floating(source: DataType, target: DataType) -> Offer:
    rounded = rounded_to(target)
    if is_integral(source) or source == BOOLEAN:
        if target == FLOAT32:  # from 64 bits at once: rounding twice would not be the same
            return Native(lambda a: Cells(a.values.astype(np.int64).astype(np.float32).astype(np.float64)))
        return Native(lambda a: Cells(a.values.astype(np.float64)))
    if is_floating(source):
        return Native(lambda a: Cells(a.values.astype(np.float32).astype(np.float64))) if target == FLOAT32 else None
    if source == TIMESTAMP:
        return _time_to_floating(target)
    if not isinstance(source, Decimal):
        return None
    power = 10.0**source.scale
    scale = source.scale

    def from_decimal(a: Cells) -> Cells:
        if a.values.ndim == 2 or scale > _EXACT_POWER:
            return decimals.all_suspects(a, dtype=np.float64)
        # The quotient of two numbers that are doubles is rounded once, so it is the nearest double.
        inexact = outside(a.values, -_EXACT_DOUBLE, _EXACT_DOUBLE) if a.bound > _EXACT_DOUBLE else None
        return Cells(rounded(a.values / power), suspects=inexact)

    return Native(from_decimal)


def _time_to_floating(target: DataType) -> Native:
    rounded = rounded_to(target)

    def kernel(a: Cells) -> Cells:
        return Cells(
            rounded(a.values / float(MICROS_PER_SECOND)), suspects=outside(a.values, -_EXACT_DOUBLE, _EXACT_DOUBLE)
        )

    return Native(kernel)


def _to_decimal(child: Compiled, source: DataType, target: Decimal) -> Offer:
    if isinstance(source, Decimal):
        scale = source.scale
    elif is_integral(source) or source in (BOOLEAN, YEAR_MONTH_INTERVAL):
        scale = 0
    elif source == DAY_TIME_INTERVAL:
        scale = 6
    else:
        return None
    if target.scale == scale and child.bound < 10**target.precision and source != BOOLEAN:
        return child.retyped(target)

    def kernel(a: Cells) -> Cells:
        if source == BOOLEAN:
            a = Cells(a.values.astype(np.int64), None, 1)
        return decimals.rescaled(a, scale, target)

    shift, limit = target.scale - scale, 10**target.precision
    static = child.bound * 10**shift if shift >= 0 else child.bound // 10**-shift + 1
    return Native(kernel, can_fail=static >= limit, bound=min(static, limit - 1))


def _to_date(cast: Cast, child: Compiled) -> Offer:
    if child.type not in (TIMESTAMP, TIMESTAMP_NTZ):
        return None
    zone = offsets_of(cast.zone if child.type == TIMESTAMP else None)

    def kernel(a: Cells) -> Cells:
        local, odd = zone.to_local(a.values)
        return Cells(local // MICROS_PER_DAY, None, 2**31, odd)

    return Native(kernel, bound=2**31)


def _to_timestamp(cast: Cast, child: Compiled) -> Offer:
    zone = offsets_of(cast.zone)
    if is_integral(child.type):
        limit = WORD // MICROS_PER_SECOND
        return Native(lambda a: Cells(a.values * MICROS_PER_SECOND, suspects=outside(a.values, -limit, limit)))
    if child.type == DATE:

        def from_date(a: Cells) -> Cells:
            values, odd = zone.from_local(a.values * MICROS_PER_DAY)
            return Cells(values, suspects=either(odd, outside(a.values, -(2**25), 2**25)))

        return Native(from_date, can_fail=True)
    if child.type != TIMESTAMP_NTZ:
        return None

    def from_local(a: Cells) -> Cells:
        values, odd = zone.from_local(a.values)
        return Cells(values, suspects=either(odd, beyond_safe(a.values)))

    return Native(from_local, can_fail=True)


def _to_timestamp_ntz(cast: Cast, child: Compiled) -> Offer:
    if child.type == DATE:
        far = 2**25
        return Native(lambda a: Cells(a.values * MICROS_PER_DAY, suspects=outside(a.values, -far, far)), can_fail=True)
    if child.type != TIMESTAMP:
        return None
    zone = offsets_of(cast.zone)

    def to_local(a: Cells) -> Cells:
        values, odd = zone.to_local(a.values)
        return Cells(values, suspects=either(odd, beyond_safe(a.values)))

    return Native(to_local, can_fail=True)


_TO_TIME: Final[dict[DataType, Callable[[Cast, Compiled], Offer]]] = {
    DATE: _to_date,
    TIMESTAMP: _to_timestamp,
    TIMESTAMP_NTZ: _to_timestamp_ntz,
}
