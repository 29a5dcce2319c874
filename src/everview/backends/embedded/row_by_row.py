"""The groups of a block, summed row by row by push operators, while its numbers are beyond what a view tree can sum.

A tree multiplies sums, where Spark sums products. The two agree as long as no product overflows and nothing is infinite or NaN:

    Σx = 1e200 - 1e200 = 0,  Σy = 1e200     (Σx)·(Σy) = 0,  but Σ(x·y) = ∞ - ∞ = NaN

So a tree that meets such numbers gives way to joins and an aggregate over the same inputs, whose rows it needs for that
once. It tries to come back when as many rows have changed as it had to read, so that going to and fro costs a constant a
changed row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from everview.backends.embedded.operators.base import Arrangement, Operator
from everview.backends.embedded.vectors import Batch
from everview.errors import EvaluationError
from everview.planner.block import Block
from everview.planner.block_flatten import FlatJoin, flatten
from everview.relational.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    remap_columns,
    substitute,
)
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Join, JoinKind, Project, Relation, Scan, Schema
from everview.relational.rules.pipeline import SPLIT_JOINS, run_rules
from everview.relational.schema import schema
from everview.relational.types import INT64

MOST_ROWS = 20_000_000
"""Rows of a join that are summed one by one; beyond, the transaction is rejected."""
STRATEGY = "row_by_row"
"""The strategy under which a graph builds no trees."""

MakeRows = Callable[[Sequence[Batch]], "RowByRow"]
"""Makes the operators from the contents of the block's inputs."""


class OperatorGraph(Protocol):
    """What is needed of a graph: views by name, and operators made from plans over them."""

    roots: dict[str, Operator]
    operators: list[Operator]

    def build(self, plan: Relation, strategy: str = "auto") -> Operator:
        """The operator of a plan."""
        ...


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

    def __init__(self, operators: Sequence[Operator], relays: Sequence[Relay], root: Operator, size: int) -> None:
        self._operators = tuple(operators)
        self._relays = tuple(relays)
        self._root = root
        self._touched: list[Operator] = []
        self.size = size
        """How many rows were read to make it."""

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        """The change of the answers for changes of the inputs."""
        found: dict[int, Batch] = {}
        for relay, delta in zip(self._relays, deltas, strict=True):
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
            sizes |= {f"row by row, {number} {part}": size for part, size in parts.items()}
        return sizes


def make_rows(new_graph: Callable[[], OperatorGraph], aggregate: Aggregate, block: Block) -> MakeRows:
    """What makes the operators of a block's aggregate, from the contents of its inputs."""

    def make(contents: Sequence[Batch]) -> RowByRow:
        inputs = [schema(atom.input) for atom in block.atoms]
        count = AggregateCall("count", (), INT64)
        counted = Aggregate(_joined(aggregate, block)[0], (), (count,), ("rows",))
        joined = new_graph()
        joined.roots.update(_relays(inputs, contents))
        (rows,) = joined.build(run_rules(counted, SPLIT_JOINS)).content().columns[0].values.tolist()
        if rows > MOST_ROWS:
            raise EvaluationError(
                f"NaN, infinity, or a number too large for a view tree takes part in a sum over {rows:,} joined rows, "
                f"of which at most {MOST_ROWS:,} are summed one by one.",
                condition="ARITHMETIC_OVERFLOW",
            )
        graph, relays = new_graph(), _relays(inputs, contents)
        graph.roots.update(relays)
        root = graph.build(_plan(aggregate, block), STRATEGY)
        for relay in relays.values():
            relay.rows = None
        return RowByRow(graph.operators, tuple(relays.values()), root, sum(len(c) for c in contents))

    return make


def _relays(inputs: Sequence[Schema], contents: Sequence[Batch]) -> dict[str, Relay]:
    pairs = enumerate(zip(inputs, contents, strict=True))
    return {_name(i): Relay(fields, content) for i, (fields, content) in pairs}


def _name(atom: int) -> str:
    return f"#{atom}"


def _plan(aggregate: Aggregate, block: Block) -> Relation:
    """The aggregate over scans of the block's inputs, named by their numbers, joined two by two."""
    child, over = _joined(aggregate, block)
    keys = tuple(over(k) for k in aggregate.keys)
    calls = tuple(
        replace(c, args=tuple(over(a) for a in c.args), filter=None if c.filter is None else over(c.filter))
        for c in aggregate.aggregates
    )
    # Read by position, so that the outputs stay where they are.
    return run_rules(Aggregate(child, keys, calls, aggregate.names), SPLIT_JOINS)


def _joined(aggregate: Aggregate, block: Block) -> tuple[Relation, Callable[[Expression], Expression]]:
    """The join, and what an expression over the aggregate's input is over its columns."""
    flat = flatten(aggregate.child)
    kept = [_kept(relation, atom.input) for relation, atom in zip(flat.inputs, block.atoms, strict=True)]
    place: dict[int, int] = {}
    joined: Relation | None = None
    waiting = list(flat.conditions)
    for atom in _connected(flat):
        start = len(place)
        place |= {flat.start[atom] + c: start + i for i, c in enumerate(kept[atom])}
        scan = Scan(_name(atom), schema(block.atoms[atom].input))
        ready = [c for c in waiting if columns_of(c) <= place.keys()]
        waiting = [c for c in waiting if c not in ready]
        condition = conjunction(tuple(remap_columns(c, place.__getitem__) for c in ready))
        joined = Filter(scan, condition) if joined is None else Join(joined, scan, JoinKind.INNER, condition)
    assert joined is not None, "a block has an atom"
    return joined, lambda e: remap_columns(substitute(e, flat.outputs), place.__getitem__)


def _kept(relation: Relation, pruned: Relation) -> list[int]:
    """The columns of an input that the block reads, in the order that it reads them."""
    if isinstance(relation, Scan) and isinstance(pruned, Project):
        return [e.index for e in pruned.expressions if isinstance(e, Column)]
    return list(range(len(schema(relation))))


def _connected(flat: FlatJoin) -> list[int]:
    """The inputs in an order in which each has an equality with one before, where there is such an order."""
    owner = flat.owner
    equal = [
        {owner[c] for c in columns_of(condition)}
        for condition in flat.conditions
        if isinstance(condition, Call) and condition.function in ("=", "<=>")
    ]
    order, left = [0], list(range(1, len(flat.inputs)))
    while left:
        near = next((a for a in left if any(a in pair and pair & set(order) for pair in equal)), left[0])
        order.append(near)
        left.remove(near)
    return order
