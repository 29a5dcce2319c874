"""What one would do without us: DuckDB and Spark recomputing the query. DuckDB's answer is also what ours is checked against.

DuckDB gets no keys and both cores; it inserts the batch and recomputes after it. That is timed at evenly spaced batches of the
stream, with the batches between them inserted untimed, and the mean stands for all. Spark recomputes over cached tables in
their final state. Where our answer is not DuckDB's, Spark decides: DuckDB averages decimals and divides in binary floats.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.answers import Rows
from benchmarks.steps import AnyStep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = 20
SPARK_PASSES = 3


def duckdb_seconds_per_batch(sql: str, tables: Mapping[str, pa.Table], steps: Sequence[AnyStep]) -> float:
    """The mean time of inserting a batch and recomputing the query, over ``SAMPLES`` batches of the stream."""
    chosen = set(np.linspace(0, len(steps) - 1, min(SAMPLES, len(steps))).astype(int).tolist())
    dynamic = {name for step in steps for name in step.changes}
    seconds = []
    with duckdb.connect() as connection:
        for name, table in tables.items():
            _create(connection, name, table.slice(0, 0) if name in dynamic else table)
        for number, step in enumerate(steps):
            started = time.perf_counter()
            for name, batch in step.changes.items():
                _insert(connection, name, batch)
            if number in chosen:
                connection.execute(sql).fetchnumpy()
                seconds.append(time.perf_counter() - started)
    return statistics.fmean(seconds)


def _create(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    connection.register("given", rows)
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    connection.unregister("given")


def _insert(connection: duckdb.DuckDBPyConnection, name: str, batch: pa.RecordBatch) -> None:
    connection.register("given", pa.Table.from_batches([batch]))
    connection.execute(f"INSERT INTO {name} SELECT * FROM given")
    connection.unregister("given")


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
