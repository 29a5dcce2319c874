"""Polynomials of aggregated expressions: evaluated on rows, they give the expression's value and whether it is NULL."""

from __future__ import annotations

import random
from decimal import Decimal as Number

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.planner.block_terms import ONE, Polynomial, indicator, lifted, multiply, polynomial
from everview.relational.bounds import scale_of
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal, columns_of
from everview.relational.functions.decimals import CONTEXT, product_type, sum_type
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64, DataType, Decimal, Row, Value

MONEY, RATE, COUNTER = Decimal(8, 2), Decimal(5, 4), Decimal(3, 0)
TYPES = (INT32, MONEY, RATE, FLOAT64, COUNTER)
ATOMS = 3
VALUES: dict[DataType, tuple[Value, ...]] = {
    INT32: (0, 1, -3, 2**31 - 1, -(2**31)),
    MONEY: (Number("0.00"), Number("-1.25"), Number("999999.99")),
    RATE: (Number("0.0000"), Number("0.0500"), Number("9.9999")),
    FLOAT64: (0.0, 0.5, -3.0, 1024.0),
    COUNTER: (Number(0), Number(7), Number(-999)),
}


def column(rng: random.Random, t: DataType) -> Column:
    """A column of this type of some atom; those of the last atom are never NULL."""
    atom = rng.randrange(ATOMS)
    return Column(atom * len(TYPES) + TYPES.index(t), t, atom != ATOMS - 1)


def owners(expression: Expression) -> frozenset[int]:
    """The atoms that an expression reads."""
    return frozenset(c // len(TYPES) for c in columns_of(expression))


def condition(rng: random.Random) -> Expression:
    """A truth over one atom or two."""
    t = rng.choice(TYPES)
    found: Expression = Call(rng.choice(("<", ">=", "=")), (column(rng, t), Literal(rng.choice(VALUES[t]), t)), BOOLEAN)
    if rng.random() < 0.3:
        found = Call("and", (found, Call("isnotnull", (column(rng, rng.choice(TYPES)),), BOOLEAN)), BOOLEAN)
    if rng.random() < 0.2:
        read = column(rng, INT32)
        positive, small = (Call(f, (read, Literal(n, INT32)), BOOLEAN) for f, n in ((">", 0), ("<", 1000)))
        found = Call("or", (positive, Call("not", (small,), BOOLEAN)), BOOLEAN)
    return found


def exact(rng: random.Random, depth: int) -> Expression:
    """An integer or decimal."""
    if depth == 0 or rng.random() < 0.2:
        t = rng.choice((INT32, MONEY, RATE, COUNTER))
        return column(rng, t) if rng.random() < 0.85 else Literal(rng.choice(VALUES[t]), t)
    choice = rng.randrange(4)
    if choice == 0:
        chosen = exact(rng, depth - 1)
        others = (Literal(None, chosen.type), column(rng, chosen.type) if chosen.type in TYPES else chosen)
        return Case(((condition(rng), chosen),), rng.choice(others))
    left, right = exact(rng, depth - 1), exact(rng, depth - 1)
    if isinstance(left.type, Decimal) and isinstance(right.type, Decimal):
        if choice == 1:
            return Call("*", (left, right), product_type(left.type, right.type))
        return Call(rng.choice("+-"), (left, right), sum_type(left.type, right.type))
    if not isinstance(left.type, Decimal) and not isinstance(right.type, Decimal):
        wide = tuple(e if e.type == INT64 else Cast(e, INT64) for e in (left, right))
        return Call(rng.choice("+-*"), wide, INT64)
    return Cast(left, Decimal(20, 4)) if left.type == INT32 else left


def floating(rng: random.Random, depth: int) -> Expression:
    """A double."""
    if depth == 0 or rng.random() < 0.2:
        return column(rng, FLOAT64) if rng.random() < 0.8 else Literal(2.0, FLOAT64)
    if rng.random() < 0.2:
        return Case(
            ((condition(rng), floating(rng, depth - 1)),), rng.choice((Literal(None, FLOAT64), column(rng, FLOAT64)))
        )
    return Call(rng.choice("+-*"), (floating(rng, depth - 1), floating(rng, depth - 1)), FLOAT64)


def random_row(rng: random.Random) -> Row:
    """A row of all atoms side by side."""
    return tuple(
        None if atom != ATOMS - 1 and rng.random() < 0.25 else rng.choice(VALUES[t])
        for atom in range(ATOMS)
        for t in TYPES
    )


def total(terms: Polynomial, row: Row) -> int | float:
    """The polynomial's value for a row of all atoms: the sum of the products of its lifts, where NULL counts as 0."""
    result: int | float = 0
    for coefficient, term in terms:
        product: int | float = coefficient
        for _, factor in term:
            number = lifted(factor)
            value = evaluate(number, row)
            product *= unscaled(value, number.type)
        result += product
    return result


def unscaled(value: Value, t: DataType) -> int | float:
    """The number that stands for a value; NULL counts as 0."""
    if value is None:
        return 0
    if isinstance(t, Decimal):
        return int(value.scaleb(t.scale, CONTEXT))
    found: int | float = value
    return found


@given(st.integers(0, 2**40))
@settings(max_examples=300, deadline=None)
def test_value_and_validity(seed: int) -> None:
    """On any row: valid is 1 or 0, as the expression is not NULL or NULL, and value is its unscaled number, or 0."""
    check_terms(random.Random(seed))


def check_terms(rng: random.Random) -> bool:
    """Whether a random expression has polynomials, which are then right."""
    expression = (exact if rng.random() < 0.7 else floating)(rng, rng.randint(1, 3))
    number = polynomial(expression, owners)
    if number is None or (not owners(expression) and not isinstance(expression, Literal)):
        return False
    assert all(len({atom for atom, _ in term}) == len(term) for _, term in (*number.value, *number.valid))
    for _ in range(8):
        row = random_row(rng)
        value = evaluate(expression, row)
        assert total(number.valid, row) == (value is not None)
        assert total(number.value, row) == unscaled(value, expression.type)
    return True


def test_most_expressions_are_taken_apart() -> None:
    """The test above is about something."""
    rng = random.Random(1)
    assert sum(check_terms(rng) for _ in range(200)) > 120


@given(st.integers(0, 2**40))
@settings(max_examples=200, deadline=None)
def test_filtered_terms(seed: int) -> None:
    """FILTER multiplies by the indicator of its condition, a conjunction over single tables."""
    rng = random.Random(seed)
    expression, where = exact(rng, 2), Call("and", (condition(rng), condition(rng)), BOOLEAN)
    number, holds = polynomial(expression, owners), indicator(where, owners)
    if number is None or holds is None or not owners(expression):
        return
    value, valid = multiply(number.value, holds), multiply(number.valid, holds)
    if value is None or valid is None:
        return
    for _ in range(5):
        row = random_row(rng)
        is_kept = evaluate(where, row) is True
        found = evaluate(expression, row) if is_kept else None
        assert total(valid, row) == (found is not None)
        assert total(value, row) == unscaled(found, expression.type)


def test_products_of_two_tables_are_one_term() -> None:
    """The price · (1 - discount), with the price in one table and the discount in another: one lift each."""
    price, discount = Column(1, MONEY, False), Column(len(TYPES) + 1, MONEY, False)
    rest = Call("-", (Literal(Number(1), Decimal(1, 0)), discount), sum_type(Decimal(1, 0), MONEY))
    assert isinstance(rest.type, Decimal)
    number = polynomial(Call("*", (price, rest), product_type(MONEY, rest.type)), owners)
    assert number is not None
    ((coefficient, term),) = number.value
    assert (coefficient, {atom for atom, _ in term}) == (1, {0, 1})
    assert number.valid == ONE


@pytest.mark.parametrize(
    "expression",
    [
        Call("*", (Column(0, INT64), Column(len(TYPES), INT64)), INT64),  # may overflow
        Call("/", (Column(3, FLOAT64), Column(len(TYPES) + 3, FLOAT64)), FLOAT64),
        Cast(Call("+", (Column(1, MONEY), Column(len(TYPES) + 1, MONEY)), Decimal(9, 2)), Decimal(9, 1)),  # rounds
        Call("greatest", (Column(0, INT32), Column(len(TYPES), INT32)), INT32),
    ],
)
def test_what_is_not_exact_is_left_whole(expression: Expression) -> None:
    """What could overflow, be rounded, or is no sum of products over several tables is no polynomial."""
    assert polynomial(expression, owners) is None


def test_literals_have_the_scale_of_their_type() -> None:
    """1.50 as a decimal(5,4) stands for 15000."""
    literal = Literal(Number("1.5000"), RATE)
    number = polynomial(literal, owners)
    assert number is not None
    assert number.value == ((15000, frozenset()),)
    assert scale_of(literal.type) == 4
