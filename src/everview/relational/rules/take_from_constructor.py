"""A part of what was just put together is that part."""

from __future__ import annotations

from dataclasses import replace

from everview.relational.expressions import Call, Expression, Literal, transform
from everview.relational.nodes import Filter, Project, Relation


def take_from_constructor(relation: Relation) -> Relation | None:
    """struct(e₁, …, eₙ).i = eᵢ and array(e₁, …, eₙ)[i] = eᵢ, in filters and projections.

    What the other parts might have raised is not raised, as in Spark, which has the same rule.

    >>> from everview.relational.rule_examples import L, a, b, show
    >>> from everview.relational.types import INT32, INT64, Struct
    >>> pair = Call("struct", (a, b), Struct(("x", "y"), (INT64, INT64)))
    >>> plan = Project(L, (Call("getfield", (pair, Literal(1, INT32)), INT64),), ("y",))
    >>> show(plan)
    project [getfield(struct(a, b), 1) as y]
      scan l [a, b]
    >>> show(take_from_constructor(plan))
    project [b as y]
      scan l [a, b]
    """
    match relation:
        case Filter():
            condition = transform(relation.condition, _taken)
            return None if condition == relation.condition else replace(relation, condition=condition)
        case Project():
            expressions = tuple(transform(e, _taken) for e in relation.expressions)
            return None if expressions == relation.expressions else replace(relation, expressions=expressions)
        case _:
            return None


def _taken(expression: Expression) -> Expression | None:
    match expression:
        case Call("getfield", (Call("struct", parts), Literal(place))) | Call(
            "subscript" | "get", (Call("array", parts), Literal(place))
        ) if isinstance(place, int) and 0 <= place < len(parts):
            part = parts[place]
            return part if part.type == expression.type else None
        case _:
            return None
