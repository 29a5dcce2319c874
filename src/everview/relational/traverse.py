"""Walking and rebuilding relational plans. Plans are DAGs: a shared node is visited, and rewritten, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from everview.relational.expressions import Expression
from everview.relational.nodes import (
    Aggregate,
    Distinct,
    ExceptAll,
    Filter,
    Generate,
    IntersectAll,
    Join,
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
)


def inputs(relation: Relation) -> tuple[Relation, ...]:
    """The direct inputs, left to right."""
    match relation:
        case Scan() | Values():
            return ()
        case Filter() | Project() | Aggregate() | Distinct() | Window() | TopK() | Generate():
            return (relation.child,)
        case Join() | ExceptAll() | IntersectAll() | UnionMax():
            return (relation.left, relation.right)
        case UnionAll() | SparkQuery():
            return relation.inputs
        case Recursive():
            return (relation.anchor, *relation.inputs)
        case _:
            assert_never(relation)


def with_inputs(relation: Relation, new: tuple[Relation, ...]) -> Relation:
    """The same node over other inputs."""
    if all(a is b for a, b in zip(inputs(relation), new, strict=True)):
        return relation
    match relation:
        case Scan() | Values():
            return relation
        case Filter() | Project() | Aggregate() | Distinct() | Window() | TopK() | Generate():
            return replace(relation, child=new[0])
        case Join() | ExceptAll() | IntersectAll() | UnionMax():
            return replace(relation, left=new[0], right=new[1])
        case UnionAll():
            return UnionAll(new)
        case SparkQuery():
            return replace(relation, inputs=new)
        case Recursive():
            return replace(relation, anchor=new[0], inputs=new[1:])
        case _:
            assert_never(relation)


def rewrite_bottom_up(plan: Relation, rule: Callable[[Relation], Relation | None]) -> Relation:
    """Applies a rule to every node, inputs first, again at a node for as long as the rule changes it."""
    done: dict[int, tuple[Relation, Relation]] = {}  # the key node is kept too: an id is unique only while it lives

    def visit(relation: Relation) -> Relation:
        if id(relation) in done:
            return done[id(relation)][1]
        result = with_inputs(relation, tuple(visit(i) for i in inputs(relation)))
        while (changed := rule(result)) is not None:
            result = with_inputs(changed, tuple(visit(i) for i in inputs(changed)))
        done[id(relation)] = (relation, result)
        return result

    return visit(plan)


def rename_scans(plan: Relation, names: Mapping[str, str]) -> Relation:
    """The plan with other names for what it scans, and without the columns of it: what it computes, from what."""
    done: dict[int, Relation] = {}

    def visit(relation: Relation) -> Relation:
        if id(relation) not in done:
            if isinstance(relation, Scan):
                done[id(relation)] = Scan(names[relation.table], ())
            else:
                done[id(relation)] = with_inputs(relation, tuple(visit(i) for i in inputs(relation)))
        return done[id(relation)]

    return visit(plan)


def nodes_of(plan: Relation) -> Iterator[Relation]:
    """Every distinct node object, inputs before their users."""
    seen: set[int] = set()
    found: list[Relation] = []

    def visit(relation: Relation) -> None:
        if id(relation) not in seen:
            seen.add(id(relation))
            for child in inputs(relation):
                visit(child)
            found.append(relation)

    visit(plan)
    return iter(found)


def tables_of(plan: Relation) -> tuple[str, ...]:
    """The names of the tables and views a plan reads, each once, in order of first use."""
    return tuple(dict.fromkeys(n.table for n in nodes_of(plan) if isinstance(n, Scan)))


def scans_of(plan: Relation) -> tuple[Scan, ...]:
    """The scans of a plan, one for each table or view that it reads."""
    return tuple({n.table.lower(): n for n in nodes_of(plan) if isinstance(n, Scan)}.values())


def expressions_in(node: Relation) -> tuple[Expression, ...]:
    """The expressions that a node itself evaluates."""
    match node:
        case Filter():
            return (node.condition,)
        case Project():
            return node.expressions
        case Join():
            return (node.condition,)
        case Aggregate():
            inside = tuple(a for c in node.aggregates for a in (*c.args, *(() if c.filter is None else (c.filter,))))
            return (*node.keys, *inside)
        case Window():
            return (*node.partition, *(k.expression for k in node.order), *(a for c in node.functions for a in c.args))
        case TopK():
            return tuple(k.expression for k in node.order)
        case Generate():
            return (node.array,)
        case _:
            return ()
