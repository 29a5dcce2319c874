"""The groups of a block, summed row by row by push operators, while its numbers are beyond what a view tree can sum.

A tree multiplies sums, where Spark sums products. The two agree as long as no product overflows and nothing is infinite or NaN:

    Σx = 1e200 - 1e200 = 0,  Σy = 1e200     (Σx)·(Σy) = 0,  but Σ(x·y) = ∞ - ∞ = NaN

So a tree that meets such numbers gives way to joins and an aggregate over the same inputs, whose rows it needs for that
once. It tries to come back when as many rows have changed as it had to read, so that going to and fro costs a constant a
changed row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from everview.backends.embedded.operators.base import Arrangement, Operator
from everview.backends.embedded.vectors import Batch
from everview.errors import EvaluationError
from everview.relational.nodes import Aggregate, AggregateCall, Relation, Schema
from everview.relational.rules.pipeline import SPLIT_JOINS, run_rules
from everview.relational.traverse import scans_of
from everview.relational.types import INT64

MOST_ROWS = 20_000_000
"""Rows of a join that are summed one by one; beyond, the transaction is rejected."""

MakeRows = Callable[[Sequence[Batch]], "RowByRow"]
"""Makes the operators from the contents of the block's inputs."""


@dataclass(frozen=True, slots=True)
class BuiltApart:
    """Operators that are not among those of the database, inputs before users, and the one that is asked."""

    operators: tuple[Operator, ...]
    root: Operator


Build: TypeAlias = Callable[[Relation, Mapping[str, Operator], str | None], BuiltApart]
"""Makes the operators of a plan over named inputs; the text says why there shall be no view trees, if so."""


class Relay(Operator):
    """An input from outside: its content to begin with, and then deltas that are handed in."""

    def __init__(self, fields: Schema, rows: Batch) -> None:
        super().__init__(fields, ())
        self.rows: Batch | None = rows
        """Until all that reads it has been made."""

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        """The content, while it is at hand."""
        assert self.rows is not None, "what is looked up later is arranged"
        return self.rows

    def describe(self) -> str:
        """One line for ``explain``."""
        return "input"


class RowByRow:
    """Operators between the inputs of a block and its answers, which move with the operator that holds them."""

    def __init__(self, built: BuiltApart, relays: Sequence[tuple[int, Relay]], size: int) -> None:
        self._operators = built.operators
        self._relays = tuple(relay for _, relay in relays)
        self._places = tuple(place for place, _ in relays)
        self._root = built.root
        self._touched: list[Operator] = []
        self.size = size
        """How many rows were read to make it."""

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        """The change of the answers for changes of the inputs."""
        found: dict[int, Batch] = {}
        for relay, place in zip(self._relays, self._places, strict=True):
            delta = deltas[place]
            if delta is not None and len(delta):
                self._moved(relay, delta, found)
        for operator in self._operators:
            given = [found.get(id(i)) for i in operator.inputs]
            if any(delta is not None for delta in given):
                self._touched.append(operator)
                made = operator.push(given)
                if made is not None and len(made):
                    self._moved(operator, made, found)
        return found.get(id(self._root))

    def _moved(self, operator: Operator, delta: Batch, found: dict[int, Batch]) -> None:
        found[id(operator)] = delta
        if operator.arrangement is not None:
            operator.arrangement.apply(delta)

    def content(self) -> Batch:
        """The answers."""
        return self._root.content()

    def commit(self) -> None:
        """Makes the changes since the last commit final."""
        for operator in self._touched:
            operator.commit()
        for arrangement in self._arrangements():
            arrangement.commit()
        self._touched.clear()

    def rollback(self) -> None:
        """Takes the changes since the last commit back."""
        for arrangement in self._arrangements():
            arrangement.rollback()
        for operator in reversed(self._touched):
            operator.rollback()
        self._touched.clear()

    def _arrangements(self) -> Iterable[Arrangement]:
        every: tuple[Operator, ...] = (*self._relays, *self._operators)
        return (o.arrangement for o in every if o.arrangement is not None)

    def nbytes(self) -> dict[str, int]:
        """Bytes by structure."""
        sizes: dict[str, int] = {}
        for number, operator in enumerate((*self._relays, *self._operators)):
            parts = operator.nbytes() | (operator.arrangement.nbytes() if operator.arrangement is not None else {})
            sizes |= {f"row_by_row[{number}].{part}": size for part, size in parts.items()}
        return sizes


def make_rows(source: Aggregate, atoms: Sequence[str], build: Build) -> MakeRows:
    """What makes the operators of a block's aggregate, from the contents of its inputs.

    Args:
        source: What the block computes, over scans of its inputs.
        atoms: The names that the inputs have there, one for each atom.
        build: Makes operators.
    """
    places = {name: atoms.index(name) for name in atoms}
    fields = {scan.table: scan.fields for scan in scans_of(source)}
    count = AggregateCall("count", (), INT64)

    def make(contents: Sequence[Batch]) -> RowByRow:
        def relays() -> dict[str, Relay]:
            return {name.lower(): Relay(fields[name], contents[place]) for name, place in places.items()}

        counted = Aggregate(source.child, (), (count,), ("rows",))
        # A tree counts without making the rows. If the same numbers are beyond that tree too, this function is called for the
        # count, which has no other way than to make them.
        if source != counted and math.prod(len(c) for c in contents) > MOST_ROWS:
            joined = build(run_rules(counted, SPLIT_JOINS), relays(), None)
            (rows,) = joined.root.content().columns[0].values.tolist()
            if rows > MOST_ROWS:
                raise EvaluationError(
                    f"NaN, infinity, or a number too large for a view tree takes part in a sum over {rows:,} joined rows, "
                    f"of which at most {MOST_ROWS:,} are summed one by one.",
                    condition="ARITHMETIC_OVERFLOW",
                )
        given = relays()
        built = build(run_rules(source, SPLIT_JOINS), given, "its numbers are beyond what a tree can sum")
        for relay in given.values():
            relay.rows = None
        pairs = tuple(zip(places.values(), given.values(), strict=True))
        return RowByRow(built, pairs, sum(len(c) for c in contents))

    return make
