"""What the suite ``covariance`` measures: one kind of covariance over one data set, and the baselines beside it."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.table import Table

import everview as ev
from benchmarks.answers import duckdb_answer
from benchmarks.covariance_data import FeatureSet
from benchmarks.steps import Step, round_robin, shuffled
from benchmarks.timing import Budget, Timed, feed, state_bytes, touch_memory
from everview.cli.bench_results import Figure
from everview.session.covariance import Covariance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 1_000
SEED = 11
MOST_TRIALS = 3
WARM_UP_ROWS = 1_500
CHECKED_ROWS = 20_000_000
TOUCHED = 3 << 30
"""Bytes that are written to before a stream of full size, so that none waits for memory of the machine's host."""
FIVM_CPP = {
    ("housing", "continuous", "sorted"): 10.0,
    ("housing", "continuous", "shuffled"): 0.86,
    ("retailer", "continuous", "sorted"): 2.6,
    ("retailer", "continuous", "shuffled"): 0.54,
    ("retailer", "mixed", "sorted"): 0.11,
    ("favorita", "continuous", "sorted"): 3.4,
    ("favorita", "mixed", "sorted"): 0.11,
}
"""Millions of tuples a second, from ``anchors.md``; the mixed ones over a tenth of the data."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run covers.

    Attributes:
        budget: Of one of our own streams.
        baseline: Of a baseline, and of our stream beside it.
        orders: Of the rows, for continuous features.
        few: The number of features (of each role) beside a baseline.
        categories: The number of features where all are categorical.
        shares: The shares of the data by kind of features.
    """

    budget: Budget
    baseline: Budget
    orders: tuple[str, ...]
    few: int
    categories: int
    shares: Mapping[str, float]


FULL = Plan(
    Budget(seconds=12, bytes=8e9),
    Budget(seconds=3, bytes=8e9),
    ("sorted", "shuffled"),
    few=6,
    categories=12,
    shares={"continuous": 1.0, "mixed": 0.1, "categorical": 0.1},
)
"""Categories are measured over a tenth of the data, as F-IVM's C++ was for ``anchors.md``."""
QUICK = Plan(
    Budget(seconds=0.4),
    Budget(seconds=0.3),
    ("sorted",),
    few=3,
    categories=3,
    shares={"continuous": 0.02, "mixed": 0.02, "categorical": 0.02},
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One stream that was run."""

    timed: Timed
    params: dict[str, Any]
    state: float = 0.0
    reading: float = 0.0


def measure_case(
    spark: SparkSession, name: str, features: FeatureSet, few: FeatureSet, order: str, plan: Plan, table: Table
) -> Iterator[Figure]:
    """One kind of covariance over one data set, and what it is compared with."""
    case = f"{name}, {features.kind}"
    ours = _best(spark, features, order, plan.budget)
    anchor = FIVM_CPP.get((name, features.kind, order)) if features.is_whole else None
    yield from _figures(case, ours, anchor)
    ratio = None if anchor is None else ours.timed.rate / anchor / 1e6
    by_cpu = None if anchor is None else round(ours.timed.worked_rate / anchor / 1e6, 3)
    told = []
    if order == "sorted":
        same = ours if few == features else _ours(spark, few, order, plan.baseline)
        for baseline, theirs in _baselines(spark, few, order, plan.baseline):
            against, more = same.timed.against(theirs.timed)
            yield Figure(case, f"ratio_to_{baseline}", against, "x", {**theirs.params, **more})
            told.append(f"{baseline} {theirs.timed.rate / 1e3:,.1f} ({against:,.1f}x)")
    count = f"{len(features.continuous)} + {len(features.categorical)}"
    rates = f"{ours.timed.rate / 1e3:,.0f}", f"{ours.timed.worked_rate / 1e3:,.0f}"
    shown = "" if ratio is None else f"{ratio:.2f} ({by_cpu:.2f})"
    cells = (f"{ours.state / 1e6:,.1f}", f"{ours.reading * 1e3:.1f}", shown, ours.params["answer"], ", ".join(told))
    table.add_row(case, order, count, *rates, *cells)


def our_figures(spark: SparkSession, name: str, features: FeatureSet, order: str, budget: Budget) -> Iterator[Figure]:
    """One stream into ``create_covariance``, without baselines."""
    ours = _ours(spark, features, order, budget)
    yield from _figures(f"{name}, {features.kind}", ours, FIVM_CPP.get((name, features.kind, order)))


def _figures(case: str, ours: Trial, anchor: float | None) -> Iterator[Figure]:
    by_clock = {"wall": ours.timed.rate, "processor": ours.timed.worked_rate}
    for clock, rate in by_clock.items():
        yield Figure(case, "tuples_per_second", rate, "1/s", {**ours.params, "clock": clock})
    yield Figure(case, "state_bytes", ours.state, "B", ours.params)
    yield Figure(case, "seconds", ours.reading, "s", {**ours.params, "what": "reading all sums"})
    for clock, rate in by_clock.items() if anchor is not None else ():
        yield Figure(case, "ratio_to_fivm_cpp", rate / (anchor * 1e6), "x", {**ours.params, "clock": clock})


def warm_up(spark: SparkSession, features: FeatureSet) -> None:
    """A database of few rows, thrown away: the kernels, which are the same for all queries, are compiled."""
    with _database(spark, features) as db:
        covariance = _covariance(db, features, "auto")
        feed(db, round_robin({n: t.slice(0, WARM_UP_ROWS) for n, t in features.workload.tables.items()}, BATCH // 2))
        covariance.moments()


def _best(spark: SparkSession, features: FeatureSet, order: str, budget: Budget) -> Trial:
    """The best of up to three of our streams, by processor time, where one takes little of the budget."""
    trials = [_ours(spark, features, order, budget)]
    while len(trials) < MOST_TRIALS and sum(t.timed.seconds.sum() for t in trials) < budget.seconds / MOST_TRIALS:
        trials.append(_ours(spark, features, order, budget))
    best = max(trials, key=lambda t: t.timed.worked_rate)
    return replace(best, params={**best.params, "best_of": len(trials)})


def _ours(spark: SparkSession, features: FeatureSet, order: str, budget: Budget, strategy: str = "auto") -> Trial:
    steps = _steps(features, order)
    if budget.bytes < math.inf:
        touch_memory(TOUCHED)
    with _database(spark, features) as db:
        covariance = _covariance(db, features, strategy)
        timed = feed(db, steps, budget)
        started = time.perf_counter()
        covariance.moments()
        reading = time.perf_counter() - started
        answer = _check(covariance, features, steps[: len(timed.seconds)])
        params = _params(features, order, timed, len(steps)) | {"strategy": strategy, "answer": answer}
        return Trial(timed, params, state_bytes(covariance), reading)


def _baselines(spark: SparkSession, features: FeatureSet, order: str, budget: Budget) -> Iterator[tuple[str, Trial]]:
    steps = _steps(features, order)
    timed = _numpy(features, steps, budget)
    yield "numpy", Trial(timed, _params(features, order, timed, len(steps)))
    with _database(spark, features) as db:
        for i, sql in enumerate(_cells(features)):
            db.create_view(f"cell_{i}", sql)
        timed = feed(db, steps, budget)
        yield "cells", Trial(timed, _params(features, order, timed, len(steps)) | {"views": len(db.views)})
    yield "first_order", _ours(spark, features, order, budget, "first_order")


def _steps(features: FeatureSet, order: str) -> list[Step]:
    tables = features.workload.tables
    return round_robin(tables if order == "sorted" else shuffled(tables, SEED), BATCH)


def _database(spark: SparkSession, features: FeatureSet) -> ev.Database:
    gc.collect()
    db = ev.connect(spark=spark)
    for name, table in features.workload.tables.items():
        db.create_table(name, table.schema, retain=False)
    return db


def _covariance(db: ev.Database, features: FeatureSet, strategy: str) -> Covariance:
    return db.create_covariance(
        "cov",
        features.workload.join_sql,
        continuous=features.continuous,
        categorical=features.categorical,
        strategy=strategy,
    )


def _params(features: FeatureSet, order: str, timed: Timed, steps: int) -> dict[str, Any]:
    told = {**features.workload.params, "order": order, "batch": BATCH, "batches": len(timed.seconds)}
    told |= {"features": len(features.continuous) + len(features.categorical)}
    return told if timed.stopped is None else {**told, "of_batches": steps, "stopped": timed.stopped}


def _cells(features: FeatureSet) -> Iterator[str]:
    """One query for each cell of the matrix."""
    source = f"({features.workload.join_sql})"
    xs, cs = features.continuous, features.categorical
    yield f"SELECT COUNT(*) AS n FROM {source}"
    yield from (f"SELECT SUM({x}) AS s FROM {source}" for x in xs)
    yield from (f"SELECT SUM({x} * {y}) AS s FROM {source}" for i, x in enumerate(xs) for y in xs[i:])
    for i, c in enumerate(cs):
        yield f"SELECT {c}, COUNT(*) AS n FROM {source} GROUP BY {c}"
        yield from (f"SELECT {c}, SUM({x}) AS s FROM {source} GROUP BY {c}" for x in xs)
        yield from (f"SELECT {c}, {d}, COUNT(*) AS n FROM {source} GROUP BY {c}, {d}" for d in cs[i + 1 :])


def _numpy(features: FeatureSet, steps: Sequence[Step], budget: Budget) -> Timed:
    """Joins all that has arrived and sums it up, after every batch."""
    held: dict[str, list[pa.RecordBatch]] = {name: [] for name in features.workload.tables}
    seconds, worked = [], []
    stopped = None
    for step in steps:
        started, before = time.perf_counter(), time.thread_time()
        held[step.table].append(step.batch)
        if all(held.values()):
            _recompute(features, {name: pa.Table.from_batches(batches) for name, batches in held.items()})
        seconds.append(time.perf_counter() - started)
        worked.append(time.thread_time() - before)
        stopped = budget.exhausted(sum(seconds), 0)
        if stopped is not None:
            break
    sizes = np.array([step.rows for step in steps[: len(seconds)]], dtype=np.int64)
    return Timed(sizes, np.array(seconds), np.array(worked), stopped)


def _recompute(features: FeatureSet, tables: dict[str, pa.Table]) -> None:
    first, *others = tables.values()
    joined = first
    for other in others:
        shared = [c for c in other.column_names if c in joined.column_names]
        joined = joined.join(other, keys=shared, join_type="inner")
    matrix = np.column_stack([np.ones(joined.num_rows), *(joined[x].to_numpy() for x in features.continuous)])
    matrix.T @ matrix
    for i, c in enumerate(features.categorical):
        joined.group_by([c]).aggregate([(c, "count"), *((x, "sum") for x in features.continuous)])
        for d in features.categorical[i + 1 :]:
            joined.group_by([c, d]).aggregate([(c, "count")])


def _check(covariance: Covariance, features: FeatureSet, steps: Sequence[Step]) -> str:
    """Compares the sums with DuckDB's over the rows that have arrived."""
    moments = covariance.moments()
    if moments.count > CHECKED_ROWS:
        return f"not checked: {moments.count:,.0f} rows"
    arrived = {
        name: pa.Table.from_batches([s.batch for s in steps if s.table == name], table.schema)
        for name, table in features.workload.tables.items()
    }
    xs, source = features.continuous, f"({features.workload.join_sql})"
    cells = [f"SUM({x} * {y})" for i, x in enumerate(xs) for y in xs[i:]]
    ((count, *sums),) = duckdb_answer(f"SELECT {', '.join(['COUNT(*)', *cells])} FROM {source}", arrived)
    ours = moments.products[np.triu_indices(len(xs))]
    is_right = count == moments.count and np.allclose(ours, [float(s or 0) for s in sums], rtol=1e-9)
    for c in features.categorical[:2]:
        theirs: dict[Any, Any] = dict(duckdb_answer(f"SELECT {c}, COUNT(*) FROM {source} GROUP BY {c}", arrived))
        own = moments.categories[c]
        is_right &= dict(zip(own.values, own.counts.tolist(), strict=True)) == theirs
    return "right" if is_right else "WRONG"
