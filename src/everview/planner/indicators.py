"""Indicator projections for cyclic queries (figure 17).

At a view V over the atoms rels, ∃_pk R has payload one for each combination of pk = schema(R) ∩ keys(V) that R holds. It
does not change V's contribution to the result, as R is joined above anyway, but where it closes a cycle with rels it keeps
out of V what would find no partner in R: the view at C of the triangle query gets N rows at most, not N².

Indicators with one name are the same relation, wherever they stand.

An indicator makes the updates that change it climb one more path, and pays where a view is stored that would have more rows
than the database. So indicators are *useful* where they lower the exponent of the bound on a stored view's size: the weight of
a fractional cover of its keys by the atoms and indicators below. To write rows that find no partner costs more than a look-up.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from everview.planner.encoded_query import EncodedQuery
from everview.planner.hypergraph import Hyperedge, gyo_star
from everview.planner.join_query import JoinQuery
from everview.planner.materialize import is_updatable, materialized_nodes
from everview.planner.view_tree import Indicator, InnerView, ViewNode, ViewTree, atoms_below


def add_indicators(query: JoinQuery, tree: ViewTree) -> ViewTree:
    """The tree with the indicators that are part of a cycle as last children of its views."""
    return replace(tree, roots=tuple(_extended(query, root) for root in tree.roots))


def _extended(query: JoinQuery, node: ViewNode) -> ViewNode:
    if not isinstance(node, InnerView):
        return node
    children = tuple(_extended(query, child) for child in node.children)
    return replace(node, children=(*children, *_indicators_at(query, node)))


def _indicators_at(query: JoinQuery, node: InnerView) -> tuple[Indicator, ...]:
    below = atoms_below(node)
    candidates = {
        i.name: i
        for atom in query.atoms
        if atom not in below and (keys := tuple(v for v in atom.variables if v in node.keys))
        for i in (Indicator(f"∃{','.join(keys)}_{atom.name}", atom, keys),)
    }
    chosen = gyo_star(
        (Hyperedge(i.name, frozenset(i.keys)) for i in candidates.values()),
        (Hyperedge(a.name, frozenset(a.variables)) for a in below),
    )
    return tuple(candidates[name] for name in chosen)


def add_useful_indicators(query: JoinQuery, tree: ViewTree) -> ViewTree:
    """The tree with those indicators only that lower the bound on the size of a stored view that changes.

    One that stands further down already is not repeated: it has kept those rows out.
    """
    chooser = _Chooser(query, materialized_nodes(tree))
    return replace(tree, roots=tuple(chooser.extended(root)[0] for root in tree.roots))


class _Chooser:
    def __init__(self, query: JoinQuery, stored: frozenset[str]) -> None:
        self.query = query
        self.stored = stored
        self.encoded = EncodedQuery(query)
        self._position = {a.name: i for i, a in enumerate(query.atoms)}

    def extended(self, node: ViewNode) -> tuple[ViewNode, tuple[Indicator, ...]]:
        """The tree below a node with the indicators that are useful there."""
        if not isinstance(node, InnerView):
            return node, ()
        found = [self.extended(child) for child in node.children]
        below = tuple(i for _, indicators in found for i in indicators)
        chosen: tuple[Indicator, ...] = ()
        if node.name in self.stored and is_updatable(node):
            chosen = self._useful(node, below)
        return replace(node, children=(*(child for child, _ in found), *chosen)), (*below, *chosen)

    def _useful(self, view: InnerView, below: tuple[Indicator, ...]) -> tuple[Indicator, ...]:
        """All that close a cycle, if they lower the bound: those that a cover can do without still keep out rows."""
        found = _indicators_at(self.query, view)
        chosen = tuple(i for i in found if not any(_implies(other, i) for other in below))
        is_lower = self._exponent(view, (*below, *chosen)) < self._exponent(view, below)
        return chosen if is_lower else ()

    def _exponent(self, view: InnerView, indicators: tuple[Indicator, ...]) -> Fraction:
        """The view has at most N^exponent rows."""
        atoms = sum(1 << self._position[a.name] for a in atoms_below(view))
        others = tuple(self.encoded.variable_set(i.keys) for i in indicators)
        return self.encoded.cover_number(self.encoded.variable_set(view.keys), atoms, others)


def _implies(below: Indicator, above: Indicator) -> bool:
    """Whether rows that pass the one further down pass the other, too."""
    return below.atom == above.atom and set(above.keys) <= set(below.keys)
