"""Arrow columns to vectors and back, for every type, chunked and sliced."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from everview.backends.embedded.arrow_columns import vector_from_arrow, vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.vectors import Kind, kind_of
from everview.relational.arrow import arrow_type, column_to_arrow
from everview.relational.types import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    is_floating,
)

sys.path.insert(0, str(Path(__file__).parent / "expressions"))
from expressions_strategies import TYPES, values_of


def _same(left: pa.Array, right: pa.Array) -> bool:
    return repr(left.to_pylist()) == repr(right.to_pylist()) and left.type == right.type


@pytest.mark.parametrize("t", [*TYPES, NULL], ids=str)
@pytest.mark.parametrize("has_nulls", [False, True])
def test_every_type_round_trips(t: DataType, has_nulls: bool) -> None:
    """A column comes back as it went in, whole, sliced, chunked and empty, and 0 lies beneath NULL."""
    dictionary = Dictionary()
    values = [] if t == NULL else [v for v in values_of(t) for _ in range(2)]
    if t == DATE:
        values = [v for v in values if abs(v) < 2_000_000]  # what Python's dates can show
    if t == NULL or has_nulls:
        values = [v for value in [*values, None, None] for v in (value, None)]
    whole = column_to_arrow(values, t)
    half = len(whole) // 2
    for column in (
        whole,
        whole[3 : half + 1],
        whole[:0],
        pa.chunked_array([whole]),
        pa.chunked_array([whole[1:half], whole[half:half], whole[half:]]),
        pa.chunked_array([], whole.type),
    ):
        vector = vector_from_arrow(column, t, dictionary)
        assert len(vector) == len(column)
        assert vector.type == t
        if vector.nulls is not None:
            assert not vector.values[vector.nulls].any()
        back = vector_to_arrow(vector, dictionary)
        back.validate(full=True)
        joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        storage = {"timestamp": pa.int64(), "duration": pa.int64()}.get(str(whole.type).split("[")[0])
        if storage is not None:
            assert _same(back.cast(storage), joined.cast(storage))
        else:
            assert _same(back, joined)


@pytest.mark.parametrize("t", [INT64, FLOAT64, TIMESTAMP, Decimal(30, 2)], ids=str)
def test_sixty_four_bit_columns_are_not_copied(t: DataType) -> None:
    """Without NULLs, the vector looks into Arrow's own memory."""
    array = column_to_arrow(list(values_of(t)), t)
    vector = vector_from_arrow(array, t, Dictionary())
    assert vector.values.ctypes.data == array.buffers()[1].address


def test_other_arrow_types_are_cast() -> None:
    """Columns whose Arrow type is not ours, narrow or dictionary-encoded, become vectors of the wanted type."""
    dictionary = Dictionary()
    narrow = vector_from_arrow(pa.array([1, None], pa.int8()), INT64, dictionary)
    assert narrow.values.tolist() == [1, 0]
    encoded = pa.array(["x", "y", None]).dictionary_encode()
    assert dictionary.decode(vector_from_arrow(encoded, STRING, dictionary).values) == ["x", "y", None]
    numbers = pa.array([5, 7, 5], pa.int32()).dictionary_encode()
    assert vector_from_arrow(numbers, INT32, dictionary).values.tolist() == [5, 7, 5]
    large = pa.chunked_array([pa.array(["x"], pa.large_string())])
    assert dictionary.decode(vector_from_arrow(large, STRING, dictionary).values) == ["x"]
    seconds = vector_from_arrow(pa.array([1], pa.timestamp("s", "UTC")), TIMESTAMP, dictionary)
    assert seconds.values.tolist() == [1_000_000]


def test_decimals_become_words() -> None:
    """Up to 18 digits a decimal is one word, above it is two, negative ones in two's complement."""
    dictionary = Dictionary()
    for precision in (18, 19):
        t = Decimal(precision, 2)
        array = pa.array([None, "-1.50", "2.00"]).cast(arrow_type(t))
        vector = vector_from_arrow(array[1:], t, dictionary)
        assert (vector.values.ndim == 2) == (kind_of(t) is Kind.WIDE)
        assert vector.values.tolist() == ([[-150, -1], [200, 0]] if precision == 19 else [-150, 200])


def test_booleans_are_words_of_zero_and_one() -> None:
    """Bits at any offset become int64."""
    vector = vector_from_arrow(pa.array([True] * 9 + [False, True, None])[8:], BOOLEAN, Dictionary())
    assert vector.values.tolist() == [1, 0, 1, 0]
    assert vector.values.dtype == np.int64
    assert not is_floating(vector.type)
