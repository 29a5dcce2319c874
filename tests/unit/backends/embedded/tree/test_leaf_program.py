"""Leaf programs against the general evaluator, and both against the definition."""

from __future__ import annotations

import random
from decimal import Decimal as Number

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.tree.leaf_program import NoLeafProgram, leaf_program
from everview.backends.embedded.tree.machine import CHUNK
from everview.backends.embedded.tree.trigger_code import LeafRegisters
from everview.backends.reference.evaluate_plan import evaluate_plan
from everview.errors import EvaluationError
from everview.planner.block_build import Facts, Refused
from everview.relational.expressions import TRUE, Call, Case, Cast, Column, Expression, Literal
from everview.relational.functions.decimals import product_type, sum_type
from everview.relational.nodes import Aggregate, AggregateCall, Field, Filter, Scan
from everview.relational.types import BOOLEAN, DATE, FLOAT64, INT32, INT64, STRING, DataType, Decimal, Row, Value
from everview.trigger.plan_block import BlockOptions, plan_block
from tests.unit.backends.embedded.tree.given_inputs import TreeRun

WHOLE, MONEY, FINE = Decimal(18, 0), Decimal(10, 2), Decimal(18, 6)
TYPES = (INT32, INT64, WHOLE, MONEY, FINE, FLOAT64, STRING, DATE, BOOLEAN)
FIELDS = tuple(Field(f"c{i}", t, True) for i, t in enumerate(TYPES))
COLUMN = {t: Column(i, t, True) for i, t in enumerate(TYPES)}
TAME: dict[DataType, tuple[Value, ...]] = {
    INT32: (0, 1, -1, 7, 1000),
    INT64: (0, 1, -5, 10**6),
    WHOLE: tuple(map(Number, (0, 1, -3, 10**6))),
    MONEY: (Number("0.00"), Number("1.25"), Number("-0.05"), Number("12345.67")),
    FINE: (Number("0.000000"), Number("0.000001"), Number("-1.500000")),
    FLOAT64: (0.0, 1.5, -2.25, 1024.0),
    STRING: ("", "a", "bc", "é"),
    DATE: (0, -1, 59, 789, 10957, 11016, 19782, -719162, 2932896),
    BOOLEAN: (True, False),
}
WILD: dict[DataType, tuple[Value, ...]] = {
    **TAME,
    INT32: (2**31 - 1, -(2**31), 0, 3),
    INT64: (2**63 - 1, -(2**63), 0, 1),
    WHOLE: tuple(map(Number, (10**18 - 1, 1 - 10**18, 3, 0))),
    FINE: (Number("999999999999.999999"), Number("-999999999999.999999"), Number("0.000000")),
    FLOAT64: (0.0, -0.0, 2.0**30, -1.0),
}


def number(rng: random.Random, t: DataType, depth: int) -> Expression:
    """A number of the type."""
    if depth == 0 or rng.random() < 0.2:
        return COLUMN[t] if rng.random() < 0.8 else Literal(rng.choice(TAME[t]), t)
    choice = rng.randrange(3)
    if choice == 0:
        otherwise = Literal(None, t) if rng.random() < 0.3 else number(rng, t, depth - 1)
        return Case(((condition(rng, depth - 1), number(rng, t, depth - 1)),), otherwise)
    if t == FLOAT64 and choice == 1:
        return Call(rng.choice("+-*"), (number(rng, t, depth - 1), number(rng, t, depth - 1)), t)
    if t == FLOAT64:
        return Cast(number(rng, INT32, depth - 1), t)
    if t == INT32:
        return Call("year", (COLUMN[DATE],), INT32)
    if t == INT64:
        wide = tuple(Cast(number(rng, INT32, 0), INT64) for _ in range(2))
        return Call(rng.choice("+-*"), wide, INT64)
    return COLUMN[t]


def decimal(rng: random.Random, depth: int) -> Expression:
    """A decimal of any precision and scale."""
    base = number(rng, rng.choice((WHOLE, MONEY, FINE)), max(depth - 1, 0))
    if depth == 0:
        return base
    choice = rng.randrange(3)
    if choice == 0:
        return Cast(COLUMN[INT32], Decimal(14, 4))
    other = decimal(rng, depth - 1)
    left, right = base.type, other.type
    assert isinstance(left, Decimal)
    assert isinstance(right, Decimal)
    if choice == 1:
        return Call("*", (base, other), product_type(left, right))
    return Call(rng.choice("+-"), (base, other), sum_type(left, right))


def condition(rng: random.Random, depth: int) -> Expression:
    """A truth."""
    choice = rng.randrange(7 if depth > 0 else 4)
    if choice == 0:
        t = rng.choice((INT32, INT64, MONEY, FINE, DATE, FLOAT64))
        left = number(rng, t, max(depth - 1, 0)) if t != DATE else COLUMN[DATE]
        right = Literal(rng.choice(WILD[t]), t) if rng.random() < 0.6 else COLUMN[t]
        pair = (left, right) if rng.random() < 0.7 else (right, left)
        return Call(rng.choice(("<", "<=", ">", ">=", "=", "<=>")), pair, BOOLEAN)
    if choice == 1:
        return Call(rng.choice(("=", "<=>", "<")), (COLUMN[STRING], Literal("a", STRING)), BOOLEAN)
    if choice == 2:
        target = Decimal(28, 6)
        return Call(rng.choice(("<", ">=", "=")), (Cast(COLUMN[WHOLE], target), Cast(COLUMN[FINE], target)), BOOLEAN)
    if choice == 3:
        return COLUMN[BOOLEAN]
    if choice == 4:
        return Call("not", (condition(rng, depth - 1),), BOOLEAN)
    if choice == 5:
        checked = number(rng, rng.choice((INT32, MONEY)), depth - 1)
        return Call(rng.choice(("isnotnull", "isnull")), (checked,), BOOLEAN)
    return Call(rng.choice(("and", "or")), (condition(rng, depth - 1), condition(rng, depth - 1)), BOOLEAN)


def random_aggregate(rng: random.Random) -> Aggregate:
    """A filtered table, grouped by an expression, with sums of expressions."""
    scan = Scan("t", FIELDS)
    child = Filter(scan, condition(rng, 2)) if rng.random() < 0.8 else scan
    keys = tuple(
        rng.choice((COLUMN[STRING], COLUMN[DATE], COLUMN[BOOLEAN], number(rng, INT32, 2), number(rng, INT64, 1)))
        for _ in range(rng.randint(0, 2))
    )
    calls = [AggregateCall("count", (), INT64)]
    for _ in range(rng.randint(1, 3)):
        arg = rng.choice((decimal, lambda r, d: number(r, r.choice((INT32, FLOAT64)), d)))(rng, rng.randint(0, 2))
        where = condition(rng, 1) if rng.random() < 0.3 else None
        if isinstance(arg.type, Decimal):
            calls.append(AggregateCall("sum", (arg,), Decimal(38, arg.type.scale), filter=where))
        else:
            calls.append(AggregateCall("try_sum", (arg,), FLOAT64 if arg.type == FLOAT64 else INT64, filter=where))
    return Aggregate(child, keys, tuple(calls), tuple(f"o{i}" for i in range(len(keys) + len(calls))))


def random_rows(rng: random.Random, count: int, values: dict[DataType, tuple[Value, ...]], nulls: float) -> list[Row]:
    """Rows of these values."""
    return [tuple(None if rng.random() < nulls else rng.choice(values[t]) for t in TYPES) for _ in range(count)]


def made(aggregate: Aggregate, rows: list[Row], *, leaf: bool) -> TreeRun:
    """The tree of the aggregate after one batch of rows, with or without its leaf program."""
    run = TreeRun(aggregate, plan_block(aggregate, lambda _: Facts(), BlockOptions("auto")), {"t": []})
    if not leaf:
        for machine in run.operator.state.machines:
            machine._leaf = None
    run.commit({"t": (rows, [])})
    return run


@given(st.integers(0, 2**40))
@settings(max_examples=100, deadline=None)
def test_program_and_evaluator_agree(seed: int) -> None:
    """With and without the leaf program the answers are those of the definition: NULLs and large numbers included."""
    check_leaf(random.Random(seed))


def check_leaf(rng: random.Random) -> None:
    """One random aggregate over random rows."""
    aggregate = random_aggregate(rng)
    try:
        plan_block(aggregate, lambda _: Facts(), BlockOptions("auto"))
    except Refused:  # such as the sum of a constant
        return
    values, nulls = rng.choice((TAME, TAME, WILD)), rng.choice((0.0, 0.0, 0.02))
    rows = random_rows(rng, rng.choice((1, 40, 40)), values, nulls)
    try:
        evaluate_plan(aggregate, {"t": rows})
    except EvaluationError:
        for leaf in (True, False):
            with pytest.raises(EvaluationError):
                made(aggregate, rows, leaf=leaf)
        return
    run, general = made(aggregate, rows, leaf=True), made(aggregate, rows, leaf=False)
    assert run.content() == general.content() == run.expected()
    run.check()


MIXED = Aggregate(
    Filter(Scan("t", FIELDS), Call("<", (COLUMN[INT32], Literal(7, INT32)), BOOLEAN)),
    (COLUMN[STRING],),
    (
        AggregateCall("count", (), INT64),
        AggregateCall("sum", (Call("*", (COLUMN[WHOLE], COLUMN[WHOLE]), product_type(WHOLE, WHOLE)),), Decimal(38, 0)),
    ),
    ("key", "count", "sum"),
)


@pytest.mark.parametrize("where", [0, CHUNK - 1, CHUNK, 2 * CHUNK + 5])
@pytest.mark.parametrize("odd", ["overflow", "null"])
def test_batches_of_several_chunks(where: int, odd: str) -> None:
    """A number that needs more than 64 bits, or a NULL, at any place: the rest of the batch takes the general way."""
    rng = random.Random(where)
    rows = random_rows(rng, 2 * CHUNK + 100, TAME, 0.0)
    row = list(rows[where])
    row[TYPES.index(INT32)], row[TYPES.index(WHOLE)] = 0, Number(10**18 - 1)
    if odd == "null":
        row[TYPES.index(WHOLE)] = None
    rows[where] = tuple(row)
    run = made(MIXED, rows, leaf=True)
    run.check()
    run.commit({"t": (rows[:50], rows[100:])})
    run.check()


@pytest.mark.parametrize(
    ("expression", "compiles"),
    [
        (Call("*", (COLUMN[MONEY], COLUMN[MONEY]), product_type(MONEY, MONEY)), True),
        (Case(((COLUMN[BOOLEAN], COLUMN[MONEY]),), Literal(None, MONEY)), True),
        (Call("upper", (COLUMN[STRING],), STRING), True),  # computed beforehand
        (Call("/", (COLUMN[FLOAT64], COLUMN[FLOAT64]), FLOAT64), False),  # can fail
        (Cast(COLUMN[STRING], INT32), False),
    ],
)
def test_what_compiles(expression: Expression, compiles: bool) -> None:
    """What can fail has no program, as it must not run for rows that are filtered out."""
    if expression.type == STRING:
        keys, calls = (expression,), (AggregateCall("count", (), INT64),)
    else:
        keys, calls = (), (AggregateCall("sum", (expression,), Decimal(38, 4)),)
    if isinstance(expression, Cast | Call) and expression.type in (INT32, FLOAT64):
        calls = (AggregateCall("sum", (expression,), expression.type if expression.type == FLOAT64 else INT64),)
    aggregate = Aggregate(Scan("t", FIELDS), keys, calls, tuple(f"o{i}" for i in range(len(keys) + len(calls))))
    program = plan_block(aggregate, lambda _: Facts(), BlockOptions("auto")).program
    leaf = program.view(program.block.atoms[0].name).keys
    registers = LeafRegisters(tuple((i,) for i in range(len(leaf))), tuple(enumerate(range(5, 5 + len(calls)))), 4)
    if not program.block.atoms[0].lifts:
        registers = LeafRegisters(registers.keys, (), 4)
    if compiles:
        assert leaf_program(program.block, 0, leaf, registers, 10, Dictionary()).columns != (99,)
    else:
        with pytest.raises(NoLeafProgram):
            leaf_program(program.block, 0, leaf, registers, 10, Dictionary())


def test_a_null_from_within_is_no_zero() -> None:
    """CASE without ELSE in a condition, a key and inside of a sum is NULL there, though a lift that is NULL counts as 0."""
    positive = Call(">", (COLUMN[INT32], Literal(0, INT32)), BOOLEAN)
    maybe = Case(((positive, COLUMN[INT32]),), Literal(None, INT32))
    more = Call("+", (Cast(maybe, INT64), Literal(1, INT64)), INT64)
    for filtered in (TRUE, Call("<", (maybe, Literal(5, INT32)), BOOLEAN)):
        aggregate = Aggregate(
            Filter(Scan("t", FIELDS), filtered),
            (maybe,),
            (AggregateCall("sum", (maybe,), INT64), AggregateCall("sum", (more,), INT64)),
            ("key", "sum", "more"),
        )
        made(aggregate, random_rows(random.Random(1), 30, TAME, 0.0), leaf=True).check()
