"""How changes meet the parts of relations that are partitioned in a given way, and what has to be joined in advance for that.

With the variables B known, what is joined next adds at most as many rows as it takes to get from B to its variables X, by steps

    K ⊆ B  →  B ∪ X       N^ε          in a part that is light on K, whose variables are X
    B      →  B ∪ K       N^(1-ε)      in a part that is heavy on K
    D ⊆ B  →  B ∪ E       1            where D determines E
    B      →  B ∪ X       N            in any part; this is no promise

An auxiliary view over several parts promises what they do, for the variables that it keeps. So the search looks for the way
with the fewest steps without a promise, then the fewest views, over all orders in which single parts and views over some of
them are joined. The views' own changes are planned in the same way. A view that a change of one part would make dear may be
restricted to what is heavy in a relation outside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import TypeAlias

from everview.planner.join_query import JoinQuery
from everview.planner.skew_plan import (
    AuxiliaryView,
    Element,
    HeavyKeys,
    PartitionKey,
    PartJoin,
    RelationPart,
    SkewCase,
    SkewPlan,
    parts_by,
)

Keys: TypeAlias = tuple[tuple[PartitionKey, ...], ...]
Names: TypeAlias = frozenset[str]
NOTHING, ONE = Fraction(0), Fraction(1)
FREELY = Fraction(9)
"""A limit that no way reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """A view that may become an auxiliary one; ``worst`` is the dearest change of a relation in it, its own views included."""

    elements: tuple[Element, ...]
    keys: tuple[str, ...]
    upkeep: tuple[_Way, ...]
    size: Fraction
    worst: Fraction
    opens: int
    needs: frozenset[_Draft]


@dataclass(frozen=True, slots=True)
class _Way:
    """What a change is joined with; ``opens`` counts the steps without a promise, ``drafts`` are all views that it takes."""

    steps: tuple[Element | _Draft, ...] = ()
    exponent: Fraction = NOTHING
    opens: int = 0
    drafts: frozenset[_Draft] = frozenset()

    def before(self, rest: _Way) -> _Way:
        """This way, then another."""
        return _Way(
            self.steps + rest.steps, self.exponent + rest.exponent, self.opens + rest.opens, self.drafts | rest.drafts
        )


def plan_parts(
    query: JoinQuery, shape: str, keys: Keys, limit: Fraction, given_up: frozenset[int] = frozenset()
) -> SkewPlan:
    """The plan over these partitions; ways that cost no more than N^limit are equally good.

    ``given_up`` are relations whose changes may cost anything, so that those of the others cost less.
    """
    ways = PartWays(query, keys, limit, given_up)
    parts = [parts_by(i, own) for i, own in enumerate(keys)]
    naming = _Naming()
    cases = []
    for i in range(len(parts)):
        combined = product(*(parts[j] for j in range(len(parts)) if j != i))
        cases.append(tuple(SkewCase(others, naming.join(ways.of_case(i, others))) for others in combined))
    return SkewPlan(query, shape, keys, tuple(naming.views.values()), tuple(cases))


class _Naming:
    """Makes auxiliary views of the drafts that are used."""

    def __init__(self) -> None:
        self.views: dict[_Draft, AuxiliaryView] = {}

    def join(self, way: _Way) -> PartJoin:
        """The way with named views."""
        steps = tuple(self._view(s) if isinstance(s, _Draft) else s for s in way.steps)
        return PartJoin(steps, way.exponent, not way.opens)

    def _view(self, draft: _Draft) -> AuxiliaryView:
        if draft not in self.views:
            upkeep = tuple(self.join(way) for way in draft.upkeep)
            self.views[draft] = AuxiliaryView(f"V{len(self.views) + 1}", draft.elements, draft.keys, upkeep, draft.size)
        return self.views[draft]


class PartWays:
    """The search over one choice of partitions; what it has found it keeps."""

    def __init__(self, query: JoinQuery, keys: Keys, limit: Fraction, given_up: frozenset[int] = frozenset()) -> None:
        self._query, self._keys, self._limit = query, keys, limit
        self._counts = [a.updatable and i not in given_up for i, a in enumerate(query.atoms)]
        self._own = [frozenset(a.variables) for a in query.atoms]
        self._free = frozenset(query.free)
        self._drafts: dict[frozenset[Element], _Draft] = {}
        self._found: dict[tuple[Names, tuple[Element, ...], tuple[Element, ...], Fraction], _Way] = {}
        self._costs: dict[tuple[tuple[Element, ...], Names, Names], tuple[Fraction, int]] = {}

    def of_case(self, changed: int, others: tuple[RelationPart, ...]) -> _Way:
        """How a change of a relation meets a combination of parts."""
        known = self._own[changed]
        if not self._query.atoms[changed].updatable:  # it is taken in first, and once
            return self._one_by_one(known, others)
        if not self._counts[changed]:
            return self._best(known, others, others, FREELY)
        return self._best(known, others, others, self._limit)

    def join(self, changed: RelationPart, others: tuple[RelationPart, ...]) -> PartJoin:
        """How a change of a part is joined with others, one after another."""
        return _Naming().join(self._one_by_one(self._own[changed.atom], others))

    def _variables(self, step: Element | _Draft) -> Names:
        match step:
            case _Draft():
                return frozenset(step.keys)
            case HeavyKeys():
                return frozenset(self._keys[step.atom][step.place].variables)
            case RelationPart():
                return self._own[step.atom]

    def _one_by_one(self, known: Names, left: Sequence[Element]) -> _Way:
        """Single parts, each time the one that adds least."""
        way, rest = _Way(), list(left)
        while rest:
            costs = [self._added(e, known) for e in rest]
            i = min(range(len(rest)), key=lambda i: (costs[i][1], costs[i][0]))
            chosen = rest.pop(i)
            way = way.before(_Way((chosen,), *costs[i]))
            known |= self._variables(chosen)
        return way

    def _best(self, known: Names, left: tuple[Element, ...], around: tuple[Element, ...], limit: Fraction) -> _Way:
        """The best way to join all that is left; ``around`` is all that the change is joined with, earlier or later."""
        plain = self._one_by_one(known, left)
        if len(left) < 2 or (not plain.opens and plain.exponent <= min(limit, self._limit)):
            return plain
        known = known & frozenset().union(*map(self._variables, left))
        key = known, left, around, limit
        if key not in self._found:
            ways = [plain]
            for first, rest in self._first_steps(known, left, around):
                then = known | self._variables(first.steps[0])
                ways.append(
                    first.before(
                        self._best(then, rest, around, limit if limit > ONE else max(NOTHING, limit - first.exponent))
                    )
                )
            self._found[key] = min(ways, key=lambda way: self._rank(way, limit))
        return self._found[key]

    def _first_steps(
        self, known: Names, left: tuple[Element, ...], around: tuple[Element, ...]
    ) -> Iterator[tuple[_Way, tuple[Element, ...]]]:
        """A part or a view to begin with, and what is then left."""
        for size in range(1, len(left) + 1):
            for block in combinations(left, size):
                steps = [block[0]] if size == 1 else self._views_over(block, around)
                for step in steps:
                    drafts = frozenset({step}) | step.needs if isinstance(step, _Draft) else frozenset[_Draft]()
                    yield _Way((step,), *self._added(step, known), drafts), tuple(e for e in left if e not in block)

    def _rank(self, way: _Way, limit: Fraction) -> tuple[Fraction, int, int, Fraction, Fraction]:
        beyond = max((way.exponent - limit, *(d.worst - self._limit for d in way.drafts), NOTHING))
        if limit > ONE:  # its cost does not count, as long as that of others is within bounds
            return beyond, 0, 0, way.exponent, NOTHING
        opens = way.opens + sum(d.opens for d in way.drafts)
        return beyond, opens, len(way.drafts), way.exponent, sum((d.size for d in way.drafts), NOTHING)

    # Views

    def _views_over(self, block: tuple[Element, ...], around: tuple[Element, ...]) -> list[_Draft]:
        """The view over some parts, and where its upkeep is dear, that over what is heavy in a part around it."""
        if not self._is_connected(block):
            return []
        plain = self._draft(block)
        if plain.worst <= self._limit and not plain.opens:
            return [plain]
        heavy = (
            HeavyKeys(part.atom, place)
            for part in around
            if isinstance(part, RelationPart) and part not in block
            for place, is_heavy in enumerate(part.heavy)
            if is_heavy and len(self._keys[part.atom][place].flags) > 1
        )
        return [plain, *(self._draft((*block, h)) for h in heavy if self._variables(h) <= set(plain.keys))]

    def _is_connected(self, block: tuple[Element, ...]) -> bool:
        reached, rest = self._variables(block[0]), list(block[1:])
        while near := [e for e in rest if reached & self._variables(e)]:
            reached = reached.union(*map(self._variables, near))
            rest = [e for e in rest if e not in near]
        return not rest

    def _draft(self, elements: tuple[Element, ...]) -> _Draft:
        key = frozenset(elements)
        if key not in self._drafts:
            inside = {e.atom for e in elements if isinstance(e, RelationPart)}
            outside = self._free.union(*(own for i, own in enumerate(self._own) if i not in inside))
            below = frozenset[str]().union(*map(self._variables, elements))
            keys = tuple(v for v in self._query.variables if v in below & outside)
            changes = [(e, tuple(o for o in elements if o != e)) for e in elements]
            upkeep = tuple(
                self._best(self._variables(e), others, others, self._limit + self._amortized(e))
                if self._counts[e.atom]
                else self._best(self._variables(e), others, others, FREELY)
                if self._query.atoms[e.atom].updatable
                else self._one_by_one(self._variables(e), others)
                for e, others in changes
            )
            needs = frozenset[_Draft]().union(*(way.drafts for way in upkeep))
            counted = [(e, w) for e, w in zip(elements, upkeep, strict=True) if self._counts[e.atom]]
            costs = [max(NOTHING, w.exponent - self._amortized(e)) for e, w in counted]
            worst = max((*costs, *(d.worst for d in needs)), default=NOTHING)
            opens = sum(w.opens for _, w in counted)
            size, _ = self._cost(elements, frozenset(), frozenset(keys))
            self._drafts[key] = _Draft(elements, keys, upkeep, size, worst, opens, needs)
        return self._drafts[key]

    def _amortized(self, element: Element) -> Fraction:
        """A key turns heavy or light once in about N^ε changes."""
        return self._keys[element.atom][element.place].epsilon if isinstance(element, HeavyKeys) else NOTHING

    # What a step adds

    def _added(self, step: Element | _Draft, known: Names) -> tuple[Fraction, int]:
        """How many entries agree with what is known: N to the first number; the second counts steps without a promise."""
        own = self._variables(step)
        if own <= known:
            return NOTHING, 0
        elements = step.elements if isinstance(step, _Draft) else (step,)
        return self._cost(elements, known & own, own)

    def _cost(self, elements: tuple[Element, ...], start: Names, wanted: Names) -> tuple[Fraction, int]:
        """The cheapest steps from some variables to others, over the join of some parts."""
        key = elements, start, wanted
        if key not in self._costs:
            moves = [move for e in elements for move in self._moves(e)]
            best = {start: (NOTHING, 0)}
            done: set[Names] = set()
            while True:
                known = min((k for k in best if k not in done), key=lambda k: (best[k], len(k)))
                if wanted <= known:
                    break
                done.add(known)
                exponent, opens = best[known]
                for needs, adds, more, is_open in moves:
                    if needs <= known and not adds <= known:
                        reached, cost = known | adds, (exponent + more, opens + is_open)
                        if reached not in best or cost < best[reached]:
                            best[reached] = cost
            self._costs[key] = best[known]
        return self._costs[key]

    def _moves(self, element: Element) -> Iterator[tuple[Names, Names, Fraction, int]]:
        """What must be known, what is known then, how many there are, and whether that is no promise."""
        own, nothing = self._variables(element), frozenset[str]()
        if isinstance(element, HeavyKeys):
            yield nothing, own, 1 - self._keys[element.atom][element.place].epsilon, 0
            return
        for key, heavy in zip(self._keys[element.atom], element.heavy, strict=True):
            if heavy:
                yield nothing, frozenset(key.variables), 1 - key.epsilon, 0
            else:
                yield frozenset(key.variables), own, key.epsilon, 0
        for dependency in self._query.dependencies:
            if dependency.determinant | dependency.dependent == own:
                yield dependency.determinant, own, NOTHING, 0
        yield nothing, own, ONE, 1
