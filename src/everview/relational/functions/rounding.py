"""ROUND, BROUND, FLOOR and CEIL.

Floats are rounded through their shortest decimal digits, as Spark does: ``round(1.005, 2)`` is 1.01. How many
decimal digits a result has depends on the number of places, which must be a constant; ``rounded_type`` says it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any

from everview.relational.expressions import Call
from everview.relational.functions.decimals import CONTEXT, MAX_PRECISION, fitter
from everview.relational.functions.failures import arithmetic_overflow
from everview.relational.functions.floats import float_of
from everview.relational.functions.registry import function
from everview.relational.types import INT64, DataType, Decimal, Value, integer_bounds, is_floating

Bound = Callable[..., Any]


def rounded_type(t: DataType, places: int) -> DataType:
    """The type of a value of type ``t`` rounded to ``places`` digits after the point.

    >>> rounded_type(Decimal(10, 2), 1), rounded_type(Decimal(3, 1), -3)
    (Decimal(precision=10, scale=1), Decimal(precision=4, scale=0))
    """
    if not isinstance(t, Decimal):
        return t
    whole = t.precision - t.scale + 1
    if places < 0:
        return Decimal(min(max(whole, 1 - places), MAX_PRECISION), 0)
    scale = min(t.scale, places)
    return Decimal(min(whole + scale, MAX_PRECISION), scale)


def _unknown_places(args: tuple[DataType, ...]) -> DataType:
    """The type for no places at all; ``rounded_type`` knows the others."""
    return rounded_type(args[0], 0)


def _rounding(name: str, mode: str) -> None:
    @function(name, _unknown_places)
    def _bind(call: Call) -> Bound:
        t = call.type
        if isinstance(t, Decimal):
            return _round_decimal(t, mode)
        return _round_float(t, mode) if is_floating(t) else _round_integer(t, mode)


def _round_decimal(t: Decimal, mode: str) -> Bound:
    fit = fitter(t)

    def round_decimal(value: Number, places: int = 0) -> Number:
        if places >= 0:
            exact = min(places, t.scale)
            return fit(value.quantize(Number(1).scaleb(-exact, CONTEXT), mode, CONTEXT))
        if -places > MAX_PRECISION + 1:
            return fit(Number(0))
        rounded = value.scaleb(places, CONTEXT).quantize(Number(1), mode, CONTEXT).scaleb(-places, CONTEXT)
        return fit(rounded)

    return round_decimal


def _round_float(t: DataType, mode: str) -> Bound:
    result = float_of(t)

    def round_float(value: float, places: int = 0) -> float:
        if not math.isfinite(value):
            return result(value)
        digits = Number(repr(value))  # Spark widens a float first
        if places > 400 or -digits.as_tuple().exponent <= places:  # type: ignore[operator]  # finite: an integer
            return value
        if -places > digits.adjusted() + 2:
            return 0.0
        rounded = digits.scaleb(places, CONTEXT).quantize(Number(1), mode, decimal.Context(prec=800))
        return result(
            float(rounded.scaleb(-places, CONTEXT).copy_abs() if not rounded else rounded.scaleb(-places, CONTEXT))
        )

    return round_float


def _round_integer(t: DataType, mode: str) -> Bound:
    low, high = integer_bounds(t)

    def round_integer(value: int, places: int = 0) -> int:
        if places >= 0:
            return value
        if -places > 25:
            return 0
        scaled = Number(value).scaleb(places, CONTEXT).quantize(Number(1), mode, CONTEXT)
        result: int = int(scaled) * 10**-places
        if not low <= result <= high:
            raise arithmetic_overflow(f"round({value}, {places})")
        return result

    return round_integer


_rounding("round", decimal.ROUND_HALF_UP)
_rounding("bround", decimal.ROUND_HALF_EVEN)


def _whole_type(args: tuple[DataType, ...]) -> DataType:
    t = args[0]
    if not isinstance(t, Decimal):
        return INT64
    if t.scale == 0:
        return t
    return Decimal(min(t.precision - t.scale + 1, MAX_PRECISION), 0)


def _to_whole(name: str, mode: str, of_float: Callable[[float], int]) -> None:
    """One argument: to a whole number. Two: to a number of places, and then the argument is a decimal."""

    @function(name, _whole_type)
    def _bind(call: Call) -> Bound:
        t = call.type
        if isinstance(t, Decimal):
            return _round_decimal(t, mode)
        low, high = integer_bounds(INT64)

        def whole(value: Value) -> int:
            if isinstance(value, int):
                return value
            if math.isnan(value):
                return 0
            if math.isinf(value) or not low <= of_float(value) <= high:
                raise arithmetic_overflow(f"{name}({value})")
            return of_float(value)

        return whole


_to_whole("floor", decimal.ROUND_FLOOR, math.floor)
_to_whole("ceil", decimal.ROUND_CEILING, math.ceil)
