from __future__ import annotations

import pytest

from everview.errors import InternalError
from everview.relational import verify as verify_module
from everview.relational.expressions import TRUE, Call, Case, Column, Literal
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
from everview.relational.types import BOOLEAN, INT32, INT64, STRING, Array, Decimal
from everview.relational.verify import verify

R = Scan("r", (Field("a", INT32), Field("s", STRING)))
A, S = Column(0, INT32), Column(1, STRING)
BEYOND, MISTYPED = Column(2, INT32), Column(1, INT32)
ONE = Literal(1, INT32)
FRAME = Frame(FrameUnit.ROWS, None, ONE)
OTHER = Scan("o", (Field("a", INT32), Field("s", INT32)))


def _positive(column: Column) -> Call:
    return Call(">", (column, ONE), BOOLEAN)


def _window(partition: Column = A, order: Column = A, argument: Column = A, condition: Column = A) -> Window:
    call = WindowCall("sum", (argument,), INT64, FRAME, filter=_positive(condition))
    return Window(R, (partition,), (SortKey(order),), (call,), ("x",))


def _aggregate(key: Column = A, argument: Column = A, condition: Column = A) -> Aggregate:
    return Aggregate(R, (key,), (AggregateCall("sum", (argument,), INT64, filter=_positive(condition)),), ("k", "t"))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Values(((1,),), R.fields), "malformed plan at Values: a row of another width."),
        (Filter(R, _positive(BEYOND)), "malformed plan at Filter: column 2 of 2."),
        (Filter(R, _positive(MISTYPED)), "malformed plan at Filter: column 1 is string, read as int."),
        (Project(R, (BEYOND,), ("x",)), "malformed plan at Project: column 2 of 2."),
        (Join(R, R, JoinKind.INNER, _positive(Column(4, INT32))), "malformed plan at Join: column 4 of 4."),
        (_aggregate(key=BEYOND), "malformed plan at Aggregate: column 2 of 2."),
        (_aggregate(argument=BEYOND), "malformed plan at Aggregate: column 2 of 2."),
        (_aggregate(condition=MISTYPED), "malformed plan at Aggregate: column 1 is string, read as int."),
        (_window(partition=BEYOND), "malformed plan at Window: column 2 of 2."),
        (_window(order=BEYOND), "malformed plan at Window: column 2 of 2."),
        (_window(argument=BEYOND), "malformed plan at Window: column 2 of 2."),
        (TopK(R, (SortKey(BEYOND),), 1), "malformed plan at TopK: column 2 of 2."),
        (TopK(R, (SortKey(A),), -1), "malformed plan at TopK: a negative limit."),
        (TopK(R, (SortKey(A),), None, -1), "malformed plan at TopK: a negative limit."),
        (Generate(R, Column(2, Array(INT32)), False, False, ("x",)), "malformed plan at Generate: column 2 of 2."),
        (
            Generate(R, A, False, False, ("x",)),
            "malformed plan at Generate: explode of something that is not an array.",
        ),
        (
            Project(R, (Call("no_such_function", (A,), INT32),), ("x",)),
            "malformed plan at Project: unknown function no_such_function.",
        ),
        (
            Project(R, (Call("+", (A, A), INT64),), ("x",)),
            "malformed plan at Project: + gives int, not bigint.",
        ),
        (
            Project(R, (Case(((A, A),), A),), ("x",)),
            "malformed plan at Project: a CASE condition that is no boolean.",
        ),
        (
            Project(R, (Case(((TRUE, A), (TRUE, S)), A),), ("x",)),
            "malformed plan at Project: CASE branches of different types.",
        ),
    ],
)
def test_malformed_plans_are_our_bugs(plan: Relation, message: str) -> None:
    """Each kind of mistake raises InternalError that names the node and what is wrong with it."""
    with pytest.raises(InternalError) as caught:
        verify(plan)
    assert caught.value.message == message
    assert "bug in everview" in str(caught.value)


@pytest.mark.parametrize(
    "plan", [UnionAll((R, R, OTHER)), ExceptAll(R, OTHER), IntersectAll(R, OTHER), UnionMax(R, OTHER)]
)
def test_set_operations_need_equal_types(plan: Relation) -> None:
    """Inputs with other column types are malformed, whichever of a union's inputs it is."""
    with pytest.raises(InternalError, match=f"malformed plan at {type(plan).__name__}: inputs of different types"):
        verify(plan)


def test_mistakes_deep_in_the_plan_are_found() -> None:
    """Below the root, in nested expressions and on the right of joins."""
    wrong = Project(R, (Call("+", (A, Call("+", (A, BEYOND), INT32)), INT32),), ("x",))
    with pytest.raises(InternalError, match="Project: column 2 of 2"):
        verify(Distinct(Join(R, wrong, JoinKind.INNER)))


def test_filter_of_a_window_function_is_checked() -> None:
    """As the filter of an aggregate is: a column that does not exist is malformed."""
    with pytest.raises(InternalError, match="Window: column 2 of 2"):
        verify(_window(condition=BEYOND))


def test_else_of_a_case_is_checked() -> None:
    """A CASE whose ELSE has another type than its branches is malformed."""
    with pytest.raises(InternalError, match="CASE branches of different types"):
        verify(Project(R, (Case(((TRUE, A),), S),), ("x",)))


def test_negative_positions_are_malformed() -> None:
    """A column shifted too far to the left does not exist, though Python would find it."""
    with pytest.raises(InternalError, match="column -1 of 2"):
        verify(Project(R, (Column(-1, STRING),), ("x",)))


@pytest.mark.parametrize(
    "plan",
    [
        Values(((1, "x"), (None, None)), R.fields),
        _window(),
        _aggregate(),
        TopK(R, (SortKey(S),), None, 2),
        UnionAll((R, R)),
        Join(R, R, JoinKind.MARK, _positive(Column(2, INT32))),
        Project(R, (Call("round", (Literal(None, Decimal(5, 2)), ONE), Decimal(5, 1)),), ("x",)),
        Project(R, (Case(((TRUE, A),), Literal(None, INT32)),), ("x",)),
    ],
)
def test_well_formed_plans_pass(plan: Relation) -> None:
    """What every rule must leave behind; the type of ROUND depends on its argument's value."""
    verify(plan)


def test_shared_plans_are_visited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tower of self-unions has 2ⁿ paths and n nodes."""
    seen: list[Relation] = []
    monkeypatch.setattr(verify_module, "_verify_node", seen.append)
    tower: Relation = R
    for _ in range(60):
        tower = UnionAll((tower, tower))
    verify(tower)
    assert len(seen) == 61
