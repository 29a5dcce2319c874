"""From a query to algebra: by what an earlier process has kept, where that is certain to be the same, else by Spark.

Certain means: the query is text that says nothing of the present moment; the session that would resolve it is one that we would
start ourselves in this environment, or one with the very same settings and with nothing of the user's own in its catalog
(tables, views that the text may mean, functions, plugged-in catalogs, extensions); and nobody has been handed our private
session, in which they could have put something. In all other cases Spark is asked, and nothing is kept. Refusals are kept too,
with their words, where they do not depend on files or on how much memory Spark has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from everview.algebra.registry import registered_rings
from everview.errors import CorruptDatabase, EverviewError, InvalidQuery, UnknownName, UnsupportedQuery
from everview.frontend.mentioned_names import may_mention
from everview.frontend.spark_environment import environment_of_spark, is_spark_running
from everview.frontend.translated import SessionReach, SessionSettings, Translated
from everview.frontend.translation_cache import TranslationCache
from everview.relational.clock import CLOCK
from everview.relational.nodes import Schema
from everview.relational.serialize import plan_from_json, plan_to_json, schema_to_json
from everview.relational.traverse import tables_of
from everview.relational.verify import verify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.frontend.gateway import SparkGateway

Names = Mapping[str, Schema]
"""The tables and views that a query may read, with their columns."""

_OF_THE_MOMENT: Final = re.compile(r"\b(now|today|yesterday|tomorrow)\b|\\u|\\[0-7]{3}", re.IGNORECASE)
"""Words that Spark's parser reads as a time when they stand in a literal (DATE'today'), and other ways to spell them."""
_ABOUT_FILES: Final = re.compile(r"path|file|infer", re.IGNORECASE)
_OF_THE_MACHINE: Final = frozenset({"Catalyst", "Spark's analyzer"})
"""Refusals that say that Spark itself failed, perhaps for lack of stack or memory."""
_REFUSALS: Final[dict[str, type[EverviewError]]] = {
    c.__name__: c for c in (InvalidQuery, UnknownName, UnsupportedQuery)
}


class Translator:
    """Translates the queries of one database."""

    def __init__(self, cache: TranslationCache | None, gateway: Callable[[], SparkGateway], has_session: bool) -> None:
        self._cache = cache
        self._gateway = gateway
        self._has_session = has_session

    def translate(self, query: str | DataFrame, names: Names) -> Translated:
        """The algebra of a query over the tables and views of these names.

        Raises:
            InvalidQuery: Spark cannot parse or resolve it (UnknownName for a missing table, view or column).
            UnsupportedQuery: it uses something we do not have.
        """
        cache = self._cache
        if cache is None or not isinstance(query, str) or _OF_THE_MOMENT.search(query):
            return self._gateway().translate(query)
        is_running = self._has_session or is_spark_running()
        reach = self._gateway().reach(query) if is_running else _known_reach(cache, environment_of_spark())
        if reach is not None:
            known = _find(cache, query, names, reach)
            if known is not None:
                return known
        elif is_running:
            return self._gateway().translate(query)
        return self._ask_spark(cache, query, names)

    def _ask_spark(self, cache: TranslationCache, query: str, names: Names) -> Translated:
        gateway = self._gateway()
        try:
            translated = gateway.translate(query)
        except (InvalidQuery, UnknownName, UnsupportedQuery) as error:
            reach = gateway.reach(query)
            if reach is not None and _is_lasting(error):
                cache.keep(_key(query, names, reach), _refusal(error))
            raise
        finally:
            if gateway.started is not None:
                environment, started = gateway.started
                cache.keep(
                    ["session", environment], [started.settings.time_zone, started.settings.others, started.others]
                )
        reach = gateway.reach(query)
        mentioned = _mentioned(query, names)
        reads = {table.lower() for table in tables_of(translated.plan)} - {CLOCK}
        if reach is not None and reach.settings == translated.settings and reads <= {n.lower() for n in mentioned}:
            try:
                written = plan_to_json(translated.plan)
            except RecursionError:  # deeper than Python can follow; the plan itself is sound
                return translated
            cache.keep(_key(query, mentioned, reach), {"plan": written})
        return translated


def _known_reach(cache: TranslationCache, environment: str) -> SessionReach | None:
    """What the sessions were like that we have started in such an environment."""
    kept = cache.find(["session", environment])
    if kept is None:
        return None
    zone, others, rest = kept
    return SessionReach(SessionSettings(zone, tuple((key, value) for key, value in others)), rest)


def _find(cache: TranslationCache, query: str, names: Names, reach: SessionReach) -> Translated | None:
    kept = cache.find(_key(query, _mentioned(query, names), reach)) or cache.find(_key(query, names, reach))
    if kept is None:
        return None
    if "refusal" in kept:
        raise _refused(kept)
    try:
        plan = plan_from_json(kept["plan"])
    except CorruptDatabase:  # not what we write, though whole: Spark writes it anew
        return None
    verify(plan)
    return Translated(plan, query, reach.settings)


def _mentioned(query: str, names: Names) -> Names:
    """The tables and views that the text may mean: the others play no part in what it means."""
    return {n: f for n, f in names.items() if may_mention(query, n)}


def _key(query: str, names: Names, reach: SessionReach) -> Any:
    tables = sorted((name.lower(), name, schema_to_json(fields)) for name, fields in names.items())
    rings = [(r.name, r.arity, r.returns, r.ring.is_commutative) for r in registered_rings()]
    settings = reach.settings
    return ["query", query, tables, settings.time_zone, settings.others, reach.others, sorted(rings, key=str)]


def _is_lasting(error: EverviewError) -> bool:
    if isinstance(error, UnsupportedQuery):
        return error.operator not in _OF_THE_MACHINE
    return not _ABOUT_FILES.search(error.message)


def _refusal(error: EverviewError) -> dict[str, Any]:
    operator = error.operator if isinstance(error, UnsupportedQuery) else None
    return {"refusal": type(error).__name__, "message": error.message, "hint": error.hint, "operator": operator}


def _refused(kept: dict[str, Any]) -> EverviewError:
    if kept["operator"] is not None:
        return UnsupportedQuery(kept["message"], operator=kept["operator"], hint=kept["hint"])
    return _REFUSALS[kept["refusal"]](kept["message"], hint=kept["hint"])
