"""Joins as blocks: what a block says, joined and projected in plain Python, is what the plan denotes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.planner.block import Block, BlockAtom
from everview.planner.block_join import JoinBlock, build_join_block
from everview.planner.block_join_builder import Facts, Refused
from everview.planner.join_query import Dependency
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Column, Expression, Literal, conjunction
from everview.relational.nodes import Field, Filter, Join, JoinKind, Project, Relation, Scan
from everview.relational.types import BOOLEAN, INT64, STRING, Row
from everview.relational.unique_keys import UniqueKey

TABLES = {
    "r": Scan("r", (Field("a", INT64), Field("b", INT64))),
    "s": Scan("s", (Field("b", INT64), Field("c", INT64, nullable=False))),
    "t": Scan("t", (Field("c", INT64), Field("d", INT64))),
}
Tables = dict[str, list[Row]]


def facts(relation: Relation) -> Facts:
    """Nothing is known."""
    return Facts()


def col(index: int, *, nullable: bool = True) -> Column:
    """A column of integers."""
    return Column(index, INT64, nullable)


def call(function: str, *args: Expression) -> Call:
    """A condition."""
    return Call(function, args, BOOLEAN)


def plus(*args: Expression) -> Call:
    """A sum of integers, which can overflow."""
    return Call("+", args, INT64)


def least(*args: Expression) -> Call:
    """The least of integers, which cannot fail."""
    return Call("least", args, INT64)


def project(child: Relation, *outputs: Expression) -> Project:
    """A projection with names that do not matter."""
    return Project(child, outputs, tuple(f"c{i}" for i in range(len(outputs))))


def inner(left: Relation, right: Relation, *conditions: Expression) -> Join:
    """An inner join."""
    return Join(left, right, JoinKind.INNER, conjunction(conditions))


def rows_of(block: JoinBlock, tables: Tables) -> Counter[Row]:
    """The bag that a block with its outputs stands for."""
    found: list[dict[str, object]] = [{}]
    for atom in block.block.atoms:
        mine = atom_rows(atom, tables)
        found = [{**a, **b} for a in found for b in mine if all(a.get(v, x) == x for v, x in b.items() if v in a)]
    kept = (
        values
        for values in found
        if all(evaluate(r.condition, tuple(values[v] for v in r.variables)) is True for r in block.block.residuals)
    )
    keys = [tuple(values[k] for k in block.block.keys) for values in kept]
    return Counter(tuple(evaluate(e, key) for e in block.outputs) for key in keys)


def atom_rows(atom: BlockAtom, tables: Tables) -> list[dict[str, object]]:
    """The variables of each row of an atom."""
    rows = evaluate_plan(atom.input, tables)
    return [{v: evaluate(e, row) for v, e in atom.variables} for row in rows if evaluate(atom.condition, row) is True]


R, S, T = TABLES["r"], TABLES["s"], TABLES["t"]
RS = inner(R, S, call("=", col(1), col(2)))
RST = inner(RS, T, call("<=>", col(3, nullable=False), col(4)))
PLANS: dict[str, Relation] = {
    "one table": R,
    "one table, filtered": Filter(project(R, col(1), Literal(7, INT64)), call("isnotnull", col(0))),
    "one table, failing": project(Filter(R, call("isnotnull", col(0))), col(0), plus(col(0), col(1))),
    "path": RST,
    "bound join variables": project(RST, col(0), col(5)),
    "columns twice": project(RST, col(0), col(1), col(2), col(0)),
    "over one atom": project(RST, least(col(0), Literal(1, INT64)), call("isnull", col(5))),
    "over known variables": project(RS, col(0), col(1), call("isnull", col(0))),
    "over several atoms": project(RST, least(col(0), col(5)), col(1)),
    "can fail": project(RST, plus(col(0), col(1)), plus(col(5), col(0))),
    "constants only": project(RS, Literal("x", STRING)),
    "self-join": project(inner(R, R, call("=", col(1), col(2))), col(0), col(3)),
    "product": inner(R, T),
    "residual": Filter(project(RS, col(0), col(3, nullable=False)), call("<", col(0), col(1))),
    "residual of one atom": inner(R, S, call("=", col(1), col(2)), call("<", col(0), col(2))),
    "equal within an atom": inner(R, S, call("=", col(0), col(2)), call("=", col(1), col(2))),
    "computed equality": inner(R, S, call("=", least(col(0), col(1)), col(2))),
}


@st.composite
def contents(draw: st.DrawFn) -> Tables:
    """A few rows of each table, repeated now and then."""
    value = st.one_of(st.none(), st.integers(0, 2))
    pair = st.tuples(value, value)
    found: Tables = {name: draw(st.lists(pair, max_size=5)) for name in ("r", "t")}
    return found | {"s": draw(st.lists(st.tuples(value, st.integers(0, 2)), max_size=5))}


@pytest.mark.parametrize("name", PLANS)
@given(data=st.data())
def test_block_means_the_plan(name: str, data: st.DataObject) -> None:
    """The block's bag is the plan's."""
    tables = data.draw(contents())
    plan = PLANS[name]
    block = build_join_block(plan, facts)
    assert rows_of(block, tables) == Counter(evaluate_plan(plan, tables))
    assert len(set(block.block.keys)) == len(block.block.keys)
    assert block.block.answers == ()
    assert block.block.monomials == (frozenset(),)


def keys(name: str) -> tuple[str, ...]:
    """The keys of a plan's block."""
    return build_join_block(PLANS[name], facts).block.keys


def test_keys_are_what_the_output_reads() -> None:
    """No variable is free that the output does not need."""
    assert keys("bound join variables") == ("a", "d")
    assert keys("columns twice") == ("a", "b")
    assert keys("over one atom") == ("f(a)", "f(d)")
    assert keys("over known variables") == ("a", "b")
    assert keys("over several atoms") == ("a", "d", "b")
    assert keys("constants only") == ()
    assert keys("self-join") == ("a", "b_2")


def test_what_can_fail_is_computed_after_the_join() -> None:
    """Over several atoms from columns; over one relation in its leaf."""
    block = build_join_block(PLANS["can fail"], facts)
    assert block.can_fail
    assert block.block.keys == ("a", "b", "d")
    assert not build_join_block(PLANS["over several atoms"], facts).can_fail
    single = build_join_block(PLANS["one table, failing"], facts)
    assert not single.can_fail
    assert single.block.keys == ("a", "f(a)")


def test_refuses_conditions_that_can_fail_below_a_join() -> None:
    """Spark might not evaluate them for rows without a partner."""
    failing = Filter(R, call("<", plus(col(0), col(1)), Literal(3, INT64)))
    build_join_block(failing, facts)
    with pytest.raises(Refused, match="can fail"):
        build_join_block(inner(failing, S, call("=", col(1), col(2))), facts)


def test_facts_reach_the_planner() -> None:
    """Keys become dependencies, static tables stay so."""

    def keyed(relation: Relation) -> Facts:
        return Facts(keys=(UniqueKey(frozenset({0})),), updatable=relation != S, rows=7)

    block: Block = build_join_block(RS, keyed).block
    assert [a.updatable for a in block.query.atoms] == [True, False]
    assert Dependency(frozenset({"a"}), frozenset({"b"})) in block.query.dependencies


def test_a_predicate_over_the_variables_of_one_atom_filters_it() -> None:
    """r.a < s.b with r.b = s.b is r.a < r.b."""
    assert build_join_block(PLANS["residual of one atom"], facts).block.residuals == ()
    assert len(build_join_block(PLANS["residual"], facts).block.residuals) == 1
