"""Conditions that cut the values of one column, in order, into a few stretches: what an ordered index can answer.

A comparison in which one side only grows with a column and the other only falls (or has nothing to do with it) is true from
some value on, or up to some value: it *cuts* the order of the column once. AND and OR of such comparisons are true on a few
stretches between cuts. Where the cuts are is found by evaluating the comparisons themselves: rounding and scales need no care.

    a.price - b.price > 1000 or b.price - a.price > 1000        in the order of a.price: up to a cut, and from a cut on
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from everview.relational.expressions import Call, Cast, Column, Expression, Literal, columns_of
from everview.relational.types import (
    BOOLEAN,
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    String,
    Struct,
    Timestamp,
    TimestampNtz,
    is_floating,
    is_integral,
    is_numeric,
)

_SIGN = {"<": -1, "<=": -1, ">": 1, ">=": 1}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What a comparison is with its sides exchanged."""
_DAY = 86_400_000_000
"""Microseconds."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A comparison that is true from some value of the column on (``is_from``), or up to some value; never for NULL."""

    condition: Expression
    is_from: bool


@dataclass(frozen=True, slots=True)
class Both:
    """All of the parts hold."""

    parts: tuple[OrderedCondition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the parts holds."""

    parts: tuple[OrderedCondition, ...]


OrderedCondition: TypeAlias = Cut | Both | Either


def ordered_condition(condition: Expression, column: int) -> OrderedCondition | None:
    """The condition as cuts of a column's order; None where it is not made of such.

    >>> from everview.relational.types import INT64
    >>> x, y = Column(0, INT64), Column(1, INT64)
    >>> far = Call(">", (Call("-", (y, x), INT64), Literal(9, INT64)), BOOLEAN)
    >>> ordered_condition(far, 0).is_from, ordered_condition(far, 1).is_from
    (False, True)
    """
    if not isinstance(condition, Call):
        return None
    match condition.function:
        case "and" | "or":
            parts = tuple(ordered_condition(a, column) for a in condition.args)
            known = tuple(p for p in parts if p is not None)
            if len(known) < len(parts):
                return None
            return Both(known) if condition.function == "and" else Either(known)
        case "=":
            return _pair(condition, ("<=", ">="), column, Both)
        case "not" if isinstance(condition.args[0], Call) and condition.args[0].function == "=":
            return _pair(condition.args[0], ("<", ">"), column, Either)
        case function if function in _SIGN:
            left, right = (direction(a, column) for a in condition.args)
            if left is None or right is None or left == right:
                return None  # what does not depend on the column cuts nothing, and what moves with it is no cut
            if left and right and left != -right:
                return None
            return Cut(condition, is_from=(left or -right) * _SIGN[function] > 0)
        case _:
            return None


def is_interval(condition: OrderedCondition) -> bool:
    """Whether it holds for the values of one stretch, or for all but those of one stretch."""
    match condition:
        case Either(parts=(Cut() as a, Cut() as b)):
            return a.is_from != b.is_from
        case _:
            return is_stretch(condition)


def is_stretch(condition: OrderedCondition) -> bool:
    """Whether it holds for the values of one stretch."""
    return isinstance(condition, Cut) or (isinstance(condition, Both) and all(map(is_stretch, condition.parts)))


def _pair(
    equality: Call, functions: tuple[str, str], column: int, combine: type[Both] | type[Either]
) -> OrderedCondition | None:
    parts = tuple(ordered_condition(Call(f, equality.args, BOOLEAN), column) for f in functions)
    known = tuple(p for p in parts if p is not None)
    return combine(known) if len(known) == len(parts) else None


def direction(expression: Expression, column: int) -> int | None:
    """1 if the value never falls as the column grows, -1 if it never grows, 0 if it does not depend on it; None: unknown.

    Floats are only shifted by finite constants, and scaled by positive ones, which leaves NaN the greatest: it comes out of
    sums of others.
    """
    if column not in columns_of(expression):
        return 0
    match expression:
        case Column():
            return 1
        case Call(function="+" | "-" | "*" as function, args=(a, b)) if is_floating(expression.type):
            if isinstance(a, Literal) and function != "-":
                a, b = b, a
            return direction(a, column) if _keeps_nan_last(function, b) else None
        case Call(function="date_add" | "date_sub" | "add_months" | "date_add_interval", args=(day, Literal())):
            return direction(day, column)
        case Call(function="timestamp_add_interval", args=(time, Literal() as interval)) if _is_elapsed(time, interval):
            return direction(time, column)
        case Cast(child=child, is_try=False) if _keeps_order(child.type, expression.type):
            return direction(child, column)
        case Call(function="+" | "-" | "*" as function, args=(a, b)) if _is_exact(expression.type):
            left, right = direction(a, column), direction(b, column)
            if left is None or right is None:
                return None
            if function == "*":
                return _scaled(a, right) if left == 0 else _scaled(b, left) if right == 0 else None
            right = -right if function == "-" else right
            return left + right if left * right == 0 else left if left == right else None
        case _:
            return None


def _scaled(factor: Expression, of: int) -> int | None:
    """The direction of a product with a number that is known."""
    while isinstance(factor, Cast):
        factor = factor.child
    if not isinstance(factor, Literal) or factor.value is None or isinstance(factor.value, str | bool):
        return None
    return of if factor.value >= 0 else -of


def _keeps_nan_last(function: str, by: Expression) -> bool:
    if not isinstance(by, Literal) or by.value is None or not math.isfinite(by.value):
        return False
    return function != "*" or by.value > 0


def _is_elapsed(time: Expression, interval: Literal) -> bool:
    """Whether an interval is a number of microseconds, whatever a clock shows; a day is not, where clocks are changed."""
    if not isinstance(interval.type, DayTimeInterval) or interval.value is None:
        return False
    return isinstance(time.type, TimestampNtz) or abs(interval.value) < _DAY


def _is_exact(data_type: DataType) -> bool:
    return is_numeric(data_type) and not is_floating(data_type)


def _keeps_order(old: DataType, new: DataType) -> bool:
    """Whether a cast never turns two values round."""
    if isinstance(old, Decimal) or is_integral(old):
        return is_numeric(new)
    if isinstance(old, Date) or isinstance(new, Date):  # the clock of a zone may be set back over midnight
        return isinstance(old, TimestampNtz) or isinstance(new, Timestamp | TimestampNtz)
    return is_floating(old) and is_floating(new)


def has_order(data_type: DataType) -> bool:
    """Whether the order of the values is that of plain words, which ordered sums compare."""
    return isinstance(data_type, Date) or not isinstance(data_type, String | Binary | Array | Struct | Boolean)
