"""What the test of the driver's memory runs as a program of its own: ten million rows at a time, with a Spark driver of 1 GB.

    python -m tests.spark.memory_run FOLDER ROWS

Each of ``insert``, ``apply`` and ``stream`` takes in as many rows as a DataFrame, after a small one that loads what is needed;
told is by how many MB the peak of this process' memory then rises above what it had before. The Java process has 1 GB for its
heap, of which its tasks take theirs too: rows that were collected there would end it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import everview as ev

SMALL = 300_000
"""Rows that stay with the executors, too."""
NAMES = 50
QUERY = (
    "SELECT name, sum(price) AS total, count(*) AS n FROM orders o JOIN customers c ON o.customer = c.id GROUP BY name"
)


def main(folder: Path, rows: int) -> None:
    """Takes the rows in by each door, and checks the view after each."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    with ev.connect(folder / "db", backend="spark", spark=spark, lookup_bytes=0) as db:
        db.create_table("customers", "id bigint, name string", primary_key="id")
        db.create_table("orders", "id bigint, customer bigint, price bigint, note string", primary_key="id")
        db.apply({"customers": [(i, f"name {i % NAMES}") for i in range(1000)]})
        db.create_view("totals", QUERY)
        db.table("orders").insert(_orders(spark, 0, SMALL))
        first = SMALL
        for door in ("insert", "apply", "stream"):
            given = _orders(spark, first, first + rows)
            source = folder / "source"
            if door == "stream":
                given.write.parquet(str(source))
            with _peak(door):
                if door == "insert":
                    db.table("orders").insert(given)
                elif door == "apply":
                    db.apply({"orders": given.selectExpr("*", "1 AS _weight")})
                else:
                    stream = spark.readStream.schema(given.schema).parquet(str(source))
                    query = db.stream("orders", stream, checkpoint=str(folder / "checkpoint"), availableNow=True)
                    query.awaitTermination()
            first += rows
            expected = {(f"name {n}", first // NAMES * n, first // NAMES) for n in range(NAMES)}
            assert set(db.view("totals").rows()) == expected, door


def _orders(spark: SparkSession, first: int, last: int) -> DataFrame:
    """Rows of 70 bytes; a price is its customer's name's number."""
    return spark.range(first, last, 1, 8).selectExpr(
        "id", "id % 1000 AS customer", f"id % {NAMES} AS price", "concat('a note of forty characters on ', id) AS note"
    )


@contextmanager
def _peak(what: str) -> Iterator[None]:
    """Prints by how many MB the peak of this process' memory rises."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before = _status("VmRSS")
    yield
    print(f"{what} {(_status('VmHWM') - before) // 1024}", flush=True)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
