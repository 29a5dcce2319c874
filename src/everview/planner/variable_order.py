"""Variable orders (definition 6): a forest of the variables, each atom along one path, placed under its lowest variable.

    dep(X)    the ancestors of X that share an atom with X or a variable below X: the keys of the view at X, if nothing is free
    free-top  no bound variable is above a free one

In text an order is written as in the paper: ``A - {B, C - {D, E}}``; trees of a forest are separated by ``;``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.planner.classes import is_hierarchical
from everview.planner.join_query import Atom, JoinQuery


@dataclass(frozen=True, slots=True)
class OrderNode:
    """A variable, the ancestors it depends on (topmost first), the atoms placed here and the variables below."""

    variable: str
    dep: tuple[str, ...]
    atoms: tuple[Atom, ...]
    children: tuple[OrderNode, ...]

    def walk(self) -> Iterator[OrderNode]:
        """This node and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def below(self) -> frozenset[str]:
        """Its variable and all below."""
        return frozenset(node.variable for node in self.walk())

    @property
    def text(self) -> str:
        """The paper's notation."""
        inner = [c.text for c in self.children]
        tail = "" if not inner else f" - {inner[0]}" if len(inner) == 1 else f" - {{{', '.join(inner)}}}"
        return self.variable + tail


@dataclass(frozen=True, slots=True)
class VariableOrder:
    """The forest, and the atoms without variables, which are trees of their own."""

    roots: tuple[OrderNode, ...]
    loose: tuple[Atom, ...] = ()

    def walk(self) -> Iterator[OrderNode]:
        """All nodes, parents first."""
        for root in self.roots:
            yield from root.walk()

    def parents(self) -> dict[str, str | None]:
        """The parent of each variable, parents first: what ``variable_order`` takes."""
        found: dict[str, str | None] = {root.variable: None for root in self.roots}
        for node in self.walk():
            found.update({child.variable: node.variable for child in node.children})
        return found

    def is_free_top(self, free: tuple[str, ...]) -> bool:
        """Whether no bound variable is above a free one."""
        return all(node.variable in free or not node.below & set(free) for node in self.walk())

    @property
    def text(self) -> str:
        """The paper's notation."""
        return "; ".join(root.text for root in self.roots)


def variable_order(query: JoinQuery, parents: Mapping[str, str | None]) -> VariableOrder:
    """The order with these parents (None for a root), checked against the query; siblings stay in the order of the mapping.

    Raises:
        ValueError: if it is no order of the query: variables missing or unknown, a cycle, an atom not along one path,
            or variables that are needed together in different trees.
    """
    paths = _paths(query, parents)
    placed: dict[str, list[Atom]] = {}
    for atom in query.atoms:
        if not atom.variables:
            continue
        lowest = max(atom.variables, key=lambda v: len(paths[v]))
        if not set(atom.variables) <= set(paths[lowest]):
            raise ValueError(f"the variables {', '.join(atom.variables)} of {atom.name} are not along one path")
        placed.setdefault(lowest, []).append(atom)
    for together in query.together:
        if len({paths[v][0] for v in together}) > 1:
            raise ValueError(f"{', '.join(sorted(together))} are needed together, but are in different trees")
    children: dict[str | None, list[str]] = {}
    for variable, parent in parents.items():
        children.setdefault(parent, []).append(variable)

    def node(variable: str) -> OrderNode:
        below = tuple(node(c) for c in children.get(variable, ()))
        atoms = tuple(placed.get(variable, ()))
        seen = {v for a in atoms for v in a.variables}.union(*(c.dep for c in below)) - {variable}
        return OrderNode(variable, tuple(v for v in paths[variable] if v in seen), atoms, below)

    loose = tuple(a for a in query.atoms if not a.variables)
    return VariableOrder(tuple(node(v) for v in children.get(None, ())), loose)


def _paths(query: JoinQuery, parents: Mapping[str, str | None]) -> dict[str, tuple[str, ...]]:
    """From the root to each variable, itself included."""
    if set(parents) != set(query.variables):
        odd = sorted(set(parents) ^ set(query.variables))
        raise ValueError(f"an order has each variable of the query once; not so: {', '.join(odd)}")
    paths: dict[str, tuple[str, ...]] = {}
    for variable in parents:
        path = [variable]
        while (above := parents[path[-1]]) is not None:
            if above in path or above not in parents:
                raise ValueError(f"{above} is above itself or unknown")
            path.append(above)
        paths[variable] = tuple(reversed(path))
    return paths


def parse_order(query: JoinQuery, text: str) -> VariableOrder:
    """The order in the paper's notation, such as ``A - {B, C - {D, E}}``."""
    parents: dict[str, str | None] = {}
    above: list[str | None] = [None]  # the parent at each open brace
    last: str | None = None
    for token in re.findall(r"[^\s{},;-]+|[{},;-]", text):
        if token == "-":
            above[-1] = last
        elif token == "{":
            above.append(above[-1])
        elif token == "}":
            above.pop()
        elif token in ",;":
            above[-1] = above[-2] if len(above) > 1 else None
        else:
            parents[token] = above[-1]
            last = token
    return variable_order(query, parents)


def canonical_order(query: JoinQuery, placed: JoinQuery | None = None) -> VariableOrder:
    """The canonical order of a hierarchical query: the variables of more atoms above, each path the schema of an atom.

    Among variables of the same atoms the free ones are above, so that the order of a q-hierarchical query is free-top. With
    ``placed`` the order is of that query, whose Σ-reduct the first one is.

    Raises:
        ValueError: if the query is not hierarchical.
    """
    if not is_hierarchical(query):
        raise ValueError("only a hierarchical query has a canonical order")
    atoms_of = {v: frozenset(a.name for a in query.atoms_with(v)) for v in query.variables}
    rank = {v: i for i, v in enumerate(query.variables)}
    downwards = sorted(rank, key=lambda v: (-len(atoms_of[v]), v not in query.free, rank[v]))
    parents: dict[str, str | None] = {}
    for variable in downwards:
        # The variables above are those placed before with all of its atoms: the last of them is the lowest.
        above = [v for v in parents if atoms_of[v] >= atoms_of[variable]]
        parents[variable] = above[-1] if above else None
    return variable_order(placed or query, by_first_atom(query, parents))


def by_first_atom(query: JoinQuery, parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """The same parents, with siblings in the order of the atoms."""
    first: dict[str, int] = {}
    for i, atom in enumerate(query.atoms):
        for v in atom.variables:
            first.setdefault(v, i)
    return dict(sorted(parents.items(), key=lambda item: first[item[0]]))
