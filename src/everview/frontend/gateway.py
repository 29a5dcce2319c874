"""Our door to Spark: one private session, the database's names as empty temp views, queries in, plans out.

Contract: Spark starts only when a method needs it; a session that the user gave is never stopped or configured: we work in
``newSession()``, which shares its context but has its own temp views and settings: ANSI on, and of the user's those that
decide what a query means (``session_settings``). The active session is the same after a call as before it.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from everview.errors import (
    InternalError,
    InvalidQuery,
    UnknownName,
    UnsupportedOperation,
    UnsupportedQuery,
    did_you_mean,
)
from everview.frontend.answer_in_spark import whole_query
from everview.frontend.arrow_of_frame import arrow_of_frame
from everview.frontend.catalyst_plan import export_plan, quiet_spark_log
from everview.frontend.catalyst_transform import rebind_leaves, view_leaves
from everview.frontend.clock_functions import with_clock
from everview.frontend.hide_expressions import hide_expressions
from everview.frontend.java_archive import archive_options
from everview.frontend.session_settings import (
    analyzer_of,
    apply_settings,
    fingerprint,
    has_own_names,
    read_settings,
    working_in,
)
from everview.frontend.spark_environment import environment_of_spark, is_spark_running
from everview.frontend.spark_errors import from_spark_error
from everview.frontend.spark_frames import empty_rows, frame_of_answer, frame_of_plan, frame_of_rows, plan_of_frame
from everview.frontend.spark_rings import SparkRings
from everview.frontend.spark_types import from_spark_json
from everview.frontend.translate_plan import translate_plan
from everview.frontend.translated import SessionReach, SessionSettings, Translated
from everview.frontend.user_functions import copy_functions, remember_session
from everview.frontend.user_names import copy_views, has_session_names, told_apart
from everview.relational.clock import CLOCK, CLOCK_FIELDS
from everview.relational.evaluate import compile_expression
from everview.relational.nodes import (
    Aggregate,
    Distinct,
    ExceptAll,
    IntersectAll,
    Project,
    Relation,
    Schema,
    UnionMax,
    Window,
)
from everview.relational.quoting import quote
from everview.relational.rules import simplify
from everview.relational.schema import columns, schema
from everview.relational.traverse import expressions_in, nodes_of
from everview.relational.types import Array, Map, holds
from everview.relational.verify import verify

_START_SETTINGS = {
    "spark.master": "local[*]",
    "spark.app.name": "everview",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    # Tasks with Python wait 40 ms for each other's packets by TCP: Spark lets Nagle's algorithm on. From 4.1 on it knows this.
    "spark.python.unix.domain.socket.enabled": "true",
}
"""For a session that we start ourselves, where the user has none: everything on this machine, and quiet."""

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"

_OWN_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    # Spark 4.3 has ASOF JOIN behind this switch; it means what the rewriting of Spark's optimizer says.
    "spark.sql.join.asofJoin.enabled": "true",
    "spark.sql.debug.maxToStringFields": "100000",
    # Else Spark computes parts of a query over rows at hand before it has optimized it, and its answer is not that of tables.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    # Else an aggregate that depends on the order of a group's rows would be cut in two where there are many groups.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(2**31 - 1),
}


class SparkGateway:
    """Translates and runs queries with Spark on behalf of one database.

    ``computes`` says that a session which we start will do more than analyze queries and recompute views now and then;
    ``meanwhile`` is run in a thread of its own while we wait for that session. ``marks`` gives, by name, an alias in the
    plan by which a temporary view of the user's session is known that shows the table or view of that name.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        computes: bool = False,
        meanwhile: Callable[[], None] | None = None,
        marks: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._user_session = spark
        self._computes = computes
        self._meanwhile = meanwhile
        self._marks = marks
        self._session: SparkSession | None = None
        self._fields: dict[str, tuple[str, Schema]] = {}
        self._pending: set[str] = set()
        self._rings: SparkRings | None = None
        self._known: tuple[str, SessionSettings, str | None] | None = None
        self._applied: SessionSettings | None = None
        self._copied_views: set[str] = set()
        self._has_views = False
        self._is_lent = False
        self.started: tuple[str, SessionReach] | None = None
        """In what environment we have started Spark ourselves, and what that session reached then."""
        self.register(CLOCK, CLOCK_FIELDS)

    @property
    def is_started(self) -> bool:
        """Whether this database has needed Spark so far."""
        return self._session is not None

    @property
    def user_session(self) -> SparkSession:
        """The session DataFrames are handed out in: the user's, else the active one, else one that we start."""
        if self._user_session is None:
            self._user_session = SparkSession.getActiveSession()
        if self._user_session is None:
            environment, is_new = environment_of_spark(), not is_spark_running()
            if self._meanwhile is not None:
                threading.Thread(target=self._meanwhile, name="everview start", daemon=True).start()
            self._user_session = _start_session(self._computes)
            reach = self.reach("")
            if is_new and reach is not None:
                self.started = (environment, reach)
        return self._user_session

    def reach(self, text: str) -> SessionReach | None:
        """What of the session decides the meaning of a query; None if there may be more to it than can be told."""
        session = self.user_session
        settings = self._user_settings()
        assert self._known is not None, "read with the settings"
        analyzer = self._known[2]
        if (
            analyzer is None
            or self._is_lent
            or has_own_names(session)
            or has_session_names(session, set(self._fields), text)
        ):
            return None
        return SessionReach(settings, analyzer)

    def register(self, name: str, fields: Schema) -> None:
        """Makes a table or view known to queries (cheap: nothing happens in Spark until a query needs it)."""
        self._fields[name.lower()] = (name, fields)
        self._pending.add(name.lower())

    def unregister(self, name: str) -> None:
        """Forgets a table or view."""
        del self._fields[name.lower()]
        if name.lower() in self._pending:
            self._pending.remove(name.lower())
        elif self._session is not None:
            self._session.catalog.dropTempView(name)

    def table(self, name: str) -> DataFrame:
        """An empty DataFrame that stands for the table or view, to build queries with."""
        if name.lower() not in self._fields:
            known = [n for n, _ in self._fields.values()]
            raise UnknownName(f"table or view '{name}' does not exist.", hint=did_you_mean(name, known))
        self._is_lent = True  # whoever has the DataFrame has our session too, and may make views and functions in it
        with self._working(self._user_settings()) as session:
            return session.table(quote(name))

    def translate(self, query: str | DataFrame) -> Translated:
        """Resolves a query with Spark and translates it.

        Raises:
            InvalidQuery: Spark cannot parse or resolve it (UnknownName for a missing table, view or column).
            UnsupportedQuery: it uses something we do not have.
        """
        if not isinstance(query, str | DataFrame):
            raise InvalidQuery(f"a query is SQL text or a DataFrame, and this is of type {type(query).__name__}.")
        settings = self._user_settings()
        text = query if isinstance(query, str) else None
        with self._working(settings) as session:
            analyzed = with_clock(session, self._analyze(query))
            output = json.loads(analyzed.schema().json())
            try:
                plan = self._with_stand_ins(session, analyzed, text, settings)
            except UnsupportedQuery as refused:
                if self._why_not_whole(session, analyzed, text, settings) is not None:
                    raise
                raise refused.or_recomputed() from refused.__cause__
        verify(plan)
        return Translated(_with_output(simplify(plan), output), text, settings)

    def translate_whole(self, query: str | DataFrame) -> Translated:
        """The query as one that Spark answers as a whole, whatever is in it.

        Raises:
            InvalidQuery: Spark cannot parse or resolve it.
            UnsupportedQuery: its answer is no function of the tables' rows.
        """
        settings = self._user_settings()
        text = query if isinstance(query, str) else None
        with self._working(settings) as session:
            plan = with_clock(session, self._analyze(query))
            return Translated(whole_query(session, plan, text, self._fields, settings), text, settings)

    def _why_not_whole(
        self, session: SparkSession, analyzed: Any, text: str | None, settings: SessionSettings
    ) -> UnsupportedQuery | None:
        """Why Spark could not answer a query as a whole; None if it could."""
        try:
            whole_query(session, analyzed, text or "", self._fields, settings)
        except UnsupportedQuery as refused:
            return refused
        return None

    def _with_stand_ins(
        self, session: SparkSession, analyzed: Any, text: str | None, settings: SessionSettings
    ) -> Relation:
        try:
            return self._translated(session, analyzed, text, settings)
        except UnsupportedQuery:
            with_stand_ins, has_any = hide_expressions(session, analyzed, settings)
            if not has_any:
                raise
            return self._translated(session, with_stand_ins, text, settings)

    def _translated(
        self, session: SparkSession, analyzed: Any, text: str | None, settings: SessionSettings
    ) -> Relation:
        try:
            exported = export_plan(session, analyzed, text)
        except (PySparkException, Py4JJavaError) as error:
            raise UnsupportedQuery(
                f"Spark resolves this query and then fails to rewrite it: {str(error).splitlines()[0]}",
                operator="Catalyst",
                hint="write its subqueries as joins.",
            ) from error
        plan = translate_plan(exported, self._fields_of, settings.time_zone)
        _refuse_compared_maps(plan)
        for expression in (e for node in nodes_of(plan) for e in expressions_in(node)):
            compile_expression(expression)  # some functions are known and refuse some arguments
        return plan

    def recompute(
        self,
        query: str | DataFrame,
        tables: Mapping[str, pa.Table],
        time_zone: str | None = None,
        settings: tuple[tuple[str, str], ...] = (),
    ) -> pa.Table:
        """Spark's own answer to a query when each named table holds the given rows.

        The settings are those that a view was made with; without a time zone, those of the user's session now.
        """
        used = self._user_settings() if time_zone is None else SessionSettings(time_zone, settings)
        with self._working(used) as session:
            contents = {n.lower(): self._filled(n, t) for n, t in tables.items()}
            plan = rebind_leaves(session, with_clock(session, self._analyze(query)), contents)
            if self._rings is not None:
                plan = self._rings.runnable(plan)
            try:
                return arrow_of_frame(frame_of_plan(session, plan))
            except AnalysisException as error:  # Spark resolves some queries that it cannot run
                raise UnsupportedQuery(
                    f"Spark resolves this query and cannot run it: {str(error).splitlines()[0]}",
                    operator="Spark",
                    hint="the view is maintained; to verify it, make a view of each part that Spark can run.",
                ) from error

    def answer(self, query: str, read: Callable[[str], pa.Table]) -> pa.Table:
        """Spark's answer to any query, deterministic or not, over the tables and views as ``read`` gives them."""
        with self._working(self._user_settings()) as session:
            plan = self._analyze(query)
            names = [n for n in view_leaves(session, plan) if n in self._fields]
            contents = {n: self._filled(n, read(self._fields[n][0])) for n in names}
            return arrow_of_frame(frame_of_plan(session, rebind_leaves(session, plan, contents)))

    def to_dataframe(self, rows: pa.Table) -> DataFrame:
        """The rows as a DataFrame of the user's session."""
        return frame_of_answer(self.user_session, rows)

    def _fields_of(self, name: str) -> Schema | None:
        known = self._fields.get(name.lower())
        return None if known is None else known[1]

    def _filled(self, name: str, rows: pa.Table) -> Any:
        """The analyzed plan of a DataFrame with these rows and the table's exact schema."""
        session = self._session
        assert session is not None, "only called while working in it"
        _, fields = self._fields[name.lower()]
        return plan_of_frame(frame_of_rows(session, rows, fields))

    def _analyze(self, query: str | DataFrame) -> Any:
        session = self._session
        assert session is not None, "only called while working in it"
        if isinstance(query, DataFrame):
            return told_apart(session, plan_of_frame(query), set(self._fields), self._marks())
        try:
            with quiet_spark_log():
                _require_query(session, query)
                plan = plan_of_frame(session.sql(query))
                return told_apart(session, plan, set(self._fields), self._marks()) if self._has_views else plan
        except PySparkException as error:
            raise from_spark_error(error, [n for n, _ in self._fields.values()]) from None
        except Py4JJavaError as error:  # what Spark did not foresee: its own mistake
            raise UnsupportedQuery(
                f"Spark fails to analyze the query: {error.java_exception.toString()}",
                operator="Spark's analyzer",
                hint="this is an error of Spark's; say the same in other words.",
            ) from error

    def _user_settings(self) -> SessionSettings:
        """What the user's session says now."""
        now = fingerprint(self.user_session)
        if self._known is None or self._known[0] != now:
            self._known = (now, read_settings(self.user_session), analyzer_of(self.user_session))
        return self._known[1]

    def private_session(self) -> SparkSession:
        """A new session beside the user's, with what we need set."""
        session = self.user_session.newSession()
        for key, value in _OWN_SETTINGS.items():
            session.conf.set(key, value)
        return session

    @contextmanager
    def _working(self, settings: SessionSettings) -> Iterator[SparkSession]:
        """Our session, with these settings, every table and ring known to it, and active."""
        if self._session is None:
            session = self.private_session()
            self._session, self._rings = session, SparkRings(session)
        with working_in(self._session):
            if self._applied != settings:
                apply_settings(settings, self._session)
                self._applied = settings
            remember_session(self.user_session)
            copy_functions(self.user_session, self._session)
            self._has_views = copy_views(self.user_session, self._session, self._copied_views, set(self._fields))
            if self._rings is not None:
                self._rings.register_new()
            for key in sorted(self._pending):
                name, fields = self._fields[key]
                empty_rows(self._session, fields).createOrReplaceTempView(quote(name))
            self._pending.clear()
            yield self._session


def _require_query(session: Any, text: str) -> None:
    """Refuses a statement: Spark would run it at once, and a view or SELECT is a query."""
    parsed = session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    class_named = session._jvm.java.lang.Class.forName
    logical = "org.apache.spark.sql.catalyst.plans.logical"
    if any(class_named(f"{logical}.{kind}").isInstance(parsed) for kind in ("Command", "ParsedStatement")):
        raise InvalidQuery(
            f"a query was expected, and this is a statement ({text.split(maxsplit=1)[0].upper()} …).",
            hint="tables are changed with insert, delete, upsert and apply, or with db.sql(…).",
        )


def _start_session(computes: bool) -> SparkSession:
    """A session of our own; one that does not compute much is started sooner.

    Raises:
        UnsupportedOperation: there is no Java to run Spark on.
    """
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise UnsupportedOperation(
            "Spark needs Java 17 or newer, and no 'java' was found.",
            hint="install it (apt-get install openjdk-17-jre-headless, brew install openjdk@17), or set JAVA_HOME.",
        )
    builder = SparkSession.builder
    for key, value in _START_SETTINGS.items():
        builder = builder.config(key, value)
    with nullcontext() if computes else _quick_start():
        return builder.getOrCreate()


@contextmanager
def _quick_start() -> Iterator[None]:
    """Options for the JVM that is started meanwhile, unless the user has some of their own.

    It mostly analyzes queries over empty tables: that ends before Java's second compiler has paid for itself.
    """
    added = [name for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS") if name not in os.environ]
    os.environ.update(dict.fromkeys(added, JAVA_OPTIONS))
    if "SPARK_SUBMIT_OPTS" in added:
        os.environ["SPARK_SUBMIT_OPTS"] = f"{JAVA_OPTIONS} {archive_options()}".rstrip()
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _refuse_compared_maps(plan: Relation) -> None:
    """Spark sorts the entries of maps that it groups by; ours keep the order in which they were made."""
    for node in nodes_of(plan):
        match node:
            case Aggregate():
                compared = [k.type for k in node.keys] + [a.type for c in node.aggregates if c.distinct for a in c.args]
            case Window():
                compared = [e.type for e in node.partition]
            case Distinct() | ExceptAll() | IntersectAll() | UnionMax():
                compared = [f.type for f in schema(node)]
            case _:
                compared = []
        if any(holds(t, Map) for t in compared):
            raise UnsupportedQuery(
                "maps cannot be grouped by or compared.",
                operator="map",
                hint="use map_entries, or to_json, of the map.",
            )


def _with_output(plan: Relation, spark_schema: dict[str, Any]) -> Relation:
    """The plan with exactly the names Spark gives the columns; that the types agree is checked here for every query."""
    derived = schema(plan)
    names = tuple(f["name"] for f in spark_schema["fields"])
    for ours, theirs in zip(derived, spark_schema["fields"], strict=True):
        expected = from_spark_json(theirs["type"])
        is_loose = isinstance(ours.type, Array | Map) and isinstance(expected, Array | Map)
        if ours.type != expected and not is_loose:
            raise InternalError(f"column {theirs['name']} has type {ours.type} where Spark has {expected}.")
    if tuple(f.name for f in derived) == names:
        return plan
    return Project(plan, columns(plan), names)
