"""Between SQL and the rings of users: what a lift is given, and what becomes of what a ring returns.

A lift gets one argument of many rows as a NumPy array, never NULL:

================================================  ==========================================================
boolean                                           bool
tinyint … bigint                                  int64
date, timestamp, timestamp_ntz, intervals         int64: days, microseconds, months (as in ``relational.types``)
float, double                                     float64
decimal                                           object: ``decimal.Decimal`` with the type's scale
string, binary                                    object: ``str``, ``bytes``
array, struct                                     object: tuples
================================================  ==========================================================

Of what a ring's ``values`` returns, numbers are taken as they are or refused if the declared type cannot hold them (a float is
no bigint, a decimal is rounded to the scale as in a cast), any sequence is an array, and a tuple or a dict is a struct.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number
from functools import cache
from typing import Any

import numpy as np

from everview.algebra.registry import RegisteredRing
from everview.algebra.ring import ColumnValues, Payloads
from everview.errors import EvaluationError
from everview.relational.functions.decimals import fitter
from everview.relational.types import (
    BOOLEAN,
    FLOAT32,
    NAN,
    STRING,
    Array,
    Binary,
    DataType,
    Decimal,
    String,
    Struct,
    Value,
    integer_bounds,
    is_floating,
    is_integral,
)

_OBJECTS = (Decimal, Array, Struct, String, Binary)


def lift_dtype(data_type: DataType) -> np.dtype[Any]:
    """The NumPy type of the column that a lift gets for an argument of this type."""
    if data_type == BOOLEAN:
        return np.dtype(np.bool_)
    if is_floating(data_type):
        return np.dtype(np.float64)
    return np.dtype(object if isinstance(data_type, _OBJECTS) else np.int64)


def lift_column(values: Sequence[Value], data_type: DataType) -> ColumnValues:
    """Internal values without NULL as the column that a lift gets."""
    column: ColumnValues = np.empty(len(values), dtype=lift_dtype(data_type))
    for i, value in enumerate(values):
        column[i] = value
    return column


def is_ring_type(data_type: DataType) -> bool:
    """Whether the aggregate of a ring can be declared to return the type: numbers, strings, arrays and structs of them."""
    match data_type:
        case Array():
            return is_ring_type(data_type.element)
        case Struct():
            return bool(data_type.types) and all(is_ring_type(t) for t in data_type.types)
        case Decimal():
            return True
        case _:
            return data_type in (BOOLEAN, STRING) or is_integral(data_type) or is_floating(data_type)


def ring_values(entry: RegisteredRing, payloads: Payloads, data_type: DataType) -> list[Value]:
    """What payloads are to SQL: internal values of the declared type.

    Raises:
        EvaluationError: the ring returns something that the declared type cannot hold.
    """
    given = entry.values(payloads)
    values = given.tolist() if isinstance(given, np.ndarray) else given
    convert = _converter(data_type)
    try:
        return [None if v is None else convert(v) for v in values]
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        raise EvaluationError(
            f"ring '{entry.name}' gives a value that is no {data_type}: {error}.", condition="REGISTERED_RING"
        ) from error


@cache
def _converter(data_type: DataType) -> Callable[[Any], Value]:
    match data_type:
        case Array():
            element = _converter(data_type.element)
            return lambda v: tuple([None if e is None else element(e) for e in _sequence(v)])
        case Struct():
            return _struct_converter(data_type)
        case Decimal():
            fit = fitter(data_type)
            return lambda v: fit(_decimal(v))
        case _ if is_floating(data_type):
            is_short = data_type == FLOAT32
            return lambda v: _float(v, is_short)
        case _ if is_integral(data_type):
            low, high = integer_bounds(data_type)
            return lambda v: _integer(v, low, high)
        case _ if data_type == BOOLEAN:
            return _boolean
        case _:
            return _text


def _struct_converter(struct: Struct) -> Callable[[Any], Value]:
    fields = [_converter(t) for t in struct.types]

    def convert(value: Any) -> Value:
        parts = [value[n] for n in struct.names] if isinstance(value, Mapping) else _sequence(value)
        if len(parts) != len(fields):
            raise ValueError(f"{len(parts)} fields in {value!r}")
        return tuple([None if p is None else f(p) for p, f in zip(parts, fields, strict=True)])

    return convert


def _sequence(value: Any) -> Sequence[Any]:
    if isinstance(value, np.ndarray):
        items: list[Any] = value.tolist()
        return items
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return value
    raise TypeError(f"{value!r} is no sequence")


def _float(value: Any, is_short: bool) -> float:
    if isinstance(value, bool | np.bool_ | str | bytes):
        raise TypeError(f"{value!r} is no number")
    number = float(np.float32(value)) if is_short else float(value)
    return NAN if math.isnan(number) else number


def _integer(value: Any, low: int, high: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no integer")
    if not low <= value <= high:
        raise OverflowError(f"{value} is out of range")
    return int(value)


def _decimal(value: Any) -> Number:
    if isinstance(value, Number):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Number(int(value))
    raise TypeError(f"{value!r} is no exact number")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{value!r} is no boolean")
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no string")
    return value
