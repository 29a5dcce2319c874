"""Temp views of the user's session, made known to sessions of ours.

A session of ours is new: it shares the user's tables but not the views that live in a session. Before a query is read they
are copied, as Spark holds them. Names of the database's own tables and views win over the user's.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from everview.frontend.spark_text import sequence


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
