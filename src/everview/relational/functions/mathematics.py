"""Real functions of doubles, with Java's results where Python raises: NaN outside the domain, infinity on overflow.

Logarithms of numbers outside their domain are NULL in Spark, not NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from everview.relational.expressions import Call
from everview.relational.functions.floats import divide, float64
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import FLOAT64, INT64, NAN

Bound = Callable[..., Any]


def _total(compute: Callable[..., float], on_overflow: Callable[..., float] = lambda *_: math.inf) -> Bound:
    """The function with NaN outside its domain and what ``on_overflow`` says beyond the range of doubles."""

    def apply(*values: float) -> float:
        try:
            return float64(compute(*values))
        except ValueError:
            return NAN
        except OverflowError:
            return on_overflow(*values)

    return apply


def _signed_infinity(value: float) -> float:
    return math.copysign(math.inf, value)


def _cube_root(value: float) -> float:
    return math.cbrt(value)


def _inverse_hyperbolic_sine(x: float) -> float:
    return math.asinh(x)


def _inverse_hyperbolic_tangent(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) == 1 else math.atanh(x)


_REAL: Final[dict[str, Bound]] = {
    "sqrt": _total(math.sqrt),
    "cbrt": _total(_cube_root),
    "exp": _total(math.exp),
    "expm1": _total(math.expm1),
    "sin": _total(math.sin),
    "cos": _total(math.cos),
    "tan": _total(math.tan),
    "cot": lambda x: divide(1.0, _total(math.tan)(x)),
    "sec": lambda x: divide(1.0, _total(math.cos)(x)),
    "csc": lambda x: divide(1.0, _total(math.sin)(x)),
    "asin": _total(math.asin),
    "acos": _total(math.acos),
    "atan": _total(math.atan),
    "sinh": _total(math.sinh, _signed_infinity),
    "cosh": _total(math.cosh),
    "tanh": _total(math.tanh),
    "asinh": _total(_inverse_hyperbolic_sine),
    "acosh": _total(math.acosh),
    "atanh": _total(_inverse_hyperbolic_tangent),
    "degrees": lambda x: float64(x * (180.0 / math.pi)),
    "radians": lambda x: float64(x / 180.0 * math.pi),
    "atan2": _total(lambda y, x: math.atan2(y + 0.0, x + 0.0)),
    "hypot": _total(math.hypot),
}


def _constant_binder(bound: Bound) -> Callable[[Call], Bound]:
    return lambda call: bound


for _name, _bound in _REAL.items():
    function(_name, FLOAT64)(_constant_binder(_bound))


@function("rint", FLOAT64)
def _rint(call: Call) -> Bound:
    return lambda x: float64(x) if not math.isfinite(x) else math.copysign(float(round(x)), x)


@function("pi", FLOAT64)
def _pi(call: Call) -> Bound:
    return lambda: math.pi


@function("e", FLOAT64)
def _e(call: Call) -> Bound:
    return lambda: math.e


@function("product_error", FLOAT64)
def _product_error(call: Call) -> Bound:
    """What the rounded product of two floats lacks; 0 where the product is not finite. Not SQL: a lift of view trees."""

    def error(a: float, b: float) -> float:
        product = a * b
        return float(Fraction(a) * Fraction(b) - Fraction(product)) if math.isfinite(product) else 0.0

    return error


def power(base: float, exponent: float) -> float:
    """Java's ``Math.pow``.

    >>> power(0.0, -1.0), power(-8.0, 1 / 3), power(1.0, float("inf"))
    (inf, nan, nan)
    """
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return NAN
    try:
        return float64(math.pow(base, exponent))
    except OverflowError:
        is_odd = exponent % 2 == 1
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:
        if base != 0:
            return NAN
        return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf


@function("power", FLOAT64)
def _power(call: Call) -> Bound:
    return power


def _logarithm(name: str, compute: Callable[[float], float], least: float = 0.0) -> None:
    @function(name, FLOAT64, Nulls.STRICT_OR_NULL)
    def _bind(call: Call) -> Bound:
        return lambda x: None if x <= least else float64(compute(x))


_logarithm("ln", math.log)
_logarithm("log10", math.log10)
_logarithm("log2", lambda x: math.log(x) / math.log(2))
_logarithm("log1p", math.log1p, -1.0)


@function("log", FLOAT64, Nulls.STRICT_OR_NULL)
def _log(call: Call) -> Bound:
    def logarithm(base: float, x: float) -> float | None:
        return None if base <= 0 or x <= 0 else divide(math.log(x), math.log(base))

    return logarithm


@function("factorial", INT64, Nulls.STRICT_OR_NULL)
def _factorial(call: Call) -> Bound:
    return lambda n: math.factorial(n) if 0 <= n <= 20 else None
