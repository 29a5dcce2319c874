"""Hashes of rows: equal for equal rows however they lie, and different for rows that differ in one value."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from everview.backends.spark.row_hashes import column_hashes, row_hashes

_COLUMNS = {
    "i": pa.array([1, None, -3, 1], pa.int32()),
    "s": pa.array(["a", None, "", "a"]),
    "b": pa.array([b"x", b"", None, b"x"], pa.binary()),
    "d": pa.array([Decimal("1.50"), None, Decimal("-2.00"), Decimal("1.50")], pa.decimal128(12, 2)),
    "w": pa.array([Decimal(10) ** 25, None, Decimal(1), Decimal(10) ** 25], pa.decimal128(30, 0)),
    "f": pa.array([0.5, None, float("nan"), 0.5], pa.float32()),
    "t": pa.array([datetime.datetime(2020, 1, 1), None, datetime.datetime(1960, 1, 1), datetime.datetime(2020, 1, 1)]),
    "day": pa.array([datetime.date(2020, 1, 1), None, datetime.date(1960, 1, 1), datetime.date(2020, 1, 1)]),
    "yes": pa.array([True, None, False, True]),
    "none": pa.nulls(4, pa.bool_()),
}


def test_equal_rows_have_equal_hashes_wherever_they_lie() -> None:
    """Pieces, slices, and other rows beside them do not matter; nor does the unit in which a file keeps times."""
    rows = pa.table(_COLUMNS)
    hashes = row_hashes(rows).to_pylist()
    assert hashes[0] == hashes[3]
    assert len(set(hashes)) == 3
    for start in range(4):
        assert row_hashes(rows.slice(start)).to_pylist() == hashes[start:]
    pieces = pa.concat_tables([rows.slice(0, 1), rows.slice(1, 2), rows.slice(3)])
    assert row_hashes(pieces).to_pylist() == hashes
    place = rows.column_names.index("t")
    finer = rows.set_column(place, "t", rows.column("t").cast(pa.timestamp("ns")))
    assert row_hashes(finer).to_pylist() == hashes


def test_each_value_counts() -> None:
    """A NULL in any column, or two columns exchanged, make other hashes."""
    rows = pa.table(_COLUMNS).slice(0, 1)
    known = {row_hashes(rows)[0].as_py()}
    for i, field in enumerate(rows.schema):
        if field.name != "none":
            known.add(row_hashes(rows.set_column(i, field.name, pa.nulls(1, field.type)))[0].as_py())
    assert len(known) == len(_COLUMNS)
    numbers = pa.table({"a": np.arange(1000), "b": np.arange(1000)[::-1]})
    both = pa.concat_tables([numbers, numbers.select(["b", "a"]).rename_columns(["a", "b"])])
    assert len(set(row_hashes(both).to_pylist())) == 1000


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_texts(kind: pa.DataType) -> None:
    """Each text has a number of its own, whatever texts are hashed with it; bytes count by their place, zeros too."""
    texts = ["", "\0", "\0\0", " ", "ab", "ba", "a", "aa", *(f"é{i}" for i in range(10_000))]
    hashes = column_hashes(pa.array(texts, pa.string()).cast(kind)).tolist()
    assert len(set(hashes)) == len(texts)
    for i in (0, 1, 7, 4_095, 4_096, 10_007):
        assert column_hashes(pa.array([texts[i]], pa.string()).cast(kind)).tolist() == [hashes[i]]
