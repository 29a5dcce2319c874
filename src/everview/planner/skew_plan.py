"""How a join-aggregate query is maintained by heavy and light parts of its relations (IVM^ε).

A relation is *partitioned* on some of its variables: a value of them is heavy where many rows have it, about N^ε or more, and
light where few have. So a part promises what no relation can:

    light      a value has less than 3/2 N^ε rows                      (definition 6 of the paper)
    heavy      there are at most 2 N^(1-ε) values, each with N^ε/2 rows or more

A query is the sum, over all combinations of parts, of the same query over these parts (the *skew-aware views*). A change of
one relation meets each combination of parts of the others in the way that the promises make cheap. Where none does, some of
these parts are joined in advance, summed to the variables that the rest of the query knows: an *auxiliary view*. It may be
restricted to keys that are heavy in one more relation, which it is joined with later (the indicators of appendix G).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from everview.planner.block import Monomial
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
class HeavyKeys:
    """The heavy values of the key that a relation is partitioned on at ``place``, as a relation of their own."""

    atom: int
    place: int


Element: TypeAlias = RelationPart | HeavyKeys


@dataclass(frozen=True, slots=True)
class PartJoin:
    """What a change is joined with, in this order, and how many combinations that may make: N to ``exponent``.

    ``is_promised``: the parts promise it; otherwise it is only as many as the relations have rows.
    """

    steps: tuple[Element | AuxiliaryView, ...]
    exponent: Fraction
    is_promised: bool = True


@dataclass(frozen=True, slots=True)
class AuxiliaryView:
    """The join of some parts, summed to ``keys``, which the rest of the query knows.

    ``upkeep`` says for each of its parts how a change of it is joined with the others.
    """

    name: str
    parts: tuple[Element, ...]
    keys: tuple[str, ...]
    upkeep: tuple[PartJoin, ...]
    size: Fraction
    """It has at most N^size entries."""

    @property
    def atoms(self) -> frozenset[int]:
        """The relations whose rows it counts."""
        return frozenset(p.atom for p in self.parts if isinstance(p, RelationPart))


@dataclass(frozen=True, slots=True)
class SkewCase:
    """How a change of a relation meets one combination of parts of the others."""

    parts: tuple[RelationPart, ...]
    join: PartJoin

    @property
    def view(self) -> AuxiliaryView | None:
        """The auxiliary view in which one look-up finds all that the change meets, if there is one."""
        only = self.join.steps[0] if len(self.join.steps) == 1 else None
        return only if isinstance(only, AuxiliaryView) else None

    @property
    def exponent(self) -> Fraction:
        """It costs N^exponent a row."""
        return self.join.exponent


@dataclass(frozen=True, slots=True)
class BranchStep:
    """An entry of a row of a listing is in ``source``; the payload of a row is the product of its factors."""

    source: RelationPart | AuxiliaryView
    is_factor: bool


@dataclass(frozen=True, slots=True)
class SkewBranch:
    """The rows of a listing over one combination of parts: an entry of each step, by what the steps before have bound."""

    steps: tuple[BranchStep, ...]


@dataclass(frozen=True, slots=True)
class Rotation:
    """For each occurrence of one table, in the order of the first one's: its variables, and the places of its numbers.

    ``keys``, for each occurrence, says which key of the first one each key is that it is partitioned on.
    """

    variables: tuple[tuple[str, ...], ...]
    lifts: tuple[tuple[int, ...], ...]
    keys: tuple[tuple[int, ...], ...]

    def turned(self, monomial: Monomial, by: int) -> Monomial:
        """A product of numbers of several occurrences after these have moved on by so many places."""
        places = (((atom + by) % 3, self.lifts[atom].index(i)) for atom, i in monomial)
        return frozenset((atom, self.lifts[atom][place]) for atom, place in places)

    def occurrence(self, part: RelationPart, atom: int) -> RelationPart:
        """A part of the first occurrence, as one of another."""
        return RelationPart(atom, tuple(part.heavy[place] for place in self.keys[atom]))


@dataclass(frozen=True, slots=True)
class SkewPlan:
    """The partitions, by atom; the auxiliary views, each after those that keep it; and by atom the cases of a change."""

    query: JoinQuery
    shape: str
    """What the hypergraph is called."""
    partitions: tuple[tuple[PartitionKey, ...], ...]
    views: tuple[AuxiliaryView, ...]
    cases: tuple[tuple[SkewCase, ...], ...]
    branches: tuple[SkewBranch, ...] = ()
    """Where the result is no sum but a listing that stays factorized: its rows are those of all branches."""
    rotation: Rotation | None = None
    """Where all atoms are one table, stored once: there are cases for the first atom only, and views over the parts of all."""

    def name_of(self, step: Element | AuxiliaryView) -> str:
        """A name for what is joined: of a part the relation's own, where there is only one."""
        if isinstance(step, AuxiliaryView):
            return step.name
        name = self.query.atoms[step.atom].name
        if isinstance(step, HeavyKeys):
            return f"{name}_heavy_{'_'.join(self.partitions[step.atom][step.place].variables)}"
        return name if len(self.parts_of(step.atom)) == 1 else f"{name}_{step.suffix}"

    def variables_of(self, step: Element | AuxiliaryView) -> tuple[str, ...]:
        """The variables of what is joined."""
        match step:
            case AuxiliaryView():
                return step.keys
            case HeavyKeys():
                return self.partitions[step.atom][step.place].variables
            case RelationPart():
                return (
                    self.query.atoms[step.atom].variables
                    if self.rotation is None
                    else self.rotation.variables[step.atom]
                )

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
        return max(self.exponents, default=Fraction(0))

    @property
    def exponents(self) -> tuple[Fraction, ...]:
        """What changes cost, for all relations that change, the dearest first."""
        return tuple(sorted(map(self.exponent_of, self._changing()), reverse=True))

    def _changing(self) -> list[int]:
        """The atoms with changes of their own."""
        changing = [i for i, a in enumerate(self.query.atoms) if a.updatable]
        return changing if self.rotation is None else changing[:1]

    def _joins_of(self, atom: int) -> list[tuple[PartJoin, Fraction, AuxiliaryView | None]]:
        """All joins that a changed row of a relation makes, with their amortized exponents, and the view each is for."""
        found: list[tuple[PartJoin, Fraction, AuxiliaryView | None]]
        found = [(case.join, case.exponent, None) for case in self.cases[atom]]
        for view in self.views:
            for own, join in zip(view.parts, view.upkeep, strict=True):
                if own.atom == atom or self.rotation is not None:
                    turns = self.partitions[atom][own.place].epsilon if isinstance(own, HeavyKeys) else Fraction(0)
                    found.append((join, max(Fraction(0), join.exponent - turns), view))
        return found

    def exponent_of(self, atom: int) -> Fraction:
        """What a changed row of a relation costs: in its cases, and in the views that it is part of."""
        return max((exponent for _, exponent, _ in self._joins_of(atom)), default=Fraction(0))

    @property
    def costs(self) -> tuple[UpdateCost, ...]:
        """The amortized cost of a row of each relation that changes, and the case that it comes from."""
        return tuple(
            UpdateCost(self.query.atoms[i].name, Bound(self.exponent_of(i)), self._reason(i)) for i in self._changing()
        )

    def _reason(self, atom: int) -> str:
        worst = self.exponent_of(atom)
        if not worst:
            return "every look-up is by all keys"
        dearest = [(join, view) for join, exponent, view in self._joins_of(atom) if exponent == worst]
        join, view = min(dearest, key=lambda found: (found[0].is_promised, found[1] is not None))
        for_view = "" if view is None else f", for {view.name}"
        if join.is_promised:
            return f"amortized; the dearest case goes through {self.name_of(join.steps[0])}{for_view}"
        return f"nothing bounds what it meets in {self.name_of(join.steps[0])}{for_view}{self._why_open(atom)}"

    def _why_open(self, atom: int) -> str:
        groups = [v for v in self.query.free if v not in self.query.atoms[atom].variables]
        return f": without {', '.join(groups)} it meets any number of groups" if groups else ""


def parts_by(atom: int, keys: tuple[PartitionKey, ...]) -> tuple[RelationPart, ...]:
    """The parts of a relation that is partitioned on these keys; one part where it is not."""
    flags: list[tuple[bool, ...]] = [()]
    for key in keys:
        flags = [(*before, flag) for before in flags for flag in key.flags]
    return tuple(RelationPart(atom, heavy) for heavy in flags)
