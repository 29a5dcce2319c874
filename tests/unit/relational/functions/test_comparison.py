from __future__ import annotations

import pytest

from everview.relational.functions import sort_key
from everview.relational.types import FLOAT64, INT32, NAN, STRING, Array, Struct, Value
from tests.unit.relational.functions.evaluation import call


def test_nan_equals_itself_and_is_largest() -> None:
    """NaN = NaN, NaN > infinity, and -0.0 = 0.0."""
    assert call("=", (NAN, FLOAT64), (NAN, FLOAT64)) is True
    assert call(">", (NAN, FLOAT64), (float("inf"), FLOAT64)) is True
    assert call("=", (-0.0, FLOAT64), (0.0, FLOAT64)) is True


def test_null_safe_equality_never_is_null() -> None:
    """``<=>`` compares NULLs as values."""
    assert call("<=>", (None, INT32), (None, INT32)) is True
    assert call("<=>", (None, INT32), (1, INT32)) is False


@pytest.mark.parametrize(
    ("value", "items", "expected"), [(1, (1, None), True), (2, (1, None), None), (2, (1, 3), False), (None, (1,), None)]
)
def test_in_has_three_values(value: Value, items: tuple[Value, ...], expected: Value) -> None:
    """IN is NULL when nothing matches and something is NULL."""
    assert call("in", (value, INT32), *((item, INT32) for item in items)) is expected


def test_sort_key_orders_nested_values_with_nulls_first() -> None:
    """Arrays and structs compare element by element, NULL first, shorter first."""
    arrays = [(1, 2), (None,), (), (1,), (1, None)]
    assert sorted(arrays, key=sort_key(Array(INT32))) == [(), (None,), (1,), (1, None), (1, 2)]
    structs = [(1, "b"), (1, None), (None, "z"), (1, "a")]
    assert sorted(structs, key=sort_key(Struct(("x", "y"), (INT32, STRING)))) == [
        (None, "z"),
        (1, None),
        (1, "a"),
        (1, "b"),
    ]


def test_greatest_and_least_skip_nulls() -> None:
    """NULL only where every argument is."""
    assert call("greatest", (None, INT32), (3, INT32), (2, INT32)) == 3
    assert call("least", (None, INT32), (None, INT32)) is None
