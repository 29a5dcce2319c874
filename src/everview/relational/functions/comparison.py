"""Equality and order of values: ``= <=> < <= > >=``, IN, GREATEST, LEAST, and keys to sort by.

NaN equals itself and is above every number; -0.0 equals 0.0; strings compare by code point, which is the order of their
UTF-8 bytes; arrays and structs compare element by element, NULL elements equal to each other and first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from everview.relational.expressions import Call, Literal
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import BOOLEAN, Array, DataType, Float32, Float64, Struct, Value

OrderingKey: TypeAlias = Callable[[Value], Any]


def sort_key(t: DataType) -> OrderingKey:
    """A key for the non-NULL values of a type whose natural order is Spark's order of the values.

    >>> from everview.relational.types import FLOAT64, NAN
    >>> sorted([NAN, 1.0, float("inf")], key=sort_key(FLOAT64))
    [1.0, inf, nan]
    """
    match t:
        case Float32() | Float64():
            return _float_key
        case Array(element=element):
            key = _nulls_first(sort_key(element))
            return lambda values: tuple([key(v) for v in values])
        case Struct(types=types):
            keys = tuple(_nulls_first(sort_key(each)) for each in types)
            return lambda values: tuple([k(v) for k, v in zip(keys, values, strict=True)])
        case _:
            return _itself


def _orders_natively(t: DataType) -> bool:
    return not isinstance(t, Float32 | Float64 | Array | Struct)


def _itself(value: Value) -> Value:
    return value


def _float_key(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


def _nulls_first(key: OrderingKey) -> OrderingKey:
    return lambda value: (False,) if value is None else (True, key(value))


def equality(t: DataType) -> Callable[[Value, Value], bool]:
    """Whether two non-NULL values of a type are equal."""
    if _orders_natively(t):
        return operator.eq
    key = sort_key(t)
    return lambda a, b: bool(key(a) == key(b))


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Call], Callable[..., Any]]:
    def bind(call: Call) -> Callable[[Value, Value], bool]:
        t = call.args[0].type
        if _orders_natively(t):
            return compare
        key = sort_key(t)
        return lambda a, b: bool(compare(key(a), key(b)))

    return bind


_COMPARISONS: Final = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
for _symbol, _compare in _COMPARISONS.items():
    function(_symbol, BOOLEAN)(_comparison(_compare))


@function("<=>", BOOLEAN, Nulls.NEVER)
def _null_safe_equal(call: Call) -> Callable[[Value, Value], bool]:
    equal = equality(call.args[0].type)
    return lambda a, b: a is b if a is None or b is None else equal(a, b)


@function("in", BOOLEAN, Nulls.OWN)
def _in(call: Call) -> Callable[..., bool | None]:
    key = sort_key(call.args[0].type)
    if all(isinstance(item, Literal) for item in call.args[1:]):
        values = [item.value for item in call.args[1:] if isinstance(item, Literal)]
        among = frozenset(key(v) for v in values if v is not None)
        missing = None if None in values else False

        def in_constants(value: Value, *_items: Value) -> bool | None:
            if value is None:
                return None
            return True if key(value) in among else missing

        return in_constants

    def in_items(value: Value, *items: Value) -> bool | None:
        if value is None:
            return None
        sought = key(value)
        if any(item is not None and key(item) == sought for item in items):
            return True
        return None if None in items else False

    return in_items


def _common(args: tuple[DataType, ...]) -> DataType:
    return args[0]


@function("greatest", _common, Nulls.OWN)
def _greatest(call: Call) -> Callable[..., Value]:
    key = sort_key(call.type)
    return lambda *values: max((v for v in values if v is not None), key=key, default=None)


@function("least", _common, Nulls.OWN)
def _least(call: Call) -> Callable[..., Value]:
    key = sort_key(call.type)
    return lambda *values: min((v for v in values if v is not None), key=key, default=None)
