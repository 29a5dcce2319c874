"""The estimated cost of maintaining the views of a variable order, by which orders are compared.

At a view that joins k children, with J the variables of their join, one row of atom r below costs

    matches(J | variables of r) · (k - 1)        rows touched by the look-ups
    matches(keys of the child | variables of r)  rows written to the stored child that r is below

An atom counts as often as it changes, for which its share of the rows stands; atoms that never change cost nothing. The size
of what is stored counts a little. Everything at a view depends on the set of variables below it only, never on how they are
ordered: so the best order of a set of variables is found once (``search_orders``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.planner.bit_sets import bits
from everview.planner.build_tree import Representation
from everview.planner.encoded_query import EncodedQuery
from everview.planner.estimates import Estimates
from everview.planner.join_query import JoinQuery
from everview.planner.variable_order import OrderNode, VariableOrder

WRITE = 1.0
"""Writing a row to a stored view, in look-ups."""

SIZE = 0.1
"""Storing as many rows as the whole database has, in look-ups at every update."""


@dataclass(frozen=True, slots=True)
class Part:
    """A child of a view to be: its keys and the atoms below it."""

    keys: int
    atoms: int


class OrderCost:
    """Costs of views over one query, for one representation of its result."""

    def __init__(self, query: JoinQuery, representation: Representation) -> None:
        self.encoded = EncodedQuery(query)
        self.estimates = Estimates(self.encoded)
        self.is_listing = representation == "listing"

    def keys(self, below: int, schema: int) -> int:
        """The keys of a view: of the joined ``schema``, what is needed above the variables ``below``."""
        kept = schema & ~below
        if self.is_listing:
            kept |= schema & self.encoded.free
        for together in self.encoded.together:
            if together & ~(below | schema):
                kept |= together & schema
        return kept

    def view(self, parts: Iterable[Part]) -> float:
        """The cost of joining the parts: a single one is free, as its view is composed with this one."""
        parts = tuple(parts)
        if len(parts) == 1:
            return 0.0
        estimates, updatable = self.estimates, self.encoded.updatable
        schema = below = 0
        for part in parts:
            schema |= part.keys
            below |= part.atoms
        touched = sum(
            estimates.weights[i] * estimates.matches(schema, self.encoded.atoms[i], below)
            for i in bits(below & updatable)
        )
        stored = sum(self.stored(part) for part in parts if below & ~part.atoms & updatable)
        return touched * (len(parts) - 1) + stored

    def stored(self, part: Part) -> float:
        """The cost of keeping the rows of a stored view."""
        estimates = self.estimates
        written = sum(
            estimates.weights[i] * estimates.matches(part.keys, self.encoded.atoms[i], part.atoms)
            for i in bits(part.atoms & self.encoded.updatable)
        )
        return WRITE * written + SIZE * estimates.matches(part.keys, 0, part.atoms) / estimates.total_rows

    def order(self, order: VariableOrder) -> float:
        """The cost of a whole order."""
        return sum(cost + self.stored(part) for cost, part in map(self._node, order.roots))

    def _node(self, node: OrderNode) -> tuple[float, Part]:
        children = [self._node(child) for child in node.children]
        position = {a.name: i for i, a in enumerate(self.encoded.query.atoms)}
        leaves = [Part(self.encoded.atoms[position[a.name]], 1 << position[a.name]) for a in node.atoms]
        parts = [*(part for _, part in children), *leaves]
        schema = atoms = 0
        for part in parts:
            schema |= part.keys
            atoms |= part.atoms
        keys = self.keys(self.encoded.variable_set(node.below), schema)
        return sum(cost for cost, _ in children) + self.view(parts), Part(keys, atoms)


def order_cost(query: JoinQuery, order: VariableOrder, representation: Representation = "listing") -> float:
    """The estimated cost of one row of update to the order's views, over all atoms by how often they change."""
    return OrderCost(query, representation).order(order)
