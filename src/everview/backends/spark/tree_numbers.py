"""The numbers of a view tree's payloads, as expressions: what rows contribute, products of payloads, and what sums mean.

A payload has a *cell* for every monomial: a count, or an exact number as a decimal. A sum of floats has a cell for each place
of the product of their limbs (``float_limbs``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal as PythonDecimal
from typing import Final

from everview.backends.spark.float_limbs import total as total_of_limbs
from everview.backends.spark.payloads import ONE, WIDE, ZERO, zero
from everview.planner.block import Block, BlockAtom, Lift, Monomial, Number, Terms
from everview.relational.bounds import scale_of
from everview.relational.expressions import Call, Cast, Column, Expression, Literal
from everview.relational.functions import function_named
from everview.relational.schema import is_nullable
from everview.relational.types import FLOAT64, INT64, Decimal, is_integral

Cell = tuple[Monomial, int]
"""A column of a payload: a sum of products, and of a sum of floats which place of it."""
UNFIT_ROWS: Final[Cell] = (frozenset(), -1)
"""The number of rows with floats that do not fit."""
Columns = Mapping[Cell, Column]


def lifted(atom: BlockAtom, monomial: Monomial) -> Expression:
    """What a row of the atom contributes to a monomial over this atom alone: 1, or a lift."""
    if not monomial:
        return ONE
    ((_, place),) = monomial
    return lift_value(atom, place)


def lift_value(atom: BlockAtom, place: int) -> Expression:
    """A lift of an atom; a NULL is 0."""
    lift = atom.lifts[place]
    assert isinstance(lift, Lift), "rings of users are refused before"
    value = lift.value
    if lift.number is Number.EXACT and is_integral(value.type):
        value = Cast(value, WIDE)
    nothing = Literal(0.0, FLOAT64) if value.type == FLOAT64 else zero(value.type)
    return Call("coalesce", (value, nothing), value.type) if is_nullable(value) else value


def wide(number: Column) -> Expression:
    """A sum of limbs, as something to be multiplied with others that is no number of rows."""
    return Cast(number, WIDE) if number.type == INT64 else number


def add(left: Expression, right: Expression) -> Expression:
    """The sum of two decimals, in the type that Spark gives it."""
    return Call("+", (left, right), function_named("+").result_type((left.type, right.type)))


def float_total(terms: Terms, sums: Columns) -> Expression:
    """A sum of floats with coefficients, from sums of products of limbs."""
    result: Expression | None = None
    for coefficient, monomial in terms:
        own = sorted((place, c) for (m, place), c in sums.items() if m == monomial and place >= 0)
        part: Expression = total_of_limbs([c for _, c in own]) if len(own) > 1 else Cast(own[0][1], FLOAT64)
        if coefficient != 1:
            part = Call("*", (part, Literal(float(coefficient), FLOAT64)), FLOAT64)
        result = part if result is None else Call("+", (result, part), FLOAT64)
    return Literal(0.0, FLOAT64) if result is None else result


def product(factors: Sequence[Expression]) -> Expression:
    """The product of counts and decimals, the counts first."""
    counts = [f for f in factors if f.type == INT64]
    exact = [f for f in factors if f.type != INT64]
    count: Expression | None = None
    for factor in counts:
        count = factor if count is None else Call("*", (count, factor), INT64)
    if not exact:
        assert count is not None
        return count
    if count is not None:
        exact.append(Cast(count, WIDE))
    result = exact[0]
    for factor in exact[1:]:
        result = _multiply(result, factor)
    return result


def _multiply(left: Expression, right: Expression) -> Expression:
    return Call("*", (left, right), function_named("*").result_type((left.type, right.type)))


def count_total(terms: Terms, sums: Columns) -> Expression:
    """A sum of counts with coefficients."""
    result: Expression | None = None
    for coefficient, monomial in terms:
        part: Expression = sums[monomial, 0]
        if coefficient != 1:
            part = Call("*", (Literal(coefficient, INT64), part), INT64)
        result = part if result is None else Call("+", (result, part), INT64)
    return ZERO if result is None else result


def exact_total(block: Block, terms: Terms, scale: int, sums: Columns) -> Expression:
    """A sum of exact numbers with coefficients, which are in units of the last digit: a decimal of this scale."""
    result: Expression | None = None
    for coefficient, monomial in terms:
        own = sum(scale_of(lift.value.type) for a, i in monomial if isinstance(lift := block.atoms[a].lifts[i], Lift))
        part: Expression = sums[monomial, 0]
        if part.type == INT64:
            part = Cast(part, WIDE)
        if coefficient != 1 or own != scale:
            part = _multiply(part, _factor(coefficient, scale - own))
        result = part if result is None else add(result, part)
    return zero(Decimal(38, scale)) if result is None else result


def _factor(coefficient: int, scale: int) -> Literal:
    """A coefficient in units of 10^-scale, as a constant."""
    assert scale >= 0, "exact arithmetic keeps all digits"
    digits = max(len(str(abs(coefficient))), scale + 1)
    return Literal(PythonDecimal(coefficient).scaleb(-scale), Decimal(digits, scale))
