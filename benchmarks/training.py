"""Learning after every batch, for the suite ``covariance`` (F-IVM, figures 22 and 25).

*training*: a linear regression by gradient descent after every batch, from the last parameters (``warm``) or from zero
(``scratch``), beside the covariance alone (``none``). *information*: the mutual information of all pairs and the Chow-Liu tree
after every batch, beside the counts alone. Timed is ``db.apply`` and what is learned; a trial ends when its budget is
exhausted, and ratios are over the batches that both have run.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import everview as ev
from benchmarks.covariance_data import FeatureSet
from benchmarks.steps import AnyStep, round_robin
from benchmarks.timing import Budget
from everview.cli.bench_results import Figure
from everview.learn import ChowLiuTree, LearningWarning, LinearRegression, MutualInformation
from everview.session.covariance import Covariance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 1_000

Make = Callable[[], tuple[ev.Database, Covariance]]
"""Makes an empty database and the covariance over it."""

TOLERANCE = 1e-6


@dataclass
class Learned:
    """One stream with what was learned on its way."""

    rows: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    """Processor time."""
    steps: list[int] = field(default_factory=list)
    """Steps of gradient descent after each batch."""

    def rate(self, batches: int) -> float:
        """Rows a second over the first batches."""
        return sum(self.rows[:batches]) / sum(self.seconds[:batches])

    def against(self, other: Learned, batches: int) -> tuple[float, dict[str, float]]:
        """The rate over that of another, over the first batches: by the wall, and ``by_cpu``, to be told with it."""
        by_cpu = sum(other.worked[:batches]) / max(1e-9, sum(self.worked[:batches]))
        return self.rate(batches) / other.rate(batches), {"batches": batches, "by_cpu": round(by_cpu, 3)}


def learning_figures(spark: SparkSession, name: str, features: FeatureSet, budget: Budget) -> Iterator[Figure]:
    """What is learned of one kind of features of a data set, sorted, in batches of 1,000; nothing of mixed ones."""
    workload = features.workload

    def make() -> tuple[ev.Database, Covariance]:
        db = ev.connect(spark=spark)
        for table, rows in workload.tables.items():
            db.create_table(table, rows.schema, retain=False)
        chosen = {"continuous": features.continuous, "categorical": features.categorical}
        return db, db.create_covariance("cov", workload.join_sql, **chosen)

    case, steps = f"{name}, {features.kind}", round_robin(workload.tables, BATCH)
    if features.kind == "continuous":
        label = "price" if name == "housing" else workload.summed
        yield from training_figures(case, make, steps, label, budget)
    elif features.kind == "categorical":
        yield from information_figures(case, make, steps, budget)


def training_figures(case: str, make: Make, steps: Sequence[AnyStep], label: str, budget: Budget) -> Iterator[Figure]:
    """Throughput and steps of gradient descent: without training, from the last parameters, and from zero."""
    found: dict[str, Learned] = {}
    for mode in ("none", "warm", "scratch"):
        db, cov = make()
        with db:
            model = LinearRegression(cov, label, solver="gd", tol=TOLERANCE, max_iter=100_000)

            def learn(mode: str = mode, model: LinearRegression = model) -> int:
                if mode == "none":
                    return 0
                (model.refresh if mode == "warm" else model.fit)()
                return model.n_iter_

            found[mode] = _stream(db, steps, learn, budget)
            if mode != "none":
                _check(cov, label, model)
    common = min(len(f.seconds) for f in found.values())
    for mode, learned in found.items():
        descents = sum(learned.steps[:common])
        params = {"what": "training", "mode": mode, "batches": common, "steps": descents}
        yield Figure(case, "tuples_per_second", learned.rate(common), "1/s", params)
    for mode in ("warm", "scratch"):
        ratio, told = found[mode].against(found["none"], common)
        yield Figure(case, "ratio_to_no_training", ratio, "x", {"what": "training", "mode": mode, **told})
    warm, scratch = (max(1, sum(found[m].steps[:common])) for m in ("warm", "scratch"))
    params = {"what": "steps of gradient descent", "mode": "warm", "batches": common}
    yield Figure(case, "ratio_to_scratch", scratch / warm, "x", params)


def information_figures(case: str, make: Make, steps: Sequence[AnyStep], budget: Budget) -> Iterator[Figure]:
    """Throughput of the counts alone, and with mutual information and the Chow-Liu tree after every batch."""
    found: dict[str, Learned] = {}
    for mode in ("none", "tree"):
        db, cov = make()
        with db:
            tree = ChowLiuTree(MutualInformation(cov))

            def learn(mode: str = mode, tree: ChowLiuTree = tree) -> int:
                if mode == "tree":
                    tree.refresh()
                return 0

            found[mode] = _stream(db, steps, learn, budget)
    common = min(len(f.seconds) for f in found.values())
    for mode, learned in found.items():
        params = {"what": "information", "mode": mode, "batches": common}
        yield Figure(case, "tuples_per_second", learned.rate(common), "1/s", params)
    ratio, told = found["tree"].against(found["none"], common)
    yield Figure(case, "ratio_to_counts_alone", ratio, "x", {"what": "information", "mode": "tree", **told})


def _stream(db: ev.Database, steps: Sequence[AnyStep], learn: Callable[[], int], budget: Budget) -> Learned:
    gc.collect()
    found, spent = Learned(), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)  # the first batches join nothing, or fewer rows than features
        for step in steps:
            changes = step.changes
            started, before = time.perf_counter(), time.thread_time()
            db.apply(changes)
            taken = learn()
            found.seconds.append(time.perf_counter() - started)
            found.worked.append(time.thread_time() - before)
            found.rows.append(step.rows)
            found.steps.append(taken)
            spent += found.seconds[-1]
            if spent >= budget.seconds:
                break
    return found


def _check(cov: Covariance, label: str, model: LinearRegression) -> None:
    """Compares with the direct solution: a model that is far from it is no result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        exact = LinearRegression(cov, label, solver="direct").fit()
    if not np.isclose(model.score(), exact.score(), rtol=1e-6, atol=1e-6, equal_nan=True):
        raise AssertionError(f"gradient descent ended at R² = {model.score()}, and the solution has {exact.score()}")
