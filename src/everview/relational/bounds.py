"""How large an exact number can get; None where it could fail or would be rounded.

For an expression of an integer or decimal type this is a bound on the absolute value of its *unscaled* integer. It is valid
whenever the columns hold values of their types, or values within bounds that somebody watches. Arithmetic with a bound inside
its result type cannot overflow, and is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal, SparkExpression
from everview.relational.functions.decimals import CONTEXT
from everview.relational.types import Boolean, DataType, Decimal, Null, integer_bounds, is_integral

ColumnBound: TypeAlias = Callable[[Column], int | None]
"""The largest absolute unscaled value that a column can hold; None for other than exact types."""


def by_type(column: Column) -> int | None:
    """The bound of a column of which nothing but the type is known."""
    return type_bound(column.type)


def exact_bound(expression: Expression, of_column: ColumnBound = by_type) -> int | None:
    """The bound of an expression that is exact and never fails.

    >>> from everview.relational.types import INT32, INT64
    >>> wide = Cast(Column(0, INT32), INT64)
    >>> exact_bound(Call("*", (wide, wide), INT64)) == 2**62
    True
    >>> product = Call("*", (Column(0, INT64), wide), INT64)
    >>> exact_bound(product) is None, exact_bound(product, lambda column: 1000)
    (True, 1000000)
    """
    found = _bound(expression, of_column)
    limit = type_bound(expression.type)
    if found is None or limit is None:
        return None
    if is_integral(expression.type) and not _keeps_range(expression):
        limit -= 1  # -2^63 is a bigint, and 2^63 is not
    return found if found <= limit else None


def _keeps_range(expression: Expression) -> bool:
    """Whether the value is in the range of its type because the value it comes from is."""
    match expression:
        case Column() | Literal() | Case():
            return True
        case Cast(child=child):
            inner = type_bound(child.type) if is_integral(child.type) else None
            return inner is not None and inner <= (type_bound(expression.type) or 0)
        case _:
            return False


def type_bound(data_type: DataType) -> int | None:
    """The largest absolute unscaled value of an exact type; None for other types."""
    if isinstance(data_type, Decimal):
        return int(10**data_type.precision) - 1
    return -integer_bounds(data_type)[0] if is_integral(data_type) else None


def scale_of(data_type: DataType) -> int:
    """The digits after the point of an exact type."""
    return data_type.scale if isinstance(data_type, Decimal) else 0


def unscaled(literal: Literal) -> int:
    """The integer that stands for an exact constant."""
    if isinstance(literal.type, Decimal):
        return int(literal.value.scaleb(scale_of(literal.type), CONTEXT))
    return int(literal.value)


def _bound(expression: Expression, of_column: ColumnBound) -> int | None:
    match expression:
        case Column():
            return of_column(expression)
        case Literal():
            if expression.value is None:
                return 0
            return abs(unscaled(expression)) if type_bound(expression.type) is not None else None
        case Cast():
            return _cast_bound(expression, of_column)
        case Case():
            values = [*(v for _, v in expression.branches), expression.otherwise]
            bounds = [0 if isinstance(v.type, Null) else exact_bound(v, of_column) for v in values]
            return None if any(b is None for b in bounds) else max(b for b in bounds if b is not None)
        case Call():
            return _call_bound(expression, of_column)
        case SparkExpression():
            return None
        case _:
            assert_never(expression)


def _cast_bound(cast: Cast, of_column: ColumnBound) -> int | None:
    if isinstance(cast.child.type, Boolean) and is_integral(cast.type):
        return 1
    inner = exact_bound(cast.child, of_column)
    places = scale_of(cast.type) - scale_of(cast.child.type)
    return None if inner is None or places < 0 else inner * int(10**places)


def _call_bound(call: Call, of_column: ColumnBound) -> int | None:
    if call.function not in ("+", "-", "*", "negative"):
        return None
    bounds = [exact_bound(a, of_column) for a in call.args]
    scales = [scale_of(a.type) for a in call.args]
    known = [b for b in bounds if b is not None]
    if len(known) < len(bounds):
        return None
    scale = scale_of(call.type)
    if call.function == "*":
        return known[0] * known[1] if scale == sum(scales) else None
    if call.function == "negative":
        return known[0] if known[0] < 10**34 else None
    if scale < max(scales):
        return None
    return sum(b * int(10 ** (scale - s)) for b, s in zip(known, scales, strict=True))
