"""Timestamps from and to text with a pattern, numbers since 1970, and separate fields."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any, Final

from everview.errors import EvaluationError
from everview.relational.expressions import Call, Literal
from everview.relational.functions.arithmetic import truncated_quotient
from everview.relational.functions.civil import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
)
from everview.relational.functions.dates import date_of
from everview.relational.functions.datetime_patterns import UnknownPatternError, moment, reader, writer
from everview.relational.functions.decimals import CONTEXT
from everview.relational.functions.failures import arithmetic_overflow, attempting, datetime_overflow, unsupported
from everview.relational.functions.registry import Nulls, function
from everview.relational.functions.timestamps import checked_micros
from everview.relational.functions.zones import UTC_ZONE, Zone, zone_named, zone_of
from everview.relational.types import (
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Date,
    Decimal,
    String,
    TimestampNtz,
    Value,
    integer_bounds,
    is_integral,
)

Bound = Callable[..., Any]
_LOW, _HIGH = integer_bounds(INT64)


def _check(call: Call, position: int, compile_pattern: Callable[[str], object]) -> None:
    """Refuses a constant pattern with letters that we do not have."""
    pattern = call.args[position]
    if not isinstance(pattern, Literal) or pattern.value is None:
        return
    try:
        compile_pattern(pattern.value)
    except UnknownPatternError as reason:
        raise unsupported(
            f"the datetime pattern {pattern.value!r} of {call.function} uses {reason}, which is not supported.",
            call.function,
        ) from None


def _compiled(compile_pattern: Callable[[str], Any], pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except UnknownPatternError as reason:
        raise EvaluationError(
            f"the datetime pattern {pattern!r} uses {reason}, which is wrong or not supported.",
            condition="INVALID_DATETIME_PATTERN",
        ) from None


@function("date_format", STRING)
def _date_format(call: Call) -> Bound:
    _check(call, 1, writer)
    zone = zone_of(call)
    return lambda micros, pattern: _compiled(writer, pattern)(moment(micros, zone))


@function("from_unixtime", STRING)
def _from_unixtime(call: Call) -> Bound:
    _check(call, 1, writer)
    zone = zone_of(call)
    return lambda seconds, pattern: _compiled(writer, pattern)(moment(seconds * MICROS_PER_SECOND, zone))


def _parsed(text: str, pattern: str, zone: Zone) -> int:
    micros: int | None = _compiled(reader, pattern)(text, zone)
    if micros is None:
        raise EvaluationError(
            f"{text!r} does not match the datetime pattern {pattern!r}.",
            condition="CANNOT_PARSE_TIMESTAMP",
            hint="try_to_timestamp gives NULL instead.",
        )
    return checked_micros(micros)


def _bind_parse(call: Call) -> Bound:
    _check(call, 1, reader)
    zone = UTC_ZONE if isinstance(call.type, TimestampNtz) else zone_of(call)
    source = call.args[0].type
    if isinstance(source, String):
        return lambda text, pattern: _parsed(text, pattern, zone)
    if isinstance(source, Date):
        return lambda day, _pattern: zone.start_of_day(day)
    return lambda micros, _pattern: micros


@function("to_timestamp", TIMESTAMP)
def _to_timestamp(call: Call) -> Bound:
    return _bind_parse(call)


@function("to_timestamp_ntz", TIMESTAMP_NTZ)
def _to_timestamp_ntz(call: Call) -> Bound:
    return _bind_parse(call)


@function("try_to_timestamp", TIMESTAMP, Nulls.STRICT_OR_NULL)
def _try_to_timestamp(call: Call) -> Bound:
    return attempting(_bind_parse(call))


@function("try_to_timestamp_ntz", TIMESTAMP_NTZ, Nulls.STRICT_OR_NULL)
def _try_to_timestamp_ntz(call: Call) -> Bound:
    return attempting(_bind_parse(call))


@function("unix_timestamp", INT64)
def _unix_timestamp(call: Call) -> Bound:
    parse = _bind_parse(call)
    return lambda value, pattern: truncated_quotient(parse(value, pattern), MICROS_PER_SECOND)


_PER_UNIT: Final = {"seconds": MICROS_PER_SECOND, "millis": 1000, "micros": 1}


def _since_1970(unit: str) -> None:
    per = _PER_UNIT[unit]

    @function(f"unix_{unit}", INT64)
    def _to_number(call: Call) -> Bound:
        return lambda micros: micros // per

    @function(f"timestamp_{unit}", TIMESTAMP, Nulls.STRICT_OR_NULL)  # NULL for NaN and infinities
    def _to_timestamp(call: Call) -> Bound:
        return _from_number(call.args[0].type, per)


def _from_number(t: DataType, per: int) -> Bound:
    def exact(value: Value) -> int:
        number = value if isinstance(value, int) else CONTEXT.multiply(value, Number(per))
        micros = value * per if isinstance(value, int) else int(number)
        if isinstance(number, Number) and number != micros:
            raise arithmetic_overflow(f"{value} seconds as whole microseconds (rounding is necessary)")
        if not _LOW <= micros <= _HIGH:
            raise datetime_overflow(f"the timestamp {value}")
        return micros

    def floating(value: float) -> int | None:
        if math.isnan(value) or value in (float("inf"), float("-inf")):
            return None
        micros = value * MICROS_PER_SECOND
        return max(_LOW, min(_HIGH, int(micros))) if abs(micros) < float("inf") else (_HIGH if micros > 0 else _LOW)

    return exact if is_integral(t) or isinstance(t, Decimal) else floating


for _unit in _PER_UNIT:
    _since_1970(_unit)


def _bind_make(call: Call) -> Bound:
    session = UTC_ZONE if isinstance(call.type, TimestampNtz) else zone_of(call)

    def make(*fields: Value) -> int:
        year, month, day, hour, minute, second, *zone = fields
        seconds = int(second.scaleb(6, CONTEXT))
        carry = 0
        if seconds == 60 * MICROS_PER_SECOND:  # the end of a minute, as PostgreSQL takes it
            seconds, carry = 0, MICROS_PER_MINUTE
        if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= seconds < MICROS_PER_MINUTE):
            raise EvaluationError(
                f"there is no time of day {hour}:{minute}:{second}.", condition="DATETIME_FIELD_OUT_OF_BOUNDS"
            )
        time = hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE + seconds + carry
        local = date_of(year, month, day) * MICROS_PER_DAY + time
        return checked_micros((zone_named(zone[0]) if zone else session).from_local(local))

    return make


for _name, _type in (("make_timestamp", TIMESTAMP), ("make_timestamp_ntz", TIMESTAMP_NTZ)):
    function(_name, _type)(_bind_make)
    function(f"try_{_name}", _type, Nulls.STRICT_OR_NULL)(lambda call: attempting(_bind_make(call)))
