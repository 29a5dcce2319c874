"""How a join-aggregate query is maintained by heavy and light parts of its relations (IVM^ε).

A relation is *partitioned* on some of its variables: a value of them is heavy where many rows have it, about N^ε or more, and
light where few have. So a part promises what no relation can:

    light      a value has less than 3/2 N^ε rows                      (definition 6 of the paper)
    heavy      there are at most 2 N^(1-ε) values, each with N^ε/2 rows or more

A query is the sum, over all combinations of parts, of the same query over these parts (the *skew-aware views*). A change of
one relation meets each combination of parts of the others in the way that the promises make cheap. Where none does, the join of
these parts is stored, summed to what the changed row knows: an *auxiliary view*, in which the change looks one entry up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from everview.planner.bound import Bound
from everview.planner.cost import UpdateCost
from everview.planner.join_query import JoinQuery


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """Variables on which a relation is partitioned; ``epsilon`` is the exponent of the threshold between light and heavy."""

    variables: tuple[str, ...]
    epsilon: Fraction

    @property
    def flags(self) -> tuple[bool, ...]:
        """Whether values can be heavy, and light: with the threshold 1 all are heavy, with N none is."""
        if self.epsilon == 0:
            return (True,)
        return (False,) if self.epsilon == 1 else (False, True)


@dataclass(frozen=True, slots=True)
class RelationPart:
    """A part of a relation, given by its number: for each key that it is partitioned on, whether the values are heavy."""

    atom: int
    heavy: tuple[bool, ...]

    @property
    def suffix(self) -> str:
        """As in the paper: h, l, or for several keys hl and the like."""
        return "".join("h" if heavy else "l" for heavy in self.heavy)


@dataclass(frozen=True, slots=True)
class PartJoin:
    """Parts that a change is joined with, in this order, and how many combinations that may make: N to ``exponent``."""

    parts: tuple[RelationPart, ...]
    exponent: Fraction


@dataclass(frozen=True, slots=True)
class AuxiliaryView:
    """The join of parts of all relations but ``without``, summed to ``keys``, which a row of that relation knows.

    ``upkeep`` says for each of its parts how a change of it is joined with the others.
    """

    name: str
    without: int
    parts: tuple[RelationPart, ...]
    keys: tuple[str, ...]
    upkeep: tuple[PartJoin, ...]
    size: Fraction
    """It has at most N^size entries."""


@dataclass(frozen=True, slots=True)
class SkewCase:
    """How a change of a relation meets one combination of parts of the others: by a join, or by a look-up in a view."""

    parts: tuple[RelationPart, ...]
    join: PartJoin | None
    view: AuxiliaryView | None

    @property
    def exponent(self) -> Fraction:
        """It costs N^exponent a row."""
        return Fraction(0) if self.join is None else self.join.exponent


@dataclass(frozen=True, slots=True)
class SkewPlan:
    """The partitions, by atom; the auxiliary views; and by atom the cases of a change."""

    query: JoinQuery
    shape: str
    """What the hypergraph is called."""
    partitions: tuple[tuple[PartitionKey, ...], ...]
    views: tuple[AuxiliaryView, ...]
    cases: tuple[tuple[SkewCase, ...], ...]

    def part_name(self, part: RelationPart) -> str:
        """A name for a part: the relation's own where there is only one."""
        name = self.query.atoms[part.atom].name
        return name if len(self.parts_of(part.atom)) == 1 else f"{name}_{part.suffix}"

    def parts_of(self, atom: int) -> tuple[RelationPart, ...]:
        """The parts that a relation can have."""
        return parts_by(atom, self.partitions[atom])

    @property
    def is_partitioned(self) -> bool:
        """Whether any relation has two parts."""
        return any(len(self.parts_of(i)) > 1 for i in range(len(self.query.atoms)))

    @property
    def space(self) -> Bound:
        """How much is stored: the relations and the auxiliary views."""
        return Bound(max((Fraction(1), *(view.size for view in self.views))))

    @property
    def exponent(self) -> Fraction:
        """What the dearest change costs."""
        return max(self.exponent_of(i) for i in range(len(self.query.atoms)))

    def exponent_of(self, atom: int) -> Fraction:
        """What a changed row of a relation costs: in its cases, and in the views that it is part of."""
        kept = (join.exponent for v in self.views for p, join in zip(v.parts, v.upkeep, strict=True) if p.atom == atom)
        return max((*(case.exponent for case in self.cases[atom]), *kept), default=Fraction(0))

    @property
    def costs(self) -> tuple[UpdateCost, ...]:
        """The amortized cost of a row of each relation, and the case that it comes from."""
        return tuple(
            UpdateCost(a.name, Bound(self.exponent_of(i)), self._reason(i)) for i, a in enumerate(self.query.atoms)
        )

    def _reason(self, atom: int) -> str:
        worst = self.exponent_of(atom)
        for case in self.cases[atom]:
            if case.join is not None and case.exponent == worst and worst:
                return f"amortized; the dearest case goes through {self.part_name(case.join.parts[0])}"
        for view in self.views:
            for part, join in zip(view.parts, view.upkeep, strict=True):
                if part.atom == atom and join.exponent == worst and worst:
                    return f"amortized; the dearest case goes through {self.part_name(join.parts[0])}, for {view.name}"
        return "every look-up is by all keys"


def parts_by(atom: int, keys: tuple[PartitionKey, ...]) -> tuple[RelationPart, ...]:
    """The parts of a relation that is partitioned on these keys; one part where it is not."""
    flags: list[tuple[bool, ...]] = [()]
    for key in keys:
        flags = [(*before, flag) for before in flags for flag in key.flags]
    return tuple(RelationPart(atom, heavy) for heavy in flags)
