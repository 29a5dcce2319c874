"""What is beyond joins and sums: functions by whoever computes them, the clock, transitive closure.

    everview bench sql [--quick]

*Functions*: 100,000 new rows of a table with a primary key, a view that projects them natively, by Spark's own code in the JVM,
or by a pandas UDF. Timed is ``db.apply`` of an Arrow batch and reading the view's delta; beside it Spark takes the same batch
from Arrow, projects it and gives Arrow back. Every batch has new values, so that nothing is remembered. They take turns;
medians, by the clock, because Spark works in another process. All answers are compared with Spark's.

*Clock*: a temporal filter over a million rows; ``db.advance`` past 10 to 10,000 of them. ``exponent`` is the b of time ≈
a · N^b when the table grows tenfold and as many rows expire: 0 is a cost of what expires alone. Processor time.

*Closure*: the pairs of nodes that paths of a layered graph join; edges come and go one by one. ``ratio_to_recompute`` is the
time of a change in a view that is computed anew over that in a maintained one. Processor time; they are compared at the end.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.classes_measure import exponent
from benchmarks.spark_session import spark_session
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, QUICK_ROWS = 100_000, 10_000
ROUNDS, QUICK_ROUNDS = 7, 2
PROJECTIONS = {
    "native": "id, upper(s) AS u, x * 1.19 + n AS v, length(s) AS l",
    "spark's code": "id, format_string('%s-%05d', s, n) AS u, conv(CAST(n AS STRING), 10, 36) AS v",
    "pandas udf": "id, taxed(x) AS v",
}
EVENTS, QUICK_EVENTS = 1_000_000, 20_000
EXPIRING = (10, 100, 1_000, 10_000)
START = datetime(2024, 1, 1, tzinfo=UTC)
LAYERS, WIDTH, QUICK_WIDTH = 5, 60, 12
CHANGES, QUICK_CHANGES = 40, 6
CLOSURE = (
    "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION ALL SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) "
    "SELECT DISTINCT a, b FROM r"
)


def run(*, quick: bool) -> Iterator[Figure]:
    """All figures."""
    with spark_session({"sql.execution.arrow.pyspark.enabled": "true"}) as spark:
        spark.sparkContext.pythonExec = sys.executable
        yield from functions(spark, QUICK_ROWS if quick else ROWS, QUICK_ROUNDS if quick else ROUNDS)
        yield from clock(spark, QUICK_EVENTS if quick else EVENTS, 3 if quick else 15)
        yield from closure(spark, QUICK_WIDTH if quick else WIDTH, QUICK_CHANGES if quick else CHANGES)


def functions(spark: SparkSession, rows: int, rounds: int) -> Iterator[Figure]:
    """New rows through projections."""
    _register_taxed(spark)
    seconds: dict[tuple[str, str], list[float]] = {}
    with ev.connect(spark=spark) as db:
        for case, projection in PROJECTIONS.items():
            db.create_table(case, "id BIGINT, s STRING, x DOUBLE, n BIGINT", primary_key="id")
            db.create_view(f"view of {case}", f"SELECT {projection} FROM `{case}`")
        db.create_table("no view", "id BIGINT, s STRING, x DOUBLE, n BIGINT", primary_key="id")
        for number in range(rounds + 1):  # the first warms up
            batch = _rows(rows, number)
            for case in ("no view", *PROJECTIONS):
                started = time.perf_counter()
                commit = db.apply({case: batch})
                delta = commit.changes[f"view of {case}"] if case in PROJECTIONS else None
                middle = time.perf_counter()
                answer = None if delta is None else _by_spark(spark, batch, PROJECTIONS[case])
                ended = time.perf_counter()
                if delta is not None and answer is not None:
                    _check_equal(delta.drop_columns(["_weight"]), answer)
                if number:
                    seconds.setdefault((case, "everview"), []).append(middle - started)
                    seconds.setdefault((case, "spark"), []).append(ended - middle)
    for case in ("no view", *PROJECTIONS):
        ours, theirs = (statistics.median(seconds[case, who]) for who in ("everview", "spark"))
        yield Figure(case, "tuples_per_second", rows / ours, "1/s", {"rows": rows, "rounds": rounds})
        yield Figure(case, "seconds", ours, "s", {"rows": rows})
        if case in PROJECTIONS:
            yield Figure(case, "ratio_to_spark", theirs / ours, "x", {"spark_seconds": round(theirs, 4)})


def _register_taxed(spark: SparkSession) -> None:
    # Both wait until a suite runs: they take a second to import.
    import pandas as pd  # noqa: PLC0415
    from pyspark.sql.functions import pandas_udf  # noqa: PLC0415

    def taxed(values: pd.Series) -> pd.Series:
        return values * 1.19

    taxed.__annotations__ = {"values": pd.Series, "return": pd.Series}
    spark.udf.register("taxed", pandas_udf(taxed, "double"))  # type: ignore[call-overload,unused-ignore]


def _rows(count: int, number: int) -> pa.Table:
    ids = np.arange(number * count, (number + 1) * count)
    rng = np.random.default_rng(number)
    texts = pa.array([f"customer {i}" for i in ids.tolist()])
    return pa.table({"id": ids, "s": texts, "x": rng.random(count), "n": rng.permutation(ids)})


def _by_spark(spark: SparkSession, batch: pa.Table, projection: str) -> pa.Table:
    frame = spark.createDataFrame(batch)
    frame.createOrReplaceTempView("everview_batch")
    return spark.sql(f"SELECT {projection} FROM everview_batch").toArrow()


def _check_equal(ours: pa.Table, theirs: pa.Table) -> None:
    ours, theirs = (t.sort_by("id") for t in (ours, theirs))
    for name in ours.column_names:
        a, b = (t.column(name).to_pylist() for t in (ours, theirs))
        if a != b:
            raise AssertionError(f"column {name} differs from Spark's")


def clock(spark: SparkSession, rows: int, rounds: int) -> Iterator[Figure]:
    """A filter by the clock over so many rows, and over a tenth of them."""
    sizes = (rows // 10, rows)
    means: dict[int, list[float]] = {}
    for size in sizes:
        with ev.connect(spark=spark) as db:
            table = db.create_table("event", "id BIGINT, ts TIMESTAMP", primary_key="id")
            view = db.create_view("recent", "SELECT id FROM event WHERE ts > now() - INTERVAL 1 HOUR")
            now = START + timedelta(hours=1)
            db.advance(now)
            moments = pa.array(
                np.arange(1, size + 1) * 1_000_000 + int(START.timestamp()) * 1_000_000, pa.timestamp("us", "UTC")
            )
            table.insert(pa.table({"id": np.arange(size), "ts": moments}))
            gone = 0
            for moved in EXPIRING:
                if moved * (rounds + 1) > size // len(EXPIRING):
                    continue
                seconds = []
                for number in range(rounds + 1):
                    now += timedelta(seconds=moved)
                    started = time.process_time()
                    changed = db.advance(now).changes["recent"].num_rows
                    if number:
                        seconds.append(time.process_time() - started)
                    gone += moved
                    if changed != moved:
                        raise AssertionError(f"{changed} rows expired, and not {moved}")
                means.setdefault(moved, []).append(statistics.median(seconds))
                yield Figure("clock", "seconds", means[moved][-1], "s", {"rows": size, "expiring": moved})
            if len(view) != size - gone:
                raise AssertionError("rows of the view are missing")
    for moved, found in means.items():
        if len(found) == len(sizes):
            yield Figure("clock", "exponent", exponent(sizes, found), "", {"expiring": moved})


def closure(spark: SparkSession, width: int, changes: int) -> Iterator[Figure]:
    """Edges of a layered graph that come and go."""
    chance = random.Random(5)
    nodes = [[layer * width + i for i in range(width)] for layer in range(LAYERS)]
    possible = [(a, b) for left, right in pairwise(nodes) for a in left for b in right]
    edges = chance.sample(possible, 2 * width * (LAYERS - 1))
    seconds: dict[tuple[str, str], list[float]] = {}
    with ev.connect(spark=spark) as maintained, ev.connect() as anew:
        ways = {"maintained": maintained, "recompute": anew}
        for way, db in ways.items():
            db.create_table("edge", "src INT, dst INT").insert(edges)
            db.create_view("closure", CLOSURE, strategy="recompute" if way == "recompute" else "auto")
        for number in range(changes + 1):
            edge = chance.choice([e for e in possible if e not in edges])
            for what, weight in (("insert", 1), ("delete", -1)):
                for way, db in ways.items():
                    started = time.process_time()
                    db.apply({"edge": [{"src": edge[0], "dst": edge[1], "_weight": weight}]})
                    if number:
                        seconds.setdefault((way, what), []).append(time.process_time() - started)
        pairs = [sorted(db.view("closure").rows()) for db in ways.values()]
        if pairs[0] != pairs[1]:
            raise AssertionError("the maintained closure differs from the recomputed one")
    told = {"edges": len(edges), "pairs": len(pairs[0]), "changes": changes}
    for what in ("insert", "delete"):
        ours, theirs = (statistics.median(seconds[way, what]) for way in ("maintained", "recompute"))
        yield Figure(f"closure, {what}", "seconds", ours, "s", told)
        yield Figure(
            f"closure, {what}", "ratio_to_recompute", theirs / ours, "x", {"recompute_seconds": round(theirs, 5)}
        )
