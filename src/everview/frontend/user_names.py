"""Functions and temp views of the user's session, made known to sessions of ours.

A session of ours is new: it shares the user's tables but not the functions and views that live in a session. Before a query is
read they are copied, as Spark holds them. Names of the database's own tables and views win over the user's.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakSet

from pyspark.sql import SparkSession

from everview.frontend.spark_text import sequence

_sessions: Final[WeakSet[SparkSession]] = WeakSet()
"""The sessions that databases of this process were opened with."""


def remember_session(session: SparkSession) -> None:
    """Notes a session of the user's, whose functions views may call from now on."""
    _sessions.add(session)


def copy_all_functions(target: SparkSession) -> None:
    """Registers the temporary functions of all sessions of the user's."""
    for session in list(_sessions):
        copy_functions(session, target)


def copy_functions(source: SparkSession, target: SparkSession) -> None:
    """Registers the temporary functions of one session in another."""
    theirs, ours = (_state(s).functionRegistry() for s in (source, target))
    jvm: Any = source._jvm
    for listed in sequence(_state(source).catalog().listTemporaryFunctions()):
        name, some = listed.funcName(), jvm.scala.Option.apply
        identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, some("session"), some("system"))
        found = theirs.lookupFunctionEntry(identifier)
        if found.isDefined():
            entry = found.get()
            ours.registerFunction(identifier, entry._1(), entry._2())


def copy_views(source: SparkSession, target: SparkSession, copied: set[str], own: set[str]) -> None:
    """Makes the temp views of one session known in another; ``copied`` are those that were, and is brought up to date."""
    theirs, ours = (_state(s).catalog() for s in (source, target))
    names = {n.table().lower() for n in sequence(theirs.listLocalTempViews("*"))} - own
    for gone in (copied - names) - own:
        ours.dropTempView(gone)
    for name in names:
        ours.createTempView(name, theirs.getRawTempView(name).get(), True)
    copied.clear()
    copied.update(names)


def has_session_names(session: SparkSession) -> bool:
    """Whether a session has temporary functions or views of its own."""
    catalog = _state(session).catalog()
    return bool(catalog.listTemporaryFunctions().nonEmpty() or catalog.listLocalTempViews("*").nonEmpty())


def _state(session: Any) -> Any:
    return session._jsparkSession.sessionState()
