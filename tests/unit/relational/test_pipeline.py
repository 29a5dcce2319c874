"""The laws of all rules at once: a rewritten plan denotes the same bag, for generated plans and tables."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.errors import InternalError
from everview.relational.expressions import TRUE, Call, Column, Expression, Literal
from everview.relational.format import format_plan
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Filter,
    Frame,
    FrameUnit,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    SortKey,
    UnionAll,
    Window,
    WindowCall,
)
from everview.relational.rules import PIPELINE, SPLIT_JOINS, run_rules, simplify
from everview.relational.rules.pipeline import RuleRun
from everview.relational.schema import columns, schema
from everview.relational.traverse import nodes_of
from everview.relational.types import BOOLEAN, INT32, INT64, Row
from tests.oracle.test_bag_algebra import FIELDS, ROWS, TABLES, conditions, expressions

R = Scan("r", FIELDS)
A, B, C, D = (Column(i, INT32) for i in range(4))


def _null_aware(left: Expression, right: Expression) -> Expression:
    equal = Call("=", (left, right), BOOLEAN)
    return Call("or", (equal, Call("isnull", (equal,), BOOLEAN)), BOOLEAN)


@st.composite
def _joined(draw: st.DrawFn) -> Relation:
    """A join of any kind with several conditions, NOT IN among them, under a filter; wider than ``expressions``."""
    left, right = draw(expressions(1)), draw(expressions(1))
    shared = draw(st.booleans())
    kind = draw(st.sampled_from([k for k in JoinKind if k is not JoinKind.SINGLE]))
    next_a = Call("+", (A, Literal(1, INT32)), INT32)
    special = st.sampled_from([_null_aware(A, C), _null_aware(D, B), Call("=", (next_a, D), BOOLEAN)])
    parts = draw(st.lists(st.one_of(conditions(4), special), max_size=3))
    joined: Relation = Join(left, left if shared else right, kind, _all(parts))
    width = len([c for c in columns(joined) if c.type == INT32])
    return Filter(joined, _all(draw(st.lists(conditions(width), max_size=2))))


def _all(parts: list[Expression]) -> Expression:
    result: Expression = TRUE
    for part in parts:
        result = part if result == TRUE else Call("and", (result, part), BOOLEAN)
    return result


@st.composite
def _windowed(draw: st.DrawFn) -> Relation:
    """Window functions that ties cannot change, over a plan; some columns of the result."""
    child = draw(st.one_of(expressions(2), _joined()))
    every = [c for c in columns(child) if c.type == INT32]
    key, order, value = (draw(st.sampled_from(every)) for _ in range(3))
    frame = Frame(FrameUnit.RANGE, draw(st.sampled_from([None, Literal(-1, INT32)])), Literal(0, INT32))
    partition = draw(st.sampled_from([key, Call("+", (key, Literal(1, INT32)), INT32)]))
    calls = (
        WindowCall("rank", (), INT32, frame),
        WindowCall("sum", (value,), INT64, frame, filter=draw(st.one_of(st.none(), st.just(_present(value))))),
    )
    window = Window(child, (partition,), (SortKey(order, draw(st.booleans())),), calls, ("place", "total"))
    return _some_columns(draw, window)


def _present(value: Expression) -> Expression:
    return Call("isnotnull", (value,), BOOLEAN)


def _some_columns(draw: st.DrawFn, relation: Relation) -> Relation:
    chosen = draw(st.lists(st.sampled_from(columns(relation)), max_size=3))
    return Project(relation, tuple(chosen), tuple(f"c{i}" for i in range(len(chosen))))


@st.composite
def _grouped(draw: st.DrawFn) -> Relation:
    """Several aggregates over a join, of which only some are used."""
    child = draw(_joined())
    every = [c for c in columns(child) if c.type == INT32]
    value = draw(st.sampled_from(every))
    calls = (
        AggregateCall("count", (), INT64),
        AggregateCall("sum", (value,), INT64, distinct=draw(st.booleans())),
        AggregateCall("max", (draw(st.sampled_from(every)),), INT32, filter=_present(value)),
    )
    keys = draw(st.sampled_from([(), (draw(st.sampled_from(every)),)]))
    grouped = Aggregate(child, keys, calls, (*("k" for _ in keys), "n", "s", "m"))
    return _some_columns(draw, grouped)


@st.composite
def _sharing(draw: st.DrawFn) -> Relation:
    """One sub-plan used twice, each time for other columns."""
    shared = draw(st.one_of(_joined(), _grouped()))
    every = columns(shared)
    if not every:
        return UnionAll((shared, shared))
    first, second = (draw(st.sampled_from(every)) for _ in range(2))
    left, right = (Project(shared, (c,), ("x",)) for c in (first, second))
    kind = draw(st.sampled_from([JoinKind.INNER, JoinKind.LEFT, JoinKind.ANTI, JoinKind.MARK]))
    if first.type != second.type:
        return Join(left, right, kind)
    return Join(left, right, kind, Call("=", (Column(0, first.type), Column(1, second.type)), BOOLEAN))


PLANS = st.one_of(expressions(), _joined(), _windowed(), _grouped(), _sharing())
CONTENT = st.fixed_dictionaries({name: st.lists(ROWS, max_size=5) for name in TABLES})


@given(plan=PLANS, tables=CONTENT)
def test_rewritten_plans_denote_the_same_bag(plan: Relation, tables: dict[str, list[Row]]) -> None:
    """What ``simplify`` and the splitting of joins make of a plan has the plan's rows, as often."""
    expected = Counter(evaluate_plan(plan, tables))
    simple = simplify(plan)
    for rewritten in (simple, run_rules(plan, SPLIT_JOINS), run_rules(simple, SPLIT_JOINS)):
        assert Counter(evaluate_plan(rewritten, tables)) == expected, format_plan(rewritten)


@given(plan=PLANS)
def test_rewritten_plans_keep_types(plan: Relation) -> None:
    """The columns of a rewritten plan have the types of the plan's."""
    for rules in (PIPELINE, SPLIT_JOINS):
        assert [f.type for f in schema(run_rules(plan, rules))] == [f.type for f in schema(plan)]


@given(plan=PLANS, tables=CONTENT)
def test_nullability_is_a_promise(plan: Relation, tables: dict[str, list[Row]]) -> None:
    """No row has a NULL in a column that the schema says has none, before and after the rewrites."""
    for rewritten in (plan, simplify(plan), run_rules(plan, SPLIT_JOINS)):
        never = [i for i, f in enumerate(schema(rewritten)) if not f.nullable]
        assert all(row[i] is not None for row in evaluate_plan(rewritten, tables) for i in never)


@given(plan=PLANS)
def test_only_simple_joins_are_left(plan: Relation) -> None:
    """After the splitting of joins there are inner, semi and anti joins, and equalities are between columns."""
    joins = [n for n in nodes_of(run_rules(plan, SPLIT_JOINS)) if isinstance(n, Join)]
    assert {join.kind for join in joins} <= {JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI}
    sides = [e for join in joins for q in split_join_condition(join).equalities for e in (q.left, q.right)]
    assert all(isinstance(side, Column) for side in sides)


def test_every_step_is_reported() -> None:
    """``on_step`` sees the rule's name and the plan after it, rule by rule."""
    steps: list[RuleRun] = []
    plan = Filter(Filter(R, TRUE), Call("isnull", (A,), BOOLEAN))
    result = simplify(plan, steps.append)
    assert [s.rule for s in steps] == [rule.__name__ for rule in PIPELINE]
    assert steps[-1].plan == result == Filter(R, Call("isnull", (A,), BOOLEAN))


def test_every_step_is_verified() -> None:
    """A rule that breaks a plan is found out at once."""

    def break_filters(relation: Relation) -> Relation | None:
        wrong = Call("isnull", (Column(9, INT32),), BOOLEAN)
        return Filter(R, wrong) if isinstance(relation, Filter) and relation.condition == TRUE else None

    with pytest.raises(InternalError, match="column 9 of 2"):
        run_rules(Filter(R, TRUE), (break_filters,))


def test_filters_reach_the_scans() -> None:
    """The rules work together: filter, outer join, projection and column pruning in one plan."""
    positive = Call(">", (B, Literal(0, INT32)), BOOLEAN)
    s = Scan("s", FIELDS)
    joined = Join(R, s, JoinKind.LEFT, Call("=", (A, C), BOOLEAN))
    plan = Project(Filter(Project(joined, (A, D), ("a", "d")), positive), (A,), ("a",))
    narrow = Project(R, (A,), ("a",))
    inner = Join(narrow, Filter(s, positive), JoinKind.INNER, Call("=", (A, B), BOOLEAN))
    assert simplify(plan) == Project(inner, (A,), ("a",))
