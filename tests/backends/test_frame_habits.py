"""What PySpark users write with DataFrames out of habit, over tables of a database: right, or refused in their words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id INT, g STRING, x INT, y DOUBLE"
ROWS = [(1, "a", 1, 1.5), (2, "a", None, math.nan), (3, None, None, None), (4, "b", 2, None), (4, "b", 2, None)]


@pytest.fixture
def db(spark: SparkSession) -> Iterator[ev.Database]:
    """A database with rows in which anything may be missing."""
    with ev.connect(spark=spark) as database:
        database.create_table("t", COLUMNS).insert(ROWS)
        yield database


HABITS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "drop what lacks something": lambda t: t.dropna(),
    "drop what lacks all": lambda t: t.dropna(how="all", subset=["x", "y"]),
    "drop what lacks two": lambda t: t.dropna(thresh=3),
    "fields of a struct": lambda t: t.select(F.struct("id", "g").alias("s")).select(
        F.col("s").withField("z", F.col("s.id") + 1).dropFields("id").alias("s")
    ),
    "fields of a struct and Spark's code": lambda t: t.select(
        F.struct("id", F.soundex("g").alias("g")).withField("z", F.soundex("g")).alias("s")
    ),
}


@pytest.mark.parametrize("habit", HABITS)
def test_habits(db: ev.Database, spark: SparkSession, habit: str) -> None:
    """The view is what Spark makes of the same rows, also after changes."""
    view = db.create_view("v", HABITS[habit](db.spark_table("t")))
    rows = list(ROWS)
    for gone, new in ([], [(5, "c", 9, 0.5)]), (ROWS[:2], []), ([], []):
        with db.transaction() as tx:
            tx.delete("t", gone)
            tx.insert("t", new)
        rows = [r for r in rows if r not in gone] + new
        theirs = HABITS[habit](spark.createDataFrame(rows, COLUMNS))
        assert _bag(view.to_spark()) == _bag(theirs)


def _bag(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (lambda t: t.groupBy("g").pivot("x").sum("id"), "pivot without a list of values"),
        (lambda t: t.crosstab("g", "x"), "pivot without a list of values"),
        (
            lambda t: t.groupBy("g").applyInPandas(lambda p: p, COLUMNS),
            r"^groupBy\(…\)\.applyInPandas is not supported",
        ),
        (lambda t: t.mapInPandas(lambda p: p, COLUMNS), r"^mapInPandas is not supported.*strategy='recompute'"),
        (lambda t: t.sortWithinPartitions("id").limit(1), "SORT BY orders each partition by itself"),
        (lambda t: t.sparkSession.readStream.format("rate").load(), r"reads a stream.*db\.stream\("),
    ],
)
def test_refusals(db: ev.Database, frame: Callable[[DataFrame], DataFrame], words: str) -> None:
    """In words that the user has written, with what to write instead."""
    with pytest.raises(ev.UnsupportedQuery, match=words):
        db.create_view("v", frame(db.spark_table("t")))
    if "pivot" in words:
        with pytest.raises(ev.UnsupportedQuery, match=words):
            db.create_view("v", frame(db.spark_table("t")), strategy="recompute")
