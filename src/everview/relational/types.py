"""Spark SQL's data types, as far as everview stores and computes them.

Values of each type, in plain Python (this is what the reference backend computes with and what ``Literal`` holds):

=====================  ==========================================================
Boolean                bool
Int8 … Int64           int within range
Float32, Float64       float (Float32 values are rounded to 32 bits); NaN is ``NAN``
Decimal(p, s)          decimal.Decimal with exactly s fractional digits
String, Binary         str, bytes
Date                   int, days since 1970-01-01
Timestamp              int, microseconds since 1970-01-01 00:00 UTC
TimestampNtz           int, microseconds since 1970-01-01 00:00, no zone
YearMonthInterval      int, months
DayTimeInterval        int, microseconds
Array(element)         tuple of values
Struct(fields)         tuple of values
Map(key, value)        tuple of pairs, in the order in which the map was made
Null                   None, as in every type
=====================  ==========================================================

``NAN`` is one object, so that Python's identity shortcut makes NaN equal to itself in tuples and dict keys, which is how
Spark groups and compares it; ``-0.0 == 0.0`` holds in Python as in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Value: TypeAlias = Any
"""A value of some type as in the table above. ``Any``, because the union would need a cast at every use."""

Row: TypeAlias = tuple[Value, ...]

NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class DataType:
    """Base of all types; ``str()`` is Spark's name for it."""

    def __str__(self) -> str:
        return _SPARK_NAMES[type(self)]


@dataclass(frozen=True, slots=True)
class Boolean(DataType):
    """True or false."""


@dataclass(frozen=True, slots=True)
class Int8(DataType):
    """Spark's tinyint."""


@dataclass(frozen=True, slots=True)
class Int16(DataType):
    """Spark's smallint."""


@dataclass(frozen=True, slots=True)
class Int32(DataType):
    """Spark's int."""


@dataclass(frozen=True, slots=True)
class Int64(DataType):
    """Spark's bigint."""


@dataclass(frozen=True, slots=True)
class Float32(DataType):
    """Spark's float."""


@dataclass(frozen=True, slots=True)
class Float64(DataType):
    """Spark's double."""


@dataclass(frozen=True, slots=True)
class Decimal(DataType):
    """A number of at most ``precision`` digits, ``scale`` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        assert 0 < self.precision <= 38, self.precision
        assert 0 <= self.scale <= self.precision, self.scale

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class String(DataType):
    """UTF-8 text, compared by its bytes."""


@dataclass(frozen=True, slots=True)
class Binary(DataType):
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Date(DataType):
    """A day of the proleptic Gregorian calendar."""


@dataclass(frozen=True, slots=True)
class Timestamp(DataType):
    """An instant, shown in the session time zone."""


@dataclass(frozen=True, slots=True)
class TimestampNtz(DataType):
    """A date and time of day without a zone."""


@dataclass(frozen=True, slots=True)
class YearMonthInterval(DataType):
    """A number of months."""


@dataclass(frozen=True, slots=True)
class DayTimeInterval(DataType):
    """A number of microseconds."""


@dataclass(frozen=True, slots=True)
class Null(DataType):
    """The type of a bare NULL."""


@dataclass(frozen=True, slots=True)
class Array(DataType):
    """A sequence of values of one type."""

    element: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Struct(DataType):
    """A tuple with named fields."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]

    def __str__(self) -> str:
        inside = ",".join(f"{n}:{t}" for n, t in zip(self.names, self.types, strict=True))
        return f"struct<{inside}>"


@dataclass(frozen=True, slots=True)
class Variant(Struct):
    """A value of any type, as Spark writes it into two binaries. Only Spark's own code looks into it."""

    names: tuple[str, ...] = ("value", "metadata")
    types: tuple[DataType, ...] = (Binary(), Binary())

    def __str__(self) -> str:
        return "variant"


@dataclass(frozen=True, slots=True)
class Map(DataType):
    """Values by key. Spark does not compare maps, so that nothing may group by one or join on it."""

    key: DataType
    value: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


_SPARK_NAMES: Final[dict[type[DataType], str]] = {
    Boolean: "boolean",
    Int8: "tinyint",
    Int16: "smallint",
    Int32: "int",
    Int64: "bigint",
    Float32: "float",
    Float64: "double",
    String: "string",
    Binary: "binary",
    Date: "date",
    Timestamp: "timestamp",
    TimestampNtz: "timestamp_ntz",
    YearMonthInterval: "interval year to month",
    DayTimeInterval: "interval day to second",
    Null: "void",
}

BOOLEAN: Final = Boolean()
INT8: Final = Int8()
INT16: Final = Int16()
INT32: Final = Int32()
INT64: Final = Int64()
FLOAT32: Final = Float32()
FLOAT64: Final = Float64()
STRING: Final = String()
BINARY: Final = Binary()
DATE: Final = Date()
TIMESTAMP: Final = Timestamp()
TIMESTAMP_NTZ: Final = TimestampNtz()
YEAR_MONTH_INTERVAL: Final = YearMonthInterval()
DAY_TIME_INTERVAL: Final = DayTimeInterval()
NULL: Final = Null()
VARIANT: Final = Variant()
FLOATS: Final = (Float32, Float64)
"""The kinds of floating types."""
INTERVALS: Final = (YEAR_MONTH_INTERVAL, DAY_TIME_INTERVAL)

_INTEGER_BITS: Final[dict[DataType, int]] = {INT8: 8, INT16: 16, INT32: 32, INT64: 64}


def is_integral(t: DataType) -> bool:
    """Whether ``t`` is one of the four integer types."""
    return t in _INTEGER_BITS


def is_floating(t: DataType) -> bool:
    """Whether ``t`` is float or double."""
    return t is FLOAT64 or t is FLOAT32 or isinstance(t, Float32 | Float64)


def holds(t: DataType, kind: type[DataType] | tuple[type[DataType], ...]) -> bool:
    """Whether values of the type are of this kind, or of one of several, or have such values in them.

    >>> holds(Struct(("a",), (Array(BINARY),)), Binary), holds(STRING, Binary)
    (True, False)
    """
    match t:
        case _ if isinstance(t, kind):
            return True
        case Array():
            return holds(t.element, kind)
        case Map():
            return holds(t.key, kind) or holds(t.value, kind)
        case Struct():
            return any(holds(inner, kind) for inner in t.types)
        case _:
            return False


def is_numeric(t: DataType) -> bool:
    """Whether ``t`` is an integer, floating or decimal type."""
    return is_integral(t) or is_floating(t) or isinstance(t, Decimal)


def integer_bounds(t: DataType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type.

    >>> integer_bounds(INT8)
    (-128, 127)
    """
    half = 1 << (_INTEGER_BITS[t] - 1)
    return -half, half - 1
