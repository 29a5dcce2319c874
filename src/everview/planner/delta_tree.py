"""Delta trees (figure 7): what one update passes through on its way to the root.

    δV[keys] = ⊕ summed  δchild ⊗ siblings

An update to one atom is a path of such steps. A bulk of updates is a sequence of them, atom after atom in the order of the
query: the update of atom i finds the new contents of the atoms before it and the old contents of those after it, so that δ(V
⊗ W) = δV ⊗ W ⊎ V' ⊗ δW needs no third term. This holds for the occurrences of one self-joined relation too, which are
several atoms. After the path of an atom follow those of its indicators, places further up first: an indicator that stands in
several places is one relation, and where the path from a place meets it again it is new already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from everview.planner.dependencies import closure, witnesses
from everview.planner.join_query import Dependency
from everview.planner.view_tree import Indicator, InnerView, Leaf, ViewNode, ViewTree, atoms_below


@dataclass(frozen=True, slots=True)
class Lookup:
    """A join of the delta with a sibling: found by the keys ``by``, which the delta has, it adds the keys ``adds``."""

    node: ViewNode
    by: tuple[str, ...]
    adds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeltaStep:
    """δview = ⊕ view.summed of δchild ⊗ siblings. ``lookups`` are the siblings in an order good to join in."""

    view: InnerView
    child: ViewNode
    siblings: tuple[ViewNode, ...]
    lookups: tuple[Lookup, ...]


def delta_path(tree: ViewTree, atom: str, dependencies: tuple[Dependency, ...] = ()) -> tuple[DeltaStep, ...]:
    """The steps of an update to an atom, from its leaf to the root; empty if the leaf is the root.

    With ``dependencies`` look-ups that find one row at most come first.

    Raises:
        KeyError: if the tree has no such atom.
    """
    for path in _paths(tree):
        if isinstance(path[0], Leaf) and path[0].atom.name == atom:
            return _steps(path, dependencies)
    raise KeyError(atom)


def indicator_paths(
    tree: ViewTree, atom: str, dependencies: tuple[Dependency, ...] = ()
) -> tuple[tuple[DeltaStep, ...], ...]:
    """The steps of the changes of each indicator of an atom, which follow the steps of the atom itself."""
    starts = (p for p in _paths(tree) if isinstance(p[0], Indicator) and p[0].atom.name == atom)
    return tuple(_steps(path, dependencies) for path in starts)


def _paths(tree: ViewTree) -> Iterator[tuple[ViewNode, ...]]:
    for root in tree.roots:
        yield from _paths_to(root, ())


def _paths_to(node: ViewNode, above: tuple[ViewNode, ...]) -> Iterator[tuple[ViewNode, ...]]:
    path = (node, *above)
    if isinstance(node, InnerView):
        for child in sorted(node.children, key=lambda c: not isinstance(c, Indicator)):
            yield from _paths_to(child, path)
    else:
        yield path


def _steps(path: tuple[ViewNode, ...], dependencies: tuple[Dependency, ...]) -> tuple[DeltaStep, ...]:
    return tuple(delta_step(view, child, dependencies) for child, view in pairwise(path) if isinstance(view, InnerView))


def delta_step(view: InnerView, child: ViewNode, dependencies: tuple[Dependency, ...]) -> DeltaStep:
    """What a change of one child does at a view."""
    siblings = tuple(c for c in view.children if c is not child)
    return DeltaStep(view, child, siblings, tuple(_lookups(child, siblings, dependencies)))


def _lookups(child: ViewNode, siblings: tuple[ViewNode, ...], dependencies: tuple[Dependency, ...]) -> Iterator[Lookup]:
    """First those by all keys, then those that find one row, then those that share most: products come last."""
    known = set(child.keys)
    left = {i: (n, tuple(_seen_in(n, dependencies))) for i, n in enumerate(siblings)}

    def rank(i: int) -> tuple[bool, bool, int, int]:
        node, rules = left[i]
        keys = set(node.keys)
        if keys <= known:
            return False, False, 0, 0  # look-ups by all keys keep the order of the tree
        return True, not keys <= closure(known, rules), -len(keys & known), len(keys - known)

    while left:
        best, _ = left.pop(min(left, key=rank))
        by = tuple(k for k in best.keys if k in known)
        yield Lookup(best, by, tuple(k for k in best.keys if k not in known))
        known |= set(best.keys)


def _seen_in(node: ViewNode, dependencies: tuple[Dependency, ...]) -> Iterator[Dependency]:
    """The dependencies that hold of a node's rows, since an atom below shows them."""
    atoms = atoms_below(node)
    for d in dependencies:
        seen = frozenset(v for v in d.dependent if witnesses(d, v, atoms))
        if seen:
            yield Dependency(d.determinant, seen)
