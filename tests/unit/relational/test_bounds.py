"""Bounds of exact numbers: no row of values of the types goes beyond, and what has a bound never fails."""

from __future__ import annotations

import random
from decimal import Decimal as Number

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.relational.bounds import exact_bound, scale_of, type_bound, unscaled
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal
from everview.relational.functions.decimals import CONTEXT, product_type, sum_type
from everview.relational.types import (
    BOOLEAN,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    DataType,
    Decimal,
    Row,
    Value,
    integer_bounds,
    is_integral,
)

TYPES = (INT8, INT32, INT64, Decimal(5, 2), Decimal(18, 0), Decimal(38, 10), BOOLEAN)


def extremes(t: DataType) -> tuple[Value, ...]:
    """The values that would break a bound that is too small."""
    if isinstance(t, Decimal):
        most = Number(10**t.precision - 1).scaleb(-t.scale, CONTEXT)
        return (most, most.copy_negate(), Number(0).scaleb(-t.scale))
    return (True, False) if t == BOOLEAN else (*integer_bounds(t), 0, 1)


def expression(rng: random.Random, depth: int) -> Expression:
    """A number, or a truth, of some type."""
    if depth == 0 or rng.random() < 0.2:
        i = rng.randrange(len(TYPES))
        t = TYPES[i]
        return Column(i, t) if rng.random() < 0.8 or t == BOOLEAN else Literal(rng.choice(extremes(t)), t)
    choice = rng.randrange(5)
    child = expression(rng, depth - 1)
    if choice == 0:
        if child.type == BOOLEAN:
            return Cast(child, rng.choice((INT8, INT64)))
        return Cast(child, rng.choice((INT32, INT64, Decimal(38, 0), Decimal(30, 12), Decimal(10, 2))))
    if child.type == BOOLEAN:
        return child
    if choice == 1:
        return Call("negative", (child,), child.type)
    if choice == 2:
        return Case(((Column(6, BOOLEAN), child),), rng.choice((Literal(None, child.type), child)))
    other = expression(rng, depth - 1)
    if isinstance(child.type, Decimal) and isinstance(other.type, Decimal):
        if choice == 3:
            return Call("*", (child, other), product_type(child.type, other.type))
        return Call(rng.choice("+-"), (child, other), sum_type(child.type, other.type))
    if is_integral(child.type) and is_integral(other.type):
        return Call(rng.choice("+-*"), (Cast(child, INT64), Cast(other, INT64)), INT64)
    return child


def random_row(rng: random.Random) -> Row:
    """A row of extremes."""
    return tuple(None if rng.random() < 0.05 else rng.choice(extremes(t)) for t in TYPES)


@given(st.integers(0, 2**40))
@settings(max_examples=400, deadline=None)
def test_no_value_is_beyond_its_bound(seed: int) -> None:
    """With a bound, an expression has a value on rows of extremes, exactly within the bound."""
    check_bound(random.Random(seed))


def check_bound(rng: random.Random) -> bool:
    """Whether a random expression has a bound, which then holds."""
    e = expression(rng, rng.randint(1, 4))
    bound = exact_bound(e)
    if bound is None:
        return False
    for _ in range(10):
        value = evaluate(e, random_row(rng))  # an EvaluationError here would be the bound's fault
        if value is not None:
            number = int(value.scaleb(scale_of(e.type), CONTEXT)) if isinstance(e.type, Decimal) else int(value)
            assert abs(number) <= bound
    return True


def test_many_expressions_have_bounds() -> None:
    """The test above is about something."""
    rng = random.Random(3)
    assert sum(check_bound(rng) for _ in range(300)) > 100


def test_bounds_are_tight_for_products_and_sums() -> None:
    """The bound of x · x for an int is reached, and so is that of x - y."""
    wide = Cast(Column(0, INT32), INT64)
    assert exact_bound(Call("*", (wide, wide), INT64)) == 2**62
    assert exact_bound(Call("-", (wide, wide), INT64)) == 2**32
    money = Column(0, Decimal(5, 2))
    assert exact_bound(Call("*", (money, money), Decimal(11, 4))) == (10**5 - 1) ** 2


@pytest.mark.parametrize(
    "e",
    [
        Call("+", (Column(0, INT64), Column(1, INT64)), INT64),
        Call("*", (Column(0, INT32), Column(1, INT32)), INT32),
        Cast(Column(0, INT64), INT32),
        Cast(Column(0, Decimal(5, 2)), Decimal(5, 1)),  # rounds
        Cast(Column(0, Decimal(5, 2)), Decimal(5, 4)),  # may not fit
        Call("/", (Column(0, Decimal(5, 2)), Column(1, Decimal(5, 2))), Decimal(11, 6)),
        Call(
            "*",
            (Column(0, Decimal(38, 10)), Column(1, Decimal(38, 10))),
            product_type(Decimal(38, 10), Decimal(38, 10)),
        ),
        Column(0, FLOAT64),
        Column(0, STRING),
        Call("negative", (Column(0, INT64),), INT64),  # of the least bigint
        Call("*", (Column(0, INT64), Literal(-1, INT64)), INT64),
        Cast(Call("negative", (Cast(Column(0, INT32), INT64),), INT64), INT32),
    ],
)
def test_no_bound(e: Expression) -> None:
    """What may overflow or is rounded, and what is no exact number, has none."""
    assert exact_bound(e) is None


@pytest.mark.parametrize(
    ("t", "bound"), [(INT8, 128), (INT16, 2**15), (INT64, 2**63), (Decimal(3, 1), 999), (FLOAT64, None)]
)
def test_bound_of_a_type(t: DataType, bound: int | None) -> None:
    """The largest absolute unscaled value."""
    assert type_bound(t) == bound


def test_a_long_constant_keeps_all_its_digits() -> None:
    """Also those beyond the 28 of Python's usual decimals."""
    assert unscaled(Literal(Number("9" * 34 + ".1234"), Decimal(38, 4))) == int("9" * 34 + "1234")
    assert unscaled(Literal(-5, INT32)) == -5
