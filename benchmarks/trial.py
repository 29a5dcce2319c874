"""One view maintained under one stream with given options: opened, warmed up, timed, measured and checked.

Before a trial a small database of the same tables and view takes the first rows of each table and is thrown away, so that all
kernels are compiled; neither that nor translating the query is timed. An option that the engine does not have makes a trial
``Skipped``: it is printed at once with the engine's own words, and appears in the suite's table.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape

import everview as ev
from benchmarks.steps import Step, inserted, round_robin
from benchmarks.timing import UNBOUNDED, Budget, Timed, feed, state_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM_UP_ROWS = 600
WARM_UP_BATCH = 200
ENUMERATED = 10_000

Check = Callable[[ev.View, Mapping[str, pa.Table]], str | None]
"""Compares a view with the tables that the stream has made: what is wrong, or None."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A view, its tables and how it is to be maintained.

    ``mode`` is ``strict`` (tables kept, primary keys declared and checked) or ``trusted`` (``retain=False``, no keys: only
    what the view needs is kept). ``static`` tables are loaded whole before the view exists. ``params`` tell trials of one
    case apart in the results.
    """

    case: str
    sql: str
    tables: Mapping[str, pa.Table]
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    static: frozenset[str] = frozenset()
    strategy: str = "auto"
    representation: str = "auto"
    mode: str = "strict"
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The case and its options in a line."""
        options = {"strategy": self.strategy, "representation": self.representation, "mode": self.mode, **self.params}
        return " ".join([self.case, *(f"{name}={value}" for name, value in options.items())])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured of a trial. ``enumeration`` is the time to read the first rows by ``iter(view)``."""

    trial: Trial
    timed: Timed
    steps: int
    state: int
    views: int
    answer: str
    enumeration: float

    @property
    def params(self) -> dict[str, Any]:
        """What the number depends on, for the results."""
        trial, timed = self.trial, self.timed
        told = {"strategy": trial.strategy, "representation": trial.representation, "mode": trial.mode, **trial.params}
        told |= {"views": self.views, "tuples": timed.rows, "batches": len(timed.seconds), "answer": self.answer}
        return told if timed.stopped is None else {**told, "of_batches": self.steps, "stopped": timed.stopped}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A trial that could not be run, and why."""

    trial: Trial
    reason: str


def attempt(
    spark: SparkSession,
    trial: Trial,
    steps: Sequence[Step],
    check: Check,
    *,
    budget: Budget = UNBOUNDED,
    warm: Mapping[str, pa.Table] | None = None,
) -> Outcome | Skipped:
    """Runs a trial over the steps, all of them inserts, until the budget is exhausted, and checks what it arrived at.

    Args:
        spark: The session that translates.
        trial: What to maintain, and how.
        steps: The stream.
        check: Called with the view and the tables after the last step that was run.
        budget: Where to stop.
        warm: Tables whose first rows join, for the warm-up; by default those of the trial.
    """
    try:
        warm_up(spark, trial, warm or trial.tables)
        with maintained(spark, trial, trial.tables) as (db, view):
            timed = feed(db, steps, budget)
            done = steps[: len(timed.seconds)]
            streamed = {name: t.schema for name, t in trial.tables.items() if name not in trial.static}
            static = {name: trial.tables[name] for name in trial.static}
            problem = check(view, {**inserted(done, streamed), **static})
            seconds = _enumeration_seconds(view)
            answer = "right" if problem is None else "WRONG"
            found = Outcome(
                trial, timed, len(steps), state_bytes(view), count_views(view.stats()["bytes"]), answer, seconds
            )
    except (ev.UnsupportedOperation, ev.UnsupportedQuery) as error:
        return skip(trial, error.message)
    finally:
        gc.collect()  # the next trial's memory budget starts from what is left
    if problem is not None:
        Console(stderr=True).print(f"[bold red]WRONG ANSWER[/] {escape(trial.label)}: {escape(problem)}")
    return found


def skip(trial: Trial, reason: str) -> Skipped:
    """Says at once that a trial is not run, and why."""
    Console(stderr=True).print(f"[yellow]SKIPPED[/] {escape(trial.label)}: {escape(reason)}", highlight=False)
    return Skipped(trial, reason)


@contextmanager
def maintained(
    spark: SparkSession, trial: Trial, tables: Mapping[str, pa.Table]
) -> Iterator[tuple[ev.Database, ev.View]]:
    """A database with the trial's tables, the static ones loaded from ``tables``, and its view."""
    with ev.connect(spark=spark) as db:
        for name, table in trial.tables.items():
            if name in trial.static:
                db.create_table(name, table.schema, primary_key=trial.keys.get(name), static=True)
                db.apply({name: tables[name]})
            elif trial.mode == "strict":
                db.create_table(name, table.schema, primary_key=trial.keys.get(name))
            else:
                db.create_table(name, table.schema, retain=False)
        options = {"strategy": trial.strategy, "representation": trial.representation}
        yield db, db.create_view("measured", trial.sql, **options)  # type: ignore[arg-type]


def warm_up(spark: SparkSession, trial: Trial, tables: Mapping[str, pa.Table]) -> None:
    """A database of the first rows of each table, in several batches, thrown away."""
    some = {name: table.slice(0, WARM_UP_ROWS) for name, table in tables.items()}
    with maintained(spark, trial, some) as (db, view):
        feed(db, round_robin({name: rows for name, rows in some.items() if name not in trial.static}, WARM_UP_BATCH))
        _enumeration_seconds(view)


_TREES = ("tree", "join_tree", "factorized")


def count_views(structures: Mapping[str, int]) -> int:
    """How many views are materialized, by the structures that ``stats()`` lists, those that copy one table included.

    A view tree names each of its views, and their indexes after them; any other operator keeps one view.

    >>> count_views({"#1.tree.e1": 8, "#1.tree.e1.index[0]": 8, "#1.tree.V": 8, "#2.aggregate.groups": 8})
    3
    """
    kept = set()
    for structure, size in structures.items():
        operator, kind, part = structure.split(".", maxsplit=2)
        if size:
            kept.add((operator, re.split(r"\.(?:index|order)\[", part)[0] if kind in _TREES else ""))
    return len(kept)


def _enumeration_seconds(view: ev.View) -> float:
    started = time.perf_counter()
    for _ in islice(iter(view), ENUMERATED):
        pass
    return time.perf_counter() - started
