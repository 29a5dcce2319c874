"""What one changed row costs, as a function of the size N of the database, with the reason.

At a view that joins the variables J, the delta of one row of R has at most N^k combinations of J, where k is the number of
atoms below the view that it takes to cover the variables that the row does not determine: an edge cover of J - closure(R).
The cost of an update is the largest of these on its way to the root. With k = 0 everywhere it is O(1), whatever the data;
the estimates of ``estimates`` say what to expect where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.planner.delta_tree import DeltaStep, Lookup, delta_path, indicator_paths
from everview.planner.encoded_query import EncodedQuery
from everview.planner.join_query import JoinQuery
from everview.planner.view_tree import Indicator, View, ViewTree, atoms_below, joined_keys


@dataclass(frozen=True, slots=True)
class UpdateCost:
    """The cost O(N^exponent) of a row of an atom; ``indicator_exponent`` if the row also changes an indicator of the atom."""

    atom: str
    exponent: int
    reason: str
    indicator_exponent: int | None = None

    @property
    def bound(self) -> str:
        """Such as ``O(1)``, ``O(N)``, ``O(N^2)``."""
        return big_o(self.exponent)

    @property
    def is_constant(self) -> bool:
        """Whether it is O(1) even if indicators change."""
        return not self.exponent and not self.indicator_exponent

    @property
    def text(self) -> str:
        """A sentence for ``explain``."""
        extra = self.indicator_exponent
        more = "" if extra is None else f"; {big_o(extra)} when an indicator of it changes"
        return f"{self.atom}: {self.bound} a row: {self.reason}{more}"


def big_o(exponent: int) -> str:
    """N to the power, as a bound."""
    return {0: "O(1)", 1: "O(N)"}.get(exponent, f"O(N^{exponent})")


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
        steps = delta_path(tree, atom, self.encoded.query.dependencies)
        row = self.encoded.atoms[self._position[atom]]
        exponents = [self._step(step, row) for step in steps]
        worst = max(exponents, default=0)
        reason = _why_constant(steps) if not worst else self._why_open(steps[exponents.index(worst)], row)
        others = [
            self._step(step, self.encoded.variable_set(path[0].child.keys))
            for path in indicator_paths(tree, atom, self.encoded.query.dependencies)
            for step in path
        ]
        return UpdateCost(atom, worst, reason, max(others, default=None))

    def exponent(self, joined: int, row: int, atoms: int, indicators: tuple[int, ...] = ()) -> int:
        """The number of atoms that cover the joined variables which a row does not determine."""
        open_variables = joined & ~self.encoded.closure(row, atoms)
        return self.encoded.cover_number(open_variables, atoms, indicators)

    def atom_set(self, view: View) -> int:
        """The atoms below a view."""
        return sum(1 << self._position[a.name] for a in atoms_below(view))

    def _step(self, step: DeltaStep, row: int) -> int:
        joined = self.encoded.variable_set(joined_keys(step.view))
        indicators = tuple(self.encoded.variable_set(c.keys) for c in step.view.children if isinstance(c, Indicator))
        return self.exponent(joined, row, self.atom_set(step.view), indicators)

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
        return f"every look-up is by all keys: {', '.join(map(_by, lookups))}"
    found = ", ".join(f"{_by(x)} finds one {', '.join(x.adds)}" for x in determined)
    return f"dependencies fix what is looked up: {found}"


def _by(lookup: Lookup) -> str:
    return f"{lookup.node.name} by {', '.join(lookup.by)}" if lookup.by else f"the whole of {lookup.node.name}"
