"""Python values that users give, one by one, as values of a column's type, or not at all.

The law: a value is taken only if the column can hold it without loss. An int goes into any number column that has it
exactly, a Decimal into a decimal column with enough digits; a float never becomes an int, a string never a number, a
``datetime`` never a date. One exception: Python has no 32-bit floats, so a float is rounded to a ``float`` column.
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from everview.relational.display import show_value
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    INT64,
    NAN,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    Value,
    Variant,
    integer_bounds,
    is_integral,
)
from everview.session.rows.local_times import session_zone

Converter = Callable[[Any], Value]

EXACT_INTEGERS: Final[dict[DataType, int]] = {FLOAT32: 2**24, FLOAT64: 2**53}
"""Up to here a floating type has every integer."""

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_WIDE: Final = decimal.Context(prec=100, traps=[decimal.Inexact, decimal.InvalidOperation])


class Unfit(Exception):
    """A type cannot hold some values. ``why`` continues the sentence "column 'x' is int and …"; ``rows`` says which."""

    def __init__(self, why: str, *, rows: Sequence[int] = (), hint: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.rows = rows
        self.hint = hint


def converter_to(data_type: DataType) -> Converter:
    """The function from a user's value (not None) to the internal value of a type; it raises ``Unfit``.

    >>> converter_to(DATE)(datetime.date(1970, 1, 3))
    2
    """
    match data_type:
        case Decimal(precision, scale):
            return lambda v: _to_decimal(v, precision, scale)
        case Array(element, contains_null):
            inside = or_null(converter_to(element), nullable=contains_null)
            return lambda v: tuple(inside(e) for e in _elements(v))
        case Map(key, value, contains_null):
            keys, items = (
                or_null(converter_to(key), nullable=False),
                or_null(converter_to(value), nullable=contains_null),
            )
            return lambda v: tuple([(keys(k), items(e)) for k, e in _entries(v)])
        case Variant(names):
            return lambda v: tuple(_to_bytes(e) for e in _members(_binaries(v), names))
        case Struct(names, types):
            parts = tuple(or_null(converter_to(t)) for t in types)
            return lambda v: tuple(f(e) for f, e in zip(parts, _members(v, names), strict=True))
        case _ if is_integral(data_type):
            return lambda v: _to_int(v, data_type)
        case _ if data_type == TIMESTAMP:
            return _timestamps()
        case _:
            return _SIMPLE[data_type]


def or_null(convert: Converter, *, nullable: bool = True) -> Converter:
    """The same for values that may be None, and for NumPy's scalars."""

    def converted(value: Any) -> Value:
        if isinstance(value, np.generic):
            value = value.item()
        if value is not None:
            return convert(value)
        if nullable:
            return None
        raise Unfit("cannot have NULL inside")

    return converted


def _wrong_type(value: Any, hint: str | None = None) -> Unfit:
    return Unfit(f"cannot take {show_value(value)} of type {type(value).__name__}", hint=hint)


def _too_large(value: Any) -> Unfit:
    return Unfit(f"cannot hold {show_value(value)}")


def _to_int(value: Any, data_type: DataType) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong_type(value, "convert it with int() first." if isinstance(value, float | decimal.Decimal) else None)
    low, high = integer_bounds(data_type)
    if not low <= value <= high:
        raise _too_large(value)
    return value


def _to_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(value)
    return value


def _to_double(value: Any) -> float:
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > EXACT_INTEGERS[FLOAT64]:
            raise _too_large(value)
        return float(value)
    raise _wrong_type(value, "convert it with float() first." if isinstance(value, decimal.Decimal) else None)


def _to_float(value: Any) -> float:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT_INTEGERS[FLOAT32]:
        raise _too_large(value)
    wide = _to_double(value)
    if wide is NAN:
        return NAN
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", wide))[0]
    except OverflowError:
        raise _too_large(value) from None
    return rounded + 0.0


def _to_decimal(value: Any, precision: int, scale: int) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal):
        hint = "give a decimal.Decimal, for example Decimal(str(x))." if isinstance(value, float) else None
        raise _wrong_type(value, hint)
    exact = decimal.Decimal(value)
    if not exact.is_finite():
        raise _too_large(value)
    try:
        rescaled = exact.quantize(decimal.Decimal(1).scaleb(-scale), context=_WIDE)
    except (decimal.Inexact, decimal.InvalidOperation):
        raise _too_large(value) from None
    if rescaled.adjusted() >= precision - scale and rescaled:
        raise _too_large(value)
    return rescaled or abs(rescaled)  # decimals have a -0 too


def _to_string(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong_type(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unfit(f"cannot hold {show_value(value)}, which is not valid Unicode") from None
    return str(value)


def _to_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong_type(value, "encode it first." if isinstance(value, str) else None)
    return bytes(value)


def _to_date(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None or value.time() != datetime.time():
            raise _wrong_type(value, "take its date() first.")
        value = value.date()
    if not isinstance(value, datetime.date):
        raise _wrong_type(value, "give a datetime.date." if isinstance(value, str) else None)
    return value.toordinal() - _EPOCH_DAY


def _timestamps() -> Converter:
    """For the values of one column, so that the session is asked for its time zone once."""
    zone = cache(session_zone)

    def to_timestamp(value: Any) -> int:
        _check_datetime(value)
        if value.tzinfo is None:
            return zone().from_local(int((value - _EPOCH) // _MICROSECOND))
        return int((value - _EPOCH_UTC) // _MICROSECOND)

    return to_timestamp


def _to_timestamp_ntz(value: Any) -> int:
    _check_datetime(value)
    if value.tzinfo is not None:
        raise Unfit(
            f"cannot take {show_value(value)}, which has a time zone",
            hint="remove it, for example value.replace(tzinfo=None), or declare the column timestamp.",
        )
    return int((value - _EPOCH) // _MICROSECOND)


def _check_datetime(value: Any) -> None:
    if not isinstance(value, datetime.datetime):
        raise _wrong_type(value, "give a datetime.datetime." if isinstance(value, str | datetime.date) else None)
    if getattr(value, "nanosecond", 0):  # pandas.Timestamp is a datetime with three more digits
        raise _too_large(value)


def _to_duration(value: Any) -> int:
    if not isinstance(value, datetime.timedelta):
        raise _wrong_type(value)
    microseconds = value // _MICROSECOND
    low, high = integer_bounds(INT64)
    if not low <= microseconds <= high or getattr(value, "nanoseconds", 0) != 0:
        raise _too_large(value)
    return microseconds


def _refuse(value: Any) -> Value:
    raise _wrong_type(value)


def _elements(value: Any) -> Sequence[Any]:
    if isinstance(value, np.ndarray):
        return value.tolist()  # type: ignore[no-any-return]  # NumPy cannot say what is inside
    if not isinstance(value, list | tuple):
        raise _wrong_type(value)
    return value


def _entries(value: Any) -> Sequence[tuple[Any, Any]]:
    """The entries of a map: a dict, or the pairs in which Arrow gives them."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return value
    raise _wrong_type(value)


def _binaries(value: Any) -> Any:
    """What a variant of PySpark consists of."""
    is_variant = hasattr(value, "value") and hasattr(value, "metadata")
    return (value.value, value.metadata) if is_variant else value


def _members(value: Any, names: tuple[str, ...]) -> Sequence[Any]:
    if isinstance(value, Mapping):
        given = {str(k).lower(): v for k, v in value.items()}
        if given.keys() != {n.lower() for n in names}:
            raise Unfit(f"cannot take {show_value(dict(value))}", hint=f"its fields are {', '.join(names)}.")
        return [given[n.lower()] for n in names]
    if not isinstance(value, tuple) or len(value) != len(names):
        raise _wrong_type(value)
    return value


_SIMPLE: Final[dict[DataType, Converter]] = {
    BOOLEAN: _to_boolean,
    FLOAT32: _to_float,
    FLOAT64: _to_double,
    STRING: _to_string,
    BINARY: _to_bytes,
    DATE: _to_date,
    TIMESTAMP_NTZ: _to_timestamp_ntz,
    DAY_TIME_INTERVAL: _to_duration,
    YEAR_MONTH_INTERVAL: _refuse,
    NULL: _refuse,
}
