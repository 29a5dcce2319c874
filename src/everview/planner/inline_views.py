"""Fewer, flatter views: a view whose upkeep costs more than it saves becomes part of the one above.

    ⊕ A ⊗ (⊕ B ⊗ C)  =  ⊕ A ⊗ B ⊗ C

A stored view saves look-ups to the updates of its siblings and costs a write to the updates below it. The law holds always;
it is used where the estimated cost falls and no update loses the bound on what it joins to: what was O(1) stays O(1). What
lies between two look-ups is left to the estimates, or a query without declared keys would store more than it gains. A view
of one child is left alone, as it holds what is left of a table after its predicates and sums.

A *wide* view has keys that no single atom below it has or determines, so that it may have more rows than any of them. An engine
that cannot afford to store such views has them inlined whatever they save.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from everview.planner.bit_sets import bits
from everview.planner.cost import UpdateBounds
from everview.planner.delta_tree import delta_step
from everview.planner.join_query import JoinQuery
from everview.planner.order_cost import OrderCost, Part
from everview.planner.view_tree import InnerView, ViewNode, ViewTree, atoms_below


def inline_views(query: JoinQuery, tree: ViewTree, *, keeps_wide: bool = True) -> ViewTree:
    """The listing tree with the views inlined that are better not stored; with ``keeps_wide`` unset, all wide ones."""
    inliner = _Inliner(query, keeps_wide=keeps_wide)
    return replace(tree, roots=tuple(inliner.node(root) for root in tree.roots))


class _Inliner:
    def __init__(self, query: JoinQuery, *, keeps_wide: bool) -> None:
        self._keeps_wide = keeps_wide
        self.cost = OrderCost(query, "listing")
        self.bounds = UpdateBounds(query)
        self.encoded = self.cost.encoded
        self._position = {a.name: i for i, a in enumerate(query.atoms)}

    def node(self, node: ViewNode) -> ViewNode:
        """The best form of a tree, from below; inlining goes on with what came up."""
        if not isinstance(node, InnerView):
            return node
        view = replace(node, children=tuple(self.node(child) for child in node.children))
        while True:
            candidates = [c for c in view.children if isinstance(c, InnerView) and len(c.children) > 1]
            better = next((m for c in candidates if (m := self._merged(view, c)) is not None), None)
            if better is None:
                return view
            view = better

    def _merged(self, view: InnerView, child: InnerView) -> InnerView | None:
        """The view with the child inlined, if that is better."""
        i = view.children.index(child)
        merged = InnerView(
            view.name,
            (*view.at, *child.at),
            view.keys,
            (*view.summed, *child.summed),
            (*view.children[:i], *child.children, *view.children[i + 1 :]),
        )
        if not self._keeps_wide and self._is_wide(child):
            return merged
        before = self._cost(view) + self._cost(child)
        is_better = self._cost(merged) < before and self._keeps_bounds(view, child, merged)
        return merged if is_better else None

    def _is_wide(self, view: InnerView) -> bool:
        keys = self.encoded.variable_set(view.keys)
        return self.encoded.cover_number(keys, self.bounds.atom_set(view)) > 1

    def _keeps_bounds(self, view: InnerView, child: InnerView, merged: InnerView) -> bool:
        for i in bits(self.bounds.atom_set(view) & self.encoded.updatable):
            passed = (view, child) if self.bounds.atom_set(child) >> i & 1 else (view,)
            if self._exponent(merged, i) > max(self._exponent(v, i) for v in passed):
                return False
        return True

    def _exponent(self, view: InnerView, atom: int) -> Fraction:
        child = next(c for c in view.children if self.bounds.atom_set(c) >> atom & 1)
        step = delta_step(view, child, self.encoded.query.dependencies)
        return self.bounds.joined_exponent(step, self.encoded.atoms[atom])

    def _cost(self, view: InnerView) -> float:
        return self.cost.view(self._part(child) for child in view.children)

    def _part(self, node: ViewNode) -> Part:
        atoms = sum(1 << self._position[a.name] for a in atoms_below(node))
        return Part(self.encoded.variable_set(node.keys), atoms)
