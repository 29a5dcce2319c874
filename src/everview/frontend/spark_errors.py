"""Spark's analysis and parse errors as ours: what was wrong, in a line, with a hint for a near miss."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from everview.errors import EverviewError, InvalidQuery, UnknownName, did_you_mean
from everview.frontend.catalyst_function_names import FUNCTION_NAMES
from everview.relational.definitions.ordered_aggregates import ORDERED_AGGREGATES
from everview.relational.definitions.sum_aggregates import SUM_AGGREGATES

_REGISTER = "functions of your own are found if they are registered in the session: connect(spark=…)."
_QUOTED = re.compile(r"`([^`]+)`")


def from_spark_error(error: Any, known_names: Iterable[str]) -> EverviewError:
    """The everview error for a PySpark exception raised while a query was resolved."""
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        name = _last_part(parameters.get("relationName", "?"))
        return UnknownName(f"table or view '{name}' does not exist.", hint=did_you_mean(name, list(known_names)))
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = _last_part(parameters.get("objectName", "?"))
        candidates = [_last_part(p) for p in re.split(r",\s*", parameters.get("proposal", "")) if p]
        listed = f"the columns here are {', '.join(candidates)}." if candidates else None
        return UnknownName(f"column '{name}' cannot be resolved.", hint=did_you_mean(name, candidates) or listed)
    if condition == "UNRESOLVED_ROUTINE":
        name = _last_part(parameters.get("routineName", "?"))
        known = [
            *FUNCTION_NAMES.values(),
            *SUM_AGGREGATES,
            *ORDERED_AGGREGATES,
            "count",
            "min",
            "max",
            "row_number",
            "rank",
        ]
        near = did_you_mean(name, list(dict.fromkeys(known)))
        return InvalidQuery(f"there is no function '{name}'.", hint=near or _REGISTER)
    if condition == "UNBOUND_SQL_PARAMETER":
        name = parameters.get("name", "?")
        given = f"give it to db.sql as args: {{'{name}': …}}, or a list for markers '?'."
        return InvalidQuery(f"the query has a parameter '{name}', and no value for it was given.", hint=given)
    if condition == "MISSING_GROUP_BY":
        return InvalidQuery(
            "the query has an aggregate beside columns, and no GROUP BY.",
            hint="add GROUP BY with these columns, or aggregate them too, with any_value(…) say.",
        )
    if "pythonudaf" in parameters.get("prettyName", ""):
        return InvalidQuery(
            f"the aggregate of a registered ring has no {parameters.get('syntax', 'such clause').removesuffix(' CLAUSE')}.",
            hint="rows with a NULL argument do not count: write CASE WHEN condition THEN x END, or a subquery.",
        )
    return InvalidQuery(_first_lines(str(error)))


def _last_part(name: str) -> str:
    parts = _QUOTED.findall(name)
    return parts[-1] if parts else name


def _first_lines(message: str) -> str:
    """The message without the JVM's stack and the echo of the logical plan."""
    kept = []
    for line in message.strip().splitlines():
        if line.startswith(("JVM stacktrace", "\tat ", "'", "+-")):
            break
        kept.append(line.rstrip())
    return "\n".join(kept).strip()
