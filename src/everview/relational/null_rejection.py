"""Which conditions let no row through that has NULL in some columns."""

from __future__ import annotations

from collections.abc import Iterable

from everview.relational.expressions import Call, Cast, Column, Expression, columns_of
from everview.relational.functions import function_named
from everview.relational.functions.registry import Nulls


def columns_never_null(conditions: Iterable[Expression]) -> frozenset[int]:
    """The columns that cannot be NULL where all the conditions hold.

    >>> from everview.relational.types import BOOLEAN, INT64
    >>> sorted(columns_never_null([Call("=", (Column(0, INT64), Column(2, INT64)), BOOLEAN)]))
    [0, 2]
    """
    return frozenset(i for c in conditions for i in columns_of(c) if rejects_nulls(c, frozenset({i})))


def rejects_nulls(condition: Expression, columns: frozenset[int]) -> bool:
    """Whether the condition cannot be true when all these columns are NULL."""
    if isinstance(condition, Call):
        match condition.function:
            case "and":
                return any(rejects_nulls(a, columns) for a in condition.args)
            case "or":
                return all(rejects_nulls(a, columns) for a in condition.args)
            case "isnotnull":
                return _is_null_with(condition.args[0], columns)
    return _is_null_with(condition, columns)


def _is_null_with(expression: Expression, columns: frozenset[int]) -> bool:
    """Whether the expression is NULL when all these columns are."""
    match expression:
        case Column():
            return expression.index in columns
        case Cast():
            return _is_null_with(expression.child, columns)
        case Call():
            strict = function_named(expression.function).nulls in (Nulls.STRICT, Nulls.STRICT_OR_NULL)
            return strict and any(_is_null_with(a, columns) for a in expression.args)
        case _:
            return False
