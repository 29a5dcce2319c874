"""Rows compared where they lie in their batches."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.tables.batch_rows import are_comparable, places_of, rows_are_same, widths_of
from everview.relational.arrow import arrow_schema, fields_from_arrow
from everview.relational.nodes import Field
from everview.relational.types import INT64, NULL, Array

SCHEMA = pa.schema(
    [
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("day", pa.date32()),
        ("number", pa.int64()),
        ("ratio", pa.float64()),
        ("money", pa.decimal128(25, 2)),
        ("text", pa.string()),
        ("raw", pa.binary()),
    ]
)
FIELDS = fields_from_arrow(SCHEMA)
VALUES = st.tuples(
    st.none() | st.booleans(),
    st.none() | st.sampled_from([0, 1, -1]),
    st.none() | st.sampled_from([0, 256, -256]),
    st.none() | st.sampled_from([0, 1]),
    st.none() | st.sampled_from([0, 2**40]),
    st.none() | st.sampled_from([0.0, 1.5]),
    st.none() | st.sampled_from([decimal.Decimal("0.01"), decimal.Decimal(2) ** 70]),
    st.none() | st.sampled_from(["", "a", "abcdefgh", "abcdefghi", "abcdefgh!"]),
    st.none() | st.sampled_from([b"", b"\0"]),
)


def batch(rows: list[tuple[object, ...]], skipped: int) -> pa.RecordBatch:
    """Rows as a batch whose arrays begin later than their buffers."""
    rows = rows[:1] * skipped + rows
    columns = [pa.array([row[i] for row in rows], f.type) for i, f in enumerate(SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(FIELDS)).slice(skipped)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(VALUES, min_size=1, max_size=4),
    st.lists(st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_rows_are_same_exactly_when_all_values_are(
    ours: list[tuple[object, ...]], theirs: list[list[tuple[object, ...]]], skipped: int, others_skipped: int
) -> None:
    """For values of every width, NULLs, text of any length, slices, and several batches to compare with."""
    left, right = batch(ours, skipped), [batch(rows, others_skipped) for rows in theirs]
    pairs = [(i, b, j) for i in range(len(ours)) for b, rows in enumerate(theirs) for j in range(len(rows))] * 3
    rows, homes, others = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    places = np.concatenate([places_of(b) for b in right])
    same = rows_are_same(widths_of(FIELDS), places_of(left), rows, places, homes, others)
    assert same.tolist() == [ours[i] == theirs[b][j] for i, b, j in pairs]


def test_nested_columns_are_not_compared() -> None:
    """Lists and structs are left to others."""
    assert are_comparable(FIELDS)
    assert not are_comparable((*FIELDS, Field("list", Array(INT64, True), True)))
    assert not are_comparable((Field("nothing", NULL, True),))
