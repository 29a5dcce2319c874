"""The rows of a DataFrame as Arrow, intervals of months included, which PySpark does not convert.

Such a column leaves Spark as numbers of months, at any depth, and is made a column of intervals again here. Other columns are
PySpark's to convert; but its strings may be any bytes, and Arrow's are UTF-8.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, YearMonthIntervalType

from everview.frontend.spark_types import from_spark_json
from everview.relational import types
from everview.relational.arrow import column_to_arrow, internal_values
from everview.relational.arrow_text import as_java_reads


def arrow_of_frame(frame: DataFrame) -> pa.Table:
    """What ``frame.toArrow()`` is, for intervals of months too, and with text that is text."""
    found = _converted(frame)
    return pa.table([as_java_reads(column) for column in found.columns], schema=found.schema)


def _converted(frame: DataFrame) -> pa.Table:
    fields = list(frame.schema)
    if not any(_has_months(f.dataType) for f in fields):
        return frame.toArrow()
    numbered = frame.toDF(*(f"c{i}" for i in range(len(fields))))  # names may occur twice, or have dots
    columns = [_as_numbers(numbered[f"c{i}"], f.dataType).alias(f"c{i}") for i, f in enumerate(fields)]
    found = numbered.select(*columns).toArrow()
    arrays = [
        column_to_arrow(internal_values(column, _with_numbers(whole)), whole) if _has_months(f.dataType) else column
        for column, f in zip(found.columns, fields, strict=True)
        for whole in [from_spark_json(f.dataType.jsonValue())]
    ]
    return pa.table(arrays, names=[f.name for f in fields])


def _has_months(spark_type: DataType) -> bool:
    match spark_type:
        case YearMonthIntervalType():
            return True
        case ArrayType():
            return _has_months(spark_type.elementType)
        case MapType():
            return _has_months(spark_type.keyType) or _has_months(spark_type.valueType)
        case StructType():
            return any(_has_months(f.dataType) for f in spark_type)
        case _:
            return False


def _as_numbers(column: Column, spark_type: DataType) -> Column:
    """The value with every interval of months as the number of its months."""
    if not _has_months(spark_type):
        return column
    match spark_type:
        case ArrayType():
            return F.transform(column, lambda e: _as_numbers(e, spark_type.elementType))
        case MapType():
            entries = F.transform(
                F.map_entries(column),
                lambda e: F.struct(
                    _as_numbers(e["key"], spark_type.keyType), _as_numbers(e["value"], spark_type.valueType)
                ),
            )
            return F.map_from_entries(entries)
        case StructType():
            parts = [_as_numbers(column.getField(f.name), f.dataType).alias(f.name) for f in spark_type]
            return F.when(column.isNotNull(), F.struct(*parts))
        case _:
            return F.extract(F.lit("YEAR"), column) * 12 + F.extract(F.lit("MONTH"), column)


def _with_numbers(whole: types.DataType) -> types.DataType:
    """The type that :func:`_as_numbers` leaves."""
    match whole:
        case types.Array(element):
            return types.Array(_with_numbers(element))
        case types.Map(key, value):
            return types.Map(_with_numbers(key), _with_numbers(value))
        case types.Struct(names, parts):
            return types.Struct(names, tuple(_with_numbers(p) for p in parts))
        case types.YearMonthInterval():
            return types.INT32
        case _:
            return whole
