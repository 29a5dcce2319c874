"""Counting triangles under updates: heavy and light parts against view trees and first-order maintenance (IVM^ε).

    everview bench triangle [--quick] [--plot triangle.svg]

Three relations, one count, ``strategy="skew"`` with ε = 1/2 (with single and with refined partitions) beside ``factorized`` and
``first_order`` in one run, over graphs of growing size (`benchmarks/triangle_data.py`). Timed is ``db.apply`` of one edge, an
Arrow batch of one row, deleted and inserted again. ``latency_p50`` is the median, for edges between hubs, edges of the dense
part, and random ones of power-law graphs. ``rows_touched`` is how many rows an update reads or makes on its way, on average: a
transaction has a fixed cost of some hundred microseconds, under which √N disappears. ``exponent`` is the slope over N of the
dearest kind of updates, in processor time and in rows touched, and of the bytes of state. Loading is not timed there; a
strategy whose load exhausts its budget is not tried at larger sizes, and says so.

A part of the suite alone, as ``python benchmarks/triangle.py --part growth --graph "worst case" --strategy skew``: parts are
``growth``, ``epsilon``, ``scratch`` and ``one-table``; ``--largest`` leaves larger graphs out, ``--plot`` draws what there is.

Then: time and rows touched of the dearest updates against ε, and space over the worst case (figures 1 and 7 of the paper); all
edges inserted from nothing, whose total time is compared with a static count (``ratio_to_static``); batches of 1,000 edges
against single ones (``ratio_to_single``); one table that occurs three times against three tables. These times are the
processor's. Every count is compared with the static one.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.classes_measure import exponent
from benchmarks.spark_session import spark_session
from benchmarks.steps import Step, round_robin
from benchmarks.timing import Timed, feed, state_bytes
from benchmarks.triangle_data import (
    COLUMNS,
    GRAPHS,
    HUBS,
    ONE_TABLE,
    PARTS,
    SQL,
    Graph,
    first_of,
    known_count,
    static_count,
    tables,
)
from benchmarks.triangle_sizes import FULL, QUICK, TriangleSizes
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOAD_BATCH = 10_000
WARMING = 6
VARIANTS: dict[str, dict[str, Any]] = {
    "skew": {"strategy": "skew"},
    "skew, refined": {"strategy": "skew", "partitions": "refined"},
    "factorized": {"strategy": "factorized"},
    "first_order": {"strategy": "first_order"},
}
GROWING = ("worst case", "power law")
PARTS_OF_SUITE = ("growth", "epsilon", "scratch", "one-table")


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints the exponents at the end."""
    with spark_session() as spark:
        yield from measure(spark, QUICK if quick else FULL)


def measure(
    spark: SparkSession,
    sizes: TriangleSizes,
    parts: Sequence[str] = PARTS_OF_SUITE,
    graphs: Sequence[str] = GROWING,
    strategies: Sequence[str] = tuple(VARIANTS),
) -> Iterator[Figure]:
    """All figures of the suite, or of some parts of it."""
    table = Table(title="Triangles under updates of one edge: slopes over N", title_justify="left")
    for heading in ("graph", "strategy", "edges up to", "time", "rows", "space", "µs at last", "rows at last"):
        table.add_column(heading, justify="left" if heading in ("graph", "strategy") else "right")
    for name in graphs if "growth" in parts else ():
        for variant in strategies:
            yield from _grow(spark, name, variant, sizes, table)
    if "epsilon" in parts:
        yield from _against_epsilon(spark, sizes)
        yield from _bounds(sizes)
    if "scratch" in parts:
        yield from _from_scratch(spark, sizes)
    if "one-table" in parts:
        yield from _one_table(spark, sizes)
    if table.row_count:
        Console(width=max(Console().width, 120)).print(table)


@contextmanager
def counted(spark: SparkSession, **options: Any) -> Iterator[tuple[ev.Database, ev.View]]:
    """An empty database with the view."""
    with ev.connect(spark=spark) as db:
        for name, (first, second) in COLUMNS.items():
            db.create_table(name, f"{first} bigint, {second} bigint")
        yield db, db.create_view("triangles", SQL, **options)
    gc.collect()


def _grow(spark: SparkSession, graph_name: str, variant: str, sizes: TriangleSizes, table: Table) -> Iterator[Figure]:
    """One strategy over growing graphs, then its exponents."""
    with counted(spark, **VARIANTS[variant]) as (db, _):  # compiles the kernels
        feed(db, _edge_steps("r", np.array([[1, 2]] * 4)))
    done: list[tuple[int, float, float, float]] = []
    answer = "right"
    for rows in sizes.rows:
        graph = GRAPHS[graph_name](rows)
        edges = sum(len(e) for e in graph.values())
        with counted(spark, **VARIANTS[variant]) as (db, view):
            loaded = feed(db, _load(graph), sizes.load)
            if loaded.stopped is not None:
                _say(f"{graph_name}, {variant}: loading {edges:,} edges stopped {loaded.stopped}")
                break
            params = {"strategy": variant, "rows": edges, "answer": _answer(view, graph_name, rows)}
            dearest = most = 0.0
            for what, steps in _updates(graph_name, graph, sizes.updates).items():
                timed, touched = _measured(db, view, steps, sizes)
                dearest, most = max(dearest, float(np.median(timed.worked))), max(most, touched)
                told = {**params, "what": f"update, {what}"}
                yield Figure(graph_name, "latency_p50", timed.percentile(50), "s", told)
                yield Figure(graph_name, "latency_p99", timed.percentile(99), "s", told)
                yield Figure(graph_name, "rows_touched", touched, "rows", told)
            yield Figure(graph_name, "state_bytes", state_bytes(view), "B", {**params, "what": "space"})
            done.append((edges, dearest, most, state_bytes(view)))
            answer = "WRONG" if "WRONG" in (answer, params["answer"]) else "right"
    if len(done) > 1:
        edges_done, seconds, rows_touched, held = zip(*done, strict=True)
        slopes = {
            "time": exponent(edges_done, seconds),
            "rows touched": exponent(edges_done, rows_touched),
            "space": exponent(edges_done, held),
        }
        for what, slope in slopes.items():
            told = {"strategy": variant, "what": what, "edges": edges_done[-1], "answer": answer}
            yield Figure(graph_name, "exponent", slope, "", told)
        shown = (f"{slope:.2f}" for slope in slopes.values())
        table.add_row(
            graph_name, variant, f"{edges_done[-1]:,}", *shown, f"{seconds[-1] * 1e6:,.0f}", f"{rows_touched[-1]:,.0f}"
        )


def _load(graph: Graph) -> list[Step]:
    """All edges, table after table: those of the first two meet nothing, so that a load takes a third of the time."""
    return [step for name, table in tables(graph).items() for step in round_robin({name: table}, LOAD_BATCH)]


def _measured(db: ev.Database, view: ev.View, steps: list[Step], sizes: TriangleSizes) -> tuple[Timed, float]:
    """The times of updates, and how many rows each has touched on average."""
    feed(db, steps[:WARMING])
    before = view.stats()["work"]
    timed = feed(db, steps[WARMING:], sizes.timed)
    return timed, (view.stats()["work"] - before) / timed.rows


def _updates(graph_name: str, graph: Graph, count: int) -> dict[str, list[Step]]:
    """Edges that go and come again, by kind: all tables in turn."""
    rng = np.random.default_rng(5)
    kinds: dict[str, dict[str, Any]] = {"random": {n: e[rng.integers(0, len(e), count)] for n, e in graph.items()}}
    if graph_name == "worst case":
        hubs = {name: np.array([HUBS[name]] * count) for name in graph}
        dense = {n: e[-1 - rng.integers(0, len(e) // 4, count)] for n, e in graph.items()}
        kinds = {"between hubs": hubs, "dense": dense}
    return {what: _turns({n: e[: count // 6] for n, e in chosen.items()}) for what, chosen in kinds.items()}


def _turns(edges: Mapping[str, Any]) -> list[Step]:
    """The edges of the tables in turn, each deleted and inserted again."""
    count = len(next(iter(edges.values())))
    return [s for i in range(count) for name in edges for s in _edge_steps(name, edges[name][i : i + 1])]


def _edge_steps(name: str, edges: Any) -> list[Step]:
    """The delete of each edge and its insert; an edge that is not there is inserted first, and stays."""
    steps = []
    first, second = COLUMNS[name]
    for edge in edges.tolist():
        for weight in (-1, 1) if len(edges) == 1 else (1, -1):
            batch = pa.record_batch({first: [edge[0]], second: [edge[1]], "_weight": [weight]})
            steps.append(Step(name, batch))
    return steps


def _against_epsilon(spark: SparkSession, sizes: TriangleSizes) -> Iterator[Figure]:
    """Time and space for growing ε: figures 1 and 7. Hubs are dearest near 0 and 1, values about the threshold in between."""
    rows = sizes.epsilon_rows
    values = np.array([first_of(k, rows) for k in PARTS])
    firsts = [{name: np.array([[value, value]] * 4) for name in COLUMNS} for value in values]
    chosen = {"every degree": firsts, "worst case": [{name: np.array([hub] * 4) for name, hub in HUBS.items()}]}
    for partitions, epsilon in product(("single", "refined"), sizes.epsilons):
        measured: list[tuple[Timed, float]] = []
        params: dict[str, Any] = {"strategy": f"skew, {partitions}", "epsilon": epsilon}
        for name, edges in chosen.items():
            with counted(spark, strategy="skew", epsilon=epsilon, partitions=partitions) as (db, view):
                loaded = feed(db, _load(GRAPHS[name](rows)), sizes.load)
                if loaded.stopped is not None:
                    _say(f"ε = {epsilon}, {partitions}: loading stopped {loaded.stopped}")
                    continue
                params["answer"] = _answer(view, name, rows)
                measured += [_measured(db, view, _turns(own), sizes) for own in edges]
                if name == "worst case":
                    yield Figure("against ε", "state_bytes", state_bytes(view), "B", {**params, "what": "ε, space"})
        if measured:
            dearest = max(float(np.median(timed.worked)) for timed, _ in measured)
            told = {**params, "what": "ε, time", "clock": "processor"}
            yield Figure("against ε", "latency_p50", dearest, "s", told)
            most = max(touched for _, touched in measured)
            yield Figure("against ε", "rows_touched", most, "rows", {**params, "what": "ε, rows touched"})


def _bounds(sizes: TriangleSizes) -> Iterator[Figure]:
    """What theorem 3 promises for growing ε, with the constant 1."""
    for epsilon in sizes.epsilons:
        params = {"strategy": "N^max(ε, 1-ε)", "epsilon": epsilon, "what": "ε, rows touched"}
        yield Figure("against ε", "rows_touched", sizes.epsilon_rows ** max(epsilon, 1 - epsilon), "rows", params)


def _from_scratch(spark: SparkSession, sizes: TriangleSizes) -> Iterator[Figure]:
    """All edges of a power-law graph inserted from nothing, beside a static count; batches beside single edges."""
    totals: list[float] = []
    edges = []
    for rows in sizes.scratch:
        graph = GRAPHS["power law"](rows)
        started = time.process_time()
        wanted = static_count(graph)
        static = time.process_time() - started
        with counted(spark, strategy="skew") as (db, view):
            timed = feed(db, round_robin(tables(graph), 1_000), sizes.load)
            if timed.stopped is not None:
                _say(f"from scratch: stopped {timed.stopped}, {timed.rows:,} of {rows:,} edges in")
                break
            answer = "right" if view.rows() == [(wanted,)] else "WRONG"
            params = {"strategy": "skew", "rows": timed.rows, "batch": 1_000, "answer": answer, "clock": "processor"}
            totals.append(float(timed.worked.sum()))
            edges.append(timed.rows)
            yield Figure("from scratch", "seconds", totals[-1], "s", {**params, "what": "total"})
            yield Figure("from scratch", "ratio_to_static", totals[-1] / static, "x", params)
            some = tables({name: edges_of[:1_000] for name, edges_of in graph.items()})
            rates = []
            for size in (1, 1_000):
                inserts = round_robin(some, size)
                feed(db, [replace(s, batch=_taken_back(s)) for s in inserts])
                rates.append(feed(db, inserts).worked_rate)
            single, batched = rates
            yield Figure("from scratch", "ratio_to_single", batched / single, "x", params)
    if len(totals) > 1:
        yield Figure("from scratch", "exponent", exponent(edges, totals), "", {"what": "total", "edges": edges[-1]})


def _one_table(spark: SparkSession, sizes: TriangleSizes) -> Iterator[Figure]:
    """The same edges in one table that occurs three times, and in three tables: loaded, changed, and held."""
    edges = GRAPHS["power law"](sizes.scratch[-1])["r"]
    wanted = static_count(dict.fromkeys(COLUMNS, edges))
    for what, own in (("three tables", COLUMNS), ("one table", {"e": ("a", "b")})):
        with ev.connect(spark=spark) as db:
            for name, (first, second) in own.items():
                db.create_table(name, f"{first} bigint, {second} bigint")
            view = db.create_view("triangles", SQL if len(own) > 1 else ONE_TABLE, strategy="skew")
            held = {n: pa.table(dict(zip(ends, edges.T, strict=True))) for n, ends in own.items()}
            loaded = feed(db, round_robin(held, 1_000))
            answer = "right" if view.rows() == [(wanted,)] else "WRONG"
            params = {"strategy": "skew", "what": what, "edges": len(edges), "answer": answer}
            timed = {**params, "clock": "processor"}
            yield Figure("one table", "seconds", float(loaded.worked.sum()), "s", timed)
            yield Figure("one table", "state_bytes", state_bytes(view), "B", params)
            some = {n: rows[:100] for n, rows in held.items()}
            changed = feed(db, [replace(s, batch=_taken_back(s)) for s in round_robin(some, 1)])
            single = float(np.median(changed.worked)) * len(own)  # an edge changes in each table
            yield Figure("one table", "latency_p50", single, "s", timed)


def _taken_back(step: Step) -> pa.RecordBatch:
    return step.batch.append_column("_weight", _minus(step.rows))


def _minus(rows: int) -> pa.Array:
    return pa.array(np.full(rows, -1))


def _answer(view: ev.View, graph_name: str, rows: int) -> str:
    wanted = known_count(graph_name, rows)
    if view.rows() == [(wanted,)]:
        return "right"
    _say(f"WRONG ANSWER: {view.rows()} instead of {wanted}")
    return "WRONG"


def _say(text: str) -> None:
    Console(stderr=True).print(f"[yellow]{text}[/]")


def answers(results: Sequence[Figure]) -> Mapping[str, int]:
    """How often each answer was told."""
    told = [str(r.params["answer"]) for r in results if "answer" in r.params]
    return {answer: told.count(answer) for answer in sorted(set(told))}


def main() -> int:
    """Runs the suite, or a part of it, and prints each figure when it is there."""
    parser = argparse.ArgumentParser(description="Triangles under updates: the whole suite, or a part of it.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", action="append", choices=PARTS_OF_SUITE)
    parser.add_argument("--graph", action="append", choices=GROWING)
    parser.add_argument("--strategy", action="append", choices=tuple(VARIANTS))
    parser.add_argument("--largest", type=float, default=float("inf"), help="the most edges of a graph")
    parser.add_argument("--plot", type=Path, help="draw the figures")
    given = parser.parse_args()
    sizes = QUICK if given.quick else FULL
    sizes = replace(
        sizes,
        rows=tuple(n for n in sizes.rows if n <= given.largest),
        scratch=tuple(n for n in sizes.scratch if n <= given.largest),
        epsilon_rows=int(min(sizes.epsilon_rows, given.largest)),
    )
    found = []
    with spark_session() as spark:
        chosen = (given.part or PARTS_OF_SUITE, given.graph or GROWING, given.strategy or tuple(VARIANTS))
        for figure in measure(spark, sizes, *chosen):
            sys.stdout.write(f"{figure.case} {figure.metric} {figure.value:.4g} {figure.unit} {dict(figure.params)}\n")
            sys.stdout.flush()
            found.append(figure)
    if given.plot is not None:
        importlib.import_module("everview.cli.bench_plot").plot("triangle", found, given.plot)
    return 1 if "WRONG" in answers(found) else 0


if __name__ == "__main__":
    sys.exit(main())
