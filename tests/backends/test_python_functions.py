"""Python functions of the user's session: called in this process, as PySpark's workers would call them."""

from __future__ import annotations

import datetime
import decimal
import sys
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F  # noqa: N812  # as PySpark's users name it

import everview as ev
from everview.errors import ViewSuspended
from everview.frontend import user_functions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = [
    (1, "one", decimal.Decimal("1.50"), datetime.date(2024, 2, 29), [1, None]),
    (2, None, None, None, None),
    (2, None, None, None, None),
    (None, "", decimal.Decimal("-0.01"), datetime.date(1, 1, 1), []),
]


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session of the test's own; workers of Spark, which verify needs, have the packages of this process."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    return spark.newSession()


def _filled(db: ev.Database) -> ev.Database:
    db.create_table("t", "i int, s string, d decimal(9,2), day date, a array<int>")
    db.table("t").insert(ROWS)
    return db


def _jobs(spark: SparkSession) -> int:
    context: object = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()  # type: ignore[union-attr]
    assert isinstance(context, int)
    return context


def _kinds() -> dict[str, Any]:
    def doubled(d: pd.Series) -> pd.Series:
        return d.map(lambda x: None if x is None else x * 2)

    def longer(a: pa.Array) -> pa.Array:
        return pc.add(a.value_lengths(), 1)

    return {
        "described": F.udf(lambda i, s, day: f"{i} {s} {type(day).__name__}", "string"),
        "parts": F.udf(lambda s: None if s is None else [*s, None], "array<string>"),
        "doubled": F.pandas_udf(doubled, "decimal(12,2)"),  # type: ignore[call-overload]  # of PySpark's stubs
        "longer": F.arrow_udf(longer, "int"),
    }


def test_functions_of_every_kind_are_called_as_by_spark(session: SparkSession) -> None:
    """Rows, pandas columns and Arrow columns, NULLs, dates, decimals and arrays; without a job of Spark."""
    for name, function in _kinds().items():
        session.udf.register(name, function)
    with _filled(ev.connect(spark=session)) as db:
        before = _jobs(session)
        view = db.create_view(
            "v",
            "SELECT described(i + 1, upper(s), day => day) AS x, doubled(d) AS y, longer(a) AS z, parts(parts(s)[0]) AS p, "
            "get_json_object(described(i, s, day => day), '$.a') AS j FROM t WHERE coalesce(longer(a), 1) < 4",
        )
        db.table("t").insert([(7, "seven", decimal.Decimal(7), None, [7, 7, 7])])
        db.table("t").delete([ROWS[1]])
        assert _jobs(session) == before
        assert len(view.rows()) == 3
        assert "described((i + 1), upper(s), day => day)" in view.explain()
        db.verify("v")


def test_a_function_without_a_name_in_a_dataframe(session: SparkSession) -> None:
    """Functions that a DataFrame calls need not be registered; two of one name stay two."""
    with _filled(ev.connect(spark=session)) as db:
        t = db.spark_table("t")
        add, subtract = (F.udf(lambda x, step=step: x and x + step, "int") for step in (1, -1))
        view = db.create_view("v", t.select(add("i").alias("more"), subtract("i").alias("less")))
        db.table("t").insert([(5, None, None, None, None)])
        assert sorted(view.rows(), key=str) == [(2, 0), (3, 1), (3, 1), (6, 4), (None, None)]
        db.verify("v")


def test_functions_of_one_name_in_two_sessions_stay_two(session: SparkSession) -> None:
    """Each database calls the function of its own session, whichever was registered last."""
    other = session.newSession()
    session.udf.register("f", lambda x: "mine", "string")
    other.udf.register("f", lambda x: "theirs", "string")
    with _filled(ev.connect(spark=session)) as mine, _filled(ev.connect(spark=other)) as theirs:
        views = [db.create_view("v", "SELECT f(i) AS x FROM t") for db in (mine, theirs)]
        for db in (theirs, mine):
            db.table("t").insert([(9, None, None, None, None)])
        assert [set(view.rows()) for view in views] == [{("mine",)}, {("theirs",)}]


def test_what_a_function_raises_suspends_the_view(session: SparkSession) -> None:
    """The message has the function's name and what it raised."""
    session.udf.register("inverse", lambda x: 1 / x, "double")
    with ev.connect(spark=session) as db:
        db.create_table("t", "x int")
        view = db.create_view("v", "SELECT inverse(x) AS y FROM t")
        db.table("t").insert([(2,), (0,)])
        with pytest.raises(ViewSuspended, match="inverse: ZeroDivisionError: division by zero"):
            view.rows()
        db.table("t").delete([(0,)])
        assert view.rows() == [(0.5,)]


def test_a_database_finds_its_function_again_by_name(session: SparkSession, tmp_path: Path) -> None:
    """A folder holds no code: what is registered under the name when it is opened is called."""
    session.udf.register("next_one", lambda x: x + 1, "int")
    with ev.connect(tmp_path, spark=session) as db:
        db.create_table("t", "x int")
        db.create_view("v", "SELECT next_one(x) AS y FROM t")
    user_functions._held.clear()  # as in a new process
    session.udf.register("next_one", lambda x: x + 100, "int")
    with ev.connect(tmp_path, spark=session) as db:
        db.table("t").insert([(1,)])
        assert db.view("v").rows() == [(101,)]


@pytest.mark.slow
def test_functions_in_tasks_of_spark(session: SparkSession, tmp_path: Path) -> None:
    """Rows that stay with the executors meet the function in Spark's own workers."""
    session.udf.register("squared", lambda x: x and x * x, "int")
    with _filled(ev.connect(tmp_path, backend="spark", spark=session, local_rows=2)) as db:
        db.create_view("v", "SELECT squared(i) AS q, count(*) AS n FROM t GROUP BY squared(i)")
        db.table("t").insert([(i, None, None, None, None) for i in range(20)])
        db.verify("v")
