"""Functions of timestamps: parts of the local time, truncation, arithmetic with intervals.

A TIMESTAMP is an instant and is seen through the session time zone of the call; a TIMESTAMP_NTZ is already local, so its
zone is UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as Number
from math import floor
from typing import Any, Final

from everview.relational.expressions import Call
from everview.relational.functions.arithmetic import truncated_quotient
from everview.relational.functions.civil import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    civil_from_days,
    days_in_month,
    plus_months,
)
from everview.relational.functions.dates import TRUNCATIONS, truncated
from everview.relational.functions.failures import datetime_overflow, unsupported
from everview.relational.functions.registry import Nulls, function
from everview.relational.functions.zones import UTC_ZONE, Zone, zone_named, zone_of
from everview.relational.types import (
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT32,
    INT64,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Timestamp,
    YearMonthInterval,
    integer_bounds,
)

Bound = Callable[..., Any]
_LOW, _HIGH = integer_bounds(INT64)


def zone_for(call: Call, argument: int) -> Zone:
    """The zone through which an argument of the call is seen."""
    return zone_of(call) if isinstance(call.args[argument].type, Timestamp) else UTC_ZONE


def checked_micros(micros: int) -> int:
    """The timestamp, if Spark can store it."""
    if _LOW <= micros <= _HIGH:
        return micros
    raise datetime_overflow(f"the timestamp {micros} microseconds from 1970-01-01")


def _part(name: str, of: Callable[[int], Any], result: DataType = INT32) -> None:
    @function(name, result)
    def _bind(call: Call) -> Bound:
        zone = zone_for(call, 0)
        return lambda micros: of(zone.to_local(micros) % MICROS_PER_DAY)


_part("hour", lambda time: time // MICROS_PER_HOUR)
_part("minute", lambda time: time % MICROS_PER_HOUR // MICROS_PER_MINUTE)
_part("second", lambda time: time % MICROS_PER_MINUTE // MICROS_PER_SECOND)
_part("second_with_fraction", lambda time: Number(time % MICROS_PER_MINUTE).scaleb(-6), Decimal(8, 6))


def plus_calendar(micros: int, zone: Zone, days: int = 0, months: int = 0) -> int:
    """The same local time some months and days later; of two such instants, the one with the present offset."""
    offset = zone.offset_at(micros)
    day, time = divmod(micros + offset, MICROS_PER_DAY)
    moved = (plus_months(day, months) if months else day) + days
    return checked_micros(zone.from_local(moved * MICROS_PER_DAY + time, offset))


def plus_micros(micros: int, interval: int, zone: Zone) -> int:
    """A day-time interval later: its whole days move the calendar, the rest the clock."""
    days = truncated_quotient(interval, MICROS_PER_DAY)
    moved = plus_calendar(micros, zone, days=days) if days else micros
    return checked_micros(moved + interval - days * MICROS_PER_DAY)


@function("timestamp_add_interval", lambda args: args[0])
def _add_interval(call: Call) -> Bound:
    """A timestamp and an interval of either kind."""
    zone = zone_for(call, 0)
    if isinstance(call.args[1].type, YearMonthInterval):
        return lambda micros, months: plus_calendar(micros, zone, months=months)
    return lambda micros, interval: plus_micros(micros, interval, zone)


@function("subtract_timestamps", DAY_TIME_INTERVAL)
def _subtract(call: Call) -> Bound:
    zone = zone_for(call, 0)  # the difference of local times: a day stays 24 hours long across a clock change
    return lambda end, start: checked_micros(zone.to_local(end) - zone.to_local(start))


CLOCK_UNITS: Final = {
    "MILLISECOND": 1000,
    "SECOND": MICROS_PER_SECOND,
    "MINUTE": MICROS_PER_MINUTE,
    "HOUR": MICROS_PER_HOUR,
    "DAY": MICROS_PER_DAY,
    "DD": MICROS_PER_DAY,
}


@function("date_trunc", TIMESTAMP, Nulls.STRICT_OR_NULL)
def _date_trunc(call: Call) -> Bound:
    zone = zone_of(call)

    def trunc(form: str, micros: int) -> int | None:
        unit = form.upper()
        if unit == "MICROSECOND":
            return micros
        if unit in ("MILLISECOND", "SECOND"):
            return checked_micros(micros - micros % CLOCK_UNITS[unit])
        offset = zone.offset_at(micros)
        local = micros + offset
        if unit in CLOCK_UNITS:
            return checked_micros(zone.from_local(local - local % CLOCK_UNITS[unit], offset))
        if unit in TRUNCATIONS:
            return checked_micros(zone.start_of_day(truncated(local // MICROS_PER_DAY, TRUNCATIONS[unit])))
        return None

    return trunc


@function("months_between", FLOAT64)
def _months_between(call: Call) -> Bound:
    zone = zone_of(call)

    def split(micros: int) -> tuple[int, int, bool, int]:
        day = zone.to_local(micros) // MICROS_PER_DAY
        year, month, of_month = civil_from_days(day)
        seconds = truncated_quotient(micros - zone.start_of_day(day), MICROS_PER_SECOND)
        return year * 12 + month, of_month, of_month == days_in_month(year, month), seconds

    def between(end: int, start: int, is_rounded: bool = True) -> float:
        end_month, end_day, end_is_last, end_seconds = split(end)
        start_month, start_day, start_is_last, start_seconds = split(start)
        months = float(end_month - start_month)
        if end_day == start_day or (end_is_last and start_is_last):
            return months
        seconds = (end_day - start_day) * 86_400 + end_seconds - start_seconds
        difference = months + seconds / (31 * 86_400.0)
        return floor(difference * 1e8 + 0.5) / 1e8 if is_rounded else difference

    return between


@function("from_utc_timestamp", TIMESTAMP)
def _from_utc(call: Call) -> Bound:
    return lambda micros, zone: checked_micros(zone_named(zone).to_local(micros))


@function("to_utc_timestamp", TIMESTAMP)
def _to_utc(call: Call) -> Bound:
    return lambda micros, zone: checked_micros(zone_named(zone).from_local(micros))


@function("convert_timezone", TIMESTAMP_NTZ)
def _convert_timezone(call: Call) -> Bound:
    def convert(source: str, target: str, local: int) -> int:
        return checked_micros(zone_named(target).to_local(zone_named(source).from_local(local)))

    return convert


_ADDED_UNITS: Final = CLOCK_UNITS | {"MICROSECOND": 1, "WEEK": 7 * MICROS_PER_DAY, "DAYOFYEAR": MICROS_PER_DAY}
_MONTH_UNITS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


@function("timestampadd", lambda args: args[2])
def _timestamp_add(call: Call) -> Bound:
    zone = zone_for(call, 2)

    def add(unit: str, quantity: int, micros: int) -> int:
        if unit in _MONTH_UNITS:
            return plus_calendar(micros, zone, months=quantity * _MONTH_UNITS[unit])
        if unit not in _ADDED_UNITS:
            raise unsupported(f"timestampadd with unit {unit} is not supported.", "timestampadd")
        added = quantity * _ADDED_UNITS[unit]
        if _ADDED_UNITS[unit] < MICROS_PER_DAY:
            return checked_micros(micros + added)
        return plus_micros(micros, added, zone)

    return add


@function("timestampdiff", INT64)
def _timestamp_difference(call: Call) -> Bound:
    zone = zone_for(call, 1)

    def difference(unit: str, start: int, end: int) -> int:
        first, last = zone.to_local(start), zone.to_local(end)
        if unit in _MONTH_UNITS:
            return truncated_quotient(whole_months(first, last), _MONTH_UNITS[unit])
        if unit not in _ADDED_UNITS:
            raise unsupported(f"timestampdiff with unit {unit} is not supported.", "timestampdiff")
        return truncated_quotient(last - first, _ADDED_UNITS[unit])

    return difference


def whole_months(start: int, end: int) -> int:
    """The number of whole months from one local time to another."""
    (first_day, first_time), (last_day, last_time) = divmod(start, MICROS_PER_DAY), divmod(end, MICROS_PER_DAY)
    (y1, m1, d1), (y2, m2, d2) = civil_from_days(first_day), civil_from_days(last_day)
    months = (y2 - y1) * 12 + m2 - m1
    if months > 0 and (d2, last_time) < (d1, first_time):
        return months - 1
    return months + 1 if months < 0 and (d2, last_time) > (d1, first_time) else months
