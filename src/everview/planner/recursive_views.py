"""The hierarchy of views of recursive delta processing (DBToaster; section 3 of multilevel-ivm), derived in the calculus.

A block is the term

    Q = Sum[free](atom₁ * … * atomₙ * conditions)

The result is stored. So is what its deltas read, what their deltas read, and so on: for every stored view V and every atom
that changes, ΔV is simplified and decomposed into

    ΔV = Sum[keys](δatom * V₁ * … * Vₖ * conditions)

where every Vᵢ, a Sum over the atoms that the change holds together, is a view again. A delta has one atom less, so this ends
with deltas that read no relation. Views are known by their atoms, keys and conditions, whatever the path to them: equal ones
are one.

``depth`` says after how many steps the recursion stops. The deltas of the views reached last read the atoms themselves: with
depth 1 that is classical maintenance, with as many steps as atoms it changes nothing. A condition that also reads the changed
atom, or several views, stays outside of them, and its variables are among their keys (M_part of example 3.4).

The occurrences of a table in a self-join are atoms of their own. Their changes are taken in one after another, each with the
new contents of those before it: the factored form of the delta, in which no term of second order is left (section 3.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from everview.planner.calculus.delta import delta
from everview.planner.calculus.rules import decompose_term, simplify_term
from everview.planner.calculus.terms import (
    CalculusTerm,
    ChangeTerm,
    ConditionTerm,
    RelationTerm,
    SumTerm,
    factors_of,
    output_variables,
    terms_in,
    times,
)
from everview.planner.delta_tree import DeltaStep, delta_step
from everview.planner.join_query import JoinQuery
from everview.planner.view_tree import InnerView, Leaf, ViewNode

RESULT = "result"
MOST_VIEWS = 300
"""A hierarchy of more views is refused: their number grows with the connected parts of a join, which may be exponential."""


class TooManyViewsError(Exception):
    """A hierarchy would have more views than can be afforded."""


@dataclass(frozen=True, slots=True)
class RecursiveView:
    """A view of the hierarchy: ``definition`` is Sum[keys] over the atoms, with the conditions of these numbers."""

    name: str
    keys: tuple[str, ...]
    atoms: tuple[int, ...]
    conditions: frozenset[int]
    definition: CalculusTerm


@dataclass(frozen=True, slots=True)
class RecursiveDelta:
    """What a change of an atom does to a view: it is joined with the views named, and checked by the conditions."""

    view: RecursiveView
    atom: int
    joined: tuple[RecursiveView, ...]
    conditions: frozenset[int]
    term: CalculusTerm


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The views, the result last, and their deltas for each atom that changes, in the order of the views."""

    query: JoinQuery
    depth: int | None
    views: tuple[RecursiveView, ...]
    deltas: tuple[RecursiveDelta, ...]

    @property
    def result(self) -> RecursiveView:
        """The view of the whole query."""
        return self.views[-1]

    def node(self, view: RecursiveView) -> ViewNode:
        """The view as the planner's bounds and estimates know it."""
        atoms = [self.query.atoms[i] for i in view.atoms]
        if is_leaf(self.query, view):
            return Leaf(atoms[0])
        summed = tuple(v for v in self.query.variables if v not in view.keys and any(v in a.variables for a in atoms))
        return InnerView(view.name, (), view.keys, summed, tuple(Leaf(a) for a in atoms))

    def step(self, change: RecursiveDelta) -> DeltaStep | None:
        """A delta with the order in which it is joined; None for a relation itself, which changes as it does."""
        if is_leaf(self.query, change.view):
            return None
        leaf: ViewNode = Leaf(self.query.atoms[change.atom])
        node = self.node(change.view)
        assert isinstance(node, InnerView), "all but relations have a Sum"
        children = (leaf, *(self.node(view) for view in change.joined))
        over = InnerView(node.name, (), node.keys, node.summed, children)
        return delta_step(over, leaf, self.query.dependencies)

    def steps(self, atom: int) -> tuple[DeltaStep, ...]:
        """All that a change of an atom does."""
        found = (self.step(change) for change in self.deltas if change.atom == atom)
        return tuple(step for step in found if step is not None)

    def restricted(self) -> Hierarchy:
        """The part of it that changes of the updatable atoms need; the rest is there to fill it."""
        kept = [change for change in self.deltas if self.query.atoms[change.atom].updatable]
        needed, waiting = {self.result.name}, [self.result.name]
        while waiting:
            name = waiting.pop()
            found = {view.name for change in kept if change.view.name == name for view in change.joined}
            waiting += found - needed
            needed |= found
        views = tuple(view for view in self.views if view.name in needed)
        return replace(self, views=views, deltas=tuple(change for change in kept if change.view.name in needed))


def recursive_views(
    query: JoinQuery, conditions: tuple[tuple[str, ...], ...] = (), depth: int | None = None
) -> Hierarchy:
    """The hierarchy of a query, for changes of all its atoms; ``restricted`` is what those to come need.

    Args:
        query: The query; its dependencies only say in which order a delta is joined.
        conditions: The variables of its predicates over several atoms.
        depth: After how many steps deltas read the atoms themselves; None: never.

    Raises:
        TooManyViewsError: there would be more than ``MOST_VIEWS``.
    """
    assert depth is None or depth >= 1, "depth 0 is no hierarchy: it recomputes"
    return _Derivation(query, conditions, depth).hierarchy()


def is_leaf(query: JoinQuery, view: RecursiveView) -> bool:
    """Whether a view is an atom as it is."""
    return len(view.atoms) == 1 and view.name == query.atoms[view.atoms[0]].name


class _Derivation:
    def __init__(self, query: JoinQuery, conditions: tuple[tuple[str, ...], ...], depth: int | None) -> None:
        self._query, self._conditions, self._depth = query, conditions, depth
        self._taken = {a.name for a in query.atoms}
        self._position = {a.name: i for i, a in enumerate(query.atoms)}
        self._views: dict[tuple[tuple[int, ...], tuple[str, ...], frozenset[int]], RecursiveView] = {}
        self._waiting: deque[tuple[RecursiveView, int]] = deque()

    def hierarchy(self) -> Hierarchy:
        query = self._query
        every = tuple(range(len(query.atoms)))
        numbers = frozenset(range(len(self._conditions)))
        # The result is told apart even where it is like an atom: it is what users read.
        result = RecursiveView(
            self._name(RESULT), query.free, every, numbers, self._definition(every, query.free, numbers)
        )
        self._waiting.append((result, 0))
        deltas: list[RecursiveDelta] = []
        while self._waiting:
            view, level = self._waiting.popleft()
            deltas += [self._delta(view, atom, level) for atom in view.atoms]
        return Hierarchy(query, self._depth, (*self._views.values(), result), tuple(deltas))

    def _definition(self, atoms: tuple[int, ...], keys: tuple[str, ...], conditions: frozenset[int]) -> CalculusTerm:
        joined = (RelationTerm(self._query.atoms[i].name, self._query.atoms[i].variables) for i in atoms)
        checked = (ConditionTerm(str(i), self._conditions[i]) for i in sorted(conditions))
        return SumTerm(keys, times(*joined, *checked))

    def _delta(self, view: RecursiveView, atom: int, level: int) -> RecursiveDelta:
        name = self._query.atoms[atom].name
        term = simplify_term(delta(view.definition, {name}))
        body = term.body if isinstance(term, SumTerm) else term
        if self._depth is None or level + 1 < self._depth:
            term = decompose_term(SumTerm(view.keys, body))
            body = term.body if isinstance(term, SumTerm) else term
        joined, checked = [], set[int]()
        for factor in factors_of(body):
            match factor:
                case ChangeTerm():
                    assert factor.name == name, "one atom changes"
                case ConditionTerm():
                    checked.add(int(factor.name))
                case RelationTerm() | SumTerm():
                    joined.append(self._view(factor, level + 1))
                case _:
                    raise AssertionError(f"{factor} in the delta of a join")
        return RecursiveDelta(view, atom, tuple(joined), frozenset(checked), term)

    def _view(self, term: RelationTerm | SumTerm, level: int) -> RecursiveView:
        """The view of a term, an equal one if there is."""
        inside = tuple(terms_in(term))
        atoms = tuple(sorted(self._position[t.name] for t in inside if isinstance(t, RelationTerm)))
        conditions = frozenset(int(t.name) for t in inside if isinstance(t, ConditionTerm))
        query, listed = self._query, set(output_variables(term))
        whole = len(atoms) == 1 and not conditions and listed == set(query.atoms[atoms[0]].variables)
        keys = query.atoms[atoms[0]].variables if whole else tuple(v for v in query.variables if v in listed)
        identity = atoms, keys, conditions
        if identity not in self._views:
            if len(self._views) >= MOST_VIEWS:
                raise TooManyViewsError(f"more than {MOST_VIEWS} views at this depth")
            name = (
                query.atoms[atoms[0]].name if whole else self._name("M_" + "_".join(query.atoms[i].name for i in atoms))
            )
            made = RecursiveView(name, keys, atoms, conditions, self._definition(atoms, keys, conditions))
            self._views[identity] = made
            self._waiting.append((made, level))
        return self._views[identity]

    def _name(self, plain: str) -> str:
        """The name, with a number where an atom or another view has taken it."""
        name = next(n for n in _numbered(plain) if n not in self._taken)
        self._taken.add(name)
        return name


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}#{number}"
        number += 1
