from __future__ import annotations

import pytest

from everview.relational.expressions import Call, Cast, Column, Expression, Literal, conjunction
from everview.relational.nodes import (
    Field,
    Frame,
    FrameUnit,
    Join,
    JoinKind,
    Project,
    Scan,
    SortKey,
    Window,
    WindowCall,
)
from everview.relational.rules.expose_keys import expose_keys
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, INT32, INT64

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
S = Scan("s", (Field("c", INT32), Field("d", INT64)))
A, B, C = (Column(i, INT32) for i in range(3))
D = Column(3, INT64)
WIDE_A = Cast(A, INT64)
NEXT = Call("+", (B, Literal(1, INT32)), INT32)


def _equal(left: Expression, right: Expression, name: str = "=") -> Expression:
    return Call(name, (left, right), BOOLEAN)


def test_computed_key_of_one_side() -> None:
    """L ⋈[f(a) = d] R joins the column that f(a) has become, and projects it away; names are kept."""
    join = Join(R, S, JoinKind.INNER, _equal(WIDE_A, D))
    wide = Project(R, (A, B, WIDE_A), ("a", "b", "key0"))
    exposed = Join(wide, S, JoinKind.INNER, _equal(Column(2, INT64), Column(4, INT64)))
    a, b, _, c, d = columns(exposed)
    result = expose_keys(join)
    assert result == Project(exposed, (a, b, c, d), ("a", "b", "c", "d"))
    assert result is not None
    assert schema(result) == schema(join)


def test_keys_of_both_sides_and_a_residual() -> None:
    """Null-safe equalities stay null-safe, and other conditions follow the columns they read."""
    residual = Call("<", (B, C), BOOLEAN)
    join = Join(R, S, JoinKind.LEFT, conjunction((residual, _equal(NEXT, Cast(D, INT32), "<=>"), _equal(A, C))))
    left = Project(R, (A, B, NEXT), ("a", "b", "key0"))
    right = Project(S, (*columns(S), Cast(Column(1, INT64), INT32)), ("c", "d", "key0"))
    key = _equal(Column(2, INT32), Column(5, INT32), "<=>")
    moved = Call("<", (B, Column(3, INT32)), BOOLEAN)
    exposed = Join(left, right, JoinKind.LEFT, conjunction((key, _equal(A, Column(3, INT32)), moved)))
    every = columns(exposed)
    assert expose_keys(join) == Project(exposed, (*every[:2], *every[3:5]), ("a", "b", "c", "d"))


@pytest.mark.parametrize("kind", list(JoinKind))
def test_schema_is_unchanged(kind: JoinKind) -> None:
    """Whatever the kind of join, its columns are those of before."""
    join = Join(R, S, kind, _equal(WIDE_A, D), "found")
    exposed = expose_keys(join)
    assert exposed is not None
    assert schema(exposed) == schema(join)
    assert expose_keys(exposed) is None


def test_equal_keys_are_computed_once() -> None:
    """One expression in two equalities is one new column."""
    exposed = expose_keys(Join(R, S, JoinKind.SEMI, conjunction((_equal(NEXT, C), _equal(NEXT, Cast(D, INT32))))))
    assert isinstance(exposed, Project)
    assert isinstance(exposed.child, Join)
    assert exposed.child.left == Project(R, (A, B, NEXT), ("a", "b", "key0"))


def test_partition_keys() -> None:
    """PARTITION BY f(a) is by a column of a projection below, which the output does not have."""
    call = WindowCall("row_number", (), INT32, Frame(FrameUnit.ROWS, None, Literal(0, INT32)))
    window = Window(R, (A, NEXT), (SortKey(B),), (call,), ("n",))
    wide = Project(R, (A, B, NEXT), ("a", "b", "key0"))
    exposed = Window(wide, (A, Column(2, INT32)), (SortKey(B),), (call,), ("n",))
    result = expose_keys(window)
    assert result == Project(exposed, (A, B, Column(3, INT32, nullable=False)), ("a", "b", "n"))
    assert result is not None
    assert schema(result) == schema(window)


def test_plain_keys_stay() -> None:
    """Columns, and conditions that are no equality between the sides, need no new columns."""
    assert expose_keys(Join(R, S, JoinKind.INNER, _equal(A, C))) is None
    assert expose_keys(Join(R, S, JoinKind.INNER, Call("<", (NEXT, C), BOOLEAN))) is None
    assert expose_keys(Join(R, S, JoinKind.INNER, _equal(NEXT, Literal(1, INT32)))) is None
    assert expose_keys(Window(R, (A,), (), (), ())) is None
    assert expose_keys(R) is None
