"""The rows of a DataFrame as Arrow, intervals of months included, which PySpark does not convert.

Other columns are PySpark's to convert; but its strings may be any bytes, and Arrow's are UTF-8.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType, YearMonthIntervalType

from everview.frontend.month_intervals import as_numbers, with_numbers
from everview.frontend.spark_types import from_spark_json
from everview.relational.arrow import arrow_type, column_to_arrow, internal_values
from everview.relational.arrow_text import as_java_reads


def arrow_of_frame(frame: DataFrame) -> pa.Table:
    """What ``frame.toArrow()`` is, for intervals of months too, and with text that is text."""
    found = converted(frame)
    return pa.table([as_java_reads(column) for column in found.columns], schema=found.schema)


def converted(frame: DataFrame) -> pa.Table:
    """The same with text as Spark has it, which may be any bytes."""
    fields = list(frame.schema)
    months = {
        i: from_spark_json(f.dataType.jsonValue())
        for i, f in enumerate(fields)
        if _has(YearMonthIntervalType, f.dataType)
    }
    if not months:
        return rows_of_frame(frame)
    numbered = frame.toDF(*(f"c{i}" for i in range(len(fields))))  # names may occur twice, or have dots
    columns = [numbered[f"c{i}"] for i in range(len(fields))]
    sent = [as_numbers(c, months[i]).alias(f"c{i}") if i in months else c for i, c in enumerate(columns)]
    arrays = list(rows_of_frame(numbered.select(*sent)).columns)
    for i, whole in months.items():
        arrays[i] = column_to_arrow(internal_values(arrays[i], with_numbers(whole)), whole)
    return pa.table(arrays, names=[f.name for f in fields])


def rows_of_frame(frame: DataFrame) -> pa.Table:
    """What ``frame.toArrow()`` is, which fails where a variant is NULL."""
    if not any(_has(VariantType, f.dataType) for f in frame.schema):
        return frame.toArrow()
    batches = frame._collect_as_arrow(empty_list_if_zero_records=False)  # type: ignore[operator,unused-ignore]
    rows = pa.Table.from_batches(batches)
    types = (arrow_type(from_spark_json(f.dataType.jsonValue())) for f in frame.schema)
    return pa.table([c.cast(t) for c, t in zip(rows.columns, types, strict=True)], names=rows.column_names)


def _has(wanted: type[DataType], spark_type: DataType) -> bool:
    match spark_type:
        case _ if isinstance(spark_type, wanted):
            return True
        case ArrayType():
            return _has(wanted, spark_type.elementType)
        case MapType():
            return _has(wanted, spark_type.keyType) or _has(wanted, spark_type.valueType)
        case StructType():
            return any(_has(wanted, f.dataType) for f in spark_type)
        case _:
            return False
