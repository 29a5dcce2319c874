"""The search for a skew-aware plan: on which variables to partition each relation.

The triangle of section 3, Loomis-Whitney queries (appendix F), 4-paths (G), all count queries over three relations (H), and the
refined partitions of appendix D, where a relation is partitioned on two keys, are what this finds; and triangles with further
relations around them, or with groups. There some changes may stay linear: no partition helps a change that meets any number of
groups. A plan is worth something if other changes then cost less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

from everview.planner.join_query import JoinQuery
from everview.planner.skew_plan import PartitionKey, SkewPlan
from everview.planner.skew_ways import Keys, plan_parts

MOST_ATOMS = 6
"""A change meets up to 2^(n-1) combinations of parts, and each has its own search over the ways to join them.

Only Loomis-Whitney queries may be larger: what they are partitioned on is known."""
MOST_CANDIDATES = 30
"""So many choices of partitions are tried, those with the fewest keys first."""
Chosen = tuple[tuple[tuple[str, ...], ...], ...]


class NoSkewPlan(Exception):
    """No partition makes changes of a query sublinear, or none is needed; the message says which."""


def plan_skew(query: JoinQuery, epsilons: Mapping[str, Fraction], *, is_refined: bool = False) -> SkewPlan:
    """The plan with the fewest dear updates, then the least costs, the least space, and the fewest parts.

    Args:
        query: The query; predicates over several relations (``together``) have no plan.
        epsilons: The exponent of each atom's threshold, by name.
        is_refined: Partition relations on two keys where they have two (appendix D): less space, more cases.

    Raises:
        NoSkewPlan: there is none, and why.
    """
    count = len(query.atoms)
    if is_refined and count > 3:
        raise NoSkewPlan(f"relations are partitioned on several keys in joins of three, and it joins {count}")
    if query.across_atoms:
        raise NoSkewPlan("it has predicates over several relations that are no equalities")
    search = _Search(query)
    if count < 3 or (count > MOST_ATOMS and not search.is_cyclic):
        planned = f"3 to {MOST_ATOMS}, or for more in Loomis-Whitney queries"
        raise NoSkewPlan(f"it joins {count} relations, and heavy and light parts are planned for {planned}")
    best: SkewPlan | None = None
    bound = max(max(e, 1 - e) for e in epsilons.values())
    for keys, given_up in search.candidates(epsilons, is_refined=is_refined):
        found = plan_parts(query, search.shape(), keys, bound, given_up)
        if best is None or _rank(found, bound) < _rank(best, bound):
            best = found
            if best.exponent <= bound and (count > 3 or is_refined or search.is_cyclic):
                break
    if best is None or (bound < 1 and min(best.exponents, default=1) >= 1):
        raise NoSkewPlan("no partition of its relations into heavy and light parts makes changes of them sublinear")
    return best


def cyclic_keys(query: JoinQuery, epsilons: Mapping[str, Fraction]) -> Keys | None:
    """What the relations of a triangle are partitioned on, as in section 3; None if it is none, nor what generalizes it."""
    search = _Search(query)
    return next(search.candidates(epsilons, is_refined=False))[0] if search.is_cyclic else None


def dearness(exponents: tuple[Fraction, ...], bound: Fraction) -> tuple[int, tuple[Fraction, ...]]:
    """What plans are compared by: of how many relations a change costs more than N^bound, then what changes cost."""
    return sum(e > bound for e in exponents), exponents


def _rank(plan: SkewPlan, bound: Fraction) -> tuple[tuple[int, tuple[Fraction, ...]], Fraction, int, int]:
    parts = sum(len(plan.parts_of(i)) for i in range(len(plan.query.atoms)))
    return dearness(plan.exponents, bound), plan.space.exponent, parts, len(plan.views)


class _Search:
    def __init__(self, query: JoinQuery) -> None:
        self._query = query
        self._variables = [frozenset(a.variables) for a in query.atoms]
        self._free = frozenset(query.free)
        self._classes = self._variable_classes(range(len(query.atoms)))

    def _variable_classes(self, atoms: Sequence[int]) -> list[tuple[str, ...]]:
        """Variables that occur in the same relations, and not in all: together they are as one variable."""
        found: dict[tuple[frozenset[int], bool], list[str]] = {}
        for variable in self._query.variables:
            where = frozenset(i for i in atoms if variable in self._variables[i])
            found.setdefault((where, variable in self._free), []).append(variable)
        return [tuple(names) for (where, _), names in found.items() if 1 < len(where) < len(atoms)]

    @property
    def is_cyclic(self) -> bool:
        """Whether it is a triangle, or what generalizes it."""
        return self._is_cyclic(range(len(self._variables)))

    def _is_cyclic(self, atoms: Sequence[int]) -> bool:
        """Whether each of some relations lacks one class of variables, another one each."""
        classes = self._variable_classes(atoms)
        lacked = [[c for c in classes if not set(c) <= self._variables[i]] for i in atoms]
        return all(len(c) == 1 for c in lacked) and len({c for (c,) in lacked}) == len(lacked) == len(classes)

    def shape(self) -> str:
        """What the hypergraph is called."""
        count = len(self._variables)
        groups = " with groups" if self._free else ""
        if self.is_cyclic:
            return ("triangle" if count == 3 else f"Loomis-Whitney query of degree {count}") + groups
        if self._cores():
            return f"triangle inside a join of {count} relations{groups}"
        if count == 4 and sorted(len(c) for c in self._uses()) == [1, 1, 2, 2]:
            return f"4-path{groups}"
        return f"join of {count if count > 3 else 'three'} relations that is not hierarchical{groups}"

    def _uses(self) -> list[list[tuple[str, ...]]]:
        """The classes of variables that each relation has."""
        return [[c for c in self._classes if set(c) <= own] for own in self._variables]

    def candidates(
        self, epsilons: Mapping[str, Fraction], *, is_refined: bool
    ) -> Iterator[tuple[Keys, frozenset[int]]]:
        """What the relations may be partitioned on, and whose changes may stay linear.

        Around a cycle, each relation is partitioned on another class of variables, as in the paper.
        """
        options = [[c for c in self._classes if set(c) < own] for own in self._variables]
        chosen: Iterable[tuple[Chosen, frozenset[int]]]
        if is_refined:
            chosen = ((tuple(tuple(own) for own in options), frozenset()),)
        elif cores := self._cores():
            around = [frozenset(range(len(options))) - set(core) for core in cores]
            chosen = (
                (keys, others)
                for core, rest in zip(cores, around, strict=True)
                for keys in self._around(core)
                for others in dict.fromkeys((frozenset[int](), rest))
            )
        elif len(options) > 4:
            return
        else:
            most = 2 if sum(len(own) > 1 for own in options) < 3 else 1
            subsets = [[s for n in range(most + 1) for s in combinations(own, n)] for own in options]
            fewest = sorted(product(*subsets), key=lambda keys: sum(map(len, keys)))
            chosen = ((keys, frozenset()) for keys in fewest[:MOST_CANDIDATES])
        for keys, others in chosen:
            yield (
                tuple(
                    tuple(PartitionKey(c, epsilons[a.name]) for c in own)
                    for a, own in zip(self._query.atoms, keys, strict=True)
                ),
                others,
            )

    def _cores(self) -> list[tuple[int, ...]]:
        """The cycles in it: the whole query, or triangles inside."""
        everything = tuple(range(len(self._variables)))
        return [atoms for atoms in (everything, *combinations(everything, 3)) if self._is_cyclic(atoms)]

    def _around(self, core: tuple[int, ...]) -> Iterator[Chosen]:
        """The ways to partition a cycle's relations, each on another class of variables; the others are not partitioned."""
        classes = self._variable_classes(core)
        for turn in permutations(classes):
            if all(set(c) < self._variables[i] for i, c in zip(core, turn, strict=True)):
                own = dict(zip(core, turn, strict=True))
                yield tuple((own[i],) if i in own else () for i in range(len(self._variables)))
