"""``everview demo``: three views over a small shop, a stream of changes, the answers, and Spark's word on them."""

from __future__ import annotations

import os
import time

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import everview as ev
from everview.cli.connection import backend_option
from everview.cli.demo_data import KEYS, SCHEMAS, DemoBatch, Shop
from everview.cli.output import duration, rows_as_table

VIEWS: dict[str, str] = {
    "revenue_by_segment": """
        SELECT c_mktsegment, COUNT(*) AS lines, SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer
        JOIN orders ON c_custkey = o_custkey
        JOIN lineitem ON o_orderkey = l_orderkey
        GROUP BY c_mktsegment""",
    "top_customers": """
        SELECT c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer
        JOIN orders ON c_custkey = o_custkey
        JOIN lineitem ON o_orderkey = l_orderkey
        GROUP BY c_custkey, c_name
        ORDER BY revenue DESC, c_name
        LIMIT 5""",
    "late_orders": """
        SELECT o_orderpriority, COUNT(*) AS late_orders
        FROM orders
        WHERE EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority""",
}
"""A join with an aggregate, a top-k, and a correlated EXISTS."""

CUSTOMERS, ORDERS = 300, 2_000
ROUNDS, ORDERS_A_BATCH = 3, 20


@click.command()
@backend_option
def demo(backend: str) -> None:
    """The tour: data, views, a stream of changes, and verification."""
    console = Console()
    os.environ.setdefault(
        "SPARK_SUBMIT_OPTS", ""
    )  # Spark's speed is shown: it gets no options that only start it sooner
    shop = Shop(CUSTOMERS, ORDERS)
    with ev.connect(backend=backend) as db:
        _load(db, shop, console)
        _create_views(db, console)
        median = _stream(db, shop, console)
        for name in VIEWS:
            rows = db.view(name).to_arrow()
            console.print()
            console.print(rows_as_table(rows.sort_by([(rows.column_names[-1], "descending")]), title=name))
        _verify(db, median, console)
    if backend == "reference":
        console.print("The reference backend, too, computes every view anew at each change: it is exact, not fast.")


def _load(db: ev.Database, shop: Shop, console: Console) -> None:
    rows = shop.tables()
    for name, schema in SCHEMAS.items():
        db.create_table(name, schema, primary_key=KEYS[name])
    commit = db.apply(rows)
    sizes = ", ".join(f"{name} {len(of_table):,}" for name, of_table in rows.items())
    console.print(f"Loaded {sizes} rows in {duration(commit.seconds)}.")


def _create_views(db: ev.Database, console: Console) -> None:
    with console.status("Starting Spark to read the queries…"):
        for number, (name, query) in enumerate(VIEWS.items()):
            started = time.perf_counter()
            db.create_view(name, query)
            took = duration(time.perf_counter() - started)
            console.print(f"Created view [bold]{name}[/bold] in {took}{'' if number else ', Spark started'}.")


def _stream(db: ev.Database, shop: Shop, console: Console) -> float:
    """Applies the batches, prints what each did, and returns the median time of a refresh."""
    done: list[tuple[DemoBatch, ev.Commit, int]] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Streaming changes", total=3 * ROUNDS)
        for batch in shop.batches(ROUNDS, ORDERS_A_BATCH):
            progress.update(task, description=f"Streaming changes: {batch.title}")
            commit = db.apply(batch.changes)
            done.append((batch, commit, sum(delta.num_rows for delta in commit.changes.values())))
            progress.advance(task)
        progress.update(task, description="Streamed all changes")

    console.print()
    table = Table(title="refreshes, all views together", title_justify="left")
    table.add_column("version", justify="right")
    table.add_column("batch")
    for heading in ("rows in", "rows changed in views", "refresh"):
        table.add_column(heading, justify="right")
    for batch, commit, moved in done:
        table.add_row(str(commit.version), batch.title, str(batch.size), str(moved), duration(commit.seconds))
    console.print(table)
    return sorted(commit.seconds for _, commit, _ in done)[len(done) // 2]


def _verify(db: ev.Database, refresh: float, console: Console) -> None:
    """Compares every view with Spark's answer, twice: the second time is the one shown, when Spark is warm."""
    with console.status("Recomputing with Spark…"):
        db.verify()
        report = db.verify()
    console.print()
    table = Table(title="verified against Spark", title_justify="left")
    table.add_column("view")
    table.add_column("rows", justify="right")
    table.add_column("answer")
    table.add_column("Spark's recomputation", justify="right")
    for view in report.views:
        table.add_row(view.name, str(view.rows), "[green]equal[/green]", duration(view.seconds))
    console.print(table)
    spark = duration(sum(view.seconds for view in report.views))
    console.print(f"A refresh of all views took {duration(refresh)}; to recompute and compare them took Spark {spark}.")
