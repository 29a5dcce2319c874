from __future__ import annotations

from typing import Any

import pytest

from everview.errors import UnsupportedQuery
from everview.frontend.spark_types import from_spark_json, schema_to_spark_json, to_spark_json
from everview.relational.nodes import Field
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
)

EVERY_TYPE: tuple[tuple[Any, DataType], ...] = (
    ("boolean", BOOLEAN),
    ("byte", INT8),
    ("short", INT16),
    ("integer", INT32),
    ("long", INT64),
    ("float", FLOAT32),
    ("double", FLOAT64),
    ("decimal(12,2)", Decimal(12, 2)),
    ("string", STRING),
    ("binary", BINARY),
    ("date", DATE),
    ("timestamp", TIMESTAMP),
    ("timestamp_ntz", TIMESTAMP_NTZ),
    ("interval year to month", YEAR_MONTH_INTERVAL),
    ("interval day to second", DAY_TIME_INTERVAL),
    ("void", NULL),
    ("variant", VARIANT),
    ({"type": "array", "elementType": "date", "containsNull": False}, Array(DATE, contains_null=False)),
    (
        {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]},
        Struct(("x",), (INT64,)),
    ),
)

BYTES = {"type": "array", "containsNull": True, "elementType": "byte"}


@pytest.mark.parametrize(("json", "data_type"), EVERY_TYPE, ids=str)
def test_types_go_both_ways(json: Any, data_type: DataType) -> None:
    """Every type that everview stores has one JSON form, and comes back from it."""
    assert from_spark_json(json) == data_type
    assert to_spark_json(data_type) == json


@pytest.mark.parametrize(
    ("json", "data_type"),
    [
        ("interval month", YEAR_MONTH_INTERVAL),
        ("interval year", YEAR_MONTH_INTERVAL),
        ("interval day", DAY_TIME_INTERVAL),
        ("interval hour to second", DAY_TIME_INTERVAL),
        ("decimal(10, 3)", Decimal(10, 3)),
        ("null", NULL),
        ({**BYTES, "elementType": BYTES}, Array(Array(INT8))),
        (
            {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False},
            Map(STRING, INT64, False),
        ),
    ],
)
def test_other_spellings(json: Any, data_type: DataType) -> None:
    """Intervals of every unit are months or microseconds; types nest."""
    assert from_spark_json(json) == data_type


@pytest.mark.parametrize(
    ("json", "name"),
    [
        ("interval", "interval"),
        ("string collate UNICODE", "string collate UNICODE"),
        ({"type": "udt", "class": "x"}, "udt"),
    ],
)
def test_unsupported_types_are_named(json: Any, name: str) -> None:
    """Calendar intervals, collations: refused by name, with advice."""
    with pytest.raises(UnsupportedQuery, match=f"the data type {name} is not supported") as caught:
        from_spark_json(json)
    assert caught.value.operator == name
    assert caught.value.hint is not None


def test_schemas_keep_nullability() -> None:
    """The JSON of a StructType, column by column."""
    assert schema_to_spark_json((Field("k", INT64, nullable=False), Field("v", STRING))) == {
        "type": "struct",
        "fields": [
            {"name": "k", "type": "long", "nullable": False, "metadata": {}},
            {"name": "v", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
