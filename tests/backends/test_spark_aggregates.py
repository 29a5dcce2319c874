"""Aggregates that Spark's own code computes: sketches, histograms, functions of Python over groups."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from pyspark.sql import functions as F  # noqa: N812  # as PySpark's users name it

import everview as ev
from everview.relational.definitions.spark_aggregates import CLOSED, depends_on_order
from everview.relational.nodes import Aggregate
from everview.relational.traverse import nodes_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

QUERY = """
SELECT g, approx_count_distinct(x) AS n, hll_sketch_agg(s, 4) AS h, histogram_numeric(x, 3) AS b,
       count(DISTINCT s) AS d, approx_count_distinct(x) FILTER (WHERE s > 'b') AS f
FROM t GROUP BY g
"""
PYTHON = "SELECT g, spread(x) AS v FROM t GROUP BY g"
Rows = list[tuple[object, ...]]
EMBEDDED_FIRST = pytest.mark.parametrize(
    "backend", ["embedded", pytest.param("reference", marks=pytest.mark.slow), "spark"]
)
"""The quick run asks Spark for all groups at once; the reference backend asks for each."""


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session with an aggregate of Python; workers of Spark, which verify needs, have the packages of this process."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    session = spark.newSession()

    @F.pandas_udf("double")  # type: ignore[call-overload,untyped-decorator,unused-ignore]
    def spread(values: pd.Series) -> float:
        return float(values.max() - values.min())

    session.udf.register("spread", spread)
    return session


def _rows(chance: random.Random, count: int) -> Rows:
    return [
        (chance.choice((None, 1, 2)), chance.choice((None, *range(9))), chance.choice((None, *"abcdefghijklmnop")))
        for _ in range(count)
    ]


@EMBEDDED_FIRST
def test_a_stream_of_changes(session: SparkSession, backend: str) -> None:
    """Groups that gain, lose and change rows, NULLs and duplicates: what Spark gives for the rows in order."""
    chance = random.Random(4)
    with ev.connect(spark=session, backend=backend) as db:
        table = db.create_table("t", "g INT, x BIGINT, s STRING")
        view, python = db.create_view("v", QUERY), db.create_view("p", PYTHON)
        db.create_view("whole", "SELECT spread(x) AS v FROM t")
        rows = _rows(chance, 60)
        table.insert(rows)
        db.verify()
        gone = chance.sample(rows, 25)
        with db.transaction() as tx:
            tx.delete("t", gone)
            tx.insert("t", _rows(chance, 5))
        report = db.verify()
        assert {v.name: v.recomputed_from for v in report.views} == {"v": "plan", "p": "query", "whole": "query"}
        table.truncate()
        assert view.rows() == python.rows() == db.view("whole").rows() == []


def test_explain_says_who_computes_and_for_what(session: SparkSession) -> None:
    """The function as SQL, that whole groups are read, and what that costs."""
    with ev.connect(spark=session) as db:
        db.create_table("t", "g INT, x BIGINT, s STRING")
        text = db.create_view("v", QUERY).explain()
        assert "from all rows of each group that changes" in text
        assert "approx_count_distinct(x, 0.05D)" in text
        assert "functions of Python" in db.create_view("p", PYTHON).explain()


def test_a_database_is_opened_again(session: SparkSession, tmp_path: Path) -> None:
    """The function is stored as text, and Spark is asked again when rows come."""
    with ev.connect(str(tmp_path / "db"), spark=session) as db:
        db.create_table("t", "g INT, x BIGINT, s STRING").insert([(1, 1, "a"), (1, 5, "b")])
        db.create_view("v", "SELECT g, approx_count_distinct(s) AS n FROM t GROUP BY g")
        db.create_view("p", PYTHON)
    with ev.connect(str(tmp_path / "db"), spark=session) as db:
        db.table("t").insert([(1, 9, "c")])
        assert db.view("v").rows() == [(1, 3)]
        assert db.view("p").rows() == [(1, 8.0)]


def test_a_failing_function_changes_nothing(session: SparkSession) -> None:
    """A transaction in which a function of Python raises is as if it had not been."""

    @F.pandas_udf("double")  # type: ignore[call-overload,untyped-decorator,unused-ignore]
    def careful(values: pd.Series) -> float:
        if (values > 8).any():
            raise ValueError("too large")
        return float(values.sum())

    session.udf.register("careful", careful)
    with ev.connect(spark=session) as db:
        table = db.create_table("t", "g INT, x BIGINT")
        view = db.create_view("v", "SELECT g, careful(x) AS v FROM t GROUP BY g", on_error="reject")
        table.insert([(1, 2), (2, 3)])
        with pytest.raises(ev.EverviewError, match="too large"):
            table.insert([(1, 9)])
        table.insert([(1, 3)])
        assert sorted(view.rows()) == [(1, 5.0), (2, 3.0)]


def test_which_answers_are_spark_s_only_ones(session: SparkSession) -> None:
    """Closed functions are verified against the query as it was written; the others against the rows in order."""
    with ev.connect(spark=session) as db:
        db.create_table("t", "g INT, x BIGINT, s STRING")
        plan = db.create_view("v", QUERY)._definition.plan
        calls = [c for node in nodes_of(plan) if isinstance(node, Aggregate) for c in node.aggregates]
        assert [depends_on_order(c) for c in calls] == [False, True, True, False, False]
        assert "approx_count_distinct" in CLOSED


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("approx_count_distinct(x) OVER (PARTITION BY g) AS v FROM t", "approx_count_distinct.*group"),
        ("histogram_numeric(DISTINCT x, 3) AS v FROM t", "SELECT DISTINCT"),
        ("kll_sketch_agg_bigint(x) AS v FROM t", "percentile"),
    ],
)
def test_refusals_name_the_function_and_a_way_out(session: SparkSession, select: str, words: str) -> None:
    """In SQL's words."""
    with ev.connect(spark=session) as db:
        db.create_table("t", "g INT, x BIGINT, s STRING")
        with pytest.raises(ev.UnsupportedQuery, match=words):
            db.create_view("v", f"SELECT {select}")


def test_what_spark_cannot_run_is_maintained_and_not_verified(session: SparkSession) -> None:
    """Spark resolves a Python aggregate beside another one and then refuses to run it: verify says so in words."""
    with ev.connect(spark=session) as db:
        table = db.create_table("t", "g INT, x BIGINT")
        view = db.create_view("v", "SELECT g, spread(x) AS v, sum(x) AS s FROM t GROUP BY g")
        table.insert([(1, 2), (1, 5)])
        assert view.rows() == [(1, 3.0, 7)]
        with pytest.raises(ev.UnsupportedQuery, match="cannot run it"):
            db.verify("v")


def test_a_temporary_view_of_a_taken_name(session: SparkSession) -> None:
    """A DataFrame over a view of the user's session is not taken for the database's table of that name."""
    session.createDataFrame([(1, "a")], "k INT, s STRING").createOrReplaceTempView("taken")
    with ev.connect(spark=session) as db:
        db.create_table("taken", "x BIGINT")
        with pytest.raises(ev.UnsupportedQuery, match=r"'taken' of the Spark session.*spark_table"):
            db.create_view("v", session.table("taken"))
