"""Functions of timestamps on columns of microseconds: fields of the local time, truncation, differences, sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import WORD, Cells, any_of, either
from everview.backends.embedded.expressions.dates import truncated
from everview.backends.embedded.expressions.step import Builder, Compiled, Native
from everview.backends.embedded.expressions.zone_offsets import ZoneOffsets, offsets_of
from everview.backends.embedded.vectors import Bools, Ints
from everview.relational.expressions import Call
from everview.relational.functions.civil import MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND
from everview.relational.functions.dates import TRUNCATIONS
from everview.relational.types import (
    DAY_TIME_INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Timestamp,
    is_integral,
)

_SAFE: Final = 2**62
"""Sums and differences of times within this are 64-bit integers."""
_CLOCK_UNITS: Final = {
    "MILLISECOND": 1000,
    "SECOND": MICROS_PER_SECOND,
    "MINUTE": MICROS_PER_MINUTE,
    "HOUR": MICROS_PER_HOUR,
    "DAY": MICROS_PER_DAY,
    "DD": MICROS_PER_DAY,
}


def zone_for(call: Call, argument: Compiled) -> ZoneOffsets:
    """The zone through which an argument is seen."""
    return offsets_of(call.zone if isinstance(argument.type, Timestamp) else None)


def is_time(step: Compiled) -> bool:
    """Whether the step yields timestamps of either kind."""
    return step.type in (TIMESTAMP, TIMESTAMP_NTZ)


def beyond_safe(*columns: Ints) -> Bools | None:
    """Where one of the columns is so large that arithmetic could overflow."""
    odd: Bools | None = None
    for values in columns:
        far = (values > _SAFE) | (values < -_SAFE)
        odd = either(odd, far if any_of(far) else None)
    return odd


def _part(of: Callable[[Ints], Ints], bound: int) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
        if not is_time(args[0]):
            return None
        zone = zone_for(call, args[0])

        def kernel(a: Cells) -> Cells:
            local, odd = zone.to_local(a.values)
            return Cells(of(local % MICROS_PER_DAY), None, bound, odd)

        return Native(kernel, bound=bound)

    return build


def _date_trunc(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | Compiled | None:
    form = args[0].literal
    if form is None or form.value is None or args[1].type != TIMESTAMP:
        return None
    unit = form.value.upper()
    zone = offsets_of(call.zone)
    if unit == "MICROSECOND":
        return args[1]
    if unit in ("MILLISECOND", "SECOND"):
        size = _CLOCK_UNITS[unit]
        return Native(lambda _form, a: Cells(a.values - a.values % size, suspects=beyond_safe(a.values)), can_fail=True)
    if unit not in _CLOCK_UNITS and unit not in TRUNCATIONS:
        return None

    def kernel(_form: Cells, a: Cells) -> Cells:
        local, odd = zone.to_local(a.values)
        if unit in _CLOCK_UNITS:
            start = local - local % _CLOCK_UNITS[unit]
        else:
            start = truncated(local // MICROS_PER_DAY, TRUNCATIONS[unit]) * MICROS_PER_DAY
        values, also_odd = zone.from_local(start)
        return Cells(values, suspects=either(beyond_safe(a.values), either(odd, also_odd)))

    return Native(kernel, can_fail=True)


def _subtract(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    if not all(is_time(a) for a in args):
        return None
    zone = zone_for(call, args[0])

    def kernel(a: Cells, b: Cells) -> Cells:
        end, odd = zone.to_local(a.values)
        start, also_odd = zone.to_local(b.values)
        return Cells(end - start, suspects=either(either(odd, also_odd), beyond_safe(end, start)))

    return Native(kernel, can_fail=True)


def _add_interval(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    """A day-time interval moves the clock; where days differ in length its whole days move the calendar first."""
    if not is_time(args[0]) or args[1].type != DAY_TIME_INTERVAL or zone_for(call, args[0]).fixed is None:
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        return Cells(a.values + b.values, suspects=beyond_safe(a.values, b.values))

    return Native(kernel, can_fail=True)


def _since_1970(per: int) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | Compiled | None:
        if not is_time(args[0]):
            return None
        return (
            args[0].retyped(call.type) if per == 1 else Native(lambda a: Cells(a.values // per, None, WORD // per + 1))
        )

    return build


def _from_number(per: int) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | Compiled | None:
        if not is_integral(args[0].type):
            return None
        if per == 1:
            return args[0].retyped(call.type)
        limit = WORD // per

        def kernel(a: Cells) -> Cells:
            far = (a.values > limit) | (a.values < -limit)
            return Cells(a.values * per, suspects=far if any_of(far) else None)

        return Native(kernel, can_fail=args[0].bound > limit)

    return build


def _interval_part(size: int, within: int | None) -> Builder:
    """A field of an interval: of months or microseconds, ``size`` of the unit, cut off toward zero."""

    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native:
        def kernel(a: Cells) -> Cells:
            rest = a.values if within is None else np.fmod(a.values, within)
            return Cells((rest - np.fmod(rest, size)) // size)

        return Native(kernel)

    return build


NATIVE: Final[dict[str, Builder]] = {
    "hour": _part(lambda time: time // MICROS_PER_HOUR, 23),
    "minute": _part(lambda time: time % MICROS_PER_HOUR // MICROS_PER_MINUTE, 59),
    "second": _part(lambda time: time % MICROS_PER_MINUTE // MICROS_PER_SECOND, 59),
    "second_with_fraction": _part(lambda time: time % MICROS_PER_MINUTE, MICROS_PER_MINUTE),
    "date_trunc": _date_trunc,
    "subtract_timestamps": _subtract,
    "timestamp_add_interval": _add_interval,
    "unix_seconds": _since_1970(MICROS_PER_SECOND),
    "unix_millis": _since_1970(1000),
    "unix_micros": _since_1970(1),
    "timestamp_seconds": _from_number(MICROS_PER_SECOND),
    "timestamp_millis": _from_number(1000),
    "timestamp_micros": _from_number(1),
    "interval_years": _interval_part(12, None),
    "interval_months": _interval_part(1, 12),
    "interval_days": _interval_part(MICROS_PER_DAY, None),
    "interval_hours": _interval_part(MICROS_PER_HOUR, MICROS_PER_DAY),
    "interval_minutes": _interval_part(MICROS_PER_MINUTE, MICROS_PER_HOUR),
    "interval_seconds": _interval_part(1, MICROS_PER_MINUTE),
}
