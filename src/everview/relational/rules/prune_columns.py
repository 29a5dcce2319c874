"""Read only the columns that somebody uses."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from everview.relational.columns_used import columns_used
from everview.relational.expressions import Expression, remap_columns
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
    SortKey,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
    WindowCall,
)
from everview.relational.schema import columns, schema
from everview.relational.traverse import inputs, nodes_of

Kept = tuple[int, ...]
"""The positions, in the old output, of the columns that are left, ascending."""


def prune_columns(plan: Relation) -> Relation:
    """π[A](op(R)) = π[A](op(π[B](R))), where B are the columns of R that A and op read.

    Where an ORDER BY has ties, TopK and Window break them by the row they see, which is the pruned one; SQL leaves the
    choice open, and every engine sees the same plan. Works on the whole plan at once: a shared node keeps what any of
    its users needs. DISTINCT and the set operations compare whole rows and need every column of their inputs.

    >>> from everview.relational.rule_examples import L, R, a, b, c, equal, show
    >>> plan = Project(Join(L, R, JoinKind.INNER, equal(a, c)), (b,), ("b",))
    >>> show(plan)
    project [b]
      inner join on (a = c)
        scan l [a, b]
        scan r [c, d]
    >>> show(prune_columns(plan))
    project [b]
      inner join on (a = c)
        scan l [a, b]
        project [c]
          scan r [c, d]
    """
    needed = columns_used(plan)
    pruned: dict[int, tuple[Relation, Kept]] = {}
    for relation in nodes_of(plan):
        pruned[id(relation)] = _prune(relation, needed[id(relation)], [pruned[id(c)] for c in inputs(relation)])
    return pruned[id(plan)][0]


def _prune(relation: Relation, needed: set[int], children: list[tuple[Relation, Kept]]) -> tuple[Relation, Kept]:
    every = tuple(range(len(schema(relation))))
    match relation:
        case Scan():
            kept = tuple(i for i in every if i in needed)
            if kept == every:
                return relation, every
            chosen = tuple(columns(relation)[i] for i in kept)
            return Project(relation, chosen, tuple(relation.fields[i].name for i in kept)), kept
        case Values() | Distinct() | ExceptAll() | IntersectAll() | UnionMax() | Recursive() | SparkQuery():
            return _rebuilt(relation, [_narrow(c, tuple(range(len(c[1])))) for c in children]), every
        case Filter():
            ((child, kept),) = children
            return Filter(child, _moved(relation.condition, kept)), kept
        case Project():
            ((child, below),) = children
            kept = tuple(i for i in every if i in needed)
            expressions = tuple(_moved(relation.expressions[i], below) for i in kept)
            return Project(child, expressions, tuple(relation.names[i] for i in kept)), kept
        case Join():
            return _prune_join(relation, children)
        case Aggregate():
            return _prune_aggregate(relation, needed, children[0])
        case UnionAll():
            wanted = tuple(i for i in every if i in needed)
            return UnionAll(tuple(_narrow(c, wanted) for c in children)), wanted
        case Window():
            return _prune_window(relation, needed, children[0])
        case TopK():
            ((child, kept),) = children
            return TopK(child, _moved_order(relation.order, kept), relation.limit, relation.offset), kept
        case Generate():
            ((child, below),) = children
            width = len(schema(relation.child))
            return replace(relation, child=child, array=_moved(relation.array, below)), (*below, *every[width:])
        case _:
            assert_never(relation)


def _rebuilt(relation: Relation, new: list[Relation]) -> Relation:
    match relation:
        case Distinct():
            return Distinct(new[0])
        case ExceptAll() | IntersectAll() | UnionMax():
            return type(relation)(new[0], new[1])
        case Recursive():
            return replace(relation, anchor=new[0], inputs=tuple(new[1:]))
        case SparkQuery():
            return replace(relation, inputs=tuple(new))
        case _:
            return relation


def _narrow(child: tuple[Relation, Kept], wanted: Kept) -> Relation:
    """The pruned child with exactly the wanted columns, where a user beside us has kept it wider."""
    relation, kept = child
    if kept == wanted or len(kept) == len(wanted):
        return relation
    every, names = columns(relation), schema(relation)
    at = [kept.index(w) for w in wanted]
    return Project(relation, tuple(every[i] for i in at), tuple(names[i].name for i in at))


def _moved(expression: Expression, kept: Kept) -> Expression:
    return remap_columns(expression, kept.index)


def _moved_order(order: tuple[SortKey, ...], kept: Kept) -> tuple[SortKey, ...]:
    return tuple(replace(k, expression=_moved(k.expression, kept)) for k in order)


def _prune_join(join: Join, children: list[tuple[Relation, Kept]]) -> tuple[Relation, Kept]:
    (left, left_kept), (right, right_kept) = children
    width = len(schema(join.left))
    both = (*left_kept, *(width + i for i in right_kept))
    pruned = replace(join, left=left, right=right, condition=_moved(join.condition, both))
    match join.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            return pruned, left_kept
        case JoinKind.MARK:
            return pruned, (*left_kept, width)
        case _:
            return pruned, both


def _prune_aggregate(aggregate: Aggregate, needed: set[int], below: tuple[Relation, Kept]) -> tuple[Relation, Kept]:
    child, kept_below = below
    split = len(aggregate.keys)
    kept = (*range(split), *(split + i for i in range(len(aggregate.aggregates)) if split + i in needed))
    calls = tuple(_moved_call(aggregate.aggregates[i - split], kept_below) for i in kept[split:])
    keys = tuple(_moved(k, kept_below) for k in aggregate.keys)
    return Aggregate(child, keys, calls, tuple(aggregate.names[i] for i in kept)), kept


def _moved_call(call: AggregateCall, kept: Kept) -> AggregateCall:
    where = None if call.filter is None else _moved(call.filter, kept)
    return replace(call, args=tuple(_moved(a, kept) for a in call.args), filter=where)


def _prune_window(window: Window, needed: set[int], below: tuple[Relation, Kept]) -> tuple[Relation, Kept]:
    child, kept_below = below
    width = len(schema(window.child))
    functions = [i for i in range(len(window.functions)) if width + i in needed]
    moved = tuple(_moved_window_call(window.functions[i], kept_below) for i in functions)
    kept = (*kept_below, *(width + i for i in functions))
    if not moved:
        return child, kept_below
    partition = tuple(_moved(e, kept_below) for e in window.partition)
    names = tuple(window.names[i] for i in functions)
    return Window(child, partition, _moved_order(window.order, kept_below), moved, names), kept


def _moved_window_call(call: WindowCall, kept: Kept) -> WindowCall:
    where = None if call.filter is None else _moved(call.filter, kept)
    return replace(call, args=tuple(_moved(a, kept) for a in call.args), filter=where)
