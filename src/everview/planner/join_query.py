"""A join-aggregate block as the planner sees it: atoms over variables, free variables, dependencies, who changes.

    Q[free] = ⊕ over the other variables of  ⨂ atom(variables)  ⨂ lifts

A variable is a name for a class of columns that the join makes equal. Payloads and lifts do not matter to the shape of a tree,
except that a term or a predicate over several variables needs them *together* in one view.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Atom:
    """One occurrence of a relation: ``name`` is unique in the query, ``relation`` is shared by the occurrences of a self-join.

    ``rows`` is the estimated number of rows; ``distinct`` estimates the distinct values of some of its variables.
    """

    name: str
    relation: str
    variables: tuple[str, ...]
    updatable: bool = True
    rows: float = 1000.0
    distinct: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Dependency:
    """A functional dependency: rows that agree on ``determinant`` agree on ``dependent``."""

    determinant: frozenset[str]
    dependent: frozenset[str]


@dataclass(frozen=True, slots=True)
class JoinQuery:
    """A block. ``together`` holds sets of variables that some predicate or term reads at once."""

    atoms: tuple[Atom, ...]
    free: tuple[str, ...]
    dependencies: tuple[Dependency, ...] = ()
    together: tuple[frozenset[str], ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, in order of first occurrence."""
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    def atoms_with(self, variable: str) -> tuple[Atom, ...]:
        """The atoms in which the variable occurs."""
        return tuple(a for a in self.atoms if variable in a.variables)

    @property
    def across_atoms(self) -> tuple[frozenset[str], ...]:
        """The sets of ``together`` that no single atom has; the others are local to a leaf."""
        return tuple(t for t in self.together if not any(t <= set(a.variables) for a in self.atoms))
