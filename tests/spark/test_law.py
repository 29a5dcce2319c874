"""The law on the Spark backend: after every transaction, and after every restart, maintained == recomputed."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.backends.spark.backend import SparkBackend
from everview.relational.nodes import Relation
from tests.corpus.data import Query, queries
from tests.spark.replay import Replay, open_on_disk, refuse_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK = {
    *("q01", "q03", "q05", "q10", "q13", "q15", "q16", "q18", "q21", "q22"),
    *(
        "full_equality",
        "rollup_two",
        "except_distinct",
        "nan_except",
        "range_dates",
        "min_by_max_by",
        "ntile_total_order",
    ),
    *(
        "scalar_correlated_equality",
        "not_in_null_aware_with_nulls",
        "explode_split",
        "axf",
        "example_6_2",
        "limit_offset",
        "exists_inequality",
    ),
}
_ON_SPARK = {"q03", "full_equality"}
_ON_SPARK_SLOW = {
    *(f"q{number:02}" for number in range(1, 23)),
    *("vwap", "axf", "rollup_two", "except_distinct", "intersect_distinct", "nan_except", "negative_zero_group"),
    *("range_dates", "ntile_total_order", "min_by_max_by", "limit_offset", "not_in_null_aware_with_nulls"),
}
_IS_SLOW = os.environ.get("EVERVIEW_SLOW") == "1"
_BATCHES_AT_THE_DRIVER = 20 if _IS_SLOW else 5
_BATCHES_ON_SPARK = 20 if _IS_SLOW else 3


def _queries() -> list[Query]:
    return [q for folder in ("tpch", "multilevel", "queryplan", "general") for q in queries(folder)]


def _marked(quick: set[str], every: list[Query]) -> list[object]:
    assert quick <= {q.name for q in every}, "a query that is not in the corpus"
    ids = [f"{q.file.parent.name}-{q.name}" for q in every]
    marks = [() if q.name in quick else (pytest.mark.slow,) for q in every]
    return [pytest.param(q, id=i, marks=m) for q, i, m in zip(every, ids, marks, strict=True)]


@pytest.mark.parametrize("query", _marked(_QUICK, _queries()))
def test_at_the_driver(query: Query, corpus_plan: Callable[[Query], Relation], tmp_path: Path) -> None:
    """Small tables are maintained without a Spark job; a database opened again goes on where it was."""
    plan = corpus_plan(query)
    with closing(Replay(plan, tmp_path, query.name, lambda path: SparkBackend(str(path), refuse_spark))) as replay:
        _replay(replay, _BATCHES_AT_THE_DRIVER)
        replay.apply(replay.delete_everything())
        replay.check()


def _replay(replay: Replay, batches: int) -> None:
    """The view is made after the first batch, and checked after every other; some of them are followed by a restart."""
    transactions = replay.transactions(batches)
    replay.apply(next(transactions, {}))
    replay.create_view()
    replay.check()
    for number, changes in enumerate(transactions):  # one by one: what is deleted is chosen from what is there
        replay.apply(changes)
        replay.check()
        if number % 5 == 0:
            replay.restart()
            replay.check()


@pytest.mark.parametrize("query", _marked(_ON_SPARK, [q for q in _queries() if q.name in _ON_SPARK | _ON_SPARK_SLOW]))
def test_on_spark(query: Query, corpus_plan: Callable[[Query], Relation], tmp_path: Path, spark: SparkSession) -> None:
    """The same where no segment may be read by the driver: look-ups and contents are Spark's."""
    plan = corpus_plan(query)
    with closing(Replay(plan, tmp_path, query.name, lambda path: open_on_disk(path, spark))) as replay:
        _replay(replay, _BATCHES_ON_SPARK)
        assert replay.backend.stats("v")["spark_jobs"] > 0
