"""Recursive deltas by depth, on the queries of multilevel-ivm: the shape of its figures 3, 4 and 8.

    everview bench multilevel [--quick]

Every query of the paper's appendix under ``strategy="recursive"`` with depth 0 (recomputed), 1 (classical), 2, and full, and
under ``auto``. TPC-H and SSB queries take inserts of all tables in random order, row by row; the finance queries take the
order-book stream, deletes included. The first half of a stream is loaded before the view is made. Timed is ``db.apply`` of one
row at a time after that, in processor time, as long as the budget lasts: a *refresh* is one such row. ``views`` counts what
is stored besides the result, ``bytes_per_tuple`` is the state of the view over the rows that its tables hold. Answers are
compared with DuckDB's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.answers import duckdb_answer, first_difference
from benchmarks.multilevel_data import Extent, Stream, stream_of, weighted_row
from benchmarks.spark_session import spark_session
from benchmarks.timing import state_bytes
from benchmarks.trial import count_views
from everview.cli.bench_results import Figure
from tests.corpus.data import queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPTHS: tuple[int | None, ...] = (0, 1, 2, None)
BASELINE = "depth_1"


FULL = Extent(scale=0.1, events=50_000, refreshes=5_000, seconds=5.0)
QUICK = Extent(scale=0.01, events=800, refreshes=200, seconds=0.15)


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures every query, and prints refreshes a second by depth at the end."""
    extent = QUICK if quick else FULL
    shown = Table(title="Refreshes a second, views and bytes a tuple, by depth of recursion", title_justify="left")
    for heading in ("query", *(_label(d) for d in DEPTHS), "auto"):
        shown.add_column(heading, justify="right")
    with spark_session() as spark:
        for query in queries("multilevel"):
            stream = stream_of(query.sql, extent)
            cells, rates = [], dict[str, float]()
            for depth in (*DEPTHS, "auto"):
                label = depth if isinstance(depth, str) else _label(depth)
                rate, params = _measure(spark, query.sql, stream, depth, extent)
                rates[label] = rate
                params = {"depth": label, **params}
                yield Figure(query.name, "tuples_per_second", rate, "1/s", params)
                yield Figure(query.name, "state_bytes", params["bytes_per_tuple"] * params["held"], "B", params)
                cells.append(f"{rate:,.0f}/s {params['views']}v {params['bytes_per_tuple']:,.0f}B")
            for label in (_label(None), "auto"):
                yield Figure(query.name, f"ratio_to_{BASELINE}", rates[label] / rates[BASELINE], "x", {"depth": label})
            shown.add_row(query.name, *cells)
    Console(width=max(Console().width, 170)).print(shown)


def _label(depth: int | None) -> str:
    return "full" if depth is None else f"depth_{depth}"


def _measure(
    spark: SparkSession, sql: str, stream: Stream, depth: int | str | None, extent: Extent
) -> tuple[float, dict[str, Any]]:
    """Refreshes a second, and what they depend on."""
    first = len(stream.changes) // 2
    with ev.connect(spark=spark) as db:
        for name, schema in stream.schemas.items():
            db.create_table(name, schema, primary_key=stream.keys.get(name))
        db.apply({name: rows for name, rows in stream.after(first).items() if len(rows)})
        if isinstance(depth, str):
            view = db.create_view("v", sql, strategy=depth)
        else:
            view = db.create_view("v", sql, strategy="recursive", depth=depth)
        single = [
            (c.table, weighted_row(c, stream.schemas[c.table]))
            for c in stream.changes[first : first + extent.refreshes]
        ]
        warm = min(20, len(single) // 4)
        for table, row in single[:warm]:
            db.apply({table: row})
        done, started = 0, time.process_time()
        for table, row in single[warm:]:
            db.apply({table: row})
            done += 1
            if time.process_time() - started > extent.seconds:
                break
        elapsed = time.process_time() - started
        held = stream.after(first + warm + done)
        rows = sum(len(table) for table in held.values())
        told = {
            "views": _views(view),
            "bytes_per_tuple": state_bytes(view) / max(rows, 1),
            "held": rows,
            "refreshes": done,
            "answer": _compared(view, sql, held),
        }
        return done / elapsed, told


def _compared(view: ev.View, sql: str, held: Mapping[str, pa.Table]) -> str:
    try:
        expected = duckdb_answer(sql.rstrip().rstrip(";"), held)
    except duckdb.OutOfRangeException:
        return "not compared: DuckDB's decimals overflow"  # BSV; the law tests have it
    wrong = first_difference(view.rows(), expected)
    return "right" if wrong is None else f"WRONG: {wrong}"


def _views(view: ev.View) -> int:
    """The stored views of the hierarchies besides their results, and what operators keep."""
    return max(count_views(view.stats()["bytes"]) - 1, 0)
