"""A driver that is killed time and again while it applies batches: what the tests of kills run in processes of their own.

``python -m tests.spark.killing MODE DIRECTORY SEED BATCHES``. Mode ``lives`` applies the batches to the database in the
directory in as many lives as it takes. Each life is a process that has nothing of the one before, forked from one that has
loaded the code and never opened the database. It is killed with SIGKILL, by a seeded choice either by itself when it reaches
the n-th step of a commit (a vacuum's too) or from outside at some moment. A life begins by checking the law: what is there is
exactly the first ``last_batch`` batches, at least those whose ``apply`` returned. The other modes are one life each, on Spark.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from everview.backends.base import Change, ChangeKind
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.backends.spark.backend import SparkBackend
from everview.backends.spark.local_engine import run_locally
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.segments import Segment
from everview.backends.spark.spark_engine import SparkEngine
from everview.catalog import TableDefinition, ViewDefinition
from everview.relational.arrow import canonical_rows, rows_from_arrow, rows_to_arrow
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Aggregate, AggregateCall, Distinct, Field, Join, JoinKind, Project, Relation, Scan
from everview.relational.schema import schema
from everview.relational.types import BOOLEAN, INT64, STRING, Row
from everview.session.database import Database
from tests.conftest import SPARK_SETTINGS
from tests.oracle.bags import assert_same_bag
from tests.spark.replay import refuse_spark

ITEMS = (Field("k", STRING), Field("x", INT64))
NAMES = (Field("k", STRING), Field("name", STRING))
_TABLES = {"items": ITEMS, "names": NAMES}
_JOINED = Join(
    Scan("items", ITEMS),
    Scan("names", NAMES),
    JoinKind.INNER,
    Call("=", (Column(0, STRING), Column(2, STRING)), BOOLEAN),
)
_SUM, _MAX = AggregateCall("sum", (Column(1, INT64),), INT64), AggregateCall("max", (Column(1, INT64),), INT64)
VIEWS: dict[str, Relation] = {
    "totals": Aggregate(_JOINED, (Column(3, STRING),), (_SUM,), ("name", "total")),
    "pairs": Project(_JOINED, (Column(1, INT64), Column(3, STRING)), ("x", "name")),
    "largest": Aggregate(Scan("items", ITEMS), (Column(0, STRING),), (_MAX,), ("k", "largest")),
    "keys": Distinct(Project(Scan("items", ITEMS), (Column(0, STRING),), ("k",))),
}
SOURCE = "feed"
_LATEST_STEP = 30
"""A batch has about eight steps: one for each relation that it moves, and three."""
_LONGEST_LIFE = 5
"""A life that is killed from outside ends before so many batches."""
_PAUSE = 0.2
"""Seconds after a batch within which the kill from outside comes."""
_ACKNOWLEDGED = "acknowledged"


def create(path: Path) -> None:
    """The tables and views, without rows."""
    backend = SparkBackend(str(path), refuse_spark)
    for name, fields in _TABLES.items():
        backend.create_table(TableDefinition(name, fields))
    for name, plan in VIEWS.items():
        backend.create_view(ViewDefinition(name, plan, None, "UTC"))
    backend.close()


def batch(number: int) -> dict[str, list[tuple[Row, int]]]:
    """The changes of a batch: rows come, rows of earlier batches go, and now and then a name changes."""

    def items_of(n: int) -> list[Row]:
        return [("abcd"[n % 4], n), ("abcd"[n % 3], 10 * n), ("a", 7)]

    items = [(row, 1) for row in items_of(number)]
    if number > 3:
        items += [(row, -1) for row in items_of(number - 3)[: 1 + number % 3]]
    names: list[tuple[Row, int]] = [(("abcd"[number], f"name {number}"), 1)] if number < 4 else []
    if number % 5 == 4 and number > 5:
        names = [(("b", "name 1" if number == 9 else f"name {number - 5}"), -1), (("b", f"name {number}"), 1)]
    return {"items": items, "names": names}


def tables_after(batches: int) -> dict[str, list[Row]]:
    """What the tables hold after the first so many batches, numbered from 0."""
    held: dict[str, Counter[Row]] = {name: Counter() for name in _TABLES}
    for number in range(batches):
        for name, changes in batch(number).items():
            for row, weight in changes:
                held[name][row] += weight
    return {name: list(rows.elements()) for name, rows in held.items()}


def apply_batch(backend: SparkBackend, number: int) -> None:
    """One batch as one transaction."""
    given = []
    for name, changes in batch(number).items():
        rows = rows_to_arrow([row for row, _ in changes], _TABLES[name])
        weights = pa.array([weight for _, weight in changes], pa.int64())
        given.append(Change(name, ChangeKind.WEIGHTED, rows, weights))
    backend.apply(given, source=(SOURCE, number))


def check(backend: SparkBackend, acknowledged: int) -> int:
    """The law: tables and views are those after some batches, at least the acknowledged; returns how many."""
    last = backend.last_batch(SOURCE)
    done = 0 if last is None else last + 1
    assert done >= acknowledged, f"{acknowledged} batches were acknowledged, and {done} are there"
    assert backend.version == done, f"{done} batches in {backend.version} transactions"
    tables = tables_after(done)
    for name, fields in _TABLES.items():
        assert_same_bag(rows_from_arrow(backend.read(name), fields), tables[name], name)
    for name, plan in VIEWS.items():
        expected = canonical_rows(evaluate_plan(plan, tables), schema(plan))
        assert_same_bag(rows_from_arrow(backend.read(name), schema(plan)), expected, name)
    return done


def acknowledged(path: Path) -> int:
    """How many batches some life knows to be there: their ``apply`` returned, or it found them."""
    file = path / _ACKNOWLEDGED
    text = file.read_text() if file.exists() else ""
    whole = text.rpartition("\n")[0].split()  # it may be read when it is just made, or when a line is half written
    return int(whole[-1]) if whole else 0


def _acknowledge(path: Path, done: int) -> None:
    with (path / _ACKNOWLEDGED).open("a") as file:
        file.write(f"{done}\n")


def live(path: Path, backend: SparkBackend, batches: int, vacuum: int | None) -> None:
    """Checks the law, then applies what is left, with a vacuum after some number of batches."""
    done = check(backend, acknowledged(path))
    _acknowledge(path, done)
    for number in range(done, batches):
        apply_batch(backend, number)
        _acknowledge(path, number + 1)
        if number - done == vacuum:
            backend.vacuum()
    backend.close()


def _one_life(path: Path, batches: int, fatal_step: int | None, vacuum: int | None) -> None:
    steps = iter(range(10_000))

    def fault(_step: str) -> None:
        if next(steps) == fatal_step:
            os.kill(os.getpid(), signal.SIGKILL)

    live(path, SparkBackend(str(path), refuse_spark, fault=fault), batches, vacuum)


def _lives(path: Path, seed: str, batches: int) -> None:
    chance = random.Random(seed)
    for plan in VIEWS.values():  # loads the kernels, which every life would otherwise load again
        evaluated = {n: rows_to_arrow(tables_after(3)[n], f) for n, f in _TABLES.items()}
        run_locally(plan, evaluated)
    told = {"by itself": 0, "from outside": 0}
    while acknowledged(path) < batches:
        by_itself = chance.random() < 0.6
        fatal_step = chance.randrange(_LATEST_STEP) if by_itself else None
        until, seconds = acknowledged(path) + chance.randrange(_LONGEST_LIFE), chance.uniform(0.0, _PAUSE)
        vacuum = chance.choice((None, None, 1))
        life = os.fork()
        if life == 0:
            try:
                _one_life(path, batches, fatal_step, vacuum)
            except BaseException as error:
                print(f"the law is broken: {error!r}", flush=True)
                os._exit(1)
            os._exit(0)
        status = _end_of(life) if by_itself else _killed(life, path, until, seconds)
        if status not in (0, -signal.SIGKILL):
            sys.exit(1)
        if status == -signal.SIGKILL:
            told["by itself" if by_itself else "from outside"] += 1
    print(f"killed {told['by itself']} times by itself, {told['from outside']} times from outside")


def _end_of(life: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(life, 0)[1])


def _killed(life: int, path: Path, until: int, seconds: float) -> int:
    """Kills a life some time after so many batches are acknowledged in all; returns how it ended."""
    while acknowledged(path) < until:
        ended, status = os.waitpid(life, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    time.sleep(seconds)
    os.kill(life, signal.SIGKILL)
    return _end_of(life)


def _session(master: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    for key, value in {**SPARK_SETTINGS, "spark.master": master}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _life_on_spark(path: Path, batches: int) -> None:
    """Applies what is left with no rows at the driver; whoever starts it kills it."""
    session = _session("local[2]")
    live(path, SparkBackend(str(path), lambda: session, local_rows=0), batches, 9)


def _life_of_a_stream(path: Path, batches: int, fatal_step: int) -> None:
    """Feeds ``items`` from files, one a batch, and ends at a step of a commit."""
    steps = iter(range(10_000))

    def fault(_step: str) -> None:
        if next(steps) == fatal_step:
            os.kill(os.getpid(), signal.SIGKILL)

    session = _session("local[2]")
    database = Database(SparkBackend(str(path / "db"), lambda: session, fault=fault), session)
    files = session.readStream.schema("k string, x bigint").option("maxFilesPerTrigger", 1).json(str(path / "in"))
    database.stream("items", files, checkpoint=path / "checkpoint", availableNow=True).awaitTermination()
    assert database.version == batches, f"{batches} files in {database.version} transactions"
    database.close()


def _life_with_failing_tasks(path: Path, batches: int) -> None:
    """Every task that writes a segment fails halfway in its first attempt, and is run again by Spark."""

    def halfway(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield part.slice(0, part.num_rows // 2)
            context = TaskContext.get()
            if context is not None and context.attemptNumber() == 0:
                raise OSError("the machine of this task is gone")
            yield part.slice(part.num_rows // 2)

    class FailingEngine(SparkEngine):
        def write(self, frame: DataFrame, relation: StoredRelation) -> list[Segment]:
            return super().write(frame.mapInArrow(halfway, frame.schema), relation)

    session = _session("local[2,3]")
    session.sparkContext.setLogLevel("OFF")
    backend = SparkBackend(str(path), lambda: session, local_rows=0)
    backend._engine = FailingEngine(lambda: session)
    live(path, backend, batches, 9)


def main(mode: str, directory: str, seed: str, batches: str) -> None:
    """One of the lives above."""
    path, count = Path(directory), int(batches)
    match mode:
        case "lives":
            _lives(path, seed, count)
        case "spark":
            _life_on_spark(path, count)
        case "stream":
            _life_of_a_stream(path, count, int(seed))
        case "failing-tasks":
            _life_with_failing_tasks(path, count)
        case _:
            sys.exit(f"no mode {mode}")


if __name__ == "__main__":
    main(*sys.argv[1:])
