"""External tables: the rows stay in the user's Delta table, and the views follow it version by version."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = pa.schema([("k", pa.int32()), ("g", pa.string()), ("x", pa.decimal128(10, 2)), ("day", pa.date32())])
QUERIES = {
    "totals": "SELECT g, sum(x) AS total, count(*) AS n FROM t GROUP BY g",
    "pairs": "SELECT a.k, b.x FROM t a JOIN t b ON a.k = b.k + 1",
    "most": "SELECT g, max(x) AS most FROM t GROUP BY g",
    "named": "SELECT n.name, count(*) AS n FROM t JOIN names n ON t.g <=> n.g GROUP BY n.name",
}
STORES = {
    "change feed": {"configuration": {"delta.enableChangeDataFeed": "true"}},
    "files": {},
    "partitioned files": {"partition_by": ["g", "day"]},
}


def rows(*given: tuple[Any, ...]) -> pa.Table:
    """Rows of (k, g, x), with a day made of k."""

    def day(k: int | None) -> datetime.date:
        return datetime.date(2026, 1, 1 + (k or 0) % 3)

    listed = [{"k": k, "g": g, "x": None if x is None else Decimal(x), "day": day(k)} for k, g, x in given]
    return pa.Table.from_pylist(listed, COLUMNS)


@pytest.fixture(params=["change feed", "files", pytest.param("partitioned files", marks=pytest.mark.slow)])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A Delta table with some rows, two of them the same, and NULLs."""
    path = str(tmp_path / "a lake" / "source")
    given = rows((1, "a", 5), (2, "b c", 7), (2, "b c", 7), (3, None, None))
    write_deltalake(path, given, **STORES[request.param])
    return path


def opened(spark: SparkSession, path: Path, local_rows: int = 200_000) -> ev.Database:
    """The database of a test."""
    return ev.connect(path / "db", backend="spark", spark=spark, local_rows=local_rows)


@pytest.fixture(params=[200_000, pytest.param(3, marks=pytest.mark.slow)], ids=["near", "far"])
def db(request: pytest.FixtureRequest, spark: SparkSession, uri: str, tmp_path: Path) -> Iterator[ev.Database]:
    """Views over an external table, for which all rows are few, or three are many."""
    with opened(spark, tmp_path, request.param) as database:
        database.create_table("t", source=uri, follow=True)
        database.create_table("names", "g string, name string").insert([("a", "anna"), ("b c", "bob"), (None, "none")])
        for name, query in QUERIES.items():
            database.create_view(name, query)
        yield database


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table, in an order."""
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def check(db: ev.Database, uri: str, view: str | None = None) -> None:
    """The law: the table has what its Delta table has, and views what Spark computes from that."""
    assert tuples(db.table("t").to_arrow()) == tuples(
        DeltaTable(uri).to_pyarrow_table().select(COLUMNS.names).cast(COLUMNS)
    )
    db.verify(view)


def files(folder: str | Path) -> dict[str, bytes]:
    """All that is in a folder."""
    return {str(p): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def operations(uri: str) -> list[Callable[[], Any]]:
    """What users do to a Delta table."""
    delta = DeltaTable(uri)
    many = rows(*((k, "abc"[k % 3], k) for k in range(10, 30)))
    return [
        lambda: write_deltalake(delta, rows((1, "a", 6), (4, "d", 1)), mode="append"),
        lambda: delta.update(predicate="k = 2", updates={"x": "3"}),
        lambda: delta.delete("g = 'a'"),
        lambda: write_deltalake(delta, many, mode="append"),
        delta.optimize.compact,
        lambda: (
            delta.merge(rows((10, "a", 100), (99, "n", 1)), "s.k = t.k", source_alias="s", target_alias="t")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        ),
        lambda: delta.alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"}),
        lambda: write_deltalake(delta, rows((1, "p", 1), (7, "a", 2), (7, "a", 2)), mode="overwrite"),
        delta.delete,
        lambda: write_deltalake(delta, rows((1, "a", 1)), mode="append"),
    ]


def test_every_operation_arrives_and_no_row_is_copied(
    db: ev.Database, uri: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """After each operation the views are Spark's answer; the user's files are untouched, and no row of the table is ours."""
    is_thorough = request.node.get_closest_marker("slow") is not None
    for operation in operations(uri):
        operation()
        before, version, taken = files(uri), db.version, db.table("t").feed.version
        assert taken is not None
        assert db.refresh() - version == DeltaTable(uri).version() - taken
        check(db, uri, None if is_thorough else "pairs")
        db.vacuum()
        assert files(uri) == before
    check(db, uri)
    own = [p for p in (tmp_path / "db" / "relations").glob("t-*/**/*.parquet") if p.is_file()]
    assert own == []
    assert db.table("t").feed.version == DeltaTable(uri).version()
    assert db.refresh() == db.version


def test_versions_are_taken_once_across_restarts(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    """Opening again goes on after the last version taken, from the files of that version, whatever the table has become."""
    with opened(spark, tmp_path) as db:
        db.create_table("t", source=uri, follow=True)
        db.create_view("totals", QUERIES["totals"])
        write_deltalake(uri, rows((1, "a", 6)), mode="append")
        db.refresh()
        write_deltalake(uri, rows((8, "h", 8)), mode="append")
        DeltaTable(uri).delete("g = 'a'")
        standing = tuples(db.table("t").to_arrow())
    with opened(spark, tmp_path) as db:
        assert db.table("t").feed.version == 1
        assert tuples(db.table("t").to_arrow()) == standing
        db.create_view("pairs", QUERIES["pairs"])
        db.verify()
        assert [c.version for c in db.table("t").feed.poll(limit=1)] == [db.version] == [2]
        db.verify()
        assert (db.refresh(), db.refresh()) == (3, 3)
        assert tuples(db.table("t").to_spark(version=1).toArrow()) == standing
        db.verify()
        assert "totals" in db.views
        db.drop("totals")
        db.drop("pairs")
        db.drop("t")
        assert DeltaTable(uri).version() == 3
        again = db.create_table("t", source=uri, follow=True)
        assert again.feed.version == 3


def test_a_version_whose_commit_was_interrupted(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    """A crash before the record has taken nothing in, one after it all: the version is taken once either way."""
    for step, taken in (("before the record", 0), ("after the record", 1)):
        path = tmp_path / step
        with opened(spark, path) as db:
            db.create_table("t", source=uri, follow=True)
            db.create_view("totals", QUERIES["totals"])
            first = DeltaTable(uri).version()
            write_deltalake(uri, rows((1, "a", 6)), mode="append")

            def fault(at: str, step: str = step) -> None:
                if at == step:
                    raise OSError("power cut")

            db._core.backend._files.fault = fault
            with pytest.raises(OSError, match="power cut"):
                db.refresh()
            db._core.backend._files.fault = lambda _step: None
        with opened(spark, path) as db:
            assert db.table("t").feed.version == first + taken
            db.refresh()
            check(db, uri)


def test_only_the_delta_table_changes_it(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    """Every other way to change an external table is refused, and says what to do."""
    with opened(spark, tmp_path) as db:
        table = db.create_table("t", source=uri, follow=True)
        refused = "table 't' takes no changes: it follows the Delta table .* Hint: change the Delta table, and call"
        attempts: list[Callable[[], Any]] = [
            lambda: table.insert([(1, "a", 1, None)]),
            table.truncate,
            lambda: db.apply({"t": [(1, "a", 1, None)]}),
            lambda: db.sql("DELETE FROM t WHERE k = 1"),
            lambda: db.sql("INSERT INTO t VALUES (1, 'a', 1, NULL)"),
        ]
        for attempt in attempts:
            with pytest.raises(ev.UnsupportedOperation, match=refused):
                attempt()
        for attempt in (
            lambda: db.follow_delta("t", uri),
            lambda: db.retain("t", "day > current_date() - INTERVAL 7 DAYS"),
            lambda: db.create_assertion("no", "SELECT * FROM t WHERE k = 7", on_violation="drop"),
            table.feed.cancel,
        ):
            with pytest.raises(ev.EverviewError, match=r"follow|stands for"):
                attempt()
        with pytest.raises(ev.UnsupportedOperation, match="follows no Delta table"):
            db.create_table("own", "k int").feed.poll()
        assert f"follows {uri}" in repr(table)
        assert db.version == 0


def test_a_change_of_columns_is_refused(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    """The versions before it are taken in; it is refused with what has changed, and the views stay readable."""
    with opened(spark, tmp_path) as db:
        db.create_table("t", source=uri, follow=True)
        view = db.create_view("totals", QUERIES["totals"])
        write_deltalake(uri, rows((1, "a", 6)), mode="append")
        added = rows((1, "a", 6)).append_column("more", pa.array([1]))
        write_deltalake(uri, added, mode="append", schema_mode="merge")
        for _ in range(2):
            with pytest.raises(ev.UnsupportedOperation, match=r"change with version 2: nothing became more long"):
                db.refresh()
        assert ("a", 11, 2) in view.rows()
        assert db.table("t").feed.version == 1
        db.verify()


def test_files_from_before_a_column_was_added(spark: SparkSession, tmp_path: Path) -> None:
    """Files that lack a column have NULL in it, at the driver and on executors."""
    uri = str(tmp_path / "source")
    write_deltalake(uri, pa.table({"k": pa.array([1, 2], pa.int64())}))
    write_deltalake(uri, pa.table({"s": ["x"], "k": pa.array([3], pa.int64())}), mode="append", schema_mode="merge")
    for limit in (200_000, 1):
        with opened(spark, tmp_path / str(limit), limit) as db:
            table = db.create_table("t", source=uri, follow=True)
            view = db.create_view("v", "SELECT k, count(s) AS n FROM t GROUP BY k")
            assert sorted((r["k"], r["s"]) for r in table.to_arrow().to_pylist()) == [(1, None), (2, None), (3, "x")]
            assert sorted(view.rows()) == [(1, 0), (2, 0), (3, 1)]


def test_what_was_vacuumed_is_said(spark: SparkSession, tmp_path: Path) -> None:
    """If files of the version at which the views stand are gone, the error says so, and what can still be read is."""
    for limit in (200_000, 2):
        uri = str(tmp_path / f"source {limit}")
        write_deltalake(uri, rows((1, "a", 5), (2, "b", 7), (3, "c", 7)))
        with opened(spark, tmp_path / str(limit), limit) as db:
            db.create_table("t", source=uri, follow=True)
            view = db.create_view("totals", QUERIES["totals"])
            held = sorted(view.rows())
        delta = DeltaTable(uri)
        delta.update(predicate="k = 2", updates={"x": "3"})
        delta.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        with opened(spark, tmp_path / str(limit), limit) as db:
            with pytest.raises(ev.UnsupportedOperation, match=r"the file '.*' of a followed Delta table .*VACUUM"):
                db.refresh()
            with pytest.raises(ev.UnsupportedOperation, match="VACUUM"):
                db.create_view("again", QUERIES["totals"])
            assert sorted(db.view("totals").rows()) == held
            db.drop("totals")
            db.drop("t")
            db.create_table("t", source=uri, follow=True)
            db.create_view("totals", QUERIES["totals"])
            db.verify()


def test_a_log_that_is_gone_leaves_the_views_readable(spark: SparkSession, tmp_path: Path) -> None:
    """A database opens although a followed Delta table is gone; what needs its rows says that it is."""
    uri = tmp_path / "source"
    write_deltalake(str(uri), rows((1, "a", 5)))
    with opened(spark, tmp_path) as db:
        db.create_table("t", source=uri, follow=True)
        db.create_view("totals", QUERIES["totals"])
    uri.rename(tmp_path / "elsewhere")
    with opened(spark, tmp_path) as db:
        assert [r[0] for r in db.view("totals").rows()] == ["a"]
        for attempt in (db.refresh, db.table("t").to_arrow, lambda: db.create_view("v", QUERIES["most"])):
            with pytest.raises(ev.UnknownName, match="there is no Delta table at"):
                attempt()
        write_deltalake(str(uri), rows((1, "a", 5)))
    with opened(spark, tmp_path) as db:
        with pytest.raises(ev.UnsupportedOperation, match="has been replaced by another"):
            db.refresh()
        db.drop("totals")
        db.drop("t")
        assert db.vacuum() > 0


def test_primary_keys_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    """Delta tables have no keys: one that is declared is checked when the table is made, and with every version."""
    for limit in (200_000, 3):
        uri = str(tmp_path / f"source {limit}")
        write_deltalake(uri, rows(*((k, "a", k) for k in range(5)), (None, "n", 1)))
        with opened(spark, tmp_path / str(limit), limit) as db:
            with pytest.raises(
                ev.InvalidChange, match=r"the primary key \(k\) of table 't' is NULL in a row of the Delta"
            ):
                db.create_table("t", source=uri, follow=True, primary_key="k")
            DeltaTable(uri).delete("k IS NULL")
            db.create_table("t", source=uri, follow=True, primary_key="k")
            db.create_view("totals", QUERIES["totals"])
            DeltaTable(uri).update(predicate="k = 2", updates={"x": "9"})
            db.refresh()
            db.verify()
            write_deltalake(uri, rows(*((k, "b", k) for k in range(4, 9))), mode="append")
            with pytest.raises(ev.InvalidChange, match="more than one row with the same primary key"):
                db.refresh()
            assert db.table("t").feed.version == 2
            db.verify()


def test_what_cannot_be_read_in_place(spark: SparkSession, tmp_path: Path) -> None:
    """Sources that are no Delta tables, or whose files do not tell their rows, are refused by name."""
    with opened(spark, tmp_path) as db:
        attempts: list[tuple[Any, str]] = [
            (tmp_path / "nothing", "there is no Delta table at"),
            ("nothing.there", "no table of that name in Spark's catalog"),
            (spark.range(3), "not DataFrame"),
            ("s3://bucket/x", "scheme 's3'"),
        ]
        for source, message in attempts:
            with pytest.raises(ev.EverviewError, match=message):
                db.create_table("t", source=source, follow=True)
        uri = str(tmp_path / "source")
        write_deltalake(uri, rows((1, "a", 1)))
        for options in ({"static": True}, {"retain": False}):
            with pytest.raises(ev.UnsupportedOperation, match="neither static nor retain=False"):
                db.create_table("t", source=uri, follow=True, **options)
        with pytest.raises(ev.UnsupportedOperation, match="give one of them"):
            db.create_table("t")
        spark.sql(f"CREATE TABLE a_parquet_table (k INT) USING parquet LOCATION '{tmp_path / 'p'}'")
        try:
            with pytest.raises(ev.UnsupportedOperation, match="has the format parquet, and only Delta tables"):
                db.create_table("t", source="a_parquet_table", follow=True)
        finally:
            spark.sql("DROP TABLE a_parquet_table")
        moments = pa.table({"k": [1], "at": pa.array([0], pa.timestamp("us", "UTC"))})
        write_deltalake(str(tmp_path / "moments"), moments, partition_by=["at"])
        with pytest.raises(ev.UnsupportedOperation, match="is partitioned by 'at' of type timestamp"):
            db.create_table("t", source=tmp_path / "moments", follow=True)
        mapped = tmp_path / "mapped"
        write_deltalake(str(mapped), rows((1, "a", 1)))
        log = mapped / "_delta_log" / f"{0:020d}.json"
        log.write_text(
            log.read_text().replace('"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}')
        )
        with pytest.raises(ev.UnsupportedOperation, match="has the reader feature columnMapping"):
            db.create_table("t", source=mapped, follow=True)
        assert db.tables == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_generated_streams(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Any stream of operations on two Delta tables, refreshed now and then, opened anew now and then."""
    chance = random.Random(seed)
    stores = [STORES[chance.choice(list(STORES))] for _ in range(2)]
    uris = [str(tmp_path / f"source {i}") for i in range(2)]
    for uri, store in zip(uris, stores, strict=True):
        write_deltalake(uri, rows((1, "a", 1), (2, "b", 2)), **store)
    queries = {
        "joined": "SELECT t.g, u.x, count(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.g, u.x",
        "lacking": "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
        "either": "SELECT g FROM t UNION SELECT g FROM u",
    }
    limit = chance.choice([3, 200_000])
    db = opened(spark, tmp_path, limit)
    try:
        for name, uri in zip("tu", uris, strict=True):
            db.create_table(name, source=uri, follow=True)
        for name, query in queries.items():
            db.create_view(name, query)
        for _ in range(8):
            uri = chance.choice(uris)
            delta = DeltaTable(uri)
            some = [(chance.randrange(5), chance.choice(["a", "b", None]), chance.randrange(3)) for _ in range(4)]
            match chance.randrange(6):
                case 0 | 1:
                    write_deltalake(uri, rows(*some), mode="append")
                case 2:
                    delta.update(predicate=f"k = {chance.randrange(5)}", updates={"x": "x + 1"})
                case 3:
                    delta.delete(f"k = {chance.randrange(5)}")
                case 4:
                    delta.optimize.compact()
                case _:
                    write_deltalake(uri, rows(*some), mode="overwrite")
            if chance.random() < 0.6:
                db.refresh()
                db.verify()
            if chance.random() < 0.2:
                db.close()
                db = opened(spark, tmp_path, limit)
        db.refresh()
        db.verify()
        for name, uri in zip("tu", uris, strict=True):
            now = DeltaTable(uri).to_pyarrow_table().select(COLUMNS.names).cast(COLUMNS)
            assert tuples(db.table(name).to_arrow()) == tuples(now)
    finally:
        db.close()


def test_rows_of_large_versions_stay_with_executors(spark: SparkSession, tmp_path: Path) -> None:
    """What a large table meets is looked up in the user's files, and a large append is read there by executors."""
    uri = str(tmp_path / "source")
    write_deltalake(uri, rows(*((k, "abc"[k % 3], k) for k in range(3000))), partition_by=["g"])
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=100, lookup_bytes=0) as db:
        db.create_table("t", source=uri, follow=True, primary_key="k")
        db.create_table("wanted", "k int").insert([(1,)])
        view = db.create_view("v", "SELECT t.k, t.g, t.x FROM wanted JOIN t ON t.k = wanted.k")
        for k in (7, 8, 2999):
            db.table("wanted").insert([(k,)])
        assert sorted(r[:2] for r in view.rows()) == [(1, "b"), (7, "b"), (8, "c"), (2999, "c")]
        write_deltalake(uri, rows(*((k, "a", k) for k in range(3000, 3500))), mode="append")
        DeltaTable(uri).update(predicate="k = 8", updates={"x": "1"})
        db.refresh()
        db.table("wanted").insert([(3400,)])
        assert sorted(r[:2] for r in view.rows()) == [(1, "b"), (7, "b"), (8, "c"), (2999, "c"), (3400, "a")]
        db.verify()
        assert not list((tmp_path / "db" / "relations").glob("t-*/**/*.parquet"))
