"""Order-book queries, row by row: the time of one update as the book grows, and the exponent that it grows with.

    everview bench finance [--quick]
    python benchmarks/finance.py --queries vwap vwap_whales --strategies auto depth_1 --sizes 1000 100000     # a part of it
    python benchmarks/finance.py --queries vwap mst --strategies auto depth_1 --ticks 1000                   # finer prices

The six finance queries of DBToaster and the paper's examples 6.1 to 6.4, each over a synthetic book (prices around a middle,
volumes of some hundreds, ten brokers, as many bids as asks) of 1,000 to 1,000,000 orders. Prices are whole numbers, some ten
thousand different ones; with ``--ticks n`` each of them is cut into n, as in books of currencies or coins, so that with 1,000
nearly every order has a price of its own. The constants in queries that are prices grow with them. ``vwap_double`` is VWAP over
volumes that are DOUBLE. An update is one row: an order goes, another comes. Timed is ``db.apply`` until the view is current,
for each strategy; ``exponent`` is the b of time ≈ a · orders^b, of the median update in processor time.

A strategy whose update takes longer than its budget at some size is not tried at larger ones, and neither is one whose view
would take longer than two minutes to create, as it has grown so far (with the square of the book, where only one size is
known). Then a book three times as large as the last one is tried instead, if that would not take so long.
``ratio_to_depth_1`` says how many times an update under ``auto`` is faster than with classical deltas, at 100,000 orders or the
most that a run has; where depth 1 was given up before, its time there counts, which is less.

``…_whales`` are VWAP, MST and PSP under ``auto`` where each update is an order as large as the whole book, at one end of its
prices, that comes or goes: a large part of the rows turns each time. Then the day of the order-book file is replayed row by row
under ``auto``. At the smallest size, and after the file, answers are compared with DuckDB's. ``--quick`` leaves out examples
6.1 and 6.2.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.answers import duckdb_answer, first_difference
from benchmarks.classes_measure import exponent
from benchmarks.spark_session import spark_session
from benchmarks.steps import Step
from benchmarks.timing import Budget, Timed, feed, state_bytes
from everview.cli.bench_results import Figure
from tests.corpus.data import BOOK_SCHEMA, finance_stream, queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINANCE = ("vwap", "mst", "psp", "axf", "bsp", "bsv")
EXAMPLES = ("example_6_1", "example_6_2", "example_6_3", "example_6_4")
STRATEGIES: dict[str, dict[str, str | int]] = {
    "auto": {"strategy": "auto"},
    "recursive": {"strategy": "recursive"},
    "depth_2": {"strategy": "recursive", "depth": 2},
    "depth_1": {"strategy": "recursive", "depth": 1},
    "first_order": {"strategy": "first_order"},
    "recompute": {"strategy": "recompute"},
}
COMPARED = 100_000
"""Orders at which ``auto`` is compared with depth 1."""
SEED = 11
PRICE = "1000"
"""A difference of prices, as it stands in AXF."""
WHALES = "_whales"
"""The name of a query ends so where each update turns a large part of the rows."""
WHALED = tuple(name + WHALES for name in ("vwap", "mst", "psp"))


class Sizes(NamedTuple):
    """What a run measures: books, updates at each, and when a strategy stops to grow."""

    books: tuple[int, ...]
    updates: int
    budget: Budget
    slowest: float
    """Seconds of an update beyond which larger books are not tried."""
    creation: float
    """Seconds of creating a view beyond which a book is not tried."""
    file: str
    ticks: int = 1
    """Prices between two whole numbers."""


FULL = Sizes((1_000, 10_000, 100_000, 1_000_000), 60, Budget(seconds=10), 0.3, 120, "standard")
QUICK = Sizes((1_000, 4_000), 12, Budget(seconds=0.3), 0.004, 2, "tiny")


def book(orders: int, first: int = 0, ticks: int = 1) -> pa.Table:
    """Orders with ascending numbers, prices around a middle, and everything else random."""
    rng = np.random.default_rng((SEED, first))
    numbers = np.arange(first, first + orders)
    columns = {
        "t": numbers,
        "id": numbers,
        "broker_id": rng.integers(0, 10, orders),
        "volume": rng.integers(1, 50, orders) * 10,
        "price": (ticks * (10_000 + 2_000 * rng.normal(size=orders))).astype(np.int64),
    }
    return pa.table(columns).cast(BOOK_SCHEMA)


def pairs(rows: int, first: int = 0) -> pa.Table:
    """The relation R(A, B) of the examples: about ten rows for each A."""
    rng = np.random.default_rng((SEED, first))
    return pa.table({"a": rng.integers(0, max(1, rows // 10), rows), "b": rng.integers(1, 100, rows)})


def run(*, quick: bool) -> Iterator[Figure]:
    """Yields each figure when it has been measured; the table goes to stderr."""
    names = (*FINANCE, "vwap_double", *EXAMPLES[2 if quick else 0 :], *WHALED)
    sizes = QUICK if quick else FULL
    yield from measure(names, tuple(STRATEGIES), sizes)
    with spark_session() as spark:
        for name in FINANCE:
            yield from _replay(spark, name, _wanted()[name], sizes)


def _wanted() -> dict[str, str]:
    wanted = {q.name: q.sql for folder in ("multilevel", "queryplan") for q in queries(folder)}
    wanted["vwap_double"] = wanted["vwap"]
    return wanted


def measure(names: Sequence[str], strategies: Sequence[str], sizes: Sizes) -> Iterator[Figure]:
    """Queries under strategies, those whose name ends with ``WHALES`` under ``auto`` alone."""
    wanted = _wanted()
    console = Console(stderr=True)
    table = Table(
        title="One changed order: microseconds of processor time by orders in each book", title_justify="left"
    )
    for heading in ("query", "strategy", *(f"{n:,}" for n in sizes.books), "exponent"):
        table.add_column(heading, justify="left" if heading in ("query", "strategy") else "right")
    with spark_session() as spark:
        for name in names:
            grown: dict[str, list[Figure]] = {}
            for strategy in ("auto",) if name in WHALED else strategies:
                grown[strategy] = []
                for figure in _grow(spark, name, wanted[name.removesuffix(WHALES)], strategy, sizes):
                    grown[strategy].append(figure)
                    yield figure
                _add_row(table, name, strategy, grown[strategy], sizes)
            if {"auto", "depth_1"} <= grown.keys():
                compared = _compared(name, grown)
                yield compared
                orders = f"{compared.params['orders']:,}"
                table.add_row(name, f"auto is {compared.value:,.0f} times as fast as depth_1 at {orders} orders")
    console.print(table)


def _compared(name: str, grown: dict[str, list[Figure]]) -> Figure:
    """How many times an update under ``auto`` is faster than with depth 1."""
    (orders, ours), (there, theirs) = (
        max((f.params["orders"], f.value) for f in grown[strategy] if f.metric == "seconds" and _counts(f))
        for strategy in ("auto", "depth_1")
    )
    params = {"orders": orders, "depth_1_measured_at": there}
    return Figure(name, "ratio_to_depth_1", theirs / ours, "x", params)


def _counts(figure: Figure) -> bool:
    return bool(figure.params["orders"] <= COMPARED)


def _tables(sql: str, rows: int, ticks: int) -> dict[str, pa.Table]:
    if " r " in f"{sql} ".replace("\n", " "):
        return {"r": pairs(rows)}
    return {n: book(rows, i * 10**7, ticks) for i, n in enumerate(("bids", "asks")) if n in sql}


def _grow(spark: SparkSession, name: str, sql: str, strategy: str, sizes: Sizes) -> Iterator[Figure]:
    measured: list[tuple[int, float]] = []
    created: list[tuple[int, float]] = []
    sql = sql.replace(PRICE, str(int(PRICE) * sizes.ticks))
    waiting = list(sizes.books)
    while waiting:
        orders = waiting.pop(0)
        if created and _predicted(created, orders) > sizes.creation:
            orders, waiting = 3 * created[-1][0], []
            if _predicted(created, orders) > sizes.creation:
                break
        tables = _tables(sql, orders, sizes.ticks)
        if name == "vwap_double":
            tables = {table: _with_doubles(rows) for table, rows in tables.items()}
        db = ev.connect(spark=spark)
        for table, rows in tables.items():
            db.create_table(table, rows.schema)
            db.apply({table: rows})
        started = time.process_time()
        view = db.create_view("v", sql, **STRATEGIES[strategy])  # type: ignore[arg-type]  # strategy and depth
        created.append((orders, time.process_time() - started))
        steps = _updates(tables, sizes, whales=name.endswith(WHALES))
        feed(db, steps[:4])
        timed = feed(db, steps[4:], sizes.budget)
        median = float(np.median(timed.worked))
        measured.append((orders, median))
        params = {"strategy": strategy, "orders": orders, "updates": len(timed.seconds), "ticks": sizes.ticks}
        if orders == sizes.books[0]:
            params["answer"] = _answer(db, name, sql, tables)
        yield Figure(name, "seconds", median, "s", {**params, "clock": "processor"})
        yield Figure(name, "latency_p50", timed.percentile(50), "s", params)
        yield Figure(name, "latency_p99", timed.percentile(99), "s", params)
        yield Figure(name, "state_bytes", float(state_bytes(view)), "bytes", params)
        db.close()
        if median > sizes.slowest:
            break
    if len(measured) > 1:
        books, seconds = zip(*measured, strict=True)
        yield Figure(name, "exponent", exponent(books, seconds), "", {"strategy": strategy, "up_to": books[-1]})


def _predicted(created: Sequence[tuple[int, float]], orders: int) -> float:
    """Seconds that creating a view will take, by what it took for smaller books.

    >>> round(_predicted([(1_000, 1.0)], 3_000)), round(_predicted([(1_000, 1.0), (3_000, 3.0)], 9_000))
    (9, 9)
    """
    books, seconds = zip(*created, strict=True)
    power = exponent(books, seconds) if len(created) > 1 else 2.0
    return float(seconds[-1] * (orders / books[-1]) ** power)


def _with_doubles(rows: pa.Table) -> pa.Table:
    """A book whose volumes are DOUBLE, with fractions that no double is exactly."""
    at = rows.schema.get_field_index("volume")
    volumes = pc.add(pc.cast(rows["volume"], pa.float64()), 0.1)
    return rows.set_column(at, "volume", volumes)


def _whale(rows: pa.Table, number: int) -> pa.Table:
    """An order as large as a whole book, above all of its prices or below them."""
    prices = pc.min_max(rows["price"])
    price = prices["max"].as_py() + 1 if number % 4 < 2 else prices["min"].as_py() - 1
    order = {"t": number, "id": number, "broker_id": 0, "volume": pc.sum(rows["volume"]).as_py(), "price": price}
    return pa.Table.from_pylist([order], rows.schema)


def _updates(tables: dict[str, pa.Table], sizes: Sizes, *, whales: bool = False) -> list[Step]:
    """One row after another, of each table in turn: one of those there goes, another comes, then they change places again."""
    rng = np.random.default_rng(SEED)
    steps: list[Step] = []
    for number in range(sizes.updates):
        name = sorted(tables)[number % len(tables)]
        gone = tables[name].slice(int(rng.integers(0, tables[name].num_rows)), 1)
        if whales:
            new = _whale(tables[name], number)
        else:
            new = pairs(1, 10**8 + number) if name == "r" else book(1, 10**8 + number, sizes.ticks)
            new = _with_doubles(new) if new.schema != gone.schema else new
        for row, weight in ((new, 1), (new, -1)) if whales else ((gone, -1), (new, 1), (new, -1), (gone, 1)):
            changed = row.append_column("_weight", pa.array([weight], pa.int64()))
            steps += [Step(name, batch) for batch in changed.combine_chunks().to_batches()]
    return steps


def _answer(db: ev.Database, name: str, sql: str, tables: dict[str, pa.Table]) -> str:
    """Whether the view is DuckDB's answer over what the tables hold now."""
    held = {table: db.table(table).to_arrow() for table in tables}
    try:
        theirs = duckdb_answer(sql, held)
    except (
        duckdb.OutOfRangeException
    ):  # BSV multiplies decimals, of which DuckDB's products have fewer digits than Spark's
        return "not checked: DuckDB overflows"
    difference = first_difference(db.view("v").rows(), theirs)
    if difference is not None:
        Console(stderr=True).print(f"[bold red]WRONG ANSWER[/] {name}: {difference}")
    return "right" if difference is None else "WRONG"


def _replay(spark: SparkSession, name: str, sql: str, sizes: Sizes) -> Iterator[Figure]:
    """The events of the file, each a transaction."""
    db = ev.connect(spark=spark)
    for table in ("bids", "asks"):
        db.create_table(table, BOOK_SCHEMA)
    db.create_view("v", sql)
    steps = []
    for event in finance_stream(sizes.file):
        row = {c: [v] for c, v in zip(BOOK_SCHEMA.names, event.row, strict=True)}
        batch = pa.table(row, BOOK_SCHEMA).append_column("_weight", pa.array([event.weight], pa.int64()))
        steps.append(Step(event.table, batch.combine_chunks().to_batches()[0]))
    timed: Timed = feed(db, steps, Budget(seconds=4 * sizes.budget.seconds))
    params = {"file": sizes.file, "events": timed.rows}
    if timed.stopped is None:
        params["answer"] = _answer(db, name, sql, {"bids": book(0), "asks": book(0)})
    yield Figure(name, "tuples_per_second", timed.rate, "1/s", params)
    db.close()


def _add_row(table: Table, name: str, strategy: str, figures: Sequence[Figure], sizes: Sizes) -> None:
    times = {f.params["orders"]: f.value for f in figures if f.metric == "seconds"}
    cells = [f"{times[n] * 1e6:,.0f}" if n in times else "-" for n in sizes.books]
    found = [f"{f.value:.2f}" for f in figures if f.metric == "exponent"]
    table.add_row(name, strategy, *cells, *(found or ["-"]))


def main() -> int:
    """The suite, or a part of it, each figure printed when it has been measured; ends with 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(description="One update of an order book, as the book grows")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--queries", nargs="+", choices=(*FINANCE, "vwap_double", *EXAMPLES, *WHALED))
    parser.add_argument("--strategies", nargs="+", choices=tuple(STRATEGIES))
    parser.add_argument("--sizes", nargs="+", type=int, metavar="ORDERS")
    parser.add_argument("--ticks", type=int, default=1, help="prices between two whole numbers (default: 1)")
    given = parser.parse_args()
    if given.queries or given.strategies or given.sizes or given.ticks > 1:
        sizes = QUICK if given.quick else FULL
        sizes = sizes._replace(books=tuple(sorted(given.sizes or sizes.books)), ticks=given.ticks)
        names = given.queries or (*FINANCE, "vwap_double", *EXAMPLES, *WHALED)
        figures = measure(names, given.strategies or tuple(STRATEGIES), sizes)
    else:
        figures = run(quick=given.quick)
    is_right = True
    for figure in figures:
        print(f"{figure.case} {figure.metric} {figure.value:,.4g} {figure.unit} {dict(figure.params)}", flush=True)
        is_right &= figure.params.get("answer") != "WRONG"
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
