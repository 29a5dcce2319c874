"""The ways out of the Spark backend: views by name in a session, deltas as DataFrames, older versions, Delta readers."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import everview as ev
from everview.backends.spark.backend import SparkBackend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOTALS = "SELECT k, sum(x) AS total, count(*) AS n FROM items GROUP BY k"


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A user's session, whose names are of no concern to other tests."""
    return spark.newSession()


@pytest.fixture
def db(session: SparkSession, tmp_path: Path) -> Iterator[ev.Database]:
    """A database of items, their totals by key, and their keys with duplicates."""
    with ev.connect(tmp_path / "db", backend="spark", spark=session) as database:
        database.create_table("items", "k string, x int")
        database.create_view("totals", _TOTALS)
        database.create_view("Keys", "SELECT k FROM items")
        yield database


def _sql(session: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.sql(text).collect())


def test_a_view_by_its_name(session: SparkSession, db: ev.Database) -> None:
    """spark.sql sees the version that is current, in joins with the user's own tables too."""
    session.createDataFrame([("a", "ann")], "k string, name string").createOrReplaceTempView("people")
    totals = session.table("totals")
    assert _sql(session, "SELECT * FROM totals") == []
    db.apply({"items": [("a", 1), ("a", 1), ("b", 5)]})
    assert _sql(session, "SELECT * FROM totals") == [("a", 2, 2), ("b", 5, 1)]
    assert _sql(session, "SELECT * FROM keys") == [("a",), ("a",), ("b",)]
    db.table("items").delete([("b", 5), ("a", 1)])
    assert _sql(session, "SELECT name, total FROM totals JOIN people USING (k)") == [("ann", 1)]
    assert totals.count() == 1
    assert _sql(session, "SELECT count(*) FROM totals t JOIN keys USING (k)") == [(1,)]
    db.vacuum()
    assert _sql(session, "SELECT * FROM totals") == [("a", 1, 1)]


def test_many_commits_and_compactions_by_name(session: SparkSession, db: ev.Database) -> None:
    """A name follows the segments wherever commits and compactions take them."""
    for i in range(20):
        db.apply({"items": [(f"k{i % 3}", i)]})
        if i % 5 == 4:
            assert _sql(session, "SELECT * FROM totals") == sorted(db.view("totals").rows())


def test_names_come_and_go(session: SparkSession, db: ev.Database, tmp_path: Path) -> None:
    """A dropped view is no longer there, nor are those of a closed database; opened again they are."""
    db.apply({"items": [("a", 1)]})
    db.drop("keys")
    assert not session.catalog.tableExists("keys")
    with pytest.raises(ev.UnknownName):
        db.view("keys")
    db.create_view("keys", "SELECT DISTINCT k FROM items")
    assert _sql(session, "SELECT * FROM keys") == [("a",)]
    db.close()
    assert not session.catalog.tableExists("totals")
    with ev.connect(tmp_path / "db", backend="spark", spark=session) as again:
        assert _sql(session, "SELECT * FROM totals") == [("a", 1, 1)]
        again.apply({"items": [("a", 2)]})
        assert _sql(session, "SELECT * FROM totals") == [("a", 3, 2)]


def test_a_name_of_the_users_is_left_alone(session: SparkSession, db: ev.Database) -> None:
    """What means something else in the session keeps its meaning, whether it was there before or came later."""
    session.range(3).createOrReplaceTempView("mine")
    with pytest.warns(UserWarning, match="'mine' is something else in the Spark session"):
        view = db.create_view("mine", "SELECT x FROM items")
    db.apply({"items": [("a", 7)]})
    assert view.rows() == [(7,)]
    assert _sql(session, "SELECT count(*) FROM mine") == [(3,)]
    session.range(4).createOrReplaceTempView("totals")
    db.close()
    assert _sql(session, "SELECT count(*) FROM mine") == [(3,)]
    assert _sql(session, "SELECT count(*) FROM totals") == [(4,)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a lock file that nobody closed
def test_two_databases_in_one_session(session: SparkSession, db: ev.Database) -> None:
    """The first has the name, until it is closed or forgotten."""
    db.apply({"items": [("a", 1)]})
    other = ev.connect(backend="spark", spark=session)
    other.create_table("t", "x int")
    with pytest.warns(UserWarning, match="'totals' is something else"):
        other.create_view("totals", "SELECT x FROM t")
    assert _sql(session, "SELECT total FROM totals") == [(1,)]
    other.drop("totals")
    assert _sql(session, "SELECT total FROM totals") == [(1,)]
    other.create_view("mine", "SELECT x FROM t")
    del other  # nobody has closed it
    gc.collect()
    db.create_view("mine", "SELECT x FROM items")
    assert _sql(session, "SELECT * FROM mine") == [(1,)]


def test_a_session_that_comes_later(session: SparkSession, db: ev.Database, tmp_path: Path) -> None:
    """A database opened without a session shows its views once something needs Spark, or at the next commit."""
    db.apply({"items": [("a", 1)]})
    db.close()
    found: list[SparkSession] = []
    backend = SparkBackend(str(tmp_path / "db"), lambda: session, shown_in=lambda: found[0] if found else None)
    assert not session.catalog.tableExists("totals")
    found.append(session)
    assert [tuple(row) for row in backend.to_spark("totals").collect()] == [("a", 1, 1)]
    assert _sql(session, "SELECT * FROM totals") == [("a", 1, 1)]
    backend.close()
    assert not session.catalog.tableExists("totals")


def test_changes_as_a_dataframe(session: SparkSession, db: ev.Database) -> None:
    """All deltas since a version in one DataFrame, with the commit that each row belongs to."""
    db.apply({"items": [("a", 1)]})
    db.apply({"items": [("a", 2), ("b", 1)]})
    db.table("items").delete([("a", 1)])
    changes = db.view("totals").changes(since=1)
    frame = changes.to_spark()
    assert frame.columns == ["k", "total", "n", "_weight", "_commit_version", "_commit_timestamp"]
    assert sorted(tuple(row)[:5] for row in frame.collect()) == [
        ("a", 1, 1, -1, 2),
        ("a", 2, 1, 1, 3),
        ("a", 3, 2, -1, 3),
        ("a", 3, 2, 1, 2),
        ("b", 1, 1, 1, 2),
    ]
    assert Counter(tuple(r.values()) for r in changes.to_arrow().drop_columns(["_commit_timestamp"]).to_pylist()) == (
        Counter(tuple(row)[:5] for row in frame.collect())
    )
    assert {row["_commit_timestamp"].timestamp() for row in frame.collect()} == {
        c.committed_at.timestamp() for c in changes
    }
    db.apply({"items": [("c", 1)]})
    assert len(changes) == 2
    assert changes.to_spark().count() == 5
    assert db.view("totals").changes(since=db.version).to_spark().collect() == []


def test_a_change_feed_as_a_dataframe(db: ev.Database) -> None:
    """In cdf format rows are repeated by their weight."""
    db.apply({"items": [("a", 1), ("a", 1)]})
    db.table("items").delete([("a", 1)])
    frame = db.view("keys").changes(format="cdf").to_spark()
    assert sorted((r["k"], r["_change_type"], r["_commit_version"]) for r in frame.collect()) == [
        ("a", "delete", 2),
        ("a", "insert", 1),
        ("a", "insert", 1),
    ]


def test_changes_of_a_view_computed_anew(db: ev.Database) -> None:
    """Where a commit replaced all files, its delta is still only what moved."""
    view = db.create_view("anew", _TOTALS, refresh="full")
    db.apply({"items": [("a", 1), ("b", 1)]})
    db.apply({"items": [("b", 1)]})
    rows = [tuple(row)[:5] for row in view.changes(since=1).to_spark().collect()]
    assert sorted(rows) == [("b", 1, 1, -1, 2), ("b", 2, 2, 1, 2)]


def test_changes_that_are_vacuumed(db: ev.Database) -> None:
    """Deltas whose files a vacuum removed are refused, also if they were asked for before it."""
    for i in range(3):
        db.apply({"items": [("a", i)]})
    before = db.view("totals").changes(since=0)
    db.vacuum()
    for read in (before.to_spark, before.to_arrow, lambda: db.view("totals").changes(since=0)):
        with pytest.raises(ev.UnsupportedOperation, match="since version 0 are not kept; they are since version 3"):
            read()
    assert db.view("totals").changes() == []
    db.apply({"items": [("a", 5)]})
    assert [c.version for c in db.view("totals").changes()] == [4]


def test_older_versions(db: ev.Database, session: SparkSession, tmp_path: Path) -> None:
    """Every version since the view was made can be read, also after a restart; what was vacuumed says so."""
    seen: dict[int, Counter[tuple[Any, ...]]] = {}
    for i in range(12):
        commit = db.apply({"items": [(f"k{i % 3}", i)]})
        seen[commit.version] = Counter(db.view("totals").rows())
    db.table("items").delete([("k0", 0)])
    db.close()
    with ev.connect(tmp_path / "db", backend="spark", spark=session) as again:
        totals = again.view("totals")
        for version in (1, 5, 12):
            assert Counter(tuple(r) for r in totals.to_spark(version=version).collect()) == seen[version]
        assert again.table("items").to_spark(version=3).count() == 3
        with pytest.raises(ev.UnsupportedOperation, match=r"'totals' at version 99 is not kept; .* at version 13"):
            totals.to_spark(version=99)
        late = again.create_view("late", "SELECT x FROM items")
        with pytest.raises(ev.UnsupportedOperation, match="'late' at version 3 is not kept"):
            late.to_spark(version=3)
        again.vacuum()
        with pytest.raises(ev.UnsupportedOperation, match=r"'totals' at version 5 is not kept.*vacuum removes older"):
            totals.to_spark(version=5)
        now = Counter(totals.rows())
        assert Counter(tuple(r) for r in totals.to_spark(version=13).collect()) == now
        again.apply({"items": [("k0", 9)]})
        assert Counter(tuple(r) for r in totals.to_spark(version=13).collect()) == now


@pytest.mark.parametrize(
    "local_rows",
    [pytest.param(200_000, id="driver"), pytest.param(0, id="executors", marks=pytest.mark.slow)],
)
def test_any_delta_reader(local_rows: int, session: SparkSession, tmp_path: Path) -> None:
    """After a vacuum, deltalake and DuckDB read each row of a view once, with its multiplicity as the weight."""
    with ev.connect(tmp_path, backend="spark", spark=session, local_rows=local_rows) as db:
        db.create_table("items", "k string, x int")
        totals, keys = db.create_view("totals", _TOTALS), db.create_view("keys", "SELECT k FROM items")
        for i in range(4):
            db.apply({"items": [("a", i), ("b", i)]})
        db.table("items").delete([("b", i) for i in range(3)])
        assert db.vacuum() > 0
        read = DeltaTable(totals.location).to_pyarrow_table()
        assert read.column_names == ["k", "total", "n", "_weight"]
        assert sorted(tuple(r.values()) for r in read.to_pylist()) == [("a", 6, 4, 1), ("b", 3, 1, 1)]
        with duckdb.connect() as other:
            other.register("keys", DeltaTable(keys.location).to_pyarrow_dataset())
            assert other.sql("SELECT * FROM keys ORDER BY k").fetchall() == [("a", 4), ("b", 1)]
        assert str(tmp_path) in totals.location
        files = sorted(Path(totals.location).rglob("*.parquet"))
        db.vacuum()
        assert sorted(Path(totals.location).rglob("*.parquet")) == files, "what is summed up is not written again"
        assert sorted(totals.rows()) == [("a", 6, 4), ("b", 3, 1)]


def test_rows_after_an_empty_batch_reach_spark(session: SparkSession) -> None:
    """Spark's createDataFrame stops at an empty batch of an Arrow table; ours go without."""
    with ev.connect(spark=session) as db:
        parts = [[(1,)], [], [], [(2,)]]
        chunks = [pa.table({"x": pa.array([x for (x,) in part], pa.int32())}) for part in parts]
        table = db.create_table("t", "x int")
        view = db.create_view("v", "SELECT x FROM t")
        table.insert(pa.concat_tables(chunks))
        assert sorted(tuple(r) for r in table.to_spark().collect()) == [(1,), (2,)]
        assert sorted(tuple(r) for r in view.to_spark().collect()) == [(1,), (2,)]
        assert sorted(tuple(r) for r in db._core.to_spark(pa.concat_tables(chunks)).collect()) == [(1,), (2,)]
        db.verify()


def test_a_group_by_cube_on_disk_is_emptied(session: SparkSession) -> None:
    """The terms of a union have NULLs in different columns, and old rows are sent to Spark in several batches."""
    with ev.connect(backend="spark", spark=session, local_rows=0, lookup_bytes=0) as db:
        table = db.create_table("t", "a int not null, b bigint")
        view = db.create_view("v", "SELECT a, count(DISTINCT b) AS n FROM t GROUP BY ROLLUP (a)")
        table.insert([(2, 3)])
        assert sorted(view.rows(), key=str) == [(2, 1), (None, 1)]
        table.delete([(2, 3)])
        assert view.rows() == []


def test_upkeep_of_databases_without_files() -> None:
    """Backends without Delta tables say so."""
    with ev.connect() as db:
        table = db.create_table("t", "x int")
        with pytest.raises(ev.UnsupportedOperation, match="the embedded backend keeps no files to vacuum"):
            db.vacuum()
        with pytest.raises(ev.UnsupportedOperation, match="keeps no Delta table of table 't'"):
            _ = table.location
