"""The embedded and the Spark backend execute one trigger program: ``explain(mode="triggers")`` says the same on both."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.spark.explain import EXPLAINERS
from everview.backends.spark.view_programs import ViewPrograms
from everview.catalog import TableDefinition, ViewDefinition, ViewOptions
from everview.relational.expressions import Call, Column, Literal
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Join, JoinKind, Project, Relation, Scan
from everview.relational.schema import columns
from everview.relational.types import BOOLEAN, INT64, STRING
from tests.unit.backends.embedded.tree.generate_blocks import random_query
from tests.unit.backends.explained_triggers import assert_same_program
from tests.unit.trigger.test_verify import random_plan


@pytest.mark.parametrize("strategy", ["auto", "first_order", "recompute"])
@given(seed=st.integers(0, 2**40))
@settings(max_examples=15, deadline=None)
def test_both_backends_explain_the_same_program(strategy: str, seed: int) -> None:
    """For generated queries, whatever the strategy."""
    rng = random.Random(seed)
    query = random_query(rng)
    plan = random_plan(rng, query)
    tables = {t.name: TableDefinition(t.name, t.fields) for t in query.tables}
    assert_same_program(ViewDefinition("v", plan, None, "UTC", ViewOptions(strategy=strategy)), tables)


NOTES = Scan("notes", (Field("id", INT64, False), Field("note", STRING), Field("kind", STRING), Field("other", INT64)))


def _like(pattern: str) -> Call:
    return Call("like", (Column(1, STRING), Literal(pattern, STRING), Literal("\\", STRING)), BOOLEAN)


def test_a_test_of_text_is_told_where_it_differs() -> None:
    """The embedded backend reads a test instead of the text, and says so."""
    kept = Filter(NOTES, _like("%x%"))
    plan: Relation = Aggregate(kept, (columns(kept)[2],), (AggregateCall("count", (), INT64),), ("kind", "n"))
    assert_same_program(ViewDefinition("v", plan, None, "UTC"), {"notes": TableDefinition("notes", NOTES.fields)})


def test_expressions_read_only_their_columns() -> None:
    """A projection to the columns that are read stands above the scan, so that the others are not encoded."""
    computed = Call("+", (Column(0, INT64, False), Literal(1, INT64)), INT64)
    plan = Project(NOTES, (computed,), ("next",))
    assert_same_program(ViewDefinition("v", plan, None, "UTC"), {"notes": TableDefinition("notes", NOTES.fields)})


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI])
def test_a_join_on_an_inequality_is_told_where_nothing_is_in_order(kind: JoinKind) -> None:
    """One program for both, in which rows are found in order; Spark compares them with all, and says so."""
    other = Scan("others", NOTES.fields)
    less = Call("<", (Column(0, INT64, False), Column(4, INT64, False)), BOOLEAN)
    view = ViewDefinition("v", Join(NOTES, other, kind, less), None, "UTC")
    tables = {name: TableDefinition(name, NOTES.fields) for name in ("notes", "others")}
    assert_same_program(view, tables)
    spark, _ = ViewPrograms(tables, {}).make(view, frozenset(), lambda _: 0)
    told = EXPLAINERS["triggers"](view, spark, ())
    assert "in the order of id" in told
    assert "nothing is kept in order; a changed row is compared with all of the other side" in told
