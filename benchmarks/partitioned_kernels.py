"""What a refresh by kernels inside Spark tasks would cost, beside the ways there are: the measurement of decision 010.

    python benchmarks/partitioned_kernels.py [--quick]

One view, ``SELECT k, sum(v), count(*) FROM t GROUP BY k``, with so many groups, takes in batches of so many rows, which begin
as Arrow at the driver and end as the view's delta there.

``tasks``      the batch goes through a shuffle by key to one task a partition; a Python worker loads the partition's groups
               from its file, runs the embedded backend's kernels (``KeyMap``, ``scatter_add_int``) and writes the file anew
``no files``   the same less the time of the slower task's loading and writing: a bound on what state kept in workers could win
``jobs``       the Spark backend with all state on disk, looked up by DataFrame jobs (``local_rows=0, lookup_bytes=0``)
``driver``     the Spark backend as it comes
``embedded``   the embedded backend, in memory

The floor of any job is measured too: one that does nothing, one that shuffles the batch, one that hands it to Python workers
that give it back. A figure is wall time, and in parentheses the CPU time of the driver, its JVM and its Python workers, which
other work on the machine does not lengthen; of both the least of several batches. The states are compared at the end: kernels
in tasks and all three backends must have the same groups. Linux only: CPU times are read from ``/proc``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.spark_session import spark_session
from everview.backends.embedded.state.accumulate import scatter_add_int, scatter_add_weight
from everview.backends.embedded.state.keymap import KeyMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 2
GROUPS = (10_000, 1_000_000, 4_000_000)
BATCHES = (1_000, 100_000)
QUICK_GROUPS, QUICK_BATCHES = (10_000, 300_000), (1_000, 100_000)
REPEATS, QUICK_REPEATS = 5, 3
QUERY = "SELECT k, sum(v) AS total, count(*) AS n FROM t GROUP BY k"
DELTA = "k bigint, total bigint, n bigint, part int, wall double, cpu double"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall and of CPU time."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{1_000 * self.wall:,.0f} ({1_000 * self.cpu:,.0f})"


def cpu_seconds() -> float:
    """The CPU time so far of this process and of all below it."""
    parents, ticks = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        number = int(file.parent.name)
        parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while more := {n for n, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(ticks.get(n, 0) for n in own) / os.sysconf("SC_CLK_TCK")


@dataclass
class Partitioned:
    """The view as files of groups, one a partition, which tasks load and write."""

    folder: Path
    spark: SparkSession
    in_files: Cost = Cost(0.0, 0.0)

    def apply(self, batch: pa.Table) -> pa.Table:
        """Takes a batch in and returns the groups it touched."""
        given = self.spark.createDataFrame(batch).repartition(PARTITIONS, "k")
        found = given.mapInArrow(_task(str(self.folder)), DELTA).toArrow()
        parts = found.group_by("part").aggregate([("wall", "max"), ("cpu", "max")])
        self.in_files = Cost(pc.max(parts["wall_max"]).as_py(), pc.sum(parts["cpu_max"]).as_py())
        return found

    def content(self) -> pa.Table:
        """All groups by key."""
        stored = np.concatenate([np.load(f) for f in self.folder.glob("*.npy")])
        columns = [np.ascontiguousarray(stored[:, i]) for i in range(3)]
        return pa.table(dict(zip(("k", "total", "n"), columns, strict=True))).sort_by("k")


def _task(folder: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What one task does; it closes over nothing but the folder, so that a worker needs no more than the package."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 -- in the worker

        given = pa.Table.from_batches(list(batches), pa.schema([("k", pa.int64()), ("v", pa.int64())]))
        part = TaskContext.get().partitionId()  # type: ignore[union-attr]
        file = Path(folder) / f"{part}.npy"
        loading = time.perf_counter(), time.process_time()
        groups = _loaded(file)
        loaded = time.perf_counter(), time.process_time()
        slots = groups.upsert(given["k"].to_numpy().reshape(-1, 1))
        ones = np.ones(len(slots), dtype=np.int64)
        scatter_add_int(groups.inline, 0, slots, given["v"].to_numpy(), ones)
        scatter_add_weight(groups.inline, 1, slots, ones)
        touched = groups.store[np.unique(slots)]
        saving = time.perf_counter(), time.process_time()
        np.save(file, groups.store[: groups.used])
        saved = time.perf_counter(), time.process_time()
        in_files = [b - a + d - c for a, b, c, d in zip(loading, loaded, saving, saved, strict=True)]
        told = [pa.repeat(s, len(touched)) for s in (pa.scalar(part, pa.int32()), *map(pa.scalar, in_files))]
        columns = [*(pa.array(np.ascontiguousarray(touched[:, i])) for i in range(3)), *told]
        yield pa.RecordBatch.from_arrays(columns, names=["k", "total", "n", "part", "wall", "cpu"])

    return run


def _loaded(file: Path) -> KeyMap:
    if not file.exists():
        return KeyMap(1, inline=2)
    stored = np.load(file)
    groups = KeyMap(1, len(stored), inline=2)
    slots = groups.upsert(np.ascontiguousarray(stored[:, :1]))
    groups.inline[slots] = stored[:, 1:]
    return groups


def batch_of(rows: int, groups: int, seed: int) -> pa.Table:
    """Random rows over the groups."""
    chance = np.random.default_rng(seed)
    return pa.table({"k": chance.integers(0, groups, rows), "v": chance.integers(0, 1_000, rows)})


def load_of(groups: int) -> pa.Table:
    """One row a group."""
    return pa.table({"k": np.arange(groups), "v": np.arange(groups) % 1_000})


def measured(step: Callable[[pa.Table], object], batch: pa.Table) -> Cost:
    """What one batch costs."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    step(batch)
    return Cost(time.perf_counter() - wall, cpu_seconds() - cpu)


def least(costs: Iterable[Cost]) -> Cost:
    """The least of each kind."""
    found = list(costs)
    return Cost(min(c.wall for c in found), min(c.cpu for c in found))


def floors(spark: SparkSession, rows: int, repeats: int) -> dict[str, Cost]:
    """What jobs over a batch cost that compute nothing."""

    def identity(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from parts

    def shuffled(batch: pa.Table) -> DataFrame:
        return spark.createDataFrame(batch).repartition(PARTITIONS, "k")

    steps: dict[str, Callable[[pa.Table], object]] = {
        "a job": lambda _batch: spark.range(PARTITIONS, numPartitions=PARTITIONS).toArrow(),
        "a shuffle of the batch": lambda batch: shuffled(batch).toArrow(),
        "and through Python workers": lambda batch: (
            shuffled(batch).mapInArrow(identity, "k bigint, v bigint").toArrow()
        ),
    }
    batches = [batch_of(rows, rows, i) for i in range(repeats + 2)]
    return {name: least(measured(step, batch) for batch in batches) for name, step in steps.items()}


def compare(
    spark: SparkSession, groups: int, sizes: tuple[int, ...], repeats: int, folder: Path
) -> Iterator[list[Cost]]:
    """A row of figures for each batch size, over the same batches for all; fails unless the states agree at the end."""
    databases = {
        "jobs": ev.connect(folder / "jobs", backend="spark", spark=spark.newSession(), local_rows=0, lookup_bytes=0),
        "driver": ev.connect(folder / "driver", backend="spark", spark=spark.newSession()),
        "embedded": ev.connect(spark=spark),
    }
    for db in databases.values():
        db.create_table("t", "k bigint, v bigint", retain=False)
        db.create_view("groups", QUERY)
        db.apply({"t": load_of(groups)})
    (folder / "state").mkdir()
    tasks = Partitioned(folder / "state", spark)
    tasks.apply(load_of(groups))
    for size in sizes:
        batches = [batch_of(size, groups, i) for i in range(repeats)]
        whole, in_memory = [], []
        for batch in batches:
            whole.append(measured(tasks.apply, batch))
            in_memory.append(Cost(whole[-1].wall - tasks.in_files.wall, whole[-1].cpu - tasks.in_files.cpu))
        others = [
            least(measured(lambda given, db=db: db.apply({"t": given}), batch) for batch in batches)  # type: ignore[misc]
            for db in databases.values()
        ]
        yield [least(whole), least(in_memory), *others]
    expected = tasks.content()
    for name, db in databases.items():
        found = db.view("groups").to_arrow().cast(expected.schema).sort_by("k")
        assert found.equals(expected), f"{name} has other groups"
        db.close()


def main(arguments: list[str] | None = None) -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small states, few repeats")
    quick = parser.parse_args(arguments).quick
    groups, sizes, repeats = (QUICK_GROUPS, QUICK_BATCHES, QUICK_REPEATS) if quick else (GROUPS, BATCHES, REPEATS)
    console = Console()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need this package
    with spark_session({"driver.memory": "3g"}) as spark:
        for size in sizes:
            told = ", ".join(f"{name} {cost} ms" for name, cost in floors(spark, size, repeats).items())
            console.print(f"floor of {size:,} rows: {told}", highlight=False)
        table = Table(title="A refresh, milliseconds of wall (CPU) time", title_justify="left")
        for heading in ("groups", "rows", "tasks", "no files", "jobs", "driver", "embedded"):
            table.add_column(heading, justify="right")
        for count in groups:
            with tempfile.TemporaryDirectory() as folder:
                for size, figures in zip(sizes, compare(spark, count, sizes, repeats, Path(folder)), strict=True):
                    table.add_row(f"{count:,}", f"{size:,}", *map(str, figures))
        console.print(table)


if __name__ == "__main__":
    main()
