"""Query classes that decide what one update can cost (definitions 14 and 21, theorems 13 and 26).

    hierarchical     for any two variables, their sets of atoms are disjoint or one includes the other
    q-hierarchical   hierarchical, and a variable with strictly more atoms than a free one is free      O(1) an update
    free-connex      acyclic, also with one more atom over the free variables                           O(N) an update
    acyclic          it has a join tree
    cyclic           it has none

The updates are of single rows and the result is kept factorized; a listing pays for every changed row of the result besides.

A predicate over several atoms (``JoinQuery.across_atoms``: an inequality, say) counts as one more hyperedge over its variables:
they have to meet in some view, as those of an atom do. Such a query is never hierarchical, and so never O(1) by its class. But
a predicate is no finite relation, and the theorems are about relations: the class describes the query and promises no bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from everview.planner.dependencies import sigma_reduct
from everview.planner.hypergraph import hyperedges, is_acyclic, is_free_connex
from everview.planner.join_query import Atom, JoinQuery


@dataclass(frozen=True, slots=True)
class QueryClass:
    """The classes that a query is in. ``name`` is the one with the best guarantee."""

    is_hierarchical: bool
    is_q_hierarchical: bool
    is_free_connex: bool
    is_acyclic: bool

    @property
    def name(self) -> str:
        """The strongest class, as the papers name it."""
        if self.is_q_hierarchical:
            return "q-hierarchical"
        if self.is_free_connex:
            return "free-connex acyclic"
        if self.is_hierarchical:
            return "hierarchical"
        return "acyclic" if self.is_acyclic else "cyclic"


def classify(query: JoinQuery) -> QueryClass:
    """The classes of the query, without its dependencies."""
    return _classify(_with_predicates(query, query.across_atoms))


def classify_reduct(query: JoinQuery) -> QueryClass:
    """The classes of the Σ-reduct: those the query is in on databases that satisfy its dependencies.

    A dependency may give an atom all variables of a predicate. That makes no relation of the predicate, though: a change of the
    determined value (of the average in ``x > (SELECT avg(y) …)``) asks it anew for every row. So it leaves the query as it was.
    """
    if query.across_atoms:
        return classify(query)
    return _classify(sigma_reduct(query))


def _classify(query: JoinQuery) -> QueryClass:
    return QueryClass(
        is_hierarchical=is_hierarchical(query),
        is_q_hierarchical=is_q_hierarchical(query),
        is_free_connex=is_free_connex(query),
        is_acyclic=is_acyclic(hyperedges(query)),
    )


def _with_predicates(query: JoinQuery, predicates: tuple[frozenset[str], ...]) -> JoinQuery:
    """The query with one more atom, which never changes, for each predicate."""
    names = [f"predicate {i}" for i in range(len(predicates))]
    more = (Atom(n, n, tuple(sorted(p)), updatable=False) for n, p in zip(names, predicates, strict=True))
    return replace(query, atoms=(*query.atoms, *more))


def is_hierarchical(query: JoinQuery) -> bool:
    """Whether the atoms of any two variables are nested or disjoint."""
    sets = set(_atoms_of(query).values())
    return all(x <= y or y <= x or not x & y for x, y in combinations(sets, 2))


def is_q_hierarchical(query: JoinQuery) -> bool:
    """Whether it is hierarchical and no bound variable stands above a free one."""
    atoms_of = _atoms_of(query)
    free = set(query.free)
    return is_hierarchical(query) and not any(atoms_of[x] > atoms_of[y] for y in free for x in atoms_of.keys() - free)


def _atoms_of(query: JoinQuery) -> dict[str, frozenset[str]]:
    return {v: frozenset(a.name for a in query.atoms_with(v)) for v in query.variables}
