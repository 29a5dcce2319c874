from __future__ import annotations

import pytest

from everview.relational.expressions import TRUE, Column, Literal
from everview.relational.nodes import (
    Aggregate,
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
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
    WindowCall,
)
from everview.relational.traverse import inputs, nodes_of, rewrite_bottom_up, tables_of, with_inputs
from everview.relational.types import INT32, Array

R = Scan("r", (Field("a", INT32),))
S = Scan("s", (Field("a", INT32),))
A = Column(0, INT32)
NUMBER = WindowCall("row_number", (), INT32, Frame(FrameUnit.ROWS, None, None))
EVERY_NODE: tuple[tuple[Relation, tuple[Relation, ...]], ...] = (
    (R, ()),
    (Values(((1,),), R.fields), ()),
    (Filter(R, TRUE), (R,)),
    (Project(R, (A,), ("x",)), (R,)),
    (Join(R, S, JoinKind.MARK, mark="found"), (R, S)),
    (Aggregate(R, (A,), (), ("x",)), (R,)),
    (Distinct(R), (R,)),
    (UnionAll((R, S, R)), (R, S, R)),
    (ExceptAll(R, S), (R, S)),
    (IntersectAll(R, S), (R, S)),
    (UnionMax(R, S), (R, S)),
    (Window(R, (A,), (), (NUMBER,), ("n",)), (R,)),
    (TopK(R, (), 1), (R,)),
    (Generate(R, Literal((1,), Array(INT32)), True, False, ("x",)), (R,)),
)


@pytest.mark.parametrize(("relation", "expected"), EVERY_NODE, ids=lambda v: type(v).__name__)
def test_inputs_and_their_replacement(relation: Relation, expected: tuple[Relation, ...]) -> None:
    """Inputs come left to right; putting them back gives the same object, others the same node over them."""
    assert inputs(relation) == expected
    assert with_inputs(relation, expected) is relation
    other = tuple(Distinct(i) for i in expected)
    changed = with_inputs(relation, other)
    assert inputs(changed) == other
    assert type(changed) is type(relation)
    assert with_inputs(changed, expected) == relation


def test_names_survive_new_inputs() -> None:
    """What equality does not compare is carried over all the same."""
    project = with_inputs(Project(R, (A,), ("x",)), (S,))
    join = with_inputs(Join(R, S, JoinKind.MARK, mark="found"), (S, R))
    assert isinstance(project, Project)
    assert isinstance(join, Join)
    assert (project.names, join.mark) == (("x",), "found")


def test_nodes_come_once_and_inputs_first() -> None:
    """A shared node is listed once, before everything that uses it."""
    shared = Filter(R, TRUE)
    left, right = Distinct(shared), Project(shared, (A,), ("x",))
    plan = UnionAll((left, right))
    assert [id(n) for n in nodes_of(plan)] == [id(n) for n in (R, shared, left, right, plan)]


def test_tables_in_order_of_first_use() -> None:
    """Each table once, those on the left first."""
    assert tables_of(Join(UnionAll((S, R)), S, JoinKind.INNER)) == ("s", "r")


def test_rewrite_visits_shared_nodes_once_and_keeps_them_shared() -> None:
    """The rewritten plan is a DAG of the same shape."""
    shared = Filter(R, TRUE)
    plan = UnionAll((Distinct(shared), Distinct(shared), shared))
    seen: list[Relation] = []

    def rule(relation: Relation) -> Relation | None:
        seen.append(relation)
        return S if relation is R else None

    result = rewrite_bottom_up(plan, rule)
    replaced = Filter(S, TRUE)
    assert result == UnionAll((Distinct(replaced), Distinct(replaced), replaced))
    assert len({id(n) for n in nodes_of(result) if isinstance(n, Filter)}) == 1
    assert sum(isinstance(n, Filter) for n in seen) == 1


def test_rewrite_without_changes_returns_the_plan() -> None:
    """Nothing is rebuilt where no rule fires."""
    plan = Distinct(Filter(R, TRUE))
    assert rewrite_bottom_up(plan, lambda _: None) is plan


def test_rule_is_applied_until_it_does_nothing() -> None:
    """Again at the same node, and inside what it has put there."""

    def count_down(relation: Relation) -> Relation | None:
        if isinstance(relation, TopK) and relation.limit:
            return TopK(relation.child, (), relation.limit - 1)
        return None

    def wrap(relation: Relation) -> Relation | None:
        return Distinct(Filter(S, TRUE)) if relation is R else (S if isinstance(relation, Filter) else None)

    assert rewrite_bottom_up(TopK(R, (), 3), count_down) == TopK(R, (), 0)
    assert rewrite_bottom_up(R, wrap) == Distinct(S)


def test_rewrite_of_a_deep_dag_is_linear() -> None:
    """A tower of self-unions has 2ⁿ paths and n nodes."""
    tower: Relation = R
    for _ in range(60):
        tower = UnionAll((tower, tower))
    assert sum(1 for _ in nodes_of(rewrite_bottom_up(tower, lambda n: S if n is R else None))) == 61
