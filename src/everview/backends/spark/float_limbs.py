"""Sums of floats that move with changes: a float as five integers, whose sums are exact and whose sum is the float.

    x = (a · 2³¹ + b) + (c · 2³¹ + d) · 2⁻⁶² + e · 2⁻⁹³          a, b, c, d, e integers below 2³¹, all with the sign of x

Sums of integers forget a row that has gone, whatever it was, so the sums of a group are those of the rows that it has now. The
answer is rounded once, where it is read. A float *fits* if it is below 2⁶², and is a multiple of 2⁻⁹³ or not below 2⁻⁵⁰; what
is cut off is then less than a part in 2⁴³. A group with rows that do not fit (NaN and infinities among them) is computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from everview.relational.expressions import Call, Case, Cast, Expression, Literal, conjunction
from everview.relational.types import BOOLEAN, FLOAT64, INT64

LIMBS: Final = 5
_HALF: Final = Literal(2**31, INT64)
LEAST: Final = 2.0**-50
MOST: Final = 2.0**62


def fits(x: Expression) -> Expression:
    """Whether a float that is not NULL is the sum of its limbs, or as good as that."""
    scaled = _times(x, 2.0**93)
    size = Call("abs", (x,), FLOAT64)
    is_below = Call("<", (size, Literal(MOST, FLOAT64)), BOOLEAN)
    is_large = Call(">=", (size, Literal(LEAST, FLOAT64)), BOOLEAN)
    # Without the condition in front, a large number would be cast here, and fail.
    few = Case(((is_large, Literal(0.0, FLOAT64)),), scaled)
    is_whole = Call("=", (few, _float(Cast(few, INT64))), BOOLEAN)
    return conjunction((is_below, is_whole))


def limbs(x: Expression) -> tuple[Expression, ...]:
    """The integers of a float that fits; each step is exact."""
    whole = Cast(x, INT64)
    part = _times(_minus(x, _float(whole)), 2.0**62)
    less = Cast(part, INT64)
    least = Cast(_times(_minus(part, _float(less)), 2.0**31), INT64)
    return (*_halves(whole), *_halves(less), least)


def places(factors: int) -> int:
    """How many sums a sum of products of so many floats is: of each place of the product one.

    Limb i counts 2^(31 · (1 - i)), so limbs i and j multiply to place i + j of a product of two.

    >>> places(1), places(2), places(0)
    (5, 9, 1)
    """
    return (LIMBS - 1) * factors + 1


def total(sums: Sequence[Expression]) -> Expression:
    """The float that the sums of limbs are, or of products of limbs, by their places; the smallest are added first."""
    factors = (len(sums) - 1) // (LIMBS - 1)
    *larger, least = (_times(_float(s), 2.0 ** (31 * (factors - place))) for place, s in enumerate(sums))
    for scaled in reversed(larger):
        least = _plus(scaled, least)
    return least


def _halves(number: Expression) -> tuple[Expression, Expression]:
    return Call("div", (number, _HALF), INT64), Call("%", (number, _HALF), INT64)


def _float(number: Expression) -> Expression:
    return Cast(number, FLOAT64)


def _times(x: Expression, factor: float) -> Expression:
    return Call("*", (x, Literal(factor, FLOAT64)), FLOAT64)


def _plus(x: Expression, y: Expression) -> Expression:
    return Call("+", (x, y), FLOAT64)


def _minus(x: Expression, y: Expression) -> Expression:
    return Call("-", (x, y), FLOAT64)
