"""Three-valued logic and tests for NULL and NaN.

AND, OR, COALESCE and TRY do not evaluate all their arguments, so ``evaluate`` compiles them itself; they are declared here for
their names, types and nullability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from everview.relational.expressions import Call
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import BOOLEAN, DataType, Null, Value


def _conjunction(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _disjunction(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


@function("and", BOOLEAN, Nulls.OWN)
def _and(call: Call) -> Callable[..., Any]:
    return _conjunction


@function("or", BOOLEAN, Nulls.OWN)
def _or(call: Call) -> Callable[..., Any]:
    return _disjunction


@function("not", BOOLEAN)
def _not(call: Call) -> Callable[..., Any]:
    return lambda a: not a


def _common(args: tuple[DataType, ...]) -> DataType:
    return next((t for t in args if not isinstance(t, Null)), args[0])


@function("coalesce", _common, Nulls.OWN)
def _coalesce(call: Call) -> Callable[..., Any]:
    return lambda *values: next((v for v in values if v is not None), None)


@function("try", lambda args: args[0], Nulls.STRICT_OR_NULL)
def _try(call: Call) -> Callable[..., Any]:
    """NULL where evaluating the argument fails; ``evaluate`` catches the error, so here it is the identity."""
    return lambda value: value


@function("isnull", BOOLEAN, Nulls.NEVER)
def _is_null(call: Call) -> Callable[[Value], bool]:
    return lambda a: a is None


@function("isnotnull", BOOLEAN, Nulls.NEVER)
def _is_not_null(call: Call) -> Callable[[Value], bool]:
    return lambda a: a is not None


@function("isnan", BOOLEAN, Nulls.NEVER)
def _is_nan(call: Call) -> Callable[[Value], bool]:
    return lambda a: a is not None and math.isnan(a)


@function("nanvl", lambda args: args[0], Nulls.OWN)
def _nanvl(call: Call) -> Callable[[Value, Value], Value]:
    return lambda a, b: b if a is not None and math.isnan(a) else a
