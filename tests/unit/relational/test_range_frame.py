from __future__ import annotations

import datetime
from decimal import Decimal as PythonDecimal

import pytest

from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Column, Literal
from everview.relational.range_frame import range_bound
from everview.relational.types import (
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT32,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
    Value,
)

DAY = 86_400_000_000


def _days(text: str) -> int:
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


def _micros(text: str) -> int:
    return int(datetime.datetime.fromisoformat(text + "+00:00").timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("data_type", "offset", "function"),
    [
        (INT32, Literal(2, INT32), "+"),
        (FLOAT64, Literal(0.5, FLOAT64), "+"),
        (DATE, Literal(2, INT32), "date_add"),
        (DATE, Literal(2, YEAR_MONTH_INTERVAL), "date_add_interval"),
        (TIMESTAMP, Literal(DAY, DAY_TIME_INTERVAL), "timestamp_add_interval"),
        (TIMESTAMP_NTZ, Literal(1, YEAR_MONTH_INTERVAL), "timestamp_add_interval"),
    ],
)
def test_bound_is_the_value_plus_the_offset(data_type: DataType, offset: Literal, function: str) -> None:
    """By the addition that the type has, with the zone where it matters."""
    value = Column(0, data_type)
    bound = range_bound(value, offset, descending=False, zone="CET")
    assert isinstance(bound, Call)
    assert (bound.function, bound.args) == (function, (value, offset))
    assert bound.zone == ("CET" if function == "timestamp_add_interval" else None)


def test_descending_order_goes_the_other_way() -> None:
    """A following row of a descending order has a smaller value."""
    bound = range_bound(Column(0, INT32), Literal(2, INT32), descending=True, zone=None)
    assert bound == Call("+", (Column(0, INT32), Literal(-2, INT32)), INT32)


@pytest.mark.parametrize(
    ("value", "data_type", "offset", "descending", "expected"),
    [
        (_days("2024-03-01"), DATE, Literal(-2 * DAY, DAY_TIME_INTERVAL), False, _days("2024-02-28")),
        (_days("2024-03-01"), DATE, Literal(-2 * DAY, DAY_TIME_INTERVAL), True, _days("2024-03-03")),
        (_days("2024-03-31"), DATE, Literal(-1, YEAR_MONTH_INTERVAL), False, _days("2024-02-29")),
        (_micros("2024-03-30T12:00:00"), TIMESTAMP, Literal(DAY, DAY_TIME_INTERVAL), False, _micros("2024-03-31T12:00:00")),
        (_micros("2024-01-31T00:00:00"), TIMESTAMP, Literal(1, YEAR_MONTH_INTERVAL), False, _micros("2024-02-29T00:00:00")),
        (_micros("2024-01-01T00:00:00"), TIMESTAMP_NTZ, Literal(1, YEAR_MONTH_INTERVAL), True, _micros("2023-12-01T00:00:00")),
    ],
)  # fmt: skip
def test_dates_and_timestamps_move(
    value: int, data_type: DataType, offset: Literal, descending: bool, expected: Value
) -> None:
    """Days are days, and a month ends where it ends."""
    bound = range_bound(Column(0, data_type), offset, descending=descending, zone="UTC")
    assert evaluate(bound, (value,)) == expected


def test_decimal_bound_may_be_wider() -> None:
    """99.9 + 0.1 has a digit more than its column, and fits."""
    offset = Literal(PythonDecimal("0.1"), Decimal(3, 1))
    bound = range_bound(Column(0, Decimal(3, 1)), offset, descending=False, zone=None)
    assert bound.type == Decimal(4, 1)
    assert evaluate(bound, (PythonDecimal("99.9"),)) == PythonDecimal("100.0")
