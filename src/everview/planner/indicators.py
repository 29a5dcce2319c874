"""Indicator projections for cyclic queries (figure 17).

At a view V over the atoms rels, ∃_pk R has payload one for each combination of pk = schema(R) ∩ keys(V) that R holds. It
does not change V's contribution to the result, as R is joined above anyway, but where it closes a cycle with rels it keeps
out of V what would find no partner in R: the view at C of the triangle query gets N rows at most, not N².

Indicators with one name are the same relation, wherever they stand.
"""

from __future__ import annotations

from dataclasses import replace

from everview.planner.hypergraph import Hyperedge, gyo_star
from everview.planner.join_query import JoinQuery
from everview.planner.view_tree import Indicator, Node, View, ViewTree, atoms_below


def add_indicators(query: JoinQuery, tree: ViewTree) -> ViewTree:
    """The tree with the indicators that are part of a cycle as last children of its views."""
    return replace(tree, roots=tuple(_extended(query, root) for root in tree.roots))


def _extended(query: JoinQuery, node: Node) -> Node:
    if not isinstance(node, View):
        return node
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
    children = tuple(_extended(query, child) for child in node.children)
    return replace(node, children=(*children, *(candidates[name] for name in chosen)))
