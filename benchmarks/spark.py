"""The Spark backend beside recomputation: TPC-H 3, 5, 10, 12, 14, 18 refreshed after changes of lineitem and orders.

    everview bench spark [--quick] [--scale 10]
    python benchmarks/spark.py --lookups executors                                    # nothing of the tables at the driver
    python benchmarks/spark.py --scale 0.1 --queries q03 q18 --shares 0.001 0.01      # a part of it
    python benchmarks/spark.py --scale 0.1 --queries q03 --strategies factorized first_order
    python benchmarks/spark.py --scale 0.1 --shares 0.1 --refreshes incremental full auto
    python benchmarks/spark.py --lookups executors --scales 1 10 --shares 0.001       # the same change as the data grows

The tables are loaded in bulk with their primary keys, for each of the ``--refreshes`` into a database of its own, so that none
has the compactions of another; then each query is a view alone in the database. A change deletes and inserts, half and half,
0.01 %, 0.1 %, 1 % and 10 % of the orders with their lines, of which a query gets those of the tables that it reads (14 reads no
orders). ``order`` says where they are: ``recent`` at the end of the tables, ``scattered`` all over.

Timed, mode ``incremental``: ``db.apply`` in one transaction, from Arrow tables in memory to the view being current: keys
checked, the tables' changes and the view's written as Parquet and committed to the Delta logs, compaction where it was due.
The value is the median of the refreshes and of their undoing, after a first round (``warm``). The ``first`` refresh of a
database is a cold one: it searches large segments by tasks (``first_jobs``), and the second look-up in each makes a copy of
the columns searched. With ``lookups`` *driver* it is the driver's, ``copied_bytes`` on disk, and all later ones search it
without a job; with *executors* the copies are on the executors' disks, tasks search them, and nothing of a table comes to the
driver but what a change meets. Mode ``recompute``: Spark runs the query
over plain Parquet files with the same content, answer fetched, the files in the operating system's cache, not in Spark's.
Writing them is not timed: recomputation gets the tables' changes for nothing. Mode ``fill`` is ``create_view`` over the
loaded tables, mode ``load`` the load.

``jobs`` are the Spark jobs of a refresh and ``jobs_for`` what each was for; ``bytes_read`` were read by Spark's tasks,
``driver_bytes`` by this process, and ``looked_up_bytes`` by look-ups: of copies the memory pages that they touched.
``ratio_to_spark`` is the time of recomputation over that of the refresh: above 1, we are faster. ``ratio_to_better`` is the
time of ``refresh="auto"`` over that of the better of ``incremental`` and ``full``, where all three were measured. ``crossing``
is the share of changed rows at which both take as long, by interpolation. With ``--scales`` the ``exponent`` is that of the
seconds and bytes of a change of as many rows at each scale. Every answer is compared with DuckDB's, and where that differs
with Spark's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.classes_measure import exponent
from benchmarks.spark_changes import ORDERS, Workload, prepare
from benchmarks.spark_counters import Counters, counting
from benchmarks.spark_measure import LOOKUPS, QUERIES, Case, Filled, Outcome, Plan, crossing, load
from benchmarks.spark_session import spark_session
from everview.cli.bench_results import Figure, report
from everview.session.view_options import REFRESHES
from tests.corpus.data import queries, tpch_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = "6g"
"""The memory of Spark's process; this one needs about 4 GB at scale 1 besides."""
QUICK = Plan(0.01, ("q03", "q12"), (0.001, 0.01), ("recent",), rounds=2, recomputations=2, seconds=10.0)
TABLE_WIDTH = 200


def run(*, quick: bool, scale: float | None = None, lookup_bytes: int | None = None) -> Iterator[Figure]:
    """Measures, and prints the comparison at the end; wrong answers are printed at once and marked in the results."""
    plan = QUICK if quick else Plan()
    plan = plan if scale is None else replace(plan, scale=scale)
    plan = plan if lookup_bytes is None else replace(plan, lookup_bytes=lookup_bytes)
    with spark_session({"driver.memory": MEMORY}) as spark:
        yield from measure(spark, plan)


def measure(spark: SparkSession, plan: Plan) -> Iterator[Figure]:
    """The results of a plan."""
    with tempfile.TemporaryDirectory(prefix="spark-bench-") as scratch, counting(spark) as counters:
        folder = Path(scratch)
        workload = prepare(tpch_files(plan.scale), folder, plan.shares, plan.orders)
        for lookups in plan.lookups:
            yield from _measure_lookups(spark, plan, lookups, folder, workload, counters)


def measure_growth(spark: SparkSession, plan: Plan, scales: Sequence[float]) -> Iterator[Figure]:
    """The results at several scales for changes of as many rows each, and how what they take grows: value ≈ a · scale^b."""
    points: dict[tuple[object, ...], dict[str, list[tuple[float, float]]]] = {}
    for scale in scales:
        shares = tuple(share * scales[0] / scale for share in plan.shares)
        for figure in measure(spark, replace(plan, scale=scale, shares=shares)):
            yield figure
            told = figure.params
            if figure.metric == "seconds" and told["mode"] == "incremental":
                size = round(told["share"] * scale / scales[0], 9)
                where = (told["lookups"], told["strategy"], told["option"], told["order"])
                own = points.setdefault((figure.case, *where, size), {})
                read = told["bytes_read"] + told["looked_up_bytes"]
                for what, value in (("seconds", figure.value), ("bytes", float(read))):
                    own.setdefault(what, []).append((scale, value))
    for (case, lookups, strategy, option, order, size), measured in points.items():
        told = {"lookups": lookups, "strategy": strategy, "option": option, "order": order, "share_of_smallest": size}
        for what, found in measured.items():
            (first, least), (last, most) = found[0], found[-1]
            ratio = {"of": what, **told, "scales": f"{first:g} to {last:g}", "ratio": most / least if least else None}
            if all(value for _, value in found):
                yield Figure(str(case), "exponent", exponent(*zip(*found, strict=True)), "", ratio)


def _measure_lookups(
    spark: SparkSession, plan: Plan, lookups: str, folder: Path, workload: Workload, counters: Counters
) -> Iterator[Figure]:
    """The results where rows are looked up by the driver, or by executors."""
    outcomes: list[Outcome] = []
    by_driver = lookups == "driver"
    options = {"local_rows": plan.local_rows, "lookup_bytes": plan.lookup_bytes if by_driver else 0}
    chosen = [query for query in queries("tpch") if query.name in plan.queries]
    common = {"scale": plan.scale, "lookups": lookups, **options}
    for refresh in plan.refreshes:
        place = folder / f"db-{lookups}-{refresh}"
        with ev.connect(place, backend="spark", spark=spark, **options) as db:
            seconds = load(db, workload, chosen, None if by_driver else spark)
            rows = workload.row_count(list(db.tables))
            yield Figure("load", "seconds", seconds, "s", {**common, "mode": "load", "rows": rows})
            for query, strategy in product(chosen, plan.strategies):
                for found in Case(db, place, spark, counters, query, plan, strategy, refresh).outcomes(workload):
                    if isinstance(found, Outcome):
                        outcomes.append(found)
                    yield from _results(found, common)
                for order in plan.orders:
                    wanted = (query.name, strategy, refresh, order)
                    yield from _ratios([o for o in outcomes if o.series == wanted], common)
    yield from _choices(outcomes, common)
    console = Console(width=max(Console().width, TABLE_WIDTH))
    console.print(comparison(outcomes, plan, lookups))
    console.print(explanation(outcomes))


def _results(found: Filled | Outcome, common: dict[str, Any]) -> Iterator[Figure]:
    if isinstance(found, Filled):
        told = {**common, "mode": "fill", "strategy": found.strategy, "option": found.option}
        told |= {"rows": found.rows, "answer": found.answer}
        yield Figure(found.query, "seconds", found.seconds, "s", told)
        yield Figure(found.query, "state_bytes", found.state_bytes, "B", told)
        return
    told = {**common, **_told(found)}
    refresh = {**told, "mode": "incremental", "refresh": found.how, **found.refresh.params}
    refresh["copied_bytes"] = found.copied_bytes
    yield Figure(found.query, "seconds", found.refresh.median, "s", refresh)
    recomputed = {**told, "mode": "recompute", **found.recomputed.params}
    yield Figure(found.query, "seconds", found.recomputed.median, "s", recomputed)


def _ratios(outcomes: list[Outcome], common: dict[str, Any]) -> Iterator[Figure]:
    where = _crossing(outcomes)
    for found in outcomes:
        yield Figure(found.query, "ratio_to_spark", found.ratio, "x", {**common, **_told(found), "crossing": where})


def _choices(outcomes: list[Outcome], common: dict[str, Any]) -> Iterator[Figure]:
    """For what ``auto`` has refreshed: its time over that of the better of the other two options, if they were measured."""
    seconds = {(*o.series, o.change.share): o.refresh.median for o in outcomes}
    for found in outcomes:
        query, strategy, option, order = found.series
        others = [seconds.get((query, strategy, o, order, found.change.share)) for o in ("incremental", "full")]
        known = [s for s in others if s is not None]
        if option == "auto" and len(known) == len(others):
            told = {**common, **_told(found), "refresh": found.how}
            yield Figure(found.query, "ratio_to_better", found.refresh.median / min(known), "x", told)


def _told(found: Outcome) -> dict[str, Any]:
    change = found.change
    return {
        "strategy": found.strategy,
        "option": found.option,
        "order": change.order,
        "share": change.share,
        "rows": found.rows,
        "answer": found.answer,
    }


def _crossing(outcomes: list[Outcome]) -> str:
    """Where a query's refresh becomes slower than recomputation, in words where that is beyond what was measured."""
    found = crossing([(o.change.share, o.ratio) for o in outcomes])
    if found is not None:
        return f"{found:.2%}"
    first, last = outcomes[0], outcomes[-1]
    return f"above {last.change.share:.2%}" if last.ratio >= 1 else f"below {first.change.share:.2%}"


def comparison(outcomes: list[Outcome], plan: Plan, lookups: str = "driver") -> Table:
    """A row for each query and share."""
    at_driver = lookups == "driver" and plan.lookup_bytes
    copies = "with copies at the driver" if at_driver else "with copies at the executors"
    title = f"Refresh beside Spark's recomputation, scale {plan.scale:g}, {copies}"
    table = Table(title=title, title_justify="left")
    headings = (
        "query",
        "strategy",
        "option",
        "refresh",
        "order",
        "share",
        "rows",
        "first s",
        "refresh s",
        "spark s",
        "ratio",
        "jobs",
        "MB read",
        "MB looked up",
        "MB spark",
        "MB copies",
        "crossing",
    )
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number <= headings.index("order") else "right", no_wrap=True)
    for found in outcomes:
        read = found.refresh.counted.bytes_read + (found.refresh.counted.driver_bytes or 0)
        own = [o for o in outcomes if o.series == found.series]
        table.add_row(
            found.query,
            found.strategy,
            found.option,
            found.how,
            found.change.order,
            f"{found.change.share:.2%}",
            f"{found.rows:,}",
            f"{found.refresh.first:.2f}",
            f"{found.refresh.median:.2f}",
            f"{found.recomputed.median:.2f}",
            f"{found.ratio:.2f}",
            str(found.refresh.counted.jobs),
            f"{read / 1e6:.1f}",
            f"{found.refresh.looked_up_bytes / 1e6:.1f}",
            f"{found.recomputed.counted.bytes_read / 1e6:.1f}",
            f"{found.copied_bytes / 1e6:.0f}",
            _crossing(own) if found is own[0] else "",
        )
    return table


def explanation(outcomes: list[Outcome]) -> Table:
    """What the jobs of the refreshes were for: a row for changes of a query that have the same."""
    table = Table(
        title="The Spark jobs of a refresh, by the relation and the number of columns read", title_justify="left"
    )
    for heading in ("query", "strategy", "option", "changes", "jobs"):
        table.add_column(heading)
    changes: dict[tuple[str, str, str, str], list[str]] = {}
    for found in outcomes:
        named = f"{found.change.order} {found.change.share:.2%}"
        key = (found.query, found.strategy, found.option, found.refresh.counted.explained)
        changes.setdefault(key, []).append(named)
    for (query, strategy, option, explained), own in changes.items():
        table.add_row(query, strategy, option, ", ".join(own), explained)
    return table


def main() -> int:
    """A part of the suite, chosen on the command line; ends with 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(description="A part of the Spark suite.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--scale", type=float)
    parser.add_argument("--scales", nargs="+", type=float, help="ascending: changes of as many rows at each of these")
    parser.add_argument("--queries", nargs="+", choices=QUERIES)
    parser.add_argument("--shares", nargs="+", type=float, help="of rows changed, ascending")
    parser.add_argument("--orders", nargs="+", choices=ORDERS)
    parser.add_argument("--strategies", nargs="+", choices=("auto", "factorized", "first_order", "recompute"))
    parser.add_argument("--lookups", nargs="+", choices=LOOKUPS, help="who looks rows up, by default both in turn")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--recomputations", type=int)
    parser.add_argument(
        "--seconds", type=float, help="how long the rounds of a change may take: more on a busy machine"
    )
    parser.add_argument(
        "--refreshes", nargs="+", choices=REFRESHES, help="how views are refreshed, by default incremental"
    )
    parser.add_argument("--lookup-bytes", type=int, help="disk for the driver's copies; 0 for none")
    parser.add_argument("--rows-at-driver", type=int, help="of a segment; larger ones are looked up in copies")
    parser.add_argument("--memory", default=MEMORY, help=f"of Spark's process, by default {MEMORY}")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    single = ("scale", "rounds", "recomputations", "seconds", "lookup_bytes", "rows_at_driver")
    chosen = {name: getattr(given, name) for name in single if getattr(given, name) is not None}
    several = ("queries", "shares", "orders", "strategies", "lookups", "refreshes")
    chosen |= {name: tuple(getattr(given, name)) for name in several if getattr(given, name)}
    plan = replace(QUICK if given.quick else Plan(), **chosen)
    results = []
    with spark_session({"driver.memory": given.memory}) as spark:
        for result in measure_growth(spark, plan, given.scales) if given.scales else measure(spark, plan):
            print(f"{result.case} {result.metric} {result.value:,.4g} {result.unit} {dict(result.params)}", flush=True)
            results.append(result)
    if given.json:
        given.json.write_text(json.dumps(report("spark", results), indent=2) + "\n", encoding="utf-8")
    return 1 if any(r.params.get("answer") == "WRONG" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
