"""Spark's analysis and parse errors as ours: what was wrong, in a line, with a hint for a near miss."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from everview.errors import EverviewError, InvalidQuery, UnknownName, did_you_mean

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
