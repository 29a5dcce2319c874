"""What a program says is what its operators do: access paths, stored collections, and one operator for each collection."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.build_operators import Sources, build_operators
from everview.backends.embedded.dependencies import below
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operator_pool import OperatorPool
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.join import JoinOperator, Side
from everview.backends.embedded.operators.recompute import GivenOperator
from everview.backends.embedded.vectors import empty_batch
from everview.planner.block_join_builder import Facts
from everview.relational.expressions import Call, Column, Expression, conjunction
from everview.relational.nodes import Field, Join, JoinKind, Relation, Scan
from everview.relational.rules import SPLIT_JOINS, run_rules
from everview.relational.traverse import scans_of
from everview.relational.types import BOOLEAN, INT64
from everview.trigger.lower_plan import lower_plan
from everview.trigger.operator_rules import rules_of
from everview.trigger.program import Program
from tests.unit.backends.embedded.tree.generate_blocks import random_query
from tests.unit.trigger.test_verify import random_plan

LEFT = Scan("l", (Field("a", INT64), Field("b", INT64)))
RIGHT = Scan("r", (Field("c", INT64), Field("d", INT64)))
EQUAL = Call("=", (Column(0, INT64), Column(2, INT64)), BOOLEAN)
LESS = Call("<", (Column(1, INT64), Column(3, INT64)), BOOLEAN)
OTHER = Call("not", (Call("=", (Column(1, INT64), Column(3, INT64)), BOOLEAN),), BOOLEAN)


def built(program: Program, plan: Relation) -> tuple[OperatorPool, Operator, dict[str, Operator]]:
    """The operators of a program over empty inputs."""
    given_inputs: dict[str, Operator] = {
        scan.table.lower(): GivenOperator(scan.fields, empty_batch(tuple(f.type for f in scan.fields)))
        for scan in scans_of(plan)
    }
    pool = OperatorPool()
    return pool, build_operators(program, pool, Sources(given_inputs), Dictionary()), given_inputs


@pytest.mark.parametrize("parts", [(), (EQUAL,), (LESS,), (OTHER,), (EQUAL, LESS), (EQUAL, OTHER)])
def test_a_join_searches_as_its_rule_says(parts: tuple[Expression, ...]) -> None:
    """Slice, range or scan, by the same columns."""
    join = Join(LEFT, RIGHT, JoinKind.INNER, conjunction(parts))
    _, operator, _ = built(lower_plan(join, lambda _: Facts(), is_read_once=True), join)
    assert isinstance(operator, JoinOperator)
    of_left, of_right = rules_of(join)
    for rule, side in ((of_left, operator.right), (of_right, operator.left)):
        (search,) = rule.searches
        assert side.access_path.startswith(search.kind.value)
        assert _columns(side) == search.by


def _columns(side: Side) -> tuple[Expression, ...]:
    return tuple(Column(c, INT64) for c in side.columns)


@given(st.integers(0, 2**40))
@settings(max_examples=40, deadline=None)
def test_an_operator_for_each_collection(seed: int) -> None:
    """No more and no fewer; those that rules search are arranged, and no others."""
    rng = random.Random(seed)
    plan = run_rules(random_plan(rng, random_query(rng)), SPLIT_JOINS)
    program = lower_plan(plan, lambda _: Facts(), rng.choice(("auto", "factorized", "first_order")))
    pool, root, given_inputs = built(program, plan)
    assert len(pool.operators) == len(program.collections)
    assert {id(o) for o in below(root)} == {id(o) for o in (*pool.operators, *given_inputs.values())}
    by_name = dict(zip((c.name for c in program.collections), pool.operators, strict=True)) | {
        i.name: given_inputs[i.name.lower()] for i in program.inputs
    }
    assert {name for name, o in by_name.items() if o.arrangement is not None} == program.stored()
