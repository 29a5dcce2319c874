"""Single-row updates and enumeration over a loaded view, and the exponent by which they grow with the data.

The tables are strict: retained, primary keys declared where the class is about them, so that an update's time includes
finding the row to be deleted. They are loaded in batches of 10,000 rows, round robin; what is timed comes after. An update is
a transaction of one row, by turns the delete of a random row of a table and its insert again, so that the data stays the
same. The delay is the time to enumerate the first 1,000 rows by ``iter(view)`` after an update, over their number: what is
built before the first row is in it. Each is timed by the wall and in processor time of the thread, which others on the machine
disturb less. Not timed: a small database thrown away before, which compiles the kernels, the load, and
the first few updates. The final rows are compared with DuckDB's.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import everview as ev
from benchmarks.answers import duckdb_answer, fingerprint
from benchmarks.classes_data import QueryClass
from benchmarks.steps import Step, round_robin
from benchmarks.timing import UNBOUNDED, Budget, Timed, feed, state_bytes
from benchmarks.trial import Trial, maintained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOAD_BATCH = 10_000
ENUMERATED = 1_000
WARMING = 20
SEED = 3
LISTED = 2_000_000
"""Up to this many rows a view is compared whole, beyond by its number of rows."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The data sizes, how many updates of each table and how many enumerations to time, and the budgets.

    ``load`` is that of the rows before anything is timed, ``timed`` that of the updates of one table, and of all enumerations:
    what is slow is measured less often.
    """

    rows: tuple[int, ...]
    updates: int
    enumerations: int
    load: Budget
    timed: Budget


FULL = Sizes((1_000, 10_000, 100_000, 1_000_000), 400, 20, Budget(seconds=45, bytes=4e9), Budget(seconds=5))
QUICK = Sizes((1_000, 16_000), 120, 10, Budget(seconds=2, bytes=2e9), Budget(seconds=0.5))


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured at one size: the times of one-row updates by table, and the delays of enumerations, a row each."""

    updates: Mapping[str, Timed]
    delays: Timed
    state: int
    problem: str | None

    @property
    def times(self) -> dict[str, Timed]:
        """All of them, by what they are of."""
        return {**{f"update {name}": timed for name, timed in self.updates.items()}, "delay": self.delays}


def measure_at(spark: SparkSession, chosen: QueryClass, trial: Trial, sizes: Sizes) -> Point | str:
    """A view over loaded tables: its times, or why the load was stopped."""
    try:
        with maintained(spark, trial, trial.tables) as (db, view):
            loaded = feed(db, round_robin(trial.tables, LOAD_BATCH), sizes.load)
            if loaded.stopped is not None:
                return f"loading stopped {loaded.stopped}, {loaded.rows:,} rows in."
            rng = np.random.default_rng(SEED)
            updates = {
                name: feed_updates(db, update_steps(name, table, sizes.updates, rng), sizes.timed)
                for name, table in trial.tables.items()
            }
            some = update_steps(*next(iter(trial.tables.items())), 2 * sizes.enumerations, rng)
            delays = _delays(db, view, some, sizes.timed)
            return Point(updates, delays, state_bytes(view), _problem(view, chosen, trial.tables))
    finally:
        gc.collect()


def update_steps(name: str, table: pa.Table, count: int, rng: np.random.Generator) -> list[Step]:
    """Deletes of random rows, each followed by its insert."""
    steps: list[Step] = []
    for at in rng.integers(0, len(table), (count + 1) // 2).tolist():
        for weight in (-1, 1):
            row = table.slice(at, 1).append_column("_weight", pa.array([weight], pa.int64()))
            steps += [Step(name, batch) for batch in row.combine_chunks().to_batches()]
    return steps


def feed_updates(db: ev.Database, steps: Sequence[Step], budget: Budget = UNBOUNDED) -> Timed:
    """Times the updates, all but the first few: those find everything cold after the load.

    A stream that stops after a delete leaves the row out, so the insert that follows is run untimed.
    """
    feed(db, steps[:WARMING])
    timed = feed(db, steps[WARMING:], budget)
    done = WARMING + len(timed.seconds)
    feed(db, steps[done : done + done % 2])
    return timed


def exponent(rows: Sequence[float], seconds: Sequence[float]) -> float:
    """The b of seconds ≈ a · rows^b, by least squares over the logarithms.

    >>> round(exponent([10, 100, 1000], [2.0, 20.0, 200.0]), 3)
    1.0
    """
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def _delays(db: ev.Database, view: ev.View, steps: Sequence[Step], budget: Budget) -> Timed:
    """The delay after each second of the updates: after those the data is as it was."""
    counts: list[int] = []
    seconds: list[float] = []
    worked: list[float] = []
    for delete, insert in zip(steps[::2], steps[1::2], strict=True):
        feed(db, (delete, insert))
        processor, started = time.thread_time(), time.perf_counter()
        counts.append(sum(1 for _ in islice(iter(view), ENUMERATED)))
        seconds.append(time.perf_counter() - started)
        worked.append(time.thread_time() - processor)
        if budget.exhausted(sum(seconds), 0) is not None:
            break
    rows = np.maximum(1, np.array(counts, dtype=np.int64))
    return Timed(rows, np.array(seconds) / rows, np.array(worked) / rows)


def _problem(view: ev.View, chosen: QueryClass, tables: Mapping[str, pa.Table]) -> str | None:
    ((count,),) = duckdb_answer(f"SELECT COUNT(*) FROM ({chosen.sql}) AS bag", tables)
    if view.stats()["rows"] != count:
        return f"{view.stats()['rows']} rows here and {count} there"
    if count > LISTED:
        return None
    ours = fingerprint("SELECT * FROM ours", {"ours": view.to_arrow()}, chosen.columns)
    theirs = fingerprint(chosen.sql, tables, chosen.columns)
    return None if ours == theirs else f"fingerprints {ours} here and {theirs} there"
