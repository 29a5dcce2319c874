"""What the suites housing, retailer and favorita measure: sums over joins, and the joins themselves, under inserts.

- *sum*: one variable summed over the natural join of all tables, no GROUP BY (F-IVM, section 9.6), rows of all tables arriving
  in batches of 1,000 of one table, round robin, once sorted by the variable order and once shuffled. *sum, facts only*: the
  other tables are static and loaded before. Each by the strategies ``auto`` (for an aggregate, one view tree: ``factorized``),
  ``first_order`` (tables summed by their join keys, no view between them and the result) and ``recompute``, with retained
  tables (``strict``) and without (``trusted``; ``recompute`` reads the tables and runs ``strict`` only).
- *factorized join*, *listing join* (section 9.8): the join with all its variables, kept as a view tree or as rows, ``trusted``;
  the rows by binary joins (``auto``) and by one view tree (``factorized``).

Timed is ``db.apply`` alone, from an Arrow batch in memory to the view being current; making the batches, translating the query
and a throw-away database that compiles the kernels are not; of a stream under a second the fastest of five runs counts. A trial
stops when its budget of time or memory is exhausted, that of a baseline sooner, says so in its parameters, and is then
checked over the rows that arrived: its rate is that of the first part of the stream, where a baseline is fastest. Sums are
compared with DuckDB's; joins by count and sum of row hashes, or where they are too large to be listed, by count and the rows of
some keys.

Metrics: ``tuples_per_second``; ``state_bytes`` (without retained tables); ``seconds`` to read the first rows of a join;
``ratio_to_first_order`` and ``ratio_to_recompute``, ours over theirs over the batches that both have run (``by_cpu``: in
processor time); ``ratio_to_listing``, the same of the two representations, against each way to list; ``ratio_to_fivm_cpp``, our
rate over that of ``anchors.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import everview as ev
from benchmarks.answers import duckdb_answer, fingerprint, first_difference
from benchmarks.joins_anchors import anchor_of
from benchmarks.joins_workload import Workload
from benchmarks.steps import Step, round_robin, shuffled
from benchmarks.timing import SHORT, Budget
from benchmarks.trial import ENUMERATED, Check, Outcome, Skipped, Trial, attempt
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 1_000
SEED = 11
STRATEGIES = ("auto", "first_order", "recompute")
BASELINES = ("first_order", "recompute")
JOINS = (("factorized", "auto"), ("listing", "auto"), ("listing", "factorized"))
"""How a join is kept, and by which strategy."""
LISTED = 6_000_000
"""Up to this many rows a join is compared whole."""
SAMPLED_KEYS = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run covers; ``baseline`` is the budget of those we compare with.

    ``recompute`` reads the tables, so it runs with retained ones only. A stream of less than ``SHORT`` seconds is run ``runs``
    times and the fastest counts: the work of others on a machine can double such a time, and nothing makes it shorter. So it is
    for our strategies and for those they are compared with.
    """

    budget: Budget
    baseline: Budget
    orders: tuple[str, ...] = ("sorted", "shuffled")
    strategies: tuple[str, ...] = STRATEGIES
    modes: tuple[str, ...] = ("trusted", "strict")
    batch: int = BATCH
    runs: int = 1


FULL = Plan(Budget(seconds=60, bytes=8e9), baseline=Budget(seconds=20, bytes=8e9), runs=5)
QUICK = Plan(Budget(seconds=0.5, bytes=2e9), baseline=Budget(seconds=0.5, bytes=2e9))


class Measurement:
    """The trials of one workload; ``found`` keeps them for the suite's table."""

    def __init__(self, spark: SparkSession, workload: Workload, plan: Plan) -> None:
        self.spark = spark
        self.workload = workload
        self.plan = plan
        self.found: list[Outcome | Skipped] = []

    def sums(self) -> Iterator[Figure]:
        """The sum, updates to all tables."""
        for order in self.plan.orders:
            yield from self._sum("sum", self._tables(order), order, frozenset())

    def facts_only(self) -> Iterator[Figure]:
        """The sum, updates to the fact table only."""
        static = frozenset(name for name in self.workload.tables if name != self.workload.facts)
        yield from self._sum("sum, facts only", self.workload.tables, "sorted", static)

    def joins(self, ways: Sequence[tuple[str, str]] = JOINS) -> Iterator[Figure]:
        """The whole join, by representation and strategy."""
        steps = round_robin(self.workload.tables, self.plan.batch)
        done: dict[tuple[str, str], Outcome] = {}
        for representation, strategy in ways:
            trial = self._trial(f"{representation} join", self.workload.join_sql, self.workload.tables, "sorted")
            trial = replace(trial, representation=representation, strategy=strategy, mode="trusted")
            outcome = self._attempt(trial, steps, self._check_join)
            if isinstance(outcome, Outcome):
                done[representation, strategy] = outcome
                yield from self._results(outcome)
                read = {**outcome.params, "what": f"the first {ENUMERATED:,} rows by iter(view)"}
                yield Figure(outcome.trial.case, "seconds", outcome.enumeration, "s", read)
        tree = done.get(("factorized", "auto"))
        for listed in (outcome for (representation, _), outcome in done.items() if representation == "listing"):
            if tree is not None:
                yield _ratio("ratio_to_listing", tree, listed)

    def _sum(self, case: str, tables: Mapping[str, pa.Table], order: str, static: frozenset[str]) -> Iterator[Figure]:
        steps = round_robin({name: t for name, t in tables.items() if name not in static}, self.plan.batch)
        for mode in self.plan.modes:
            done: dict[str, Outcome] = {}
            for strategy in self.plan.strategies:
                if strategy == "recompute" and mode != "strict":
                    continue
                trial = self._trial(case, self.workload.sum_sql, tables, order)
                trial = replace(trial, static=static, strategy=strategy, mode=mode)
                outcome = self._attempt(trial, steps, self._check_sum)
                if isinstance(outcome, Outcome):
                    done[strategy] = outcome
                    yield from self._results(outcome)
            for ours in (name for name in done if name not in BASELINES):
                for baseline in (name for name in BASELINES if name in done):
                    yield _ratio(f"ratio_to_{baseline}", done[ours], done[baseline])

    def _trial(self, case: str, sql: str, tables: Mapping[str, pa.Table], order: str) -> Trial:
        params = {**self.workload.params, "batch": self.plan.batch, "order": order}
        return Trial(case, sql, tables, self.workload.keys, params=params)

    def _tables(self, order: str) -> Mapping[str, pa.Table]:
        return self.workload.tables if order == "sorted" else shuffled(self.workload.tables, SEED)

    def _attempt(self, trial: Trial, steps: Sequence[Step], check: Check) -> Outcome | Skipped:
        budget = self.plan.baseline if trial.strategy in BASELINES else self.plan.budget
        best: Outcome | Skipped | None = None
        for _ in range(self.plan.runs):
            found = attempt(self.spark, trial, steps, check, budget=budget, warm=self.workload.tables)
            if isinstance(found, Skipped) or found.answer != "right":
                best = found  # a wrong answer is not made good by a run with a right one
                break
            if not isinstance(best, Outcome) or found.timed.rate > best.timed.rate:
                best = found
            if found.timed.seconds.sum() >= SHORT:
                break
        assert best is not None, "a plan has at least one run"
        self.found.append(best)
        return best

    def _results(self, outcome: Outcome) -> Iterator[Figure]:
        case, params = outcome.trial.case, outcome.params
        anchor = anchor_of(self.workload.name, case, params)
        worked = {**params, "cpu_seconds": round(float(outcome.timed.worked.sum()), 3)}
        yield Figure(case, "tuples_per_second", outcome.timed.rate, "1/s", worked)
        their_state = {} if anchor is None or anchor.state is None else {"fivm_cpp_mb": anchor.state}
        yield Figure(case, "state_bytes", outcome.state, "B", {**params, **their_state})
        if anchor is not None:
            against = {**params, "fivm_cpp_per_second": anchor.rate * 1e6}
            yield Figure(case, "ratio_to_fivm_cpp", outcome.timed.rate / (anchor.rate * 1e6), "x", against)

    def _check_sum(self, view: ev.View, tables: Mapping[str, pa.Table]) -> str | None:
        ((total, _),) = duckdb_answer(self.workload.counted, tables)
        return first_difference(view.rows(), [(total,)])

    def _check_join(self, view: ev.View, tables: Mapping[str, pa.Table]) -> str | None:
        workload = self.workload
        ((_, count),) = duckdb_answer(workload.counted, tables)
        if view.stats()["rows"] != count:
            return f"{view.stats()['rows']} rows here and {count} there"
        if count <= LISTED:
            ours = fingerprint("SELECT * FROM ours", {"ours": view.to_arrow()}, workload.columns)
            theirs = fingerprint(workload.join_sql, tables, workload.columns)
            return None if ours == theirs else f"fingerprints {ours} here and {theirs} there"
        present = next(iter(tables.values())).column(workload.key).to_numpy()
        for key in np.random.default_rng(SEED).choice(present, SAMPLED_KEYS).tolist():
            theirs_at = duckdb_answer(f"{workload.join_sql} WHERE {workload.key} = {key}", tables)
            difference = first_difference(view.lookup(**{workload.key: key}), theirs_at)
            if difference is not None:
                return f"{workload.key} = {key}: {difference}"
        return None


def _ratio(metric: str, ours: Outcome, theirs: Outcome) -> Figure:
    """Our rate over theirs, over the batches that both have run: they are the same ones."""
    ratio, told = ours.timed.against(theirs.timed)
    params = {**ours.params, **told}
    if metric == "ratio_to_listing":
        params |= {"listed_by": theirs.trial.strategy, "state_ratio": round(theirs.state / max(1, ours.state), 2)}
    return Figure(ours.trial.case, metric, ratio, "x", params)
