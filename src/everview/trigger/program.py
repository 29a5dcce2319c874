"""The trigger program of a view: how everything that is maintained moves, whatever the strategy and the engine.

A program is a list of *collections*. One statement makes each, from collections before it and from *inputs*, which are tables
and other views:

    #1 := π[o_orderkey, o_custkey] orders          linear
    #2 := #1 ⋉ customer                            pointwise
    #3 := view tree over #2, lineitem              linear

A relation of the algebra (``Apply``) says, for each of its inputs, what a change of that input does:

    linear      the output is a sum of products of the inputs: the same expression, with the change in the input's place
    pointwise   at a key, the output is a function of what the inputs hold there: new minus old at the touched keys
    ordered     for a group, the output is a function of its rows in order: new minus old, found in an order or by computing
                the touched group anew

and how it finds what the change meets (``Search``). Where several inputs change at once, the rules apply to one after another:
each meets the new contents of the inputs before it. A view tree (``TreeBlock``) has a program of its own for that.

Programs are values. ``lower_plan`` makes them, ``verify`` checks them, ``format_program`` is their text.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from everview.relational.expressions import Column, Expression
from everview.relational.nodes import AggregateCall, Join, Relation, Scan, Schema
from everview.relational.traverse import inputs as inputs_of
from everview.relational.traverse import scans_of
from everview.trigger.plan_block import Lowered
from everview.trigger.plan_factorized import FactorizedPlan
from everview.trigger.tree_program import AccessKind


class StatementKind(Enum):
    """What a change of an input does to the output, from the simplest to the most general."""

    CONSTANT = "constant"
    LINEAR = "linear"
    POINTWISE = "pointwise"
    ORDERED = "ordered"
    ANEW = "computed anew"


class Place(Enum):
    """What a rule searches."""

    ROWS = "rows"
    """The content of an input, which is therefore stored."""
    COUNTS = "counts"
    """How many rows of an input there are for each key: the statement keeps these numbers, and not the rows."""
    GROUPS = "groups"
    """What the statement keeps of each group."""
    ORDER = "order"
    """The rows of an input in order, which the statement keeps."""


@dataclass(frozen=True, slots=True)
class Search:
    """How a rule finds what a change meets: in the ``place`` of an input, by expressions over that input's columns."""

    side: int
    place: Place
    kind: AccessKind
    by: tuple[Expression, ...] = ()
    ordered: Expression | None = None
    """What a range of the rows is bounded by."""
    reaching: Expression | None = None
    """What is bounded beside it: of the rows in the range, those are met of which this reaches a value."""


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """What a change of the input at ``side`` does, and what is searched for it."""

    side: int
    kind: StatementKind
    searches: tuple[Search, ...] = ()


@dataclass(frozen=True, slots=True)
class Apply:
    """A node of the algebra over scans of collections and inputs, with a rule for each of them."""

    node: Relation
    rules: tuple[ChangeRule, ...]
    why_no_tree: str | None = None
    """Why no view tree does this, where one could have been expected to."""
    keeps_slices: bool = False
    """A join that finds few rows by its equalities, and keeps no order beside them."""


@dataclass(frozen=True, slots=True)
class CheckSingle:
    """The rows of the left side of a join; a row with two partners on the right is an error (a scalar subquery has one row)."""

    node: Join
    rules: tuple[ChangeRule, ...]


@dataclass(frozen=True, slots=True)
class Correlation:
    """A column of inner rows θ one of outer rows, θ being the ``comparison``.

    ``failing`` are the columns of outer and inner rows, if there are such, that say whether what is compared cannot be
    computed: then comparing fails.
    """

    outer: int
    inner: int
    comparison: str
    failing: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class NestedFilter:
    """The rows of ``outer`` that a nested aggregate lets through.

    ``call`` is over the column ``argument`` of those rows of ``inner`` that agree with the outer row on ``groups`` (pairs of an
    outer and an inner column) and of which all that is ``compared`` holds. ``condition`` is over what it gives, then the
    columns of ``value``, a collection of one row, if there is one, or the columns ``bounds`` of the outer row.
    """

    outer: Scan
    inner: Scan
    value: Scan | None
    groups: tuple[tuple[int, int], ...]
    compared: tuple[Correlation, ...]
    call: AggregateCall
    argument: int
    condition: Expression
    bounds: tuple[int, ...] = ()

    @property
    def is_by_keys(self) -> bool:
        """Whether keys turn one by one, and not all those on a stretch of the order."""
        return len(self.compared) > 1 or bool(self.bounds) or self.compared[0].comparison == "<>"

    @property
    def rules(self) -> tuple[ChangeRule, ...]:
        """A change of any input moves the turns, between which outer rows are found in order, or keys turn."""
        fields = self.outer.fields
        by, compared, bounds = (
            tuple(Column(o, fields[o].type, fields[o].nullable) for o in columns)
            for columns in ([o for o, _ in self.groups], [c.outer for c in self.compared], self.bounds)
        )
        if self.is_by_keys:
            found = Search(0, Place.ROWS, AccessKind.SLICE, (*by, *dict.fromkeys((*compared, *bounds))))
        else:
            found = Search(0, Place.ROWS, AccessKind.RANGE, by, compared[0])
        order = Search(1, Place.ORDER, AccessKind.RANGE)
        sides = 2 if self.value is None else 3
        return tuple(ChangeRule(side, StatementKind.ORDERED, (order, found)) for side in range(sides))


@dataclass(frozen=True, slots=True)
class ThresholdFilter:
    """The rows whose ``column`` is on one side of a maintained value, or between two, or not between them.

    ``condition`` is over the column, then the columns of ``value``, a collection of one row.
    """

    rows: Scan
    value: Scan
    column: int
    condition: Expression

    @property
    def rules(self) -> tuple[ChangeRule, ...]:
        """A changed row is compared; a moved value finds the rows between its places."""
        field = self.rows.fields[self.column]
        found = Search(0, Place.ROWS, AccessKind.RANGE, (), Column(self.column, field.type, field.nullable))
        return ChangeRule(0, StatementKind.ORDERED), ChangeRule(1, StatementKind.ORDERED, (found,))


@dataclass(frozen=True, slots=True)
class TreeBlock:
    """A block that a view tree maintains. The inputs of its atoms are scans of collections and inputs.

    ``source`` is what it computes, as a plan over the same scans: for engines without trees, and where numbers get too large.
    ``outputs`` are the columns of a join without an aggregate, over the block's keys; None where an aggregate is on top.
    """

    lowered: Lowered
    source: Relation
    outputs: tuple[Expression, ...] | None = None


@dataclass(frozen=True, slots=True)
class FactorizedBlock:
    """A block whose result is kept as the views of its tree; its rows are enumerated when somebody reads them."""

    planned: FactorizedPlan
    source: Relation


@dataclass(frozen=True, slots=True)
class MatrixBlock:
    """A product of matrices, kept in arrays; ``cells`` are scans of (i, j, v), ``source`` is their product as a plan."""

    names: tuple[str, ...]
    cells: tuple[Scan, ...]
    source: Relation


@dataclass(frozen=True, slots=True)
class Anew:
    """A whole plan over inputs, evaluated again whenever one of them has changed; the difference is the change."""

    plan: Relation


ProgramStatement: TypeAlias = (
    Apply | CheckSingle | NestedFilter | ThresholdFilter | TreeBlock | FactorizedBlock | MatrixBlock | Anew
)


@dataclass(frozen=True, slots=True)
class Collection:
    """What one statement makes."""

    name: str
    fields: Schema
    statement: ProgramStatement

    @property
    def scan(self) -> Scan:
        """A scan of it."""
        return Scan(self.name, self.fields)


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """A table or another view. One that is not changing has been loaded, and gets no more rows."""

    name: str
    fields: Schema
    is_changing: bool = True


@dataclass(frozen=True, slots=True)
class Program:
    """The collections of a view, each after what it reads. ``root`` names the one that is the view; it may be an input."""

    inputs: tuple[ProgramInput, ...]
    collections: tuple[Collection, ...]
    root: str

    @property
    def root_scan(self) -> Scan:
        """A scan of what the view is."""
        every: tuple[ProgramInput | Collection, ...] = (*self.inputs, *self.collections)
        return next(Scan(c.name, c.fields) for c in every if c.name == self.root)

    def stored(self) -> frozenset[str]:
        """The collections and inputs whose content some rule searches."""
        found: set[str] = set()
        for collection in self.collections:
            read = scans(collection.statement)
            if isinstance(collection.statement, Anew):
                found |= {scan.table for scan in read}
            for rule in rules(collection.statement):
                found |= {read[s.side].table for s in rule.searches if s.place is Place.ROWS}
        return frozenset(found)

    def moved_by(self, name: str) -> Iterator[tuple[Collection, tuple[int, ...]]]:
        """The collections that a change of an input moves, in order, and which of their inputs have then changed."""
        moving = {name}
        for collection in self.collections:
            sides = tuple(i for i, scan in enumerate(scans(collection.statement)) if scan.table in moving)
            if sides:
                moving.add(collection.name)
                yield collection, sides


def scans(statement: ProgramStatement) -> tuple[Scan, ...]:
    """What a statement reads, in the order of its inputs."""
    found: tuple[Relation, ...]
    match statement:
        case Apply(node=node) | CheckSingle(node=node):
            found = inputs_of(node)
        case NestedFilter(outer=outer, inner=inner, value=value):
            found = (outer, inner) if value is None else (outer, inner, value)
        case ThresholdFilter(rows=rows, value=value):
            found = (rows, value)
        case TreeBlock(lowered=lowered):
            found = tuple(atom.input for atom in lowered.program.block.atoms)
        case FactorizedBlock(planned=planned):
            found = tuple(atom.input for atom in planned.block.atoms)
        case MatrixBlock(cells=cells):
            found = cells
        case Anew(plan=plan):
            found = scans_of(plan)
    assert all(isinstance(scan, Scan) for scan in found), "statements read collections and inputs"
    return tuple(scan for scan in found if isinstance(scan, Scan))


def rules(statement: ProgramStatement) -> tuple[ChangeRule, ...]:
    """The rules of a statement; a tree has its triggers instead, and what is computed anew needs none."""
    return statement.rules if isinstance(statement, Apply | CheckSingle | NestedFilter | ThresholdFilter) else ()


def kind_of_statement(statement: ProgramStatement) -> StatementKind:
    """The most general kind that a change of an input needs."""
    match statement:
        case Apply(rules=found) | CheckSingle(rules=found):
            order = list(StatementKind)
            return max((r.kind for r in found), key=order.index, default=StatementKind.CONSTANT)
        case NestedFilter() | ThresholdFilter():
            return StatementKind.ORDERED
        case TreeBlock() | FactorizedBlock() | MatrixBlock():
            return StatementKind.LINEAR
        case Anew():
            return StatementKind.ANEW


def identity_of_statement(statement: ProgramStatement) -> Hashable:
    """What equal statements have in common."""
    match statement:
        case Apply(node=node):
            return node
        case CheckSingle(node=node):
            return "check", node
        case NestedFilter() | ThresholdFilter():
            return statement
        case TreeBlock():
            return "tree", statement.source
        case FactorizedBlock():
            return "factorized", statement.source
        case MatrixBlock(source=source):
            return "matrices", source
        case Anew(plan=plan):
            return "anew", plan
