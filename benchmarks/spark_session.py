"""The one Spark session of a benchmark run: it translates the queries, and where a suite says so recomputes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(more: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session, local and quiet, stopped at the end; ``more`` settings are given without their ``spark.``."""
    # Waits until a suite runs: importing pyspark takes a second.
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master("local[2]").appName("everview benchmarks")
    settings = {
        "ui.enabled": "false",
        "ui.showConsoleProgress": "false",
        "sql.shuffle.partitions": "2",
        "sql.session.timeZone": "UTC",
        "log.level": "ERROR",
        # As docs/spark.md says: by TCP each task with Python waits 40 ms.
        "python.unix.domain.socket.enabled": "true",
    }
    for key, value in {**settings, **(more or {})}.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
