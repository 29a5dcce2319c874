"""Unique keys of a relation: sets of columns on which no two of its rows agree.

    scan        the primary key of the table, or the keys of the view that is read
    filter      the keys of the child, without columns that the condition makes equal to a constant
    project     the keys whose columns are all passed on, as they are or through a cast that keeps different values apart
    aggregate   the grouping keys; without any there is one row, and the empty set is a key
    distinct    all columns
    semi, anti  the keys of the left side, of which each row is there once at most; windows and top-k likewise

A key is a functional dependency (determinant: its columns, dependent: all others). NULL counts as a value, as in GROUP BY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from everview.relational.expressions import Call, Cast, Column, Expression, Literal, conjuncts
from everview.relational.nodes import Aggregate, Distinct, Filter, Join, JoinKind, Project, Relation, Scan, TopK, Window
from everview.relational.schema import schema
from everview.relational.types import (
    FLOAT32,
    FLOAT64,
    INT32,
    STRING,
    DataType,
    Date,
    Decimal,
    integer_bounds,
    is_integral,
)

UniqueKey: TypeAlias = frozenset[int]
"""Positions of columns."""
KeysOfScan: TypeAlias = Callable[[Scan], tuple[UniqueKey, ...]]


def unique_keys(relation: Relation, of_scan: KeysOfScan) -> tuple[UniqueKey, ...]:
    """The keys that follow from what is known of the scans; none where nothing is known.

    >>> from everview.relational.nodes import Field
    >>> from everview.relational.types import BOOLEAN, INT64
    >>> sales = Scan("sales", (Field("shop", INT64, False), Field("item", INT64, False)))
    >>> is_seven = Call("=", (Column(1, INT64), Literal(7, INT64)), BOOLEAN)
    >>> unique_keys(Filter(sales, is_seven), lambda _: (frozenset({0, 1}),))
    (frozenset({0}),)
    """
    match relation:
        case Scan():
            return of_scan(relation)
        case Filter(child=child, condition=condition):
            fixed = constant_columns(conjuncts(condition))
            return tuple(dict.fromkeys(key - fixed for key in unique_keys(child, of_scan)))
        case Project(child=child, expressions=expressions):
            return _projected(unique_keys(child, of_scan), expressions)
        case Aggregate(keys=keys):
            return (frozenset(range(len(keys))),)
        case Distinct():
            return (frozenset(range(len(schema(relation)))),)
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK | JoinKind.SINGLE, left=left):
            return unique_keys(left, of_scan)
        case Window(child=child) | TopK(child=child):
            return unique_keys(child, of_scan)
        case _:
            return ()


def constant_columns(conditions: Iterable[Expression]) -> frozenset[int]:
    """The columns that are equal to a constant where all the conditions hold."""
    fixed = set()
    for condition in conditions:
        match condition:
            case Call(function="=" | "<=>", args=(value, Literal()) | (Literal(), value)):
                column = kept_apart(value)
                if column is not None:
                    fixed.add(column)
            case _:
                pass
    return frozenset(fixed)


def kept_apart(expression: Expression) -> int | None:
    """The column of which the expression keeps different values apart: the column itself, or an injective cast of it."""
    while (
        isinstance(expression, Cast) and not expression.is_try and _is_injective(expression.child.type, expression.type)
    ):
        expression = expression.child
    return expression.index if isinstance(expression, Column) else None


def _projected(keys: tuple[UniqueKey, ...], expressions: tuple[Expression, ...]) -> tuple[UniqueKey, ...]:
    place: dict[int, int] = {}
    for position, expression in enumerate(expressions):
        column = kept_apart(expression)
        if column is not None:
            place.setdefault(column, position)
    return tuple(frozenset(place[c] for c in key) for key in keys if key <= place.keys())


def _is_injective(source: DataType, target: DataType) -> bool:
    """Whether a cast maps different values to different values, wherever it does not fail."""
    if source == target:
        return True
    if target == STRING:
        return is_integral(source) or isinstance(source, Date | Decimal)
    if is_integral(source):
        if is_integral(target):
            return True  # ANSI: what does not fit is an error
        if isinstance(target, Decimal):
            return True
        return target == FLOAT64 and integer_bounds(source)[1] <= integer_bounds(INT32)[1]
    if isinstance(source, Decimal):
        return isinstance(target, Decimal) and target.scale >= source.scale
    return source == FLOAT32 and target == FLOAT64
