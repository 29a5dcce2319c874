"""The comparison of an outer with an inner row that correlates a nested aggregate with its query.

Keys may overflow (``i.a + 1 <= o.a``), or be divided by 0. Spark fails when it compares a row whose key it cannot compute,
that is if the other side has a row at all. So such a key is computed as NULL, which matches nothing, and a second column says
whether it fails: from the numbers of those rows on both sides it is known whether Spark fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.relational.expressions import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    shift_columns,
    walk,
)
from everview.relational.failing import can_fail
from everview.relational.ordered_condition import MIRRORED
from everview.relational.range_condition import is_one_word, is_text
from everview.relational.types import BOOLEAN, Date, Timestamp, TimestampNtz, is_numeric

_COMPARISONS = {**MIRRORED, "<>": "<>"}


@dataclass(frozen=True, slots=True)
class ComparedKeys:
    """A comparison of an inner with an outer key, each over its own columns: ``inner θ outer``."""

    outer: Expression
    inner: Expression
    comparison: str
    failing: tuple[Expression, Expression] | None
    """Whether the outer and the inner key cannot be computed; None where they always can."""


def compared_keys(condition: Expression, width: int) -> ComparedKeys | None:
    """What is compared, where the outer columns are the first ``width`` ones, and the others those of the inner relation."""
    if not isinstance(condition, Call):
        return None
    function = condition.function
    if function == "not" and isinstance(condition.args[0], Call) and condition.args[0].function == "=":
        function, condition = "<>", condition.args[0]
    if function not in _COMPARISONS:
        return None
    a, b = condition.args
    if not (columns_of(a) and columns_of(b) and (is_one_word(a.type) or is_text(a.type))):
        return None
    if max(columns_of(a)) < width:
        a, b, function = b, a, _COMPARISONS[function]
    if not max(columns_of(b)) < width <= min(columns_of(a)):
        return None
    a = shift_columns(a, -width)
    if not can_fail(a) and not can_fail(b):
        return ComparedKeys(b, a, function, None)
    if not (_is_arithmetic(a) and _is_arithmetic(b)):
        return None
    return ComparedKeys(_tried(b), _tried(a), function, (_fails(b), _fails(a)))


def _is_arithmetic(expression: Expression) -> bool:
    """Whether it is NULL only if a column is, unless it fails: for numbers that get too large, or by a division by 0."""
    match expression:
        case Column():
            return True
        case Literal(value=value):
            return value is not None
        case Call(function="+" | "-" | "*" | "negative" | "/" | "div" | "%"):
            return is_numeric(expression.type) and all(map(_is_arithmetic, expression.args))
        case Call(function="timestamp_add_interval" | "date_add" | "date_sub" | "date_add_interval" | "add_months"):
            return all(map(_is_arithmetic, expression.args))
        case Cast(child=child, is_try=False):
            return _is_ordered(expression) and _is_ordered(child) and _is_arithmetic(child)
        case _:
            return False


def _is_ordered(expression: Expression) -> bool:
    return is_numeric(expression.type) or isinstance(expression.type, Date | Timestamp | TimestampNtz)


def _tried(expression: Expression) -> Expression:
    """The expression, which is NULL where it fails."""
    return Call("try", (expression,), expression.type) if can_fail(expression) else expression


def _fails(expression: Expression) -> Expression:
    """Whether an arithmetic expression fails; NULL where a column is, since Spark does not compare such rows."""
    tried = _tried(expression)
    at = {c.index: c for c in walk(expression) if isinstance(c, Column)}
    known = conjunction(tuple(Call("isnotnull", (at[i],), BOOLEAN) for i in sorted(at)))
    fails = Call("isnull", (tried,), BOOLEAN) if tried is not expression else Literal(False, BOOLEAN)
    return Case(((known, fails),), Literal(None, BOOLEAN))
