"""The law under changes: after every transaction, a maintained view is its query computed anew, on every backend.

And the deltas that leave a view are strongly minimal: each row once, no weight 0, nothing deleted that is not there; their sum
is the content.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import everview as ev
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.relational.arrow import rows_to_arrow
from everview.relational.nodes import Schema
from everview.relational.types import Row
from tests.oracle.followed import WEIGHT, Followed
from tests.oracle.generate_changes import (
    Content,
    Transaction,
    WeightedRow,
    apply_transaction,
    content_of,
    streams,
)
from tests.oracle.generate_sql import failing_queries, queries
from tests.oracle.generate_tables import TableData, tables
from tests.oracle.oracle import Oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKENDS = (pytest.param("reference", marks=pytest.mark.slow), "embedded")

_IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_LAW = settings(
    max_examples=300 if _IS_LONG else 12,
    derandomize=not _IS_LONG,
    phases=tuple(Phase) if _IS_LONG else (Phase.explicit, Phase.generate),
    suppress_health_check=(
        HealthCheck.too_slow,  # translating a query takes Spark a while
        HealthCheck.data_too_large,  # an example is tables, queries and a stream; that few are cut off is fine
        HealthCheck.large_base_example,  # same
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """Tables, queries over them, and what happens to the tables."""

    tables: tuple[TableData, ...]
    queries: tuple[str, ...]
    stream: tuple[Transaction, ...]


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    made = draw(tables(max_rows=5))
    listed = draw(st.lists(queries(made), min_size=1, max_size=3))
    return Case(made, tuple(listed), tuple(draw(streams(made))))


@st.composite
def _failing_cases(draw: st.DrawFn) -> Case:
    made = draw(tables(max_rows=3))
    return Case(made, (draw(failing_queries(made)), draw(queries(made, depth=0))), tuple(draw(streams(made))))


@pytest.mark.parametrize("backend", BACKENDS)
@_LAW
@given(case=_cases())
def test_views_follow_their_tables(backend: str, case: Case, oracle: Oracle, spark: SparkSession) -> None:
    """After every transaction each view is its query computed anew, and its deltas lead there."""
    oracle.load(case.tables)
    content = content_of(case.tables)
    with ev.connect(backend=backend, spark=spark) as db:
        _create_tables(db, case.tables)
        followed = _create_views(db, case.queries, oracle)
        for transaction in case.stream:
            content = apply_transaction(content, transaction)
            db.apply(_as_changes(transaction, case.tables))
            for view in followed:
                view.check(_recompute(view, content), db.version)


@pytest.mark.parametrize("backend", BACKENDS)
@_LAW
@given(case=_failing_cases())
def test_a_rejected_transaction_changes_nothing(backend: str, case: Case, oracle: Oracle, spark: SparkSession) -> None:
    """A transaction is rejected exactly if some view's arithmetic fails on it, and then all is as it was."""
    oracle.load(case.tables)
    with ev.connect(backend=backend, spark=spark) as db:
        _create_tables(db, [TableData(t.name, t.fields, ()) for t in case.tables])
        followed = _create_views(db, case.queries, oracle, on_error="reject")
        content: Content = {t.name: Counter() for t in case.tables}
        load: Transaction = {t.name: tuple((row, 1) for row in t.rows) for t in case.tables}
        for transaction in (load, *case.stream):
            after = apply_transaction(content, transaction)
            if _fails(followed, after):
                event("rejected")
                with pytest.raises(ev.EvaluationError):
                    db.apply(_as_changes(transaction, case.tables))
                for view in followed:
                    view.check(_recompute(view, content), db.version)
                return  # the rest of the stream counts on this transaction
            db.apply(_as_changes(transaction, case.tables))
            content = after
            for view in followed:
                view.check(_recompute(view, content), db.version)


def _create_tables(db: ev.Database, made: Sequence[TableData]) -> None:
    for t in made:
        empty = rows_to_arrow([], t.fields)
        db.create_table(t.name, empty.schema).insert(rows_to_arrow(t.rows, t.fields))


def _create_views(
    db: ev.Database, listed: Sequence[str], oracle: Oracle, on_error: str | None = None
) -> list[Followed]:
    """The views that Spark and the backend accept; which queries must be accepted is for other tests to say."""
    followed = []
    for number, sql in enumerate(listed):
        try:
            view = db.create_view(f"v{number}", sql, on_error=on_error)
        except (ev.InvalidQuery, ev.UnknownName, ev.UnsupportedQuery) as error:
            event(type(error).__name__)  # how often shows with --hypothesis-show-statistics
            continue
        followed.append(Followed(view, oracle.translate(sql), db.version))
    return followed


def _recompute(followed: Followed, content: Content) -> list[Row]:
    """The bag that the view should have."""
    return evaluate_plan(followed.plan, {name: list(bag.elements()) for name, bag in content.items()})


def _fails(followed: Sequence[Followed], content: Content) -> bool:
    try:
        for view in followed:
            _recompute(view, content)
    except ev.EvaluationError:
        return True
    return False


def _as_changes(transaction: Transaction, made: Sequence[TableData]) -> dict[str, pa.Table]:
    fields = {t.name: t.fields for t in made}
    return {name: _weighted(rows, fields[name]) for name, rows in transaction.items()}


def _weighted(rows: Sequence[WeightedRow], fields: Schema) -> pa.Table:
    weights = pa.array([weight for _, weight in rows], pa.int64())
    return rows_to_arrow([row for row, _ in rows], fields).append_column(WEIGHT, weights)
