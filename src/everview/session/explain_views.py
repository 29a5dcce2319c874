"""What ``explain`` says of a view: what its backend says, and of the expressions that Spark's code or Python computes."""

from __future__ import annotations

from collections.abc import Iterator

from everview.backends.base import Backend
from everview.catalog import ViewDefinition
from everview.errors import UnsupportedQuery
from everview.relational.definitions.spark_aggregates import (
    is_bitmap,
    is_python_aggregate,
    is_sketch,
    is_spark_aggregate,
)
from everview.relational.expressions import SparkExpression, walk
from everview.relational.format import format_aggregate, format_plan
from everview.relational.nodes import Aggregate, Relation
from everview.relational.schema import schema
from everview.relational.spark_code import is_function
from everview.relational.sql_text import sql_text
from everview.relational.traverse import expressions_in, inputs, nodes_of

_BY_SPARK = (
    "computed by Spark's own code:",
    "  each costs one call of the JVM a batch (some milliseconds, and microseconds a row), for arguments that are new to it",
)
_AGGREGATES_BY_SPARK = (
    "aggregates computed by Spark's own code, from all rows of each group that changes:",
    "  each costs one small Spark job a batch (a fraction of a second), and microseconds for each row of these groups",
)
_AGGREGATES_BY_PYTHON = (
    "aggregates computed by functions of Python, from all rows of each group that changes:",
    "  each is called in this process, as Spark would call it, once for each of these groups; in Spark's tasks by workers",
)
_SKETCHES = (
    "sketches that grow and shrink with their rows:",
    "  each keeps for every group how many rows have each register and rank: O(log N) a row, and a deleted row needs no other",
)
_BITMAPS = (
    "bitmaps that grow and shrink with their rows:",
    "  each keeps for every group how many rows set each bit: O(log N) for each bit of a row, and a deleted row needs no other",
)
_BY_PYTHON = (
    "computed by functions of Python:",
    "  each is called in this process, as Spark would call it, for arguments that are new to it; in Spark's tasks by workers",
)


def explain_view(backend: Backend, view: ViewDefinition, mode: str) -> str:
    """How a view is maintained; in words also what Spark's code and functions of Python compute in it."""
    told = backend.explain(view.name, mode)
    return told + explain_spark_code(view.plan, keeps_sketches=backend.name == "embedded") if mode == "text" else told


def explain_query(backend: Backend, query: ViewDefinition) -> str:
    """What a view of a query would cost, and the query as algebra."""
    try:
        costs = ["a view of this query would be maintained so:", *backend.cost_lines(query)]
    except UnsupportedQuery as refused:
        costs = [f"a view of this query would be refused: {refused.message}"]
    by_others = explain_spark_code(query.plan, keeps_sketches=backend.name == "embedded")
    return "\n".join(costs) + "\n" + by_others + "query:\n" + format_plan(query.plan)


def explain_spark_code(plan: Relation, *, keeps_sketches: bool) -> str:
    """Lines that name each such expression and say what a batch costs; none where we compute all ourselves."""
    found = dict(_found(plan, keeps_sketches))
    lines = []
    for title, cost in (_BY_SPARK, _BY_PYTHON, _SKETCHES, _BITMAPS, _AGGREGATES_BY_SPARK, _AGGREGATES_BY_PYTHON):
        texts = [text for text, kind in found.items() if kind == title]
        lines += [title, *(f"  {text}" for text in texts), cost] if texts else []
    return "".join(f"{line}\n" for line in lines)


def _found(plan: Relation, keeps_sketches: bool) -> Iterator[tuple[str, str]]:
    """The text of each such expression, and the title under which it is listed."""
    for node in nodes_of(plan):
        names = tuple(f.name for i in inputs(node) for f in schema(i))
        for part in (part for e in expressions_in(node) for part in walk(e)):
            if isinstance(part, SparkExpression):
                yield sql_text(part, names), (_BY_PYTHON if is_function(part) else _BY_SPARK)[0]
        for call in node.aggregates if isinstance(node, Aggregate) else ():
            if is_spark_aggregate(call):
                kind = _AGGREGATES_BY_PYTHON if is_python_aggregate(call) else _AGGREGATES_BY_SPARK
                if keeps_sketches and is_sketch(call):
                    kind = _SKETCHES
                elif keeps_sketches and is_bitmap(call):
                    kind = _BITMAPS
                yield format_aggregate(call, names), kind[0]
