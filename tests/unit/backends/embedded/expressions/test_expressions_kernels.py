"""Particular expressions: decimals, laziness, three-valued logic, sharing, and what runs where."""

from __future__ import annotations

import itertools
from decimal import Decimal as Number

import numpy as np
import pytest
from expressions_checks import check, values_in, vector_of

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import (
    compile_predicate,
    compile_projection,
    compile_vectorised,
    constant_vector,
)
from everview.backends.embedded.vectors import Vector
from everview.errors import EvaluationError
from everview.relational.expressions import FALSE, TRUE, Call, Case, Cast, Column, Expression, Literal
from everview.relational.functions import function_named
from everview.relational.functions.decimals import CONTEXT
from everview.relational.types import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    NAN,
    NULL,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Decimal,
)

PRICE = Decimal(15, 2)
ONE = Literal(Number(1), Decimal(1, 0))


@pytest.fixture
def dictionary() -> Dictionary:
    """An engine's dictionary, empty."""
    return Dictionary()


def calling(name: str, *args: Expression) -> Call:
    """A call with the type that its declaration gives it."""
    return Call(name, args, function_named(name).result_type(tuple(a.type for a in args)))


def column(index: int, t: DataType) -> Column:
    """A nullable column."""
    return Column(index, t)


def charge() -> Expression:
    """``l_extendedprice * (1 - l_discount) * (1 + l_tax)``."""
    discounted = calling("*", column(0, PRICE), calling("-", ONE, column(1, PRICE)))
    return calling("*", discounted, calling("+", ONE, column(2, PRICE)))


def test_a_charge_is_computed_exactly(dictionary: Dictionary) -> None:
    """TPC-H's charge has Spark's type and exact values, whether 64 bits suffice or not."""
    assert charge().type == Decimal(38, 6)
    small = [[Number("1234.56"), None, Number("0.00")], [Number("0.07")] * 3, [Number("0.08")] * 3]
    large = [[Number("9999999999999.99")] * 20, [Number("-99999999.99")] * 20, [Number("0.01")] * 20]
    check(charge(), small, [PRICE] * 3, 3, dictionary)
    check(charge(), large, [PRICE] * 3, 20, dictionary)


def test_a_charge_that_overflows_is_an_error(dictionary: Dictionary) -> None:
    """38 digits are the limit, and the error is the definition's, with the value."""
    values = [Number("9999999999999.99")] * 3
    vectors = [vector_of([v] * 10, PRICE, dictionary) for v in values]
    with pytest.raises(EvaluationError, match="cannot be represented") as caught:
        compile_vectorised(charge(), dictionary)(vectors, 10)
    assert caught.value.condition == "NUMERIC_VALUE_OUT_OF_RANGE"


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "%", "pmod", "div", "=", "<", ">="])
@pytest.mark.parametrize("precision", [9, 18, 19, 28, 38])
def test_decimals_of_any_width_agree(dictionary: Dictionary, symbol: str, precision: int) -> None:
    """Arithmetic and comparison of decimals agree at every width, at the edges of 64 and of 128 bits."""
    t = Decimal(precision, precision // 3)
    limit = 10**precision
    raw = [0, 1, -1, 5, 10**9, -(10**9) + 1, 2**62, 2**63 - 1, -(2**63), 2**64 + 7, -(2**65), limit - 1, 1 - limit]
    numbers = [Number(v).scaleb(-t.scale, CONTEXT) for v in raw if abs(v) < limit]
    for pairs in ([(a, b)] * 20 for a in numbers for b in numbers):
        columns = [[a for a, _ in pairs], [b for _, b in pairs]]
        check(calling(symbol, column(0, t), column(1, t)), columns, [t, t], 20, dictionary)


def test_suspect_rows_do_not_disturb_their_neighbours(dictionary: Dictionary) -> None:
    """Rows that need the definition are patched into a batch whose other rows the kernel computed."""
    t = Decimal(38, 0)
    left = [Number(3), Number(10) ** 30, None, Number(-7)] * 5
    right = [Number(4), Number(10) ** 7, Number(1), None] * 5
    check(calling("*", column(0, t), column(1, t)), [left, right], [t, t], 20, dictionary)
    check(calling("try_multiply", column(0, t), column(0, t)), [left], [t], 20, dictionary)


def test_integers_overflow_at_their_own_width(dictionary: Dictionary) -> None:
    """An int overflows at 32 bits, a bigint at 64, each with the definition's message."""
    for t, top in ((INT32, 2**31 - 1), (INT64, 2**63 - 1)):
        vectors = [vector_of([1, top, None], t, dictionary), vector_of([1, 1, 1], t, dictionary)]
        with pytest.raises(EvaluationError, match=f"{top} \\+ 1 overflows"):
            compile_vectorised(calling("+", column(0, t), column(1, t)), dictionary)(vectors, 3)


def test_an_error_beneath_null_is_none(dictionary: Dictionary) -> None:
    """The right side of a strict operator is not evaluated where the left side is NULL."""
    quotient = calling("div", column(1, INT64), column(2, INT64))
    check(calling("+", column(0, INT64), quotient), [[None, 1], [1, 6], [0, 2]], [INT64] * 3, 2, dictionary)


def test_case_evaluates_a_branch_only_where_it_is_reached(dictionary: Dictionary) -> None:
    """CASE guards a division; a constant failure in a branch that no row reaches is none."""
    is_zero = calling("=", column(1, INT64), Literal(0, INT64))
    guarded = Case(((is_zero, Literal(-1, INT64)),), calling("div", column(0, INT64), column(1, INT64)))
    check(guarded, [[7, 8, None, 9], [0, 2, 3, None]], [INT64] * 2, 4, dictionary)
    check(guarded, [[7, 8], [0, 0]], [INT64] * 2, 2, dictionary)
    failing = calling("div", Literal(1, INT64), Literal(0, INT64))
    check(Case(((FALSE, failing),), column(0, INT64)), [[1, 2]], [INT64], 2, dictionary)
    check(Case(((is_zero, failing),), column(0, INT64)), [[1, 2], [3, 4]], [INT64] * 2, 2, dictionary)
    check(Case(((is_zero, failing),), column(0, INT64)), [[], []], [INT64] * 2, 0, dictionary)


@pytest.mark.parametrize("connective", ["and", "or"])
def test_connectives_are_three_valued_and_lazy(dictionary: Dictionary, connective: str) -> None:
    """AND and OR have Kleene's truth tables, with columns and literals, and skip a right side that does not matter."""
    truth = [True, False, None]
    left, right = (list(side) for side in zip(*itertools.product(truth, truth), strict=True))
    check(calling(connective, column(0, BOOLEAN), column(1, BOOLEAN)), [left, right], [BOOLEAN] * 2, 9, dictionary)
    for literal in (TRUE, FALSE, Literal(None, BOOLEAN), Literal(None, NULL)):
        check(Call(connective, (literal, column(0, BOOLEAN)), BOOLEAN), [truth], [BOOLEAN], 3, dictionary)
        check(Call(connective, (column(0, BOOLEAN), literal), BOOLEAN), [truth], [BOOLEAN], 3, dictionary)
    risky = calling(">", calling("div", Literal(8, INT64), column(0, INT64)), Literal(1, INT64))
    is_zero = calling("=", column(0, INT64), Literal(0, INT64))
    guard = is_zero if connective == "or" else calling("not", is_zero)
    check(calling(connective, guard, risky), [[0, 1, 8, None]], [INT64], 4, dictionary)


def test_predicates_keep_true_rows_only(dictionary: Dictionary) -> None:
    """A predicate's mask is set where the condition is true, neither false nor NULL."""
    keep = compile_predicate(calling("<", column(0, DATE), Literal(10, DATE)), dictionary)
    assert keep([vector_of([9, 10, None], DATE, dictionary)], 3).tolist() == [True, False, False]
    assert compile_predicate(TRUE, dictionary)([], 2).tolist() == [True, True]
    assert compile_predicate(Literal(None, BOOLEAN), dictionary)([], 2).tolist() == [False, False]


def test_a_projection_shares_common_parts(dictionary: Dictionary) -> None:
    """A sub-expression of two outputs is compiled, and evaluated, once."""
    text = column(0, STRING)
    joined = calling("concat", text, column(1, STRING))
    projection = compile_projection([calling("reverse", joined), calling("initcap", joined)], dictionary)
    assert projection.definitions(("a", "b")) == ("concat(a, b)", "reverse(concat(a, b))", "initcap(concat(a, b))")
    vectors = [vector_of(["x", None], STRING, dictionary), vector_of(["y", "z"], STRING, dictionary)]
    reversed_, capitals = projection(vectors, 2)
    assert values_in(reversed_, dictionary) == ["yx", None]
    assert values_in(capitals, dictionary) == ["Xy", None]


def test_string_functions_are_looked_up(dictionary: Dictionary) -> None:
    """Functions of one string column are tables by code, filled by kernels or Python; = compares codes; explain can tell."""
    like = Call("like", (column(0, STRING), Literal("PROMO%", STRING), Literal("\\", STRING)), BOOLEAN)
    compiled = compile_vectorised(like, dictionary)
    assert not compiled.uses_python
    capitals = compile_vectorised(calling("initcap", column(0, STRING)), dictionary)
    assert capitals.uses_python
    assert capitals.definitions(("p_type",)) == ("initcap(p_type)",)
    assert not compile_vectorised(calling("=", column(0, STRING), Literal("a", STRING)), dictionary).uses_python
    assert not compile_vectorised(charge(), dictionary).uses_python
    check(like, [["PROMO X", "STANDARD", None, ""] * 20], [STRING], 80, dictionary)
    check(calling("isnull", column(0, STRING)), [["a", None]], [STRING], 2, dictionary)
    check(calling("coalesce", column(0, STRING), Literal("?", STRING)), [["a", None]], [STRING], 2, dictionary)


def test_strings_have_an_order(dictionary: Dictionary) -> None:
    """Columns of strings and arrays compare by Spark's order, new values between old ones too."""
    words = ["b", "a", "", "é", None, "ab", "Z"]
    for _ in range(3):
        check(calling("<", column(0, STRING), column(1, STRING)), [words, words[::-1]], [STRING] * 2, 7, dictionary)
        words = [None if w is None else w + "m" for w in words]
    t = Array(FLOAT64)
    arrays = [(), (1.0,), (NAN,), (None,), (1.0, 2.0), None]
    check(calling("<=", column(0, t), column(1, t)), [arrays, arrays[::-1]], [t, t], 6, dictionary)


def test_nan_is_equal_to_itself_and_greatest(dictionary: Dictionary) -> None:
    """All comparisons of floats treat NaN as Spark does, against columns and literals."""
    floats = [NAN, 1.0, -0.0, 0.0, float("inf"), None]
    left, right = (list(side) for side in zip(*itertools.product(floats, floats), strict=True))
    for symbol in ("=", "<", "<=", ">", ">=", "<=>"):
        check(calling(symbol, column(0, FLOAT64), column(1, FLOAT64)), [left, right], [FLOAT64] * 2, 36, dictionary)
        check(calling(symbol, column(0, FLOAT64), Literal(NAN, FLOAT64)), [left], [FLOAT64], 36, dictionary)


def test_clock_changes_are_seen(dictionary: Dictionary) -> None:
    """Local times in a zone with clock changes are right on, before and after the days of change."""
    change = 1_710_064_800_000_000  # 2024-03-10 10:00 UTC, when Los Angeles goes from 2 to 3 o'clock
    instants = [change + hours * 3_600_000_000 + 1 for hours in range(-40, 40)]
    for zone in ("America/Los_Angeles", "UTC", "+05:30"):
        check(Call("hour", (column(0, TIMESTAMP),), INT32, zone), [instants], [TIMESTAMP], 80, dictionary)
        check(Cast(column(0, TIMESTAMP), DATE, zone=zone), [instants], [TIMESTAMP], 80, dictionary)
        check(Cast(column(0, DATE), TIMESTAMP, zone=zone), [list(range(19_790, 19_800))], [DATE], 10, dictionary)


def test_dates_in_large_batches_use_the_same_calendar(dictionary: Dictionary) -> None:
    """Date parts of many days, inside of the tabulated years and beyond, are the definition's."""
    near, far = list(range(-26_000, 48_000, 97)), list(range(-800_000, 800_000, 1999))
    for name in ("year", "month", "day", "quarter", "dayofyear", "weekofyear", "last_day", "dayofweek", "monthname"):
        for days in (near, far):
            check(calling(name, column(0, DATE)), [days], [DATE], len(days), dictionary)


def test_try_turns_errors_into_null_row_by_row(dictionary: Dictionary) -> None:
    """TRY and the try_ forms are NULL for exactly the rows that fail."""
    quotient = calling("div", column(0, INT64), column(1, INT64))
    columns = [[6, 7, None, 8] * 10, [2, 0, 0, 4] * 10]
    check(calling("try", quotient), columns, [INT64] * 2, 40, dictionary)
    check(Cast(column(0, STRING), INT32, is_try=True), [["1", "x", None]], [STRING], 3, dictionary)


def test_long_in_lists_agree(dictionary: Dictionary) -> None:
    """IN with many literals, with a NULL among them, and with columns."""
    for items in (range(20), [*range(20), None], [1, None], []):
        member = Call("in", (column(0, INT64), *(Literal(i, INT64) for i in items)), BOOLEAN)
        check(member, [[0, 19, 20, None]], [INT64], 4, dictionary)
    among = Call("in", (column(0, INT64), column(1, INT64), Literal(3, INT64)), BOOLEAN)
    check(among, [[1, 2, 3, None, 4], [1, None, None, 1, 2]], [INT64] * 2, 5, dictionary)


@pytest.mark.parametrize(
    ("value", "t"),
    [
        (None, NULL),
        (True, BOOLEAN),
        (5, INT32),
        (Number("1.50"), Decimal(30, 2)),
        ("x", STRING),
        (NAN, FLOAT64),
        (None, STRING),
    ],
)
def test_constant_vectors_repeat_a_literal(dictionary: Dictionary, value: object, t: DataType) -> None:
    """A literal becomes a column of any length."""
    for count in (0, 1, 3):
        vector = constant_vector(Literal(value, t), count, dictionary)
        assert len(vector) == count
        assert repr(values_in(vector, dictionary)) == repr([value] * count)


def test_input_vectors_are_not_changed(dictionary: Dictionary) -> None:
    """Kernels write to arrays of their own, never to the columns of a batch, which may be read-only."""
    values = np.array([5, 0, 7])
    values.flags.writeable = False
    vector = Vector(INT64, values, np.array([False, True, False]))
    for made in (
        calling("negative", column(0, INT64)),
        Cast(column(0, INT64), INT32),
        calling("+", column(0, INT64), ONE_LONG),
    ):
        assert compile_vectorised(made, dictionary)([vector], 3).nulls.tolist() == [False, True, False]
    assert values.tolist() == [5, 0, 7]


ONE_LONG = Literal(1, INT64)
