"""What the law tests share: one oracle, whose tables each example replaces."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import pytest

from everview.frontend.gateway import SparkGateway
from everview.relational.arrow import fields_from_arrow
from everview.relational.nodes import Relation
from tests.corpus.data import Query, finance_tables, small_tables, tpch_tables
from tests.oracle.oracle import Oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def oracle(spark: SparkSession) -> Oracle:
    """Spark and the reference backend, side by side."""
    return Oracle(spark)


@pytest.fixture(scope="session")
def corpus_gateway(spark: SparkSession) -> SparkGateway:
    """A gateway that knows the corpus's tables."""
    gateway = SparkGateway(spark)
    for name, table in {**tpch_tables(0.01), **finance_tables("tiny"), **small_tables()}.items():
        gateway.register(name, fields_from_arrow(table.schema))
    return gateway


@pytest.fixture(scope="session")
def corpus_plan(corpus_gateway: SparkGateway) -> Callable[[Query], Relation]:
    """The algebra of a corpus query, translated once for all tests."""
    return cache(lambda query: corpus_gateway.translate(query.sql).plan)
