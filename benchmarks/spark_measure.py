"""One query of the Spark suite: its view made, refreshed after each change, checked, and recomputed by Spark.

A change is applied and undone, several times: every refresh is counted, except those of the first round, in which Spark
compiles plans of a new shape, if the budget allows another round. The recomputation is the query over plain Parquet files of
the same content, answer fetched; its first run is not counted either.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from rich.console import Console

import everview as ev
from benchmarks.answers import Rows, first_difference
from benchmarks.spark_changes import ORDERS, Change, Workload, load_batches, undone
from benchmarks.spark_counters import Counted, Counters
from benchmarks.tpch_stream import is_static, tables_read
from everview.backends.spark.lookup_copies import LOOKUP_BYTES
from tests.corpus.data import TPCH_KEYS, Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = ("q03", "q05", "q10", "q12", "q14", "q18")
LOOKUPS = ("driver", "executors")
SHARES = (0.0001, 0.001, 0.01, 0.1)
LOCAL_ROWS = 200_000
"""The backend's own limit for rows at the driver. Below scale 1 it shrinks with the data, so that Spark has the same part."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run covers. ``seconds`` is how long the rounds of one change may take before the next is left out.

    ``refreshes`` are the options of the views; by default changes are taken in as deltas, however many they are.
    ``lookup_bytes`` is the disk that the driver may take for copies of tables and state, in which it looks rows up; with 0
    Spark jobs do. Each query is a view of each of the ``strategies`` with each of the ``refreshes``, one after another.
    ``lookups`` says who looks rows up: the ``driver`` in its copies, or ``executors`` in theirs, and then tables are loaded by
    executors too, and nothing of them is at the driver.
    """

    scale: float = 1.0
    queries: tuple[str, ...] = QUERIES
    shares: tuple[float, ...] = SHARES
    orders: tuple[str, ...] = ORDERS
    rounds: int = 3
    recomputations: int = 3
    seconds: float = 40.0
    refreshes: tuple[str, ...] = ("incremental",)
    lookup_bytes: int = LOOKUP_BYTES
    strategies: tuple[str, ...] = ("auto",)
    lookups: tuple[str, ...] = LOOKUPS
    rows_at_driver: int | None = None
    """The most rows of a segment that is in the driver's memory; by default the backend's own, less below scale 1."""

    @property
    def local_rows(self) -> int:
        """Segments of more rows are Spark's."""
        return self.rows_at_driver or max(1, round(LOCAL_ROWS * min(1.0, self.scale)))


@dataclass(frozen=True, slots=True)
class Timed:
    """Runs of the same work: their times, what the last one made Spark do, and whether the first was left out.

    ``first`` is the time of the very first run, and ``first_jobs`` its Spark jobs: what warming up costs. ``looked_up_bytes``
    are those that look-ups in the last run read, of segments and of memory-mapped copies, in tasks and at the driver.
    """

    seconds: tuple[float, ...]
    counted: Counted
    is_warm: bool
    first: float
    first_jobs: int
    looked_up_bytes: int = 0

    @property
    def all_bytes(self) -> int:
        """What Spark's tasks, look-ups and this process have read."""
        return self.counted.bytes_read + self.looked_up_bytes + (self.counted.driver_bytes or 0)

    @property
    def median(self) -> float:
        """The time that is reported."""
        return statistics.median(self.seconds)

    @property
    def params(self) -> dict[str, Any]:
        """Jobs, bytes, and how much was timed."""
        told: dict[str, Any] = {"jobs": self.counted.jobs, "bytes_read": self.counted.bytes_read}
        told |= {"driver_bytes": self.counted.driver_bytes, "jobs_for": self.counted.explained}
        told |= {"looked_up_bytes": self.looked_up_bytes}
        told |= {"first": round(self.first, 3), "first_jobs": self.first_jobs}
        return {**told, "runs": len(self.seconds), "slowest": round(max(self.seconds), 3), "warm": self.is_warm}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A query after changes of one share."""

    query: str
    strategy: str
    option: str
    """For which ``refresh`` the view was made; ``how`` is what that came to."""
    change: Change
    rows: int
    refresh: Timed
    recomputed: Timed
    how: str
    answer: str
    copied_bytes: int
    """What the driver's copies of large segments take on disk."""

    @property
    def series(self) -> tuple[str, str, str, str]:
        """What it has in common with those that differ in the share of changed rows only."""
        return self.query, self.strategy, self.option, self.change.order

    @property
    def ratio(self) -> float:
        """How many times faster than recomputation the refresh was."""
        return self.recomputed.median / self.refresh.median


@dataclass(frozen=True, slots=True)
class Filled:
    """A view that was made over loaded tables."""

    query: str
    strategy: str
    option: str
    seconds: float
    rows: int
    state_bytes: int
    answer: str


class Case:
    """One query, maintained by one strategy with one ``refresh``, over the loaded database, which is in a folder."""

    def __init__(
        self,
        db: ev.Database,
        folder: Path,
        spark: SparkSession,
        counters: Counters,
        query: Query,
        plan: Plan,
        strategy: str = "auto",
        refresh: str = "incremental",
    ) -> None:
        self._db = db
        self._folder = folder
        self._spark = spark
        self._counters = counters
        self._query = query
        self._strategy = strategy
        self._option = refresh
        self._plan = plan
        self._tables = tables_read(query.sql)

    def outcomes(self, workload: Workload) -> Iterator[Filled | Outcome]:
        """Makes the view, measures it after every change, and drops it; the tables are as before in the end."""
        started = time.perf_counter()
        options = {"refresh": self._option, "strategy": self._strategy}
        view = self._db.create_view(self._query.name, self._query.sql, **options)
        seconds = time.perf_counter() - started
        rows = workload.row_count(self._tables)
        before = view.rows()
        answer = self._check(before, workload.loaded, lambda: self._session(workload.loaded))
        size = sum(view.stats()["bytes"].values())
        yield Filled(self._query.name, self._strategy, self._option, seconds, rows, size, answer)
        for change in workload.changes:
            yield self._measure(view, change, before)
        self._db.drop(view.name)

    def _measure(self, view: ev.View, change: Change, before: Rows) -> Outcome:
        there = change.of(self._tables)
        back = undone(there)
        session = self._session(change.files)
        recomputed = self._recompute(session)
        seconds: list[tuple[float, float]] = []
        answers, how = set(), set()
        first_jobs = 0
        started = time.perf_counter()
        while len(seconds) < self._plan.rounds and (
            len(seconds) <= 1 or _has_time(started, len(seconds) - 1, self._plan.seconds)
        ):
            if len(seconds) == 1:
                started = time.perf_counter()  # the cold round is on nobody's account, and a warm one always follows
            with self._counters.counted() as counted:
                there_seconds, commit = self._apply(there)
            looked_up = view.stats()["looked_up_bytes"]
            first_jobs = first_jobs if seconds else counted.jobs
            how.add(commit.refreshed[view.name].how)
            answers.add(self._check(view.rows(), change.files, lambda: session))
            back_seconds, _ = self._apply(back)
            answers.add(self._told("undone", first_difference(view.rows(), before)))
            seconds.append((there_seconds, back_seconds))
        is_warm = len(seconds) > 1
        warm = tuple(s for pair in seconds[is_warm:] for s in pair)
        timed = Timed(warm, counted, is_warm, seconds[0][0], first_jobs, looked_up)
        rows = sum(len(table) for table in there.values())
        answer = "right" if answers == {"right"} else "WRONG"
        told = "+".join(sorted(how))
        copied, name = self._copied_bytes(), self._query.name
        return Outcome(name, self._strategy, self._option, change, rows, timed, recomputed, told, answer, copied)

    def _apply(self, rows: Mapping[str, Any]) -> tuple[float, ev.Commit]:
        started = time.perf_counter()
        commit = self._db.apply(rows)
        return time.perf_counter() - started, commit

    def _copied_bytes(self) -> int:
        return sum(path.stat().st_size for path in (self._folder / "_lookup").rglob("*") if path.is_file())

    def _session(self, files: Mapping[str, Path]) -> SparkSession:
        """A session in which the query's tables are these files."""
        session = self._spark.newSession()
        for name in self._tables:
            session.read.parquet(str(files[name])).createOrReplaceTempView(name)
        return session

    def _recompute(self, session: SparkSession) -> Timed:
        with self._counters.counted() as counted:
            started = time.perf_counter()
            session.sql(self._query.sql).collect()
            first, seconds = time.perf_counter() - started, []
        first_jobs = counted.jobs
        for _ in range(self._plan.recomputations):
            with self._counters.counted() as counted:
                started = time.perf_counter()
                session.sql(self._query.sql).collect()
                seconds.append(time.perf_counter() - started)
        return Timed(tuple(seconds), counted, True, first, first_jobs)

    def _check(self, ours: Rows, files: Mapping[str, Path], session: Callable[[], SparkSession]) -> str:
        """Compares with DuckDB, and where that differs with Spark, which has the last word."""
        if first_difference(ours, duckdb_answer(self._query.sql, files)) is None:
            return "right"
        theirs = [tuple(row) for row in session().sql(self._query.sql).collect()]
        return self._told("changed", first_difference(ours, theirs))

    def _told(self, when: str, difference: str | None) -> str:
        if difference is None:
            return "right"
        Console(stderr=True).print(f"[bold red]WRONG ANSWER[/] {self._query.name}, {when}: {difference}")
        return "WRONG"


def load(db: ev.Database, workload: Workload, chosen: Sequence[Query], spark: SparkSession | None = None) -> float:
    """Makes the tables that queries read and loads them in bulk, by executors if a session is given; returns the seconds."""
    seconds = 0.0
    for name in dict.fromkeys(name for query in chosen for name in tables_read(query.sql)):
        if spark is not None:
            started = time.perf_counter()
            rows = spark.read.parquet(str(workload.loaded[name]))
            db.create_table(name, rows, primary_key=TPCH_KEYS[name], static=is_static(name))
            seconds += time.perf_counter() - started
            continue
        for number, rows in enumerate(load_batches(workload.loaded[name])):
            if number == 0:
                db.create_table(name, rows.schema, primary_key=TPCH_KEYS[name], static=is_static(name))
            started = time.perf_counter()
            db.apply({name: rows})
            seconds += time.perf_counter() - started
    return seconds


def duckdb_answer(sql: str, files: Mapping[str, Path]) -> Rows:
    """The query's rows over Parquet files."""
    with duckdb.connect() as connection:
        for name, path in files.items():
            connection.read_parquet(str(path)).create_view(name)
        return connection.execute(sql).fetchall()


def crossing(points: Sequence[tuple[float, float]]) -> float | None:
    """The share of changed rows at which a refresh takes as long as recomputation, from (share, ratio), shares ascending.

    Between two measured shares both are taken to be powers; None where the ratios do not cross 1 from above.

    >>> crossing([(0.001, 4.0), (0.1, 0.25)])
    0.01
    >>> crossing([(0.001, 4.0), (0.1, 2.0)])
    """
    for (share, ratio), (next_share, next_ratio) in pairwise(points):
        if ratio >= 1 > next_ratio:
            part = math.log(ratio) / math.log(ratio / next_ratio)
            return round(math.exp(math.log(share) + part * math.log(next_share / share)), 6)
    return None


def _has_time(started: float, done: int, seconds: float) -> bool:
    """Whether another round fits, if it takes as long as those before."""
    spent = time.perf_counter() - started
    return spent + spent / done <= seconds
