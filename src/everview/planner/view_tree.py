"""View trees: what a variable order becomes (figures 4 and 9 of F-IVM).

    Leaf       the atom itself, a view keyed by its variables
    InnerView  V[keys] = ⊕ summed  ⨂ children
    Indicator  ∃ projection of an atom on some variables, joined in where a cycle would make a view too large (figure 17)

A forest: a disconnected query has several roots and its result is their product, which stays factorized.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from everview.planner.join_query import Atom


@dataclass(frozen=True, slots=True)
class Leaf:
    """An atom at the bottom of the tree."""

    atom: Atom

    @property
    def name(self) -> str:
        """The atom's name."""
        return self.atom.name

    @property
    def keys(self) -> tuple[str, ...]:
        """The atom's variables."""
        return self.atom.variables


@dataclass(frozen=True, slots=True)
class Indicator:
    """∃_keys atom: payload one for every combination of ``keys`` that the atom holds."""

    name: str
    atom: Atom
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InnerView:
    """V[keys] = ⊕ over ``summed`` of the product of the children. ``at`` holds the variables it stands for in the order."""

    name: str
    at: tuple[str, ...]
    keys: tuple[str, ...]
    summed: tuple[str, ...]
    children: tuple[ViewNode, ...]


ViewNode: TypeAlias = Leaf | Indicator | InnerView


@dataclass(frozen=True, slots=True)
class ViewTree:
    """The trees of the connected components, with the free variables of the whole result."""

    roots: tuple[ViewNode, ...]
    free: tuple[str, ...]
    enumerate_from: tuple[tuple[str, str], ...] = ()
    """Factorized only: top-down, each free variable with the name of the node that lists its values given those before."""

    def nodes(self) -> Iterator[ViewNode]:
        """All nodes, children before parents, left to right."""
        for root in self.roots:
            yield from _below(root)


def _below(node: ViewNode) -> Iterator[ViewNode]:
    if isinstance(node, InnerView):
        for child in node.children:
            yield from _below(child)
    yield node


def atoms_below(node: ViewNode) -> tuple[Atom, ...]:
    """The atoms at the leaves below a node, left to right; an indicator has none, as it is no factor of the product."""
    if isinstance(node, InnerView):
        return tuple(a for child in node.children for a in atoms_below(child))
    return (node.atom,) if isinstance(node, Leaf) else ()


def indicators_below(node: ViewNode) -> tuple[Indicator, ...]:
    """The indicators below a node, left to right, or the node itself if it is one."""
    if isinstance(node, InnerView):
        return tuple(i for child in node.children for i in indicators_below(child))
    return (node,) if isinstance(node, Indicator) else ()


def joined_keys(view: InnerView) -> tuple[str, ...]:
    """The variables of the join of the children, before any is summed out."""
    return tuple(dict.fromkeys(v for child in view.children for v in child.keys))
