from __future__ import annotations

from everview.relational.expressions import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    children,
    columns_of,
    conjunction,
    conjuncts,
    remap_columns,
    shift_columns,
    substitute,
    transform,
    walk,
    with_children,
)
from everview.relational.types import BOOLEAN, INT32, INT64, NULL, STRING

A, B, C = (Column(i, INT32) for i in range(3))
ONE = Literal(1, INT32)


def _plus(left: Expression, right: Expression) -> Expression:
    return Call("+", (left, right), INT32, "UTC")


CASE = Case(((TRUE, A), (FALSE, B)), _plus(A, ONE))


def test_children_and_their_replacement() -> None:
    """Sub-expressions come left to right, CASE branches flat; type, zone and try are kept."""
    assert children(CASE) == (TRUE, A, FALSE, B, _plus(A, ONE))
    assert with_children(CASE, children(CASE)) is CASE
    assert with_children(CASE, (FALSE, B, TRUE, A, ONE)) == Case(((FALSE, B), (TRUE, A)), ONE)
    assert with_children(_plus(A, B), (B, A)) == Call("+", (B, A), INT32, "UTC")
    assert with_children(Cast(A, STRING, True, "CET"), (B,)) == Cast(B, STRING, True, "CET")


def test_walk_is_top_down() -> None:
    """The expression first, then each sub-expression with all below it."""
    assert list(walk(_plus(_plus(A, B), ONE))) == [_plus(_plus(A, B), ONE), _plus(A, B), A, B, ONE]


def test_transform_is_bottom_up() -> None:
    """A visitor sees sub-expressions that are already rewritten; None keeps them."""

    def visit(e: Expression) -> Expression | None:
        return {A: B, _plus(B, B): ONE}.get(e)

    assert transform(_plus(_plus(A, B), C), visit) == _plus(ONE, C)
    assert transform(CASE, lambda _: None) is CASE


def test_columns_move() -> None:
    """Positions are read, shifted, remapped and replaced by expressions, nullability kept."""
    never = Column(4, INT32, nullable=False)
    assert columns_of(_plus(_plus(A, C), A)) == {0, 2}
    assert shift_columns(_plus(A, never), 2) == _plus(C, Column(6, INT32, nullable=False))
    assert remap_columns(_plus(A, C), {0: 1, 2: 0}.__getitem__) == _plus(B, A)
    assert substitute(_plus(A, B), (ONE, _plus(A, C))) == _plus(ONE, _plus(A, C))


def test_conjunctions_and_their_parts() -> None:
    """TRUE is the conjunction of nothing, and nesting does not matter."""
    p, q, r = (Call("isnull", (c,), BOOLEAN) for c in (A, B, C))
    assert conjuncts(TRUE) == ()
    assert conjunction(()) == TRUE
    assert conjunction((p,)) is p
    assert conjuncts(conjunction((p, q, r))) == (p, q, r)
    assert conjuncts(Call("and", (p, Call("and", (TRUE, q), BOOLEAN)), BOOLEAN)) == (p, q)
    assert conjuncts(Call("or", (p, q), BOOLEAN)) == (Call("or", (p, q), BOOLEAN),)


def test_type_of_case_is_that_of_a_typed_branch() -> None:
    """A bare NULL has the type of the others."""
    nothing = Literal(None, NULL)
    assert Case(((TRUE, nothing),), Literal(1, INT64)).type == INT64
    assert Case(((TRUE, A),), nothing).type == INT32
    assert Case(((TRUE, nothing),), nothing).type == NULL
