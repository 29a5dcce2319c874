"""Counting the paths of 2 to 20 edges in a skewed graph of a million edges under inserts (F-IVM, section 9.5).

    everview bench paths [--quick]

*copies*: ``SUM(1)`` over the join of ``k`` tables, each with all the edges, arriving in batches of 1,000 of one table, round
robin; *self-join*: the same over one table joined with itself, for small ``k``. Strategies ``auto`` (for an aggregate, one view
tree: ``factorized``) and ``first_order`` in the same run, tables not retained (``trusted``). The paper groups by the ends of
the path; here nothing is grouped, so that the result stays one number and the views are what is measured. ``views`` counts the
materialized views besides one for each table: F-IVM needs ``k - 1``.

Timed is ``db.apply`` alone, from an Arrow batch in memory to the count being current; making the batches, translating the query
and a throw-away database that compiles the kernels are not. The join has 1e17 rows at k = 20: a trial stops when its budget of
time or memory is exhausted, which says so in the parameters, and a strategy that processed less than a round of its stream at
some ``k`` is not tried at larger ones. Every count is compared with DuckDB's over the rows that arrived.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.answers import duckdb_answer, first_difference
from benchmarks.paths_data import EDGES, copies, copies_sql, counted_sql, graph, self_join_sql
from benchmarks.spark_session import spark_session
from benchmarks.steps import round_robin
from benchmarks.timing import Budget
from benchmarks.trial import Outcome, Skipped, Trial, attempt, skip
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 1_000
LENGTHS, SELF_LENGTHS = (2, 3, 4, 5, 6, 8, 10, 15, 20), (2, 3, 4)
QUICK_LENGTHS, QUICK_SELF_LENGTHS = (2, 5, 20), (2,)
QUICK_EDGES = 20_000
FULL_BUDGET = Budget(seconds=20, bytes=8e9)
QUICK_BUDGET = Budget(seconds=0.7, bytes=2e9)
STRATEGIES = ("auto", "first_order")
BASELINE = "first_order"


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints the trials by length at the end."""
    with spark_session() as spark:
        if quick:
            yield from measure(spark, QUICK_EDGES, QUICK_LENGTHS, QUICK_SELF_LENGTHS, QUICK_BUDGET)
        else:
            yield from measure(spark, EDGES, LENGTHS, SELF_LENGTHS, FULL_BUDGET)


def measure(
    spark: SparkSession, edges: int, lengths: Sequence[int], self_lengths: Sequence[int], budget: Budget
) -> Iterator[Figure]:
    """The results for these lengths over a graph of this many edges."""
    given = graph(edges)
    found: list[Outcome | Skipped] = []
    exhausted: dict[str, int] = {}
    for k in lengths:
        trial = Trial("copies", copies_sql(k), copies(given, k), mode="trusted", params={"k": k, "edges": edges})
        counted = counted_sql([(f"e{i}", f"a{i}", f"a{i + 1}") for i in range(1, k + 1)])
        yield from _compare(spark, trial, counted, budget, found, exhausted)
    for k in self_lengths:
        trial = Trial("self-join", self_join_sql(k), {"edge": given}, mode="trusted", params={"k": k, "edges": edges})
        yield from _compare(spark, trial, counted_sql([("edge", "src", "dst")] * k), budget, found, {})
    Console(width=max(Console().width, 140)).print(_table(found))


def _compare(
    spark: SparkSession,
    base: Trial,
    counted: str,
    budget: Budget,
    found: list[Outcome | Skipped],
    exhausted: dict[str, int],
) -> Iterator[Figure]:
    """One length by all strategies; ``exhausted`` has the length at which a strategy could not do a round."""
    steps = round_robin(base.tables, BATCH)
    done: dict[str, Outcome] = {}
    for strategy in STRATEGIES:
        trial = Trial(base.case, base.sql, base.tables, strategy=strategy, mode=base.mode, params=base.params)
        if strategy in exhausted:
            found.append(skip(trial, f"less than a round within the budget at k = {exhausted[strategy]}."))
            continue
        outcome = attempt(spark, trial, steps, partial(_check, counted), budget=budget)
        found.append(outcome)
        if isinstance(outcome, Skipped):
            continue
        done[strategy] = outcome
        if outcome.timed.stopped is not None and len(outcome.timed.seconds) < len(base.tables):
            exhausted[strategy] = base.params["k"]
        rounds = len(outcome.timed.seconds) // len(base.tables)
        worked = round(float(outcome.timed.worked.sum()), 3)
        params = {
            **outcome.params,
            "views": _joined_views(outcome),
            "batch": BATCH,
            "rounds": rounds,
            "cpu_seconds": worked,
        }
        yield Figure(base.case, "tuples_per_second", outcome.timed.rate, "1/s", params)
        yield Figure(base.case, "state_bytes", outcome.state, "B", params)
    for ours in (name for name in done if name != BASELINE and BASELINE in done):
        ratio, told = done[ours].timed.against(done[BASELINE].timed)
        params = {**done[ours].params, "views": _joined_views(done[ours]), "batch": BATCH, **told}
        yield Figure(base.case, f"ratio_to_{BASELINE}", ratio, "x", params)


def _joined_views(outcome: Outcome) -> int:
    """The views besides one for each table."""
    return outcome.views - len(outcome.trial.tables)


def _check(counted: str, view: ev.View, tables: Mapping[str, pa.Table]) -> str | None:
    return first_difference(view.rows(), duckdb_answer(counted, tables))


def _table(found: Sequence[Outcome | Skipped]) -> Table:
    table = Table(title="Paths, thousands of tuples a second by number of edges", title_justify="left")
    left = ("case", "strategy", "answer", "note")
    for heading in ("case", "k", "strategy", "rate", "by cpu", "MB", "views", "rounds", "answer", "note"):
        table.add_column(heading, justify="left" if heading in left else "right")
    for one in found:
        told = (one.trial.case, str(one.trial.params["k"]), one.trial.strategy)
        if isinstance(one, Skipped):
            table.add_row(*told, *[""] * 6, f"skipped: {one.reason}")
            continue
        rounds = f"{len(one.timed.seconds) // len(one.trial.tables):,}"
        note = "" if one.timed.stopped is None else f"stopped {one.timed.stopped}"
        rates = (f"{one.timed.rate / 1e3:,.0f}", f"{one.timed.worked_rate / 1e3:,.0f}")
        sizes = (*rates, f"{one.state / 1e6:,.1f}", str(_joined_views(one)))
        table.add_row(*told, *sizes, rounds, one.answer, note)
    return table
