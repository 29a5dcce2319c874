"""Does a transaction cost the same when the tables have grown? Three million rows, two views, batches of 100,000.

    everview bench growth [--quick]        or        python benchmarks/growth.py [--quick] [--inequalities]

A fact table with a primary key takes rows by ``db.apply``; over it stand a sum by 1,000 groups and a filtered join with a table
of 10,000 rows with COUNT, SUM, MIN and MAX by category. Timed is ``db.apply`` from an Arrow batch in memory to both views
current; making the batches, translating and a warm-up are not. ``ratio_to_first_third`` is the mean time of a batch in the
last third of the stream over that in the first: 1 is no growth; what is copied whole at every batch would show as 5. Both views
are checked against DuckDB at the end.

Then joins on inequalities, over two tables of 1,000 to 100,000 rows: bands, intervals that overlap, EXISTS and NOT EXISTS. A
row has few partners in a join, however large the tables are. One row goes and another comes, in one table after the other;
``exponent`` is the b of time ≈ a · rows^b, of the median change in processor time. Further: the time to create the view over
the tables, and that of a transaction with 4,000 rows of each table. Answers are checked at the smallest size.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.answers import duckdb_answer, first_difference
from benchmarks.classes_measure import exponent
from benchmarks.spark_session import spark_session
from benchmarks.steps import Step
from benchmarks.timing import Seconds, Timed, feed, state_bytes
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, QUICK_ROWS = 3_000_000, 300_000
BATCH, QUICK_BATCH = 100_000, 10_000
GROUPS = 1_000
ITEMS = 10_000
SEED = 7

VIEWS = {
    "sum_by_group": "SELECT grp, SUM(amount) AS total, COUNT(*) AS n FROM facts GROUP BY grp",
    "joined": (
        "SELECT category, COUNT(*) AS n, SUM(amount * price) AS worth, MIN(amount) AS least, MAX(amount) AS most "
        "FROM facts JOIN items ON facts.item = items.item WHERE amount < 9000 GROUP BY category"
    ),
}


INEQUALITIES = {
    "exists": "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a > r.a)",
    "not_exists": "SELECT id FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a > r.a)",
    "not_exists_by_key": "SELECT id FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.a > r.a)",
    "exists_in_band": "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a BETWEEN r.a - 2 AND r.a + 2)",
    "band": "SELECT r.id, s.id AS other FROM r JOIN s ON s.a BETWEEN r.a - 2 AND r.a + 2",
    "band_left": "SELECT r.id, s.id AS other FROM r LEFT JOIN s ON s.a BETWEEN r.a - 2 AND r.a + 2",
    "band_by_key": "SELECT r.id, s.id AS other FROM r JOIN s ON r.k = s.k AND s.a BETWEEN r.a - 50 AND r.a + 50",
    "overlap": "SELECT r.id, s.id AS other FROM r JOIN s ON r.a < s.b AND s.a < r.b",
    "overlap_full": "SELECT r.id, s.id AS other FROM r FULL JOIN s ON r.a < s.b AND s.a < r.b",
}
SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (1_000, 4_000)
CHANGES, QUICK_CHANGES = 60, 12
BOTH = 4_000
"""Rows of each table in a transaction that changes both."""


def intervals(rows: int, seed: int, span: int | None = None) -> pa.Table:
    """Rows with an interval from a to b, spread so that few overlap; a tenth of them is in one group of k or another."""
    rng = np.random.default_rng((SEED, seed))
    a = rng.integers(0, 10 * (span or rows), rows)
    ids = np.arange(rows) + seed * 10**8
    return pa.table({"id": ids, "k": rng.integers(0, 10, rows), "a": a, "b": a + rng.integers(1, 8, rows)})


def facts(rows: int, first: int = 0) -> pa.Table:
    """Rows with ascending keys and random everything else."""
    rng = np.random.default_rng(SEED + first)
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "grp": rng.integers(0, GROUPS, rows),
            "item": rng.integers(0, ITEMS, rows),
            "amount": rng.integers(0, 10_000, rows),
        }
    )


def items() -> pa.Table:
    """The table joined with."""
    numbers = np.arange(ITEMS)
    return pa.table({"item": numbers, "category": numbers % 100, "price": numbers % 37})


def run(*, quick: bool, only_inequalities: bool = False) -> Iterator[Figure]:
    """Measures, and prints tables of the times."""
    with spark_session() as spark:
        if not only_inequalities:
            yield from _batches(spark, quick=quick)
        yield from _inequalities(spark, quick=quick)


def _batches(spark: SparkSession, *, quick: bool) -> Iterator[Figure]:
    rows, batch = (QUICK_ROWS, QUICK_BATCH) if quick else (ROWS, BATCH)
    given = facts(rows)
    steps = [Step("facts", part) for part in given.combine_chunks().to_batches(max_chunksize=batch)]
    with ev.connect(spark=spark) as db:
        db.create_table("facts", given.schema, primary_key="id")
        db.create_table("items", items().schema, primary_key="item")
        db.apply({"items": items()})
        for name, sql in VIEWS.items():
            db.create_view(name, sql)
        _warm_up(db, batch)
        timed = feed(db, steps)
        tables = {"facts": given, "items": items()}
        wrong = [name for name, sql in VIEWS.items() if not _is_right(db, name, sql, tables)]
        answer = "WRONG" if wrong else "right"
        params = {"rows": rows, "batch": batch, "mode": "strict", "answer": answer}
        yield Figure("facts", "tuples_per_second", timed.rate, "1/s", params)
        for number, seconds in enumerate(timed.seconds.tolist()):
            yield Figure("facts", "seconds", seconds, "s", {**params, "batch_number": number})
        yield Figure("facts", "ratio_to_first_third", growth(timed.seconds), "x", {**params, "clock": "wall"})
        yield Figure("facts", "ratio_to_first_third", growth(timed.worked), "x", {**params, "clock": "processor"})
        for name in VIEWS:
            yield Figure(name, "state_bytes", state_bytes(db.view(name)), "B", params)
    Console().print(_table(timed, batch))


def _inequalities(spark: SparkSession, *, quick: bool) -> Iterator[Figure]:
    sizes, changes = (QUICK_SIZES, QUICK_CHANGES) if quick else (SIZES, CHANGES)
    table = Table(title="Joins on inequalities, by rows in each table: processor time", title_justify="left")
    headings = ("query", *(f"one row, {n:,}: µs" for n in sizes), "exponent", f"create, {sizes[-1]:,}: s", "both: s")
    for heading in headings:
        is_name = heading == "query"
        table.add_column(heading, justify="left" if is_name else "right", no_wrap=is_name)
    for name, sql in INEQUALITIES.items():
        figures = [f for n in sizes for f in _joined(spark, name, sql, n, changes, is_checked=n == sizes[0])]
        medians = [f.value for f in figures if f.params["of"] == "one row"]
        grown = exponent(sizes, medians)
        yield from (*figures, Figure(name, "exponent", grown, "", {"up_to": sizes[-1]}))
        _, created, both = (f.value for f in figures[-3:])
        table.add_row(name, *(f"{m * 1e6:,.0f}" for m in medians), f"{grown:.2f}", f"{created:.2f}", f"{both:.2f}")
    Console().print(table)


def _joined(spark: SparkSession, name: str, sql: str, rows: int, changes: int, *, is_checked: bool) -> Iterator[Figure]:
    """One query over tables of one size."""
    db = ev.connect(spark=spark)
    tables = {"r": intervals(rows, 1), "s": intervals(rows, 2)}
    for table, given in tables.items():
        db.create_table(table, given.schema)
        db.apply({table: given})
    start = time.process_time()
    db.create_view("v", sql)
    created = time.process_time() - start
    steps = _changed(tables, rows, changes)
    feed(db, steps[:4])
    timed = feed(db, steps[4:])
    params: dict[str, Any] = {"rows": rows, "clock": "processor"}
    if is_checked:
        held = {table: db.table(table).to_arrow() for table in tables}
        params["answer"] = "right" if _is_right(db, "v", sql, held) else "WRONG"
    yield Figure(name, "seconds", float(np.median(timed.worked)), "s", {**params, "of": "one row"})
    yield Figure(name, "seconds", created, "s", {**params, "of": "creating the view"})
    both = {table: intervals(min(BOTH, rows), seed, rows) for seed, table in enumerate(tables, start=5)}
    start = time.process_time()
    db.apply(both)
    yield Figure(name, "seconds", time.process_time() - start, "s", {**params, "of": "both tables at once"})
    db.close()


def _changed(tables: dict[str, pa.Table], rows: int, changes: int) -> list[Step]:
    """One row after another, of each table in turn: one of those there goes, then another comes."""
    rng = np.random.default_rng(SEED)
    steps: list[Step] = []
    for number in range(changes):
        table = sorted(tables)[number % 2]
        gone = tables[table].slice(int(rng.integers(0, rows)), 1)
        new = intervals(1, 10 + number, rows)
        for row, weight in ((gone, -1), (new, 1), (new, -1), (gone, 1)):
            changed = row.append_column("_weight", pa.array([weight], pa.int64()))
            steps += [Step(table, batch) for batch in changed.combine_chunks().to_batches()]
    return steps


def growth(seconds: Seconds) -> float:
    """The mean time of a batch in the last third over that in the first.

    >>> growth(np.array([1.0, 1.0, 1.5, 1.5, 2.0, 2.0]))
    2.0
    """
    third = max(1, len(seconds) // 3)
    return float(seconds[-third:].mean() / seconds[:third].mean())


def _warm_up(db: ev.Database, rows: int) -> None:
    some = facts(rows, first=ROWS)
    db.apply({"facts": some})
    db.apply({"facts": some.append_column("_weight", pa.array(np.full(rows, -1)))})


def _is_right(db: ev.Database, name: str, sql: str, tables: dict[str, pa.Table]) -> bool:
    difference = first_difference(db.view(name).rows(), duckdb_answer(sql, tables))
    if difference is not None:
        Console(stderr=True).print(f"[bold red]WRONG ANSWER[/] {name}: {difference}")
    return difference is None


def _table(timed: Timed, batch: int) -> Table:
    ratios = f"{growth(timed.seconds):.2f} by the wall, {growth(timed.worked):.2f} in processor time"
    table = Table(title=f"Batches of {batch:,} rows; last third over first third: {ratios}", title_justify="left")
    for heading in ("rows before", "wall ms", "processor ms", ""):
        table.add_column(heading, justify="right" if heading else "left")
    longest = timed.worked.max()
    for number, (wall, worked) in enumerate(zip(timed.seconds.tolist(), timed.worked.tolist(), strict=True)):
        bar = "▇" * max(1, round(40 * worked / longest))
        table.add_row(f"{number * batch:,}", f"{wall * 1e3:.1f}", f"{worked * 1e3:.1f}", bar)
    return table


def main() -> int:
    """The suite; ends with 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(description="Does a transaction cost the same when the tables have grown?")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--inequalities", action="store_true", help="only the joins on inequalities")
    given = parser.parse_args()
    results = list(run(quick=given.quick, only_inequalities=given.inequalities))
    return 1 if any(r.params.get("answer") == "WRONG" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
