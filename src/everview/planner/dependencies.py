"""Functional dependencies: closures, which of them hold where, and the Σ-reduct (section 7.3, definition 25).

The Σ-reduct of Q[S] = ⊕ ⨂ Rᵢ[Sᵢ] is Q[closure(S)] = ⊕ ⨂ Rᵢ[closure(Sᵢ)]. A query has the guarantees of its reduct's class:
the variables that a schema gains are determined by it, so its relation could be extended without getting more rows. Nothing
is extended: a variable order of the reduct is one of the query.

The dependencies are taken to hold of the extended relations. Rows that do not join may break that: with AC → D seen in R[A,
C, D] only, a look-up by A in S[A, D] finds any number of rows, though one of them at most has a partner. ``cost`` therefore
bounds each look-up by the dependencies that hold of the atoms looked up in, and may find O(N) where the reduct's class says
O(1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from everview.planner.join_query import Atom, Dependency, JoinQuery


def closure(variables: Iterable[str], dependencies: Iterable[Dependency]) -> frozenset[str]:
    """All variables that the given ones determine.

    >>> sigma = [
    ...     Dependency(frozenset("A"), frozenset("D")),
    ...     Dependency(frozenset("BD"), frozenset("E")),
    ... ]
    >>> "".join(sorted(closure("ABC", sigma)))
    'ABCDE'
    """
    known = frozenset(variables)
    rules = tuple(dependencies)
    while True:
        more = known.union(*(d.dependent for d in rules if d.determinant <= known))
        if more == known:
            return known
        known = more


def sigma_reduct(query: JoinQuery) -> JoinQuery:
    """The query with every schema, and the free variables, closed under the dependencies; variables of no atom stay out."""
    present = query.variables

    def closed(variables: tuple[str, ...]) -> tuple[str, ...]:
        full = closure(variables, query.dependencies)
        return (*variables, *(v for v in present if v in full and v not in variables))

    atoms = tuple(replace(a, variables=closed(a.variables)) for a in query.atoms)
    return replace(query, atoms=atoms, free=closed(query.free))


def witnesses(dependency: Dependency, variable: str, atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    """The atoms in whose rows the dependency of this variable can be seen: those with the determinant and the variable.

    A look-up that binds the determinant finds one value of the variable only in a view that such an atom is part of.
    """
    needed = dependency.determinant | {variable}
    return tuple(a for a in atoms if needed <= set(a.variables))
