"""What ``explain`` says of the expressions of a view that Spark's own code computes."""

from __future__ import annotations

from everview.relational.expressions import SparkExpression, walk
from everview.relational.format import format_expression
from everview.relational.nodes import Relation
from everview.relational.schema import schema
from everview.relational.traverse import expressions_in, inputs, nodes_of


def explain_spark_code(plan: Relation) -> str:
    """Lines that name each such expression and say what a batch costs; none where we compute all ourselves."""
    found: dict[str, None] = {}
    for node in nodes_of(plan):
        names = tuple(f.name for i in inputs(node) for f in schema(i))
        parts = (part for e in expressions_in(node) for part in walk(e) if isinstance(part, SparkExpression))
        found.update(dict.fromkeys(format_expression(part, names) for part in parts))
    if not found:
        return ""
    lines = ["computed by Spark's own code:", *(f"  {text}" for text in found)]
    lines.append(
        "  each costs one call of the JVM a batch (some milliseconds, and microseconds a row; of a Python function a Spark "
        "job), for arguments that are new to it"
    )
    return "\n".join(lines) + "\n"
