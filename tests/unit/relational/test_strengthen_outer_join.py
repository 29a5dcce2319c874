from __future__ import annotations

import pytest

from everview.relational.expressions import TRUE, Call, Cast, Column, Expression, Literal, conjunction
from everview.relational.nodes import Field, Filter, Join, JoinKind, Scan
from everview.relational.rules.strengthen_outer_join import strengthen_outer_join
from everview.relational.types import BOOLEAN, INT32, INT64

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
S = Scan("s", (Field("c", INT32), Field("d", INT32)))
T = Scan("t", (Field("e", INT32),))
A, B, C, D, E = (Column(i, INT32) for i in range(5))
EQUAL = Call("=", (A, C), BOOLEAN)
ONE = Literal(1, INT32)


def _test(name: str, *args: Expression) -> Expression:
    return Call(name, args, BOOLEAN)


ON_LEFT, ON_RIGHT = _test(">", B, ONE), _test(">", D, ONE)


@pytest.mark.parametrize(
    ("kind", "condition", "stronger"),
    [
        (JoinKind.LEFT, ON_RIGHT, JoinKind.INNER),
        (JoinKind.RIGHT, ON_LEFT, JoinKind.INNER),
        (JoinKind.FULL, ON_LEFT, JoinKind.LEFT),
        (JoinKind.FULL, ON_RIGHT, JoinKind.RIGHT),
        (JoinKind.FULL, conjunction((ON_LEFT, ON_RIGHT)), JoinKind.INNER),
        (JoinKind.FULL, _test("<", B, D), JoinKind.INNER),
    ],
)
def test_padding_that_is_filtered_away(kind: JoinKind, condition: Expression, stronger: JoinKind) -> None:
    """σ[p](L ⟕ R) = σ[p](L ⋈ R) where p rejects NULLs of R; right and full joins side by side."""
    before, after = (Filter(Join(R, S, k, EQUAL), condition) for k in (kind, stronger))
    assert strengthen_outer_join(before) == after


@pytest.mark.parametrize(
    "condition",
    [
        _test("isnotnull", D),
        _test("not", ON_RIGHT),
        _test(">", Cast(D, INT64), Literal(1, INT64)),
        _test("or", ON_RIGHT, _test("=", C, ONE)),
        _test("=", Call("+", (B, D), INT32), ONE),
        _test("isnotnull", Call("+", (B, D), INT32)),
    ],
)
def test_conditions_that_reject_nulls(condition: Expression) -> None:
    """Strict functions, casts, NOT NULL and disjunctions all of whose parts reject."""
    before = Filter(Join(R, S, JoinKind.LEFT, EQUAL), condition)
    assert strengthen_outer_join(before) == Filter(Join(R, S, JoinKind.INNER, EQUAL), condition)


@pytest.mark.parametrize(
    "condition",
    [
        TRUE,
        ON_LEFT,
        _test("isnull", D),
        _test("not", _test("isnull", D)),
        _test("<=>", C, D),
        _test("or", ON_RIGHT, ON_LEFT),
        _test("=", Call("coalesce", (D, ONE), INT32), ONE),
    ],
)
def test_conditions_that_may_hold_for_nulls(condition: Expression) -> None:
    """A condition that can be true, or is not known to be false, for padded rows keeps the join as it is."""
    assert strengthen_outer_join(Filter(Join(R, S, JoinKind.LEFT, EQUAL), condition)) is None


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SINGLE])
def test_other_joins_stay(kind: JoinKind) -> None:
    """An inner join has no padding; SINGLE must still fail on a second partner."""
    assert strengthen_outer_join(Filter(Join(R, S, kind, EQUAL), ON_RIGHT)) is None


def test_condition_of_an_inner_join_above() -> None:
    """It filters its inputs: an outer join on its left, or with shifted columns on its right, is strengthened."""
    outer, inner = (Join(R, S, kind, EQUAL) for kind in (JoinKind.LEFT, JoinKind.INNER))
    on_left_input = _test("=", D, E)
    assert strengthen_outer_join(Join(outer, T, JoinKind.INNER, on_left_input)) == Join(
        inner, T, JoinKind.INNER, on_left_input
    )
    on_right_input = _test("=", A, E)
    assert strengthen_outer_join(Join(T, outer, JoinKind.INNER, on_right_input)) == Join(
        T, inner, JoinKind.INNER, on_right_input
    )


def test_inner_join_that_reads_the_kept_side() -> None:
    """An equality with the side that is never padded, or the condition of an outer join above, rejects nothing."""
    outer = Join(R, S, JoinKind.LEFT, EQUAL)
    assert strengthen_outer_join(Join(outer, T, JoinKind.INNER, _test("=", B, E))) is None
    assert strengthen_outer_join(Join(outer, T, JoinKind.LEFT, _test("=", D, E))) is None
    assert strengthen_outer_join(outer) is None
