"""Queries that the algebra has no nodes for: strategy="recompute" lets Spark answer them, and everything says so."""

from __future__ import annotations

import datetime
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import everview as ev
from everview.errors import UnsupportedQuery, ViewSuspended
from everview.frontend import answer_in_spark
from everview.relational import spark_code
from everview.relational.nodes import Field, Scan, SparkQuery
from everview.relational.types import INT64

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EMBEDDED_FIRST = pytest.mark.parametrize(
    "backend", ["embedded", pytest.param("reference", marks=pytest.mark.slow), "spark"]
)
"""The quick run asks Spark once; the reference backend lets it answer in the same way."""

QUERIES = {
    "kept": "SELECT g, sort_array(collect_list(x) RESPECT NULLS) AS p, count(*) AS n FROM t GROUP BY g",
    "maps": "SELECT m, count(*) AS n FROM (SELECT map(g, x) AS m FROM t WHERE g IS NOT NULL) GROUP BY m",
    "joined": "SELECT t.g, sort_array(collect_list(s.k) RESPECT NULLS) AS p FROM t LEFT JOIN s ON t.id = s.k GROUP BY t.g",
    "first": "SELECT g, sort_array(collect_list(x) RESPECT NULLS) AS p FROM t GROUP BY g ORDER BY g, p LIMIT 2",
    "timed": "SELECT sort_array(collect_list(x) RESPECT NULLS) AS p, now() AS moment FROM t",
}


def _filled(db: ev.Database) -> ev.Database:
    db.create_table("t", "id bigint, g string, x double", primary_key="id")
    db.create_table("s", "k bigint")
    db.apply({"t": [(1, "a", 1.0), (2, "a", float("nan")), (3, None, 5.0), (4, "b", None)], "s": [(1,), (1,), (3,)]})
    return db


@EMBEDDED_FIRST
def test_spark_answers_after_every_change(db: ev.Database) -> None:
    """Inserts, deletes, duplicates, an empty table and a moved clock: the views, and a view over one, are Spark's answer."""
    _filled(db)
    db.advance(datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC))
    for name, query in QUERIES.items():
        db.create_view(name, query, strategy="recompute")
    above = db.create_view("above", "SELECT sum(n) AS rows FROM kept")
    assert above.rows() == [(4,)]
    db.apply({"t": [(5, "b", 2.0)], "s": [(5,), (5,)]})
    db.table("t").delete_keys([2, 3])
    db.verify()
    assert above.rows() == [(3,)]
    db.table("t").truncate()
    moved = db.advance(datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC))
    assert moved.refreshed["timed"].how == "full"
    assert db.view("timed").rows()[0][1].day == 2
    assert db.view("kept").rows() == []
    assert above.rows() == [(None,)]


def test_everything_says_that_a_view_is_recomputed(db: ev.Database, backend: str) -> None:
    """explain, stats, the commit and the handle."""
    _filled(db)
    view = db.create_view("v", QUERIES["kept"], refresh="full")
    commit = db.apply({"t": [(9, "c", 1.0)]})
    assert commit.refreshed["v"].how == "full"
    assert "Spark" in view.explain()
    assert "recompute" in view.explain() or "computed anew" in view.explain()
    assert view.stats()["refresh"] == "full"
    assert "recomputed after every change" in repr(view)


@EMBEDDED_FIRST
def test_a_refusal_names_the_way_out_only_where_there_is_one(db: ev.Database) -> None:
    """A query of which Spark could compute the answer says so; one without a well-defined answer does not."""
    _filled(db)
    with pytest.raises(UnsupportedQuery, match=r"collect_list with RESPECT NULLS.*strategy='recompute'"):
        db.create_view("v", QUERIES["kept"])
    for query, named in {
        "SELECT g, x FROM t TABLESAMPLE (50 PERCENT)": "TABLESAMPLE",
        "SELECT g FROM t LIMIT 1": "LIMIT",
        "SELECT get(sort_array(collect_list(x) RESPECT NULLS), 0) + rand() AS p FROM t": "rand",
        "SELECT first(g) AS f, sort_array(collect_list(x) RESPECT NULLS) AS p FROM t": "first",
        "SELECT * FROM (SELECT sort_array(collect_list(x) RESPECT NULLS) AS p FROM t), csv.`/etc/passwd`": "not a table",
    }.items():
        for strategy in ("auto", "recompute"):
            with pytest.raises(ev.EverviewError) as refused:
                db.create_view("v", query, strategy=strategy)
            assert "recompute" not in str(refused.value), query
        assert named in str(refused.value)
    assert not db.views


@EMBEDDED_FIRST
def test_a_dataframe_of_grouped_pandas_functions(
    db: ev.Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DataFrame with a function that has no SQL text is answered as it is."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)  # of the workers, which need pandas too
    pandas = pytest.importorskip("pandas")
    _filled(db)

    def spread(rows: pandas.DataFrame) -> pandas.DataFrame:
        return pandas.DataFrame({"g": rows["g"].iloc[:1], "d": [rows["x"].max() - rows["x"].min()]})

    frame = (
        db.spark_table("t").where("g IS NOT NULL AND x < 100").groupBy("g").applyInPandas(spread, "g string, d double")
    )
    view = db.create_view("v", frame, strategy="recompute")
    db.apply({"t": [(7, "a", 9.0)]})
    assert view.rows() == [("a", 8.0)]


def test_a_recomputed_view_is_there_when_the_database_is_opened_again(tmp_path: Path, spark: SparkSession) -> None:
    """Text is kept; a DataFrame is not, and its view then says how to give it again."""
    with _filled(ev.connect(tmp_path, spark=spark)) as db:
        db.create_view("kept", QUERIES["kept"], strategy="recompute")
        frame = db.spark_table("t").selectExpr("sort_array(collect_list(x) RESPECT NULLS) AS p")
        db.create_view("lost", frame, strategy="recompute")
    answer_in_spark._held.clear()  # as in a new process
    with ev.connect(tmp_path, spark=spark) as db:
        db.apply({"t": [(8, "z", 1.0)]})
        db.verify("kept")
        with pytest.raises(ViewSuspended, match="made from a DataFrame"):
            db.view("lost").rows()


def test_a_stored_query_must_be_one_that_can_be_created(spark: SparkSession) -> None:
    """Text that somebody has put into a folder is not run if it could do more than compute."""
    assert spark is not None
    fields = (Field("k", INT64),)
    text = "SELECT reflect('java.lang.System', 'nanoTime') AS k FROM s"
    query = SparkQuery((Scan("s", fields),), ("s",), fields, text, "", "UTC", ())
    with pytest.raises(ev.CorruptDatabase, match="not one that was created here"):
        spark_code.answer(query, [pa.table({"k": [1]})])


@pytest.mark.slow
def test_spark_answers_over_rows_that_stay_with_the_executors(tmp_path: Path, spark: SparkSession) -> None:
    """Segments larger than what the driver takes are read by Spark's own plan of the query."""
    with _filled(ev.connect(tmp_path, backend="spark", spark=spark, local_rows=2)) as db:
        for name in ("kept", "joined"):
            db.create_view(name, QUERIES[name], strategy="recompute")
        db.apply({"t": [(i, "ab"[i % 2], float(i)) for i in range(10, 30)], "s": [(12,), (12,)]})
        db.verify()
        db.table("t").delete_keys([11, 13])
        db.verify()


@pytest.mark.slow
def test_what_a_backend_refuses_can_be_recomputed(tmp_path: Path, spark: SparkSession) -> None:
    """A recursive query on the Spark backend: refused with the way out, and recomputed where that is asked for."""
    rounds = "SELECT k FROM s UNION ALL SELECT k - 1 FROM r WHERE k > 0"
    query = f"WITH RECURSIVE r AS ({rounds}) SELECT k, count(*) AS n FROM r GROUP BY k"
    with _filled(ev.connect(tmp_path, backend="spark", spark=spark)) as db:
        with pytest.raises(UnsupportedQuery, match=r"recursive.*strategy='recompute'"):
            db.create_view("v", query)
        db.create_view("v", query, strategy="recompute")
        db.apply({"s": [(4,)]})
        db.verify("v")
