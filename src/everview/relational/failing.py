"""Which expressions have a value for every row, as far as one can see from their functions.

Used where only the definition computes them; kernels know more. ``False`` is a promise, ``True`` is not.
"""

from __future__ import annotations

from typing import Final

from everview.errors import EvaluationError
from everview.relational.bounds import by_type, exact_bound
from everview.relational.evaluate import evaluate
from everview.relational.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    SparkExpression,
    children,
    substitute,
)
from everview.relational.types import STRING, Binary, Boolean, String, holds, is_floating, is_integral, is_numeric

# fmt: off
_TOTAL: Final = frozenset((
    "=", "<", "<=", ">", ">=", "<=>", "in", "and", "or", "not", "coalesce", "try", "isnull", "isnotnull", "isnan",
    "nanvl", "greatest", "least", "try_add", "try_subtract", "try_multiply", "try_divide", "try_mod", "upper",
    "lower", "initcap", "trim", "btrim", "ltrim", "rtrim", "substring", "left", "right", "concat", "concat_ws",
    "length", "char_length", "octet_length", "bit_length", "lpad", "rpad", "repeat", "space", "reverse", "replace",
    "translate", "overlay", "substring_index", "startswith", "endswith", "contains", "instr", "locate", "split_sql",
    "find_in_set", "levenshtein", "ascii", "chr", "hex", "bin", "md5", "sha1", "sha2", "crc32", "year", "quarter",
    "month", "day", "dayofyear", "dayofweek", "weekday", "weekofyear", "yearofweek", "dayname", "monthname",
    "unix_date", "date_from_unix_date", "date_add", "date_sub", "datediff", "last_day", "trunc", "try_make_date",
    "sqrt", "cbrt", "exp", "expm1", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "degrees", "radians", "atan2", "hypot", "rint", "pi", "e", "power", "ln",
    "product_error", "log10", "log2", "log1p", "log", "factorial", "sign", "&", "|", "^", "~", "shiftleft", "shiftright",
    "shiftrightunsigned", "bit_count", "array", "struct", "size", "array_contains", "array_max", "array_min",
    "array_position", "array_distinct", "sort_array", "array_join", "get", "getfield", "getfields",
))
# fmt: on
_CONSTANT_PATTERN: Final = frozenset(("like", "ilike", "rlike"))


def can_fail(expression: Expression) -> bool:
    """Whether evaluating the expression could raise for some row."""
    if isinstance(expression, Call) and expression.function == "try":
        return False
    return _can_fail_itself(expression) or any(can_fail(c) for c in children(expression))


def overflows(expression: Expression) -> tuple[Expression, ...] | None:
    """The parts that can fail, if all of them do so only where exact numbers get too large; None if some fail otherwise.

    >>> from everview.relational.types import INT64
    >>> a, b = Column(0, INT64), Column(1, INT64)
    >>> overflows(Call("*", (a, b), INT64)) == (Call("*", (a, b), INT64),)
    True
    >>> overflows(Call("/", (a, b), INT64)) is None
    True
    """
    if isinstance(expression, Call) and expression.function == "try":
        return ()
    found: tuple[Expression, ...] = ()
    if _can_fail_itself(expression):
        if exact_bound(expression, lambda column: None if by_type(column) is None else 0) is None:
            return None
        found = (expression,)
    for child in children(expression):
        below = overflows(child)
        if below is None:
            return None
        found += below
    return found


def fails_otherwise(expression: Expression) -> bool:
    """Whether it can fail in other ways than by an exact number that gets too large."""
    return can_fail(expression) and overflows(expression) is None


def _can_fail_itself(expression: Expression) -> bool:
    match expression:
        case Call(function=name) if name in _CONSTANT_PATTERN:
            return _has_bad_pattern(expression)
        case Call(function="+" | "-" | "*" | "negative"):
            return not is_floating(expression.type) and exact_bound(expression) is None
        case Call():
            return expression.function not in _TOTAL
        case Cast() if is_numeric(expression.type) and is_numeric(expression.child.type):
            if is_floating(expression.type):
                return False
            return not expression.is_try and (is_floating(expression.child.type) or exact_bound(expression) is None)
        case Cast():
            if holds(expression.child.type, Binary) and holds(expression.type, String):
                return True  # also with TRY_CAST: the bytes need not be UTF-8
            is_text = isinstance(expression.type, String | Binary)
            is_number = is_integral(expression.type) or is_floating(expression.type)
            is_widening = isinstance(expression.child.type, Boolean) and is_number
            return not (expression.is_try or is_text or is_widening or expression.type == expression.child.type)
        case SparkExpression():
            return True
        case _:
            return False


def _has_bad_pattern(call: Expression) -> bool:
    """Whether a constant pattern fails, which it then does for every text; True for one that is not constant."""
    assert isinstance(call, Call)
    if not all(isinstance(a, Literal) for a in call.args[1:]):
        return True
    text = Call(call.function, (Column(0, STRING), *call.args[1:]), call.type, call.zone)
    try:
        evaluate(substitute(text, (Literal("", STRING),)))
    except EvaluationError:
        return True
    return False
