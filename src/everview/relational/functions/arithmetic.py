"""``+ - * / div % pmod``, negation, absolute value and their ``try_`` forms, for numbers and intervals.

Catalyst has cast both sides: integers and floats meet in one type, decimals keep their own and the result type follows from
both. Integers and intervals fail on overflow; floats follow IEEE, except that division by zero is an error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from everview.errors import EvaluationError
from everview.relational.expressions import Call
from everview.relational.functions import decimals, floats
from everview.relational.functions.decimals import CONTEXT, fitter
from everview.relational.functions.failures import (
    arithmetic_overflow,
    attempting,
    binary_arithmetic_overflow,
    divide_by_zero,
    interval_overflow,
    remainder_by_zero,
)
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import (
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    DataType,
    DayTimeInterval,
    Decimal,
    Value,
    YearMonthInterval,
    integer_bounds,
    is_floating,
    is_integral,
)

Binary = Callable[[Any, Any], Any]
DecimalRule = Callable[[Decimal, Decimal], Decimal]
_LONG_LOW, _LONG_HIGH = integer_bounds(INT64)


def _typed(rule: DecimalRule) -> Callable[[tuple[DataType, ...]], DataType]:
    """The operand type, or for decimals what ``rule`` says."""

    def result(args: tuple[DataType, ...]) -> DataType:
        left, right = args
        if isinstance(left, Decimal) and isinstance(right, Decimal):
            return rule(left, right)
        return left

    return result


def _first(args: tuple[DataType, ...]) -> DataType:
    return args[0]


def truncated_quotient(a: int, b: int) -> int:
    """``a / b`` rounded toward zero, as Java divides integers."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def truncated_remainder(a: int, b: int) -> int:
    """What ``truncated_quotient`` leaves; its sign is the dividend's."""
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def wrapped(value: int, t: DataType) -> int:
    """The value modulo the width of an integer type, as Java's unchecked arithmetic gives it."""
    low, high = integer_bounds(t)
    return (value - low) % (high - low + 1) + low


def _storage(t: DataType) -> DataType:
    """The integer type that holds an interval; the type itself otherwise."""
    if isinstance(t, YearMonthInterval):
        return INT32
    return INT64 if isinstance(t, DayTimeInterval) else t


def _overflow(symbol: str, t: DataType, a: Value, b: Value) -> EvaluationError:
    if not is_integral(t):
        return interval_overflow(f"{a} {symbol} {b}")
    if t in (INT8, INT16):
        return binary_arithmetic_overflow(a, symbol, b)
    return arithmetic_overflow(f"{a} {symbol} {b}", f"{_TRY_NAMES[symbol]}()")


_TRY_NAMES: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


def _checked(symbol: str, compute: Binary, t: DataType) -> Binary:
    low, high = integer_bounds(_storage(t))

    def apply(a: int, b: int) -> int:
        result: int = compute(a, b)
        if low <= result <= high:
            return result
        raise _overflow(symbol, t, a, b)

    return apply


def _ring_operation(symbol: str, compute: Binary, exact: Binary) -> Callable[[Call], Binary]:
    def bind(call: Call) -> Binary:
        t = call.type
        if isinstance(t, Decimal):
            fit = fitter(t)
            return lambda a, b: fit(exact(a, b))
        if is_floating(t):
            rounded = floats.float_of(t)
            return lambda a, b: rounded(compute(a, b))
        return _checked(symbol, compute, t)

    return bind


_add = _ring_operation("+", operator.add, CONTEXT.add)
_subtract = _ring_operation("-", operator.sub, CONTEXT.subtract)
_multiply = _ring_operation("*", operator.mul, CONTEXT.multiply)
function("+", _typed(decimals.sum_type))(_add)
function("-", _typed(decimals.sum_type))(_subtract)
function("*", _typed(decimals.product_type))(_multiply)


@function("/", _typed(decimals.quotient_type))
def _divide(call: Call) -> Binary:
    if isinstance(call.type, Decimal):
        fit = fitter(call.type)
        return lambda a, b: fit(decimals.quotient(a, b))

    def quotient(a: float, b: float) -> float:
        if b == 0:
            raise divide_by_zero()
        return floats.float64(a / b)

    return quotient


@function("div", INT64)
def _integral_divide(call: Call) -> Binary:
    if isinstance(call.args[0].type, Decimal):
        # Spark takes the low 64 bits of the quotient here, even in ANSI mode.
        return lambda a, b: wrapped(decimals.integral_quotient(a, b), INT64)

    def quotient(a: int, b: int) -> int:
        if b == 0:
            raise divide_by_zero()
        result = truncated_quotient(a, b)
        if result > _LONG_HIGH:
            raise arithmetic_overflow(f"{a} div {b}", "try_divide()")
        return result

    return quotient


@function("%", _typed(decimals.remainder_type))
def _remainder(call: Call) -> Binary:
    t = call.type
    if isinstance(t, Decimal):
        fit = fitter(t)
        return lambda a, b: fit(decimals.remainder(a, b))
    compute: Binary = floats.remainder if is_floating(t) else truncated_remainder

    def rest(a: Value, b: Value) -> Value:
        if b == 0:
            raise remainder_by_zero()
        return compute(a, b)

    return rest


@function("pmod", _typed(decimals.remainder_type))
def _positive_remainder(call: Call) -> Binary:
    t = call.type
    if isinstance(t, Decimal):
        fit = fitter(t)
        return lambda a, b: fit(_pmod(a, b, decimals.remainder, CONTEXT.add))
    if is_floating(t):
        rounded = floats.float_of(t)
        add: Binary = lambda a, b: rounded(a + b)  # noqa: E731  # a name for the operation, as in the other cases
        return lambda a, b: _pmod(a, b, floats.remainder, add)
    width = INT64 if t == INT64 else INT32  # Java adds smaller integers as ints
    return lambda a, b: _pmod(a, b, truncated_remainder, lambda x, y: wrapped(x + y, width))


def _pmod(a: Value, b: Value, rest: Binary, add: Binary) -> Value:
    if b == 0:
        raise remainder_by_zero()
    result = rest(a, b)
    return rest(add(result, b), b) if result < 0 else result


def _try_form(bind: Callable[[Call], Binary]) -> Callable[[Call], Binary]:
    return lambda call: attempting(bind(call))


function("try_add", _typed(decimals.sum_type), Nulls.STRICT_OR_NULL)(_try_form(_add))
function("try_subtract", _typed(decimals.sum_type), Nulls.STRICT_OR_NULL)(_try_form(_subtract))
function("try_multiply", _typed(decimals.product_type), Nulls.STRICT_OR_NULL)(_try_form(_multiply))
function("try_divide", _typed(decimals.quotient_type), Nulls.STRICT_OR_NULL)(_try_form(_divide))
function("try_mod", _typed(decimals.remainder_type), Nulls.STRICT_OR_NULL)(_try_form(_remainder))


@function("negative", _first)
def _negative(call: Call) -> Callable[[Any], Any]:
    t = call.type
    if isinstance(t, Decimal):
        fit = fitter(t)
        return lambda a: fit(decimals.negative(a))
    if is_floating(t):
        return lambda a: floats.float64(-a)
    low, _ = integer_bounds(_storage(t))

    def negate(a: int) -> int:
        if a == low:
            raise arithmetic_overflow(f"-({a})") if is_integral(t) else interval_overflow(f"-({a})")
        return -a

    return negate


@function("abs", _first)
def _absolute(call: Call) -> Callable[[Any], Any]:
    t = call.type
    if isinstance(t, Decimal):
        fit = fitter(t)
        return lambda a: fit(decimals.negative(a)) if a < 0 else a
    if is_floating(t):
        return lambda a: floats.float64(abs(a))
    low, _ = integer_bounds(_storage(t))

    def absolute(a: int) -> int:
        if a == low:
            raise arithmetic_overflow(f"abs({a})") if is_integral(t) else interval_overflow(f"abs({a})")
        return abs(a)

    return absolute


@function("sign", FLOAT64)
def _sign(call: Call) -> Callable[[Any], float]:
    def sign(a: Value) -> float:
        if isinstance(a, float) and (a == 0 or math.isnan(a)):
            return floats.float64(a)  # keeps -0.0 and NaN
        return float((a > 0) - (a < 0))

    return sign
