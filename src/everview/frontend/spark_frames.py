"""DataFrames of a session of ours, made from columns, from rows or from a plan of Catalyst's."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from everview.frontend.spark_types import schema_to_spark_json
from everview.relational.arrow import without_empty_batches
from everview.relational.nodes import Schema


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


def frame_of_plan(session: Any, plan: Any) -> DataFrame:
    """What a resolved plan computes."""
    dataset = session._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def plan_of_frame(frame: DataFrame) -> Any:
    """The resolved plan of a DataFrame."""
    return frame._jdf.queryExecution().analyzed()
