"""Aggregate functions as Spark SQL text."""

from __future__ import annotations

from everview.backends.spark.sql_expressions import Names, expression_sql
from everview.errors import UnsupportedQuery
from everview.relational.definitions.ordered_aggregates import ORDERED_AGGREGATES, directions_of
from everview.relational.definitions.spark_aggregates import is_spark_aggregate, spark_function
from everview.relational.nodes import AggregateCall
from everview.relational.types import Array


def aggregate_sql(call: AggregateCall, names: Names, over: str | None = None, only: str | None = None) -> str:
    """The text of an aggregate, or of the same as a window function, which has no FILTER and so gets a CASE.

    ``only`` is one more condition on the rows that count.

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
    conditions = [
        *([] if only is None else [only]),
        *([] if call.filter is None else [expression_sql(call.filter, names)]),
    ]
    condition = " AND ".join(f"({c})" for c in conditions) or None
    if call.function in ("min_by", "max_by"):
        value, order = args
        known = f"{order} IS NOT NULL" + ("" if condition is None else f" AND {condition}")
        pair = f"CASE WHEN {known} THEN struct({order} AS o, {value} AS v) END"
        return f"({call.function[:3]}({pair}){_tail(over)}).v"
    if over is not None and condition is not None:
        first = args[0] if args else "1"
        args = [f"CASE WHEN {condition} THEN {first} END", *args[1:]]
        condition = None
    if is_spark_aggregate(call):
        text = spark_function(call).sql(args[:-1])
        text = text.replace("(", "(DISTINCT ", 1) if call.distinct else text
        return text if condition is None else f"{text} FILTER (WHERE {condition})"
    if call.function in ORDERED_AGGREGATES:
        return _ordered_sql(call, args, condition, over)
    distinct = "DISTINCT " if call.distinct else ""
    text = f"{call.function}({distinct}{', '.join(args) or '*'})"
    if condition is not None:
        text += f" FILTER (WHERE {condition})"
    return text + _tail(over)


def _ordered_sql(call: AggregateCall, args: list[str], condition: str | None, over: str | None) -> str:
    """The text of an aggregate over ordered values, with the order that ``relational.definitions`` gives it."""
    distinct = "DISTINCT " if call.distinct else ""
    where = "" if condition is None else f" FILTER (WHERE {condition})"
    tail = f"{where}{_tail(over)}"
    value = args[0]
    match call.function:
        case "percentile" | "percentile_disc" | "percentile_desc" | "percentile_disc_desc":
            if over is None and not call.distinct and not isinstance(call.type, Array):
                order = "DESC" if call.function.endswith("_desc") else "ASC"
                name = "percentile_disc" if "disc" in call.function else "percentile_cont"
                return f"{name}({args[1]}) WITHIN GROUP (ORDER BY {value} {order}){tail}"
            if call.function == "percentile":
                return f"percentile({distinct}{value}, {args[1]}){tail}"
            raise UnsupportedQuery(
                "the spark backend has no percentile_disc over a window, nor a descending one of several percentages.",
                operator="percentile_disc",
            )
        case "approx_percentile":  # so accurate that it is exact
            return f"approx_percentile({distinct}{value}, {args[1]}, 2147483647){tail}"
        case "mode" | "mode_first":
            return f"mode({value}, true){tail}"
        case "mode_last":
            return f"mode() WITHIN GROUP (ORDER BY {value} DESC){tail}"
        case "collect_list" | "collect_set":
            return f"sort_array({call.function}({distinct}{value}){tail})"
        case "list_in_order":
            return f"collect_list({value}){tail}"
        case "max_by_k" | "min_by_k":
            known = f"CASE WHEN {args[1]} IS NOT NULL THEN struct({args[1]} AS o, {value} AS v) END"
            ordered = f"sort_array(collect_list({known}){tail}, {'false' if call.function == 'max_by_k' else 'true'})"
            return f"transform(slice(nullif({ordered}, array()), 1, {args[2]}), x -> x.v)"
        case "listagg":
            words = [_DIRECTIONS[word] for word in directions_of(call)]
            terms = [*(f"{arg} {word}" for arg, word in zip(args[3:], words, strict=True)), value]
            order = ", ".join(terms[:1] if call.distinct else terms)
            return f"listagg({distinct}{value}, {args[1]}) WITHIN GROUP (ORDER BY {order}){tail}"
        case name:
            return f"{name}({distinct}{value}){tail}"


_DIRECTIONS = {"af": "ASC NULLS FIRST", "al": "ASC NULLS LAST", "df": "DESC NULLS FIRST", "dl": "DESC NULLS LAST"}


def _tail(over: str | None) -> str:
    return "" if over is None else f" {over}"
