"""How fast compiled expressions are: a script to run by hand, not a test."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Sequence
from decimal import Decimal as Number
from typing import Any

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate, compile_projection, compile_vectorised
from everview.backends.embedded.vectors import Vector
from everview.relational.expressions import Call, Case, Column, Expression, Literal, conjunction
from everview.relational.functions import function_named
from everview.relational.types import BOOLEAN, DATE, FLOAT64, INT64, STRING, DataType, Decimal

PRICE = Decimal(15, 2)
SIZES = (1, 1_000, 100_000)


def calling(name: str, *args: Expression) -> Call:
    """A call with the type that its declaration gives it."""
    return Call(name, args, function_named(name).result_type(tuple(a.type for a in args)))


def column(index: int, t: DataType) -> Column:
    """A column without NULLs."""
    return Column(index, t, False)


def report(name: str, run: Callable[[Sequence[Vector], int], Any], columns: Callable[[int], list[Vector]]) -> None:
    """Prints the time of one batch, the best of many, for each size."""
    for count in SIZES:
        batch = columns(count)
        number = max(3, 20_000 // (count + 100))
        seconds = min(timeit.repeat(lambda b=batch, c=count: run(b, c), number=number, repeat=60)) / number
        print(f"{name:24} {count:8,} rows {seconds * 1e6:10.2f} µs {count / seconds / 1e6:9.1f} M rows/s")


def main() -> None:
    """Times a few expressions of TPC-H and single operators."""
    rng = np.random.default_rng(0)
    dictionary = Dictionary()

    def words(t: DataType, low: int, high: int) -> Callable[[int], Vector]:
        return lambda count: Vector(t, rng.integers(low, high, count))

    prices, discounts, taxes = words(PRICE, 90_000, 10_494_950), words(PRICE, 0, 11), words(PRICE, 0, 9)
    days, long_prices = words(DATE, 8_000, 11_000), words(PRICE, 10**10, 10**11)
    codes = dictionary.encode([f"{kind} {i}" for kind in ("PROMO", "STANDARD") for i in range(75)])
    one = Literal(Number(1), Decimal(1, 0))
    discounted = calling("*", column(0, PRICE), calling("-", one, column(1, PRICE)))
    charge = calling("*", discounted, calling("+", one, column(2, PRICE)))
    like = Call("like", (column(2, STRING), Literal("PROMO%", STRING), Literal("\\", STRING)), BOOLEAN)
    within = conjunction(
        (
            calling(">=", column(0, DATE), Literal(8766, DATE)),
            calling("<", column(0, DATE), Literal(9131, DATE)),
            calling(">=", column(1, PRICE), Literal(Number("0.05"), PRICE)),
            calling("<=", column(1, PRICE), Literal(Number("0.07"), PRICE)),
            calling("<", column(2, PRICE), Literal(Number("24.00"), PRICE)),
        )
    )
    promo = Case(((like, discounted),), Literal(Number("0.0000"), discounted.type))

    def text(count: int) -> Vector:
        return Vector(STRING, codes[rng.integers(0, 150, count)])

    def items(n: int) -> list[Vector]:
        return [prices(n), discounts(n), taxes(n)]

    report("charge", compile_vectorised(charge, dictionary), items)
    report("discounted and charge", compile_projection([discounted, charge], dictionary), items)
    report("charge in 128 bits", compile_vectorised(charge, dictionary), lambda n: [long_prices(n) for _ in range(3)])
    report("Q6's predicate", compile_predicate(within, dictionary), lambda n: [days(n), discounts(n), prices(n)])
    report("Q14's CASE with LIKE", compile_vectorised(promo, dictionary), lambda n: [prices(n), discounts(n), text(n)])
    report(
        "date <= literal",
        compile_predicate(calling("<=", column(0, DATE), Literal(10_471, DATE)), dictionary),
        lambda n: [days(n)],
    )
    report("year", compile_vectorised(calling("year", column(0, DATE)), dictionary), lambda n: [days(n)])
    longs = words(INT64, 0, 10**12)
    report(
        "bigint +",
        compile_vectorised(calling("+", column(0, INT64), column(1, INT64)), dictionary),
        lambda n: [longs(n), longs(n)],
    )
    product = calling("*", column(0, FLOAT64), column(0, FLOAT64))
    report("double *", compile_vectorised(product, dictionary), lambda n: [Vector(FLOAT64, rng.random(n))])
    quotient = calling("/", column(0, PRICE), column(1, PRICE))
    report("decimal /", compile_vectorised(quotient, dictionary), lambda n: [prices(n), prices(n)])


if __name__ == "__main__":
    main()
