"""Functions of dates: their parts, and arithmetic with days and months."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from everview.errors import EvaluationError
from everview.relational.expressions import Call
from everview.relational.functions.arithmetic import wrapped
from everview.relational.functions.civil import (
    DAY_NAMES,
    MICROS_PER_DAY,
    MONTH_NAMES,
    civil_from_days,
    day_of_year,
    days_from_civil,
    days_in_month,
    is_valid_date,
    iso_week,
    plus_months,
    weekday,
)
from everview.relational.functions.failures import arithmetic_overflow, attempting, interval_overflow
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import DATE, DAY_TIME_INTERVAL, INT32, INT64, STRING, integer_bounds

Bound = Callable[..., Any]
_LOW, _HIGH = integer_bounds(INT32)
_LEAST_MICROS, _MOST_MICROS = integer_bounds(INT64)
_LAST_YEAR: Final = 999_999_999  # of java.time


def _part(name: str, of: Callable[[int], int]) -> None:
    @function(name, INT32)
    def _bind(call: Call) -> Bound:
        return of


_part("year", lambda day: civil_from_days(day)[0])
_part("quarter", lambda day: (civil_from_days(day)[1] + 2) // 3)
_part("month", lambda day: civil_from_days(day)[1])
_part("day", lambda day: civil_from_days(day)[2])
_part("dayofyear", day_of_year)
_part("dayofweek", lambda day: (weekday(day) + 1) % 7 + 1)
_part("weekday", weekday)
_part("weekofyear", lambda day: iso_week(day)[1])
_part("yearofweek", lambda day: iso_week(day)[0])
_part("unix_date", lambda day: day)


@function("date_from_unix_date", DATE)
def _date_from_unix_date(call: Call) -> Bound:
    return lambda day: day


@function("dayname", STRING)
def _day_name(call: Call) -> Bound:
    return lambda day: DAY_NAMES[weekday(day)][:3]


@function("monthname", STRING)
def _month_name(call: Call) -> Bound:
    return lambda day: MONTH_NAMES[civil_from_days(day)[1] - 1][:3]


@function("date_add", DATE)
def _date_add(call: Call) -> Bound:
    return lambda day, days: wrapped(day + days, INT32)  # Spark does not check this sum


@function("date_sub", DATE)
def _date_sub(call: Call) -> Bound:
    return lambda day, days: wrapped(day - days, INT32)


@function("datediff", INT32)
def _date_difference(call: Call) -> Bound:
    return lambda end, start: wrapped(end - start, INT32)


@function("subtract_dates", DAY_TIME_INTERVAL)
def _subtract_dates(call: Call) -> Bound:
    def subtract(end: int, start: int) -> int:
        micros = (end - start) * MICROS_PER_DAY
        if not _LEAST_MICROS <= micros <= _MOST_MICROS:
            raise interval_overflow(f"{end} - {start} days")
        return micros

    return subtract


def checked_day(day: int) -> int:
    """The day, if Spark can store it."""
    if _LOW <= day <= _HIGH:
        return day
    raise arithmetic_overflow(f"the date of day {day} since 1970-01-01")


@function("add_months", DATE)
def _add_months(call: Call) -> Bound:
    return lambda day, months: checked_day(plus_months(day, months))


@function("date_add_interval", DATE)
def _date_add_interval(call: Call) -> Bound:
    """A date and a year-month interval."""
    return lambda day, months: checked_day(plus_months(day, months))


@function("last_day", DATE)
def _last_day(call: Call) -> Bound:
    def last(day: int) -> int:
        year, month, of_month = civil_from_days(day)
        return day + days_in_month(year, month) - of_month

    return last


_WEEKDAYS: Final = {
    form: i for i, name in enumerate(DAY_NAMES) for form in (name.upper(), name[:3].upper(), name[:2].upper())
}


@function("next_day", DATE)
def _next_day(call: Call) -> Bound:
    def following(day: int, name: str) -> int:
        wanted = _WEEKDAYS.get(name.upper())
        if wanted is None:
            raise EvaluationError(f"{name!r} is not a day of the week.", condition="ILLEGAL_DAY_OF_WEEK")
        return day + 1 + (wanted - weekday(day) - 1) % 7

    return following


TRUNCATIONS: Final = {
    "WEEK": "week",
    "MON": "month",
    "MONTH": "month",
    "MM": "month",
    "QUARTER": "quarter",
    "YEAR": "year",
    "YYYY": "year",
    "YY": "year",
}


def truncated(day: int, unit: str) -> int:
    """The first day of the week, month, quarter or year."""
    if unit == "week":
        return day - weekday(day)
    year, month, _ = civil_from_days(day)
    first_month = {"month": month, "quarter": (month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return days_from_civil(year, first_month, 1)


@function("trunc", DATE, Nulls.STRICT_OR_NULL)
def _trunc(call: Call) -> Bound:
    def trunc(day: int, form: str) -> int | None:
        unit = TRUNCATIONS.get(form.upper())
        return None if unit is None else truncated(day, unit)

    return trunc


def date_of(year: int, month: int, day: int) -> int:
    """The day number of a date that a user gave."""
    if abs(year) > _LAST_YEAR or not is_valid_date(year, month, day):
        raise EvaluationError(f"there is no date {year}-{month}-{day}.", condition="DATETIME_FIELD_OUT_OF_BOUNDS")
    return checked_day(days_from_civil(year, month, day))


@function("make_date", DATE)
def _make_date(call: Call) -> Bound:
    return date_of


@function("try_make_date", DATE, Nulls.STRICT_OR_NULL)
def _try_make_date(call: Call) -> Bound:
    return attempting(date_of)
