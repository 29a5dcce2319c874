"""What a Python user could do instead: other engines on the same streams, their answers compared.

    everview bench rivals [--quick]

Four queries over TPC-H: *sums*, a sum by supplier over lineitem; queries 3, 5 and 17, without their ORDER BY. Transactions of
1,000 rows, mixed over all tables of the query, insert everything; then transactions of 1,000 rows delete a tenth of it.
Static tables (nation, region) are loaded first. After every transaction the answer is to be current, so

- *everview* applies it, with strict tables (primary keys, deletes checked) and with tables that keep no rows (*trusted*);
- *DuckDB* and *SQLite*, in memory, change their tables and run the query again, the answer fetched; SQLite has the primary
  keys, and an index on each column that a query joins by;
- *Spark* runs the query again over cached tables, after the last transaction only: adding rows to its tables is not timed.

Recomputation is timed at evenly spaced transactions (``sampled_batches``), the changes between them are not, and the rate is
the rows of a transaction over the mean time. Every engine's last answer is compared with DuckDB's over the same rows in Arrow.
Metrics: ``tuples_per_second``, ``ratio_to_<engine>`` (strict everview over it).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import tpch_baselines as baselines
from benchmarks.answers import Rows, duckdb_answer, first_difference
from benchmarks.rival_engines import ENGINES, Measured, Stream, recompute
from benchmarks.spark_session import spark_session
from benchmarks.steps import mixed
from benchmarks.timing import feed
from benchmarks.tpch_engine import maintained
from benchmarks.tpch_stream import SEED, is_static, tables_read
from everview.cli.bench_results import Figure
from tests.corpus.data import Query, tpch_tables

BATCH = 1_000
DELETED = 0.1
MODES = ("strict", "trusted")

# Dates are compared with text, which every engine reads as a date; SQLite has them as text.
QUERIES = {
    "sums": "SELECT l_suppkey, SUM(l_quantity) AS quantity, COUNT(*) AS n FROM lineitem GROUP BY l_suppkey",
    "q3": """
        SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < '1995-03-15' AND l_shipdate > '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority""",
    "q5": """
        SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
          AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
          AND o_orderdate >= '1994-01-01' AND o_orderdate < '1995-01-01'
        GROUP BY n_name""",
    "q17": """
        SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
        FROM lineitem, part
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
          AND l_quantity < (SELECT 0.2 * AVG(l2.l_quantity) FROM lineitem l2 WHERE l2.l_partkey = p_partkey)""",
}


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints a table at the end."""
    scale = 0.01 if quick else 0.1
    tables = tpch_tables(scale)
    listing = Table(title=f"thousands of rows a second, TPC-H at SF {scale}", title_justify="left")
    for heading in ("query", "engine", "rate", "everview strict is", "answer"):
        listing.add_column(heading, justify="left" if heading in ("query", "engine", "answer") else "right")
    with spark_session() as spark:
        for name, sql in QUERIES.items():
            stream = stream_of({t: tables[t].combine_chunks() for t in tables_read(sql)})
            expected = duckdb_answer(sql, stream.after)
            ours: dict[str, float] = {}
            for mode in MODES:
                rate, answer = _everview(spark, Query(name, sql, Path(__file__)), stream, mode, expected)
                ours[mode] = rate
                listing.add_row(name, f"everview, {mode}", f"{rate / 1e3:,.0f}", "", answer)
                params = {"engine": "everview", "mode": mode, "answer": answer, "batch": BATCH, "scale": scale}
                yield Figure(name, "tuples_per_second", rate, "1/s", params)
            for engine, measured in _others(spark, sql, stream, quick=quick):
                rate, answer = measured.rows / measured.seconds, _verdict(measured.answer, expected)
                ratio = ours["strict"] / rate
                listing.add_row(name, engine, f"{rate / 1e3:,.1f}", f"{ratio:,.1f}x", answer)
                params = {"engine": engine, "answer": answer, "batch": BATCH, "scale": scale, **measured.told}
                yield Figure(name, "tuples_per_second", rate, "1/s", params)
                yield Figure(name, f"ratio_to_{engine}", ratio, "x", params)
    Console().print(listing)


def stream_of(tables: Mapping[str, pa.Table]) -> Stream:
    """All rows of the tables that change, mixed; then a tenth of them goes, at random."""
    moving = {name: table for name, table in tables.items() if not is_static(name)}
    rng = np.random.default_rng(SEED)
    gone, after = {}, dict(tables)
    for name, table in moving.items():
        is_gone = np.zeros(len(table), dtype=np.bool_)
        is_gone[rng.permutation(len(table))[: round(len(table) * DELETED)]] = True
        deleted = table.filter(pa.array(is_gone))
        gone[name] = deleted.append_column("_weight", pa.array(np.full(len(deleted), -1, dtype=np.int64)))
        after[name] = table.filter(pa.array(~is_gone))
    static = {name: table for name, table in tables.items() if is_static(name)}
    schemas = {name: table.schema for name, table in tables.items()}
    return Stream(static, schemas, [*mixed(moving, BATCH), *mixed(gone, BATCH)], after)


def _everview(spark: Any, query: Query, stream: Stream, mode: str, expected: Rows) -> tuple[float, str]:
    with maintained(spark, query, stream.after, mode) as (db, view):
        timed = feed(db, stream.steps)
        return timed.rate, _verdict(view.rows(), expected)


def _others(spark: Any, sql: str, stream: Stream, *, quick: bool) -> Iterator[tuple[str, Measured]]:
    for name, engine in ENGINES.items():
        yield name, recompute(engine(), sql, stream, quick)
    with baselines.spark_tables(spark, stream.after) as cached:
        seconds = baselines.spark_seconds(cached, sql)
        answer = [tuple(row) for row in cached.sql(sql).collect()]
    yield "spark", Measured(BATCH, seconds, answer, {"what": "recomputation after the last transaction"})


def _verdict(answer: Rows, expected: Rows) -> str:
    wrong = first_difference(answer, expected)
    return "right" if wrong is None else f"WRONG: {wrong}"
