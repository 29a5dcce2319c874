"""Streams of Spark into tables: each micro-batch one transaction, once, whatever fails in between."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


class Folder:
    """A directory of JSON files as a stream: one micro-batch a file."""

    def __init__(self, spark: SparkSession, path: Path, schema: str) -> None:
        self.spark, self.path, self.schema = spark, path, schema
        self.checkpoint = path.parent / f"{path.name}_checkpoint"
        self.count = 0
        path.mkdir()

    def put(self, *rows: dict[str, Any]) -> None:
        """Adds a file; it appears whole, and Spark, which goes by time, sees it after those before."""
        self.count += 1
        hidden = self.path / f".{self.count}"
        hidden.write_text("\n".join(json.dumps(row) for row in rows))
        os.utime(hidden, (self.count, self.count))
        hidden.rename(self.path / f"{self.count:03}.json")

    def stream(self) -> DataFrame:
        """A new stream over all files there are and will be."""
        return self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).json(str(self.path))

    def run(self, db: ev.Database, table: str, **options: Any) -> StreamingQuery:
        """Reads all that is there into the table."""
        query = db.stream(table, self.stream(), checkpoint=self.checkpoint, trigger={"availableNow": True}, **options)
        query.awaitTermination()
        return query


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Callable[[str], Folder]:
    """Makes folders to stream from."""
    made: list[Folder] = []

    def make(schema: str) -> Folder:
        made.append(Folder(spark, tmp_path / f"in{len(made)}", schema))
        return made[-1]

    return make


@pytest.fixture
def quiet(spark: SparkSession) -> Any:
    """Keeps Spark from logging the failures that a test asks for."""
    spark.sparkContext.setLogLevel("OFF")
    yield
    spark.sparkContext.setLogLevel("ERROR")


def test_a_stream_feeds_a_table(db: ev.Database, folder: Callable[[str], Folder]) -> None:
    """Every file is a transaction; a query started again goes on after the last, with the same id."""
    files = folder("k int, v string")
    table = db.create_table("t", "k int, v string")
    view = db.create_view("n", "SELECT v, count(*) AS n FROM t GROUP BY v")
    files.put({"k": 1, "v": "a"}, {"k": 2, "v": "b"})
    files.put({"k": 3, "v": "a"})
    first = files.run(db, "T")
    assert (sorted(view.rows()), db.version) == ([("a", 2), ("b", 1)], 2)
    files.put({"k": None, "v": "b"})
    second = files.run(db, "t", name="more")
    assert (second.id, second.name) == (first.id, "more")
    assert (len(table), db.version, db.last_batch(f"stream:{first.id}>t")) == (4, 3, 2)
    files.run(db, "t")
    assert (len(table), db.version) == (4, 3)


def test_a_batch_that_spark_repeats_is_not_applied_again(db: ev.Database, folder: Callable[[str], Folder]) -> None:
    """Spark runs the last batch again when it died before noting that it was done; the rows are there once."""
    files = folder("k int")
    table = db.create_table("t", "k int")
    files.put({"k": 1})
    files.put({"k": 2})
    files.run(db, "t")
    for entry in (files.checkpoint / "commits").glob("*1*"):  # batch 1, and the checksum of its entry
        entry.unlink()
    files.put({"k": 3})
    files.run(db, "t")
    assert sorted(table.rows()) == [(1,), (2,), (3,)]
    assert db.version == 3


@pytest.mark.usefixtures("quiet")
def test_a_rejected_batch_fails_the_query_and_changes_nothing(db: ev.Database, folder: Callable[[str], Folder]) -> None:
    """The query ends with our message, nothing of the batch has happened, and a restart takes the batch up again."""
    from pyspark.errors import StreamingQueryException

    files = folder("k int, v string")
    table = db.create_table("t", "k int, v string", primary_key="k")
    view = db.create_view("n", "SELECT count(*) AS n FROM t")
    files.put({"k": 1, "v": "a"})
    files.put({"k": 2, "v": "a"}, {"k": 1, "v": "b"})
    query = db.stream("t", files.stream(), checkpoint=files.checkpoint, availableNow=True)
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    for text in ("table 't' would have more than one row with the same primary key (k)", "in micro-batch 1 of"):
        assert text in str(caught.value)
        assert text in str(query.exception())
    assert (table.rows(), view.rows(), db.version) == ([(1, "a")], [(1,)], 1)
    table.delete_keys([1])
    files.run(db, "t")
    assert (sorted(table.rows()), view.rows()) == ([(1, "b"), (2, "a")], [(2,)])


@pytest.mark.usefixtures("quiet")
def test_a_failure_after_the_commit_does_not_repeat_it(db: ev.Database, folder: Callable[[str], Folder]) -> None:
    """A subscriber that raises fails the query after the batch is committed; the restart does not apply it again."""
    from pyspark.errors import StreamingQueryException

    files = folder("k int")
    table = db.create_table("t", "k int")
    view = db.create_view("v", "SELECT k FROM t")

    def refuse(_change: ev.VersionedDelta) -> None:
        raise ValueError("not today")

    subscription = view.subscribe(refuse)
    files.put({"k": 1})
    with pytest.raises(StreamingQueryException, match="not today"):
        files.run(db, "t")
    assert table.rows() == [(1,)]
    subscription.cancel()
    files.put({"k": 2})
    files.run(db, "t")
    assert sorted(table.rows()) == [(1,), (2,)]


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_failures_at_random_points(
    db: ev.Database, folder: Callable[[str], Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether batches fail before or after their transaction, or Spark forgets the last one: each row is there once."""
    from pyspark.errors import StreamingQueryException

    files = folder("k int, x int")
    db.create_table("t", "k int, x int")
    view = db.create_view("sums", "SELECT k % 3 AS g, count(*) AS n, sum(x) AS s FROM t GROUP BY k % 3")
    rng = random.Random(5)
    apply = db._core.backend.apply

    def failing(changes: Any, *, source: Any = None) -> Any:
        dice = rng.random()
        if dice < 0.2:
            raise OSError("before the transaction")
        deltas = apply(changes, source=source)
        if dice < 0.4:
            raise OSError("after the transaction")
        return deltas

    monkeypatch.setattr(db._core.backend, "apply", failing)
    given: list[tuple[int, int]] = []
    failures = 0
    for _ in range(8):
        for _ in range(rng.randrange(3)):
            rows = [(rng.randrange(100), rng.randrange(100)) for _ in range(5)]
            files.put(*({"k": k, "x": x} for k, x in rows))
            given += rows
        while True:
            try:
                files.run(db, "t")
                break
            except StreamingQueryException:
                failures += 1
        entries = sorted((files.checkpoint / "commits").glob("[0-9]*"), key=lambda entry: int(entry.name))
        if entries and rng.random() < 0.5:
            for entry in (entries[-1], entries[-1].with_name(f".{entries[-1].name}.crc")):
                entry.unlink(missing_ok=True)
    assert failures > 2
    groups = {g: [x for k, x in given if k % 3 == g] for g in range(3)}
    assert sorted(view.rows()) == [(g, len(xs), sum(xs)) for g, xs in groups.items()]
    assert sorted(db.table("t").rows()) == sorted(given)


def test_several_streams_into_one_database(
    db: ev.Database, spark: SparkSession, tmp_path: Path, folder: Callable[[str], Folder]
) -> None:
    """Streams of different sources and Spark sessions run side by side; the views over their tables are right."""
    db.create_table("facts", "at timestamp, k bigint")
    db.create_table("names", "k bigint, name string", primary_key="k")
    view = db.create_view("joined", "SELECT name, count(*) AS n FROM facts JOIN names USING (k) GROUP BY name")
    db.create_view("latest", "SELECT max(at) AS at, min(k) AS k FROM facts")
    other = spark.newSession()
    rate = other.readStream.format("rate-micro-batch").options(rowsPerBatch=20, numPartitions=1).load()
    facts = rate.selectExpr("timestamp AS at", "value % 4 AS k")
    names = folder("k bigint, name string")
    queries = [
        db.stream("facts", facts, checkpoint=tmp_path / "facts", trigger={"processingTime": "0 seconds"}),
        db.stream("names", names.stream(), checkpoint=names.checkpoint, processingTime="0 seconds"),
    ]
    for k in range(3):
        names.put({"k": k, "name": f"name {k}"})
        queries[1].processAllAvailable()
    while (done := db.last_batch(f"stream:{queries[0].id}>facts")) is None or done < 2:
        queries[0].awaitTermination(0.05)
    for query in queries:
        query.stop()
        assert query.exception() is None
    batches = db.last_batch(f"stream:{queries[0].id}>facts")
    assert batches is not None
    expected = 5 * (batches + 1)
    assert sorted(view.rows()) == [(f"name {k}", expected) for k in range(3)]
    db.verify()


class MemoryRows:
    """Spark's own stream for tests: integers that are added by hand, one micro-batch for what has been added since."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        integers = self._jvm.org.apache.spark.sql.Encoders.INT()
        nothing = self._jvm.scala.Option.empty()
        make = self._jvm.org.apache.spark.sql.execution.streaming.runtime.MemoryStream
        self._stream = make(0, spark._jsparkSession, nothing, integers)
        self._spark = spark

    def put(self, *values: int) -> None:
        """Adds rows."""
        self._stream.addData(self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(values)))

    def stream(self) -> DataFrame:
        """The rows, in a column k."""
        from pyspark.sql import DataFrame

        return DataFrame(self._stream.toDF(), self._spark).selectExpr("value AS k")


def test_a_stream_from_memory(db: ev.Database, spark: SparkSession, tmp_path: Path) -> None:
    """Views are current after each micro-batch of a running query, and after it was stopped and started again."""
    db.create_table("t", "k int")
    view = db.create_view("sums", "SELECT count(*) AS n, sum(k) AS s FROM t")
    rows = MemoryRows(spark)
    seen = []
    for start in (1, 100):
        query = db.stream("t", rows.stream(), checkpoint=tmp_path / "checkpoint")
        for value in (start, start + 1):
            rows.put(value, value)
            query.processAllAvailable()
            seen += view.rows()
        query.stop()
        assert query.exception() is None
    assert seen == [(2, 2), (4, 6), (6, 206), (8, 408)]
    assert [c.version for c in view.changes(since=0)] == [1, 2, 3, 4]


def test_upserts_and_change_types(db: ev.Database, folder: Callable[[str], Folder]) -> None:
    """The rows of a stream are what its mode says, or their own columns."""
    table = db.create_table("t", "k int, v string", primary_key="k")
    upserts = folder("k int, v string")
    upserts.put({"k": 1, "v": "a"}, {"k": 2, "v": "b"})
    upserts.put({"k": 2, "v": "c"}, {"k": 3, "v": "d"})
    upserts.run(db, "t", mode="upsert")
    assert sorted(table.rows()) == [(1, "a"), (2, "c"), (3, "d")]
    feed = folder("k int, v string, _change_type string, _commit_version bigint")
    feed.put(
        {"k": 1, "v": "a", "_change_type": "update_preimage", "_commit_version": 7},
        {"k": 1, "v": "z", "_change_type": "update_postimage", "_commit_version": 7},
        {"k": 3, "v": "d", "_change_type": "delete", "_commit_version": 7},
        {"k": 4, "v": "e", "_change_type": "insert", "_commit_version": 7},
    )
    feed.run(db, "t")
    assert sorted(table.rows()) == [(1, "z"), (2, "c"), (4, "e")]
    weighted = folder("k int, v string, _weight int")
    weighted.put({"k": 4, "v": "e", "_weight": -1}, {"k": 5, "v": "f", "_weight": 1})
    weighted.run(db, "t")
    keys = folder("k int")
    keys.put({"k": 1}, {"k": 2})
    keys.run(db, "t", mode="delete_keys")
    assert table.rows() == [(5, "f")]


@pytest.mark.usefixtures("quiet")
def test_a_checkpoint_that_has_gone_on_without_the_database(
    db: ev.Database, backend: str, spark: SparkSession, folder: Callable[[str], Folder]
) -> None:
    """A database that lacks a stream's first batches says so instead of taking the rest."""
    from pyspark.errors import StreamingQueryException

    files = folder("k int")
    db.create_table("t", "k int")
    files.put({"k": 1})
    files.run(db, "t")
    files.put({"k": 2})
    with ev.connect(backend=backend, spark=spark) as other:
        table = other.create_table("t", "k int")
        with pytest.raises(
            StreamingQueryException, match="is at micro-batch 1, and this database has none of its batch"
        ):
            files.run(other, "t")
        assert table.rows() == []
        shutil.rmtree(files.checkpoint)
        files.run(other, "t")
        assert sorted(table.rows()) == [(1,), (2,)]
        other.drop("t")
        other.create_table("t", "k int")
        files.put({"k": 3})
        with pytest.raises(
            StreamingQueryException, match="is at micro-batch 2, and this database has none of its batch"
        ):
            files.run(other, "t")


def test_closing_the_database_stops_its_streams(
    backend: str, spark: SparkSession, folder: Callable[[str], Folder]
) -> None:
    """A stream ends with the database that it feeds, without an error."""
    files = folder("k int")
    with ev.connect(backend=backend, spark=spark) as database:
        database.create_table("t", "k int")
        query = database.stream("t", files.stream(), checkpoint=files.checkpoint)
        assert query.isActive
    assert not query.isActive
    assert query.exception() is None


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("k", {}, "column 'v' of table 't' is missing from the rows."),
        ("v AS k, v", {}, "column 'k' of table 't' is int and cannot take values of Arrow type string"),
        ("*", {"mode": "upsrt"}, "a stream has no mode 'upsrt'. Hint: did you mean 'upsert'?"),
        ("*", {"mode": "upsert"}, "table 't' has no primary key, which upsert needs."),
        ("*", {"trigger": {"once": True}, "availableNow": True}, "a stream has one trigger, and once and availableNow"),
        (
            "*",
            {"availableNo": True},
            "a stream has no trigger or option 'availableNo'. Hint: did you mean 'availableNow'?",
        ),
        ("*", {"trigger": {"continuous": "1 second"}}, "a stream into a table has no trigger 'continuous'"),
        ("*", {"checkpoint": ""}, "checkpoint='' is not a directory."),
    ],
)
def test_what_cannot_work_is_said_at_once(
    db: ev.Database, folder: Callable[[str], Folder], columns: str, options: dict[str, Any], message: str
) -> None:
    """Columns, modes and triggers are checked before the query starts."""
    files = folder("k int, v string")
    db.create_table("t", "k int, v string")
    with pytest.raises(ev.EverviewError) as caught:
        db.stream("t", files.stream().selectExpr(*columns.split(", ")), **{"checkpoint": files.checkpoint, **options})
    assert str(caught.value).startswith(message)
    assert not files.checkpoint.exists()


def test_what_is_no_stream(db: ev.Database, spark: SparkSession) -> None:
    """A DataFrame at rest, or something else, is refused with the way to go; so is an unknown table."""
    db.create_table("t", "id bigint")
    with pytest.raises(ev.UnsupportedOperation, match=r"not a stream. Hint: make it with spark.readStream"):
        db.stream("t", spark.range(3), checkpoint="x")
    with pytest.raises(ev.UnsupportedOperation, match="a stream is a streaming DataFrame, not list"):
        db.stream("t", [], checkpoint="x")  # type: ignore[arg-type] -- the mistake under test
    with pytest.raises(ev.UnknownName):
        db.stream("s", spark.range(3), checkpoint="x")


def test_batches_of_ones_own(plain_db: ev.Database) -> None:
    """A program that numbers its batches gets them applied once each, through apply."""
    table = plain_db.create_table("t", "x int")
    assert plain_db.last_batch("topic") is None
    assert plain_db.apply({"t": [(1,)]}, source=("topic", 5)).version == 1
    again = plain_db.apply({"t": [(1,)]}, source=("topic", 5))
    older = plain_db.apply({"t": [(1,)]}, source=("topic", 4))
    assert (again.is_repeat, older.is_repeat, again.version, dict(again.changes)) == (True, True, 1, {})
    assert repr(again) == "<Commit version 1, nothing done: the batch is part of it already>"
    with pytest.raises(ev.InvalidChange):
        plain_db.apply({"t": [{"x": 7, "_weight": -1}]}, source=("topic", 6))
    assert plain_db.last_batch("topic") == 5
    plain_db.apply({"t": [(2,)]}, source=("topic", 7))
    plain_db.apply({"t": [(3,)]}, source=("other", 0))
    assert (plain_db.last_batch("topic"), plain_db.last_batch("other"), table.rows()) == (7, 0, [(1,), (2,), (3,)])


@pytest.mark.parametrize("source", ["topic", ("", 1), ("t", -1), ("t", True), ("t", "1"), ("t", 1, 2)])
def test_what_is_no_batch(plain_db: ev.Database, source: Any) -> None:
    """A source is a name and a number."""
    plain_db.create_table("t", "x int")
    with pytest.raises(ev.InvalidChange, match="is not the name of a source and the number of a batch"):
        plain_db.apply({"t": [(1,)]}, source=source)
    assert plain_db.version == 0


def test_a_table_with_a_live_stream_is_not_dropped(db: ev.Database, folder: Callable[[str], Folder]) -> None:
    """The error names the stream; the stream goes on, and once it is stopped the table can go."""
    files = folder("k int")
    table = db.create_table("T", "k int")
    query = db.stream("t", files.stream(), checkpoint=files.checkpoint, name="numbers")
    with pytest.raises(ev.DependencyError) as caught:
        db.drop("t")
    assert str(caught.value) == (
        f"table 'T' cannot be dropped: stream 'numbers' ({query.id}) feeds it. "
        "Hint: stop it first, with the stop() of the query that db.stream gave."
    )
    with pytest.raises(ev.DependencyError, match="stream 'numbers'"):
        db.sql("DROP TABLE IF EXISTS t")
    files.put({"k": 1})
    query.processAllAvailable()
    assert table.rows() == [(1,)]
    query.stop()
    db.drop("t")
    assert db.tables == {}


def test_a_checkpoint_that_spark_cannot_open(db: ev.Database, folder: Callable[[str], Folder]) -> None:
    """The stream does not start, the error names the place, and the table is free."""
    files = folder("k int")
    db.create_table("t", "k int")
    with pytest.raises(
        ev.UnsupportedOperation, match=r"with checkpoint 'foo://b/x': .*No FileSystem for scheme \"foo\""
    ):
        db.stream("t", files.stream(), checkpoint="foo://b/x")
    db.drop("t")
