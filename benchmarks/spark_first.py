"""The first refresh of a new process, on Spark with nothing at the driver, beside a warm one and beside recomputation.

    python benchmarks/spark_first.py [--scale 0.1] [--queries q03 q05] [--share 0.001]

For each query a process makes a database with a view of it, and ends. Four more follow. Three, one after the other, connect,
apply a change of scattered orders and lines (``first``), take it back (``second``), and go on so; ``warm`` is the median of the
later ones. The first of them leaves compiled kernels and copies to search. The second is told: it applies its change as soon
as it has connected. The third waits for ``--wait`` seconds before (``waited``), as one does that is there before its first
change. The last is the yardstick: plain Spark runs the query over Parquet files, for the first time and again. All have run
one small job before anything is timed: Spark's own start is in none. Rows are looked up by executors. ``driver MB`` is the most
memory that the second process has had, without Spark's JVM, in which the executors are, too.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

# It is run by its path, and runs itself so in new processes.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.spark_changes import CHANGED, prepare, undone
from benchmarks.spark_measure import LOCAL_ROWS, QUERIES
from benchmarks.spark_session import spark_session
from benchmarks.tpch_stream import is_static, tables_read
from tests.corpus.data import TPCH_KEYS, Query, queries, tpch_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 5
"""A change and its undoing, so often."""
HEADINGS = (
    "query",
    "connect",
    "first",
    "second",
    "warm",
    "first/warm",
    "waited",
    "waited/warm",
    "Spark first",
    "Spark warm",
    "first/warm",
    "driver MB",
)
PROFILED = 60
"""Lines of a profile."""


def make(folder: Path, name: str, scale: float) -> None:
    """Loads the tables of a query and makes its view."""
    query = _query(name)
    with spark_session({"driver.memory": "4g"}) as spark, _connected(folder, spark, scale, name) as db:
        for table in tables_read(query.sql):
            rows = spark.read.parquet(_files(folder)[table])
            db.create_table(table, rows, primary_key=TPCH_KEYS[table], static=is_static(table))
        db.create_view(name, query.sql, refresh="incremental")


def refresh(folder: Path, name: str, scale: float, wait: float, profile: Path | None) -> dict[str, Any]:
    """The seconds of connecting and of every refresh of the view, and the memory of this process in kilobytes."""
    tables = tables_read(_query(name).sql)
    there = {n: pq.read_table(folder / f"change-{n}.parquet") for n in CHANGED if n in tables}
    with spark_session({"driver.memory": "4g"}) as spark:
        spark.range(1).collect()
        started = time.perf_counter()
        with _connected(folder, spark, scale, name) as db:
            connected = time.perf_counter() - started
            time.sleep(wait)
            seconds: list[float] = []
            for _ in range(ROUNDS):
                for rows in (there, undone(there)):
                    with _profiled(None if seconds else profile):
                        seconds.append(_timed(partial(db.apply, rows)))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert db.verify()
    return {"connect": connected, "seconds": seconds, "memory": memory}


def recompute(folder: Path, name: str) -> dict[str, Any]:
    """The seconds in which plain Spark runs the query."""
    query = _query(name)
    with spark_session({"driver.memory": "4g"}) as spark:
        spark.range(1).collect()
        for table in tables_read(query.sql):
            spark.read.parquet(_files(folder)[table]).createOrReplaceTempView(table)
        return {"seconds": [_timed(lambda: spark.sql(query.sql).collect()) for _ in range(ROUNDS)]}


def measure(scale: float, names: list[str], share: float, wait: float, profile: Path | None) -> Table:
    """Runs the processes, one after another."""
    table = Table(
        title=f"First refresh of a process, scale {scale:g}, {share:.2%} changed, seconds", title_justify="left"
    )
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    with tempfile.TemporaryDirectory(prefix="spark-first-") as scratch:
        folder = Path(scratch)
        workload = prepare(tpch_files(scale), folder, [share], ["scattered"])
        (folder / "files.json").write_text(json.dumps({n: str(p) for n, p in workload.loaded.items()}))
        for name, rows in workload.changes[0].rows.items():
            pq.write_table(rows, folder / f"change-{name}.parquet")
        for name in names:
            _child(folder, scale, "make", name)
            _child(folder, scale, "refresh", name, "0")
            ours = _child(folder, scale, "refresh", name, "0", *([str(profile)] if profile else []))
            waited = _child(folder, scale, "refresh", name, str(wait))
            theirs = _child(folder, scale, "recompute", name)
            first, second, *later = ours["seconds"]
            warm = statistics.median(later[2:])
            late = waited["seconds"][0], waited["seconds"][0] / statistics.median(waited["seconds"][4:])
            again = statistics.median(theirs["seconds"][1:])
            cold = theirs["seconds"][0]
            figures = (ours["connect"], first, second, warm, first / warm, *late, cold, again, cold / again)
            table.add_row(name, *(f"{figure:.2f}" for figure in figures), f"{ours['memory'] / 1024:.0f}")
    return table


def _child(folder: Path, scale: float, *what: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--scale", str(scale), "--child", str(folder), *what]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    print(what, done.stdout.splitlines()[-1], flush=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _connected(folder: Path, spark: SparkSession, scale: float, name: str) -> ev.Database:
    local_rows = max(1, round(LOCAL_ROWS * min(1.0, scale)))
    return ev.connect(folder / f"db-{name}", backend="spark", spark=spark, lookup_bytes=0, local_rows=local_rows)


def _files(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / "files.json").read_text())
    return found


def _query(name: str) -> Query:
    return next(query for query in queries("tpch") if query.name == name)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@contextmanager
def _profiled(path: Path | None) -> Iterator[None]:
    if path is None:
        yield
        return
    with cProfile.Profile() as profile:
        yield
    with path.open("a") as out:
        stats = pstats.Stats(profile, stream=out)
        stats.sort_stats("cumulative").print_stats(PROFILED)
        stats.sort_stats("tottime").print_stats(PROFILED)


def main() -> None:
    """One table; with ``--child`` one of the processes behind it."""
    parser = argparse.ArgumentParser(description="The first refresh of a new process.")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=["q03", "q05"])
    parser.add_argument("--share", type=float, default=0.001)
    parser.add_argument(
        "--wait", type=float, default=5.0, help="seconds that a process is there before its first change"
    )
    parser.add_argument("--profile", type=Path, help="where to write what the driver's Python did in the first refresh")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is None:
        Console(width=150).print(measure(given.scale, given.queries, given.share, given.wait, given.profile))
        return
    folder, what, name, *more = given.child
    if what == "make":
        make(Path(folder), name, given.scale)
        print("{}")
    elif what == "refresh":
        wait, *profile = more
        print(json.dumps(refresh(Path(folder), name, given.scale, float(wait), Path(profile[0]) if profile else None)))
    else:
        print(json.dumps(recompute(Path(folder), name)))


if __name__ == "__main__":
    main()
