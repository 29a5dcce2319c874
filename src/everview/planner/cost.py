"""What one changed row costs, as a function of the size N of the database, with the reason.

The delta of one row of R joins the siblings on its way to the root one after another. With the variables J known so far, it
has at most N^ρ combinations of them, where ρ is the weight of a fractional cover, by the atoms and indicators joined so far,
of the variables in J that the row does not determine (``fractional_cover``). The cost of an update is the largest of these
bounds. With ρ = 0 everywhere it is O(1), whatever the data; the estimates of ``estimates`` say what to expect where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from everview.planner.bound import Bound
from everview.planner.delta_tree import DeltaStep, Lookup, delta_path, indicator_paths
from everview.planner.encoded_query import EncodedQuery
from everview.planner.join_query import JoinQuery
from everview.planner.view_tree import ViewNode, ViewTree, atoms_below, indicators_below


@dataclass(frozen=True, slots=True)
class UpdateCost:
    """The cost of a row of an atom; ``indicator_bound`` if the row also changes an indicator of the atom."""

    atom: str
    bound: Bound
    reason: str
    indicator_bound: Bound | None = None

    @property
    def is_constant(self) -> bool:
        """Whether it is O(1) even if indicators change."""
        return max(self.bound, self.indicator_bound or self.bound) == Bound()

    @property
    def text(self) -> str:
        """A sentence with the bound."""
        return f"{self.atom}: {self.bound} a row: {self._reason}"

    @property
    def why(self) -> str:
        """The same for ``explain``, which says the cost of a table elsewhere, once."""
        return f"{self.atom}: {self._reason}"

    @property
    def _reason(self) -> str:
        more = "" if self.indicator_bound is None else f"; {self.indicator_bound} when an indicator of it changes"
        return f"{self.reason}{more}"


def update_costs(query: JoinQuery, tree: ViewTree) -> tuple[UpdateCost, ...]:
    """The costs of the atoms that change, in the order of the query."""
    bounds = UpdateBounds(query)
    return tuple(bounds.update_cost(tree, a.name) for a in query.atoms if a.updatable)


class UpdateBounds:
    """Bounds over one query."""

    def __init__(self, query: JoinQuery) -> None:
        self.encoded = EncodedQuery(query)
        self._position = {a.name: i for i, a in enumerate(query.atoms)}

    def update_cost(self, tree: ViewTree, atom: str) -> UpdateCost:
        """The cost of a row of one atom and why."""
        found = self.cost_of(atom, delta_path(tree, atom, self.encoded.query.dependencies))
        others = [
            Bound(self.exponent(step, self.encoded.variable_set(path[0].child.keys)))
            for path in indicator_paths(tree, atom, self.encoded.query.dependencies)
            for step in path
        ]
        return replace(found, indicator_bound=max(others, default=None))

    def cost_of(self, atom: str, steps: tuple[DeltaStep, ...]) -> UpdateCost:
        """The cost of a row of one atom that takes these steps."""
        row = self.encoded.atoms[self._position[atom]]
        exponents = [self.exponent(step, row) for step in steps]
        worst = max(exponents, default=Fraction(0))
        reason = _why_constant(steps) if not worst else self._why_open(steps[exponents.index(worst)], row)
        return UpdateCost(atom, Bound(worst), reason)

    def exponent(self, step: DeltaStep, row: int) -> Fraction:
        """The delta of one row never has more than N^exponent combinations in this step."""
        return max(self._sizes(step, row))

    def joined_exponent(self, step: DeltaStep, row: int) -> Fraction:
        """The delta of one row has no more than N^exponent combinations when all siblings are joined."""
        return list(self._sizes(step, row))[-1]

    def atom_set(self, node: ViewNode) -> int:
        """The atoms below a node."""
        return sum(1 << self._position[a.name] for a in atoms_below(node))

    def _sizes(self, step: DeltaStep, row: int) -> Iterator[Fraction]:
        """The exponents of the delta as it comes, and after each look-up."""
        known = atoms = 0
        indicators: tuple[int, ...] = ()
        for node in (step.child, *(lookup.node for lookup in step.lookups)):
            known |= self.encoded.variable_set(node.keys)
            atoms |= self.atom_set(node)
            indicators += tuple(self.encoded.variable_set(i.keys) for i in indicators_below(node))
            yield self.encoded.cover_number(known & ~self.encoded.closure(row, atoms), atoms, indicators)

    def _why_open(self, step: DeltaStep, row: int) -> str:
        below = self.atom_set(step.view)
        fixed = self.encoded.closure(row, below)
        found = []
        for lookup in step.lookups:
            left = self.encoded.variable_set(lookup.adds) & ~fixed
            if left:
                found.append(f"{_by(lookup)} leaves {', '.join(self.encoded.names(left))} open")
                fixed = self.encoded.closure(fixed | left, below)
        if found:
            return f"at {step.view.name}, {'; '.join(found)}"
        return f"δ{step.child.name} already has many rows when it comes to {step.view.name}"


def _why_constant(steps: tuple[DeltaStep, ...]) -> str:
    lookups = [lookup for step in steps for lookup in step.lookups]
    if not lookups:
        return "it is joined with nothing"
    determined = [lookup for lookup in lookups if lookup.adds]
    if not determined:
        return f"every look-up is by all keys: {', '.join(dict.fromkeys(map(_by, lookups)))}"
    found = ", ".join(dict.fromkeys(f"{_by(x)} finds one {', '.join(x.adds)}" for x in determined))
    return f"dependencies fix what is looked up: {found}"


def _by(lookup: Lookup) -> str:
    return f"{lookup.node.name} by {', '.join(lookup.by)}" if lookup.by else f"the whole of {lookup.node.name}"
