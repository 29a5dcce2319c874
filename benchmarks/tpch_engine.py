"""Running a stream through a database: what is timed is ``db.apply``, from an Arrow batch in memory to the views current."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import everview as ev
from benchmarks.tpch_stream import Step, is_static
from tests.corpus.data import TPCH_KEYS, Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM_UP_ROWS = 10_000


Seconds: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Timed:
    """The times of transactions, one each: by the clock on the wall, and ``worked``, the processor time of this thread.

    Where others use the machine too, the first is more than the second, and the two tell by how much.
    """

    rows: int
    seconds: Seconds
    worked: Seconds

    @property
    def rate(self) -> float:
        """Rows a second."""
        return float(self.rows / self.seconds.sum())

    @property
    def mean(self) -> float:
        """The mean time of a transaction."""
        return float(self.seconds.mean())

    def percentile(self, percent: float) -> float:
        """A percentile of the times."""
        return float(np.percentile(self.seconds, percent))


@contextmanager
def maintained(
    spark: SparkSession, query: Query, tables: Mapping[str, pa.Table], mode: str
) -> Iterator[tuple[ev.Database, ev.View]]:
    """A database with the query's tables, the static ones loaded, and its view; warm, so that no kernel loads later.

    Args:
        spark: The session that translates.
        query: The view, named after it.
        tables: What will be streamed.
        mode: ``strict`` keeps the tables and their primary keys, ``trusted`` keeps no rows (``retain=False``).
    """
    with ev.connect(spark=spark) as db:
        for name, table in tables.items():
            key = TPCH_KEYS[name]
            if is_static(name):
                db.create_table(name, table.schema, primary_key=key, static=True)
                db.apply({name: table})
            elif mode == "strict":
                db.create_table(name, table.schema, primary_key=key)
            else:
                db.create_table(name, table.schema, retain=False)
        view = db.create_view(query.name, query.sql)
        _warm_up(db, tables)
        yield db, view


def _warm_up(db: ev.Database, tables: Mapping[str, pa.Table]) -> None:
    """Inserts some rows of each table and deletes them again."""
    some = {name: table.slice(0, WARM_UP_ROWS) for name, table in tables.items() if not is_static(name)}
    for name, rows in some.items():
        db.apply({name: rows})
    for name, rows in some.items():
        weights = pa.array(np.full(len(rows), -1, dtype=np.int64))
        db.apply({name: rows.append_column("_weight", weights)})


def feed(db: ev.Database, steps: Sequence[Step]) -> Timed:
    """Applies the steps, each a transaction, and times each."""
    seconds, worked = np.zeros(len(steps)), np.zeros(len(steps))
    clock, processor = time.perf_counter, time.thread_time
    for number, step in enumerate(steps):
        before, started = processor(), clock()
        db.apply({step.table: step.batch})
        seconds[number], worked[number] = clock() - started, processor() - before
    return Timed(sum(step.rows for step in steps), seconds, worked)


def state_bytes(view: ev.View) -> int:
    """Bytes of everything the view keeps; retained tables are not part of it."""
    return sum(view.stats()["bytes"].values())
