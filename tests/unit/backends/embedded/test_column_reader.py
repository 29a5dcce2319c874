"""Columns of batches as vectors: what the quick way reads is what the general way reads."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.arrow_columns import vector_from_arrow
from everview.backends.embedded.column_reader import ColumnReader, KeyReader
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.vectors import Vector
from everview.relational.arrow import arrow_schema, column_to_arrow
from everview.relational.nodes import Field
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
)

INTEGERS: dict[DataType, int] = {
    INT8: 7,
    INT16: 15,
    INT32: 31,
    INT64: 63,
    DATE: 20,
    TIMESTAMP: 50,
    TIMESTAMP_NTZ: 50,
    DAY_TIME_INTERVAL: 63,
    YEAR_MONTH_INTERVAL: 31,
}
VALUES: dict[DataType, st.SearchStrategy[object]] = {
    **{t: st.integers(-(2**bits), 2**bits - 1) for t, bits in INTEGERS.items()},
    BOOLEAN: st.booleans(),
    FLOAT32: st.floats(width=32, allow_nan=False),
    FLOAT64: st.floats(allow_nan=False),
    STRING: st.text(max_size=9),
    BINARY: st.binary(max_size=9),
    Decimal(18, 2): st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2)),
    Decimal(30, 2): st.integers(-(10**30) + 1, 10**30 - 1).map(
        lambda n: decimal.Decimal(n).scaleb(-2, decimal.Context(prec=40))
    ),
    Array(INT64, True): st.lists(st.integers(0, 3), max_size=2).map(tuple),
}
FIELDS = tuple(Field(f"c{i}", t, True) for i, t in enumerate(VALUES))
ROWS = st.lists(st.tuples(*(st.none() | values for values in VALUES.values())), max_size=12) | st.lists(
    st.tuples(*VALUES.values()), max_size=12
)


def batch_of(rows: list[tuple[object, ...]], skipped: int) -> pa.RecordBatch:
    """Rows as a batch whose arrays begin later than their buffers."""
    rows = [tuple(None for _ in FIELDS)] * skipped + rows
    columns = [column_to_arrow([row[i] for row in rows], f.type) for i, f in enumerate(FIELDS)]  # type: ignore[misc]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(FIELDS)).slice(skipped)


def same(left: Vector, right: Vector) -> bool:
    """Whether two vectors are equal in everything."""
    nulls = (np.zeros(len(v), dtype=np.bool_) if v.nulls is None else v.nulls for v in (left, right))
    return (
        left.type == right.type
        and left.values.dtype == right.values.dtype
        and np.array_equal(left.values, right.values)
        and np.array_equal(*nulls)
    )


@settings(deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=3), st.integers(0, 9), st.sets(st.sampled_from(range(len(FIELDS)))))
def test_a_reader_reads_what_the_general_way_reads(
    parts: list[list[tuple[object, ...]]], skipped: int, columns: set[int]
) -> None:
    """Of every type, with and without NULLs, from slices, from one batch and from tables of several."""
    dictionary = Dictionary()
    reader = ColumnReader(FIELDS, sorted(columns), dictionary)
    batches = [batch_of(rows, skipped) for rows in parts]
    for rows in (batches[0], pa.Table.from_batches(batches), pa.Table.from_batches(batches[:1])):
        vectors = reader.read(rows)
        assert vectors.keys() == columns
        for c in columns:
            assert same(vectors[c], vector_from_arrow(rows.column(c), FIELDS[c].type, dictionary))


@pytest.mark.parametrize("last", [3, None])
def test_a_batch_that_was_read_can_be_freed(last: int | None) -> None:
    """Whoever exports a batch has to let go of it: of one that it reads, and of one in which it meets a NULL."""
    fields = tuple(Field(name, INT64, True) for name in "abcd")
    reader = ColumnReader(fields, range(4), Dictionary())
    before = pa.total_allocated_bytes()
    for _ in range(3):
        columns = [pa.array([*range(5000), last], pa.int64()) for _ in fields]
        vectors = reader.read(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(fields)))
        assert vectors[3].values[:5000].tolist() == list(range(5000))
        assert (vectors[3].nulls is None) == (last is not None)
        del columns
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("types", [(INT64,), (INT32, Decimal(10, 2)), (STRING, DATE), (FLOAT64, INT64), (BOOLEAN,)])
def test_keys_are_those_of_the_layout(types: tuple[DataType, ...]) -> None:
    """Whichever way they are read."""
    fields = tuple(Field(f"k{i}", t, False) for i, t in enumerate(types))
    values = {
        INT64: [1, -2],
        INT32: [3, -4],
        STRING: ["x", "y"],
        DATE: [5, -6],
        FLOAT64: [0.5, 2.0],
        BOOLEAN: [True, False],
    }
    columns = [
        column_to_arrow(values.get(t, [decimal.Decimal("1.50"), decimal.Decimal("-2.00")]), t)  # type: ignore[arg-type]
        for t in types
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(fields))
    dictionary = Dictionary()
    reader = KeyReader(fields, range(len(fields)), dictionary)
    vectors = [vector_from_arrow(c, t, dictionary) for c, t in zip(columns, types, strict=True)]
    for rows in (batch, pa.Table.from_batches([batch]), batch.slice(1), batch.slice(0, 0)):
        part = [v.take(np.arange(2 - rows.num_rows, 2)) for v in vectors]
        assert reader.read(rows).tolist() == reader.layout.pack(part, rows.num_rows).tolist()


def test_other_types_than_the_tables_are_not_read_by_address() -> None:
    """A column of another Arrow type that holds the values is converted, not misread."""
    fields = (Field("n", INT64, True), Field("s", STRING, True))
    batch = pa.record_batch([pa.array([1, 2], pa.int8()), pa.array(["a", None], pa.large_string())], names=["n", "s"])
    vectors = ColumnReader(fields, (0, 1), dictionary := Dictionary()).read(batch)
    assert vectors[0].values.tolist() == [1, 2]
    assert dictionary.decode(vectors[1].values) == ["a", None]
