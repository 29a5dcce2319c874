from __future__ import annotations

import pytest

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.relational.expressions import Call, Column, Expression, Literal
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
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    TopK,
    UnionAll,
    Values,
    Window,
    WindowCall,
)
from everview.relational.rules.prune_columns import prune_columns
from everview.relational.schema import schema
from everview.relational.traverse import inputs, nodes_of
from everview.relational.types import BOOLEAN, INT32, INT64, STRING, Array

R = Scan("r", tuple(Field(name, INT32) for name in "abcd"))
S = Scan("s", tuple(Field(name, INT32) for name in "efg"))
COUNT = AggregateCall("count", (), INT64)
ROWS_SO_FAR = Frame(FrameUnit.ROWS, None, Literal(0, INT32))


def _column(index: int) -> Column:
    return Column(index, INT32)


def _read(relation: Relation, *indices: int, names: str = "") -> Project:
    """The projection to some integer columns."""
    return Project(relation, tuple(_column(i) for i in indices), tuple(names or "xyzuvw"[: len(indices)]))


def _positive(expression: Expression) -> Expression:
    return Call(">", (expression, Literal(0, INT32)), BOOLEAN)


def _equal(left: int, right: int) -> Expression:
    return Call("=", (_column(left), _column(right)), BOOLEAN)


def _sum(index: int, condition: Expression | None = None) -> AggregateCall:
    return AggregateCall("sum", (_column(index),), INT64, filter=condition)


def test_scan_gets_a_projection_to_what_is_read() -> None:
    """A filter's columns are read too; positions above follow, and the root keeps its names."""
    plan = _read(Filter(R, _positive(_column(3))), 1, names="b")
    narrow = _read(R, 1, 3, names="bd")
    pruned = prune_columns(plan)
    assert pruned == _read(Filter(narrow, _positive(_column(1))), 0)
    assert schema(pruned) == schema(plan)


def test_nothing_to_prune() -> None:
    """A plan all of whose columns are read, and a scan at the root, stay as they are."""
    assert prune_columns(R) is R
    plan = Filter(R, _positive(_column(0)))
    assert prune_columns(plan) == plan


def test_unused_expressions_are_dropped() -> None:
    """A projection computes only what is used, and its input is read for that alone."""
    inner = Project(R, (Call("+", (_column(0), _column(1)), INT32), _column(2)), ("ab", "c"))
    assert prune_columns(_read(inner, 1)) == _read(_read(_read(R, 2), 0), 0)


def test_count_star_reads_no_column() -> None:
    """COUNT(*) needs the number of rows alone: a projection to no columns, which keeps duplicates."""
    plan = Aggregate(R, (), (COUNT,), ("n",))
    pruned = prune_columns(plan)
    assert pruned == Aggregate(Project(R, (), ()), (), (COUNT,), ("n",))
    assert evaluate_plan(pruned, {"r": [(1, 1, 1, 1)] * 3}) == [(3,)]


def test_aggregates_keep_keys_and_lose_unused_calls() -> None:
    """Group keys decide which rows there are; a call that nobody reads goes, with its arguments and filters."""
    grouped = Aggregate(R, (_column(3),), (_sum(0), COUNT, _sum(1, _positive(_column(2)))), ("d", "s", "n", "t"))
    plan = Project(grouped, (Column(3, INT64),), ("t",))
    narrow = _read(R, 1, 2, 3, names="bcd")
    kept = Aggregate(narrow, (_column(2),), (_sum(0, _positive(_column(1))),), ("d", "t"))
    assert prune_columns(plan) == Project(kept, (Column(1, INT64),), ("t",))


@pytest.mark.parametrize("kind", [JoinKind.SEMI, JoinKind.ANTI])
def test_semi_and_anti_joins(kind: JoinKind) -> None:
    """Of the right side only the condition's columns are read."""
    plan = _read(Join(R, S, kind, _equal(2, 5)), 1)
    assert prune_columns(plan) == _read(Join(_read(R, 1, 2), _read(S, 1), kind, _equal(1, 2)), 0)


def test_mark_join() -> None:
    """The mark is no column of an input; it stands after what is left of the left side, under its name."""
    plan = Project(Join(R, S, JoinKind.MARK, _equal(0, 4), "found"), (Column(4, BOOLEAN, False),), ("found",))
    pruned = prune_columns(plan)
    marked = Join(_read(R, 0), _read(S, 0), JoinKind.MARK, _equal(0, 1))
    assert pruned == Project(marked, (Column(1, BOOLEAN, False),), ("found",))
    assert [n.mark for n in nodes_of(pruned) if isinstance(n, Join)] == ["found"]


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL, JoinKind.SINGLE])
def test_joins_with_both_sides(kind: JoinKind) -> None:
    """Columns of either side are dropped, and the condition reads where they have moved to."""
    plan = _read(Join(R, S, kind, _equal(0, 4)), 1, 6)
    assert prune_columns(plan) == _read(Join(_read(R, 0, 1), _read(S, 0, 2), kind, _equal(0, 2)), 1, 3)


def test_shared_plans_keep_what_any_user_needs() -> None:
    """A node used twice is pruned once, to the union of what is read, and stays one node."""
    shared = Filter(R, _positive(_column(3)))
    plan = Join(_read(shared, 0), _read(shared, 1), JoinKind.INNER, _equal(0, 1))
    pruned = prune_columns(plan)
    narrow = Filter(_read(R, 0, 1, 3), _positive(_column(2)))
    assert pruned == Join(_read(narrow, 0), _read(narrow, 1), JoinKind.INNER, _equal(0, 1))
    left, right = inputs(pruned)
    assert inputs(left)[0] is inputs(right)[0]


def test_shared_plan_that_one_user_needs_whole() -> None:
    """Beside a user that needs all columns, another one gets a projection of its own."""
    shared = Filter(R, _positive(_column(3)))
    plan = UnionAll((_read(Distinct(shared), 0), _read(UnionAll((shared, shared)), 1)))
    pruned = prune_columns(plan)
    narrow = Project(shared, (_column(1),), ("b",))
    assert pruned == UnionAll((_read(Distinct(shared), 0), _read(UnionAll((narrow, narrow)), 0)))


@pytest.mark.parametrize("plan", [Distinct(R), ExceptAll(R, R), Values(((1, 2, 3, 4),), R.fields)])
def test_whole_rows_are_compared(plan: Relation) -> None:
    """DISTINCT and set operations read every column of their inputs; constants are not worth the trouble."""
    assert prune_columns(_read(plan, 0)) == _read(plan, 0)


def test_unions_are_narrowed() -> None:
    """UNION ALL compares nothing, so its inputs lose the same columns."""
    other = Scan("o", R.fields)
    assert prune_columns(_read(UnionAll((R, other)), 2)) == _read(UnionAll((_read(R, 2), _read(other, 2))), 0)
    counted = Aggregate(UnionAll((R, R)), (), (COUNT,), ("n",))
    nothing = Project(R, (), ())
    assert prune_columns(counted) == Aggregate(UnionAll((nothing, nothing)), (), (COUNT,), ("n",))


def _window(child: Relation, partition: int, order: int, *calls: WindowCall) -> Window:
    return Window(child, (_column(partition),), (SortKey(_column(order)),), calls, tuple("nmk"[: len(calls)]))


def test_windows_lose_unused_functions() -> None:
    """Partition and order are read as long as a function is left; a filter of one is read with it."""
    total = WindowCall("sum", (_column(2),), INT64, ROWS_SO_FAR, filter=_positive(_column(3)))
    number = WindowCall("row_number", (), INT32, ROWS_SO_FAR)
    plan = Project(_window(R, 0, 1, number, total), (Column(5, INT64),), ("m",))
    assert prune_columns(plan) == Project(_window(R, 0, 1, total), (Column(4, INT64),), ("m",))
    first = Project(_window(R, 1, 0, number, total), (Column(4, INT32, False),), ("n",))
    assert prune_columns(first) == Project(
        _window(_read(R, 0, 1), 1, 0, number), (Column(2, INT32, nullable=False),), ("n",)
    )


def test_window_without_functions_disappears() -> None:
    """Where no function is read, the window is its input."""
    number = WindowCall("row_number", (), INT32, ROWS_SO_FAR)
    assert prune_columns(_read(_window(R, 0, 1, number), 2)) == _read(_read(R, 0, 1, 2), 2)


def test_generate_reads_its_array() -> None:
    """The columns that explode adds stay, behind what is left of the input."""
    docs = Scan("docs", (Field("id", INT32), Field("title", STRING), Field("tags", Array(STRING))))
    tags = Column(2, Array(STRING))
    plan = Project(Generate(docs, tags, False, True, ("pos", "tag")), (Column(4, STRING),), ("tag",))
    exploded = Generate(Project(docs, (tags,), ("tags",)), Column(0, Array(STRING)), False, True, ("pos", "tag"))
    assert prune_columns(plan) == Project(exploded, (Column(2, STRING),), ("tag",))


def test_top_reads_its_order() -> None:
    """ORDER BY columns are kept where nobody above reads them."""
    plan = _read(TopK(R, (SortKey(_column(1)),), 2, 1), 0)
    assert prune_columns(plan) == _read(TopK(_read(R, 0, 1), (SortKey(_column(1)),), 2, 1), 0)


TIED = [(1, 1, 9, 0), (1, 2, 0, 0)]
