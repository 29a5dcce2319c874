"""Compute what does not depend on the row."""

from __future__ import annotations

from dataclasses import replace

from everview.errors import EvaluationError
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Cast, Expression, Literal, children, transform
from everview.relational.nodes import Filter, Join, Project, Relation


def fold_constants(relation: Relation) -> Relation | None:
    """f(c₁, …, cₙ) = c for constants cᵢ, in filters, projections and join conditions.

    An expression that fails is left as it is: it is an error only for rows that reach it.

    >>> from everview.relational.rule_examples import L, a, less, plus, show
    >>> from everview.relational.types import INT64
    >>> plan = Filter(L, less(a, plus(Literal(1, INT64), 2)))
    >>> show(plan)
    filter (a < (1 + 2))
      scan l [a, b]
    >>> show(fold_constants(plan))
    filter (a < 3)
      scan l [a, b]
    """
    match relation:
        case Filter():
            folded = _fold(relation.condition)
            return None if folded == relation.condition else replace(relation, condition=folded)
        case Join():
            folded = _fold(relation.condition)
            return None if folded == relation.condition else replace(relation, condition=folded)
        case Project():
            expressions = tuple(_fold(e) for e in relation.expressions)
            return None if expressions == relation.expressions else replace(relation, expressions=expressions)
        case _:
            return None


def _fold(expression: Expression) -> Expression:
    return transform(expression, _fold_once)


def _fold_once(expression: Expression) -> Expression | None:
    if not isinstance(expression, Call | Cast) or not children(expression):
        return None
    if not all(isinstance(c, Literal) for c in children(expression)):
        return None
    try:
        return Literal(evaluate(expression), expression.type)
    except EvaluationError:
        return None
