"""A join-aggregate block of a query, in the form that view trees maintain.

    Q[keys] = Σ over rows of the join of the atoms, on which the residual predicates hold, of  Π lifts

Every atom is some relation below the block, filtered; it offers *variables* (key columns, equal across atoms where the join
says so) and *lifts* (numbers that are multiplied across atoms and summed). A ``Monomial`` chooses one lift of each atom (those
not named: 1), so the payload of a view is a list of monomials: this is the product ring of all the block's aggregates. A lift
into a ring that a user has registered is multiplied only with others into that ring, and with numbers of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import chain

from everview.planner.join_query import JoinQuery
from everview.planner.moments_part import MomentsShape
from everview.relational.expressions import Expression
from everview.relational.nodes import AggregateCall, Relation
from everview.relational.types import DataType


class Number(Enum):
    """What a lift is a number of."""

    COUNT = "count"
    """0 or 1: an indicator."""
    EXACT = "exact"
    """An integer or an unscaled decimal."""
    FLOAT = "float"
    RING = "ring"
    """An element of a registered ring."""


@dataclass(frozen=True, slots=True)
class Lift:
    """A number for every row of an atom: ``value`` (a NULL counts as 0), an expression over the atom's columns."""

    value: Expression
    number: Number

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it evaluates."""
        return (self.value,)


@dataclass(frozen=True, slots=True)
class RingLift:
    """An element of a registered ring for every row of an atom: Π lift(position, argument), 0 where an argument is NULL.

    ``positions`` are those of the ``arguments`` in the aggregate's call, ascending; other atoms have the rest.
    """

    ring: str
    positions: tuple[int, ...]
    arguments: tuple[Expression, ...]

    @property
    def number(self) -> Number:
        """An element of a ring."""
        return Number.RING

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it evaluates."""
        return self.arguments


@dataclass(frozen=True, slots=True)
class Variable:
    """A key column of the tree."""

    name: str
    type: DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class BlockAtom:
    """A relation of the join: its rows that pass ``condition``, with the values of its variables and its lifts."""

    name: str
    input: Relation
    condition: Expression
    variables: tuple[tuple[str, Expression], ...]
    lifts: tuple[Lift | RingLift, ...]


Monomial = frozenset[tuple[int, int]]
"""Pairs (atom, lift): the product of these lifts; the empty one counts rows."""


Terms = tuple[tuple[int, Monomial], ...]
"""Coefficients and monomials: their sum is a number of the block."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One aggregate: a function of ``sums``, one for each product of its arguments, and of the rows that count, ``valid``."""

    call: AggregateCall
    sums: tuple[Terms, ...]
    valid: Terms


@dataclass(frozen=True, slots=True)
class Residual:
    """A predicate over several atoms that no index answers: over the block's variables, column i being ``variables[i]``."""

    variables: tuple[str, ...]
    condition: Expression


@dataclass(frozen=True, slots=True)
class Watch:
    """An exact number that must not overflow: column i of ``number`` is the column ``places[i]`` = (atom, column of its input).

    Spark computes it for joined rows and fails where it overflows; a tree computes with its parts, for all rows. The two agree
    as long as the number is in its range for any combination of values that the atoms hold, which the engine has to watch.
    """

    number: Expression
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Expressions over one atom's columns that can fail; ``count`` is the number of joined rows for which one of them does.

    A tree evaluates them for rows without partners, too, where Spark does not. So a failure is no error yet but one more
    element that is summed and multiplied. Where it survives the joins, the engine looks at the rows, and raises as Spark does.
    """

    atom: int
    expressions: tuple[Expression, ...]
    count: Monomial


@dataclass(frozen=True, slots=True)
class Block:
    """A block; ``keys`` are the variables of the GROUP BY in order, ``query`` its shape for the planner."""

    atoms: tuple[BlockAtom, ...]
    variables: tuple[Variable, ...]
    keys: tuple[str, ...]
    residuals: tuple[Residual, ...]
    answers: tuple[Answer, ...]
    query: JoinQuery
    watches: tuple[Watch, ...] = ()
    failures: tuple[Failure, ...] = ()
    moments: MomentsShape | None = None
    """Where all sums of floats are moments of some features, what they are: engines may keep them together."""
    further: tuple[Monomial, ...] = ()
    """Products that no answer needs, and that are summed as well."""

    @property
    def may_leave_tree(self) -> bool:
        """Whether it takes rows to stand in for its tree, where numbers get too large or a failure survives."""
        return bool(self.watches or self.failures)

    @property
    def monomials(self) -> tuple[Monomial, ...]:
        """All that the answers need, the count of rows first, the failures that survive, and what is summed besides."""
        needed: dict[Monomial, None] = {frozenset(): None}
        for answer in self.answers:
            for _, monomial in chain(*answer.sums, answer.valid):
                needed[monomial] = None
        return (*needed, *(failure.count for failure in self.failures), *self.further)

    def number_of(self, monomial: Monomial) -> Number:
        """The kind of a product of lifts."""
        numbers = {self.atoms[a].lifts[i].number for a, i in monomial}
        if Number.RING in numbers:
            return Number.RING
        if Number.FLOAT in numbers:
            return Number.FLOAT
        return Number.EXACT if Number.EXACT in numbers else Number.COUNT

    def ring_of(self, monomial: Monomial) -> str | None:
        """The registered ring that a product of lifts is in; None for a number."""
        lifts = (self.atoms[a].lifts[i] for a, i in monomial)
        return next((lift.ring for lift in lifts if isinstance(lift, RingLift)), None)

    @property
    def has_rings(self) -> bool:
        """Whether some lift is into a registered ring."""
        return any(lift.number is Number.RING for atom in self.atoms for lift in atom.lifts)

    def variable(self, name: str) -> Variable:
        """The variable of this name."""
        return next(v for v in self.variables if v.name == name)
