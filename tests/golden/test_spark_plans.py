"""What Spark's queries become: the printed plans, the Catalyst trees of the JVM-free tests, and how views are maintained."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import pytest

from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.spark.explain import ALL_ROWS
from everview.catalog import TableDefinition, ViewDefinition
from everview.frontend.catalyst_plan import export_plan
from everview.frontend.gateway import SparkGateway
from everview.relational.arrow import fields_from_arrow
from everview.relational.format import format_plan
from everview.relational.nodes import Relation, Schema
from tests.corpus.data import BOOK_SCHEMA, TPCH_KEYS, queries, schemas, tpch_tables
from tests.golden.catalyst_trees import QUERIES, stored_form
from tests.golden.golden_files import assert_golden
from tests.unit.backends.explained_triggers import (
    assert_same_but_for_order,
    assert_same_program,
    embedded_triggers,
    spark_triggers,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Translate = Callable[[str], Relation]

TPCH = tuple(query.name for query in queries("tpch"))
GENERAL = (
    "left_condition_on_right",
    "full_two_conditions",
    "left_only_unmatched",
    "not_in_null_aware_with_nulls",
    "not_in_correlated",
    "scalar_correlated_inequality",
    "scalar_uncorrelated",
    "exists_in_or",
    "rollup_two",
    "range_dates",
    "rank_filtered_top_two",
    "posexplode_outer_split",
    "cte_twice",
    "except_all",
    "intersect_distinct",
    "limit_offset",
)
EXPLAINED = ("q03", "q04", "q05", "q09", "q13", "q17", "q18", "not_in_null_aware_with_nulls", "range_dates")


@cache
def _sql() -> dict[str, str]:
    return {query.name: query.sql for folder in ("general", "tpch") for query in queries(folder)}


@cache
def _tables() -> dict[str, Schema]:
    arrow = {name: table.schema for name, table in tpch_tables(0.001).items()}
    arrow |= {**schemas(), "bids": BOOK_SCHEMA, "asks": BOOK_SCHEMA}
    return {name: fields_from_arrow(each) for name, each in arrow.items()}


@pytest.fixture(scope="module")
def gateway(spark: SparkSession) -> SparkGateway:
    """Knows the tables of the corpus, without rows."""
    gateway = SparkGateway(spark)
    for name, fields in _tables().items():
        gateway.register(name, fields)
    return gateway


@pytest.fixture(scope="module")
def translate(gateway: SparkGateway) -> Translate:
    """From the name of a query to its plan, each translated once."""
    return cache(lambda name: gateway.translate(_sql()[name]).plan)


@pytest.mark.parametrize("name", [*TPCH, *GENERAL])
def test_plan_of_query(name: str, translate: Translate) -> None:
    """The translated and simplified plan of a query is the one that was reviewed."""
    assert_golden(f"plans/{name}.txt", format_plan(translate(name)))


@pytest.mark.parametrize("name", QUERIES)
def test_catalyst_tree_of_query(name: str, gateway: SparkGateway) -> None:
    """The trees that the tests without a JVM start from are those that Spark still makes."""
    session = gateway.table("t1").sparkSession
    analyzed = session.sql(QUERIES[name])._jdf.queryExecution().analyzed()
    assert_golden(f"catalyst/{name}.json", stored_form(export_plan(session, analyzed, QUERIES[name])))


@pytest.mark.parametrize("mode", ["text", "triggers"])
@pytest.mark.parametrize("name", EXPLAINED)
def test_explanation_of_view(name: str, mode: str, translate: Translate) -> None:
    """The operators and triggers that maintain a view on the embedded backend are those that were reviewed."""
    backend = EmbeddedBackend()
    for table, fields in _tables().items():
        backend.create_table(TableDefinition(table, fields, TPCH_KEYS.get(table, ())))
    backend.create_view(ViewDefinition(name, translate(name), _sql()[name], "UTC"))
    assert_golden(f"explain/{name}.{mode}.txt", backend.explain(name, mode))


IN_ORDER = ("scalar_uncorrelated", "q11", "q22")
"""Queries whose rows the embedded backend keeps in order beside a value; Spark does not, so their programs differ by design."""

FEW_ROWS = ("q02", "q17", "q20", "q21")
"""Queries in which the embedded backend restricts groups to those that a filtered table has, or joins it first."""


@pytest.mark.parametrize("name", [n for n in (*TPCH, *GENERAL) if n not in (*IN_ORDER, *FEW_ROWS)])
def test_both_backends_execute_one_program(name: str, translate: Translate) -> None:
    """The trigger program of a query is the same on both backends, but for lines that say why not."""
    tables = {table: TableDefinition(table, fields, TPCH_KEYS.get(table, ())) for table, fields in _tables().items()}
    assert_same_program(ViewDefinition(name, translate(name), _sql()[name], "UTC"), tables)


@pytest.mark.parametrize("name", FEW_ROWS)
def test_only_the_embedded_backend_takes_few_rows_first(name: str, translate: Translate) -> None:
    """Where the programs differ, that is why, and Spark says so: none of the exceptions is there without need."""
    tables = {table: TableDefinition(table, fields, TPCH_KEYS.get(table, ())) for table, fields in _tables().items()}
    view = ViewDefinition(name, translate(name), _sql()[name], "UTC")
    with pytest.raises(AssertionError):
        assert_same_program(view, tables)
    assert f"on Spark: {ALL_ROWS}\n" in spark_triggers(view, tables)


@pytest.mark.parametrize("name", IN_ORDER)
def test_spark_says_where_it_keeps_no_order(name: str, translate: Translate) -> None:
    """Where the embedded backend turns rows between two values, Spark joins and says so; all else is the same program."""
    tables = {table: TableDefinition(table, fields, TPCH_KEYS.get(table, ())) for table, fields in _tables().items()}
    view = ViewDefinition(name, translate(name), _sql()[name], "UTC")
    ours, theirs = embedded_triggers(view, tables), spark_triggers(view, tables)
    assert "on Spark: nothing is kept in order; a changed row is compared with all of the other side" in theirs
    assert ALL_ROWS not in theirs
    assert "O(log N + rows that turn)" in ours
    assert_same_but_for_order(ours, theirs)
