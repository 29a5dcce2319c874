"""Whether, and how, an aggregate is maintained by a view tree: from the relational node to the trigger program."""

from __future__ import annotations

from dataclasses import dataclass, replace

from everview.errors import UnsupportedQuery
from everview.planner.block import Block, Monomial, Number
from everview.planner.block_build import build_block
from everview.planner.block_join import JoinBlock, build_join_block
from everview.planner.block_join_builder import FactsOf, Refused
from everview.planner.materialize import materialized_nodes
from everview.planner.plan_recursive import RecursivePlan, compare_with_tree, plan_recursive
from everview.planner.plan_tree import TreePlan, plan_tree
from everview.planner.recursive_views import TooManyViewsError
from everview.planner.skew_choice import choose_skew, tree_exponents
from everview.planner.skew_options import SkewOptions
from everview.planner.skew_plan import SkewPlan
from everview.planner.skew_search import NoSkewPlan, dearness, plan_skew
from everview.planner.skew_self_join import share_parts
from everview.planner.view_tree import InnerView, Leaf, ViewTree
from everview.relational.nodes import Aggregate, Relation
from everview.trigger.lower_recursive import lower_recursive
from everview.trigger.lower_skew import lower_skew
from everview.trigger.lower_tree import lower_tree
from everview.trigger.tree_program import TreeProgram

__all__ = ["Refused", "plan_block", "plan_join", "plan_skew_block"]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A block's trigger program, and the plan of its tree or its recursive views.

    There is no plan for a first-order tree, and another one (``skew``) for heavy and light parts.

    ``loading`` is the program that takes in what is there when the view is made, where that needs more views stored than the
    changes to come do: relations that no longer change must be joined once.
    """

    program: TreeProgram
    plan: TreePlan | RecursivePlan | None
    loading: TreeProgram | None
    skew: SkewPlan | None = None
    """The plan of heavy and light parts, in place of that of a tree."""
    note: str | None = None
    """Why this way was chosen, where several were compared."""
    why_no_parts: str = ""
    """Why a tree stands where heavy and light parts were asked for."""


@dataclass(frozen=True, slots=True)
class BlockOptions:
    """How blocks are to be maintained.

    ``first_order`` is the flat tree, ``recursive`` a hierarchy of delta views, any other strategy the best tree. With ``auto``
    a hierarchy may be better, if the engine has them (``has_recursive``). ``depth`` is that of the hierarchy, None for full.
    """

    strategy: str
    depth: int | None = None
    has_recursive: bool = False


def plan_block(
    aggregate: Aggregate, facts_of: FactsOf, options: BlockOptions, *, may_watch: bool = False, may_split: bool = False
) -> Lowered:
    """The program of an aggregate and the joins below it.

    Args:
        aggregate: The block.
        facts_of: What is known of the relations below it.
        options: What to make of it.
        may_watch: Whether rows can stand in for it where numbers get too large.
        may_split: Whether heavy and light parts may take the place of a tree, where that pays.

    Raises:
        Refused: no view tree can maintain it, and why.
        UnsupportedQuery: the hierarchy would have too many views.
    """
    block = build_block(aggregate, facts_of, may_watch=may_watch)
    if options.strategy == "recursive":
        return plan_hierarchy(block, options.depth, keeps_result=True)
    plan = None if options.strategy == "first_order" else plan_tree(block.query, indicators="useful")
    choice = choose_skew(block, plan, facts_of) if may_split and plan is not None else None
    if choice is not None and choice.is_taken:
        shared, parts = share_parts(block, choice.plan)
        return Lowered(lower_skew(shared, parts), None, None, parts, choice.why)
    hierarchy, why = None, ""
    if plan is not None and options.strategy == "auto" and options.has_recursive:
        hierarchy, why = compare_with_tree(plan)
    made = _lowered(block, plan, keeps_result=True) if hierarchy is None else _recursive(block, hierarchy)
    reasons = [choice.why] if choice is not None and choice.why else []
    return replace(made, note="; ".join([*reasons, *([why] if why else [])]) or None)


def plan_hierarchy(block: Block, depth: int | None, *, keeps_result: bool) -> Lowered:
    """The program of a block's hierarchy of recursive views.

    Raises:
        UnsupportedQuery: it would have too many views.
    """
    try:
        plan = plan_recursive(block.query, tuple(r.variables for r in block.residuals), depth)
    except TooManyViewsError as error:
        raise UnsupportedQuery(
            f"recursive deltas of a join of {len(block.atoms)} relations need {error}.",
            operator="join",
            hint="give a smaller depth, or strategy='auto', whose view trees have one view a variable.",
        ) from error
    return _recursive(block, plan, keeps_result=keeps_result)


def _recursive(block: Block, plan: RecursivePlan, *, keeps_result: bool = True) -> Lowered:
    program = lower_recursive(block, plan.hierarchy, keeps_result=keeps_result)
    if all(atom.updatable for atom in block.query.atoms):
        return Lowered(program, plan, None)
    return Lowered(program, plan, lower_recursive(block, plan.whole, keeps_result=keeps_result))


def plan_skew_block(
    aggregate: Aggregate, facts_of: FactsOf, options: SkewOptions, *, may_watch: bool = False
) -> Lowered:
    """The program of an aggregate and the joins below it over heavy and light parts.

    Where every change is O(1) in a view tree, as it is for hierarchical queries, that is the program. So it is where parts are
    no better, with the reason: another block of the view may have them.

    Raises:
        Refused: no view tree can maintain it, and why.
    """
    block = build_block(aggregate, facts_of, may_watch=may_watch)
    tree = plan_tree(block.query, indicators="useful")
    if all(cost.is_constant for cost in tree.costs):
        note = "nothing is partitioned: every change is O(1) in this view tree"
        return replace(_lowered(block, tree, keeps_result=True), note=note)
    try:
        plan = _better_than(tree, block, options)
    except NoSkewPlan as none:
        note = f"no heavy and light parts here: {none}"
        return replace(_lowered(block, tree, keeps_result=True), note=note, why_no_parts=str(none))
    block, plan = share_parts(block, plan)
    return Lowered(lower_skew(block, plan), None, None, plan)


def _better_than(tree: TreePlan, block: Block, options: SkewOptions) -> SkewPlan:
    epsilons = options.of_atoms(block.query)
    plan = plan_skew(block.query, epsilons, is_refined=options.is_refined)
    bound = max(max(e, 1 - e) for e in epsilons.values())
    if plan.exponent > bound and dearness(plan.exponents, bound) >= dearness(tree_exponents(tree), bound):
        raise NoSkewPlan("no partition of its relations into heavy and light parts is better than a view tree")
    return plan


def without_first_moments(lowered: Lowered) -> Lowered:
    """The program with sums of single floats kept one by one, each with its NaNs and infinities counted.

    For tables that keep no rows: moments have no place for what is not finite, and nothing could stand in for them. Where
    floats of several tables are multiplied, a tree cannot take in such numbers anyway.
    """
    block = lowered.program.block
    if block.moments is None or any(_multiplies_floats(block, m) for m in block.monomials):
        return lowered
    block = replace(block, moments=None)
    loading = None if lowered.loading is None else replace(lowered.loading, block=block)
    return replace(lowered, program=replace(lowered.program, block=block), loading=loading)


def _multiplies_floats(block: Block, monomial: Monomial) -> bool:
    """Whether floats of several atoms are multiplied."""
    return sum(block.atoms[a].lifts[i].number is Number.FLOAT for a, i in monomial) > 1


def plan_plain_tree(block: Block, *, keeps_wide: bool) -> Lowered:
    """The program of a block for an engine without indicators.

    ``keeps_wide``: it can afford views with more rows than any one relation below them.
    """
    return _lowered(block, plan_tree(block.query, indicators="none", keeps_wide=keeps_wide), keeps_result=True)


def plan_join(relation: Relation, facts_of: FactsOf, options: BlockOptions) -> tuple[Lowered, JoinBlock]:
    """The program of a join without an aggregate, whose result is passed on and not stored.

    Raises:
        Refused: no view tree can maintain it, and why.
    """
    join = build_join_block(relation, facts_of)
    if options.strategy == "recursive":
        return plan_hierarchy(join.block, options.depth, keeps_result=False), join
    plan = None if options.strategy == "first_order" else plan_tree(join.block.query, indicators="useful")
    return _lowered(join.block, plan, keeps_result=False), join


def _lowered(block: Block, plan: TreePlan | None, *, keeps_result: bool) -> Lowered:
    tree = flat_tree(block) if plan is None else plan.tree
    program = lower_tree(block, tree, materialized_nodes(tree, roots=False), keeps_result=keeps_result)
    if all(atom.updatable for atom in block.query.atoms):
        return Lowered(program, plan, None)
    joined = {c.name for v in tree.nodes() if isinstance(v, InnerView) and len(v.children) > 1 for c in v.children}
    loading = lower_tree(block, tree, frozenset(joined), keeps_result=keeps_result)
    assert program.stored <= loading.stored, "what is stored is loaded"
    return Lowered(program, plan, loading)


def flat_tree(block: Block) -> ViewTree:
    """The tree of classical (first-order) maintenance: the result directly over the base relations, nothing in between."""
    leaves = tuple(Leaf(atom) for atom in block.query.atoms)
    free = block.query.free
    summed = tuple(v for v in block.query.variables if v not in free)
    return ViewTree((InnerView("result", (), free, summed, leaves),), free)
