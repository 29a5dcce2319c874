"""DataFrames given as changes: executors take them in, and nothing of them comes to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import everview as ev
from everview.backends.spark import relation_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 6000
_QUERIES = {
    "totals": "SELECT c.name, sum(o.price) AS total, count(*) AS n FROM orders o JOIN customers c ON o.customer = c.id"
    " GROUP BY c.name",
    "highest": "SELECT customer, max(price) AS most FROM orders GROUP BY customer",
    "dear": "SELECT id, price FROM orders WHERE price > 40",
    "first": "SELECT id, price FROM orders ORDER BY price DESC, id LIMIT 3",
    "known": "SELECT DISTINCT customer FROM orders WHERE customer IN (SELECT id FROM customers)",
    "twice": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.id = b.id + 1 WHERE a.price = 7",
}


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[ev.Database]:
    """A database for which 100 rows are many."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=100) as database:
        database.create_table("orders", "id int, customer int, price int, note string", primary_key=["id"])
        database.create_table("customers", "id int, name string", primary_key=["id"])
        database.apply({"customers": [(i, f"name {i % 5}") for i in range(20)]})
        yield database


def _orders(spark: SparkSession, first: int, last: int, price: str = "CAST(id % 50 AS INT)") -> DataFrame:
    """Rows that executors make; Spark does not know how few they are."""
    return spark.range(first, last, 1, 3).selectExpr(
        "CAST(id AS INT) AS id", "CAST(id % 20 AS INT) AS customer", f"{price} AS price", "'a note' AS note"
    )


class _Watch:
    """Counts the rows that come to the driver: answers of Spark, and files that it reads itself."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        frame = type(spark.range(0))
        to_arrow, read = frame.toArrow, relation_store.read_segment

        def collected(asked: Any) -> pa.Table:
            return self._counted(to_arrow(asked))

        def read_file(*given: Any) -> pa.Table:
            return self._counted(read(*given))

        monkeypatch.setattr(frame, "toArrow", collected)
        monkeypatch.setattr(relation_store, "read_segment", read_file)

    def _counted(self, rows: pa.Table) -> pa.Table:
        self.rows += rows.num_rows
        return rows


def test_rows_of_executors_stay_there(db: ev.Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large DataFrame moves all kinds of views, and neither its rows nor what they meet come to the driver."""
    for name, query in _QUERIES.items():
        db.create_view(name, query)
    db.table("orders").insert([(-1, 3, 7, "near")])
    watch = _Watch(spark, monkeypatch)
    commit = db.table("orders").insert(_orders(spark, 0, _ROWS))
    assert f"dear: {_ROWS * 9 // 50} rows" in repr(commit)
    assert watch.rows < _ROWS / 10
    assert commit.changes["dear"].num_rows == _ROWS * 9 // 50
    db.verify()


@pytest.mark.slow
def test_large_changes_of_all_kinds(db: ev.Database, spark: SparkSession) -> None:
    """Deletes, upserts and deletes by key that executors have, beside rows of the driver, do what small ones do."""
    for name in ("totals", "highest", "first"):
        db.create_view(name, _QUERIES[name])
    orders = db.table("orders")
    orders.insert(_orders(spark, 0, 1200))
    with db.transaction() as tx:
        tx.delete("orders", _orders(spark, 0, 300))
        tx.insert("orders", [(-2, 3, 7, "near"), (7, 7, 7, "again")])
        tx.upsert("orders", _orders(spark, 200, 500, "100"))
        tx.delete_keys("orders", spark.range(400, 600).selectExpr("CAST(id AS INT) AS id"))
        tx.delete_keys("orders", [(900,)])
    assert orders.to_arrow().num_rows == 1200 - 200 - 200 - 1 + 2
    db.verify()
    db.vacuum()
    db.verify()


def test_wrong_rows_of_executors_are_refused(db: ev.Database, spark: SparkSession) -> None:
    """What the table cannot take is named in the words that small changes have, and no file stays behind."""
    orders = db.table("orders")
    orders.insert(_orders(spark, 0, 600))
    files, version = _files(db), db.version
    more = _orders(spark, 700, 900)
    ids = spark.range(500, 700).selectExpr("CAST(id AS INT) AS id")
    wrong = {
        "more than one row with the same primary key": lambda: orders.insert(_orders(spark, 500, 700)),
        "does not have": lambda: orders.delete(_orders(spark, 100, 300, "-1")),
        "has no row with the primary key": lambda: orders.delete_keys(ids),
        "names the same primary key": lambda: orders.upsert(_orders(spark, 0, 200).union(_orders(spark, 0, 200))),
        "is int, but has 5000000000 in 200 rows": lambda: orders.insert(_orders(spark, 700, 900, "5000000000")),
        "in the primary key, but has NULL": lambda: orders.insert(
            _orders(spark, 700, 900).selectExpr("NULL id", "* EXCEPT (id)")
        ),
        "other than 0, but has 0": lambda: db.apply(
            {"orders": _orders(spark, 700, 900).selectExpr("*", "0 AS _weight")}
        ),
        "but has moved": lambda: db.apply(
            {"orders": _orders(spark, 700, 900).selectExpr("*", "'moved' AS _change_type")}
        ),
        "column 'color' is not in table": lambda: orders.insert(more.selectExpr("*", "1 AS color")),
    }
    for words, change in wrong.items():
        with pytest.raises(ev.InvalidChange, match=words):
            change()
    assert (db.version, _files(db)) == (version, files)
    db.verify()


def _files(db: ev.Database) -> set[Path]:
    place = Path(db.table("orders").location)
    return {p for p in place.rglob("*.parquet") if "_delta_log" not in p.parts}


@pytest.mark.slow
def test_values_are_converted_by_executors(spark: SparkSession, tmp_path: Path) -> None:
    """Wider and narrower types, one zero and one NaN, arrays and structs: as if the rows had come from the driver."""
    columns = "k bigint, d decimal(12,2), x double, a array<double>, s struct<p: float, q: string>, w float"
    rows = spark.range(0, 300, 1, 2).selectExpr(
        "CAST(id AS INT) AS k",
        "CAST(id AS SMALLINT) AS d",
        "CASE id % 3 WHEN 0 THEN -0.0D WHEN 1 THEN CAST('NaN' AS DOUBLE) END AS x",
        "array(-0.0D, CAST(id AS DOUBLE), NULL) AS a",
        "named_struct('p', CAST('-0.0' AS FLOAT), 'q', 'text') AS s",
        "CAST(id AS DOUBLE) AS w",
    )
    answers = []
    for local_rows in (10, 1000):
        with ev.connect(tmp_path / str(local_rows), backend="spark", spark=spark, local_rows=local_rows) as db:
            db.create_table("t", columns)
            db.create_view("v", "SELECT x, a[0] AS zero, s.p, count(*) AS n, sum(d) AS d FROM t GROUP BY x, a[0], s.p")
            db.table("t").insert(rows)
            db.verify()
            answers.append(sorted(map(repr, db.view("v").rows())))
            with pytest.raises(ev.InvalidChange, match="'w'"):
                db.table("t").insert(rows.selectExpr("* EXCEPT (w)", "k + 0.1D AS w"))
    assert answers[0] == answers[1]


def test_a_stream_of_executors_rows(db: ev.Database, spark: SparkSession, tmp_path: Path) -> None:
    """A micro-batch of many rows is staged too, once."""
    db.create_view("totals", _QUERIES["totals"])
    _orders(spark, 0, 1000).write.parquet(str(tmp_path / "source"))
    source = spark.readStream.schema(_orders(spark, 0, 0).schema).parquet(str(tmp_path / "source"))
    for _ in range(2):
        query = db.stream("orders", source, checkpoint=str(tmp_path / "checkpoint"), availableNow=True)
        query.awaitTermination()
    assert db.table("orders").to_arrow().num_rows == 1000
    db.verify()


def test_tables_begin_with_files_that_executors_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet, Delta and catalog tables are loaded, and views made of them, by Spark jobs alone."""
    _orders(spark, 0, _ROWS).write.parquet(str(tmp_path / "orders"))
    deltalake.write_deltalake(str(tmp_path / "delta"), pq.read_table(tmp_path / "orders"))
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=100) as db:
        watch = _Watch(spark, monkeypatch)
        db.create_table("orders", tmp_path / "orders", primary_key="id")
        db.create_table("again", str(tmp_path / "delta"))
        db.create_table("third", spark.read.parquet(str(tmp_path / "orders")))
        db.create_view("v", "SELECT o.customer, sum(a.price) AS p FROM orders o JOIN again a ON o.id = a.id GROUP BY 1")
        assert watch.rows < _ROWS / 10
        assert all(db.table(name).to_arrow().num_rows == _ROWS for name in ("orders", "again", "third"))
        db.verify()
