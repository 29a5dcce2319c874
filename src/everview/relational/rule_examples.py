"""Two relations and a few short forms, for the examples in the rules' docstrings: l(a, b) and r(c, d), of integers."""

from __future__ import annotations

from typing import Final

from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.format import format_plan
from everview.relational.nodes import Field, Relation, Scan
from everview.relational.types import BOOLEAN, INT64

L: Final = Scan("l", (Field("a", INT64, True), Field("b", INT64, True)))
R: Final = Scan("r", (Field("c", INT64, True), Field("d", INT64, True)))
a, b, c, d = (Column(i, INT64, True) for i in range(4))
"""The columns of l, then those of r as a join of the two has them."""


def equal(left: Expression, right: Expression | int) -> Expression:
    """The call left = right."""
    return Call("=", (left, _value(right)), BOOLEAN)


def less(left: Expression, right: Expression | int) -> Expression:
    """The call left < right."""
    return Call("<", (left, _value(right)), BOOLEAN)


def both(left: Expression, right: Expression) -> Expression:
    """The call left AND right."""
    return Call("and", (left, right), BOOLEAN)


def plus(left: Expression, right: Expression | int) -> Expression:
    """The call left + right."""
    return Call("+", (left, _value(right)), INT64)


def _value(given: Expression | int) -> Expression:
    return Literal(given, INT64) if isinstance(given, int) else given


def show(plan: Relation | None) -> None:
    """Prints a plan."""
    print("nothing to do" if plan is None else format_plan(plan).rstrip())
