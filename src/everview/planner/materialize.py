"""Which nodes of a view tree to store (figure 8).

A view is stored if a delta may join with it: if one of its siblings is over an atom that changes. Roots are stored as they are
the result; a factorized tree also stores the views that its result is enumerated from. Indicators of an atom that changes are
stored whatever is beside them, as only what they hold says which changes of the atom change them.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.planner.view_tree import Indicator, InnerView, ViewNode, ViewTree


def materialized_nodes(tree: ViewTree, *, roots: bool = True) -> frozenset[str]:
    """The names of the nodes to store; a leaf among them means that its relation is looked up in.

    ``roots`` is False for a result that is only passed on, and not kept.
    """
    found = {name for root in tree.roots for name in _joined_with(root)}
    if roots:
        found |= {root.name for root in tree.roots}
        found |= {name for _, name in tree.enumerate_from}
    return frozenset(found)


def _joined_with(node: ViewNode) -> Iterator[str]:
    if not isinstance(node, InnerView):
        return
    for child in node.children:
        is_joined = any(other is not child and is_updatable(other) for other in node.children)
        if is_joined or (isinstance(child, Indicator) and child.atom.updatable):
            yield child.name
        yield from _joined_with(child)


def is_updatable(node: ViewNode) -> bool:
    """Whether some atom below may change, the atom of an indicator included."""
    if isinstance(node, InnerView):
        return any(is_updatable(child) for child in node.children)
    return node.atom.updatable
