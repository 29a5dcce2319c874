"""The search for a skew-aware plan: on which variables to partition each relation, and what to store.

For a change of one relation, the parts of the others are joined one after another, each time the one that adds least. With the
variables B known, joining a part adds at most

    1           if B has all its variables
    N^ε         rows, if the part is light on variables in B
    N^(1-ε)     rows, if the part is heavy on variables that include all it adds
    no promise  otherwise

If some part of a combination has no promise, the combination is an auxiliary view, and its own changes must have promises.
The triangle of section 3, Loomis-Whitney queries (appendix F), all count queries over three relations (H), and the refined
partitions of appendix D, where a relation is partitioned on two keys, are what this finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, permutations, product

from everview.planner.join_query import JoinQuery
from everview.planner.skew_plan import AuxiliaryView, PartitionKey, PartJoin, RelationPart, SkewCase, SkewPlan, parts_by

MOST_ATOMS = 6
"""A change meets 2^(n-1) combinations of parts, so there is a limit to n."""
Keys = tuple[tuple[PartitionKey, ...], ...]


class NoSkewPlan(Exception):
    """No partition makes all changes of a query sublinear, or none is needed; the message says which."""


def plan_skew(query: JoinQuery, epsilons: Mapping[str, Fraction], *, is_refined: bool = False) -> SkewPlan:
    """The plan with the least cost of the dearest update, then the least space, then the fewest parts.

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
    if not 3 <= count <= MOST_ATOMS:
        raise NoSkewPlan(f"it joins {count} relations, and heavy and light parts are planned for 3 to {MOST_ATOMS}")
    search = _Search(query)
    best: SkewPlan | None = None
    bound = max(max(e, 1 - e) for e in epsilons.values())
    for keys in search.candidates(epsilons, is_refined=is_refined):
        found = search.plan(keys)
        if found is not None and (best is None or _rank(found) < _rank(best)):
            best = found
            if best.exponent <= bound and (count > 3 or is_refined):
                break
    if best is None:
        raise NoSkewPlan(search.why_not())
    return best


def _rank(plan: SkewPlan) -> tuple[Fraction, Fraction, int, int]:
    parts = sum(len(plan.parts_of(i)) for i in range(len(plan.query.atoms)))
    return plan.exponent, plan.space.exponent, parts, len(plan.views)


def _contains(classes: Sequence[tuple[str, ...]], one: tuple[str, ...]) -> bool:
    return one in classes


class _Search:
    def __init__(self, query: JoinQuery) -> None:
        self._query = query
        self._variables = [frozenset(a.variables) for a in query.atoms]
        self._free = frozenset(query.free)
        self._classes = self._variable_classes()

    def _variable_classes(self) -> list[tuple[str, ...]]:
        """Variables that occur in the same relations, and not in all: together they are as one variable."""
        found: dict[tuple[frozenset[int], bool], list[str]] = {}
        for variable in self._query.variables:
            where = frozenset(i for i, own in enumerate(self._variables) if variable in own)
            found.setdefault((where, variable in self._free), []).append(variable)
        return [tuple(names) for (where, _), names in found.items() if 1 < len(where) < len(self._variables)]

    @property
    def _is_cyclic(self) -> bool:
        """Whether each relation lacks one class of variables, another one each: a triangle, or what generalizes it."""
        lacked = [[c for c in self._classes if not set(c) <= own] for own in self._variables]
        return all(len(c) == 1 for c in lacked) and len({c for (c,) in lacked}) == len(lacked) == len(self._classes)

    def shape(self) -> str:
        """What the hypergraph is called."""
        if self._is_cyclic:
            count = len(self._variables)
            return "triangle" if count == 3 else f"Loomis-Whitney query of degree {count}"
        return "join of three relations that is not hierarchical"

    def why_not(self) -> str:
        """Why no candidate was a plan."""
        if self._free:
            return (
                f"with the groups {', '.join(sorted(self._free))} a change of a relation without them meets any number of "
                "groups, whatever is heavy and light"
            )
        return "no partition of its relations into heavy and light parts makes every change of them sublinear"

    def candidates(self, epsilons: Mapping[str, Fraction], *, is_refined: bool) -> Iterator[Keys]:
        """What the relations may be partitioned on; around a cycle, each on another class of variables, as in the paper."""
        options = [[c for c in self._classes if set(c) < own] for own in self._variables]
        chosen: Iterable[tuple[tuple[tuple[str, ...], ...], ...]]
        if is_refined:
            chosen = (tuple(tuple(own) for own in options),)
        elif self._is_cyclic:
            turns = permutations(self._classes)
            chosen = (tuple((c,) for c in turn) for turn in turns if all(map(_contains, options, turn)))
            chosen = islice(chosen, 1 if len(options) == 3 else None)
        elif len(options) == 3:
            chosen = product(*([(), *((c,) for c in own)] for own in options))
        else:
            return
        for keys in chosen:
            yield tuple(
                tuple(PartitionKey(c, epsilons[a.name]) for c in own)
                for a, own in zip(self._query.atoms, keys, strict=True)
            )

    def plan(self, keys: Keys) -> SkewPlan | None:
        """The plan over these partitions; None if some change has no promise."""
        atoms = range(len(keys))
        parts = [parts_by(i, keys[i]) for i in atoms]
        views: dict[tuple[RelationPart, ...], AuxiliaryView] = {}
        cases = []
        for i in atoms:
            found = []
            for others in product(*(parts[j] for j in atoms if j != i)):
                join = self._join(self._variables[i], others, keys)
                if join is None:
                    if others not in views:
                        view = self._view(i, others, keys, len(views) + 1)
                        if view is None:
                            return None
                        views[others] = view
                    found.append(SkewCase(others, None, views[others]))
                else:
                    found.append(SkewCase(others, join, None))
            cases.append(tuple(found))
        return SkewPlan(self._query, self.shape(), keys, tuple(views.values()), tuple(cases))

    def _join(self, known: frozenset[str], parts: Sequence[RelationPart], keys: Keys) -> PartJoin | None:
        """The order in which the parts are joined; None if one has no promise."""
        left, order, exponent = list(parts), [], Fraction(0)
        while left:
            promised = [(e, i) for i, p in enumerate(left) if (e := self._added(p, known, keys)) is not None]
            if not promised:
                return None
            least, i = min(promised)
            chosen = left.pop(i)
            order.append(chosen)
            exponent += least
            known |= self._variables[chosen.atom]
        return PartJoin(tuple(order), exponent)

    def _added(self, part: RelationPart, known: frozenset[str], keys: Keys) -> Fraction | None:
        """How many rows of a part agree with what is known: N to this; None without a promise."""
        own = self._variables[part.atom]
        if own <= known:
            return Fraction(0)
        promises = []
        for key, heavy in zip(keys[part.atom], part.heavy, strict=True):
            if heavy and own - known <= set(key.variables):
                promises.append(1 - key.epsilon)
            if not heavy and known >= set(key.variables):
                promises.append(key.epsilon)
        return min(promises, default=None)

    def _view(self, without: int, parts: tuple[RelationPart, ...], keys: Keys, number: int) -> AuxiliaryView | None:
        """The view for a change of a relation; None if a look-up would not do, or if one of its own changes has no promise."""
        inside = frozenset[str]().union(*(self._variables[p.atom] for p in parts))
        held = tuple(v for v in self._query.variables if v in inside and v in self._variables[without] | self._free)
        if not self._variables[without] >= set(held):
            return None
        upkeep = [self._join(self._variables[p.atom], [q for q in parts if q is not p], keys) for p in parts]
        if any(join is None for join in upkeep):
            return None
        kept = tuple(join for join in upkeep if join is not None)
        values = sum((self._values(v, parts, keys) for v in held), Fraction(0))
        size = min((*(1 + join.exponent for join in kept), values))
        return AuxiliaryView(f"V{number}", without, parts, held, kept, size)

    def _values(self, variable: str, parts: Iterable[RelationPart], keys: Keys) -> Fraction:
        """How many values a variable has in some parts: N to this."""
        found = [
            1 - key.epsilon
            for part in parts
            for key, heavy in zip(keys[part.atom], part.heavy, strict=True)
            if heavy and variable in key.variables
        ]
        return min(found, default=Fraction(1))
