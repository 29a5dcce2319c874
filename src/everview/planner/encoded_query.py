"""A query as bit sets, for the parts of the planner that look at thousands of sets of variables.

Bit i of a set of variables is ``query.variables[i]``, bit i of a set of atoms is ``query.atoms[i]``.

Dependencies hold *below a view* only if seen there: det → v may be used among some atoms if one of them has det and v. A
look-up by ``orderkey`` finds one ``custkey`` in a view over orders, and any number of them in a product of lineitem and
customer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from everview.planner.bit_sets import bits
from everview.planner.dependencies import witnesses
from everview.planner.fractional_cover import fractional_cover
from everview.planner.join_query import JoinQuery


class EncodedQuery:
    """The bit sets of a query, and closures under the dependencies that hold below a view."""

    def __init__(self, query: JoinQuery) -> None:
        self.query = query
        self.variables = query.variables
        self._bit = {v: 1 << i for i, v in enumerate(self.variables)}
        self.atoms = tuple(self.variable_set(a.variables) for a in query.atoms)
        self.all_atoms = (1 << len(self.atoms)) - 1
        self.free = self.variable_set(query.free)
        self.updatable = sum(1 << i for i, a in enumerate(query.atoms) if a.updatable)
        self.together = tuple(self.variable_set(t) for t in query.across_atoms)
        self._touching: dict[int, int] = {}
        self._rules = tuple(self._encode_dependencies())
        self._rules_below: dict[int, tuple[tuple[int, int], ...]] = {}
        self._closures: dict[tuple[int, int], int] = {}

    def variable_set(self, variables: Iterable[str]) -> int:
        """The bits of these variables."""
        found = 0
        for v in variables:
            found |= self._bit[v]
        return found

    def names(self, variables: int) -> tuple[str, ...]:
        """The variables of these bits, in the order of the query."""
        return tuple(v for i, v in enumerate(self.variables) if variables >> i & 1)

    def atoms_touching(self, variables: int) -> int:
        """The atoms with any of these variables."""
        found = self._touching.get(variables)
        if found is None:
            found = sum(1 << i for i, own in enumerate(self.atoms) if own & variables)
            self._touching[variables] = found
        return found

    def closure(self, variables: int, atoms: int) -> int:
        """What the variables determine, as far as these atoms show it."""
        if not self._rules:
            return variables
        key = (variables, atoms)
        known = self._closures.get(key)
        if known is None:
            known = variables
            rules = self._rules_of(atoms)
            is_growing = bool(rules)
            while is_growing:
                before = known
                for determinant, dependent in rules:
                    if determinant & ~known == 0:
                        known |= dependent
                is_growing = known != before
            self._closures[key] = known
        return known

    def cover_number(self, variables: int, atoms: int, others: Iterable[int] = ()) -> Fraction:
        """What a fractional cover of the variables weighs, by the atoms, each with what it determines, and by other sets."""
        edges = (self.closure(self.atoms[i], atoms) for i in bits(atoms))
        return fractional_cover(variables, (*edges, *others))

    def _rules_of(self, atoms: int) -> tuple[tuple[int, int], ...]:
        rules = self._rules_below.get(atoms)
        if rules is None:
            rules = tuple((det, v) for det, v, seen in self._rules if seen & atoms)
            self._rules_below[atoms] = rules
        return rules

    def _encode_dependencies(self) -> Iterator[tuple[int, int, int]]:
        """Determinant, dependent variable, and the atoms in which both can be seen."""
        position = {a.name: i for i, a in enumerate(self.query.atoms)}
        for dependency in self.query.dependencies:
            if not dependency.determinant <= self._bit.keys():
                continue  # about variables that the block does not have
            for v in sorted(dependency.dependent & self._bit.keys()):
                seen = sum(1 << position[a.name] for a in witnesses(dependency, v, self.query.atoms))
                yield self.variable_set(dependency.determinant), self._bit[v], seen
