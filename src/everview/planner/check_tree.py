"""What every view tree must satisfy; ``plan_tree`` checks each tree it returns.

A variable is summed out only where nothing else needs it: no atom outside, no free variable of a listing, no set of variables
needed together that has not been joined at or below.
"""

from __future__ import annotations

from everview.errors import InternalError
from everview.planner.build_tree import Representation
from everview.planner.join_query import JoinQuery
from everview.planner.view_tree import Indicator, InnerView, Leaf, ViewNode, ViewTree, atoms_below, joined_keys


def check_tree(query: JoinQuery, tree: ViewTree, representation: Representation = "listing") -> None:
    """Does nothing for a valid tree.

    Raises:
        InternalError: if the tree does not compute the query.
    """
    leaves = sorted(n.atom.name for n in tree.nodes() if isinstance(n, Leaf))
    _require(leaves == sorted(a.name for a in query.atoms), f"the leaves are {leaves}")
    names = [n.name for n in tree.nodes() if not isinstance(n, Indicator)]
    _require(len(names) == len(set(names)), f"node names repeat: {names}")
    listed = {v for v, _ in tree.enumerate_from}
    for node in tree.nodes():
        if isinstance(node, InnerView):
            _check_view(query, node, set(query.free) - listed)
    if representation == "listing":
        _require(not listed, "a listing is not enumerated")
        for root in tree.roots:
            _require(root.keys == tuple(v for v in query.free if v in root.keys), f"the root's keys are {root.keys}")
        found = [v for root in tree.roots for v in root.keys]
        _require(sorted(found) == sorted(query.free), f"the roots list {found}")
    else:
        _require(listed == set(query.free), f"{sorted(listed)} are enumerated")
        by_name = {n.name: n for n in tree.nodes()}
        _require(all(v in by_name[name].keys for v, name in tree.enumerate_from), "a view lists what it does not have")


def _check_view(query: JoinQuery, view: InnerView, free: set[str]) -> None:
    joined = joined_keys(view)
    _require(bool(view.children), f"{view.name} has no children")
    _require(sorted((*view.keys, *view.summed)) == sorted(joined), f"{view.name} loses variables")
    below = set(atoms_below(view))
    for v in view.summed:
        outside = [a.name for a in query.atoms if v in a.variables and a not in below]
        _require(not outside, f"{view.name} sums {v}, which {outside} join on")
        _require(v not in free, f"{view.name} sums the free {v}")
        for together in query.across_atoms:
            if v in together:
                _require(
                    _is_joined(view, together), f"{view.name} sums {v} before all of {sorted(together)} are joined"
                )
    for child in view.children:
        if isinstance(child, Indicator):
            others = {v for c in view.children if c is not child for v in c.keys}
            _require(set(child.keys) <= others & set(child.atom.variables), f"{child.name} adds variables")
            _require(child.atom not in below, f"{child.name} is of an atom below")


def _is_joined(node: ViewNode, together: frozenset[str]) -> bool:
    if not isinstance(node, InnerView):
        return False
    return together <= set(joined_keys(node)) or any(_is_joined(c, together) for c in node.children)


def _require(is_so: bool, message: str) -> None:
    if not is_so:
        raise InternalError(f"no valid view tree: {message}.")
