"""The errors that scalar functions raise, one maker per error condition of Spark's ANSI mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everview.errors import EvaluationError, UnsupportedQuery
from everview.relational.types import DataType, Value


def arithmetic_overflow(what: str, instead: str | None = None) -> EvaluationError:
    """An integer result that does not fit its type; ``instead`` names the function that gives NULL."""
    hint = f"{instead} gives NULL instead." if instead else None
    return EvaluationError(f"{what} overflows.", condition="ARITHMETIC_OVERFLOW", hint=hint)


def count_overflow() -> EvaluationError:
    """More rows than a BIGINT can count."""
    return EvaluationError("a number of rows is beyond 2^63 - 1.", condition="ARITHMETIC_OVERFLOW")


def binary_arithmetic_overflow(left: Value, symbol: str, right: Value) -> EvaluationError:
    """What Spark calls the same overflow for tinyint and smallint."""
    return EvaluationError(f"{left} {symbol} {right} overflows.", condition="BINARY_ARITHMETIC_OVERFLOW")


def interval_overflow(what: str) -> EvaluationError:
    """An interval beyond the range of its type."""
    return EvaluationError(f"{what} overflows an interval.", condition="INTERVAL_ARITHMETIC_OVERFLOW")


def divide_by_zero() -> EvaluationError:
    """Division by zero."""
    return EvaluationError("division by zero.", condition="DIVIDE_BY_ZERO", hint="try_divide gives NULL instead.")


def remainder_by_zero() -> EvaluationError:
    """The remainder of a division by zero."""
    return EvaluationError("remainder by zero.", condition="REMAINDER_BY_ZERO", hint="try_mod gives NULL instead.")


def numeric_value_out_of_range(value: Value, target: DataType) -> EvaluationError:
    """A decimal that its type cannot hold."""
    return EvaluationError(f"{value} cannot be represented as {target}.", condition="NUMERIC_VALUE_OUT_OF_RANGE")


def cast_overflow(value: Value, source: DataType, target: DataType) -> EvaluationError:
    """A number beyond the range of the type it is cast to."""
    return EvaluationError(
        f"{value} of type {source} does not fit into {target}.",
        condition="CAST_OVERFLOW",
        hint="try_cast gives NULL instead.",
    )


def cast_invalid_input(value: Value, target: DataType) -> EvaluationError:
    """A string that does not spell a value of the type."""
    return EvaluationError(
        f"{value!r} cannot be cast to {target}.",
        condition="CAST_INVALID_INPUT",
        hint="try_cast gives NULL instead.",
    )


def not_utf8(what: str) -> EvaluationError:
    """Text whose bytes are not UTF-8: Spark keeps them in a string, and Arrow's strings and ours cannot."""
    return EvaluationError(
        f"{what} is not UTF-8, so it is no string; make_valid_utf8(CAST(x AS STRING)) puts U+FFFD into it, "
        "try_validate_utf8(CAST(x AS STRING)) gives NULL.",
        condition="INVALID_UTF8_STRING",
    )


def datetime_overflow(what: str) -> EvaluationError:
    """A date or timestamp beyond the range of its type."""
    return EvaluationError(f"{what} is out of range.", condition="DATETIME_OVERFLOW")


def unsupported(what: str, operator: str, hint: str | None = None) -> UnsupportedQuery:
    """Something that Spark computes and we do not; raised when a call is bound, before any row is seen."""
    return UnsupportedQuery(what, operator=operator, hint=hint)


def attempting(bound: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with NULL where it would fail: the ``try_`` form."""

    def attempt(*values: Value) -> Value:
        try:
            return bound(*values)
        except EvaluationError:
            return None

    return attempt


def recursion_too_deep(limit: int) -> EvaluationError:
    """Spark's error for a recursive query that does not end."""
    return EvaluationError(
        f"a recursive query is not done after {limit} rounds; where rows lead in a circle, it never is.",
        condition="RECURSION_LEVEL_LIMIT_EXCEEDED",
    )
