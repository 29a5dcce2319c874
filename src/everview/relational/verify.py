"""Checks what a relational plan must satisfy as a whole: every column exists and has the type its users expect.

Runs after translation and after every rewrite. A failure is our own bug, never the user's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from everview.algebra.registry import is_registered
from everview.errors import InternalError
from everview.relational.expressions import Call, Case, Column, Expression, walk
from everview.relational.functions import function_named, is_function
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
    Schema,
    SparkQuery,
    TopK,
    UnionAll,
    UnionMax,
    Values,
    Window,
)
from everview.relational.schema import schema
from everview.relational.traverse import inputs
from everview.relational.types import BOOLEAN, NULL, Array

_TYPED_BY_VALUE = frozenset({"round", "bround", "floor", "ceil", "struct", "getfield", "getfields"})
"""Functions whose result type depends on the value of an argument, or on names, not on argument types alone."""


def verify(plan: Relation) -> None:
    """Raises ``InternalError`` if the plan is not well-formed. Shared sub-plans are visited once."""
    seen: set[int] = set()

    def visit(relation: Relation) -> None:
        if id(relation) in seen:
            return
        seen.add(id(relation))
        for child in inputs(relation):
            visit(child)
        _verify_node(relation)

    visit(plan)


def _verify_node(relation: Relation) -> None:
    match relation:
        case Scan():
            pass
        case Values():
            _require(all(len(r) == len(relation.fields) for r in relation.rows), relation, "a row of another width")
        case Filter():
            _verify_expressions(relation, [relation.condition], schema(relation.child))
        case Project():
            _verify_expressions(relation, relation.expressions, schema(relation.child))
        case Join():
            _verify_expressions(relation, [relation.condition], schema(relation.left) + schema(relation.right))
        case Aggregate():
            calls = relation.aggregates
            used = [*relation.keys, *(a for c in calls for a in c.args), *(c.filter for c in calls if c.filter)]
            _verify_expressions(relation, used, schema(relation.child))
            for call in (c for c in calls if c.is_ring):
                _require(is_registered(call.function), relation, f"unknown ring {call.function}")
                _require(bool(call.args), relation, f"ring {call.function} of nothing")
        case Distinct() | SparkQuery():
            pass
        case UnionAll():
            for other in relation.inputs[1:]:
                _verify_same_types(relation, relation.inputs[0], other)
        case Recursive():
            verify(relation.step)
            _verify_same_types(relation, relation.anchor, relation.step)
        case ExceptAll() | IntersectAll() | UnionMax():
            _verify_same_types(relation, relation.left, relation.right)
        case Window():
            calls_in = relation.functions
            inside = [a for f in calls_in for a in f.args] + [f.filter for f in calls_in if f.filter is not None]
            order = [k.expression for k in relation.order]
            _verify_expressions(relation, [*relation.partition, *order, *inside], schema(relation.child))
        case TopK():
            _verify_expressions(relation, [k.expression for k in relation.order], schema(relation.child))
            _require(
                relation.offset >= 0 and (relation.limit is None or relation.limit >= 0), relation, "a negative limit"
            )
        case Generate():
            _verify_expressions(relation, [relation.array], schema(relation.child))
            _require(isinstance(relation.array.type, Array), relation, "explode of something that is not an array")
        case _:
            assert_never(relation)


def _verify_expressions(relation: Relation, expressions: Iterable[Expression], available: Schema) -> None:
    for expression in expressions:
        for part in walk(expression):
            match part:
                case Column():
                    _require(0 <= part.index < len(available), relation, f"column {part.index} of {len(available)}")
                    found = available[part.index].type
                    _require(found == part.type, relation, f"column {part.index} is {found}, read as {part.type}")
                case Call():
                    _require(is_function(part.function), relation, f"unknown function {part.function}")
                    if part.function not in _TYPED_BY_VALUE:
                        derived = function_named(part.function).result_type(tuple(a.type for a in part.args))
                        _require(derived == part.type, relation, f"{part.function} gives {derived}, not {part.type}")
                case Case():
                    for condition, value in part.branches:
                        _require(condition.type in (BOOLEAN, NULL), relation, "a CASE condition that is no boolean")
                        _require(value.type in (part.type, NULL), relation, "CASE branches of different types")
                    _require(part.otherwise.type in (part.type, NULL), relation, "CASE branches of different types")
                case _:
                    pass


def _verify_same_types(relation: Relation, left: Relation, right: Relation) -> None:
    ours, theirs = (tuple(f.type for f in schema(r)) for r in (left, right))
    _require(ours == theirs, relation, f"inputs of different types: {ours} and {theirs}")


def _require(holds: bool, relation: Relation, what: str) -> None:
    if not holds:
        raise InternalError(f"malformed plan at {type(relation).__name__}: {what}.")
