"""The law for the whole corpus: reference(frontend(query)) == Spark(query), as bags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.errors import UnsupportedQuery
from everview.frontend.gateway import SparkGateway
from everview.relational.arrow import fields_from_arrow, rows_from_arrow
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.types import Row
from tests.corpus.data import Query, finance_tables, queries, small_tables, tpch_tables
from tests.oracle.bags import assert_same_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDERS = ("tpch", "multilevel", "queryplan", "general")
_SCALE = 0.01


@cache
def _tables() -> dict[str, pa.Table]:
    return {**tpch_tables(_SCALE), **finance_tables("tiny"), **small_tables()}


@cache
def _rows(name: str) -> list[Row]:
    table = _tables()[name]
    return rows_from_arrow(table, fields_from_arrow(table.schema))


class _Content(Mapping[str, list[Row]]):
    """The rows of every table, converted when first read."""

    def __getitem__(self, name: str) -> list[Row]:
        return _rows(name)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(_tables())

    def __len__(self) -> int:
        return len(_tables())


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> SparkSession:
    """Spark with the tables of the corpus."""
    session = spark.newSession()
    for name, table in _tables().items():
        frame = session.createDataFrame(table)
        frame.cache().createOrReplaceTempView(name)
    return session


def _all_queries() -> list[Query]:
    return [q for folder in _FOLDERS for q in queries(folder)]


@pytest.mark.parametrize("query", _all_queries(), ids=lambda q: f"{q.file.parent.name}-{q.name}")
def test_reference_equals_spark(query: Query, corpus_plan: Callable[[Query], Relation], answers: SparkSession) -> None:
    """The reference backend's answer to a translated query is Spark's answer to the query."""
    plan = corpus_plan(query)
    ours = evaluate_plan(plan, _Content())
    theirs = rows_from_arrow(answers.sql(query.sql).toArrow(), schema(plan))
    assert_same_bag(ours, theirs, query.name)


@pytest.mark.parametrize("query", queries("unsupported.sql"), ids=lambda q: q.name)
def test_unsupported_queries_are_refused(query: Query, corpus_gateway: SparkGateway) -> None:
    """What has no well-defined content is refused when the view is created, naming the operator."""
    with pytest.raises(UnsupportedQuery) as caught:
        corpus_gateway.translate(query.sql)
    assert caught.value.operator
