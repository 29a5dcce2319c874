"""Intervals: products and quotients with numbers, their fields, and making them. Sums are in ``arithmetic``."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP
from decimal import Decimal as Number
from typing import Any

from everview.errors import EvaluationError
from everview.relational.expressions import Call
from everview.relational.functions.arithmetic import truncated_quotient, truncated_remainder
from everview.relational.functions.civil import MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND
from everview.relational.functions.decimals import CONTEXT
from everview.relational.functions.failures import interval_overflow
from everview.relational.functions.registry import function
from everview.relational.types import (
    DAY_TIME_INTERVAL,
    INT8,
    INT32,
    INT64,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
    Value,
    YearMonthInterval,
    integer_bounds,
    is_integral,
)

Bound = Callable[..., Any]


def checked_interval(value: int, t: DataType) -> int:
    """The interval, if Spark can store it."""
    low, high = integer_bounds(INT32 if isinstance(t, YearMonthInterval) else INT64)
    if low <= value <= high:
        return value
    raise interval_overflow(str(value))


def _rounded(value: Number | float, t: DataType) -> int:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise interval_overflow(str(value))
        # Exact in decimal, so that halves are seen as halves.
        return checked_interval(int(Number(value).quantize(Number(1), ROUND_HALF_UP, CONTEXT)), t)
    return checked_interval(int(value.quantize(Number(1), ROUND_HALF_UP, CONTEXT)), t)


@function("multiply_interval", lambda args: args[0])
def _multiply(call: Call) -> Bound:
    t, number = call.type, call.args[1].type
    if is_integral(number):
        return lambda interval, factor: checked_interval(interval * factor, t)
    if isinstance(number, Decimal):
        return lambda interval, factor: _rounded(CONTEXT.multiply(Number(interval), factor), t)
    return lambda interval, factor: _rounded(float(interval) * factor, t)


def _half_up_quotient(a: int, b: int) -> int:
    quotient, rest = divmod(abs(a), abs(b))
    quotient += 2 * rest >= abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@function("divide_interval", lambda args: args[0])
def _divide(call: Call) -> Bound:
    t, number = call.type, call.args[1].type

    def divide(interval: int, divisor: Value) -> int:
        if divisor == 0:
            raise EvaluationError(
                "an interval is divided by zero.",
                condition="INTERVAL_DIVIDED_BY_ZERO",
                hint="try_divide gives NULL instead.",
            )
        if is_integral(number):
            return checked_interval(_half_up_quotient(interval, divisor), t)
        if isinstance(number, Decimal):
            return _rounded(CONTEXT.divide(Number(interval), divisor), t)
        return _rounded(interval / divisor, t)

    return divide


@function("interval_years", INT32)
def _years(call: Call) -> Bound:
    return lambda months: truncated_quotient(months, 12)


@function("interval_months", INT8)
def _months(call: Call) -> Bound:
    return lambda months: truncated_remainder(months, 12)


@function("interval_days", INT32)
def _days(call: Call) -> Bound:
    return lambda micros: truncated_quotient(micros, MICROS_PER_DAY)


@function("interval_hours", INT8)
def _hours(call: Call) -> Bound:
    return lambda micros: truncated_quotient(truncated_remainder(micros, MICROS_PER_DAY), MICROS_PER_HOUR)


@function("interval_minutes", INT8)
def _minutes(call: Call) -> Bound:
    return lambda micros: truncated_quotient(truncated_remainder(micros, MICROS_PER_HOUR), MICROS_PER_MINUTE)


@function("interval_seconds", Decimal(8, 6))
def _seconds(call: Call) -> Bound:
    return lambda micros: Number(truncated_remainder(micros, MICROS_PER_MINUTE)).scaleb(-6)


@function("make_ym_interval", YEAR_MONTH_INTERVAL)
def _make_year_month(call: Call) -> Bound:
    return lambda years=0, months=0: checked_interval(years * 12 + months, YEAR_MONTH_INTERVAL)


@function("make_dt_interval", DAY_TIME_INTERVAL)
def _make_day_time(call: Call) -> Bound:
    def make(days: int = 0, hours: int = 0, minutes: int = 0, seconds: Number | None = None) -> int:
        clock = int((seconds or Number(0)).scaleb(6)) + minutes * MICROS_PER_MINUTE + hours * MICROS_PER_HOUR
        return checked_interval(days * 24 * 60 * 60 * MICROS_PER_SECOND + clock, DAY_TIME_INTERVAL)

    return make
