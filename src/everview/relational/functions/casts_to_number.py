"""Conversions to booleans, numbers and intervals.

Each function takes the cast and returns the conversion from its child's type, or None where there is none. Numbers that do not
fit raise CAST_OVERFLOW (decimals NUMERIC_VALUE_OUT_OF_RANGE), strings that spell no number CAST_INVALID_INPUT.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP
from decimal import Decimal as Number
from typing import Any, Final

from everview.errors import EvaluationError
from everview.relational.expressions import Cast
from everview.relational.functions.arithmetic import truncated_quotient
from everview.relational.functions.civil import MICROS_PER_SECOND
from everview.relational.functions.datetime_text import TRIMMED, read_day_time, read_year_month
from everview.relational.functions.decimals import CONTEXT, MAX_PRECISION, fitter
from everview.relational.functions.failures import cast_invalid_input, cast_overflow
from everview.relational.functions.floats import float32, float_of
from everview.relational.functions.java_text import read_float
from everview.relational.types import (
    INT32,
    INT64,
    Boolean,
    DataType,
    DayTimeInterval,
    Decimal,
    Float32,
    String,
    Timestamp,
    Value,
    YearMonthInterval,
    integer_bounds,
    is_floating,
    is_integral,
    is_numeric,
)

Conversion = Callable[[Any], Any]
_TRUE: Final = frozenset(("t", "true", "y", "yes", "1"))
_FALSE: Final = frozenset(("f", "false", "n", "no", "0"))
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def to_boolean(cast: Cast) -> Conversion | None:
    """Strings such as ``yes`` and ``F``, and numbers: zero is false."""
    source = cast.child.type
    if isinstance(source, String):
        return _read_boolean
    return bool if is_numeric(source) else None


def _read_boolean(text: str) -> bool:
    word = text.strip(TRIMMED).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise cast_invalid_input(text, Boolean())


def to_integer(cast: Cast) -> Conversion | None:
    """Fractions are cut off; what does not fit is an error."""
    source, target = cast.child.type, cast.type
    low, high = integer_bounds(target)

    def fit(value: Value, number: int) -> int:
        if low <= number <= high:
            return number
        raise cast_overflow(value, source, target)

    match source:
        case String():
            return lambda text: _read_integer(text, target)
        case Boolean():
            return int
        case Decimal():
            return lambda value: fit(value, int(value))
        case Timestamp():
            return lambda micros: fit(micros, micros // MICROS_PER_SECOND)
        case YearMonthInterval():
            return lambda months: fit(months, months)
        case DayTimeInterval():
            return lambda micros: fit(micros, truncated_quotient(micros, MICROS_PER_SECOND))
        case _ if is_integral(source):
            return lambda value: fit(value, value)
        case _ if is_floating(source):
            return _float_to_integer(source, target)
        case _:
            return None


def _read_integer(text: str, target: DataType) -> int:
    digits = text.strip(TRIMMED)
    low, high = integer_bounds(target)
    if _INTEGER.fullmatch(digits) and len(digits) <= 4000 and low <= int(digits) <= high:
        return int(digits)
    raise cast_invalid_input(text, target)


def _float_to_integer(source: DataType, target: DataType) -> Conversion:
    low, high = integer_bounds(target)
    # 2**63 passes Spark's test, which compares doubles, and becomes the largest bigint.
    limit = high + 1 if target == INT64 else high

    def convert(value: float) -> int:
        if not math.isfinite(value) or not low <= math.trunc(value) <= limit:
            raise cast_overflow(value, source, target)
        return min(math.trunc(value), high)

    return convert


def to_floating(cast: Cast) -> Conversion | None:
    """The nearest number of the type."""
    source, target = cast.child.type, cast.type
    result = float_of(target)
    match source:
        case String():
            return lambda text: _read_floating(text, target)
        case Timestamp():
            return lambda micros: result(micros / MICROS_PER_SECOND)
        case Boolean() | Decimal():
            return lambda value: result(float(value))
        case _ if is_integral(source):
            return _integer_to_float32 if isinstance(target, Float32) else float
        case _ if is_floating(source):
            return result
        case _:
            return None


def _read_floating(text: str, target: DataType) -> float:
    value = read_float(text)
    if value is None:
        raise cast_invalid_input(text, target)
    return float_of(target)(value)


def _integer_to_float32(value: int) -> float:
    """Rounds once, not first to 64 bits and then to 32."""
    surplus = max(abs(value).bit_length() - 40, 0)
    kept = abs(value) >> surplus
    if kept << surplus != abs(value):
        kept |= 1  # a sticky bit: the lost bits only matter in breaking a tie
    rounded = float32(float(kept << surplus))
    return -rounded if value < 0 else rounded


def to_decimal(cast: Cast) -> Conversion | None:
    """Rounded half up to the scale; more digits than the precision are an error."""
    source, target = cast.child.type, cast.type
    assert isinstance(target, Decimal)
    fit = fitter(target)
    match source:
        case String():
            return lambda text: fit(_read_number(text, target))
        case Decimal():
            return fit
        case Timestamp():
            return lambda micros: fit(Number(micros).scaleb(-6, CONTEXT))
        case YearMonthInterval():
            return lambda months: fit(Number(months))
        case DayTimeInterval():
            return lambda micros: fit(Number(micros).scaleb(-6, CONTEXT))
        case _ if is_integral(source) or isinstance(source, Boolean):
            return lambda value: fit(Number(int(value)))
        case _ if is_floating(source):
            return lambda value: fit(Number(repr(value))) if math.isfinite(value) else None
        case _:
            return None


def _read_number(text: str, target: Decimal) -> Number:
    digits = text.strip("".join(map(chr, range(0x21))))
    if not _NUMBER.fullmatch(digits):
        raise cast_invalid_input(text, target)
    number = CONTEXT.create_decimal(digits)
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and len(number.as_tuple().digits) + exponent > MAX_PRECISION:
        raise EvaluationError(f"{text!r} has more than 38 digits.", condition="NUMERIC_OUT_OF_SUPPORTED_RANGE")
    return number


def to_year_month_interval(cast: Cast) -> Conversion | None:
    """Numbers are months."""
    return _to_interval(cast, 1, INT32, read_year_month)


def to_day_time_interval(cast: Cast) -> Conversion | None:
    """Numbers are seconds."""
    return _to_interval(cast, MICROS_PER_SECOND, INT64, read_day_time)


def _to_interval(cast: Cast, unit: int, storage: DataType, read: Callable[[str], int | None]) -> Conversion | None:
    source, target = cast.child.type, cast.type
    low, high = integer_bounds(storage)

    def fit(value: Value, number: int) -> int:
        if low <= number <= high:
            return number
        raise cast_overflow(value, source, target)

    def parse(text: str) -> int:
        value = read(text)
        if value is None or not low <= value <= high:
            raise EvaluationError(f"{text!r} is not an {target}.", condition="INVALID_INTERVAL_FORMAT")
        return value

    match source:
        case String():
            return parse
        case Decimal():
            return lambda value: fit(
                value, int(CONTEXT.multiply(value, Number(unit)).quantize(Number(1), ROUND_HALF_UP, CONTEXT))
            )
        case _ if is_integral(source):
            return lambda value: fit(value, value * unit)
        case _:
            return None
