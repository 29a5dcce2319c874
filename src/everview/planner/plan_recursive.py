"""A hierarchy of recursive views with what it costs, and whether ``auto`` takes it in place of a view tree.

One changed row of an atom writes to every view that has the atom below it, and each of these deltas is joined with views that
have not: bounds and estimates are those of view trees (``cost``, ``estimates``), over more steps. A view is *wide* if its keys
are covered by no single atom below it: it may then have more rows than any one relation, up to N² and more.

For a condition that stays outside of a view, section 3.3 compares two ways to answer Q[d] = Sum[a](R(a, b) * {b < d}):

    full   a view for every value of d:  rate(Q) · (p + (1 - p) · |R(a, b)|) + rate(R) · (|d| · |a| + 1)
    part   Sum[a, b](R), and b < d checked when it is read:  rate(Q) · |R(a, b)| + rate(R)

where p is the share of values of d that are there already. The engines have views of the second kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from everview.planner.bit_sets import bits
from everview.planner.cost import UpdateBounds, UpdateCost
from everview.planner.delta_tree import DeltaStep
from everview.planner.encoded_query import EncodedQuery
from everview.planner.estimates import Estimates
from everview.planner.join_query import JoinQuery
from everview.planner.order_cost import WRITE
from everview.planner.plan_tree import TreePlan
from everview.planner.recursive_views import (
    Hierarchy,
    RecursiveDelta,
    RecursiveView,
    TooManyViewsError,
    recursive_views,
)
from everview.planner.view_tree import atoms_below, joined_keys

MUCH = 2.0
"""By so many times a hierarchy must be estimated cheaper than the view tree before ``auto`` takes it."""
MOST_ATOMS = 7
"""Hierarchies of larger joins are not looked at by ``auto``: they have many views."""


@dataclass(frozen=True, slots=True)
class PulledCondition:
    """A condition that is checked when views are read: estimated costs of an update if a view had it inside, or not."""

    condition: int
    view: str
    full: float
    part: float


@dataclass(frozen=True, slots=True)
class RecursivePlan:
    """How a join query is maintained by recursive deltas. ``whole`` is the hierarchy with what is needed to fill it."""

    query: JoinQuery
    depth: int | None
    whole: Hierarchy
    hierarchy: Hierarchy
    costs: tuple[UpdateCost, ...]
    estimated_cost: float
    """Rows touched by one changed row, over all atoms by how often they change."""
    wide: tuple[str, ...]
    pulled: tuple[PulledCondition, ...]

    def size_of(self, view: RecursiveView) -> Fraction:
        """The view has at most N^size rows."""
        return _size(EncodedQuery(self.query), view)

    @property
    def depth_text(self) -> str:
        """The depth in words."""
        return "full depth" if self.depth is None else f"depth {self.depth}"


def plan_recursive(
    query: JoinQuery, conditions: tuple[tuple[str, ...], ...] = (), depth: int | None = None
) -> RecursivePlan:
    """The plan of a query.

    Raises:
        TooManyViewsError: the hierarchy would be too large.
    """
    whole = recursive_views(query, conditions, depth)
    hierarchy = whole.restricted()
    bounds = UpdateBounds(query)
    estimates = Estimates(bounds.encoded)
    changing = [(i, a.name) for i, a in enumerate(query.atoms) if a.updatable]
    costs = tuple(bounds.cost_of(name, hierarchy.steps(i)) for i, name in changing)
    estimated = sum(estimates.weights[i] * _rows_touched(estimates, hierarchy.steps(i), i) for i, _ in changing)
    wide = tuple(v.name for v in hierarchy.views[:-1] if _size(bounds.encoded, v) > 1)
    pulled = tuple(
        found
        for change in hierarchy.deltas
        for number in sorted(change.conditions)
        for found in _pulled(estimates, hierarchy, change, number, conditions[number])
    )
    return RecursivePlan(query, depth, whole, hierarchy, costs, estimated, wide, tuple(dict.fromkeys(pulled)))


def _size(encoded: EncodedQuery, view: RecursiveView) -> Fraction:
    return encoded.cover_number(encoded.variable_set(view.keys), sum(1 << i for i in view.atoms))


def _rows_touched(estimates: Estimates, steps: tuple[DeltaStep, ...], atom: int) -> float:
    """By one row of an atom: found by look-ups, and written to the views."""
    encoded = estimates.encoded
    position = {a.name: i for i, a in enumerate(encoded.query.atoms)}
    row, touched = encoded.atoms[atom], 0.0
    for step in steps:
        atoms = sum(1 << position[a.name] for a in atoms_below(step.view))
        found = estimates.matches(encoded.variable_set(joined_keys(step.view)), row, atoms)
        written = estimates.matches(encoded.variable_set(step.view.keys), row, atoms)
        touched += found * len(step.lookups) + WRITE * written
    return touched


def _pulled(
    estimates: Estimates, hierarchy: Hierarchy, change: RecursiveDelta, number: int, variables: tuple[str, ...]
) -> list[PulledCondition]:
    """The comparison of example 3.4 for each view that would have the condition inside, but for the changed atom's side."""
    encoded = estimates.encoded
    given = set(hierarchy.query.atoms[change.atom].variables) & set(variables)
    found = []
    for view in change.joined:
        own = set(variables) & set(view.keys) - given
        if not own or not given or not own | given >= set(variables):
            continue
        atoms = sum(1 << i for i in view.atoms)
        rows = estimates.matches(encoded.variable_set(view.keys), 0, atoms)
        others = estimates.matches(encoded.variable_set([k for k in view.keys if k not in own]), 0, atoms)
        domain = min(
            estimates.rows[change.atom],
            estimates.matches(encoded.variable_set(sorted(given)), 0, 1 << change.atom),
        )
        asked = estimates.weights[change.atom]
        written = sum(estimates.weights[i] for i in bits(atoms & encoded.updatable))
        there = 1 - domain / max(estimates.rows[change.atom], 1.0)
        full = asked * (there + (1 - there) * rows) + written * (domain * others + 1)
        found.append(PulledCondition(number, view.name, full, asked * rows + written))
    return found


def compare_with_tree(tree: TreePlan) -> tuple[RecursivePlan | None, str]:
    """The hierarchy, if ``auto`` takes it in place of a view tree; and why it does or does not.

    It does if one changed row of some atom has a lower bound, of no atom a higher one, no view is wide, and the estimate is
    lower as well; or with equal bounds, if the estimate is ``MUCH`` lower. Otherwise the view tree stays: it has fewer views.
    """
    query = tree.query
    if len(query.atoms) < 2 or not any(a.updatable for a in query.atoms):
        return None, ""
    if query.across_atoms:
        return None, "view tree taken: recursive deltas are not compared where predicates read several relations"
    if len(query.atoms) > MOST_ATOMS:
        return None, f"view tree taken: recursive deltas of {len(query.atoms)} relations have too many views to look at"
    try:
        found = plan_recursive(query)
    except TooManyViewsError as error:
        return None, f"view tree taken: recursive deltas would need {error}"
    if found.wide:
        worst = max((v for v in found.hierarchy.views if v.name in found.wide), key=found.size_of)
        listed = f"{worst.name}[{', '.join(worst.keys)}]"
        return None, f"view tree taken: recursive deltas would store {listed}, of up to N^{found.size_of(worst)} rows"
    mine = {c.atom: c.bound for c in tree.costs}
    theirs = {c.atom: c.bound for c in found.costs}
    if worse := [a for a in mine if theirs[a] > mine[a]]:
        return (
            None,
            f"view tree taken: a row of {worse[0]} costs {mine[worse[0]]}, with recursive deltas {theirs[worse[0]]}",
        )
    touched = _tree_rows(tree)
    told = f"a changed row touches about {touched:,.1f} rows, with recursive deltas {found.estimated_cost:,.1f}"
    better = [a for a in mine if theirs[a] < mine[a]]
    if better and found.estimated_cost < touched:
        return found, (
            f"recursive deltas taken: a row of {better[0]} costs {theirs[better[0]]}, in a view tree {mine[better[0]]}; {told}"
        )
    if found.estimated_cost * MUCH < touched:
        return found, f"recursive deltas taken: the bounds are equal, and {told}"
    return None, f"view tree taken: recursive deltas have no lower bounds; {told}"


def _tree_rows(tree: TreePlan) -> float:
    """The same estimate for a view tree."""
    estimates = Estimates(EncodedQuery(tree.query))
    return sum(
        estimates.weights[i] * _rows_touched(estimates, tree.delta_path(atom.name), i)
        for i, atom in enumerate(tree.query.atoms)
        if atom.updatable
    )
