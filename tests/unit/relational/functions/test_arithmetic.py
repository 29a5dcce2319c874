from __future__ import annotations

import math
from decimal import Decimal as Number

import pytest

from everview.errors import EvaluationError
from everview.relational.functions.decimals import product_type, quotient_type, remainder_type, sum_type
from everview.relational.types import FLOAT32, FLOAT64, INT8, INT32, INT64, NAN, Decimal
from tests.unit.relational.functions.evaluation import call


@pytest.mark.parametrize(
    ("name", "left", "right", "t", "condition"),
    [
        ("+", 127, 1, INT8, "BINARY_ARITHMETIC_OVERFLOW"),
        ("+", 2**31 - 1, 1, INT32, "ARITHMETIC_OVERFLOW"),
        ("*", 2**62, 2, INT64, "ARITHMETIC_OVERFLOW"),
        ("div", 1, 0, INT64, "DIVIDE_BY_ZERO"),
        ("div", -(2**63), -1, INT64, "ARITHMETIC_OVERFLOW"),
        ("%", 1, 0, INT32, "REMAINDER_BY_ZERO"),
        ("/", 1.0, 0.0, FLOAT64, "DIVIDE_BY_ZERO"),
    ],
)
def test_arithmetic_without_a_result_raises(name: str, left: object, right: object, t: object, condition: str) -> None:
    """Overflow and division by zero are errors with Spark's condition, and NULL in the try form."""
    with pytest.raises(EvaluationError) as error:
        call(name, (left, t), (right, t))
    assert error.value.condition == condition


def test_try_form_gives_null() -> None:
    """The try form is NULL where the plain one raises."""
    assert call("try_add", (2**31 - 1, INT32), (1, INT32)) is None
    assert call("try_divide", (1.0, FLOAT64), (0.0, FLOAT64)) is None


@pytest.mark.parametrize(("a", "b", "expected"), [(-7, 3, 2), (-7, -3, -1), (7, -3, 1), (7, 3, 1)])
def test_pmod(a: int, b: int, expected: int) -> None:
    """PMOD has the sign of the divisor only where Java's remainder is negative."""
    assert call("pmod", (a, INT32), (b, INT32)) == expected


def test_remainder_takes_the_sign_of_the_dividend() -> None:
    """``%`` truncates, as Java does."""
    assert call("%", (-7, INT32), (3, INT32)) == -1
    assert call("%", (-5.5, FLOAT64), (2.0, FLOAT64)) == -1.5


def test_floats_are_rounded_to_32_bits_and_share_one_nan() -> None:
    """A FLOAT result is a 32-bit number; NaN is the one NAN."""
    assert call("+", (1.0, FLOAT32), (0.10000000149011612, FLOAT32)) == 1.100000023841858
    assert call("-", (math.inf, FLOAT64), (math.inf, FLOAT64)) is NAN


def test_decimal_result_types() -> None:
    """Precision and scale follow Spark's rules with allowPrecisionLoss."""
    ten, big = Decimal(10, 2), Decimal(38, 10)
    assert sum_type(ten, big) == Decimal(38, 9)
    assert product_type(ten, big) == Decimal(38, 6)
    assert quotient_type(ten, big) == Decimal(38, 20)
    assert remainder_type(ten, big) == Decimal(18, 10)


def test_decimal_overflow_raises() -> None:
    """A decimal that needs more than 38 digits is out of range."""
    largest = (Number(10**38 - 1), Decimal(38, 0))
    with pytest.raises(EvaluationError) as error:
        call("+", largest, largest)
    assert error.value.condition == "NUMERIC_VALUE_OUT_OF_RANGE"


def test_decimal_division_rounds_once() -> None:
    """The quotient is rounded from its exact value: 0.10000149… with 38 nines is 0.100001."""
    divisor = (Number("9.9998500022499662505062424063639045415"), Decimal(38, 37))
    assert call("/", (Number(1), Decimal(38, 0)), divisor) == Number("0.100001")


def test_negating_a_long_decimal_rounds_to_34_digits() -> None:
    """Scala's BigDecimal negates in a context of 34 digits, and Spark with it."""
    value = Number(12345678901234567890123456789012345678)
    assert call("negative", (value, Decimal(38, 0))) == Number(-12345678901234567890123456789012350000)
