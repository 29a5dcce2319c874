"""Which columns of each node of a plan somebody above it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from everview.relational.expressions import Expression, columns_of
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Filter,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
    Project,
    Recursive,
    Relation,
    Scan,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
    WindowCall,
)
from everview.relational.schema import schema
from everview.relational.traverse import inputs, nodes_of


def columns_used(plan: Relation) -> dict[int, set[int]]:
    """The positions of the columns that are read of each node, by the node's identity; of the plan itself, all."""
    needed: dict[int, set[int]] = {id(n): set() for n in nodes_of(plan)}
    needed[id(plan)] = set(range(len(schema(plan))))
    for relation in list(nodes_of(plan))[::-1]:
        for child, used in zip(inputs(relation), _used(relation, needed[id(relation)]), strict=True):
            needed[id(child)].update(used)
    return needed


def _read(expressions: Iterable[Expression]) -> set[int]:
    return {c for e in expressions for c in columns_of(e)}


def _call_expressions(call: AggregateCall | WindowCall) -> tuple[Expression, ...]:
    return call.args if call.filter is None else (*call.args, call.filter)


def _used(relation: Relation, needed: set[int]) -> tuple[set[int], ...]:
    """The columns of each input that the node needs for the given columns of its output."""
    match relation:
        case Scan() | Values():
            return ()
        case Filter():
            return (needed | columns_of(relation.condition),)
        case Project():
            return (_read(relation.expressions[i] for i in needed),)
        case Join():
            width = len(schema(relation.left))
            both = _join_needs(relation, needed, width) | columns_of(relation.condition)
            return ({c for c in both if c < width}, {c - width for c in both if c >= width})
        case Aggregate():
            split = len(relation.keys)
            calls = (relation.aggregates[i - split] for i in needed if i >= split)
            return (_read([*relation.keys, *(e for c in calls for e in _call_expressions(c))]),)
        case UnionAll():
            return tuple(needed for _ in relation.inputs)
        case Distinct() | ExceptAll() | IntersectAll() | UnionMax() | Recursive() | SparkQuery():
            return tuple(set(range(len(schema(i)))) for i in inputs(relation))
        case Window():
            width = len(schema(relation.child))
            calls_needed = (relation.functions[i - width] for i in needed if i >= width)
            inside = (e for c in calls_needed for e in _call_expressions(c))
            order = (k.expression for k in relation.order)
            return ({i for i in needed if i < width} | _read([*relation.partition, *order, *inside]),)
        case TopK():
            return (needed | _read(k.expression for k in relation.order),)
        case Generate():
            width = len(schema(relation.child))
            return ({i for i in needed if i < width} | columns_of(relation.array),)
        case _:
            assert_never(relation)


def _join_needs(join: Join, needed: set[int], width: int) -> set[int]:
    """The output columns of a join that are input columns; a mark is not."""
    return {i for i in needed if i < width} if join.kind is JoinKind.MARK else needed
