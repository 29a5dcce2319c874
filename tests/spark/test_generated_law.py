"""The law on the Spark backend for generated queries over generated tables: many small batches with deletes, and restarts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from everview.backends.spark.backend import SparkBackend
from everview.errors import EvaluationError, InvalidQuery, UnknownName, UnsupportedQuery
from tests.oracle.conftest import oracle
from tests.oracle.generate_sql import queries
from tests.oracle.generate_tables import TableData, tables
from tests.oracle.oracle import Oracle
from tests.spark.replay import Replay, open_on_disk, refuse_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["oracle"]

_IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_BATCHES = 20 if _IS_LONG else 6


def _law(long: int, quick: int) -> settings:
    return settings(
        max_examples=long if _IS_LONG else quick,
        derandomize=True,  # restarts and deletes are drawn from the text of the query
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example),
    )


@dataclass(frozen=True, slots=True)
class Case:
    """Tables, a query over them, and the strategy of its view."""

    tables: tuple[TableData, ...]
    query: str
    strategy: str


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    made = draw(tables(max_rows=15))
    return Case(made, draw(queries(made)), draw(st.sampled_from(("factorized", "first_order"))))


def _check(case: Case, oracle: Oracle, open_: Callable[[Path], SparkBackend]) -> None:
    oracle.load(case.tables)
    note(f"{case.tables!r}\n{case.query}\n{case.strategy}")
    try:
        plan = oracle.translate(case.query)
    except (InvalidQuery, UnknownName, UnsupportedQuery, Py4JJavaError) as error:  # Spark's own bugs come as the last
        event(type(error).__name__)
        return
    given_tables = {t.name: t for t in case.tables}
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Replay(plan, Path(folder), case.query, open_, given_tables)) as replay,
    ):
        event(_follow(replay, case.strategy))


def _follow(replay: Replay, strategy: str) -> str:
    """Applies the batches, a restart after every third; what cannot be computed must not be computable at all."""
    is_made = False
    for number, changes in enumerate(replay.transactions(_BATCHES)):
        before = {name: rows.copy() for name, rows in replay.current.items()}
        try:
            replay.apply(changes)
            if not is_made:
                replay.create_view(strategy)
                is_made = True
        except UnsupportedQuery:
            return "unsupported"
        except EvaluationError:
            replay.current = before
            replay.expect(changes)
            with pytest.raises(EvaluationError):
                replay.check()
            return "not computable"
        replay.check()
        if "of a tree" in replay.backend.explain("v", "text"):
            event("a view tree")
        if number % 3 == 1:
            replay.restart()
            replay.check()
    return "followed"


@_law(long=150, quick=8)
@given(case=_cases())
def test_at_the_driver(case: Case, oracle: Oracle) -> None:
    """Generated views over small tables, without a Spark job."""
    _check(case, oracle, lambda path: SparkBackend(str(path), refuse_spark))


@pytest.mark.slow
@_law(long=25, quick=3)
@given(case=_cases())
def test_on_spark(case: Case, oracle: Oracle, spark: SparkSession) -> None:
    """The same where all rows are on disk, for Spark to read."""
    _check(case, oracle, lambda path: open_on_disk(path, spark))
