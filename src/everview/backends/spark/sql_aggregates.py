"""Aggregate functions as Spark SQL text."""

from __future__ import annotations

from everview.backends.spark.sql_expressions import Names, expression_sql
from everview.errors import UnsupportedQuery
from everview.relational.nodes import AggregateCall


def aggregate_sql(call: AggregateCall, names: Names, over: str | None = None) -> str:
    """The text of an aggregate, or of the same as a window function, which has no FILTER and so gets a CASE.

    MIN_BY and MAX_BY choose among equals the extreme value, as ``relational.definitions`` says; Spark's own leave it open.

    Raises:
        UnsupportedQuery: a ring of the user's, which Spark does not know.
    """
    if call.is_ring:
        raise UnsupportedQuery(
            f"the spark backend cannot sum in the ring '{call.function}'.",
            operator=call.function,
            hint="the embedded backend can; on Spark write the ring's parts as sums.",
        )
    args = [expression_sql(a, names) for a in call.args]
    condition = None if call.filter is None else expression_sql(call.filter, names)
    if call.function in ("min_by", "max_by"):
        value, order = args
        known = f"{order} IS NOT NULL" + ("" if condition is None else f" AND {condition}")
        pair = f"CASE WHEN {known} THEN struct({order} AS o, {value} AS v) END"
        return f"({call.function[:3]}({pair}){_tail(over)}).v"
    if over is not None and condition is not None:
        first = args[0] if args else "1"
        args = [f"CASE WHEN {condition} THEN {first} END", *args[1:]]
        condition = None
    distinct = "DISTINCT " if call.distinct else ""
    text = f"{call.function}({distinct}{', '.join(args) or '*'})"
    if condition is not None:
        text += f" FILTER (WHERE {condition})"
    return text + _tail(over)


def _tail(over: str | None) -> str:
    return "" if over is None else f" {over}"
