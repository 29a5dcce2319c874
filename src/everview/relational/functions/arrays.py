"""Arrays and structs: making them, taking parts, searching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everview.errors import EvaluationError
from everview.relational.expressions import Call, Literal
from everview.relational.functions.comparison import equality, sort_key
from everview.relational.functions.registry import Nulls, function
from everview.relational.types import BOOLEAN, INT32, INT64, NULL, STRING, Array, DataType, Row, Struct, Value

Bound = Callable[..., Any]


def _element(t: DataType) -> DataType:
    assert isinstance(t, Array), t
    return t.element


@function("array", lambda args: Array(args[0] if args else NULL), Nulls.NEVER)
def _array(call: Call) -> Bound:
    return lambda *values: values


@function("size", INT32)
def _size(call: Call) -> Bound:
    return len


@function("array_contains", BOOLEAN, Nulls.STRICT_OR_NULL)
def _array_contains(call: Call) -> Bound:
    equal = equality(_element(call.args[0].type))

    def contains(values: Row, sought: Value) -> bool | None:
        if any(v is not None and equal(v, sought) for v in values):
            return True
        return None if None in values else False

    return contains


def _out_of_bounds(index: int, size: int, condition: str) -> EvaluationError:
    return EvaluationError(
        f"index {index} is outside of an array with {size} elements.",
        condition=condition,
        hint="try_element_at gives NULL instead.",
    )


def _position(index: int, size: int) -> int | None:
    """The offset of a one-based index, negative from the end; None outside of the array."""
    if index == 0:
        raise EvaluationError("the index 0 is invalid: the first element is 1.", condition="INVALID_INDEX_OF_ZERO")
    if abs(index) > size:
        return None
    return index - 1 if index > 0 else size + index


@function("element_at", lambda args: _element(args[0]), Nulls.STRICT_OR_NULL)
def _element_at(call: Call) -> Bound:
    def element(values: Row, index: int) -> Value:
        at = _position(index, len(values))
        if at is None:
            raise _out_of_bounds(index, len(values), "INVALID_ARRAY_INDEX_IN_ELEMENT_AT")
        return values[at]

    return element


@function("try_element_at", lambda args: _element(args[0]), Nulls.STRICT_OR_NULL)
def _try_element_at(call: Call) -> Bound:
    """With a third argument, that value instead of NULL where there is no such element."""

    def element(values: Row, index: int, default: Value = None) -> Value:
        at = _position(index, len(values))
        return default if at is None else values[at]

    return element


@function("subscript", lambda args: _element(args[0]), Nulls.STRICT_OR_NULL)
def _subscript(call: Call) -> Bound:
    """``values[index]``, counted from zero."""

    def element(values: Row, index: int) -> Value:
        if not 0 <= index < len(values):
            raise _out_of_bounds(index, len(values), "INVALID_ARRAY_INDEX")
        return values[index]

    return element


@function("get", lambda args: _element(args[0]), Nulls.STRICT_OR_NULL)
def _get(call: Call) -> Bound:
    return lambda values, index: values[index] if 0 <= index < len(values) else None


def _extreme(name: str, choose: Callable[..., Value]) -> None:
    @function(name, lambda args: _element(args[0]), Nulls.STRICT_OR_NULL)
    def _bind(call: Call) -> Bound:
        key = sort_key(call.type)
        return lambda values: choose((v for v in values if v is not None), key=key, default=None)


_extreme("array_max", max)
_extreme("array_min", min)


@function("array_position", INT64)
def _array_position(call: Call) -> Bound:
    equal = equality(_element(call.args[0].type))

    def position(values: Row, sought: Value) -> int:
        return next((i for i, v in enumerate(values, 1) if v is not None and equal(v, sought)), 0)

    return position


@function("array_distinct", lambda args: args[0])
def _array_distinct(call: Call) -> Bound:
    key = sort_key(_element(call.args[0].type))

    def distinct(values: Row) -> Row:
        kept: dict[Any, Value] = {}
        for value in values:
            shown = value + 0.0 if isinstance(value, float) else value  # Spark keeps 0.0 for -0.0 here
            kept.setdefault(None if value is None else (key(value),), shown)
        return tuple(kept.values())

    return distinct


@function("sort_array", lambda args: args[0])
def _sort_array(call: Call) -> Bound:
    key = sort_key(_element(call.args[0].type))

    def sort(values: Row, is_ascending: bool = True) -> Row:
        present = sorted((v for v in values if v is not None), key=key, reverse=not is_ascending)
        nulls = [None] * (len(values) - len(present))
        return tuple(nulls + present if is_ascending else present + nulls)

    return sort


@function("array_join", STRING)
def _array_join(call: Call) -> Bound:
    def join(values: Row, separator: str, for_null: str | None = None) -> str:
        shown = (for_null if v is None else v for v in values)
        return separator.join(v for v in shown if v is not None)

    return join


def _struct_type(args: tuple[DataType, ...]) -> DataType:
    return Struct(tuple(f"col{i}" for i in range(1, len(args) + 1)), args)


@function("struct", _struct_type, Nulls.NEVER)
def _struct(call: Call) -> Bound:
    """The values of the fields; their names are in the call's type."""
    return lambda *values: values


def _field_type(args: tuple[DataType, ...]) -> DataType:
    raise AssertionError("the type of a field depends on its position: take it from the struct's type")


@function("getfield", _field_type, Nulls.STRICT_OR_NULL)
def _get_field(call: Call) -> Bound:
    """The field of a struct, by its position: a literal."""
    ordinal = call.args[1]
    assert isinstance(ordinal, Literal), "a field's position is a constant"
    at: int = ordinal.value
    return lambda values, _at: values[at]


@function("getfields", _field_type)
def _get_fields(call: Call) -> Bound:
    """The same field of every struct in an array."""
    ordinal = call.args[1]
    assert isinstance(ordinal, Literal), "a field's position is a constant"
    at: int = ordinal.value
    return lambda structs, _at: tuple([None if s is None else s[at] for s in structs])
