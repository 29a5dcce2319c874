"""DataFrames of a session of ours, made from columns, from rows or from a plan of Catalyst's."""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from everview.errors import UnsupportedOperation
from everview.frontend.spark_types import schema_to_spark_json
from everview.relational.arrow import data_type_from_arrow, without_empty_batches
from everview.relational.nodes import Field, Schema

_MONTHS: Final = pa.month_day_nano_interval()


def struct_type(fields: Schema) -> StructType:
    """The columns as PySpark's type of a row."""
    return StructType.fromJson(schema_to_spark_json(fields))


def empty_rows(session: Any, fields: Schema) -> Any:
    """An empty DataFrame of the JVM; PySpark would take half a second to make the first one."""
    schema = session._jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(schema_to_spark_json(fields)))
    return session._jsparkSession.createDataFrame(session.sparkContext._jsc.emptyRDD(), schema)


def frame_of_rows(session: SparkSession, rows: pa.Table, fields: Schema) -> DataFrame:
    """The rows, with exactly these columns."""
    return session.createDataFrame(without_empty_batches(rows), schema=struct_type(fields))


def frame_of_answer(session: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows of a view or of an answer, which may have columns that no table can have: intervals of months, and only NULLs.

    Raises:
        UnsupportedOperation: there are intervals of months inside of arrays, maps or structs.
    """
    months = [f.type == _MONTHS for f in rows.schema]
    columns: list[pa.ChunkedArray] = []
    for field, column, is_months in zip(rows.schema, rows.columns, months, strict=True):
        if not is_months and str(_MONTHS) in str(field.type):
            raise UnsupportedOperation(
                f"column '{field.name}' has intervals of months inside of {field.type}, which PySpark cannot take in.",
                hint="read the view with to_arrow(), or let the query have them as numbers of months.",
            )
        numbers = [None if v is None else v.months for v in column.to_pylist()] if is_months else None
        columns.append(column if numbers is None else pa.chunked_array([pa.array(numbers, pa.int32())]))
    sent = pa.table(columns, names=rows.column_names)
    fields = tuple(
        Field(f.name, data_type_from_arrow(c.type), f.nullable) for f, c in zip(rows.schema, columns, strict=True)
    )
    frame = frame_of_rows(session, sent, fields)
    if not any(months):
        return frame
    numbered = [f"c{i}" for i in range(len(months))]
    shown = [
        expr(f"make_ym_interval(0, {n})" if is_months else n).alias(name)
        for n, name, is_months in zip(numbered, rows.column_names, months, strict=True)
    ]
    return frame.toDF(*numbered).select(*shown)


def frame_of_plan(session: Any, plan: Any) -> DataFrame:
    """What a resolved plan computes."""
    dataset = session._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def plan_of_frame(frame: DataFrame) -> Any:
    """The resolved plan of a DataFrame."""
    return frame._jdf.queryExecution().analyzed()
