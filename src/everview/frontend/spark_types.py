"""Spark's data types, as its JSON writes them, to ours and back."""

from __future__ import annotations

import re
from typing import Any

from everview.errors import UnsupportedQuery
from everview.relational.nodes import Field, Schema
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
    Variant,
)

_ATOMIC: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "byte": INT8,
    "short": INT16,
    "integer": INT32,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "void": NULL,
    "null": NULL,
    "variant": VARIANT,
}
_JSON_NAMES = {t: name for name, t in _ATOMIC.items() if name != "null"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_YEAR_MONTH = re.compile(r"interval (year|month)( to month)?")
_DAY_TIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")


def from_spark_json(json: Any) -> DataType:
    """Our type for a ``dataType`` of Catalyst's JSON.

    Raises:
        UnsupportedQuery: a type everview does not store (calendar intervals, collated strings).
    """
    if isinstance(json, str):
        if json in _ATOMIC:
            return _ATOMIC[json]
        if decimal := _DECIMAL.fullmatch(json):
            return Decimal(int(decimal[1]), int(decimal[2]))
        if _YEAR_MONTH.fullmatch(json):
            return YEAR_MONTH_INTERVAL
        if _DAY_TIME.fullmatch(json):
            return DAY_TIME_INTERVAL
    elif json.get("type") == "array":
        return Array(from_spark_json(json["elementType"]), json["containsNull"])
    elif json.get("type") == "struct":
        parts = json["fields"]
        if len({f["name"] for f in parts}) < len(parts):
            raise UnsupportedQuery(
                "a struct with two fields of one name is not supported.",
                operator="struct",
                hint="give its fields different names, as in named_struct('a', x, 'b', y).",
            )
        return Struct(tuple(f["name"] for f in parts), tuple(from_spark_json(f["type"]) for f in parts))
    elif json.get("type") == "map":
        inside = (from_spark_json(json["keyType"]), from_spark_json(json["valueType"]))
        return Map(*inside, json["valueContainsNull"])
    name = json if isinstance(json, str) else json.get("type")
    raise UnsupportedQuery(
        f"the data type {name} is not supported.",
        operator=str(name),
        hint="cast the column to a supported type, such as string, before it reaches everview.",
    )


def to_spark_json(data_type: DataType) -> Any:
    """The ``dataType`` of Spark's JSON schema for one of ours."""
    match data_type:
        case Variant():
            return "variant"
        case Decimal():
            return f"decimal({data_type.precision},{data_type.scale})"
        case Array():
            element = to_spark_json(data_type.element)
            return {"type": "array", "elementType": element, "containsNull": data_type.contains_null}
        case Map():
            inside = {"keyType": to_spark_json(data_type.key), "valueType": to_spark_json(data_type.value)}
            return {"type": "map", **inside, "valueContainsNull": data_type.contains_null}
        case Struct():
            parts = zip(data_type.names, data_type.types, strict=True)
            return schema_to_spark_json(tuple(Field(n, t) for n, t in parts))
        case _ if data_type == YEAR_MONTH_INTERVAL:
            return "interval year to month"
        case _ if data_type == DAY_TIME_INTERVAL:
            return "interval day to second"
        case _:
            return _JSON_NAMES[data_type]


def schema_to_spark_json(fields: Schema) -> dict[str, Any]:
    """The JSON of the StructType with these columns."""
    columns = [{"name": f.name, "type": to_spark_json(f.type), "nullable": f.nullable, "metadata": {}} for f in fields]
    return {"type": "struct", "fields": columns}
