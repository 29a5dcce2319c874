"""Unique keys of a relation: sets of columns on which no two of its rows agree.

    scan        the declared keys of the table, or the keys of the view that is read
    values      with one row or none, the empty set is a key
    filter      the keys of the child, without columns that the condition makes equal to a constant
    project     the keys whose columns are all passed on, as they are or through a cast that keeps different values apart
    aggregate   the grouping keys; without any there is one row, and the empty set is a key
    distinct    all columns
    semi, anti  the keys of the left side, of which each row is there once at most; windows and top-k likewise
    join        a key of one side and one of the other, of which the columns drop out that the first side's row fixes

A key is a functional dependency (determinant: its columns, dependent: all others). NULL counts as a value, as in GROUP BY. A
key that was declared UNIQUE over columns that may be NULL says less: SQL lets rows with a NULL repeat. Such a key holds among
the rows that have a value in its ``present`` columns, and of all rows where a condition lets no NULL through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from everview.relational.expressions import Call, Cast, Column, Expression, Literal, conjuncts
from everview.relational.join_condition import split_join_condition
from everview.relational.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    TopK,
    Values,
    Window,
)
from everview.relational.null_rejection import columns_never_null
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

MOST_KEYS = 8
"""A relation has no more keys than these, the smallest: a join multiplies their number."""


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """No two rows agree on ``columns`` (positions), among the rows that have no NULL in the columns ``present``."""

    columns: frozenset[int]
    present: frozenset[int] = frozenset()


KeysOfScan: TypeAlias = Callable[[Scan], tuple[UniqueKey, ...]]


def unique_keys(relation: Relation, of_scan: KeysOfScan = lambda _: ()) -> tuple[UniqueKey, ...]:
    """The keys that follow from what is known of the scans, none of which another one implies.

    >>> from everview.relational.nodes import Field
    >>> from everview.relational.types import BOOLEAN, INT64
    >>> sales = Scan("sales", (Field("shop", INT64, False), Field("item", INT64, False)))
    >>> is_seven = Call("=", (Column(1, INT64), Literal(7, INT64)), BOOLEAN)
    >>> [sorted(key.columns) for key in unique_keys(Filter(sales, is_seven), lambda _: (UniqueKey(frozenset({0, 1})),))]
    [[0]]
    """
    found = sorted(dict.fromkeys(_keys(relation, of_scan)), key=lambda k: (len(k.present), len(k.columns)))
    least = [k for k in found if not any(o != k and o.columns <= k.columns and o.present <= k.present for o in found)]
    return tuple(least[:MOST_KEYS])


def is_unique(relation: Relation, columns: Iterable[int]) -> bool:
    """Whether no two rows of the relation agree on the columns, whatever the tables hold."""
    known = set(columns)
    return any(not key.present and key.columns <= known for key in unique_keys(relation))


def _keys(relation: Relation, of_scan: KeysOfScan) -> Iterable[UniqueKey]:
    match relation:
        case Scan():
            return of_scan(relation)
        case Values(rows=rows):
            return (UniqueKey(frozenset()),) if len(rows) <= 1 else ()
        case Filter(child=child, condition=condition):
            return _filtered(unique_keys(child, of_scan), conjuncts(condition))
        case Project(child=child, expressions=expressions):
            return _projected(unique_keys(child, of_scan), expressions)
        case Aggregate(keys=keys):
            return (UniqueKey(frozenset(range(len(keys)))),)
        case Distinct():
            return (UniqueKey(frozenset(range(len(schema(relation))))),)
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK | JoinKind.SINGLE, left=left):
            return unique_keys(left, of_scan)
        case Join():
            return _joined(relation, of_scan)
        case Window(child=child) | TopK(child=child):
            return unique_keys(child, of_scan)
        case _:
            return ()


def _filtered(keys: Iterable[UniqueKey], conditions: tuple[Expression, ...]) -> Iterable[UniqueKey]:
    fixed, present = constant_columns(conditions), columns_never_null(conditions)
    return (UniqueKey(key.columns - fixed, key.present - present) for key in keys)


def _joined(join: Join, of_scan: KeysOfScan) -> Iterable[UniqueKey]:
    """L ∪ (K - what the condition fixes for a row of the left side), and the same with the sides exchanged.

    On an outer join this holds if all rows of the first side stay: one that finds no partner is there once.
    """
    conditions, width = conjuncts(join.condition), len(schema(join.left))
    equalities = split_join_condition(join).equalities
    left = unique_keys(join.left, of_scan)
    right = [_shifted(key, width) for key in unique_keys(join.right, of_scan)]
    of_left = {c for e in equalities if (c := kept_apart(e.left)) is not None}
    of_right = {c + width for e in equalities if (c := kept_apart(e.right)) is not None}
    pairs: list[tuple[UniqueKey, UniqueKey]] = []
    if join.kind in (JoinKind.INNER, JoinKind.LEFT):
        pairs += product(left, (UniqueKey(k.columns - of_right, k.present) for k in _filtered(right, conditions)))
    if join.kind in (JoinKind.INNER, JoinKind.RIGHT):
        pairs += product(right, (UniqueKey(k.columns - of_left, k.present) for k in _filtered(left, conditions)))
    keys = (UniqueKey(a.columns | b.columns, a.present | b.present) for a, b in pairs)
    return _filtered(keys, conditions) if join.kind is JoinKind.INNER else keys


def _shifted(key: UniqueKey, by: int) -> UniqueKey:
    return UniqueKey(frozenset(c + by for c in key.columns), frozenset(c + by for c in key.present))


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


def _projected(keys: Iterable[UniqueKey], expressions: tuple[Expression, ...]) -> Iterable[UniqueKey]:
    place: dict[int, int] = {}
    for position, expression in enumerate(expressions):
        column = kept_apart(expression)
        if column is not None:
            place.setdefault(column, position)
    for key in keys:
        if key.columns | key.present <= place.keys():
            yield UniqueKey(frozenset(place[c] for c in key.columns), frozenset(place[c] for c in key.present))


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
