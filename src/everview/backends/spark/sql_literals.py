"""Constants as Spark SQL text that Catalyst resolves to exactly the same value and type."""

from __future__ import annotations

import math
from decimal import Decimal as PythonDecimal
from typing import Final

from everview.relational.quoting import quote
from everview.relational.types import (
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
)

_SUFFIXES: Final[dict[type[DataType], str]] = {Int8: "Y", Int16: "S", Int32: "", Int64: "L"}
_MICROS_PER_DAY: Final = 86_400_000_000


def type_sql(data_type: DataType) -> str:
    """Spark's name of a type, field names quoted.

    >>> from everview.relational.types import INT32
    >>> type_sql(Struct(("a b",), (INT32,)))
    'struct<`a b`: int>'
    """
    match data_type:
        case Variant():
            return "variant"
        case Array():
            return f"array<{type_sql(data_type.element)}>"
        case Map():
            return f"map<{type_sql(data_type.key)}, {type_sql(data_type.value)}>"
        case Struct():
            parts = zip(data_type.names, data_type.types, strict=True)
            return f"struct<{', '.join(f'{quote(n)}: {type_sql(t)}' for n, t in parts)}>"
        case _:
            return str(data_type)


def literal_sql(value: Value, data_type: DataType) -> str:
    """The text of a constant.

    >>> literal_sql(PythonDecimal("1.50"), Decimal(10, 2))
    'CAST(1.50BD AS decimal(10,2))'
    >>> literal_sql(None, String())
    'CAST(NULL AS string)'
    """
    if value is None:
        return "NULL" if isinstance(data_type, Null) else f"CAST(NULL AS {type_sql(data_type)})"
    match data_type:
        case Boolean():
            return "TRUE" if value else "FALSE"
        case Int8() | Int16() | Int32() | Int64():
            # The smallest value has no positive counterpart to negate, so it is read from text.
            if value == integer_bounds(data_type)[0]:
                return f"CAST('{value}' AS {data_type})"
            return f"({value}{_SUFFIXES[type(data_type)]})"
        case Float32() | Float64():
            return _float(value, data_type)
        case Decimal():
            return f"CAST({_plain(value)}BD AS {data_type})"
        case String():
            return text_sql(value)
        case Binary():
            return f"X'{value.hex()}'"
        case Date():
            return f"date_from_unix_date({value})"
        case Timestamp():
            return f"timestamp_micros({literal_sql(value, Int64())})"
        case TimestampNtz():
            return f"(TIMESTAMP_NTZ'1970-01-01 00:00:00' + {_day_time(value)})"
        case YearMonthInterval():
            return f"make_ym_interval(0, {literal_sql(value, Int32())})"
        case DayTimeInterval():
            return _day_time(value)
        case Array():
            inside = ", ".join(literal_sql(v, data_type.element) for v in value)
            return f"CAST(array({inside}) AS {type_sql(data_type)})"
        case Map():
            inside = ", ".join(f"{literal_sql(k, data_type.key)}, {literal_sql(v, data_type.value)}" for k, v in value)
            return f"CAST(map({inside}) AS {type_sql(data_type)})"
        case Struct():
            parts = zip(data_type.names, value, data_type.types, strict=True)
            return f"named_struct({', '.join(f'{text_sql(n)}, {literal_sql(v, t)}' for n, v, t in parts)})"
        case _:
            raise AssertionError(f"no constant of type {data_type} but NULL")


def text_sql(text: str) -> str:
    r"""A string literal; what a parser could take for an escape is written as one.

    >>> text_sql("it's")
    "'it\\'s'"
    """
    return "'" + "".join(_character(c) for c in text) + "'"


def _character(c: str) -> str:
    if c in "\\'":
        return "\\" + c
    # Letters of Java beyond 16 bits are two of them; control characters may end a line of the parser.
    return f"\\u{ord(c):04x}" if ord(c) < 32 or c == "\x7f" else c


def _float(value: float, data_type: DataType) -> str:
    if math.isnan(value) or math.isinf(value):
        name = "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        return f"CAST('{name}' AS {data_type})"
    return f"CAST('{value!r}' AS {data_type})"


def _plain(value: PythonDecimal) -> str:
    return f"{value:f}"


def _day_time(micros: int) -> str:
    sign = "-" if micros < 0 else ""
    days, rest = divmod(abs(micros), _MICROS_PER_DAY)
    seconds, micro = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micro:06d}"
    return f"INTERVAL '{sign}{days} {clock}' DAY TO SECOND"
