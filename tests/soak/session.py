"""The Spark session of a process of the soak."""

from __future__ import annotations

from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.master": "local[1]",  # the other cores have other processes
    "spark.app.name": "everview soak",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
}
"""Queries over a handful of rows gain nothing from parallelism, adaption or compiling Java."""


def start_session() -> SparkSession:
    """One session, quiet and small."""
    builder = SparkSession.builder
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
