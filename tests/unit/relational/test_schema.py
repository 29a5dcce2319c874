from __future__ import annotations

import pytest

from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Field,
    Filter,
    Frame,
    FrameUnit,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
    WindowCall,
)
from everview.relational.schema import columns, is_nullable, schema
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64, STRING, Array, Decimal

KEY, VALUE = Field("k", INT32, nullable=False), Field("v", STRING)
R = Scan("r", (KEY, VALUE))
S = Scan("s", (Field("k2", INT32, nullable=False), Field("v2", STRING, nullable=False)))
NEVER, MAYBE = Column(0, INT32, nullable=False), Column(0, INT32)
CONDITION = Call("=", (NEVER, Column(2, INT32, nullable=False)), BOOLEAN)
TO_HERE = Frame(FrameUnit.ROWS, None, Literal(0, INT32))


@pytest.mark.parametrize(
    ("kind", "nullable"),
    [
        (JoinKind.INNER, (False, True, False, False)),
        (JoinKind.LEFT, (False, True, True, True)),
        (JoinKind.SINGLE, (False, True, True, True)),
        (JoinKind.RIGHT, (True, True, False, False)),
        (JoinKind.FULL, (True, True, True, True)),
    ],
)
def test_joins_make_the_padded_side_nullable(kind: JoinKind, nullable: tuple[bool, ...]) -> None:
    """Left ++ right columns, nullable where rows without a partner are padded."""
    derived = schema(Join(R, S, kind, CONDITION))
    assert tuple(f.name for f in derived) == ("k", "v", "k2", "v2")
    assert tuple(f.nullable for f in derived) == nullable


def test_semi_anti_and_mark_joins_have_left_columns() -> None:
    """SEMI and ANTI have the left columns, MARK one boolean more that is never NULL."""
    assert schema(Join(R, S, JoinKind.SEMI, CONDITION)) == R.fields
    assert schema(Join(R, S, JoinKind.ANTI, CONDITION)) == R.fields
    assert schema(Join(R, S, JoinKind.MARK, CONDITION, "found")) == (*R.fields, Field("found", BOOLEAN, False))


def test_aggregates() -> None:
    """Keys are as nullable as they were, counts never NULL, other aggregates NULL for want of rows."""
    calls = (AggregateCall("count", (), INT64), AggregateCall("max", (NEVER,), INT32))
    grouped = Aggregate(R, (NEVER, Column(1, STRING)), calls, ("g", "h", "n", "m"))
    assert schema(grouped) == (
        Field("g", INT32, nullable=False),
        Field("h", STRING),
        Field("n", INT64, nullable=False),
        Field("m", INT32),
    )


@pytest.mark.parametrize(
    ("operator", "nullable"), [(UnionMax, True), (IntersectAll, True), (ExceptAll, False), ("union all", True)]
)
def test_set_operations(operator: type[UnionMax] | str, nullable: bool) -> None:
    """Names are the first input's; a column is nullable if it is in any input, of EXCEPT in the first."""
    left, right = Scan("s", S.fields), R
    plan = UnionAll((left, right)) if isinstance(operator, str) else operator(left, right)
    assert schema(plan) == (Field("k2", INT32, False), Field("v2", STRING, nullable))


@pytest.mark.parametrize("plan", [Filter(R, Literal(True, BOOLEAN)), Distinct(R), TopK(R, (SortKey(NEVER),), 1)])
def test_nodes_that_keep_columns(plan: Relation) -> None:
    """Filters, DISTINCT and LIMIT have their input's columns."""
    assert schema(plan) == R.fields


def test_leaves() -> None:
    """Scans and constants say what they have."""
    assert schema(R) == R.fields
    assert schema(Values(((1, "x"),), R.fields)) == R.fields


def test_windows_append_their_functions() -> None:
    """Ranks and counts are never NULL; other functions may see an empty frame."""
    calls = (WindowCall("rank", (), INT32, TO_HERE), WindowCall("sum", (NEVER,), INT64, TO_HERE))
    window = Window(R, (NEVER,), (), calls, ("place", "total"))
    assert schema(window) == (*R.fields, Field("place", INT32, False), Field("total", INT64))


@pytest.mark.parametrize(
    ("outer", "with_position", "contains_null", "added"),
    [
        (False, False, False, (Field("x", STRING, False),)),
        (False, False, True, (Field("x", STRING),)),
        (False, True, False, (Field("i", INT32, False), Field("x", STRING, False))),
        (True, True, False, (Field("i", INT32), Field("x", STRING))),
    ],
)
def test_generate(outer: bool, with_position: bool, contains_null: bool, added: tuple[Field, ...]) -> None:
    """An element is nullable if the array's are, and with OUTER, where position is, too."""
    array = Field("xs", Array(STRING, contains_null))
    names = ("i", "x") if with_position else ("x",)
    plan = Generate(Scan("a", (array,)), Column(0, array.type), outer, with_position, names)
    assert schema(plan) == (array, *added)


@pytest.mark.parametrize(
    ("expression", "nullable"),
    [
        (NEVER, False),
        (Literal(None, INT32), True),
        (Literal(0, INT32), False),
        (Call("+", (NEVER, NEVER), INT32), False),
        (Call("+", (NEVER, MAYBE), INT32), True),
        (Call("isnull", (MAYBE,), BOOLEAN), False),
        (Call("<=>", (MAYBE, MAYBE), BOOLEAN), False),
        (Call("coalesce", (MAYBE, NEVER), INT32), False),
        (Call("coalesce", (MAYBE, MAYBE), INT32), True),
        (Call("try_divide", (NEVER, NEVER), FLOAT64), True),
        (Cast(NEVER, STRING), False),
        (Cast(NEVER, STRING, is_try=True), True),
        (Cast(Column(0, FLOAT64, nullable=False), Decimal(5, 2)), True),
        (Case(((Literal(True, BOOLEAN), NEVER),), NEVER), False),
        (Case(((Literal(True, BOOLEAN), MAYBE),), NEVER), True),
        (Case(((Literal(True, BOOLEAN), NEVER),), Literal(None, INT32)), True),
    ],
)
def test_nullability_of_expressions(expression: Expression, nullable: bool) -> None:
    """``False`` is a promise: only where no row can give NULL."""
    assert is_nullable(expression) is nullable
    assert schema(Project(Scan("n", (KEY,)), (expression,), ("x",)))[0].nullable is nullable


def test_columns_are_the_identity_projection() -> None:
    """One column expression for each output column."""
    assert columns(R) == (Column(0, INT32, nullable=False), Column(1, STRING))


def test_schema_is_derived_once() -> None:
    """A node remembers its schema, so that deep plans are derived in linear time."""
    plan = Project(R, columns(R), ("x", "y"))
    assert schema(plan) is schema(plan)
