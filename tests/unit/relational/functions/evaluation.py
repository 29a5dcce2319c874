"""Calls and casts of constants, evaluated: what the tests of this folder are written with."""

from __future__ import annotations

from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Cast, Expression, Literal
from everview.relational.functions import function_named
from everview.relational.types import DataType, Value


def call(name: str, *args: tuple[Value, DataType] | Expression, zone: str | None = None) -> Value:
    """The value of a function of (value, type) pairs."""
    expressions = tuple(a if not isinstance(a, tuple) else Literal(*a) for a in args)
    result = function_named(name).result_type(tuple(a.type for a in expressions))
    return evaluate(Call(name, expressions, result, zone))


def cast(value: Value, source: DataType, target: DataType, *, is_try: bool = False, zone: str | None = None) -> Value:
    """The value of a cast."""
    return evaluate(Cast(Literal(value, source), target, is_try, zone))
