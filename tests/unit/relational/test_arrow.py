from __future__ import annotations

import decimal
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.relational.arrow import (
    arrow_schema,
    canonical_rows,
    data_type_from_arrow,
    public_rows,
    rows_from_arrow,
    rows_to_arrow,
)
from everview.relational.nodes import Field
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT64,
    NAN,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Row,
    Struct,
)


def _scaled(unscaled: int) -> decimal.Decimal:
    digits = tuple(int(d) for d in str(abs(unscaled)))
    return decimal.Decimal((int(unscaled < 0), digits, -4))


_MICROSECONDS = st.integers(-(2**61), 2**61)
VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT8: st.integers(-128, 127),
    INT64: st.integers(-(2**63), 2**63 - 1),
    FLOAT32: st.floats(width=32, allow_nan=False) | st.just(NAN),
    FLOAT64: st.floats(allow_nan=False) | st.just(NAN),
    Decimal(38, 4): st.integers(-(10**38) + 1, 10**38 - 1).map(_scaled),
    STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    BINARY: st.binary(max_size=5),
    DATE: st.integers(-700_000, 2_900_000),
    TIMESTAMP: _MICROSECONDS,
    TIMESTAMP_NTZ: _MICROSECONDS,
    YEAR_MONTH_INTERVAL: st.integers(-(2**31), 2**31 - 1),
    DAY_TIME_INTERVAL: _MICROSECONDS,
    NULL: st.none(),
}
NESTED: dict[DataType, st.SearchStrategy[Any]] = {
    Array(FLOAT64): st.lists(st.none() | VALUES[FLOAT64], max_size=3).map(tuple),
    Array(Array(DATE)): st.lists(st.lists(st.none() | st.integers(0, 9999), max_size=2).map(tuple), max_size=3).map(
        tuple
    ),
    Struct(("a", "b"), (DATE, Array(STRING))): st.tuples(
        st.none() | st.integers(0, 9999), st.none() | st.lists(VALUES[STRING], max_size=2).map(tuple)
    ),
}
FIELDS = tuple(Field(f"c{i}", t) for i, t in enumerate({**VALUES, **NESTED}))
ROWS = st.lists(st.tuples(*(st.none() | s for s in {**VALUES, **NESTED}.values())), max_size=4)


@given(ROWS)
def test_rows_survive_the_way_to_arrow_and_back(rows: list[Row]) -> None:
    """Internal rows of every type are the same after a round trip, NaN being one object."""
    table = rows_to_arrow(rows, FIELDS)
    assert table.schema == arrow_schema(FIELDS)
    table.validate(full=True)
    assert rows_from_arrow(table, FIELDS) == rows


def test_every_type_is_its_own_arrow_type() -> None:
    """The Arrow type of a type leads back to it."""
    reversible = [f for f in FIELDS if f.type not in (YEAR_MONTH_INTERVAL, NULL)]
    for column in reversible:
        assert data_type_from_arrow(arrow_schema((column,)).field(0).type) == column.type


def test_nan_is_one_object() -> None:
    """Whatever NaN comes in or was computed, rows with it are equal."""
    fields = (Field("x", FLOAT64), Field("y", Array(FLOAT32)))
    table = pa.table({"x": [float("nan")], "y": pa.array([[float("nan")]], pa.list_(pa.float32()))})
    (row,) = rows_from_arrow(table, fields)
    assert row == (NAN, (NAN,))
    assert canonical_rows([(math.inf - math.inf, (float("nan"), 1.0))], fields) == [(NAN, (NAN, 1.0))]


def test_relations_without_columns() -> None:
    """A bag of empty rows keeps its size."""
    table = rows_to_arrow([(), ()], ())
    assert table.num_rows == 2
    assert rows_from_arrow(table, ()) == public_rows(table) == [(), ()]


@pytest.mark.parametrize(
    ("arrow", "name"),
    [
        (pa.dictionary(pa.int8(), pa.large_string()), "string"),
        (pa.uint8(), "smallint"),
        (pa.uint32(), "bigint"),
        (pa.float16(), "float"),
        (pa.binary(4), "binary"),
        (pa.date64(), "date"),
        (pa.timestamp("ns", tz="Europe/Paris"), "timestamp"),
        (pa.timestamp("s"), "timestamp_ntz"),
        (pa.list_(pa.int8(), 3), "array<tinyint>"),
        (pa.struct([("a", pa.duration("s"))]), "struct<a:interval day to second>"),
    ],
)
def test_arrow_types_that_differ_in_layout(arrow: pa.DataType, name: str) -> None:
    """A table can be declared with any Arrow type whose values Spark has too."""
    assert str(data_type_from_arrow(arrow)) == name
