from __future__ import annotations

import pytest

from everview.relational.expressions import TRUE, Call, Column, Expression, Literal, conjunction
from everview.relational.join_condition import Equality, JoinCondition, split_join_condition
from everview.relational.nodes import Field, Join, JoinKind, Scan
from everview.relational.types import BOOLEAN, INT32

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
S = Scan("s", (Field("c", INT32), Field("d", INT32)))
A, B, C, D = (Column(i, INT32) for i in range(4))


def _compare(left: Expression, right: Expression, name: str = "=") -> Expression:
    return Call(name, (left, right), BOOLEAN)


def _plus(left: Expression, right: Expression) -> Expression:
    return Call("+", (left, right), INT32)


def _split(condition: Expression) -> JoinCondition:
    return split_join_condition(Join(R, S, JoinKind.INNER, condition))


def test_equalities_are_between_the_sides() -> None:
    """Each side over its own input's columns, whichever way round it was written."""
    assert _split(conjunction((_compare(A, D), _compare(C, B)))) == JoinCondition(
        (Equality(A, B, False), Equality(B, A, False)), ()
    )


def test_null_safe_equality() -> None:
    """``<=>`` is an equality that NULLs satisfy."""
    assert _split(_compare(C, A, "<=>")).equalities == (Equality(A, A, True),)


def test_sides_may_be_computed() -> None:
    """Any expression over one side alone can be a key."""
    condition = _compare(_plus(C, D), _plus(A, Literal(1, INT32)))
    assert _split(condition).equalities == (Equality(_plus(A, Literal(1, INT32)), _plus(A, B), False),)


@pytest.mark.parametrize(
    "condition",
    [
        _compare(A, C, "<"),
        _compare(A, B),
        _compare(C, D),
        _compare(A, Literal(1, INT32)),
        _compare(Literal(1, INT32), D),
        _compare(_plus(A, C), D),
        _compare(D, _plus(A, C)),
        Call("or", (_compare(A, C), _compare(B, D)), BOOLEAN),
    ],
)
def test_the_rest_is_checked_pair_by_pair(condition: Expression) -> None:
    """Inequalities, equalities within one side or with a constant, sides that mix the inputs, disjunctions."""
    assert _split(condition) == JoinCondition((), (condition,))


def test_mixed_conditions_keep_their_order() -> None:
    """Equalities first, then the residual, each as it was written."""
    less, more = _compare(A, D, "<"), _compare(B, C, ">")
    assert _split(conjunction((less, _compare(A, C), more))) == JoinCondition((Equality(A, A, False),), (less, more))


def test_cross_join_has_no_condition() -> None:
    """TRUE is neither an equality nor a residual."""
    assert _split(TRUE) == JoinCondition((), ())
