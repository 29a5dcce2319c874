"""Constants as SQL text."""

from __future__ import annotations

from decimal import Decimal as Number

import pytest

from everview.backends.spark.sql_literals import literal_sql, text_sql, type_sql
from everview.relational.quoting import quote
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Struct,
)


@pytest.mark.parametrize(
    ("value", "data_type", "text"),
    [
        (True, BOOLEAN, "TRUE"),
        (-1, INT8, "(-1Y)"),
        (-(2**31), INT32, "CAST('-2147483648' AS int)"),
        (7, INT64, "(7L)"),
        (float("-inf"), FLOAT64, "CAST('-Infinity' AS double)"),
        (-0.0, FLOAT64, "CAST('-0.0' AS double)"),
        (Number("1E-7"), Decimal(10, 7), "CAST(0.0000001BD AS decimal(10,7))"),
        ("a'b\\c\n", STRING, "'a\\'b\\\\c\\u000a'"),
        (b"\x00\xff", BINARY, "X'00ff'"),
        (-1, DATE, "date_from_unix_date(-1)"),
        (5, TIMESTAMP, "timestamp_micros((5L))"),
        (-1, DAY_TIME_INTERVAL, "INTERVAL '-0 00:00:00.000001' DAY TO SECOND"),
        (14, YEAR_MONTH_INTERVAL, "make_ym_interval(0, (14))"),
        (None, NULL, "NULL"),
        ((), Array(INT32), "CAST(array() AS array<int>)"),
        ((1, None), Struct(("a b", "c"), (INT32, STRING)), "named_struct('a b', (1), 'c', CAST(NULL AS string))"),
    ],
)
def test_constants(value: object, data_type: DataType, text: str) -> None:
    """Each constant has a text that Spark resolves to the same value and type."""
    assert literal_sql(value, data_type) == text


def test_names() -> None:
    """Whatever a column or field is called, its name is quoted."""
    assert quote("a`b") == "`a``b`"
    assert type_sql(Array(Struct(("x",), (Decimal(5, 1),)))) == "array<struct<`x`: decimal(5,1)>>"
    assert text_sql("") == "''"
