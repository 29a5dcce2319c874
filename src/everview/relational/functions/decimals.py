"""Exact decimal arithmetic with Spark's result types.

A result is computed exactly (a quotient: to 130 digits) and then rounded HALF_UP into the result type. The types follow
Spark's rules with ``allowPrecisionLoss``: when 38 digits do not suffice, the fraction shrinks, but not below six digits. All
arithmetic goes through ``CONTEXT``; Python's operators would round to its own 28 digits.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal as Number
from typing import Final

from everview.relational.functions.failures import divide_by_zero, numeric_value_out_of_range, remainder_by_zero
from everview.relational.types import Decimal

CONTEXT: Final = decimal.Context(
    prec=130, rounding=decimal.ROUND_HALF_UP, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[]
)
MAX_PRECISION: Final = 38
_MIN_ADJUSTED_SCALE: Final = 6
_NEGATION: Final = decimal.Context(
    prec=34, rounding=decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[]
)
"""Scala negates a BigDecimal in this context: a number of more than 34 digits is rounded."""


def adjusted(precision: int, scale: int) -> Decimal:
    """The type for a result that would need ``precision`` digits.

    >>> adjusted(40, 10)
    Decimal(precision=38, scale=8)
    """
    if precision <= MAX_PRECISION:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _MIN_ADJUSTED_SCALE)))


def sum_type(a: Decimal, b: Decimal) -> Decimal:
    """The type of ``a + b`` and ``a - b``."""
    scale = max(a.scale, b.scale)
    return adjusted(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def product_type(a: Decimal, b: Decimal) -> Decimal:
    """The type of ``a * b``."""
    return adjusted(a.precision + b.precision + 1, a.scale + b.scale)


def quotient_type(a: Decimal, b: Decimal) -> Decimal:
    """The type of ``a / b``."""
    scale = max(_MIN_ADJUSTED_SCALE, a.scale + b.precision + 1)
    return adjusted(a.precision - a.scale + b.scale + scale, scale)


def remainder_type(a: Decimal, b: Decimal) -> Decimal:
    """The type of ``a % b``."""
    scale = max(a.scale, b.scale)
    return adjusted(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def fitter(t: Decimal, rounding: str = decimal.ROUND_HALF_UP) -> Callable[[Number], Number]:
    """The function that rounds a number into the type or raises NUMERIC_VALUE_OUT_OF_RANGE.

    >>> fitter(Decimal(4, 1))(Number("12.25"))
    Decimal('12.3')
    """
    quantum = Number(1).scaleb(-t.scale, CONTEXT)
    limit = Number(1).scaleb(t.precision - t.scale, CONTEXT)
    zero = Number(0).quantize(quantum)

    def fit(value: Number) -> Number:
        if value.adjusted() > MAX_PRECISION:  # also keeps quantize within the context's digits
            if not value:
                return zero
            raise numeric_value_out_of_range(value, t)
        rounded = value.quantize(quantum, rounding, CONTEXT)
        if not rounded:
            return zero  # never a negative zero
        if rounded.copy_abs() >= limit:
            raise numeric_value_out_of_range(value, t)
        return rounded

    return fit


def negative(value: Number) -> Number:
    """``-value`` as Scala computes it.

    >>> negative(Number("12345678901234567890123456789012345678"))
    Decimal('-1.234567890123456789012345678901235E+37')
    """
    return _NEGATION.minus(value)


def quotient(a: Number, b: Number) -> Number:
    """``a / b`` to more digits than any type keeps."""
    if not b:
        raise divide_by_zero()
    return CONTEXT.divide(a, b)


def remainder(a: Number, b: Number) -> Number:
    """``a % b`` with the sign of ``a``."""
    if not b:
        raise remainder_by_zero()
    return CONTEXT.remainder(a, b)


def integral_quotient(a: Number, b: Number) -> int:
    """``a div b``, truncated, as an integer of any size."""
    if not b:
        raise divide_by_zero()
    return int(CONTEXT.divide_int(a, b))
