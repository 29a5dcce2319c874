"""Spark as an engine for plans: a private session, relations as temporary views, answers as Arrow or as files.

Contract: a session that the user gave is never configured; ours is ``newSession()``, ANSI on. What Spark raises on rows is an
``EvaluationError`` with Spark's condition, a file that it cannot read a ``CorruptDatabase`` that names it.
"""

from __future__ import annotations

import re
import shutil
import sys
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr

from everview.backends.spark.evaluate import answer_name, column_names, plan_sql
from everview.backends.spark.lookup_copies import LOOKUP_BYTES
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.segments import (
    Segment,
    by_position,
    decode,
    decode_sql,
    encode,
    encode_sql,
    stored_fields,
)
from everview.backends.spark.sql_literals import literal_sql, type_sql
from everview.backends.spark.task_lookups import TaskLookups, copies_folder
from everview.errors import CorruptDatabase, EvaluationError, InternalError, UnsupportedOperation
from everview.relational import spark_code
from everview.relational.arrow import without_empty_batches
from everview.relational.nodes import Relation, Scan, Schema, SparkQuery
from everview.relational.quoting import quote
from everview.relational.schema import schema
from everview.relational.traverse import nodes_of
from everview.relational.types import STRING

P = TypeVar("P")
R = TypeVar("R")
BatchWork = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_SETTINGS = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.debug.maxToStringFields": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Else an aggregate that depends on the order of a group's rows would be cut in two where there are many groups.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(2**31 - 1),
}
_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_GROUP_BYTES = 16 * 2**20
"""Of a row group that executors write: small, for a reader with a small range of keys."""
_KEPT_FRAMES = 256
"""So many temporary views of segments are known at once: more than any plan has scans."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_OURS_IS_MISSING = re.compile(r"ModuleNotFoundError: No module named '(everview|numba|numpy|pyarrow)")
_UNREADABLE = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER", "FILE_NOT_EXIST", "PATH_NOT_FOUND")


class SparkEngine:
    """Runs plans on Spark; the session starts with the first of them."""

    def __init__(
        self, user_session: Callable[[], SparkSession], executor_bytes: int = LOOKUP_BYTES, copies: Path | None = None
    ) -> None:
        self._user_session = user_session
        self.lookups = TaskLookups(self, executor_bytes, copies)
        self._session: SparkSession | None = None
        self._lock = threading.RLock()
        self._python_lock = threading.Lock()
        self._warming: threading.Thread | None = None
        self._groups: list[str] = []
        self.runs = 0
        """How often Spark was asked for rows, or to write some."""
        self._frames: OrderedDict[tuple[tuple[str, object], ...], str] = OrderedDict()

    @property
    def session(self) -> SparkSession:
        """Our own session."""
        with self._lock:  # look-ups run side by side, and temporary views belong to one session
            if self._session is None:
                session = self._user_session().newSession()
                for key, value in _SETTINGS.items():
                    session.conf.set(key, value)
                self._session = session
            return self._session

    @property
    def user_session(self) -> SparkSession:
        """The session in which DataFrames are handed out."""
        return self._user_session()

    def for_user(self, rows: DataFrame, plan: Relation, names: Sequence[str]) -> DataFrame:
        """A plan over a scan ``t`` of some rows, in the session they belong to; its columns have these names."""
        user = rows.sparkSession
        view = self.view_of(rows)
        try:  # resolved at once, so the view is not needed afterwards
            frame = user.sql(plan_sql(plan, lambda _table: view))
        finally:
            user.catalog.dropTempView(view)
        return frame.selectExpr(*(f"c{i} AS {quote(n)}" for i, n in enumerate(names)))

    @property
    def is_started(self) -> bool:
        """Whether anything has needed Spark so far."""
        return self._session is not None

    def view_of_rows(self, rows: pa.Table, fields: Schema) -> str:
        """A temporary view of rows that are at the driver."""
        ddl = ", ".join(f"c{i} {type_sql(f.type)}" for i, f in enumerate(stored_fields(fields)))
        given = without_empty_batches(by_position(encode(rows, fields)))
        frame = self.session.createDataFrame(given, schema=ddl)
        return self.view_of(decoded(frame, fields))

    def view_of_sql(self, text: str) -> str:
        """A temporary view of a query over other views."""
        return self.view_of(self.session.sql(text))

    def view_of_segments(self, relation: StoredRelation, segments: Sequence[Segment]) -> str:
        """A temporary view of weighted rows on disk; the same one for as long as the segments are the same."""
        # A file outside may be read with one weight and with the other.
        files = tuple(zip(relation.paths(segments), (s.constants for s in segments), strict=True))
        with self._lock:
            known = self._frames.pop(files, None) or self.view_of(self.frame_of_segments(relation, segments))
            self._frames[files] = known
            if len(self._frames) > _KEPT_FRAMES:
                self.session.catalog.dropTempView(self._frames.popitem(last=False)[1])
            return known

    def frame_of_segments(
        self, relation: StoredRelation, segments: Sequence[Segment], session: SparkSession | None = None, *more: str
    ) -> DataFrame:
        """The weighted rows of files, columns named by position; ``more`` are further expressions, where there are files."""
        ddl = stored_ddl(relation.stored)
        session = session or self.session
        if not segments:
            return decoded(session.createDataFrame([], ddl), relation.stored)
        alike: dict[tuple[tuple[str, str | None], ...], list[Segment]] = {}
        for segment in segments:
            alike.setdefault(segment.constants, []).append(segment)
        try:
            frames = []
            for constants, own in alike.items():
                read = session.read.schema(ddl).parquet(*relation.paths(own))
                if constants:
                    frames.append(
                        decoded(read.selectExpr(*_with_constants(relation.stored, constants)), relation.stored)
                    )
                else:
                    frames.append(decoded(read, relation.stored, *more))
            return reduce(lambda a, b: a.unionAll(b), frames)
        except AnalysisException as error:  # it looks for the files at once
            raise _from_spark(error) from error

    def run(
        self, plan: Relation, views: Mapping[str, str], zone: str, small: frozenset[str] = frozenset()
    ) -> DataFrame:
        """The answer of a plan as a DataFrame; ``views`` holds the view of every scan, ``small`` the scans to broadcast."""

        def is_small(part: Relation) -> bool:
            return any(isinstance(n, Scan) and n.table in small for n in nodes_of(part))

        answers = self._answers(plan, views, zone)
        try:
            return self.sql(plan_sql(plan, lambda table: answers.get(table) or views[table], is_small), zone)
        finally:
            self.drop(list(answers.values()))

    def _answers(self, plan: Relation, views: Mapping[str, str], zone: str) -> dict[str, str]:
        """Temporary views of the answers to queries that the algebra has no nodes for, by the names they are scanned under."""
        answers: dict[str, str] = {}
        for query in (n for n in nodes_of(plan) if isinstance(n, SparkQuery)):
            frames = []
            for read in query.inputs:
                text = plan_sql(read, lambda table: answers.get(table) or views[table])
                names = [quote(f.name) for f in schema(read)]
                frames.append(self.sql(text, zone).selectExpr(*(f"c{i} AS {n}" for i, n in enumerate(names))))
            answered: DataFrame = spark_code.answer_frames(query, frames, self.session)
            named = answered.toDF(*column_names(len(query.fields)))
            answers[answer_name(query)] = self.view_of(named)
        return answers

    def sql(self, text: str, zone: str) -> DataFrame:
        """The answer of a text; its time zone is fixed here, where it is resolved."""
        self.session.conf.set("spark.sql.session.timeZone", zone)
        spark_code.introduce(self.session, text)
        try:
            return self.session.sql(text)
        except AnalysisException as error:
            raise InternalError(f"Spark cannot resolve a plan of everview: {error}", attach="the query") from error

    def collect(self, frame: DataFrame, fields: Schema) -> pa.Table:
        """The rows at the driver, as everview gives them out, columns named by position."""
        listed = [f"{encode_sql(f'c{i}', f.type)} AS c{i}" for i, f in enumerate(fields)]
        with self._watched():
            found = frame.selectExpr(*listed).toArrow()
        return decode(found, fields)

    def in_tasks(self, work: Callable[[str, Iterator[P]], Iterator[R]], parts: Sequence[P]) -> list[R]:
        """What some work yields in tasks, each of which has its share of the parts; it is told the application's id."""
        context = self.session.sparkContext
        slices = max(1, min(len(parts), context.defaultParallelism))
        with self._own_python(), self._watched():
            shares: Any = context.parallelize(parts, slices)
            return list(shares.mapPartitions(partial(work, context.applicationId)).collect())

    def in_batches(self, frame: DataFrame, plan: Relation, work: BatchWork, fields: Schema) -> DataFrame:
        """What tasks make of the rows of a plan, given as Arrow batches; columns named by position."""
        listed = [f"{encode_sql(f'c{i}', f.type)} AS c{i}" for i, f in enumerate(schema(plan))]
        ddl = ", ".join(f"c{i} {type_sql(f.type)}" for i, f in enumerate(stored_fields(fields)))
        with self._own_python():
            made = frame.selectExpr(*listed).mapInArrow(work, ddl)
        return decoded(made, fields)

    @contextmanager
    def _own_python(self) -> Iterator[None]:
        """Beside this process tasks have the Python that it has, whatever python3 is elsewhere."""
        context = self.session.sparkContext
        with self._python_lock:
            python = context.pythonExec
            if self.is_local:
                context.pythonExec = sys.executable
            try:
                yield
            finally:
                context.pythonExec = python

    def warm_up(self, work: Callable[[Iterable[int]], Iterable[int]]) -> None:
        """Starts the executors' Python workers, with some work, beside what this process does: look-ups find them started."""

        def run() -> None:
            # What fails here fails again in the first look-up, and is told there.
            with suppress(Exception), self._own_python():
                context = self.session.sparkContext
                slices = context.defaultParallelism
                context.parallelize(range(slices), slices).mapPartitions(work).collect()

        self._warming = threading.Thread(target=run, name="everview-warm-up", daemon=True)
        self._warming.start()

    @property
    def application(self) -> str:
        """The id that Spark has given to this process."""
        return str(self.session.sparkContext.applicationId)

    @property
    def is_local(self) -> bool:
        """Whether tasks run beside this process."""
        return str(self.session.sparkContext.master).startswith("local")

    def close(self) -> None:
        """Removes the copies that tasks of this process have but do not keep; executors elsewhere lose theirs in the end."""
        if self._warming is not None:
            self._warming.join()
        context: Any = None if self._session is None else self._session.sparkContext
        if context is not None and context._jsc is not None and self.is_local:
            shutil.rmtree(copies_folder(context.applicationId), ignore_errors=True)

    def write(self, frame: DataFrame, relation: StoredRelation) -> list[Segment]:
        """Lets executors write the rows into the relation's folder; the segments belong to nobody yet."""
        relation.folder.mkdir(parents=True, exist_ok=True)
        name = f"segment-{uuid.uuid4().hex}"
        stored = stored_fields(relation.stored)
        listed = [
            f"{encode_sql(f'c{i}', f.type)} AS {quote(s.name)}"
            for i, (f, s) in enumerate(zip(relation.stored, stored, strict=True))
        ]
        with self._watched():
            rows = frame.selectExpr(*listed)
            cluster = [rows[quote(stored[c].name)] for c in relation.layout.cluster]
            if cluster:
                rows = rows.sortWithinPartitions(*cluster)
            writer = rows.write.option("compression", "zstd").option("parquet.block.size", _GROUP_BYTES)
            writer.parquet(str(relation.folder / name))
        return [s for s in _written(relation.folder, name) if s.rows]

    def write_observed(
        self, frame: DataFrame, listed: Sequence[str], observed: Sequence[str], relation: StoredRelation
    ) -> tuple[list[Segment], Mapping[str, Any]]:
        """Writes expressions over a user's DataFrame, columns named by position; also the aggregates of one look at it."""
        seen = Observation()
        watched = frame.observe(seen, *(expr(text) for text in observed))
        return self.write(watched.selectExpr(*listed), relation), seen.get

    @contextmanager
    def jobs(self) -> Iterator[Callable[[], int]]:
        """Counts the Spark jobs that run inside: the function given tells how many so far."""
        group = f"everview-{uuid.uuid4().hex}"
        self._groups.append(group)
        try:
            yield lambda: self._count(group)
        finally:
            self._groups.pop()

    def _count(self, group: str) -> int:
        if self._session is None:
            return 0
        return len(self._session.sparkContext.statusTracker().getJobIdsForGroup(group))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        self.runs += 1
        context = self.session.sparkContext
        before = {p: context.getLocalProperty(p) for p in _GROUP_PROPERTIES}
        if self._groups:
            context.setJobGroup(self._groups[-1], "everview", interruptOnCancel=False)
        try:
            yield
        except AnalysisException as error:
            raise InternalError(f"Spark cannot resolve a plan of everview: {error}", attach="the query") from error
        except PySparkException as error:
            raise _from_spark(error) from error
        except Exception as error:  # py4j wraps what Spark has no Python class for
            if _CONDITION.search(str(error)) is None:
                raise
            raise _from_spark(error) from error
        finally:
            for name, value in before.items():  # the thread is the user's, and so are its jobs to come
                context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None removes it

    def drop(self, views: Sequence[str]) -> None:
        """Forgets temporary views."""
        for view in views:
            self.session.catalog.dropTempView(view)

    def view_of(self, frame: DataFrame) -> str:
        """A temporary view of a DataFrame."""
        name = f"everview_{uuid.uuid4().hex}"
        frame.createOrReplaceTempView(name)
        return name


def _with_constants(fields: Schema, constants: tuple[tuple[str, str | None], ...]) -> list[str]:
    """Expressions for the columns of a file outside: those that have one value for all its rows, and those in it."""
    known = dict(constants)
    return [
        f"CAST({literal_sql(known[f.name], STRING)} AS {type_sql(f.type)}) AS {quote(f.name)}"
        if f.name in known
        else quote(f.name)
        for f in stored_fields(fields)
    ]


def _missing(text: str) -> str:
    """The line that says which module is not there."""
    return next(line.strip() for line in text.splitlines() if "ModuleNotFoundError" in line)


def stored_ddl(fields: Schema) -> str:
    """The columns of a relation's files."""
    return ", ".join(f"{quote(f.name)} {type_sql(f.type)}" for f in stored_fields(fields))


def decoded(frame: DataFrame, fields: Schema, *more: str) -> DataFrame:
    """The rows of files as the relation's values, columns named by position; ``more`` are further expressions."""
    names = frame.columns
    listed = [f"{decode_sql(quote(n), f.type)} AS c{i}" for i, (n, f) in enumerate(zip(names, fields, strict=True))]
    return frame.selectExpr(*listed, *more)


def _written(folder: Path, name: str) -> list[Segment]:
    found = []
    for path in sorted((folder / name).glob("*.parquet")):
        rows = pq.read_metadata(path).num_rows
        found.append(Segment(f"{name}/{path.name}", rows, path.stat().st_size))
    return found


def _from_spark(error: Any) -> EvaluationError | CorruptDatabase | Exception:
    text = str(error)
    if _OURS_IS_MISSING.search(text):
        return UnsupportedOperation(
            "work of everview runs in tasks, and the Python of the executors lacks everview or what it needs: "
            f"{_missing(text)}",
            hint="install everview there and name that Python in PYSPARK_PYTHON, or connect with executor_bytes=0.",
        )
    found = _CONDITION.findall(text)
    condition = found[0] if found else "UNKNOWN"
    if any(c.split(".", maxsplit=1)[0] in _UNREADABLE for c in found) or "FileNotFoundException" in text:
        path = re.search(r"(?:file:)?(/\S+?\.parquet)", text)
        where = path[1] if path else "of the database"
        return CorruptDatabase(f"Spark cannot read the segment '{where}'.", hint="restore it from a copy.")
    if condition in ("UNKNOWN", "INTERNAL_ERROR"):
        return error if isinstance(error, Exception) else RuntimeError(text)
    sentence = text.split("]", maxsplit=1)[-1].split(" SQLSTATE", maxsplit=1)[0].strip()
    return EvaluationError(sentence, condition=condition.split(".", maxsplit=1)[0])
