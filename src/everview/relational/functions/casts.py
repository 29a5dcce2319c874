"""CAST and TRY_CAST: which pairs of types there are, and the conversion for each.

``bind_cast`` looks up the conversion to the target type by the source type. Conversions of a type to itself are the identity;
arrays and structs convert element by element; NULL stays NULL and never gets here. Pairs that Spark has and we do not raise
``UnsupportedQuery``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from everview.relational.expressions import Cast, Literal
from everview.relational.functions.casts_to_number import (
    to_boolean,
    to_day_time_interval,
    to_decimal,
    to_floating,
    to_integer,
    to_year_month_interval,
)
from everview.relational.functions.casts_to_text import text_of
from everview.relational.functions.civil import MICROS_PER_DAY, MICROS_PER_SECOND
from everview.relational.functions.datetime_text import read_date, read_timestamp
from everview.relational.functions.decimals import CONTEXT
from everview.relational.functions.failures import attempting, cast_invalid_input, cast_overflow, unsupported
from everview.relational.functions.timestamps import checked_micros
from everview.relational.functions.zones import zone_of
from everview.relational.types import (
    INT64,
    TIMESTAMP,
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Map,
    Null,
    String,
    Struct,
    Timestamp,
    TimestampNtz,
    Value,
    Variant,
    YearMonthInterval,
    integer_bounds,
    is_floating,
    is_integral,
)

Conversion = Callable[[Any], Any]
_LOW, _HIGH = integer_bounds(INT64)


def bind_cast(cast: Cast) -> Conversion:
    """The function from a non-NULL value of the child's type to a value of the cast's type.

    Raises:
        UnsupportedQuery: there is no such conversion here.
    """
    source, target = cast.child.type, cast.type
    if source != target and (isinstance(source, Variant) or isinstance(target, Variant)):
        raise unsupported(f"CAST from {source} to {target} is not supported.", "CAST")
    if isinstance(source, Array) and isinstance(target, Array):
        return _elementwise(bind_cast(_cast_of(cast, source.element, target.element)))
    if isinstance(source, Struct) and isinstance(target, Struct):
        return _fieldwise(
            tuple(bind_cast(_cast_of(cast, s, t)) for s, t in zip(source.types, target.types, strict=True))
        )
    if isinstance(source, Map) and isinstance(target, Map):
        inside = (_cast_of(cast, source.key, target.key), _cast_of(cast, source.value, target.value))
        return _elementwise(_fieldwise(tuple(bind_cast(c) for c in inside)))
    if source == target or isinstance(source, Null):
        return _itself
    conversion = _CONVERSIONS.get(type(target), _no_conversion)(cast)
    if conversion is None:
        raise unsupported(f"CAST from {source} to {target} is not supported.", "CAST")
    # In Spark every value has a text, so TRY_CAST to a string is never NULL for a failure.
    return attempting(conversion) if cast.is_try and not isinstance(target, String) else conversion


def _cast_of(cast: Cast, source: DataType, target: DataType) -> Cast:
    return Cast(Literal(None, source), target, cast.is_try, cast.zone)


def _itself(value: Value) -> Value:
    return value


def _elementwise(convert: Conversion) -> Conversion:
    return lambda values: tuple([None if v is None else convert(v) for v in values])


def _fieldwise(conversions: tuple[Conversion, ...]) -> Conversion:
    return lambda values: tuple(
        [None if v is None else convert(v) for v, convert in zip(values, conversions, strict=True)]
    )


def _no_conversion(_cast: Cast) -> Conversion | None:
    return None


def _to_binary(cast: Cast) -> Conversion | None:
    return str.encode if isinstance(cast.child.type, String) else None


def _to_string(cast: Cast) -> Conversion | None:
    return text_of(cast.child.type, zone_of(cast))


def _to_date(cast: Cast) -> Conversion | None:
    zone = zone_of(cast)
    match cast.child.type:
        case String():
            return _reading(read_date, cast.type)
        case Timestamp():
            return lambda micros: zone.to_local(micros) // MICROS_PER_DAY
        case TimestampNtz():
            return lambda micros: micros // MICROS_PER_DAY
        case _:
            return None


def _reading(read: Callable[[str], Value], target: DataType) -> Conversion:
    def convert(text: str) -> Value:
        value = read(text)
        if value is None:
            raise cast_invalid_input(text, target)
        return value

    return convert


def _to_timestamp(cast: Cast) -> Conversion | None:
    zone = zone_of(cast)
    match cast.child.type:
        case String():
            return _reading(lambda text: read_timestamp(text, zone), cast.type)
        case Date():
            return lambda day: checked_micros(zone.start_of_day(day))
        case TimestampNtz():
            return lambda local: checked_micros(zone.from_local(local))
        case source if is_integral(source):
            return lambda seconds: max(_LOW, min(_HIGH, seconds * MICROS_PER_SECOND))  # Java's conversion saturates
        case source if is_floating(source):
            return lambda seconds: _micros_of_double(seconds, source)
        case Decimal():
            return lambda seconds: _low_64_bits(int(CONTEXT.multiply(seconds, MICROS_PER_SECOND)))
        case _:
            return None


def _low_64_bits(value: int) -> int:
    return (value - _LOW) % (1 << 64) + _LOW


def _micros_of_double(seconds: float, source: DataType) -> int:
    micros = seconds * MICROS_PER_SECOND
    if math.isnan(seconds) or seconds in (float("inf"), float("-inf")):
        raise cast_invalid_input(seconds, TIMESTAMP)
    if not float(_LOW) <= micros <= float(_HIGH):
        raise cast_overflow(seconds, source, TIMESTAMP)
    return min(int(micros), _HIGH)


def _to_timestamp_ntz(cast: Cast) -> Conversion | None:
    zone = zone_of(cast)
    match cast.child.type:
        case String():
            return _reading(lambda text: read_timestamp(text, None), cast.type)
        case Date():
            return lambda day: checked_micros(day * MICROS_PER_DAY)
        case Timestamp():
            return lambda micros: checked_micros(zone.to_local(micros))
        case _:
            return None


_CONVERSIONS: Final[dict[type[DataType], Callable[[Cast], Conversion | None]]] = {
    Boolean: to_boolean,
    Int8: to_integer,
    Int16: to_integer,
    Int32: to_integer,
    Int64: to_integer,
    Float32: to_floating,
    Float64: to_floating,
    Decimal: to_decimal,
    String: _to_string,
    Binary: _to_binary,
    Date: _to_date,
    Timestamp: _to_timestamp,
    TimestampNtz: _to_timestamp_ntz,
    YearMonthInterval: to_year_month_interval,
    DayTimeInterval: to_day_time_interval,
}
