from __future__ import annotations

import pytest

from everview.relational.expressions import FALSE, Call, Column, Expression, Literal, conjunction
from everview.relational.nodes import Field, Filter, Join, JoinKind, Scan
from everview.relational.rules.push_filter_into_join import push_filter_into_join
from everview.relational.types import BOOLEAN, INT32

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
S = Scan("s", (Field("c", INT32), Field("d", INT32)))
A, B, C, D = (Column(i, INT32) for i in range(4))
EQUAL = Call("=", (A, C), BOOLEAN)
LESS = Call("<", (B, D), BOOLEAN)


def _positive(expression: Expression) -> Expression:
    return Call(">", (expression, Literal(0, INT32)), BOOLEAN)


def test_inner_join_places_each_conjunct() -> None:
    """σ[l ∧ r ∧ b](L ⋈[c] R) = σ[l](L) ⋈[c ∧ b] σ[r](R)."""
    filtered = Filter(Join(R, S, JoinKind.INNER, EQUAL), conjunction((_positive(B), _positive(D), LESS)))
    left, right = Filter(R, _positive(B)), Filter(S, _positive(B))
    assert push_filter_into_join(filtered) == Join(left, right, JoinKind.INNER, conjunction((EQUAL, LESS)))


def test_inner_join_gives_away_its_own_condition() -> None:
    """A condition of an inner join that reads one side moves there; nothing happens where there is none."""
    join = Join(R, S, JoinKind.INNER, conjunction((EQUAL, _positive(C))))
    assert push_filter_into_join(join) == Join(R, Filter(S, _positive(A)), JoinKind.INNER, EQUAL)
    assert push_filter_into_join(Join(R, S, JoinKind.INNER, EQUAL)) is None
    assert push_filter_into_join(Join(R, S, JoinKind.INNER, FALSE)) is None


def test_constant_conditions_stay_in_an_inner_join() -> None:
    """A constant belongs to no side, and is kept once."""
    filtered = Filter(Join(R, S, JoinKind.INNER, FALSE), FALSE)
    assert push_filter_into_join(filtered) == Join(R, S, JoinKind.INNER, FALSE)


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.SINGLE])
def test_left_joins_take_only_left_conditions(kind: JoinKind) -> None:
    """Through a left join only conditions on the left go, and to the left."""
    filtered = Filter(Join(R, S, kind, EQUAL), conjunction((_positive(B), _positive(D))))
    pushed = Join(Filter(R, _positive(B)), S, kind, EQUAL)
    assert push_filter_into_join(filtered) == Filter(pushed, _positive(D))
    assert push_filter_into_join(Filter(pushed, _positive(D))) is None


@pytest.mark.parametrize("kind", [JoinKind.SEMI, JoinKind.ANTI])
def test_semi_and_anti_joins_pass_filters_on(kind: JoinKind) -> None:
    """Their output is left rows, so the whole filter goes left."""
    assert push_filter_into_join(Filter(Join(R, S, kind, EQUAL), LESS_OF_LEFT)) == Join(
        Filter(R, LESS_OF_LEFT), S, kind, EQUAL
    )


LESS_OF_LEFT = Call("<", (A, B), BOOLEAN)


def test_mark_stays_above() -> None:
    """A condition on the mark is no condition on the left input; the mark keeps its name."""
    found = Column(2, BOOLEAN, nullable=False)
    marked = Join(R, S, JoinKind.MARK, EQUAL, "found")
    pushed = push_filter_into_join(Filter(marked, conjunction((found, _positive(B)))))
    assert pushed == Filter(Join(Filter(R, _positive(B)), S, JoinKind.MARK, EQUAL), found)
    assert isinstance(pushed, Filter)
    assert isinstance(pushed.child, Join)
    assert pushed.child.mark == "found"
    assert push_filter_into_join(Filter(marked, found)) is None


@pytest.mark.parametrize("kind", [JoinKind.RIGHT, JoinKind.FULL])
def test_joins_that_pad_the_left_take_nothing(kind: JoinKind) -> None:
    """Below, a filter would turn partners into NULLs instead of removing rows."""
    assert push_filter_into_join(Filter(Join(R, S, kind, EQUAL), _positive(B))) is None
    assert push_filter_into_join(Filter(Join(R, S, kind, EQUAL), _positive(D))) is None


def test_conditions_of_other_joins_stay() -> None:
    """A left join's own condition decides about partners, not about rows."""
    assert push_filter_into_join(Join(R, S, JoinKind.LEFT, conjunction((EQUAL, _positive(B))))) is None
    assert push_filter_into_join(Filter(R, _positive(A))) is None
