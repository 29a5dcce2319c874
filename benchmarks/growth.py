"""Does a transaction cost the same when the tables have grown? Three million rows, two views, batches of 100,000.

    everview bench growth [--quick]        or        python benchmarks/growth.py [--quick]

A fact table with a primary key takes rows by ``db.apply``; over it stand a sum by 1,000 groups and a filtered join with a table
of 10,000 rows with COUNT, SUM, MIN and MAX by category. Timed is ``db.apply`` from an Arrow batch in memory to both views
current; making the batches, translating and a warm-up are not. ``ratio_to_first_third`` is the mean time of a batch in the
last third of the stream over that in the first: 1 is no growth; what is copied whole at every batch would show as 5. Both views
are checked against DuckDB at the end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.answers import duckdb_answer, first_difference
from benchmarks.spark_session import spark_session
from benchmarks.steps import Step
from benchmarks.timing import Seconds, Timed, feed, state_bytes
from everview.cli.bench_results import Figure

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


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints the time of each batch at the end."""
    rows, batch = (QUICK_ROWS, QUICK_BATCH) if quick else (ROWS, BATCH)
    given = facts(rows)
    steps = [Step("facts", part) for part in given.combine_chunks().to_batches(max_chunksize=batch)]
    with spark_session() as spark, ev.connect(spark=spark) as db:
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
    results = list(run(quick=parser.parse_args().quick))
    return 1 if any(r.params["answer"] == "WRONG" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
