"""What ``explain`` says of a view: what its backend says, and of the expressions that Spark's code or Python computes."""

from __future__ import annotations

from collections.abc import Iterator

from everview.backends.base import Backend
from everview.catalog import ViewDefinition
from everview.relational.expressions import SparkExpression, walk
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.spark_code import is_function
from everview.relational.sql_text import sql_text
from everview.relational.traverse import expressions_in, inputs, nodes_of

_BY_SPARK = (
    "computed by Spark's own code:",
    "  each costs one call of the JVM a batch (some milliseconds, and microseconds a row), for arguments that are new to it",
)
_BY_PYTHON = (
    "computed by functions of Python:",
    "  each is called in this process, as Spark would call it, for arguments that are new to it; in Spark's tasks by workers",
)


def explain_view(backend: Backend, view: ViewDefinition, mode: str) -> str:
    """How a view is maintained; in words also what Spark's code and functions of Python compute in it."""
    told = backend.explain(view.name, mode)
    return told + explain_spark_code(view.plan) if mode == "text" else told


def explain_spark_code(plan: Relation) -> str:
    """Lines that name each such expression and say what a batch costs; none where we compute all ourselves."""
    found = dict(_found(plan))
    lines = []
    for (title, cost), is_python in ((_BY_SPARK, False), (_BY_PYTHON, True)):
        texts = [text for text, kind in found.items() if kind == is_python]
        lines += [title, *(f"  {text}" for text in texts), cost] if texts else []
    return "".join(f"{line}\n" for line in lines)


def _found(plan: Relation) -> Iterator[tuple[str, bool]]:
    """The text of each such expression, and whether it is a function of Python."""
    for node in nodes_of(plan):
        names = tuple(f.name for i in inputs(node) for f in schema(i))
        for part in (part for e in expressions_in(node) for part in walk(e)):
            if isinstance(part, SparkExpression):
                yield sql_text(part, names), is_function(part)
