"""DataFrames of a session of ours, made from columns, from rows or from a plan of Catalyst's."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from everview.frontend.month_intervals import as_intervals, has_months, with_numbers
from everview.frontend.spark_types import schema_to_spark_json
from everview.relational.arrow import column_to_arrow, data_type_from_arrow, internal_values, without_empty_batches
from everview.relational.nodes import Field, Schema
from everview.relational.types import Variant, holds


def struct_type(fields: Schema) -> StructType:
    """The columns as PySpark's type of a row."""
    return StructType.fromJson(schema_to_spark_json(fields))


def empty_rows(session: Any, fields: Schema) -> Any:
    """An empty DataFrame of the JVM; PySpark would take half a second to make the first one."""
    schema = session._jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(schema_to_spark_json(fields)))
    return session._jsparkSession.createDataFrame(session.sparkContext._jsc.emptyRDD(), schema)


def frame_of_rows(session: SparkSession, rows: pa.Table, fields: Schema) -> DataFrame:
    """The rows, with exactly these columns."""
    for i, f in enumerate(fields):
        if holds(f.type, Variant):  # made anew, because PySpark casts what is below a NULL
            rows = rows.set_column(i, f.name, column_to_arrow(internal_values(rows.column(i), f.type), f.type))
    return session.createDataFrame(without_empty_batches(rows), schema=struct_type(fields))


def frame_of_answer(session: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows of a view or of an answer, which may have columns that no table can have: intervals of months, only NULLs."""
    fields = tuple(Field(f.name, data_type_from_arrow(f.type), f.nullable) for f in rows.schema)
    if not any(has_months(f.type) for f in fields):
        return frame_of_rows(session, rows, fields)
    numbered = tuple(Field(f"c{i}", with_numbers(f.type), f.nullable) for i, f in enumerate(fields))
    columns = [
        column_to_arrow(internal_values(c, f.type), n.type) if has_months(f.type) else c
        for c, f, n in zip(rows.columns, fields, numbered, strict=True)
    ]
    frame = frame_of_rows(session, pa.table(columns, names=[n.name for n in numbered]), numbered)
    shown = [as_intervals(frame[n.name], f.type).alias(f.name) for n, f in zip(numbered, fields, strict=True)]
    return frame.select(*shown)


def frame_of_plan(session: Any, plan: Any) -> DataFrame:
    """What a resolved plan computes."""
    dataset = session._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def plan_of_frame(frame: DataFrame) -> Any:
    """The resolved plan of a DataFrame."""
    return frame._jdf.queryExecution().analyzed()
