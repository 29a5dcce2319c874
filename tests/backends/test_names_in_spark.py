"""Tables and views of the embedded backend by name in the user's Spark session: always the current rows, or an error."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import everview as ev

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A session of the user's, without any names."""
    return spark.newSession()


@pytest.fixture
def db(session: SparkSession) -> Iterator[ev.Database]:
    """A database with a table and a view over it."""
    with ev.connect(spark=session) as database:
        database.create_table("sales", "city STRING, price INT").insert([("Rome", 5), ("Paris", 12)])
        database.create_view("totals", "SELECT city, sum(price) AS total FROM sales GROUP BY city")
        yield database


def rows(session: SparkSession, query: str) -> list[tuple[Any, ...]]:
    """Spark's answer in the user's session."""
    return sorted(tuple(r) for r in session.sql(query).collect())


def test_a_name_shows_what_is_there_now(session: SparkSession, db: ev.Database) -> None:
    """After each commit, of tables and of views, in text and as a DataFrame that has not run yet."""
    assert rows(session, "SELECT * FROM totals") == [("Paris", 12), ("Rome", 5)]
    frame = session.table("totals").where("total > 5")
    db.table("sales").insert([("Rome", 1), ("Rome", 1), (None, 7)])
    assert rows(session, "SELECT * FROM totals WHERE city = 'Rome'") == [("Rome", 7)]
    assert frame.count() == 3
    assert rows(session, "SELECT * FROM sales JOIN totals USING (city)") == [
        ("Paris", 12, 12),
        ("Rome", 1, 7),
        ("Rome", 1, 7),
        ("Rome", 5, 7),
    ]
    db.table("sales").delete([("Rome", 1), ("Rome", 5)])
    assert frame.count() == 2
    assert rows(session, "SELECT total FROM totals WHERE city IS NULL OR city = 'Rome'") == [(1,), (7,)]
    db.sql("TRUNCATE TABLE sales")
    assert rows(session, "SELECT * FROM sales") == []


def test_the_same_rows_are_written_once(session: SparkSession, db: ev.Database) -> None:
    """A commit writes nothing, and old files go."""
    names = db._core.names
    assert names is not None

    def files() -> list[str]:
        return sorted(str(p) for p in names.folder.rglob("*.parquet"))

    assert files() == []
    for _ in range(3):
        session.table("totals").count()
    assert len(files()) == 1
    for i in range(10):
        db.table("sales").insert([("Rome", i)])
    assert len(files()) == 1
    for i in range(10):
        db.table("sales").insert([("Rome", i)])
        session.table("totals").count()
    assert len(files()) == 3
    db.close()
    assert files() == []


def test_all_types_and_names(session: SparkSession) -> None:
    """What Spark reads has the columns and values that ``to_spark`` has."""
    columns = (
        "`a b` STRING, `c.d` DECIMAL(20, 2), `ü``;` BINARY, ts TIMESTAMP, ntz TIMESTAMP_NTZ, d DATE, "
        "i INTERVAL DAY TO SECOND, m MAP<STRING, INT>, l ARRAY<STRUCT<x: INT, y: STRING>>, f FLOAT, t TINYINT"
    )
    with ev.connect(spark=session) as db:
        table = db.create_table("odd `name", columns)
        view = db.create_view("Köln.1", "SELECT *, INTERVAL '3' MONTH AS months, NULL AS nothing FROM `odd ``name`")
        table.insert([(None,) * 11])
        value = (
            "x",
            Decimal("1.50"),
            b"\xff",
            None,
            None,
            None,
            timedelta(days=1),
            {"k": 1},
            [{"x": 1, "y": None}],
            0.5,
            3,
        )
        table.insert([value, value])
        for handle in (table, view):
            shown = session.table(f"`{handle.name.replace('`', '``')}`")
            wanted = handle.to_spark()
            assert shown.columns == wanted.columns
            assert [f.dataType for f in shown.schema] == [f.dataType for f in wanted.schema]
            # PySpark itself gives no intervals of months to Python.
            texts = [f.selectExpr("to_json(struct(*)) AS all").collect() for f in (shown, wanted)]
            assert sorted(texts[0]) == sorted(texts[1])
            assert len(texts[0]) == 3


def test_dropped_replaced_renamed(session: SparkSession, db: ev.Database) -> None:
    """A name means what it means in the database, or nothing."""
    before = session.table("totals")
    db.replace_view("totals", "SELECT count(*) AS n FROM sales")
    assert rows(session, "SELECT * FROM totals") == [(2,)]
    with pytest.raises(Exception, match="'totals' was dropped"):
        before.collect()
    db.sql("ALTER TABLE sales ADD COLUMN shop INT")
    assert session.table("sales").columns == ["city", "price", "shop"]
    db.drop("totals")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.table("totals")
    db.sql("ALTER TABLE sales RENAME TO trades")
    assert session.table("trades").count() == 2
    assert not session.catalog.tableExists("sales")
    frame = session.table("trades")
    db.close()
    assert not session.catalog.tableExists("trades")
    with pytest.raises(Exception, match="'trades' was dropped, or its database closed"):
        frame.collect()


def test_names_that_are_taken(session: SparkSession, db: ev.Database) -> None:
    """The user's views, and other databases', stay what they are, with a warning; they are not dropped."""
    session.range(3).createTempView("mine")
    with pytest.warns(UserWarning, match="'mine' is something else in the Spark session"):
        db.create_view("mine", "SELECT city FROM sales")
    with ev.connect(spark=session) as other:
        other.create_table("sales", "city STRING, price INT")  # often it is where the rows come from: no warning
        with pytest.warns(UserWarning, match="'totals' is something else"):
            other.create_view("totals", "SELECT city FROM sales")
        other.create_table("others", "x INT").insert([(1,)])
        assert rows(session, "SELECT count(*) FROM sales CROSS JOIN others") == [(2,)]
    assert session.table("sales").count() == 2
    session.range(7).createOrReplaceTempView("totals")
    db.close()
    assert session.table("mine").count() == 3
    assert session.table("totals").count() == 7


def test_what_cannot_be_read_is_an_error(session: SparkSession, db: ev.Database) -> None:
    """A suspended view is not empty, nor as it was; assertions and tables without rows have no names."""
    view = db.create_view("inverse", "SELECT city, 100 div price AS q FROM sales")
    assert session.table("inverse").count() == 2
    db.table("sales").insert([("Oslo", 0)])
    with pytest.raises(Exception, match="'inverse' has had no answer"):
        session.table("inverse").count()
    db.table("sales").delete([("Oslo", 0)])
    assert session.table("inverse").count() == len(view) == 2
    db.create_assertion("positive", "SELECT * FROM sales WHERE price < 0")
    db.create_table("gone", "x INT", retain=False)
    assert not session.catalog.tableExists("positive")
    assert not session.catalog.tableExists("gone")


def test_a_name_is_not_written_to(session: SparkSession, db: ev.Database) -> None:
    """Rows go to the database, not to the files that show it."""
    for statement in (
        "INSERT INTO sales VALUES ('Oslo', 1)",
        "INSERT OVERWRITE totals TABLE sales",
    ):
        with pytest.raises(AnalysisException):
            session.sql(statement)
    assert session.table("sales").count() == 2


def test_dataframes_over_names_become_views(session: SparkSession, db: ev.Database) -> None:
    """A DataFrame over a name, or a temp view of the user's over it, is a query over the database's table or view."""
    session.sql("CREATE TEMP VIEW large AS SELECT * FROM sales WHERE price > 4")
    db.create_view("by_frame", session.table("totals").where("total > 4").selectExpr("upper(city) AS c"))
    db.create_view("by_text", "SELECT t.city, l.price FROM totals t JOIN large l USING (city)")
    others = session.table("sales").selectExpr("city", "price AS other")
    db.create_view("self_join", session.table("sales").join(others, "city"))
    db.table("sales").insert([("Oslo", 9), ("Rome", 3)])
    db.table("sales").delete([("Paris", 12)])
    assert sorted(db.view("by_frame").rows()) == [("OSLO",), ("ROME",)]
    db.verify()
    db.create_view("whole", session.table("sales").groupBy("city").count(), strategy="recompute")
    db.table("sales").insert([("Oslo", 9)])
    assert ("Oslo", 2) in db.view("whole").rows()


def test_rows_from_a_name_of_the_same_database(session: SparkSession, db: ev.Database) -> None:
    """A DataFrame over a name can be what a table is filled with, though the database is locked meanwhile."""
    db.table("sales").insert(session.table("sales"))
    assert len(db.table("sales")) == 4
    copy = db.create_table("copy", session.table("sales").join(session.table("totals"), "city"))
    assert len(copy) == 4


def test_a_query_does_not_wait_for_ever(
    session: SparkSession, db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What holds the database may itself wait for the query, which nobody can tell."""
    monkeypatch.setattr("everview.session.names_in_spark._PATIENCE", 0.01)
    failures: list[Exception] = []

    def read() -> None:
        try:
            session.table("sales").collect()
        except Exception as error:
            failures.append(error)

    with db._core.lock:
        reader = threading.Thread(target=read)
        reader.start()
        reader.join()
    assert [("'sales' cannot be read now" in str(error)) for error in failures] == [True]
    assert session.table("sales").count() == 2


def test_readers_in_other_threads_see_whole_versions(session: SparkSession, db: ev.Database) -> None:
    """Reading by name while another thread commits: each answer is that of some version."""
    seen: list[int] = []

    def read() -> None:
        seen.extend(rows(session, "SELECT sum(total) FROM totals")[0][0] for _ in range(5))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50):
        db.apply({"sales": [("Rome", 100), ("Oslo", -100)]})
    reader.join()
    assert seen == [17] * 5


def test_a_database_on_disk_that_is_opened_again(session: SparkSession, tmp_path: Path) -> None:
    """Its names are there at once, also those of a reader, which follows its writer."""
    with ev.connect(tmp_path / "db", spark=session) as db:
        db.create_table("t", "x INT").insert([(1,)])
        db.create_view("v", "SELECT sum(x) AS s FROM t")
    assert not session.catalog.tableExists("t")
    theirs = session.newSession()
    with (
        ev.connect(tmp_path / "db", spark=session) as db,
        ev.connect(tmp_path / "db", read_only=True, spark=theirs),
    ):
        assert rows(session, "SELECT * FROM v") == rows(theirs, "SELECT * FROM v") == [(1,)]
        db.table("t").insert([(2,)])
        assert rows(session, "SELECT * FROM v") == rows(theirs, "SELECT * FROM v") == [(3,)]
        db.create_view("w", "SELECT max(x) AS m FROM t")
        db.drop("v")
        assert rows(theirs, "SELECT count(*) FROM t") == [(2,)]
        assert rows(theirs, "SELECT * FROM w") == [(2,)]
        assert not theirs.catalog.tableExists("v")


def test_a_database_without_a_given_session_shows_nothing(spark: SparkSession) -> None:
    """Names appear where the user has said so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ev.connect() as db:
            db.create_table("nowhere", "x INT")
            assert not spark.catalog.tableExists("nowhere")
