"""Dates, timestamps and intervals as text: what CAST reads from a string, and what it writes.

Reading takes Spark's forms and no other: ``[+-]yyyy[-m[-d]]``, then for timestamps ``[ |T]h[:m[:s[.fraction]]]`` and a zone
after the seconds. Readers return None for a string that spells no value.
"""

from __future__ import annotations

import re
from typing import Final

from everview.errors import EvaluationError
from everview.relational.functions.civil import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    civil_from_days,
    days_from_civil,
    is_valid_date,
)
from everview.relational.functions.zones import Zone, zone_named
from everview.relational.types import INT32, INT64, integer_bounds

TRIMMED: Final = "".join(map(chr, range(0x21))) + "".join(map(chr, range(0x7F, 0xA0)))
"""What Spark takes off both ends of a string before it reads a value: white space and control characters."""

_DATE: Final = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_CLOCK: Final = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?"
_TIMESTAMP: Final = re.compile(
    rf"([+-]?)([0-9]{{4,6}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_CLOCK})?)?)?", re.DOTALL
)
_TIME_ONLY: Final = re.compile(rf"(?:T{_CLOCK}|[0-9]{{1,2}}:.*)", re.DOTALL)
_YEAR_MONTH: Final = re.compile(
    r"([+-]?)(?:INTERVAL\s+([+-]?)'\s*)?([+-]?)(\d+)-(\d{1,2})\s*(?:'\s+YEAR\s+TO\s+MONTH)?", re.IGNORECASE
)
_DAY_TIME: Final = re.compile(
    r"(?:INTERVAL\s+([+-]?)'\s*)?([+-]?)(\d+)[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?\s*(?:'\s+DAY\s+TO\s+SECOND)?",
    re.IGNORECASE,
)


def _date(sign: str, year: str, month: str | None, day: str | None) -> int | None:
    number = -int(year) if sign == "-" else int(year)
    parts = (number, int(month or 1), int(day or 1))
    return days_from_civil(*parts) if is_valid_date(*parts) else None


def read_date(text: str) -> int | None:
    """The day that a string spells.

    >>> read_date(" 1970-1-2 ")
    1
    """
    found = _DATE.fullmatch(text.strip(TRIMMED))
    if found is None:
        return None
    day = _date(found[1], found[2], found[3], found[4])
    low, high = integer_bounds(INT32)
    return day if day is not None and low <= day <= high else None


def read_timestamp(text: str, zone: Zone | None) -> int | None:
    """The instant that a string spells, in ``zone`` where it names none; without a zone, the local time it spells."""
    trimmed = text.strip(TRIMMED)
    found = _TIMESTAMP.fullmatch(trimmed)
    if found is None:
        if zone is not None and _TIME_ONLY.fullmatch(trimmed):
            raise EvaluationError(
                f"{text!r} is a time of day without a date; which timestamp it means depends on the day it is read.",
                condition="CAST_INVALID_INPUT",
                hint="add the date to the string.",
            )
        return None
    sign, year, month, day, hour, minute, second, fraction, zone_text = found.groups()
    date = _date(sign, year, month, day)
    clock = tuple(int(part or 0) for part in (hour, minute, second))
    if date is None or clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return None
    time = clock[0] * MICROS_PER_HOUR + clock[1] * MICROS_PER_MINUTE + clock[2] * MICROS_PER_SECOND
    local = date * MICROS_PER_DAY + time + int((fraction or "")[:6].ljust(6, "0"))
    try:
        named = zone_named(zone_text.strip()) if zone_text and zone_text.strip() else zone
    except EvaluationError:
        return None
    micros = local if zone is None or named is None else named.from_local(local)
    low, high = integer_bounds(INT64)
    return micros if low <= micros <= high else None


def _year_text(year: int) -> str:
    if year < 0:
        return f"-{-year:04d}"
    return f"{year:04d}" if year <= 9999 else f"+{year}"


def date_text(day: int) -> str:
    """A date as Spark writes it.

    >>> date_text(0)
    '1970-01-01'
    """
    year, month, of_month = civil_from_days(day)
    return f"{_year_text(year)}-{month:02d}-{of_month:02d}"


def timestamp_text(local: int) -> str:
    """A local time as Spark writes it, without trailing zeros.

    >>> timestamp_text(500_000)
    '1970-01-01 00:00:00.5'
    """
    day, time = divmod(local, MICROS_PER_DAY)
    return f"{date_text(day)} {_clock_text(time)}"


def _clock_text(time: int) -> str:
    hours, rest = divmod(time, MICROS_PER_HOUR)
    minutes, rest = divmod(rest, MICROS_PER_MINUTE)
    seconds, micros = divmod(rest, MICROS_PER_SECOND)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def year_month_text(months: int) -> str:
    """A year-month interval as Spark writes it."""
    years, rest = divmod(abs(months), 12)
    return f"INTERVAL '{'-' if months < 0 else ''}{years}-{rest}' YEAR TO MONTH"


def day_time_text(micros: int) -> str:
    """A day-time interval as Spark writes it."""
    days, time = divmod(abs(micros), MICROS_PER_DAY)
    return f"INTERVAL '{'-' if micros < 0 else ''}{days} {_clock_text(time)}' DAY TO SECOND"


def read_year_month(text: str) -> int | None:
    """The months that ``[+-]y-m`` spells, bare or as an interval literal."""
    found = _YEAR_MONTH.fullmatch(text.strip(TRIMMED))
    if found is None or int(found[5]) > 11:
        return None
    months = int(found[4]) * 12 + int(found[5])
    return -months if [found[1], found[2], found[3]].count("-") % 2 else months


def read_day_time(text: str) -> int | None:
    """The microseconds that ``[+-]d h:m:s.fraction`` spells, bare or as an interval literal."""
    found = _DAY_TIME.fullmatch(text.strip(TRIMMED))
    if found is None:
        return None
    days, hours, minutes, seconds = (int(found[i]) for i in range(3, 7))
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    clock = hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE + seconds * MICROS_PER_SECOND
    micros = days * MICROS_PER_DAY + clock + int((found[7] or "")[:6].ljust(6, "0"))
    return -micros if (found[1] == "-") != (found[2] == "-") else micros
