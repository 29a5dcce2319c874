"""Plans evaluated as Spark SQL: the whole corpus has Spark's own answer again after the way through the algebra."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from everview.backends.spark.evaluate import column_names, plan_sql
from everview.relational.arrow import rows_from_arrow
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from tests.corpus.data import Query, finance_tables, queries, small_tables, tpch_tables
from tests.oracle.bags import assert_same_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDERS = ("tpch", "multilevel", "queryplan", "general")
_EVERY = 20


@cache
def _tables() -> dict[str, pa.Table]:
    return {**tpch_tables(0.001), **finance_tables("tiny"), **small_tables()}


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> tuple[SparkSession, SparkSession]:
    """Two sessions with the tables: by name for the queries, by position for our text."""
    by_name, by_position = spark.newSession(), spark.newSession()
    for session in (by_name, by_position):
        session.conf.set("spark.sql.shuffle.partitions", "1")
        session.conf.set("spark.sql.codegen.wholeStage", "false")
    for name, table in _tables().items():
        by_name.createDataFrame(table).createOrReplaceTempView(name)
        frame = by_position.createDataFrame(table)
        frame.toDF(*column_names(table.num_columns)).createOrReplaceTempView(name)
    return by_name, by_position


def _queries() -> list[object]:
    every = [q for folder in _FOLDERS for q in queries(folder)]
    return [
        pytest.param(q, id=f"{q.file.parent.name}-{q.name}", marks=() if i % _EVERY == 0 else (pytest.mark.slow,))
        for i, q in enumerate(every)
    ]


@pytest.mark.parametrize("query", _queries())
def test_our_sql_has_sparks_answer(
    query: Query, corpus_plan: Callable[[Query], Relation], sessions: tuple[SparkSession, SparkSession]
) -> None:
    """A plan written as SQL means what the query meant."""
    by_name, by_position = sessions
    plan = corpus_plan(query)
    ours = by_position.sql(plan_sql(plan, lambda table: table)).toArrow()
    theirs = by_name.sql(query.sql).toArrow()
    fields = schema(plan)
    assert_same_bag(rows_from_arrow(ours, fields), rows_from_arrow(theirs, fields), query.name)
