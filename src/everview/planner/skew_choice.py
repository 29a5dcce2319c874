"""Whether ``auto`` maintains a block by heavy and light parts or by a view tree.

Parts bound a change by a power of N below that of a tree, but have some statements more for every change. What a change costs
in a tree depends on the data: it meets the rows that agree with it on what is joined. So parts are taken where that is well
beyond their own bound, by the rows that there are. Without any, the tree stays, and ``explain`` says what parts promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from everview.planner.block import Block
from everview.planner.block_join_builder import FactsOf
from everview.planner.bound import Bound
from everview.planner.plan_tree import TreePlan
from everview.planner.skew_options import HALF
from everview.planner.skew_plan import SkewPlan
from everview.planner.skew_search import MOST_ATOMS, NoSkewPlan, dearness, plan_skew
from everview.relational.expressions import Column
from everview.relational.nodes import Project, Scan

WORTHWHILE = 4.0
"""A row must meet so many times √N others, on average, for parts to be taken."""
FEWEST_ROWS = 10_000
"""Smaller databases are quick either way."""


@dataclass(frozen=True, slots=True)
class SkewChoice:
    """A plan with parts that a tree was compared with; ``is_taken`` if it is to be used, ``why`` in words."""

    plan: SkewPlan
    is_taken: bool
    why: str


def choose_skew(block: Block, tree: TreePlan, facts_of: FactsOf) -> SkewChoice | None:
    """The comparison of a tree with heavy and light parts; None where parts would promise no more than the tree."""
    query = block.query
    if not 3 <= len(query.atoms) <= MOST_ATOMS or query.across_atoms:
        return None
    of_tree = tree_exponents(tree)
    rows = sum(a.rows for a in query.atoms)
    if max(of_tree, default=HALF) <= HALF or (len(query.atoms) > 3 and rows < FEWEST_ROWS):
        return None
    try:
        plan = plan_skew(query, {a.name: HALF for a in query.atoms})
    except NoSkewPlan:
        return None
    if dearness(plan.exponents, HALF) >= dearness(of_tree, HALF):
        return None
    promised, bound = _told(plan.exponents), _told(of_tree)
    promise = f"heavy and light parts promise {promised} a change in {plan.space} space, this tree {bound}"
    met = _matches(block, facts_of, plan)
    if met is None:
        return SkewChoice(
            plan, False, f"auto takes the tree: {promise}, but there are no rows to tell whether that pays"
        )
    limit = WORTHWHILE * sqrt(rows)
    told = f"a row meets {met:,.0f} others on average, and parts pay from {limit:,.0f} on"
    if rows < FEWEST_ROWS or met < limit:
        return SkewChoice(plan, False, f"auto takes the tree: {promise}; {told}")
    taken = f"auto takes heavy and light parts: they promise {promised} a change, a view tree {bound}"
    return SkewChoice(plan, True, f"{taken}; {told}")


def tree_exponents(tree: TreePlan) -> tuple[Fraction, ...]:
    """What changes cost in a tree, for all relations that change, the dearest first."""
    bounds = (max(c.bound, c.indicator_bound or c.bound) for c in tree.costs)
    return tuple(sorted((b.exponent for b in bounds), reverse=True))


def _told(exponents: tuple[Fraction, ...]) -> str:
    """The bound of all changes; where they differ, one for each relation."""
    return " and ".join(str(Bound(e)) for e in (exponents[:1] if len(set(exponents)) == 1 else exponents))


def _matches(block: Block, facts_of: FactsOf, plan: SkewPlan) -> float | None:
    """How many rows agree with a row on what relations would be partitioned on, the most over all of these; None if unknown."""
    found = []
    for atom, keys in zip(block.atoms, plan.partitions, strict=True):
        source = atom.input
        if not keys or not isinstance(source, Project) or not isinstance(source.child, Scan):
            continue
        matches = facts_of(source.child).matches
        values = dict(atom.variables)
        inner = [values[v] for key in keys for v in key.variables]
        columns = [source.expressions[e.index] for e in inner if isinstance(e, Column)]
        if matches is None or len(columns) < len(inner):
            continue
        found.append(matches(tuple(c.index for c in columns if isinstance(c, Column))))
    return max(found, default=None) or None
