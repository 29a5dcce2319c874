"""The trigger programs of the running example of F-IVM, as text; those of TPC-H are in the explanations of views."""

from __future__ import annotations

import pytest

from everview.planner.block_build import Facts, build_block
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_recursive import RecursivePlan
from everview.planner.plan_tree import plan_tree
from everview.planner.variable_order import parse_order
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Aggregate, AggregateCall, Field, Join, JoinKind, Relation, Scan
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64
from everview.trigger.format_plan import cost_lines
from everview.trigger.format_tree_program import format_tree_program
from everview.trigger.lower_tree import lower_tree
from everview.trigger.plan_block import plan_hierarchy
from tests.golden.golden_files import assert_golden


def relation(name: str, columns: str) -> Scan:
    """A table of int keys and double values."""
    return Scan(name, tuple(Field(c, INT32 if c in "AC" else FLOAT64, False) for c in columns))


R, S, T = relation("R", "AB"), relation("S", "ACE"), relation("T", "CD")
A_R, B, A_S, C_S, E, C_T, D = (Column(i, f.type, False) for i, f in enumerate((*R.fields, *S.fields, *T.fields)))


def joined() -> Relation:
    """R ⋈ S ⋈ T on A and C."""
    left = Join(R, S, JoinKind.INNER, Call("=", (A_R, A_S), BOOLEAN))
    return Join(left, T, JoinKind.INNER, Call("=", (C_S, C_T), BOOLEAN))


def program_text(keys: tuple[Column, ...], call: AggregateCall, order: str, updated: str = "R S T") -> str:
    """The program of an aggregate over the join, along an order, for updates to some relations."""
    aggregate = Aggregate(joined(), keys, (call,), tuple(f"o{i}" for i in range(len(keys) + 1)))
    block = build_block(aggregate, lambda r: Facts(updatable=isinstance(r, Scan) and r.table in updated.split()))
    tree = plan_tree(block.query, order=parse_order(block.query, order), inline=False).tree
    return format_tree_program(lower_tree(block, tree, materialized_nodes(tree, roots=False)))


COUNT = AggregateCall("count", (), INT64)
SUM = AggregateCall("sum", (Call("*", (Call("*", (B, D), FLOAT64), E), FLOAT64),), FLOAT64)
ORDER = "A - C"


@pytest.mark.parametrize(
    ("name", "keys", "call", "updated"),
    [
        ("count", (), COUNT, "R S T"),
        ("sum_by_a_and_c", (A_R, C_S), SUM, "R S T"),
        ("count_for_updates_to_t", (), COUNT, "T"),
    ],
)
def test_program(name: str, keys: tuple[Column, ...], call: AggregateCall, updated: str) -> None:
    """Examples 1 to 5 and figure 7 along A - C; variables of one relation only are summed, or lifted, in its leaf."""
    assert_golden(f"triggers/fivm_{name}.txt", program_text(keys, call, ORDER, updated))


def test_what_is_looked_up_is_stored_and_nothing_else() -> None:
    """Figure 8: for updates to T alone, R and S are stored, and T and the view of S and T are not."""
    lines = program_text((), COUNT, ORDER, "T").splitlines()
    assert [line for line in lines if line.startswith("view ")] == ["view S[A, C]: #", "view R[A]: #"]


@pytest.mark.parametrize(
    ("name", "keys", "call", "depth"),
    [
        ("count", (), COUNT, None),
        ("sum_by_a", (A_R,), SUM, None),
        ("sum_by_a_to_depth_1", (A_R,), SUM, 1),
    ],
)
def test_recursive_program(name: str, keys: tuple[Column, ...], call: AggregateCall, depth: int | None) -> None:
    """Recursive deltas of the same join: a change of the middle meets two views of one dimension each."""
    aggregate = Aggregate(joined(), keys, (call,), tuple(f"o{i}" for i in range(len(keys) + 1)))
    block = build_block(aggregate, lambda _: Facts())
    lowered = plan_hierarchy(block, depth, keeps_result=True)
    assert isinstance(lowered.plan, RecursivePlan)
    costs = "\n".join(cost_lines(lowered.plan, lowered.program))
    assert_golden(f"triggers/recursive_{name}.txt", f"{format_tree_program(lowered.program)}\n\n{costs}")
