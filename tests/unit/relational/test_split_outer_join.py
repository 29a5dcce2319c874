from __future__ import annotations

import pytest

from everview.relational.expressions import FALSE, TRUE, Call, Column, Literal
from everview.relational.nodes import Field, Join, JoinKind, Project, Scan, UnionAll
from everview.relational.rules.split_outer_join import split_outer_join
from everview.relational.schema import columns, schema
from everview.relational.types import BOOLEAN, INT32, STRING

R = Scan("r", (Field("a", INT32), Field("b", INT32)))
S = Scan("s", (Field("c", INT32, nullable=False), Field("d", STRING)))
EQUAL = Call("=", (Column(0, INT32), Column(2, INT32, nullable=False)), BOOLEAN)
EQUAL_SWAPPED = Call("=", (Column(2, INT32), Column(0, INT32, nullable=False)), BOOLEAN)
NAMES = ("a", "b", "c", "d")
NO_R = (Literal(None, INT32), Literal(None, INT32))
NO_S = (Literal(None, INT32), Literal(None, STRING))


def test_left_join() -> None:
    """L ⟕ R = (L ⋈ R) ⊎ pad(L ▷ R), with typed NULLs."""
    padded = Project(Join(R, S, JoinKind.ANTI, EQUAL), (*columns(R), *NO_S), NAMES)
    assert split_outer_join(Join(R, S, JoinKind.LEFT, EQUAL)) == UnionAll((Join(R, S, JoinKind.INNER, EQUAL), padded))


def test_right_join() -> None:
    """L ⟖ R is R ⟕ L with the columns, and the condition's, in the other order."""
    swapped = Join(S, R, JoinKind.LEFT, EQUAL_SWAPPED)
    c, d, a, b = columns(swapped)
    assert split_outer_join(Join(R, S, JoinKind.RIGHT, EQUAL)) == Project(swapped, (a, b, c, d), NAMES)


def test_full_join() -> None:
    """L ⟗ R = (L ⟕ R) ⊎ pad(R ▷ L)."""
    padded = Project(Join(S, R, JoinKind.ANTI, EQUAL_SWAPPED), (*NO_R, *columns(S)), NAMES)
    assert split_outer_join(Join(R, S, JoinKind.FULL, EQUAL)) == UnionAll((Join(R, S, JoinKind.LEFT, EQUAL), padded))


def test_mark_join() -> None:
    """mark(L, R) = (L ⋉ R, true) ⊎ (L ▷ R, false), under the mark's name."""
    kept = Project(Join(R, S, JoinKind.SEMI, EQUAL), (*columns(R), TRUE), ("a", "b", "found"))
    lost = Project(Join(R, S, JoinKind.ANTI, EQUAL), (*columns(R), FALSE), ("a", "b", "found"))
    split = split_outer_join(Join(R, S, JoinKind.MARK, EQUAL, "found"))
    assert split == UnionAll((kept, lost))
    assert split is not None
    assert [f.name for f in schema(split)] == ["a", "b", "found"]


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL, JoinKind.MARK])
def test_schema_is_unchanged(kind: JoinKind) -> None:
    """Names, types and nullability of a split join are those of the join."""
    join = Join(R, S, kind, EQUAL)
    split = split_outer_join(join)
    assert split is not None
    assert schema(split) == schema(join)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI, JoinKind.SINGLE])
def test_other_joins_stay(kind: JoinKind) -> None:
    """Inner, semi and anti joins are what the others become; SINGLE must see a second partner."""
    assert split_outer_join(Join(R, S, kind, EQUAL)) is None
    assert split_outer_join(R) is None
