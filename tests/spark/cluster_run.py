"""What the cluster's test runs as a program of its own: a database maintained on a standalone cluster, a worker of which dies.

    python -m tests.spark.cluster_run MASTER FOLDER PID        PID leads the process group of the worker to kill

The worker is killed while its tasks read the DataFrame of an insert: they say that they have begun, and wait for its death.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import everview as ev

ROWS = 20_000
QUERY = "SELECT c.name, sum(o.price) AS total FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.name"


def main(master: str, folder: Path, worker: int) -> None:
    """Loads, changes, loses a worker, changes, and checks every view against Spark each time."""
    spark = (
        SparkSession.builder.master(master)
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # both executors and the driver
        time.sleep(0.1)
    with ev.connect(folder / "db", backend="spark", spark=spark, local_rows=100, lookup_bytes=0) as db:
        db.create_table("customers", "id int, name string", primary_key="id")
        db.create_table("orders", "id int, customer int, price int", primary_key="id")
        db.apply({"customers": [(i, f"name {i % 50}") for i in range(2000)]})
        db.create_view("totals", QUERY)
        db.create_view("most", "SELECT customer, max(price) AS most FROM orders GROUP BY customer")
        db.table("orders").insert(_orders(spark, 0, ROWS))
        _check(db, "loaded")
        for i in range(3):
            db.apply({"orders": [{"id": 7 * i, "customer": 7 * i % 2000, "price": 7 * i % 50, "_weight": -1}]})
            db.apply({"orders": [(-i - 1, 5, i)], "customers": [(5000 + i, "new")]})
        _check(db, "changed")
        flags = folder / "flags"
        flags.mkdir()
        killer = threading.Thread(target=_kill, args=(worker, flags))
        killer.start()
        db.table("orders").insert(_waiting(_orders(spark, ROWS, 2 * ROWS), flags))
        killer.join()
        _check(db, "worker lost")
        db.table("orders").delete_keys([(ROWS + 1,), (3,)])
        db.table("orders").delete(_orders(spark, ROWS + 10, ROWS + 1000))
        _check(db, "changed again")
    spark.stop()


def _orders(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last, 1, 4).selectExpr(
        "CAST(id AS INT) id", "CAST(id % 2000 AS INT) customer", "CAST(id % 50 AS INT) price"
    )


def _waiting(rows: DataFrame, flags: Path) -> DataFrame:
    """The rows, given out when the worker is dead."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (flags / f"begun-{os.getpid()}").touch()
            while not (flags / "killed").exists():
                time.sleep(0.05)
            yield batch

    return rows.mapInArrow(wait, rows.schema)


def _kill(worker: int, flags: Path) -> None:
    while len(list(flags.glob("begun-*"))) < 2:  # a task on each of the two workers
        time.sleep(0.05)
    os.killpg(worker, signal.SIGKILL)
    (flags / "killed").touch()


def _check(db: ev.Database, when: str) -> None:
    db.verify()
    print(when, db.version, db.view("totals").stats()["spark_jobs"], flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
