"""Delta trees (figure 7): what one update passes through on its way to the root.

    δV[keys] = ⊕ summed  δchild ⊗ siblings

An update to one atom is a path of such steps. A bulk of updates is a sequence of them, atom after atom in the order of the
query: the update of atom i finds the new contents of the atoms before it and the old contents of those after it, so that δ(V
⊗ W) = δV ⊗ W ⊎ V' ⊗ δW needs no third term. This holds for the occurrences of one self-joined relation too, which are
several atoms. After the path of an atom follow those of its indicators, in the order of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from everview.planner.view_tree import Indicator, Leaf, Node, View, ViewTree


@dataclass(frozen=True, slots=True)
class Lookup:
    """A join of the delta with a sibling: found by the keys ``by``, which the delta has, it adds the keys ``adds``."""

    node: Node
    by: tuple[str, ...]
    adds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeltaStep:
    """δview = ⊕ view.summed of δchild ⊗ siblings. ``lookups`` are the siblings in an order good to join in."""

    view: View
    child: Node
    siblings: tuple[Node, ...]
    lookups: tuple[Lookup, ...]


def delta_path(tree: ViewTree, atom: str) -> tuple[DeltaStep, ...]:
    """The steps of an update to an atom, from its leaf to the root; empty if the leaf is the root.

    Raises:
        KeyError: if the tree has no such atom.
    """
    for path in _paths(tree):
        if isinstance(path[0], Leaf) and path[0].atom.name == atom:
            return _steps(path)
    raise KeyError(atom)


def indicator_paths(tree: ViewTree, atom: str) -> tuple[tuple[DeltaStep, ...], ...]:
    """The steps of the changes of each indicator of an atom, which follow the steps of the atom itself."""
    return tuple(_steps(p) for p in _paths(tree) if isinstance(p[0], Indicator) and p[0].atom.name == atom)


def _paths(tree: ViewTree) -> Iterator[tuple[Node, ...]]:
    for root in tree.roots:
        yield from _paths_to(root, ())


def _paths_to(node: Node, above: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    path = (node, *above)
    if isinstance(node, View):
        for child in node.children:
            yield from _paths_to(child, path)
    else:
        yield path


def _steps(path: tuple[Node, ...]) -> tuple[DeltaStep, ...]:
    return tuple(_step(view, child) for child, view in pairwise(path) if isinstance(view, View))


def _step(view: View, child: Node) -> DeltaStep:
    siblings = tuple(c for c in view.children if c is not child)
    return DeltaStep(view, child, siblings, tuple(_lookups(child, siblings)))


def _lookups(child: Node, siblings: tuple[Node, ...]) -> Iterator[Lookup]:
    """First those whose keys are all known, then those that share the most: a product only if nothing is shared."""
    known = set(child.keys)
    left = list(siblings)
    while left:
        best = min(left, key=lambda n: (not set(n.keys) <= known, -len(set(n.keys) & known), len(set(n.keys) - known)))
        left.remove(best)
        by = tuple(k for k in best.keys if k in known)
        yield Lookup(best, by, tuple(k for k in best.keys if k not in known))
        known |= set(best.keys)
