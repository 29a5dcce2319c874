"""The trigger programs of cyclic queries along the orders of the literature, with the indicators that are useful there."""

from __future__ import annotations

import pytest

from everview.planner.block_build import Facts, build_block
from everview.planner.format_tree import format_tree
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_tree import plan_tree
from everview.planner.variable_order import parse_order
from everview.relational.nodes import Aggregate, AggregateCall
from everview.relational.types import INT64, Decimal
from everview.trigger.format_tree_program import format_tree_program
from everview.trigger.lower_tree import lower_tree
from tests.golden.golden_files import assert_golden
from tests.unit.backends.embedded.tree.cyclic_queries import ORDERS, SHAPES, cyclic_join


def text_of(name: str) -> str:
    """The view tree and the program of the number of rows and a sum over the first atom."""
    shape = SHAPES[name]
    joined, read = cyclic_join(shape, "RSTUWX"[: len(shape)])
    calls = (AggregateCall("count", (), INT64), AggregateCall("sum", (read[0][-2],), Decimal(18, 2)))
    block = build_block(Aggregate(joined, (), calls, ("n", "s")), lambda _: Facts())
    tree = plan_tree(block.query, order=parse_order(block.query, ORDERS[name]), inline=False, indicators="useful").tree
    program = lower_tree(block, tree, materialized_nodes(tree, roots=False))
    return f"{format_tree(tree, program.stored)}\n\n{format_tree_program(program)}"


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_program(name: str) -> None:
    """Examples 30 and 31, the loop with a chord of section 7.4, and others: which views an indicator bounds, and its paths."""
    assert_golden(f"triggers/cyclic_{name}.txt", text_of(name))
