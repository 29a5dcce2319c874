"""Values as strings, as CAST writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everview.relational.functions.datetime_text import date_text, day_time_text, timestamp_text, year_month_text
from everview.relational.functions.failures import not_utf8
from everview.relational.functions.java_text import float_text
from everview.relational.functions.zones import Zone
from everview.relational.types import (
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Null,
    String,
    Struct,
    Timestamp,
    TimestampNtz,
    Value,
    Variant,
    YearMonthInterval,
    is_floating,
    is_integral,
)


def text_of(t: DataType, zone: Zone) -> Callable[[Any], str] | None:
    """The function that writes a non-NULL value of the type; None for a type without text."""
    match t:
        case String():
            return str
        case Boolean():
            return lambda value: "true" if value else "false"
        case Decimal():
            return lambda value: format(value, "f")
        case Binary():
            return _text_of_bytes
        case Date():
            return date_text
        case Timestamp():
            return lambda micros: timestamp_text(zone.to_local(micros))
        case TimestampNtz():
            return timestamp_text
        case YearMonthInterval():
            return year_month_text
        case DayTimeInterval():
            return day_time_text
        case Array(element=element):
            return _sequence_text("[]", lambda values: (element,) * len(values), zone)
        case Variant():
            return None
        case Struct(types=types):
            return _sequence_text("{}", lambda _values: types, zone)
        case Null():
            return lambda value: "null"
        case _ if is_floating(t):
            return lambda value: float_text(value, t)
        case _ if is_integral(t):
            return str
        case _:
            return None


def _text_of_bytes(value: bytes) -> str:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        raise not_utf8(repr(bytes(value))) from None


def _sequence_text(
    brackets: str, types_of: Callable[[tuple[Value, ...]], tuple[DataType, ...]], zone: Zone
) -> Callable[[tuple[Value, ...]], str]:
    def write(values: tuple[Value, ...]) -> str:
        parts = []
        for value, t in zip(values, types_of(values), strict=True):
            text = text_of(t, zone)
            assert text is not None, t
            parts.append("null" if value is None else text(value))
        return f"{brackets[0]}{', '.join(parts)}{brackets[1]}"

    return write
