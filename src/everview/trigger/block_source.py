"""What a block computes, as a plan over scans of its inputs: the join two by two, and the aggregate or the columns over it.

A view tree multiplies sums of the inputs, where Spark sums products of joined rows. This is the plan that does the latter. It
stands in for the tree on engines without trees, and where the numbers are beyond what a tree can sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from everview.planner.block import Block
from everview.planner.block_flatten import FlatJoin, flatten
from everview.relational.definitions.sum_aggregates import Summed, sum_aggregate
from everview.relational.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    remap_columns,
    substitute,
)
from everview.relational.nodes import Aggregate, AggregateCall, Filter, Join, JoinKind, Project, Relation, Scan
from everview.relational.schema import schema


def block_source(relation: Relation, block: Block, scans: Sequence[Scan]) -> Relation:
    """The plan of a block that was built from ``relation``, over a scan for each of its atoms."""
    if not isinstance(relation, Aggregate):
        flat = flatten(relation)
        joined, over = _joined(flat, block, scans)
        names = tuple(f.name for f in schema(relation))
        return Project(joined, tuple(over(e) for e in flat.outputs), names)
    flat = flatten(relation.child)
    joined, over = _joined(flat, block, scans)

    def read(expression: Expression) -> Expression:
        return over(substitute(expression, flat.outputs))

    kept = _columns_read(flat, block)
    calls = tuple(_over_read(call, flat, kept) for call in relation.aggregates)
    calls = tuple(
        replace(c, args=tuple(read(a) for a in c.args), filter=None if c.filter is None else read(c.filter))
        for c in calls
    )
    return Aggregate(joined, tuple(read(k) for k in relation.keys), calls, relation.names)


def _over_read(call: AggregateCall, flat: FlatJoin, kept: frozenset[int]) -> AggregateCall:
    """A count without the arguments that the block does not read, since they are never NULL: COUNT(e) = COUNT(*)."""
    found = tuple(a for a in call.args if columns_of(substitute(a, flat.outputs)) <= kept)
    if len(found) == len(call.args):
        return call
    summed = sum_aggregate(call)
    assert summed is not None, "a block is made of sums"
    assert summed.summed is Summed.ROWS, "only rows are counted without reading what is counted"
    return replace(call, function="count", args=found)


def _columns_read(flat: FlatJoin, block: Block) -> frozenset[int]:
    """The columns of the flat join that the block reads."""
    pairs = enumerate(zip(flat.inputs, block.atoms, strict=True))
    return frozenset(flat.start[i] + c for i, (relation, atom) in pairs for c in _kept(relation, atom.input))


def _joined(flat: FlatJoin, block: Block, scans: Sequence[Scan]) -> tuple[Relation, Callable[[Expression], Expression]]:
    """The join, and what an expression over the columns of the flat join is over its columns."""
    place: dict[int, int] = {}
    joined: Relation | None = None
    waiting = list(flat.conditions)
    for atom in _connected(flat):
        start = len(place)
        kept = _kept(flat.inputs[atom], block.atoms[atom].input)
        place |= {flat.start[atom] + c: start + i for i, c in enumerate(kept)}
        ready = [c for c in waiting if columns_of(c) <= place.keys()]
        waiting = [c for c in waiting if c not in ready]
        condition = conjunction(tuple(remap_columns(c, place.__getitem__) for c in ready))
        if joined is not None:
            joined = Join(joined, scans[atom], JoinKind.INNER, condition)
        else:
            joined = scans[atom] if condition == TRUE else Filter(scans[atom], condition)
    assert joined is not None, "a block has an atom"
    assert not waiting, "a block reads what its conditions read"
    return joined, lambda e: remap_columns(e, place.__getitem__)


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
