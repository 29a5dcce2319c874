"""Catalyst's trees as files: without what the translator does not read, and with ids that are the same in every run."""

from __future__ import annotations

import json
from typing import Any

from everview.frontend.catalyst_json import CatalystNode

QUERIES = {
    "filter_project": "SELECT a + b AS total, c FROM t1 WHERE a > 1 AND c <> 'x'",
    "left_join": "SELECT t1.a, t2.d FROM t1 LEFT JOIN t2 ON t1.a = t2.a AND t2.b > 0",
    "group_by": "SELECT c, COUNT(*) AS n, SUM(DISTINCT b) AS total FROM t1 GROUP BY c HAVING COUNT(*) > 1",
    "not_in": "SELECT a FROM t1 WHERE b NOT IN (SELECT b FROM t2)",
    "top_of_union": "SELECT a FROM t1 UNION ALL SELECT b FROM t3 ORDER BY a DESC LIMIT 3",
}
"""Over ``t1(a, b, c)``, ``t2(a, b, d)`` and ``t3(b, e)`` of the small corpus tables."""

_READ = frozenset(
    {
        "aggregateExpressions",
        "class",
        "condition",
        "dataType",
        "desc",
        "direction",
        "exprId",
        "global",
        "groupingExpressions",
        "identifier",
        "isDistinct",
        "joinType",
        "limitExpr",
        "name",
        "nullOrdering",
        "nullable",
        "num-children",
        "order",
        "output",
        "projectList",
        "timeZoneId",
        "value",
    }
)
"""The fields that the translation of these queries reads."""


def stored_form(tree: CatalystNode) -> str:
    """The JSON of a tree's nodes in pre-order, as ``parse_tree`` takes it, one node a line."""
    numbers: dict[int, int] = {}
    nodes = [_stripped(fields, numbers) for fields in _in_order(tree)]
    return "[\n" + ",\n".join(json.dumps(node, sort_keys=True) for node in nodes) + "\n]\n"


def _in_order(tree: CatalystNode) -> list[dict[str, Any]]:
    return [tree.fields, *(fields for child in tree.children for fields in _in_order(child))]


def _stripped(fields: dict[str, Any], numbers: dict[int, int]) -> dict[str, Any]:
    return {key: _value(key, fields[key], numbers) for key in sorted(fields) if key in _READ}


def _value(key: str, value: Any, numbers: dict[int, int]) -> Any:
    match key, value:
        case "exprId", {"id": int() as number}:
            return {"id": numbers.setdefault(number, len(numbers) + 1)}
        case "desc", {"identifier": {"table": str() as table}}:
            return {"identifier": {"table": table}}
        case _, [*items]:
            return [_value("", item, numbers) for item in items]
        case _, {"class": _, "num-children": _}:
            return _stripped(value, numbers)
        case _:
            return value
