from __future__ import annotations

import math
from decimal import Decimal as PythonDecimal

import pytest

from everview.errors import EvaluationError
from everview.relational.definitions.aggregates import evaluate_aggregate, float_sum
from everview.relational.expressions import Column
from everview.relational.nodes import AggregateCall
from everview.relational.types import (
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT32,
    INT64,
    NAN,
    STRING,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
    Row,
    Value,
)

LONG_MAX = 2**63 - 1
INF = math.inf
STATISTICS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


def _of(function: str, result: DataType, *values: Value, argument: DataType | None = None) -> Value:
    """The aggregate of single values."""
    call = AggregateCall(function, (Column(0, argument or result),), result)
    return evaluate_aggregate(call, [(v,) for v in values])


def _of_pairs(function: str, *rows: Row, types: tuple[DataType, DataType] = (FLOAT64, FLOAT64)) -> Value:
    call = AggregateCall(function, (Column(0, types[0]), Column(1, types[1])), types[0])
    return evaluate_aggregate(call, rows)


def _decimals(*texts: str) -> list[PythonDecimal]:
    return [PythonDecimal(t) for t in texts]


@pytest.mark.parametrize("function", ["sum", "avg", "min", "max", *STATISTICS])
def test_aggregate_of_nothing_is_null(function: str) -> None:
    """Of no rows, and of NULLs alone."""
    assert _of(function, FLOAT64) is None
    assert _of(function, FLOAT64, None, None) is None


def test_counts() -> None:
    """COUNT(*) counts rows, COUNT of arguments the rows without a NULL among them; of nothing it is 0."""
    every = AggregateCall("count", (), INT64)
    assert evaluate_aggregate(every, [(), (), ()]) == 3
    assert evaluate_aggregate(every, []) == 0
    assert _of_pairs("count", (1, 2), (1, None), (None, None)) == 1
    assert _of("count", INT64, None, NAN, 0) == 2


def test_integer_sums_overflow_only_in_total() -> None:
    """The sum of the bag must fit a bigint; what fits on the way depends on an order that a bag does not have."""
    assert _of("sum", INT64, LONG_MAX, 1, -1) == LONG_MAX
    with pytest.raises(EvaluationError) as caught:
        _of("sum", INT64, LONG_MAX, 1)
    assert caught.value.condition == "ARITHMETIC_OVERFLOW"
    assert "try_sum" in str(caught.value)
    assert _of("try_sum", INT64, LONG_MAX, 1) is None
    assert _of("sum", INT64, 1, None, 2) == 3


def test_decimal_sums_are_exact() -> None:
    """No context rounds them; the result has the type's digits or fails."""
    wide = Decimal(38, 2)
    large = "9" * 35 + ".99"
    assert _of("sum", wide, *_decimals(large, "0.01")) == PythonDecimal("1" + "0" * 35 + ".00")
    assert str(_of("sum", wide, *_decimals("1.10", "-1.10"))) == "0.00"
    with pytest.raises(EvaluationError) as caught:
        _of("sum", Decimal(4, 2), *_decimals("99.99", "0.01"))
    assert caught.value.condition == "NUMERIC_VALUE_OUT_OF_RANGE"
    assert _of("try_sum", Decimal(4, 2), *_decimals("99.99", "0.01")) is None


def test_decimal_averages_round_half_up() -> None:
    """To the scale of the result type, away from zero."""
    argument, result = Decimal(3, 1), Decimal(7, 2)
    assert _of("avg", result, *_decimals("0.1", "0.0", "0.0", "0.0"), argument=argument) == PythonDecimal("0.03")
    assert _of("avg", result, *_decimals("-0.1", "0.0", "0.0", "0.0"), argument=argument) == PythonDecimal("-0.03")
    assert str(_of("avg", Decimal(8, 6), *_decimals("1.00", "0.00", "0.00"), argument=Decimal(4, 2))) == "0.333333"


def test_float_sums_are_correctly_rounded() -> None:
    """In any order of the values."""
    assert _of("sum", FLOAT64, 1e16, 1.0, -1e16) == 1.0
    assert float_sum([0.1] * 10) == 1.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((INF, 1.0), INF),
        ((-INF, 1.0), -INF),
        ((INF, -INF), NAN),
        ((NAN, 1.0), NAN),
        ((NAN, INF), NAN),
        ((1.7e308, 1.7e308), INF),
        ((-1.7e308, -1.7e308), -INF),
    ],
)
def test_special_sums(values: tuple[float, ...], expected: float) -> None:
    """Infinities and NaN as IEEE has them; NaN is the one NAN, which groups and compares as equal to itself."""
    total = _of("sum", FLOAT64, *values)
    assert total is NAN if expected is NAN else total == expected


def test_overflow_has_the_sign_of_the_sum() -> None:
    """A small positive value does not turn a sum below -1.8e308 into plus infinity."""
    assert _of("sum", FLOAT64, -1.7e308, -1.7e308, 1.0) == -INF
    assert _of("sum", FLOAT64, 1.7e308, 1.7e308, -1.0) == INF


def test_sum_that_fits_after_an_overflow_on_the_way() -> None:
    """The correctly rounded sum of a bag does not depend on partial sums."""
    assert _of("sum", FLOAT64, 1.7e308, 1.7e308, -1.7e308) == 1.7e308


@pytest.mark.parametrize("function", ["sum", "avg", *STATISTICS])
def test_nan_results_are_the_one_nan(function: str) -> None:
    """Rows are compared and grouped by Python's identity shortcut, so another NaN object would be a different value."""
    assert _of(function, FLOAT64, NAN, 1.0, 2.0) is NAN


@pytest.mark.parametrize("function", ["covar_pop", "covar_samp", "corr"])
def test_nan_results_of_pairs_are_the_one_nan(function: str) -> None:
    """The same for the functions of two arguments."""
    assert _of_pairs(function, (NAN, 1.0), (1.0, 2.0), (2.0, 4.0)) is NAN


def test_averages() -> None:
    """Integers average as doubles; intervals round half away from zero."""
    assert _of("avg", FLOAT64, 1, 2, None, argument=INT32) == 1.5
    assert _of("avg", FLOAT64, INF, 1.0) == INF
    assert _of("avg", DAY_TIME_INTERVAL, 1, 2) == 2
    assert _of("avg", DAY_TIME_INTERVAL, -1, -2) == -2
    assert _of("avg", YEAR_MONTH_INTERVAL, 1, 1, 2) == 1


def test_interval_sums_stay_in_range() -> None:
    """A year-month interval has 32 bits, and a sum beyond them is an error as in Spark."""
    assert _of("sum", YEAR_MONTH_INTERVAL, 5, 7) == 12
    with pytest.raises(EvaluationError):
        _of("sum", YEAR_MONTH_INTERVAL, 2**31 - 1, 1)


def test_extremes() -> None:
    """NaN is above infinity; strings by code point; NULLs do not count."""
    assert _of("max", FLOAT64, 1.0, NAN, INF) is NAN
    assert _of("min", FLOAT64, NAN, INF) == INF
    assert _of("min", FLOAT64, NAN) is NAN
    assert _of("min", STRING, "b", None, "B", "é") == "B"
    assert _of("max", STRING, "b", "é", "z") == "é"


def test_extremes_by_another_column() -> None:
    """The value beside the extreme; among equals the extreme value, NULL the least; NULL orders do not count."""
    types = (STRING, INT32)
    rows: list[Row] = [("b", 1), ("a", 1), (None, 2), ("c", None)]
    assert _of_pairs("min_by", *rows, types=types) == "a"
    assert _of_pairs("max_by", *rows, types=types) is None
    assert _of_pairs("max_by", ("x", 2), (None, 2), types=types) == "x"
    assert _of_pairs("max_by", ("c", None), types=types) is None


def test_variance() -> None:
    """Population and sample; the sample's of one value is NULL, and large means lose no digits."""
    assert _of("var_pop", FLOAT64, 1.0, 3.0) == 1.0
    assert _of("var_samp", FLOAT64, 1.0, 3.0, None) == 2.0
    assert _of("stddev_pop", FLOAT64, 1.0, 3.0) == 1.0
    assert _of("stddev_samp", FLOAT64, 1.0, 3.0) == math.sqrt(2)
    assert _of("var_pop", FLOAT64, 5.0) == 0.0
    assert _of("var_samp", FLOAT64, 5.0) is None
    assert _of("var_pop", FLOAT64, 1e9 + 1, 1e9 + 3) == 1.0


def test_covariance_and_correlation() -> None:
    """Pairs with a NULL do not count; a constant correlates with nothing."""
    line: list[Row] = [(1.0, 2.0), (2.0, 4.0), (3.0, 6.0), (None, 1.0)]
    assert _of_pairs("covar_pop", *line) == pytest.approx(4 / 3)
    assert _of_pairs("covar_samp", *line) == 2.0
    assert _of_pairs("corr", *line) == pytest.approx(1.0)
    assert _of_pairs("corr", (1.0, 2.0), (2.0, 2.0)) is None
    assert _of_pairs("corr", (1.0, 2.0)) is None
    assert _of_pairs("covar_samp", (1.0, 2.0)) is None
