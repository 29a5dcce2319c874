"""Which aggregates are restricted to the groups that a join keeps, and that this changes no answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.planner.block_join_builder import Facts, remembered
from everview.relational.expressions import Call, Column, Expression, Literal, conjunction
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Field,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    UnionAll,
)
from everview.relational.rule_examples import L, R, a, b, c, equal, less, plus
from everview.relational.schema import columns
from everview.relational.traverse import nodes_of
from everview.relational.types import BOOLEAN, INT32, INT64, Decimal
from everview.relational.unique_keys import UniqueKey
from everview.relational.verify import verify
from everview.trigger.restrict_groups import restrict_groups
from tests.oracle.bags import assert_same_bag

COUNT = AggregateCall("count", (), INT64)
LEAST = AggregateCall("min", (b,), INT64)
T = Scan("t", (Field("e", INT64), Field("f", INT64)))
FEW = Filter(R, equal(Column(1, INT64, True), 1))
GROUPS = Aggregate(L, (a,), (LEAST,), ("a", "n"))
ON = equal(a, c)


def at(index: int) -> Expression:
    """A column of a join."""
    return Column(index, INT64, True)


SHAPES: dict[str, Relation] = {
    "left": Join(GROUPS, FEW, JoinKind.INNER, ON),
    "right": Join(FEW, GROUPS, JoinKind.INNER, equal(at(0), at(2))),
    "semi": Join(FEW, GROUPS, JoinKind.SEMI, equal(at(0), at(2))),
    "anti": Join(FEW, GROUPS, JoinKind.ANTI, equal(at(0), at(2))),
    "semi above": Join(Join(T, GROUPS, JoinKind.INNER, equal(at(0), at(2))), FEW, JoinKind.SEMI, equal(at(0), at(4))),
    "by equalities": Join(
        Join(T, FEW, JoinKind.INNER, equal(at(0), at(2))), GROUPS, JoinKind.INNER, equal(at(0), at(4))
    ),
    "below filters": Join(
        Filter(Project(GROUPS, (at(1), at(0)), ("n", "a")), less(at(0), 2)), FEW, JoinKind.INNER, equal(at(1), at(2))
    ),
    "over a join": Join(
        Aggregate(Join(T, L, JoinKind.INNER, equal(at(1), at(2))), (at(2),), (COUNT,), ("a", "n")),
        FEW,
        JoinKind.INNER,
        ON,
    ),
}


def restricted(plan: Relation, facts: Facts | None = None) -> Relation:
    """The plan after the rule, well formed."""
    result = restrict_groups(plan, lambda _: facts or Facts())
    verify(result)
    return result


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_the_answer_is_the_same(shape: str, data: st.DataObject) -> None:
    """Over NULLs, duplicates and empty tables, wherever the groups and the few rows stand."""
    values = st.one_of(st.none(), st.integers(0, 2))
    tables = {n: data.draw(st.lists(st.tuples(values, values), max_size=6), label=n) for n in ("l", "r", "t")}
    plan = SHAPES[shape]
    changed = restricted(plan)
    assert changed != plan
    assert_same_bag(evaluate_plan(changed, tables), evaluate_plan(plan, tables), shape)


def joined_with(groups: Relation, few: Relation = FEW) -> Relation:
    """Groups and a table, by the group."""
    return Join(groups, few, JoinKind.INNER, ON)


def by_a(child: Relation, call: AggregateCall) -> Aggregate:
    """Groups of one aggregate."""
    return Aggregate(child, (a,), (call,), ("a", "n"))


KEPT: dict[str, Relation] = {
    "a sum that can overflow": joined_with(by_a(L, AggregateCall("sum", (b,), INT64))),
    "an argument that can fail": joined_with(by_a(L, AggregateCall("max", (plus(b, 1),), INT64))),
    "a filter that can fail": joined_with(by_a(Filter(L, less(plus(b, 1), 5)), COUNT)),
    "a filter above that can fail": joined_with(Filter(GROUPS, less(plus(at(1), 1), 5))),
    "a projection above that can fail": joined_with(Project(GROUPS, (a, plus(at(1), 1)), ("a", "n"))),
    "a condition that can fail": Join(GROUPS, FEW, JoinKind.INNER, conjunction((ON, less(plus(at(1), 1), at(3))))),
    "a condition between that can fail": Join(
        Join(T, GROUPS, JoinKind.INNER, conjunction((equal(at(0), at(2)), less(plus(at(1), 1), at(3))))),
        FEW,
        JoinKind.SEMI,
        equal(at(0), at(4)),
    ),
    "something that is no table": joined_with(by_a(UnionAll((L, L)), COUNT)),
    "many rows": joined_with(GROUPS, Filter(R, less(Column(1, INT64, True), 1))),
    "all rows": joined_with(GROUPS, R),
    "another column": Join(GROUPS, FEW, JoinKind.INNER, equal(b, c)),
    "NULL meets NULL": Join(GROUPS, FEW, JoinKind.INNER, Call("<=>", (a, c), BOOLEAN)),
    "no equality": Join(GROUPS, FEW, JoinKind.INNER, less(a, c)),
    "an outer join": Join(GROUPS, FEW, JoinKind.LEFT, ON),
    "the preserved side of an anti-join": Join(GROUPS, FEW, JoinKind.ANTI, ON),
    "several readers": UnionAll((Join(GROUPS, FEW, JoinKind.SEMI, ON), GROUPS)),
    "no groups": Join(Aggregate(L, (), (LEAST,), ("n",)), FEW, JoinKind.INNER, equal(at(0), at(1))),
    "restricted before": joined_with(by_a(Join(L, FEW, JoinKind.INNER, ON), COUNT)),
}


@pytest.mark.parametrize("why", KEPT)
def test_what_is_left_as_it_is(why: str) -> None:
    """Errors are not lost, groups that others read stay whole, and nothing is done for filters that let many rows through."""
    assert restricted(KEPT[why]) == KEPT[why]


@pytest.mark.parametrize(
    "call",
    [
        AggregateCall("sum", (Column(1, INT32),), INT64),
        AggregateCall("sum", (Column(1, Decimal(28, 2)),), Decimal(38, 2)),
        AggregateCall("avg", (Column(1, Decimal(12, 2)),), Decimal(16, 6)),
    ],
)
def test_sums_that_cannot_overflow(call: AggregateCall) -> None:
    """Their groups may be left out: 2^31 rows of the largest number would have to meet."""
    wide = Scan("l", (Field("a", INT64, True), Field("b", call.args[0].type)))
    plan = joined_with(by_a(wide, call))
    assert restricted(plan) != plan


def test_values_of_a_key_are_not_made_distinct() -> None:
    """A primary key has each value once already."""
    assert any(isinstance(n, Distinct) for n in nodes_of(restricted(SHAPES["left"])))
    keyed = restricted(SHAPES["left"], Facts(keys=(UniqueKey(frozenset({0})),)))
    assert keyed != SHAPES["left"]
    assert not any(isinstance(n, Distinct) for n in nodes_of(keyed))


def test_rows_that_are_there_are_counted() -> None:
    """Where a value is shared by many rows of the table, a filter by it does not leave few."""
    counted = Facts(rows=1000.0, matches=lambda _: 490.0)
    assert restricted(SHAPES["left"], counted) == SHAPES["left"]
    assert restricted(SHAPES["left"], Facts(rows=1000.0, matches=lambda _: 40.0)) != SHAPES["left"]


def test_rows_are_counted_once() -> None:
    """However often a plan asks, while it is made: counting reads whole columns."""
    counted: list[tuple[int, ...]] = []

    def matches(read: tuple[int, ...]) -> float:
        counted.append(read)
        return 40.0

    facts_of = remembered(lambda _: Facts(rows=1000.0, matches=matches))
    for shape in SHAPES.values():
        restrict_groups(shape, facts_of)
    assert counted == [(1,)]


def test_the_join_is_with_the_table_that_has_the_column() -> None:
    """Rows that no group wants do not reach the joins below the groups."""
    plan = restricted(SHAPES["over a join"])
    (groups,) = (n for n in nodes_of(plan) if isinstance(n, Aggregate))
    assert isinstance(groups.child, Join)
    assert groups.child.left == T
    assert isinstance(groups.child.right, Project)
    assert columns(groups.child.right) == columns(L)


def test_patterns_and_lists_are_few() -> None:
    """LIKE with a constant pattern, and IN with some constants, but not with many."""
    two, ten = ((Literal(i, INT64) for i in range(n)) for n in (2, 10))
    listed = Filter(R, Call("in", (Column(1, INT64, True), *two), BOOLEAN))
    assert restricted(joined_with(GROUPS, listed)) != joined_with(GROUPS, listed)
    many = Filter(R, Call("in", (Column(1, INT64, True), *ten), BOOLEAN))
    assert restricted(joined_with(GROUPS, many)) == joined_with(GROUPS, many)
