"""Names that mean one thing in the user's session and another in the database: never taken for one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id INT, v STRING"
THEIRS = [(7, "theirs"), (8, "theirs")]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A session of the user's whose temp view ``t`` has the name and the columns of the database's table."""
    theirs = spark.newSession()
    theirs.createDataFrame(theirs.sparkContext.parallelize(THEIRS), COLUMNS).createOrReplaceTempView("t")
    return theirs


@pytest.fixture
def db(session: SparkSession) -> Iterator[ev.Database]:
    """A database with another table of the same name and columns."""
    with ev.connect(spark=session) as database:
        database.create_table("t", COLUMNS).insert([(1, "ours")])
        yield database


def test_a_dataframe_reads_what_it_was_built_from(session: SparkSession, db: ev.Database) -> None:
    """The session's view of that name is refused, the database's table is what ``spark_table`` gives."""
    for frame in (session.table("t"), session.sql("SELECT id FROM t"), session.table("t").groupBy("v").count()):
        for strategy in ("auto", "recompute"):
            with pytest.raises(ev.UnsupportedQuery, match=r"'t' of the Spark session, which is not a table"):
                db.create_view("w", frame, strategy=strategy)
    view = db.create_view("w", db.spark_table("t").select("v"))
    db.table("t").insert([(2, "ours too")])
    assert sorted(view.rows()) == [("ours",), ("ours too",)]
    db.verify("w")


def test_rows_of_the_session_that_do_not_change_are_constants(session: SparkSession, db: ev.Database) -> None:
    """Also under a name of the database's."""
    session.sql("CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM VALUES (7, 'theirs') AS t(id, v)")
    for strategy in ("auto", "recompute"):
        view = db.create_view(f"c_{strategy}", session.table("t"), strategy=strategy)
        db.table("t").insert([(2, "ours too")])
        assert view.rows() == [(7, "theirs")]
        db.verify(view.name)


def test_views_over_a_view_of_the_same_name(session: SparkSession, db: ev.Database) -> None:
    """A temp view of the session reads what it reads there, whether it was made from text or from a DataFrame."""
    session.sql("CREATE TEMP VIEW by_text AS SELECT v FROM t")
    session.table("t").select("v").createTempView("by_frame")
    session.sql("CREATE TEMP VIEW over_text AS SELECT v FROM by_text")
    for name in ("by_text", "by_frame", "over_text"):
        with pytest.raises(ev.UnsupportedQuery, match=r"'t' of the Spark session, which is not a table"):
            db.create_view("w", f"SELECT v FROM {name}")
        asked = db.sql(f"SELECT v FROM {name} UNION SELECT v FROM t")
        assert isinstance(asked, ev.Result)
        assert sorted(asked.rows()) == [("ours",), ("theirs",)]


def test_views_that_do_not_live_in_the_session(session: SparkSession, db: ev.Database) -> None:
    """A view that sessions share, or one of a catalog, may have the name of a table of the database."""
    session.table("t").createOrReplaceGlobalTempView("t")
    session.sql("CREATE OR REPLACE VIEW default.t AS SELECT * FROM VALUES (7, 'theirs') AS t(id, v)")
    try:
        for strategy in ("auto", "recompute"):
            with pytest.raises(ev.UnsupportedQuery, match="'t' of the Spark session"):
                db.create_view("w", "SELECT v FROM global_temp.t", strategy=strategy)
            constant = db.create_view(
                f"c_{strategy}", "SELECT d.v FROM default.t AS d JOIN t ON t.id > 0", strategy=strategy
            )
            assert constant.rows() == [("theirs",)]
            db.verify(constant.name)
    finally:
        session.catalog.dropGlobalTempView("t")
        session.sql("DROP VIEW default.t")


def test_in_text_the_name_is_the_databases(session: SparkSession, db: ev.Database) -> None:
    """SQL that is handed to the database means its tables first."""
    view = db.create_view("w", "SELECT v FROM t")
    assert view.rows() == [("ours",)]
    session.sql("CREATE TEMP VIEW others AS SELECT v FROM t")
    asked = db.sql("SELECT v FROM t")
    assert isinstance(asked, ev.Result)
    assert asked.rows() == [("ours",)]


def test_a_dataframe_of_another_database(session: SparkSession, db: ev.Database) -> None:
    """Tables of one name in two databases are two tables."""
    with ev.connect(spark=session) as other:
        other.create_table("t", COLUMNS)
        with pytest.raises(ev.UnsupportedQuery, match="'t' of the Spark session"):
            db.create_view("w", other.spark_table("t"))
