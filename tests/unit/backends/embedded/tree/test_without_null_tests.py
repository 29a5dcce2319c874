"""Tests for NULL in expressions over rows without NULL."""

from __future__ import annotations

import pytest

from everview.backends.embedded.tree.without_null_tests import without_null_tests
from everview.relational.expressions import FALSE, TRUE, Call, Case, Column, Expression, Literal
from everview.relational.types import BOOLEAN, INT64, STRING

X, Y = Column(0, INT64, True), Column(1, INT64, True)
TEXT = Column(2, STRING, True)
NULL = Literal(None, INT64)


def call(function: str, *args: Expression) -> Call:
    """A predicate."""
    return Call(function, args, BOOLEAN)


LESS = call("<", X, Y)
PART = Call("substring", (TEXT,), STRING)


@pytest.mark.parametrize(
    ("given", "expected", "tested"),
    [
        (call("isnotnull", X), TRUE, {X}),
        (call("isnull", X), FALSE, {X}),
        (call("not", call("isnull", X)), TRUE, {X}),
        (call("and", call("isnotnull", X), LESS), LESS, {X}),
        (call("and", call("and", call("isnotnull", X), call("isnotnull", Y)), LESS), LESS, {X, Y}),
        (call("or", LESS, call("isnull", Y)), LESS, {Y}),
        (Case(((call("isnotnull", X), X),), NULL), X, {X}),
        (Case(((call("isnull", X), NULL), (LESS, X)), Y), Case(((LESS, X),), Y), {X}),
        (Case(((LESS, X), (call("isnotnull", Y), Y)), NULL), Case(((LESS, X),), Y), {Y}),
        (LESS, LESS, set()),
        (call("isnotnull", PART), call("isnotnull", PART), set()),  # a function may make NULL of what is not
        (call("isnotnull", NULL), call("isnotnull", NULL), set()),
    ],
)
def test_what_is_left(given: Expression, expected: Expression, tested: set[Expression]) -> None:
    """Tests of columns are decided, and what was tested is told; other tests stay."""
    found: list[Expression] = []
    assert without_null_tests(given, found.append) == expected
    assert set(found) == tested
