"""What an expression means: a compiler from expressions to Python functions over rows.

This is the definition of Spark's scalar semantics inside everview. The reference backend runs it on every row, constant
folding on literals, and the embedded backend on each distinct string of its dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import assert_never

from everview.errors import EvaluationError
from everview.relational import spark_code
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal, SparkExpression, walk
from everview.relational.functions import bind_cast, function_named
from everview.relational.functions.registry import Nulls
from everview.relational.types import Row, Value

Compiled = Callable[[Row], Value]


def compile_expression(expression: Expression) -> Compiled:
    """The function from an input row to the expression's value; raises ``EvaluationError`` where Spark would."""
    match expression:
        case Column():
            index = expression.index
            return lambda row: row[index]
        case Literal():
            value = expression.value
            return lambda row: value
        case Call():
            return _compile_call(expression)
        case Cast():
            return _compile_cast(expression)
        case Case():
            return _compile_case(expression)
        case SparkExpression():
            return _compile_in_spark(expression)
        case _:
            assert_never(expression)


def evaluate(expression: Expression, row: Row = ()) -> Value:
    """The value of an expression for one row."""
    return compile_expression(expression)(row)


def _compile_call(call: Call) -> Compiled:
    if call.function in _LAZY:
        return _LAZY[call.function](call)
    declared = function_named(call.function)
    bound = declared.bind(call)
    args = tuple(compile_expression(a) for a in call.args)
    if declared.nulls in (Nulls.NEVER, Nulls.OWN):
        return lambda row: bound(*[a(row) for a in args])
    if len(args) == 1:
        (only,) = args

        def unary(row: Row) -> Value:
            value = only(row)
            return None if value is None else bound(value)

        return unary
    if len(args) == 2:
        first, second = args

        def binary(row: Row) -> Value:
            left = first(row)
            if left is None:  # Spark does not evaluate the right side of a strict operator whose left side is NULL
                return None
            right = second(row)
            return None if right is None else bound(left, right)

        return binary

    def strict(row: Row) -> Value:
        values = []
        for a in args:
            value = a(row)
            if value is None:
                return None
            values.append(value)
        return bound(*values)

    return strict


def _compile_cast(cast: Cast) -> Compiled:
    child = compile_expression(cast.child)
    bound = bind_cast(cast)

    def convert(row: Row) -> Value:
        value = child(row)
        return None if value is None else bound(value)

    return convert


def _compile_case(case: Case) -> Compiled:
    branches = tuple((compile_expression(c), compile_expression(v)) for c, v in case.branches)
    otherwise = compile_expression(case.otherwise)

    def choose(row: Row) -> Value:
        for condition, value in branches:
            if condition(row) is True:
                return value(row)
        return otherwise(row)

    return choose


def _compile_in_spark(expression: SparkExpression) -> Compiled:
    args = tuple(compile_expression(a) for a in expression.args)
    return lambda row: spark_code.value_of(expression, tuple([a(row) for a in args]))


def foresee(expressions: Iterable[Expression], rows: Sequence[Row]) -> None:
    """Lets Spark compute what the expressions ask of it for all of these rows at once; an error waits for its row."""
    for part in dict.fromkeys(p for e in expressions for p in walk(e) if isinstance(p, SparkExpression)):
        args = [compile_expression(a) for a in part.args]
        given: list[Row] = []
        for row in rows:
            with suppress(EvaluationError):
                given.append(tuple([a(row) for a in args]))
        spark_code.foresee(part, given)


def _compile_and(call: Call) -> Compiled:
    left, right = (compile_expression(a) for a in call.args)

    def both(row: Row) -> Value:
        a = left(row)
        if a is False:
            return False
        b = right(row)
        if b is False:
            return False
        return None if a is None or b is None else True

    return both


def _compile_or(call: Call) -> Compiled:
    left, right = (compile_expression(a) for a in call.args)

    def either(row: Row) -> Value:
        a = left(row)
        if a is True:
            return True
        b = right(row)
        if b is True:
            return True
        return None if a is None or b is None else False

    return either


def _compile_coalesce(call: Call) -> Compiled:
    args = tuple(compile_expression(a) for a in call.args)

    def first(row: Row) -> Value:
        for a in args:
            value = a(row)
            if value is not None:
                return value
        return None

    return first


def _compile_try(call: Call) -> Compiled:
    (attempted,) = (compile_expression(a) for a in call.args)

    def attempt(row: Row) -> Value:
        try:
            return attempted(row)
        except EvaluationError:
            return None

    return attempt


_LAZY: dict[str, Callable[[Call], Compiled]] = {
    "and": _compile_and,
    "or": _compile_or,
    "coalesce": _compile_coalesce,
    "try": _compile_try,
}
"""Functions that do not evaluate all their arguments, or survive an error in one."""
