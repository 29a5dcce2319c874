"""Query classes that decide what one update can cost (definitions 14 and 21, theorems 13 and 26).

    hierarchical     for any two variables, their sets of atoms are disjoint or one includes the other
    q-hierarchical   hierarchical, and a variable with strictly more atoms than a free one is free      O(1) an update
    free-connex      acyclic, also with one more atom over the free variables                           O(N) an update
    acyclic          it has a join tree
    cyclic           it has none

The updates are of single rows and the result is kept factorized; a listing pays for every changed row of the result besides.
Predicates over several atoms (``JoinQuery.together``) are not part of the hypergraph and give no guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from everview.planner.dependencies import sigma_reduct
from everview.planner.hypergraph import hyperedges, is_acyclic, is_free_connex
from everview.planner.join_query import JoinQuery


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
    return QueryClass(
        is_hierarchical=is_hierarchical(query),
        is_q_hierarchical=is_q_hierarchical(query),
        is_free_connex=is_free_connex(query),
        is_acyclic=is_acyclic(hyperedges(query)),
    )


def classify_reduct(query: JoinQuery) -> QueryClass:
    """The classes of the Σ-reduct: those the query is in on databases that satisfy its dependencies."""
    return classify(sigma_reduct(query))


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
