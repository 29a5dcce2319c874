"""``can_fail`` promises: what it lets pass has a value for every row."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import EvaluationError, UnsupportedQuery
from everview.relational.evaluate import compile_expression
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal
from everview.relational.failing import can_fail
from everview.relational.types import BINARY, BOOLEAN, DATE, FLOAT64, INT32, INT64, STRING, TIMESTAMP, Decimal
from tests.unit.backends.embedded.expressions.expressions_strategies import TYPES, column_values, expression


@pytest.mark.parametrize(
    "e",
    [
        Call("/", (Column(0, FLOAT64), Column(1, FLOAT64)), FLOAT64),
        Call("+", (Column(0, INT32), Literal(1, INT32)), INT32),
        Cast(Column(0, STRING), INT32),
        Cast(Column(0, FLOAT64), INT32),
        Cast(Column(0, INT64), INT32),
        Cast(Column(0, STRING), DATE),
        Cast(Column(0, BINARY), STRING),
        Call("like", (Column(0, STRING), Column(1, STRING)), BOOLEAN),
        Call(
            "like", (Column(0, STRING), Literal("a\\", STRING), Literal("\\", STRING)), BOOLEAN
        ),  # ends with the escape
        Case(((Column(0, BOOLEAN), Cast(Column(1, STRING), INT32)),), Literal(0, INT32)),
    ],
)
def test_may_fail(e: Expression) -> None:
    """Division, overflow, casts from text, patterns that may be bad; also inside of a branch."""
    assert can_fail(e)


@pytest.mark.parametrize(
    "e",
    [
        Call("+", (Cast(Column(0, INT32), INT64), Literal(1, INT64)), INT64),
        Call("*", (Column(0, FLOAT64), Column(1, FLOAT64)), FLOAT64),
        Call("*", (Column(0, Decimal(12, 2)), Column(1, Decimal(12, 2))), Decimal(25, 4)),
        Cast(Column(0, STRING), INT32, is_try=True),
        Cast(Column(0, BOOLEAN), FLOAT64),
        Cast(Column(0, TIMESTAMP), STRING),
        Call("like", (Column(0, STRING), Literal("a%", STRING)), BOOLEAN),
        Call("try", (Call("/", (Column(0, FLOAT64), Column(1, FLOAT64)), FLOAT64),), FLOAT64),
    ],
)
def test_cannot_fail(e: Expression) -> None:
    """Within bounds, floats, try_cast, constant patterns, ``try``."""
    assert not can_fail(e)


@given(st.integers(0, 2**40))
@settings(max_examples=400, deadline=None)
def test_what_cannot_fail_does_not(seed: int) -> None:
    """For random expressions over all functions, on rows of extreme values."""
    check_promise(random.Random(seed))


def check_promise(rng: random.Random) -> bool:
    """Whether the expression was promised to have a value; fails if it has none for some row."""
    made = expression(rng.choice, rng.choice(TYPES), rng.randint(1, 3))
    if can_fail(made):
        return False
    try:
        evaluate = compile_expression(made)
    except (EvaluationError, UnsupportedQuery):
        return False  # a call that Catalyst would not make
    columns = [column_values(rng.choice, t, 8) for t in (*TYPES, *TYPES)]
    for row in zip(*columns, strict=True):
        evaluate(row)
    return True


def test_promises_are_made() -> None:
    """The test above is about something."""
    rng = random.Random(5)
    assert sum(check_promise(rng) for _ in range(300)) > 60
