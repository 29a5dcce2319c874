"""Whether, and how, a query is kept as a factorized result: from the relation to the program and the columns of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from everview.planner.block import Block
from everview.planner.block_build import build_block
from everview.planner.block_join import build_join_block
from everview.planner.block_join_builder import FactsOf, Refused
from everview.planner.plan_tree import TreePlan, plan_tree
from everview.planner.skew_listing import plan_skew_listing
from everview.planner.skew_options import SkewOptions
from everview.planner.skew_plan import SkewPlan
from everview.relational.expressions import Expression
from everview.relational.failing import can_fail
from everview.relational.nodes import (
    Aggregate,
    Distinct,
    ExceptAll,
    Filter,
    Generate,
    IntersectAll,
    Join,
    Project,
    Recursive,
    Relation,
    Scan,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
)
from everview.relational.schema import columns
from everview.trigger.lower_factorized import FactorizedProgram, lower_factorized
from everview.trigger.lower_skew import lower_skew_listing

__all__ = ["FactorizedPlan", "Refused", "plan_factorized"]


_NAMES: Final[Mapping[type[Relation], str]] = {
    Aggregate: "its inner aggregate",
    Distinct: "DISTINCT",
    UnionAll: "UNION ALL, which outer joins are too,",
    ExceptAll: "EXCEPT",
    IntersectAll: "INTERSECT",
    UnionMax: "union_max",
    Window: "a window function",
    TopK: "ORDER BY with LIMIT",
    Generate: "explode",
    Values: "VALUES",
    Join: "a join that is not inner",
    Recursive: "WITH RECURSIVE",
    SparkQuery: "a query that Spark recomputes",
}
"""What SQL calls the node whose rows are listed; filters and projections are looked through, and tables are no refusal."""


@dataclass(frozen=True, slots=True)
class FactorizedPlan:
    """``outputs`` are over the block's keys and, for an aggregate, its answers behind them."""

    block: Block
    outputs: tuple[Expression, ...]
    is_aggregate: bool
    factorized: FactorizedProgram
    plan: TreePlan | None
    skew: SkewPlan | None = None
    """The plan of heavy and light parts, in place of that of a tree."""


def plan_factorized(relation: Relation, facts_of: FactsOf, skew: SkewOptions | None = None) -> FactorizedPlan:
    """The plan of a join, or of an aggregate over a join (with a projection above it), whose result stays factorized.

    With ``skew``, it is kept by heavy and light parts.

    Raises:
        Refused: it cannot, and why.
        NoSkewPlan: it cannot by heavy and light parts, and why.
    """
    outputs: tuple[Expression, ...]
    match relation:
        case Aggregate():
            aggregate, outputs = relation, columns(relation)
        case Project(child=Aggregate() as aggregate):
            outputs = relation.expressions
        case _:
            join = build_join_block(relation, facts_of)
            return _plan(join.block, join.outputs, skew, is_aggregate=False)
    return _plan(build_block(aggregate, facts_of), outputs, skew, is_aggregate=True)


def _plan(
    block: Block, outputs: tuple[Expression, ...], skew: SkewOptions | None, *, is_aggregate: bool
) -> FactorizedPlan:
    (first, *others) = (atom.input for atom in block.atoms)
    while isinstance(first, Project | Filter):
        first = first.child
    if not others and not isinstance(first, Scan):
        raise Refused(
            f"it is no join of tables, nor an aggregate over one: the output of {_NAMES[type(first)]} is listed"
        )
    if block.has_rings:
        raise Refused("a factorized result multiplies numbers when a row is read, not elements of registered rings")
    if any(can_fail(e) for e in outputs):
        raise Refused(
            "an output column can fail, and a factorized result computes it when a row is read, not when a change comes"
        )
    block = replace(block, moments=None)  # numbers are multiplied one by one when a row is read
    if skew is not None:
        listing = plan_skew_listing(block.query, skew.of_atoms(block.query))
        return FactorizedPlan(block, outputs, is_aggregate, lower_skew_listing(block, listing), None, listing)
    try:
        plan = plan_tree(block.query, representation="factorized", indicators="useful")
    except ValueError as no_tree:
        raise Refused(str(no_tree)) from no_tree
    return FactorizedPlan(block, outputs, is_aggregate, lower_factorized(block, plan.tree), plan)
