"""How one-row updates and the enumeration delay grow with the data, by the class of the query (F-IVM, section 7).

    everview bench classes [--quick] [--plot classes.svg]

Five queries (`benchmarks/classes_data.py`) over 1,000 to 1,000,000 rows, maintained by ``auto``, by ``factorized`` with the
result kept factorized, and by ``first_order``. What is timed, and what is not: `benchmarks/classes_measure.py`.
``latency_p50`` and ``latency_p99`` are seconds of one-row transactions by table, or of the delay by row; ``exponent`` is the
slope of the medians over the number of rows, both in logarithms: 0 is constant, 0.5 the square root; ``ratio_to_smallest`` is
the median at the largest size over that at the smallest. All are told by the clock on the wall and in processor time; on a
machine that others use, the second is the one to read. ``--plot`` draws the times over the sizes.
A variant whose load exhausts its budget is not tried at larger sizes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.classes_data import CLASSES, QueryClass
from benchmarks.classes_measure import FULL, QUICK, Point, Sizes, exponent, measure_at
from benchmarks.spark_session import spark_session
from benchmarks.trial import Trial, skip, warm_up
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLOCKS = ("wall", "processor")
VARIANTS = (("auto", "auto"), ("factorized", "factorized"), ("first_order", "auto"))
"""Strategies with the representations of the result."""


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints times and exponents by class at the end."""
    with spark_session() as spark:
        yield from measure(spark, QUICK if quick else FULL)


def measure(spark: SparkSession, sizes: Sizes, classes: Sequence[QueryClass] = CLASSES) -> Iterator[Figure]:
    """The results of all classes and variants."""
    table = _empty_table(sizes)
    for chosen in classes:
        for strategy, representation in VARIANTS:
            results = list(_grow(spark, chosen, strategy, representation, sizes))
            yield from results
            _add_rows(table, chosen, strategy, results, sizes)
    Console(width=max(Console().width, 160)).print(table)


def _grow(
    spark: SparkSession, chosen: QueryClass, strategy: str, representation: str, sizes: Sizes
) -> Iterator[Figure]:
    """One variant over growing data, then its exponents."""
    medians: dict[tuple[str, str], list[float]] = {}
    answers: list[str] = []
    for rows in sizes.rows:
        trial = Trial(
            chosen.name,
            chosen.sql,
            chosen.tables(rows),
            chosen.keys,
            strategy=strategy,
            representation=representation,
            params={"rows": rows},
        )
        try:
            if rows == sizes.rows[0]:
                warm_up(spark, trial, trial.tables)
            point = measure_at(spark, chosen, trial, sizes)
        except (ev.UnsupportedOperation, ev.UnsupportedQuery) as error:
            skip(trial, error.message)
            break
        if isinstance(point, str):
            skip(trial, point)
            break
        if point.problem is not None:
            Console(stderr=True).print(f"[bold red]WRONG ANSWER[/] {escape(trial.label)}: {escape(point.problem)}")
        answers.append("right" if point.problem is None else "WRONG")
        for result in _results(trial, point, answers[-1]):
            if result.metric == "latency_p50":
                medians.setdefault((result.params["what"], result.params["clock"]), []).append(result.value)
            yield result
    answer = "WRONG" if "WRONG" in answers else "right"
    for (what, clock), seconds in medians.items():
        if len(seconds) > 1:
            told = sizes.rows[: len(seconds)]
            expected = chosen.delay if what == "delay" else chosen.update
            options = {"strategy": strategy, "representation": representation, "what": what, "answer": answer}
            params = {**options, "from_rows": told[0], "to_rows": told[-1], "clock": clock}
            yield Figure(chosen.name, "exponent", exponent(told, seconds), "", {**params, "expected": expected})
            yield Figure(chosen.name, "ratio_to_smallest", seconds[-1] / seconds[0], "x", params)


def _results(trial: Trial, point: Point, answer: str) -> Iterator[Figure]:
    params = {"strategy": trial.strategy, "representation": trial.representation, "mode": trial.mode, **trial.params}
    params["answer"] = answer
    for what, timed in point.times.items():
        for clock, seconds in zip(CLOCKS, (timed.seconds, timed.worked), strict=True):
            told = {**params, "what": what, "samples": len(seconds), "clock": clock}
            yield Figure(trial.case, "latency_p50", float(np.percentile(seconds, 50)), "s", told)
            yield Figure(trial.case, "latency_p99", float(np.percentile(seconds, 99)), "s", told)
    yield Figure(trial.case, "state_bytes", point.state, "B", params)


def _empty_table(sizes: Sizes) -> Table:
    table = Table(title="Medians in µs by rows, and the exponents by which they grow", title_justify="left")
    for heading in ("class", "strategy", "what"):
        table.add_column(heading)
    growth = ("exponent", "by cpu", "theory", "last/first", "by cpu", "answer")
    for heading in (*(f"{rows:,}" for rows in sizes.rows), *growth):
        table.add_column(heading, justify="right")
    return table


def _add_rows(table: Table, chosen: QueryClass, strategy: str, results: Sequence[Figure], sizes: Sizes) -> None:
    """A line for each kind of time; a variant that was skipped has one that says so."""
    kinds = dict.fromkeys(r.params["what"] for r in results if r.metric == "latency_p50")
    if not kinds:
        table.add_row(chosen.name, strategy, "skipped")
    for what in kinds:
        own = [r for r in results if r.params.get("what") == what]
        by_wall = [r for r in own if r.metric == "latency_p50" and r.params["clock"] == CLOCKS[0]]
        at = {r.params["rows"]: f"{r.value * 1e6:,.1f}" for r in by_wall}
        slopes, ratios = (_by_clock(own, metric) for metric in ("exponent", "ratio_to_smallest"))
        theory = chosen.delay if what == "delay" else chosen.update
        wrong = any(r.params.get("answer") == "WRONG" for r in own)
        cells = [at.get(rows, "") for rows in sizes.rows]
        table.add_row(chosen.name, strategy, what, *cells, *slopes, theory, *ratios, "WRONG" if wrong else "right")


def _by_clock(results: Sequence[Figure], metric: str) -> list[str]:
    """A metric by the wall and in processor time; empty where it is not told."""
    told = {r.params["clock"]: f"{r.value:.2f}" for r in results if r.metric == metric}
    return [told.get(clock, "") for clock in CLOCKS]
