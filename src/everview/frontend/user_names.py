"""Temp views of the user's session, made known to sessions of ours.

A session of ours is new: it shares the user's tables but not the views that live in a session. Before a query is read they
are copied. In a text the names of the database's own tables and views win over the user's. Where Spark has already read a name
in the user's session, in a DataFrame or below one of their views, it stays what it is there (``told_apart``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from everview.errors import UnsupportedQuery
from everview.frontend.catalyst_transform import run_transform, table_of_view, under_identities
from everview.frontend.mentioned_names import may_mention
from everview.frontend.spark_frames import frame_of_plan, plan_of_frame
from everview.relational.quoting import quote


def copy_views(source: SparkSession, target: SparkSession, copied: set[str], own: set[str]) -> bool:
    """Makes the temp views of one session known in another; ``copied`` are those that were, and is brought up to date.

    Spark holds a view made by SQL as its text. One that mentions a name of ``own`` is copied as it is resolved at its home.

    Returns:
        Whether a query may meet views of the user's: under names that are not of ``own``, or shared by all sessions.
    """
    theirs, ours = (_state(s).catalog() for s in (source, target))
    local = _local_views(source)
    names = local - own
    for gone in (copied - names) - own:
        ours.dropTempView(gone)
    for name in names:
        view = theirs.getRawTempView(name).get()
        text = view.tableMeta().viewText() if view.plan().isEmpty() else None
        if text is not None and text.isDefined() and any(mentioned in text.get().lower() for mentioned in own):
            resolved = plan_of_frame(source.table(quote(name)))
            frame_of_plan(target, resolved).createOrReplaceTempView(quote(name))
        else:
            ours.createTempView(name, view, True)
    copied.clear()
    copied.update(names)
    return bool(names) or bool(theirs.globalTempViewManager().listViewNames("*").nonEmpty())


def told_apart(session: Any, plan: Any, own: set[str], marks: Mapping[str, str]) -> Any:
    """The plan without views of other sessions that have a name of ``own``.

    One that shows the database's table or view of that name (``marks`` has the alias in its plan) is replaced by what stands
    for that in this session; of any other what is below it takes its place.
    """

    def visit(node: Any) -> Any:
        name = table_of_view(node)
        if name is None or name not in own or _is_stand_in(session, node):
            return node
        below = node.child()
        is_alias = below.nodeName() == "SubqueryAlias"
        is_shown = name in marks and is_alias and below.identifier().name() == marks[name]
        return under_identities(session._jvm, plan_of_frame(session.table(quote(name))), node) if is_shown else below

    return run_transform(session, plan.transformUpWithSubqueries, visit)


def foreign_rows(name: str | None, operator: str) -> UnsupportedQuery:
    """The refusal of rows that are no table of the database, by the name that the query has for them."""
    what = "data that" if name is None else f"'{name}' of the Spark session, which"
    return UnsupportedQuery(
        f"the query reads {what} is not a table of this database.",
        operator=operator,
        hint="db.create_table(name, frame) takes rows in; db.spark_table(name) is a DataFrame over a table that is there.",
    )


def _is_stand_in(session: Any, view: Any) -> bool:
    """Whether a view is one of those that we have made, in this session, to stand for tables."""
    leaf = view.child()
    return bool(leaf.nodeName() == "LogicalRDD" and leaf.otherCopyArgs().apply(0).equals(session._jsparkSession))


def has_session_names(session: SparkSession, own: set[str], text: str) -> bool:
    """Whether a session has temporary functions, or views that the text may mean: names of ``own`` come first in it."""
    if _state(session).catalog().listTemporaryFunctions().nonEmpty():
        return True
    return any(may_mention(text, name) for name in _local_views(session) - own)


def _local_views(session: SparkSession) -> set[str]:
    """The names of a session's temporary views, in small letters, by one call: there may be many."""
    listed = str(_state(session).catalog().listLocalTempViews("*").mkString("\n"))
    return {line[1:-1].replace("``", "`").lower() for line in listed.split("\n") if line}


def _state(session: Any) -> Any:
    return session._jsparkSession.sessionState()
