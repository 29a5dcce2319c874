"""What one would do without us: DuckDB and Spark recomputing the query. DuckDB's answer is also what ours is checked against.

DuckDB gets no keys and both cores; it inserts the batch and recomputes after it. That is timed at evenly spaced batches of the
stream, with the batches between them inserted untimed, and the mean stands for all. Spark recomputes over cached tables in
their final state. Where our answer is not DuckDB's, Spark decides: DuckDB averages decimals and divides in binary floats.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tpch_stream import Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = 20
SPARK_PASSES = 3
TOLERANCE = 1e-9

Rows = list[tuple[Any, ...]]


def duckdb_seconds_per_batch(sql: str, tables: Mapping[str, pa.Table], steps: Sequence[Step]) -> float:
    """The mean time of inserting a batch and recomputing the query, over ``SAMPLES`` batches of the stream."""
    chosen = set(np.linspace(0, len(steps) - 1, min(SAMPLES, len(steps))).astype(int).tolist())
    dynamic = {step.table for step in steps}
    seconds = []
    with duckdb.connect() as connection:
        for name, table in tables.items():
            _create(connection, name, table.slice(0, 0) if name in dynamic else table)
        for number, step in enumerate(steps):
            started = time.perf_counter()
            _insert(connection, step.table, step.batch)
            if number in chosen:
                connection.execute(sql).fetchnumpy()
                seconds.append(time.perf_counter() - started)
    return statistics.fmean(seconds)


def duckdb_answer(sql: str, tables: Mapping[str, pa.Table]) -> Rows:
    """The query's rows."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.execute(sql).fetchall()


def _create(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    connection.register("given", rows)
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    connection.unregister("given")


def _insert(connection: duckdb.DuckDBPyConnection, name: str, batch: pa.RecordBatch) -> None:
    connection.register("given", pa.Table.from_batches([batch]))
    connection.execute(f"INSERT INTO {name} SELECT * FROM given")
    connection.unregister("given")


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """The one Spark session of a run, local and quiet."""
    # Waits until a suite runs: importing pyspark takes a second.
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master("local[2]").appName("everview benchmarks")
    settings = {
        "ui.enabled": "false",
        "ui.showConsoleProgress": "false",
        "sql.shuffle.partitions": "2",
        "sql.session.timeZone": "UTC",
        "log.level": "ERROR",
    }
    for key, value in settings.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def spark_tables(spark: SparkSession, tables: Mapping[str, pa.Table]) -> Iterator[SparkSession]:
    """A session of its own names in which the tables are cached."""
    own = spark.newSession()
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables.items():
            path = Path(folder) / f"{name}.parquet"
            pq.write_table(table, path)
            frame = own.read.parquet(str(path)).cache()
            frame.count()
            frame.createOrReplaceTempView(name)
        yield own
        for name in tables:
            own.table(name).unpersist()


def spark_seconds(spark: SparkSession, sql: str) -> float:
    """The median time of a recomputation, answer fetched, after one that warms up."""
    spark.sql(sql).collect()
    seconds = []
    for _ in range(SPARK_PASSES):
        started = time.perf_counter()
        spark.sql(sql).collect()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def spark_answer(spark: SparkSession, sql: str, tables: Mapping[str, pa.Table]) -> Rows:
    """The query's rows."""
    with spark_tables(spark, tables) as session:
        return [tuple(row) for row in session.sql(sql).collect()]


def first_difference(ours: Rows, theirs: Rows) -> str | None:
    """What is different between two bags of rows, or None: floats compare with tolerance, decimals to their last digit.

    >>> first_difference([("a", Decimal("0.333333"))], [("a", 1 / 3)])
    >>> first_difference([("a", 1)], [("a", 2)])
    "1 rows here and 1 there, first difference: ('a', 1) here, ('a', 2) there"
    """
    counts = f"{len(ours)} rows here and {len(theirs)} there"
    if len(ours) != len(theirs):
        return counts
    mine, other = sorted(ours, key=_order), sorted(theirs, key=_order)
    for a, b in zip(mine, other, strict=True):
        if not all(_is_close(x, y) for x, y in zip(a, b, strict=True)):
            return f"{counts}, first difference: {a} here, {b} there"
    return None


def _order(row: tuple[Any, ...]) -> tuple[list[str], list[float]]:
    """Exact values first: those that may differ a little decide only among rows that agree in all else."""
    exact = [str(v) for v in row if not isinstance(v, float | Decimal)]
    return exact, [float(v) for v in row if isinstance(v, float | Decimal)]


def _is_close(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float | Decimal) and isinstance(theirs, float | Decimal | int):
        if isinstance(ours, Decimal) and isinstance(theirs, Decimal | int):
            return ours == theirs
        exponent = ours.as_tuple().exponent if isinstance(ours, Decimal) else -15
        assert isinstance(exponent, int), "a decimal is finite"
        return math.isclose(float(ours), float(theirs), rel_tol=TOLERANCE, abs_tol=0.51 * 10.0**exponent)
    return bool(ours == theirs)
