"""Hypergraphs of join queries: GYO reduction, acyclicity, join trees, components, the free-connex test.

    nodes       the variables
    hyperedges  the schemas of the atoms, each with a name

GYO repeats until nothing changes: (1) remove a node that only one hyperedge has; (2) remove a hyperedge included in another.
The hypergraph is (α-)acyclic exactly if one empty hyperedge is left of each component. The hyperedge that swallowed another is
its parent in a join tree: a tree of the atoms in which those that have a variable are connected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.planner.join_query import Atom, JoinQuery


@dataclass(frozen=True, slots=True)
class Hyperedge:
    """A named set of variables."""

    name: str
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reduction:
    """What GYO leaves: ``residue`` (hyperedges with what is left of their variables) and ``swallowed`` (child, parent) pairs.

    The residue is empty for an acyclic hypergraph. ``swallowed`` is in order of removal.
    """

    residue: tuple[Hyperedge, ...]
    swallowed: tuple[tuple[str, str], ...]
    roots: tuple[str, ...]

    @property
    def is_acyclic(self) -> bool:
        """Whether nothing is left."""
        return not self.residue


def hyperedges(query: JoinQuery) -> tuple[Hyperedge, ...]:
    """The schemas of the atoms."""
    return tuple(Hyperedge(a.name, frozenset(a.variables)) for a in query.atoms)


def gyo(edges: Iterable[Hyperedge]) -> Reduction:
    """The GYO reduction. Of equal hyperedges the later one is removed; a hyperedge that ends up alone and empty is a root."""
    left = {e.name: set(e.variables) for e in edges}
    swallowed: list[tuple[str, str]] = []
    roots: list[str] = []
    is_changing = True
    while is_changing:
        is_changing = False
        for name, own in left.items():
            lonely = {v for v in own if not any(v in other for n, other in left.items() if n != name)}
            if lonely:
                own.difference_update(lonely)
                is_changing = True
        for name in reversed(list(left)):
            if not left[name]:  # an empty hyperedge: the last of its component, or one without variables
                roots.append(name)
                del left[name]
                is_changing = True
                continue
            parent = next((n for n, other in left.items() if n != name and left[name] <= other), None)
            if parent is not None:
                swallowed.append((name, parent))
                del left[name]
                is_changing = True
    residue = tuple(Hyperedge(name, frozenset(own)) for name, own in left.items())
    return Reduction(residue, tuple(swallowed), tuple(roots))


def gyo_star(indicators: Iterable[Hyperedge], relations: Iterable[Hyperedge]) -> tuple[str, ...]:
    """GYO* of figure 17: the names of the indicators that are part of a cycle with the relations.

    Relations come first, so that an indicator that says no more than a relation is the one to go.
    """
    indicators = tuple(indicators)
    stays = {e.name for e in gyo((*relations, *indicators)).residue}
    return tuple(e.name for e in indicators if e.name in stays)


def is_acyclic(edges: Iterable[Hyperedge]) -> bool:
    """Whether the hypergraph has a join tree (definition 14)."""
    return gyo(edges).is_acyclic


def join_forest(edges: Iterable[Hyperedge]) -> tuple[tuple[str, str], ...] | None:
    """The (child, parent) pairs of a join tree for each component, or None if the hypergraph is cyclic."""
    reduction = gyo(edges)
    return reduction.swallowed if reduction.is_acyclic else None


def is_free_connex(query: JoinQuery) -> bool:
    """Whether the query is acyclic and stays acyclic with one more atom over its free variables (definition 14)."""
    edges = hyperedges(query)
    head = Hyperedge("", frozenset(query.free))
    return is_acyclic(edges) and is_acyclic((*edges, head))


def components(query: JoinQuery) -> tuple[tuple[Atom, ...], ...]:
    """The atoms by connected component; sets of ``together`` connect as well. An atom without variables is alone."""
    groups: list[tuple[set[str], list[Atom]]] = []
    for atom in query.atoms:
        _connect(groups, set(atom.variables), [atom])
    for together in query.together:
        _connect(groups, set(together), [])
    position = {a.name: i for i, a in enumerate(query.atoms)}
    ordered = (sorted(atoms, key=lambda a: position[a.name]) for _, atoms in groups if atoms)
    return tuple(sorted((tuple(atoms) for atoms in ordered), key=lambda atoms: position[atoms[0].name]))


def _connect(groups: list[tuple[set[str], list[Atom]]], variables: set[str], atoms: list[Atom]) -> None:
    touched = [g for g in groups if g[0] & variables]
    merged_variables = variables.union(*(g[0] for g in touched))
    merged_atoms = [a for g in touched for a in g[1]] + atoms
    groups[:] = [g for g in groups if not g[0] & variables]
    groups.append((merged_variables, merged_atoms))
