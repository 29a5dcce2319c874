from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as Number
from typing import Any

import numpy as np
import pytest

from everview.algebra.integers import IntegerRing
from everview.algebra.registry import RegisteredRing, is_registered, ring_named
from everview.algebra.ring import Payloads
from everview.errors import EvaluationError, UnknownName
from everview.relational.ring_values import is_ring_type, lift_column, ring_values
from everview.relational.types import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT64,
    NAN,
    STRING,
    Array,
    DataType,
    Decimal,
    Struct,
    Value,
)


class Given(IntegerRing):
    """Integers that show whatever they are told to."""

    def __init__(self, shown: Sequence[Any]) -> None:
        self.shown = shown

    def values(self, payloads: Payloads) -> Sequence[Any]:
        return self.shown


def read(shown: Sequence[Any], data_type: DataType) -> list[Value]:
    """What SQL sees of values that a ring returns."""
    ring = Given(shown)
    return ring_values(RegisteredRing("r", ring, None, ""), ring.zeros(len(shown)), data_type)


PAIR = Struct(("re", "im"), (FLOAT64, INT64))


@pytest.mark.parametrize(
    ("shown", "data_type", "expected"),
    [
        (np.array([1.5, np.nan]), FLOAT64, [1.5, NAN]),
        ([np.float64(0.1), 2], FLOAT32, [float(np.float32(0.1)), 2.0]),
        (np.array([7, -8]), INT64, [7, -8]),
        ([True, np.bool_(False), None], BOOLEAN, [True, False, None]),
        ([Number("1.005"), 2], Decimal(5, 2), [Number("1.01"), Number("2.00")]),
        ([np.array([1, 2]), (), [None]], Array(INT64), [(1, 2), (), (None,)]),
        ([(1.0, 2), {"im": 3, "re": 4.5}, [0, None]], PAIR, [(1.0, 2), (4.5, 3), (0.0, None)]),
        (["x", "y"], STRING, ["x", "y"]),
    ],
)
def test_values_become_internal_ones(shown: Sequence[Any], data_type: DataType, expected: list[Value]) -> None:
    """Whatever form a ring gives its values in, SQL sees values of the declared type."""
    values = read(shown, data_type)
    assert values == expected
    assert [type(v) for v in values] == [type(v) for v in expected]


@pytest.mark.parametrize(
    ("shown", "data_type", "message"),
    [
        ([1.0], INT64, "no bigint: 1.0 is no integer"),
        ([True], INT64, "no bigint: True is no integer"),
        ([200], INT8, "no tinyint: 200 is out of range"),
        (["1"], FLOAT64, "no double: '1' is no number"),
        ([1.5], Decimal(5, 2), "1.5 is no exact number"),
        ([1], BOOLEAN, "1 is no boolean"),
        ([3], Array(INT64), "3 is no sequence"),
        (["abc"], Array(STRING), "'abc' is no sequence"),
        ([(1.0,)], PAIR, "1 fields in"),
        ([{"re": 1.0}], PAIR, "'im'"),
        ([5], STRING, "5 is no string"),
        ([Number(10**9)], Decimal(5, 2), "cannot be represented"),
    ],
)
def test_values_of_another_type_are_refused(shown: Sequence[Any], data_type: DataType, message: str) -> None:
    """Nothing is converted in silence."""
    with pytest.raises(EvaluationError) as caught:
        read(shown, data_type)
    assert message in str(caught.value)


def test_a_ring_gives_a_value_for_each_payload() -> None:
    """Too few values are an error, not a shorter column."""
    entry = RegisteredRing("r", Given([1]), None, "")
    with pytest.raises(EvaluationError, match="values returned 1 values for 2 payloads"):
        ring_values(entry, np.zeros((2, 1), dtype=np.int64), INT64)


def test_lifts_get_numpy_columns() -> None:
    """Numbers come as machine numbers, all else as Python's values."""
    assert lift_column([1, 2], INT8).dtype == np.int64
    assert lift_column([18000], DATE).tolist() == [18000]
    assert lift_column([0.5], FLOAT32).dtype == np.float64
    assert lift_column([True], BOOLEAN).dtype == np.bool_
    assert lift_column([Number("1.50")], Decimal(5, 2)).tolist() == [Number("1.50")]
    assert lift_column([(1, 2), (3, 4)], Array(INT64)).tolist() == [(1, 2), (3, 4)]


def test_types_that_an_aggregate_can_return() -> None:
    """Numbers, booleans, strings, and arrays and structs of them."""
    assert is_ring_type(Array(PAIR))
    assert is_ring_type(STRING)
    assert not is_ring_type(Array(DATE))
    assert not is_ring_type(Struct((), ()))


def test_unknown_rings() -> None:
    """A name that nobody registered is an error with a hint."""
    assert not is_registered("never_registered")
    with pytest.raises(UnknownName, match="no ring 'never_registered' is registered"):
        ring_named("never_registered")
