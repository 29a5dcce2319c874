"""Queries that Spark answers as a whole, because the algebra has no nodes for them.

``whole_query`` makes a ``SparkQuery`` of a resolved query, ``SparkAnswers`` runs it over given rows. Law: the answer is a
function of the rows that the query reads. So it is refused where the answer could depend on chance, on the moment, on files and
tables outside, or on rows of which Spark may choose any. Text that comes from a folder is checked again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import validate_utf8

from everview.errors import CorruptDatabase, EvaluationError, UnsupportedQuery
from everview.frontend.arrow_of_frame import converted
from everview.frontend.catalyst_plan import refuse_empty_pivots, refuse_nondeterministic
from everview.frontend.catalyst_transform import rebind_leaves, table_of_view
from everview.frontend.clock_functions import with_clock
from everview.frontend.hide_expressions import function_name, refuse_chance, refused_as_nondeterministic
from everview.frontend.spark_frames import empty_rows, frame_of_plan, frame_of_rows, plan_of_frame
from everview.frontend.spark_rings import SparkRings
from everview.frontend.spark_text import is_a, sequence
from everview.frontend.spark_types import from_spark_json
from everview.frontend.translated import SessionSettings
from everview.frontend.user_names import foreign_rows
from everview.relational.arrow import arrow_schema
from everview.relational.arrow_text import require_unicode
from everview.relational.nodes import Field, Scan, Schema, SparkQuery
from everview.relational.quoting import quote
from everview.relational.schema import schema
from everview.relational.types import String

_CONSTANT: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef", "UnionLoopRef"})
"""Leaves that are the same whatever tables hold."""
_LIMITS: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail", "LimitAndOffset"})
_KEEPING_ORDER: Final = frozenset({"Project", "SubqueryAlias", "Filter", "GlobalLimit", "LocalLimit", "Offset"})
_LISTS: Final = frozenset({"CollectList", "CollectSet"})
_OF_ANY_ROW: Final = frozenset({*_LISTS, "First", "Last", "AnyValue"})
"""Aggregates whose answer depends on the order in which Spark meets the rows, though it does not call them so."""
_KEPT: Final = 256

_held: dict[str, Any] = {}
"""Catalyst's plans of the queries that views of this process were made from, by the name of their frame."""


def whole_query(
    session: Any, plan: Any, text: str | None, names: Mapping[str, tuple[str, Schema]], settings: SessionSettings
) -> SparkQuery:
    """A resolved query as one that Spark answers as a whole.

    Args:
        session: The session in which it was resolved.
        plan: Catalyst's plan, over the clock where it asks for the time.
        text: The query, if it is text; a DataFrame is held by this process.
        names: What queries may read, by name in small letters: the name as it was given, and its columns.
        settings: Those of the session that give it its meaning.

    Raises:
        UnsupportedQuery: its answer is no function of the tables' rows, or has a type that everview does not store.
    """
    read = _check(session, plan, frozenset(names))
    columns = json.loads(plan.schema().json())["fields"]
    fields = tuple(Field(f["name"], from_spark_json(f["type"]), f["nullable"]) for f in columns)
    frame = uuid.uuid4().hex
    _held[frame] = plan
    known = [names[name] for name in read]
    inputs = tuple(Scan(name, columns) for name, columns in known)
    called = tuple(name for name, _ in known)
    return SparkQuery(inputs, called, fields, text, frame, settings.time_zone, settings.others)


class SparkAnswers:
    """Answers queries in one private session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._rings = SparkRings(session)
        self._analyzed: dict[tuple[Any, ...], Any] = {}

    def rows(self, query: SparkQuery, tables: Sequence[pa.Table]) -> pa.Table:
        """The rows of a query whose inputs hold these rows."""
        given = zip(tables, query.inputs, strict=True)
        frames = [frame_of_rows(self._session, rows, schema(read)) for rows, read in given]
        answer = converted(self._frame(query, frames, self._session))
        for column in answer.columns:
            require_unicode(column, "the query")
        return answer.cast(arrow_schema(query.fields))

    def frame(self, query: SparkQuery, frames: Sequence[DataFrame], target: SparkSession) -> DataFrame:
        """The same over DataFrames of another session; the answer is one of it."""
        answer = self._frame(query, frames, target)
        numbered = answer.toDF(*(f"c{i}" for i in range(len(query.fields))))  # names may occur twice
        columns = [numbered[f"c{i}"] for i in range(len(query.fields))]
        checked = [
            validate_utf8(c) if isinstance(f.type, String) else c for c, f in zip(columns, query.fields, strict=True)
        ]
        return numbered.select(*(c.alias(f.name) for c, f in zip(checked, query.fields, strict=True)))

    def _frame(self, query: SparkQuery, frames: Sequence[DataFrame], target: SparkSession) -> DataFrame:
        named = zip(query.names, frames, strict=True)
        contents = {name.lower(): plan_of_frame(frame) for name, frame in named}
        self._rings.register_new()
        plan = self._rings.runnable(self._resolved(query))
        return frame_of_plan(target, rebind_leaves(self._session, plan, contents))

    def _resolved(self, query: SparkQuery) -> Any:
        """Catalyst's plan of a query, over empty views in the place of what it reads."""
        if query.frame in _held:
            return _held[query.frame]
        if query.text is None:
            raise EvaluationError(
                "the view was made from a DataFrame that Spark is to answer, and the process that had it is gone.",
                condition="DATAFRAME_IS_GONE",
                hint="give it again with db.replace_view, or write it as SQL text.",
            )
        columns = tuple(schema(i) for i in query.inputs)
        key = (query.text, query.names, columns)
        if key not in self._analyzed:
            if len(self._analyzed) >= _KEPT:
                self._analyzed.clear()
            self._analyzed[key] = self._analyze(query.text, dict(zip(query.names, columns, strict=True)))
        return self._analyzed[key]

    def _analyze(self, text: str, inputs: Mapping[str, Schema]) -> Any:
        session = self._session
        for name, fields in inputs.items():
            empty_rows(session, fields).createOrReplaceTempView(quote(name))
        try:
            plan = with_clock(session, plan_of_frame(session.sql(text)))
            _check(session, plan, frozenset(name.lower() for name in inputs))
        except UnsupportedQuery as refused:
            # What creates views does not let it through, so somebody has changed the text.
            raise CorruptDatabase(f"the stored query {text!r} is not one that was created here.") from refused
        finally:
            for name in inputs:
                session.catalog.dropTempView(name)
        return plan


def _check(session: Any, plan: Any, names: frozenset[str]) -> list[str]:
    """What of these names a plan reads; raises if its answer depends on more than that."""
    written = plan.toJSON()
    refuse_nondeterministic(written)
    refuse_empty_pivots(written)
    read: dict[str, None] = {}
    for node, alias in _nodes(plan, names, read, None):
        kind = node.nodeName()
        if not node.children().size() and kind not in _CONSTANT:
            raise foreign_rows(alias, kind)
        if kind == "Sample":
            raise UnsupportedQuery("TABLESAMPLE draws rows by chance.", operator="TABLESAMPLE")
        if kind in _LIMITS and not _is_ordered(node):
            raise UnsupportedQuery(
                "LIMIT without ORDER BY may keep any rows, so a view over it has no well-defined content.",
                operator="LIMIT",
                hint="say which rows are first: ORDER BY … LIMIT …, or create_view(…, order_by='primary key').",
            )
        if kind == "ScriptTransformation":
            raise UnsupportedQuery(
                "Spark does not say whether a script gives the same rows each time.",
                operator="TRANSFORM",
                hint="use a function of Python.",
            )
        for expression in sequence(node.expressions()):
            _check_expression(session, expression, parent="")
    return list(read)


def _nodes(
    plan: Any, names: frozenset[str], read: dict[str, None], alias: str | None
) -> Iterator[tuple[Any, str | None]]:
    """The nodes of a plan and of its subqueries, each with the nearest name above it.

    What is below views of the database is left out; they are noted in ``read``.
    """
    name = table_of_view(plan)
    if name in names:
        read[name] = None
        return
    yield plan, alias
    below = plan.identifier().name() if plan.nodeName() == "SubqueryAlias" else alias
    for child in sequence(plan.children()):
        yield from _nodes(child, names, read, below)
    for subquery in sequence(plan.subqueries()):
        yield from _nodes(subquery, names, read, None)


def _is_ordered(limit: Any) -> bool:
    below = limit
    while below.nodeName() in _KEEPING_ORDER:
        (below,) = sequence(below.children())
    return bool(below.nodeName() == "Sort" and getattr(below, "global")())


def _check_expression(session: Any, expression: Any, parent: str) -> None:
    kind = expression.getClass().getSimpleName()
    if kind in _OF_ANY_ROW and not (kind in _LISTS and parent == "SortArray"):
        name = function_name(expression)
        raise UnsupportedQuery(
            f"the aggregate {name} depends on the order in which rows arrive, so a view over it has no defined content.",
            operator=name,
            hint="sort_array orders a list; min, max, min_by and max_by say which row they mean.",
        )
    refuse_chance(function_name(expression))
    children = sequence(expression.children())
    is_its_own = all(c.deterministic() for c in children) and not is_a(session, expression, "PlanExpression")
    if not expression.deterministic() and is_its_own and kind not in _LISTS:
        raise refused_as_nondeterministic(expression)
    for child in children:
        _check_expression(session, child, parent if kind == "AggregateExpression" else kind)
