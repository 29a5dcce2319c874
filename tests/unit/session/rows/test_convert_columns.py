from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.relational.arrow import arrow_type, column_to_arrow
from everview.relational.types import FLOAT64, INT8, INT16, INT32, INT64, Array, DataType, Decimal
from everview.session.rows.convert_columns import convert_column
from everview.session.rows.convert_values import Unfit, converter_to, or_null

TARGETS: list[DataType] = [INT8, INT16, INT32, INT64, FLOAT64, Decimal(5, 2), Decimal(38, 0), Decimal(20, 10)]
NUMBERS = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=4).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.none() | st.integers(0, 2**64 - 1), max_size=4).map(lambda v: pa.array(v, pa.uint64())),
    st.lists(st.none() | st.integers(-130, 127), max_size=4).map(lambda v: pa.array(v, pa.int16())),
    st.lists(st.none() | st.decimals(-1000, 1000, places=3), max_size=4).map(
        lambda v: pa.array(v, pa.decimal128(9, 3))
    ),
)


def _one_by_one(values: list[Any], target: DataType) -> tuple[list[Any], list[int]]:
    convert = or_null(converter_to(target))
    converted, unfit = [], []
    for i, value in enumerate(values):
        try:
            converted.append(convert(value))
        except Unfit:
            unfit.append(i)
    return converted, unfit


@given(NUMBERS, st.sampled_from(TARGETS))
def test_columns_and_values_obey_the_same_law(array: pa.Array, target: DataType) -> None:
    """A column is taken exactly when each of its values is, with the same result and the same offending rows."""
    column = pa.chunked_array([array[:1], array[1:]])
    expected, unfit = _one_by_one(array.to_pylist(), target)
    if pa.types.is_decimal(array.type) and not isinstance(target, Decimal):
        with pytest.raises(Unfit):  # a column is refused by its type, even when it holds nothing
            convert_column(column, target)
    elif unfit:
        with pytest.raises(Unfit) as caught:
            convert_column(column, target)
        assert list(caught.value.rows) == unfit
    else:
        converted = convert_column(column, target)
        assert converted.type == arrow_type(target)
        assert converted.to_pylist() == column_to_arrow(expected, target).to_pylist()


@pytest.mark.parametrize(
    "layout",
    [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_view(pa.int64()), pa.large_list_view(pa.int64())],
)
def test_layouts_of_lists(layout: pa.DataType) -> None:
    """Lists are taken in every layout, slices included."""
    array = pa.array([[9], [1, 2], None, [], [None, 4], [9]], layout)[1:5]
    converted = convert_column(pa.chunked_array([array[:2], array[2:]]), Array(INT8))
    converted.validate(full=True)
    assert converted.to_pylist() == [[1, 2], None, [], [None, 4]]


def test_lists_of_fixed_size() -> None:
    """A NULL list of fixed size has no elements."""
    array = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    assert convert_column(pa.chunked_array([array]), Array(INT32)).to_pylist() == [[1, 2], None, [3, 4]]


def test_null_inside_an_array_that_has_none() -> None:
    """Elements that must not be NULL are checked."""
    with pytest.raises(Unfit) as caught:
        convert_column(pa.chunked_array([[[1], [2, None]]]), Array(INT64, contains_null=False))
    assert (caught.value.why, list(caught.value.rows)) == ("cannot have NULL inside", [1])


def test_empty_columns() -> None:
    """A column without chunks is a column."""
    for target in [*TARGETS, Array(INT8)]:
        assert len(convert_column(pa.chunked_array([], arrow_type(target)), target)) == 0
        assert len(convert_column(pa.chunked_array([], pa.null()), target)) == 0
