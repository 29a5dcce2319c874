from __future__ import annotations

from decimal import Decimal as Number

import pytest

from everview.errors import EvaluationError, UnsupportedQuery
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    NAN,
    STRING,
    Array,
    DataType,
    Decimal,
    Struct,
    Value,
)
from tests.unit.relational.functions.evaluation import cast


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-0.0, "-0.0"),
        (NAN, "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    """Plain between 10^-3 and 10^7, with an exponent outside."""
    assert cast(value, FLOAT64, STRING) == text


def test_floats_are_written_with_their_own_digits() -> None:
    """A 32-bit number shows the digits that 32 bits need."""
    assert cast(0.10000000149011612, FLOAT32, STRING) == "0.1"
    assert cast(1.401298464324817e-45, FLOAT32, STRING) == "1.4E-45"


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (" 12\t", INT32, 12),
        ("+7", INT8, 7),
        ("1.5f", FLOAT64, 1.5),
        (" -Infinity ", FLOAT64, float("-inf")),
        ("1e3", Decimal(6, 1), Number("1000.0")),
        ("0.005", Decimal(4, 2), Number("0.01")),
        (" Yes ", BOOLEAN, True),
        ("0", BOOLEAN, False),
    ],
)
def test_strings_that_spell_a_value(text: str, target: DataType, expected: Value) -> None:
    """White space around the value does not matter."""
    assert cast(text, STRING, target) == expected


@pytest.mark.parametrize(
    ("value", "source", "target", "condition"),
    [
        ("1.5", STRING, INT32, "CAST_INVALID_INPUT"),
        ("128", STRING, INT8, "CAST_INVALID_INPUT"),
        ("", STRING, FLOAT64, "CAST_INVALID_INPUT"),
        (300, INT32, INT8, "CAST_OVERFLOW"),
        (NAN, FLOAT64, INT32, "CAST_OVERFLOW"),
        (Number("123.4"), Decimal(4, 1), Decimal(3, 1), "NUMERIC_VALUE_OUT_OF_RANGE"),
    ],
)
def test_values_that_do_not_fit_raise(value: Value, source: DataType, target: DataType, condition: str) -> None:
    """The condition is Spark's, and TRY_CAST gives NULL."""
    assert cast(value, source, target, is_try=True) is None
    with pytest.raises(EvaluationError) as error:
        cast(value, source, target)
    assert error.value.condition == condition


def test_two_to_the_63_saturates() -> None:
    """Spark compares doubles here, so 2^63 passes and becomes the largest bigint."""
    assert cast(2.0**63, FLOAT64, INT64) == 2**63 - 1


def test_nan_has_no_decimal() -> None:
    """NaN becomes a NULL decimal, even in ANSI mode."""
    assert cast(NAN, FLOAT64, Decimal(10, 2)) is None


def test_bigint_to_float_rounds_once() -> None:
    """Rounding to 64 bits first would break the tie the wrong way."""
    assert cast(2**60 + 2**36 + 1, INT64, FLOAT32) == float(2**60 + 2**37)


def test_nested_values() -> None:
    """Arrays and structs convert element by element, and write NULL as null."""
    pair = Struct(("x", "y"), (INT32, STRING))
    assert cast((1, None), Array(INT32), Array(STRING)) == ("1", None)
    assert cast(((1, "a"), None), Array(pair), STRING) == "[{1, a}, null]"


def test_unknown_pair_is_refused() -> None:
    """A pair of types without a conversion refuses the query."""
    with pytest.raises(UnsupportedQuery):
        cast(1, INT32, BINARY)
    with pytest.raises(UnsupportedQuery):
        cast(1, INT32, DATE)
