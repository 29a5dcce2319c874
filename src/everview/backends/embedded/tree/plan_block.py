"""Whether, and how, an aggregate is maintained by a view tree: from the relational node to the trigger program."""

from __future__ import annotations

from everview.planner.block import Block
from everview.planner.block_build import build_block
from everview.planner.block_join import JoinBlock, build_join_block
from everview.planner.block_join_builder import FactsOf, Refused
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_tree import TreePlan, plan_tree
from everview.planner.view_tree import Leaf, View, ViewTree
from everview.relational.nodes import Aggregate, Relation
from everview.trigger.lower_tree import lower_tree
from everview.trigger.program import Program

__all__ = ["Refused", "plan_block", "plan_join"]


def plan_block(aggregate: Aggregate, facts_of: FactsOf, strategy: str) -> tuple[Program, TreePlan | None]:
    """The trigger program of an aggregate, with the plan of its tree unless the strategy is first-order.

    Raises:
        Refused: no view tree can maintain it, and why.
    """
    block = build_block(aggregate, facts_of)
    if strategy == "first_order":
        tree = flat_tree(block)
        return lower_tree(block, tree, materialized_nodes(tree, roots=False)), None
    plan = plan_tree(block.query)
    return lower_tree(block, plan.tree, materialized_nodes(plan.tree, roots=False)), plan


def plan_join(relation: Relation, facts_of: FactsOf, strategy: str) -> tuple[Program, JoinBlock, TreePlan | None]:
    """The trigger program of a join without an aggregate, whose result is passed on and not stored.

    Raises:
        Refused: no view tree can maintain it, and why.
    """
    join = build_join_block(relation, facts_of)
    if strategy == "first_order":
        tree, plan = flat_tree(join.block), None
    else:
        plan = plan_tree(join.block.query)
        tree = plan.tree
    return lower_tree(join.block, tree, materialized_nodes(tree, roots=False), keeps_result=False), join, plan


def flat_tree(block: Block) -> ViewTree:
    """The tree of classical (first-order) maintenance: the result directly over the base relations, nothing in between."""
    leaves = tuple(Leaf(atom) for atom in block.query.atoms)
    free = block.query.free
    summed = tuple(v for v in block.query.variables if v not in free)
    return ViewTree((View("result", (), free, summed, leaves),), free)
