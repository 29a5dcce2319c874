"""Bits of integers in two's complement."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from everview.errors import EvaluationError
from everview.relational.expressions import Call
from everview.relational.functions.arithmetic import wrapped
from everview.relational.functions.registry import function
from everview.relational.types import INT8, INT32, INT64, DataType, integer_bounds

Bound = Callable[..., Any]


def _first(args: tuple[DataType, ...]) -> DataType:
    return args[0]


@function("&", _first)
def _and(call: Call) -> Bound:
    return operator.and_


@function("|", _first)
def _or(call: Call) -> Bound:
    return operator.or_


@function("^", _first)
def _xor(call: Call) -> Bound:
    return operator.xor


@function("~", _first)
def _not(call: Call) -> Bound:
    return operator.invert


def _width(t: DataType) -> int:
    return 64 if t == INT64 else 32


@function("shiftleft", _first)
def _shift_left(call: Call) -> Bound:
    t, width = call.type, _width(call.type)
    return lambda value, by: wrapped(value << by % width, t)


@function("shiftright", _first)
def _shift_right(call: Call) -> Bound:
    width = _width(call.type)
    return lambda value, by: value >> by % width


@function("shiftrightunsigned", _first)
def _shift_right_unsigned(call: Call) -> Bound:
    t, width = call.type, _width(call.type)
    return lambda value, by: wrapped((value & ((1 << width) - 1)) >> by % width, t)


@function("bit_count", INT32)
def _bit_count(call: Call) -> Bound:
    return lambda value: (int(value) & ((1 << 64) - 1)).bit_count()


@function("bit_get", INT8)
def _bit_get(call: Call) -> Bound:
    width = integer_bounds(call.args[0].type)[1].bit_length() + 1

    def get(value: int, position: int) -> int:
        if not 0 <= position < width:
            raise EvaluationError(
                f"bit {position} is not between 0 and {width - 1}.", condition="INVALID_PARAMETER_VALUE"
            )
        return value >> position & 1

    return get
