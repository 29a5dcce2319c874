from __future__ import annotations

import pytest

from everview.relational.expressions import FALSE, TRUE, Call, Case, Cast, Column, Expression, Literal
from everview.relational.nodes import Aggregate, Field, Filter, Join, JoinKind, Project, Scan
from everview.relational.rules.fold_constants import fold_constants
from everview.relational.types import BOOLEAN, INT8, INT32, STRING

R = Scan("r", (Field("a", INT32),))
A = Column(0, INT32)
ONE, TWO, ZERO = (Literal(v, INT32) for v in (1, 2, 0))


def _plus(left: Expression, right: Expression) -> Expression:
    return Call("+", (left, right), INT32)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_plus(ONE, TWO), Literal(3, INT32)),
        (_plus(A, _plus(ONE, ONE)), _plus(A, TWO)),
        (_plus(ONE, Literal(None, INT32)), Literal(None, INT32)),
        (Cast(Literal("12", STRING), INT32), Literal(12, INT32)),
        (Case(((TRUE, _plus(ONE, ONE)),), A), Case(((TRUE, TWO),), A)),
    ],
)
def test_constants_are_computed(before: Expression, after: Expression) -> None:
    """Calls and casts of constants become constants, wherever they stand in an expression."""
    assert fold_constants(Project(R, (before,), ("x",))) == Project(R, (after,), ("x",))


@pytest.mark.parametrize(
    "failing", [Call("div", (ONE, ZERO), INT32), Cast(Literal("x", STRING), INT32), Cast(Literal(300, INT32), INT8)]
)
def test_failing_expressions_stay(failing: Expression) -> None:
    """What has no value is an error only for the rows that reach it, not of the query."""
    assert fold_constants(Project(R, (failing,), ("x",))) is None


def test_conditions_are_folded() -> None:
    """Filters and joins see constants too; names and marks stay."""
    less = Call("<", (TWO, ONE), BOOLEAN)
    assert fold_constants(Filter(R, less)) == Filter(R, FALSE)
    folded = fold_constants(Join(R, R, JoinKind.MARK, less, "found"))
    assert folded == Join(R, R, JoinKind.MARK, FALSE)
    assert isinstance(folded, Join)
    assert folded.mark == "found"


def test_nothing_to_fold() -> None:
    """None where no constant expression stands, and for nodes the rule does not look into."""
    assert fold_constants(Project(R, (_plus(A, ONE),), ("x",))) is None
    assert fold_constants(Filter(R, Call("isnull", (A,), BOOLEAN))) is None
    assert fold_constants(Aggregate(R, (_plus(ONE, ONE),), (), ("k",))) is None
