"""The variable order with the least estimated maintenance cost.

Removing a variable from a connected set of variables leaves components, which are ordered independently:

    best(C) = min over X in C of  cost of the view at X  +  Σ best(components of C - X)

so each set C is solved once, and the search is exhaustive where few sets are reachable (blocks of seven join variables, long
paths). Where there are more, only the most promising variables are tried for large sets. Variables of the same atoms are
one, and those of a single atom are placed below its others: it costs nothing to keep them there. The canonical order of a
hierarchical query or Σ-reduct competes, and wins ties.

An estimate counts each atom as often as it changes, and has to guess that from the rows: a small table weighs next to nothing,
and its one changed row may then meet a share of the largest table. So no estimate is worth more than constant time: where the
canonical order promises O(1) for every atom that changes, one that does not is never taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from everview.planner.bit_sets import bits
from everview.planner.build_tree import Representation, view_tree
from everview.planner.classes import is_hierarchical, is_q_hierarchical
from everview.planner.cost import update_costs
from everview.planner.dependencies import sigma_reduct
from everview.planner.join_query import JoinQuery
from everview.planner.order_cost import OrderCost, Part
from everview.planner.variable_order import VariableOrder, by_first_atom, canonical_order, variable_order

WORK = 20_000
"""How many estimates an exhaustive search may take: for each set of variables its choices times its atoms."""

EXHAUSTIVE = 6
"""In a larger search: sets of up to this many variables are solved with every choice."""

WIDE = 1e12
"""The price of a view of a factorized result whose keys no single atom covers. A free-connex query has an order without
any: its views have at most N rows and its updates are O(N) (section 7.1)."""

CLOSE = 1e-9
"""Relative difference of costs that does not count: the canonical order wins."""


def search_order(query: JoinQuery, representation: Representation = "listing") -> VariableOrder:
    """The best order found; the same for the same query. Free-top if the representation is factorized.

    A query that is q-hierarchical, itself or under its dependencies, has its canonical order in a factorized representation,
    and in a listing an order with constant updates if the canonical one has them.
    """
    cost = OrderCost(query, representation)
    canonical = tuple(_canonical_orders(query, representation))
    if canonical and representation == "factorized":
        return canonical[0]
    best = _Search(cost).order()
    least = cost.order(best)
    for order in canonical:
        found = cost.order(order)
        if found <= least * (1 + CLOSE):
            best, least = order, found
    constant = (order for order in canonical if order != best and _is_constant(query, order))
    return best if not canonical or _is_constant(query, best) else next(constant, best)


def _is_constant(query: JoinQuery, order: VariableOrder) -> bool:
    """Whether each atom that changes costs O(1) in the listing tree over the order."""
    return all(cost.is_constant for cost in update_costs(query, view_tree(query, order)))


def _canonical_orders(query: JoinQuery, representation: Representation) -> Iterator[VariableOrder]:
    for reduct in (query, sigma_reduct(query)):
        is_fit = is_hierarchical(reduct) if representation == "listing" else is_q_hierarchical(reduct)
        if is_fit:
            try:
                order = canonical_order(reduct, placed=query)
            except ValueError:  # variables needed together are in different trees
                continue
            if representation == "listing" or (order.is_free_top(query.free) and not query.across_atoms):
                yield order


@dataclass(frozen=True, slots=True)
class _Choice:
    """The variables placed on top of a set, and what is below."""

    cost: float
    placed: int
    below: tuple[_Choice, ...]


class _Search:
    def __init__(self, cost: OrderCost) -> None:
        self.cost = cost
        self.encoded = encoded = cost.encoded
        self.classes = self._classes()
        self.searched = sum(self.classes)
        self.local = encoded.variable_set(encoded.variables) & ~self.searched
        dropped = self.local & ~encoded.free
        self.schemas = tuple(a & ~dropped for a in encoded.atoms)
        self.edges = tuple(a & self.searched for a in encoded.atoms)
        self.free = 0 if cost.is_listing else encoded.free
        self._solved: dict[int, _Choice] = {}
        self._split: dict[int, tuple[int, ...]] = {}
        self.is_exhaustive = True

    def order(self) -> VariableOrder:
        parents: dict[str, str | None] = {}
        for component in self._components(self.searched, (*self.edges, *self.encoded.together)):
            self.is_exhaustive = self._is_small(component)
            self._place(self._best(component), None, parents)
        self._place_local(parents)
        query = self.encoded.query
        return variable_order(query, by_first_atom(query, parents))

    def _classes(self) -> tuple[int, ...]:
        """Variables of the same atoms and the same use, as one; without those that one atom has for itself."""
        encoded = self.encoded
        groups: dict[tuple[int, bool, tuple[bool, ...]], int] = {}
        for v in range(len(encoded.variables)):
            bit = 1 << v
            atoms = encoded.atoms_touching(bit)
            is_free = bool(encoded.free & bit)
            together = tuple(bool(t & bit) for t in encoded.together)
            is_searched = atoms.bit_count() > 1 or any(together) or (is_free and not self.cost.is_listing)
            if is_searched:
                key = (atoms, is_free, together)
                groups[key] = groups.get(key, 0) | bit
        return tuple(groups.values())

    def _components(self, variables: int, edges: tuple[int, ...]) -> tuple[int, ...]:
        found: list[int] = []
        for edge in edges:
            own = edge & variables
            if own:
                touched = [c for c in found if c & own]
                found = [c for c in found if not c & own]
                for c in touched:
                    own |= c
                found.append(own)
        return tuple(sorted(found, key=lambda c: c & -c))

    def _below(self, variables: int) -> tuple[int, ...]:
        """What is left falls into these. A factorized tree keeps what is needed together in one of them."""
        split = self._split.get(variables)
        if split is None:
            edges = self.edges if self.cost.is_listing else (*self.edges, *self.encoded.together)
            split = self._split[variables] = self._components(variables, edges)
        return split

    def _choices(self, variables: int) -> list[int]:
        """What may be on top, the most promising first: free, of many atoms, early in the query."""
        found = [c for c in self.classes if c & variables]
        if self.free & variables:
            found = [c for c in found if c & self.free]
        atoms = self.encoded.atoms_touching
        return sorted(found, key=lambda c: (not c & self.encoded.free, -atoms(c).bit_count(), c & -c))

    def _is_small(self, component: int) -> bool:
        """Whether solving every reachable set is little work."""
        reached = {component}
        todo = [component]
        work = 0
        while todo and work <= WORK:
            variables = todo.pop()
            choices = self._choices(variables)
            work += len(choices) * self.encoded.atoms_touching(variables).bit_count()
            for choice in choices:
                new = set(self._below(variables & ~choice)) - reached
                reached |= new
                todo.extend(new)
        return work <= WORK

    def _best(self, variables: int) -> _Choice:
        found = self._solved.get(variables)
        if found is None:
            found = self._solved[variables] = self._solve(variables)
        return found

    def _solve(self, variables: int) -> _Choice:
        choices = self._choices(variables)
        costs = {c: self._cost(self._parts(variables, c)) for c in choices}
        if not self.is_exhaustive and len(choices) > EXHAUSTIVE:
            choices = [min(choices, key=lambda c: costs[c] + self._outlook(variables & ~c))]
        best: _Choice | None = None
        for choice in choices:
            total = costs[choice]
            below = []
            for component in self._below(variables & ~choice):
                if best is not None and total >= best.cost:
                    break
                below.append(self._best(component))
                total += below[-1].cost
            if best is None or total < best.cost:
                best = _Choice(total, choice, tuple(below))
        assert best is not None, "a component has variables"
        return best

    def _cost(self, parts: list[Part]) -> float:
        cost = self.cost.view(parts)
        if not self.cost.is_listing and len(parts) > 1:
            schema = atoms = 0
            for part in parts:
                schema |= part.keys
                atoms |= part.atoms
            cost += WIDE * float(self.encoded.cover_number(schema, atoms) - 1)
        return cost

    def _outlook(self, variables: int) -> float:
        """A guess at the cost of what is left: the rows that pass through the views on top of each component."""
        return sum(self.cost.stored(self._part(component)) for component in self._below(variables))

    def _parts(self, variables: int, choice: int) -> list[Part]:
        """The children of the view at ``choice`` on top of ``variables``."""
        rest = variables & ~choice
        parts = [self._part(component) for component in self._below(rest)]
        here = (i for i in bits(self.encoded.atoms_touching(choice)) if not self.edges[i] & rest)
        return [*parts, *(Part(self.schemas[i], 1 << i) for i in here)]

    def _part(self, variables: int) -> Part:
        atoms = schema = 0
        for i in bits(self.encoded.atoms_touching(variables)):
            atoms |= 1 << i
            schema |= self.schemas[i]
        return Part(self.cost.keys(variables, schema), atoms)

    def _place(self, choice: _Choice, above: str | None, parents: dict[str, str | None]) -> None:
        for variable in self.encoded.names(choice.placed):
            parents[variable] = above
            above = variable
        for below in choice.below:
            self._place(below, above, parents)

    def _place_local(self, parents: dict[str, str | None]) -> None:
        """Variables of a single atom: below its others, free ones first."""
        depth: dict[str, int] = {}
        for variable, above in parents.items():
            depth[variable] = 0 if above is None else depth[above] + 1
        for i, edge in enumerate(self.edges):
            shared = self.encoded.names(edge)
            above = max(shared, key=depth.__getitem__) if shared else None
            own = self.encoded.atoms[i] & self.local
            for variable in (
                *self.encoded.names(own & self.encoded.free),
                *self.encoded.names(own & ~self.encoded.free),
            ):
                parents[variable] = above
                above = variable
