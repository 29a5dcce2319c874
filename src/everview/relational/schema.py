"""The columns a relational node produces: names, types and whether NULL can occur.

Derived once a node and remembered in it. Nullability is conservative: ``nullable=False`` is a promise, ``True`` is not.
"""

from __future__ import annotations

from typing import assert_never

from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal, SparkExpression
from everview.relational.functions import function_named
from everview.relational.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    ExceptAll,
    Field,
    Filter,
    Generate,
    IntersectAll,
    Join,
    JoinKind,
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
from everview.relational.types import BOOLEAN, INT32, Array, Decimal, is_floating

_NEVER_NULL_AGGREGATES = frozenset({"count", "count_if", "regr_count"})
_NEVER_NULL_WINDOWS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "count"})


def is_nullable(expression: Expression) -> bool:
    """Whether the expression can be NULL for some row."""
    match expression:
        case Column() | Literal():
            return expression.nullable
        case Call():
            return function_named(expression.function).is_nullable(tuple(is_nullable(a) for a in expression.args))
        case Cast():
            if is_floating(expression.child.type) and isinstance(expression.type, Decimal):
                return True  # NaN and the infinities become NULL, also in ANSI mode
            return expression.is_try or is_nullable(expression.child)
        case Case():
            return is_nullable(expression.otherwise) or any(is_nullable(v) for _, v in expression.branches)
        case SparkExpression():
            return True
        case _:
            assert_never(expression)


def schema(relation: Relation) -> Schema:
    """The output columns of a node."""
    known: Schema | None = relation._memo
    if known is None:
        known = _derive(relation)
        object.__setattr__(relation, "_memo", known)
    return known


def columns(relation: Relation) -> tuple[Column, ...]:
    """One expression for each output column: the identity projection."""
    return tuple(Column(i, f.type, f.nullable) for i, f in enumerate(schema(relation)))


def _derive(relation: Relation) -> Schema:
    match relation:
        case Scan() | Values() | SparkQuery():
            return relation.fields
        case Filter() | Distinct() | TopK():
            return schema(relation.child)
        case Project():
            return _fields(relation.names, relation.expressions)
        case Join():
            return _join_schema(relation)
        case Aggregate():
            split = len(relation.keys)
            keys = _fields(relation.names[:split], relation.keys)
            return keys + tuple(
                Field(name, call.type, _is_aggregate_nullable(call))
                for name, call in zip(relation.names[split:], relation.aggregates, strict=True)
            )
        case UnionAll():
            rows = [schema(i) for i in relation.inputs]
            return tuple(
                Field(column[0].name, column[0].type, any(f.nullable for f in column))
                for column in zip(*rows, strict=True)
            )
        case Recursive():
            return _as_nullable(schema(relation.anchor))
        case ExceptAll():
            return schema(relation.left)
        case IntersectAll() | UnionMax():
            pairs = zip(schema(relation.left), schema(relation.right), strict=True)
            return tuple(Field(a.name, a.type, a.nullable or b.nullable) for a, b in pairs)
        case Window():
            added = tuple(
                Field(name, call.type, call.function not in _NEVER_NULL_WINDOWS)
                for name, call in zip(relation.names, relation.functions, strict=True)
            )
            return schema(relation.child) + added
        case Generate():
            return schema(relation.child) + _generated(relation)
        case _:
            assert_never(relation)


def _fields(names: tuple[str, ...], expressions: tuple[Expression, ...]) -> Schema:
    return tuple(Field(n, e.type, is_nullable(e)) for n, e in zip(names, expressions, strict=True))


def _is_aggregate_nullable(call: AggregateCall) -> bool:
    return call.is_ring or call.function not in _NEVER_NULL_AGGREGATES


def _join_schema(join: Join) -> Schema:
    left, right = schema(join.left), schema(join.right)
    match join.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            return left
        case JoinKind.MARK:
            return (*left, Field(join.mark, BOOLEAN, False))
        case JoinKind.INNER:
            return left + right
        case JoinKind.LEFT | JoinKind.SINGLE:
            return left + _as_nullable(right)
        case JoinKind.RIGHT:
            return _as_nullable(left) + right
        case JoinKind.FULL:
            return _as_nullable(left) + _as_nullable(right)
        case _:
            assert_never(join.kind)


def _as_nullable(fields: Schema) -> Schema:
    return tuple(Field(f.name, f.type, True) for f in fields)


def _generated(generate: Generate) -> Schema:
    array = generate.array.type
    assert isinstance(array, Array), array
    element = Field(generate.names[-1], array.element, generate.outer or array.contains_null)
    if not generate.with_position:
        return (element,)
    return (Field(generate.names[0], INT32, generate.outer), element)
