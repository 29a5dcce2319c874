"""The 22 TPC-H queries under updates: rates, latencies, state and baselines, with every final answer checked.

    everview bench tpch [--quick]
    python benchmarks/tpch.py --queries q03 q18 --batches 1000 --modes strict --transactions mixed      # a part of it

All tables a query reads are streamed as inserts, in both settings of ``tpch_stream.py``: ``mixed``, transactions of so many
rows over all tables, as DBToaster's figures were made, and ``one_table``, batches of one table, as F-IVM's were. Each query has
a database of its own. Queries are the official texts with the validation parameters (DBToaster and F-IVM use others for Q1 and
Q18). Timed is ``db.apply``, session included, from an
Arrow batch in memory to the views being current, nothing read in between. Making the batches, translating the query, and a
warm-up (some rows inserted and deleted again) are not timed. ``strict`` keeps the tables with their primary keys and checks
every row; ``trusted`` keeps none (``retain=False``), as DBToaster does.

Batch 1 is measured on the last 2,000 rows of the stream, after the rest was loaded. Phase ``changes`` deletes and updates a
fifth of the rows, in batches of one table. Of a stream of inserts under a second the fastest of three runs counts: what others
do on the machine can double such a time, and nothing makes it shorter. ``ratio_to_duckdb`` is DuckDB's time for insert and
recomputation of a batch over ours, ``ratio_to_spark`` Spark's time for one recomputation over ours for one batch: above 1, we
are faster. Both are measured with mixed transactions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.console import Console

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import tpch_baselines as baselines
from benchmarks.answers import duckdb_answer, first_difference
from benchmarks.spark_session import spark_session
from benchmarks.steps import AnyStep
from benchmarks.timing import SHORT, Timed, feed, state_bytes
from benchmarks.tpch_anchors import comparison
from benchmarks.tpch_engine import maintained
from benchmarks.tpch_profile import profile
from benchmarks.tpch_stream import (
    ONE_TABLE,
    SETTINGS,
    change_steps,
    insert_steps,
    insert_stream,
    mixed_steps,
    split_tail,
    tables_read,
)
from everview.cli.bench_results import Figure, report
from tests.corpus.data import Query, queries, tpch_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import everview as ev

BATCHES = (1_000, 10_000, 1)
MODES = ("strict", "trusted")
SINGLES = 2_000
PROFILED = 20
PRELOAD = 10_000
"""The batch in which all but the last rows are loaded before single rows are timed."""
COMPARED = 1_000
"""The batch at which baselines are run, and at which deletes and updates are."""
TABLE_WIDTH = 200
QUICK_SINGLE = ("q01", "q03", "q06", "q15", "q18")
"""The queries of which a quick run times single rows too."""


class Plan:
    """What a run covers."""

    def __init__(self, *, quick: bool) -> None:
        self.scale = 0.01 if quick else 0.1
        self.names = tuple(q.name for q in queries("tpch"))
        self.batches: tuple[int, ...] = (1_000, 1) if quick else BATCHES
        self.modes: tuple[str, ...] = ("strict",) if quick else MODES
        self.settings: tuple[str, ...] = SETTINGS
        self.singles = 300 if quick else SINGLES
        self.single_names: tuple[str, ...] = QUICK_SINGLE if quick else self.names
        self.with_spark = not quick
        self.runs = 1 if quick else 3


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints the comparison at the end; wrong answers are printed at once and marked in the results."""
    yield from measure(Plan(quick=quick))


def measure(plan: Plan) -> Iterator[Figure]:
    """The results of a plan."""
    tables = tpch_tables(plan.scale)
    results: list[Figure] = []
    with spark_session() as spark, baselines.spark_tables(spark, tables if plan.with_spark else {}) as cached:
        for query in queries("tpch"):
            if query.name in plan.names:
                own = {name: tables[name].combine_chunks() for name in tables_read(query.sql)}
                for result in _Case(spark, cached, query, own, plan).results():
                    results.append(result)
                    yield result
    Console(width=max(Console().width, TABLE_WIDTH)).print(comparison(results))


class _Case:
    """One query over its tables."""

    def __init__(
        self, spark: SparkSession, cached: SparkSession, query: Query, tables: dict[str, pa.Table], plan: Plan
    ) -> None:
        self.spark = spark
        self.cached = cached
        self.query = query
        self.tables = tables
        self.plan = plan

    def results(self) -> Iterator[Figure]:
        for batch in self.plan.batches:
            for mode in self.plan.modes:
                if batch > 1:
                    for setting in self.plan.settings:
                        yield from self._stream(batch, mode, setting)
                elif self.query.name in self.plan.single_names:
                    yield from self._single_rows(mode)

    def _stream(self, batch: int, mode: str, setting: str) -> Iterator[Figure]:
        """All inserts, and where that is asked for, the deletes and updates or the baselines."""
        steps = insert_stream(self.tables, batch, setting)
        is_compared = batch == COMPARED and mode == "strict"
        with maintained(self.spark, self.query, self.tables, mode) as (db, view):
            timed = feed(db, steps)
            answer, state = self._check(view, self.tables, mode), state_bytes(view)
            changes = list(self._changes(db, view, batch)) if is_compared and setting == ONE_TABLE else []
        timed, answer = self._fastest(steps, mode, timed, answer)
        params = {"batch": batch, "mode": mode, "transactions": setting, "phase": "inserts", "answer": answer}
        total = {**params, **_size(timed)}
        yield self._result("tuples_per_second", timed.rate, "1/s", total)
        yield self._result("seconds", float(timed.seconds.sum()), "s", total)
        yield self._result("state_bytes", state, "B", params)
        yield from changes
        if is_compared and setting == self.plan.settings[0]:
            yield from self._ratios(timed, steps, params)

    def _fastest(self, steps: Sequence[AnyStep], mode: str, timed: Timed, answer: str) -> tuple[Timed, str]:
        """The fastest of a short stream's runs, of which there has been one; a wrong answer of any is the answer."""
        for _ in range(1, self.plan.runs):
            if answer != "right" or timed.seconds.sum() >= SHORT:
                break
            with maintained(self.spark, self.query, self.tables, mode) as (db, view):
                again = feed(db, steps)
                answer = self._check(view, self.tables, mode)
            timed = max(timed, again, key=lambda t: t.rate)
        return timed, answer

    def _changes(self, db: ev.Database, view: ev.View, batch: int) -> Iterator[Figure]:
        changed = change_steps(self.tables, batch)
        timed = feed(db, changed.steps)
        answer = self._check(view, changed.tables, "strict")
        params = {"batch": batch, "mode": "strict", "transactions": ONE_TABLE, "phase": "changes", "answer": answer}
        yield self._result("tuples_per_second", timed.rate, "1/s", {**params, **_size(timed)})

    def _ratios(self, timed: Timed, steps: Sequence[AnyStep], params: Mapping[str, Any]) -> Iterator[Figure]:
        duck = baselines.duckdb_seconds_per_batch(self.query.sql, self.tables, steps)
        sampled = {**params, "baseline_ms": round(duck * 1e3, 2), "sampled_batches": min(baselines.SAMPLES, len(steps))}
        yield self._result("ratio_to_duckdb", duck / timed.mean, "x", sampled)
        if self.plan.with_spark:
            spark = baselines.spark_seconds(self.cached, self.query.sql)
            recomputed = {**params, "baseline_ms": round(spark * 1e3, 1), "passes": baselines.SPARK_PASSES}
            yield self._result("ratio_to_spark", spark / timed.mean, "x", recomputed)

    def _single_rows(self, mode: str) -> Iterator[Figure]:
        """Transactions of one row over loaded tables, then some of a thousand under the profiler, and some of one."""
        size = COMPARED if self.plan.scale >= 0.1 else COMPARED // 10
        before, profiled = split_tail(self.tables, PROFILED * size)
        before, tail = split_tail(before, 2 * self.plan.singles)
        steps = mixed_steps(tail)
        with maintained(self.spark, self.query, self.tables, mode) as (db, view):
            feed(db, insert_steps(before, PRELOAD))
            timed = feed(db, steps[: self.plan.singles])
            one = profile(db, steps[self.plan.singles :])
            many = profile(db, insert_steps(profiled, size))
            answer = self._check(view, self.tables, mode)
            params = {"batch": 1, "mode": mode, "phase": "inserts", "answer": answer}
            percentiles = {f"cpu_p{p}": round(float(np.percentile(timed.worked, p)), 6) for p in (50, 99)}
            yield self._result("tuples_per_second", timed.rate, "1/s", {**params, **_size(timed)})
            yield self._result("latency_p50", timed.percentile(50), "s", {**params, **percentiles})
            yield self._result("latency_p99", timed.percentile(99), "s", {**params, **percentiles})
            for name, found, share in ((1, one, 1.0), (size, many, timed.mean / many.seconds)):
                profiled_params = {**params, "batch": name, "phase": "profile", **found.params()}
                # What a row costs alone is what a batch costs whatever its size: the interpreter and the calls.
                yield self._result("seconds", found.seconds, "s", {**profiled_params, "python_share": round(share, 2)})

    def _check(self, view: ev.View, tables: Mapping[str, pa.Table], mode: str) -> str:
        """Compares with DuckDB, and where that differs with Spark, which has the last word."""
        ours = view.rows()
        if first_difference(ours, duckdb_answer(self.query.sql, tables)) is None:
            return "right"
        theirs = baselines.spark_answer(self.spark, self.query.sql, tables)
        difference = first_difference(ours, theirs)
        if difference is None:
            return "right"
        Console(stderr=True).print(f"[bold red]WRONG ANSWER[/] {self.query.name}, {mode}: {difference}")
        return "WRONG"

    def _result(self, metric: str, value: float, unit: str, params: Mapping[str, Any]) -> Figure:
        return Figure(self.query.name, metric, value, unit, {**params, "scale": self.plan.scale})


def _size(timed: Timed) -> dict[str, Any]:
    """How much was measured; processor time well below the wall's says that others used the machine."""
    return {"tuples": timed.rows, "batches": len(timed.seconds), "cpu_seconds": round(float(timed.worked.sum()), 3)}


def main() -> int:
    """A part of the suite, chosen on the command line; ends with 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(description="A part of the TPC-H suite.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--queries", nargs="+", choices=[q.name for q in queries("tpch")], metavar="q01")
    parser.add_argument("--batches", nargs="+", type=int)
    parser.add_argument("--modes", nargs="+", choices=MODES)
    parser.add_argument("--transactions", nargs="+", choices=SETTINGS, help="what a transaction holds, by default both")
    parser.add_argument("--scale", type=float)
    parser.add_argument("--no-spark", action="store_true", help="leave Spark's recomputation out")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    plan = Plan(quick=given.quick)
    plan.names = tuple(given.queries or plan.names)
    plan.batches = tuple(given.batches or plan.batches)
    plan.modes = tuple(given.modes or plan.modes)
    plan.settings = tuple(given.transactions or plan.settings)
    plan.scale = given.scale or plan.scale
    plan.with_spark = plan.with_spark and not given.no_spark
    results = []
    for result in measure(plan):
        print(f"{result.case} {result.metric} {result.value:,.4g} {result.unit} {dict(result.params)}", flush=True)
        results.append(result)
    if given.json:
        given.json.write_text(json.dumps(report("tpch", results), indent=2) + "\n", encoding="utf-8")
    return 1 if any(r.params["answer"] == "WRONG" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
