from __future__ import annotations

import pytest

from everview.relational.expressions import FALSE, TRUE, Call, Column, Expression, Literal, conjunction
from everview.relational.nodes import Field, Filter, Join, JoinKind, Scan, UnionAll
from everview.relational.rules.push_join_condition import push_join_condition
from everview.relational.types import BOOLEAN, INT32

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
S = Scan("s", (Field("c", INT32), Field("d", INT32)))
A, B, C, D = (Column(i, INT32) for i in range(4))
EQUAL = Call("=", (A, C), BOOLEAN)


def _positive(expression: Expression) -> Expression:
    return Call(">", (expression, Literal(0, INT32)), BOOLEAN)


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE])
def test_condition_on_the_right_filters_the_right(kind: JoinKind) -> None:
    """L ⟕[c ∧ q] R = L ⟕[c] σ[q](R), and the same for the other kinds that only look for partners there."""
    pushed = push_join_condition(Join(R, S, kind, conjunction((EQUAL, _positive(D))), "found"))
    assert pushed == Join(R, Filter(S, _positive(B)), kind, EQUAL)
    assert isinstance(pushed, Join)
    assert pushed.mark == "found"


def test_semi_join_filters_its_left() -> None:
    """L ⋉[c ∧ p] R = σ[p](L) ⋉[c] R; a constant counts as a condition on the left."""
    both = Join(R, S, JoinKind.SEMI, conjunction((EQUAL, _positive(B))))
    assert push_join_condition(both) == Join(Filter(R, _positive(B)), S, JoinKind.SEMI, EQUAL)
    assert push_join_condition(Join(R, S, JoinKind.SEMI, FALSE)) == Join(Filter(R, FALSE), S, JoinKind.SEMI, TRUE)


def test_anti_join_keeps_left_rows_that_match_nothing() -> None:
    """L ▷[c ∧ p] R = σ[p is not true](L) ⊎ (σ[p](L) ▷[c] R): where p is NULL the row stays, too."""
    p = _positive(B)
    not_true = Call("not", (Call("coalesce", (p, FALSE), BOOLEAN),), BOOLEAN)
    expected = UnionAll((Filter(R, not_true), Join(Filter(R, p), S, JoinKind.ANTI, EQUAL)))
    assert push_join_condition(Join(R, S, JoinKind.ANTI, conjunction((p, EQUAL)))) == expected


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.MARK, JoinKind.SINGLE])
def test_left_rows_of_outer_joins_are_not_filtered(kind: JoinKind) -> None:
    """Their left rows appear whether they match or not."""
    assert push_join_condition(Join(R, S, kind, conjunction((EQUAL, _positive(B))))) is None


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.RIGHT, JoinKind.FULL])
def test_other_joins_stay(kind: JoinKind) -> None:
    """Right and full joins keep right rows; the inner join has its own rule."""
    assert push_join_condition(Join(R, S, kind, conjunction((EQUAL, _positive(D))))) is None


def test_equalities_stay() -> None:
    """A condition that reads both sides has nowhere to go."""
    assert push_join_condition(Join(R, S, JoinKind.SEMI, EQUAL)) is None
    assert push_join_condition(R) is None
