"""All triangles, to be listed with constant delay, by heavy and light parts (appendix E of IVM^ε).

The triangles over a combination of parts are a listing where each change of it adds few rows (all parts heavy, or all light).
Otherwise two of the three parts have a join that changes little, and the third is only looked up (figure 12):

    V[a, b, c] = R_h[a, b] * S_l[b, c]             which b are between a and c
    B[a, c]    = Σ_b V[a, b, c]
    Q[a, c]    = B[a, c] * T[c, a]                 which a and c have a triangle

So a triangle is an entry of Q, one of V for it, and one of T. Every entry of Q has one: no step of the enumeration is in vain.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

from everview.planner.join_query import JoinQuery
from everview.planner.skew_plan import (
    AuxiliaryView,
    BranchStep,
    Element,
    PartJoin,
    RelationPart,
    SkewBranch,
    SkewPlan,
    parts_by,
)
from everview.planner.skew_search import NoSkewPlan, cyclic_keys
from everview.planner.skew_ways import PartWays

LISTED = Fraction(3, 2)
"""A database has at most N^3/2 triangles."""


def plan_skew_listing(query: JoinQuery, epsilons: Mapping[str, Fraction]) -> SkewPlan:
    """The plan of a full triangle query whose result stays factorized.

    Raises:
        NoSkewPlan: there is none, and why.
    """
    keys = cyclic_keys(query, epsilons)
    if len(query.atoms) != 3 or keys is None or query.across_atoms:
        raise NoSkewPlan("triangles of three relations are listed by heavy and light parts, and it is no such query")
    lacking = [v for v in query.variables if v not in query.free]
    if lacking:
        raise NoSkewPlan(f"triangles are listed with all their columns, and it leaves {', '.join(lacking)} out")
    private = [v for v in query.variables if len(query.atoms_with(v)) == 1]
    if private:
        raise NoSkewPlan(f"the triangles' vertices are listed, and {', '.join(private)} is joined on nowhere")
    limit = max(max(e, 1 - e) for e in epsilons.values())
    listing = _Listing(query, PartWays(query, keys, limit), limit)
    branches = tuple(listing.branch(parts) for parts in product(*(parts_by(i, own) for i, own in enumerate(keys))))
    return SkewPlan(
        query, "full triangle listing", keys, tuple(listing.views.values()), ((),) * len(query.atoms), branches
    )


class _Listing:
    def __init__(self, query: JoinQuery, ways: PartWays, limit: Fraction) -> None:
        self._query, self._ways, self._limit = query, ways, limit
        self.views: dict[tuple[tuple[Element, ...], tuple[str, ...]], AuxiliaryView] = {}

    def branch(self, parts: tuple[RelationPart, ...]) -> SkewBranch:
        """The views that the triangles over some parts are listed from."""
        alone = [self._ways.join(p, tuple(q for q in parts if q != p)) for p in parts]
        if self._is_cheap(alone):
            listed = self._view(parts, set(self._query.free), alone, LISTED)
            return SkewBranch((BranchStep(listed, is_factor=True),))
        for third in parts:
            first, second = (p for p in parts if p != third)
            pair = [self._ways.join(first, (second,)), self._ways.join(second, (first,))]
            if self._is_cheap(pair):
                return self._over_a_pair(first, second, third, pair)
        raise AssertionError("two of three parts, one heavy and one light, have a join that changes little")

    def _is_cheap(self, joins: list[PartJoin]) -> bool:
        return all(join.is_promised and join.exponent <= self._limit for join in joins)

    def _over_a_pair(
        self, first: RelationPart, second: RelationPart, third: RelationPart, pair: list[PartJoin]
    ) -> SkewBranch:
        shared = (self._own(first) | self._own(second)) & self._own(third)
        size = 1 + min(join.exponent for join in pair)
        between = self._view((first, second), self._own(first) | self._own(second), pair, size)
        summed = self._view((first, second), shared, pair, size)
        joins = [PartJoin((*join.steps, third), join.exponent) for join in pair]
        root = self._view((first, second, third), shared, [*joins, PartJoin((summed,), Fraction(0))], Fraction(1))
        steps = ((root, False), (between, True), (third, True))
        return SkewBranch(tuple(BranchStep(step, is_factor=is_factor) for step, is_factor in steps))

    def _own(self, part: RelationPart) -> set[str]:
        return set(self._query.atoms[part.atom].variables)

    def _view(
        self, parts: tuple[RelationPart, ...], keys: set[str], upkeep: list[PartJoin], size: Fraction
    ) -> AuxiliaryView:
        ordered = tuple(v for v in self._query.variables if v in keys)
        view = AuxiliaryView(f"V{len(self.views) + 1}", parts, ordered, tuple(upkeep), size)
        return self.views.setdefault((parts, ordered), view)
