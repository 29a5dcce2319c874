"""Copies of segments find exactly the rows that have a key, stay within their budget, and go with their segments."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from everview.backends.spark import lookup_copies, packed_rows, segment_copies
from everview.backends.spark.lookup_copies import FIRST_COPIED, LookupCopies
from everview.backends.spark.relation_store import clustered
from everview.backends.spark.segments import Segment, by_position, write_segment
from everview.errors import CorruptDatabase
from everview.relational.nodes import Field
from everview.relational.types import BINARY, BOOLEAN, DATE, FLOAT32, FLOAT64, INT8, INT64, STRING, TIMESTAMP_NTZ, Array
from everview.relational.types import Decimal as DecimalType

ROWS = 1000
FIELDS = (
    Field("ascending", INT64, False),
    Field("mixed", INT64, True),
    Field("text", STRING, True),
    Field("price", DecimalType(12, 2), True),
    Field("wide", DecimalType(30, 2), True),
    Field("day", DATE, True),
    Field("at", TIMESTAMP_NTZ, True),
    Field("gaps", INT64, True),
    Field("ratio", FLOAT64, True),
)
_START = datetime.date(2020, 1, 1)
_MIDNIGHT = datetime.datetime(2020, 1, 1)


def _rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    mixed = rng.integers(-50, 50, ROWS).tolist()
    columns: list[tuple[list[Any], pa.DataType]] = [
        ([i // 3 for i in range(ROWS)], pa.int64()),
        (mixed, pa.int64()),
        ([f"t{m}" for m in mixed], pa.string()),
        ([Decimal(m) / 4 for m in mixed], pa.decimal128(12, 2)),
        ([Decimal(m) / 4 for m in mixed], pa.decimal128(30, 2)),
        ([_START + datetime.timedelta(m) for m in mixed], pa.date32()),
        ([_MIDNIGHT + datetime.timedelta(hours=m) for m in mixed], pa.timestamp("us")),
        ([None if m % 7 == 0 else m for m in mixed], pa.int64()),
        ([m / 2 for m in mixed], pa.float64()),
    ]
    return pa.table([pa.array(v, t) for v, t in columns], names=[f.name for f in FIELDS])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for segments; copies have several batches."""
    monkeypatch.setattr(segment_copies, "_BATCH_ROWS", 300)
    folder = tmp_path / "relation"
    folder.mkdir()
    return folder


def _copied(copies: LookupCopies, place: Path, segments: list[Segment], by: int, keys: pa.Array) -> pa.Table | None:
    """What the first look-up with copies finds; None if it leaves every segment to Spark."""
    wanted = (2, by, 0)
    for _ in range(FIRST_COPIED - 1):
        copies.rows(place, segments, FIELDS, wanted, by, pa.chunked_array([keys]))
    found, left = copies.rows(place, segments, FIELDS, wanted, by, pa.chunked_array([keys]))
    assert left in ([], segments)
    return None if left else found


@pytest.mark.parametrize("by", range(8), ids=[f.name for f in FIELDS[:8]])
def test_finds_the_rows_with_a_key(place: Path, tmp_path: Path, by: int) -> None:
    """Sorted or not, with NULLs or without, numbers or texts: the rows that have one of the values, from all segments."""
    tables = [_rows(1), _rows(2)]
    segments = [write_segment(place, t, FIELDS) for t in tables]
    whole = pa.concat_tables(tables)
    keys = pc.unique(whole.column(by).combine_chunks()).take(pa.array([0, 5, 9]))
    if by == 7:
        keys = pa.concat_arrays([keys.drop_null(), pa.nulls(1, keys.type)])
    found = _copied(LookupCopies(tmp_path / "copies"), place, segments, by, keys)
    expected = whole.filter(pc.is_in(whole.column(by), value_set=keys)).select([2, by, 0])
    assert found is not None
    assert 0 < expected.num_rows < whole.num_rows
    assert sorted(found.to_pylist(), key=str) == sorted(by_position(expected).to_pylist(), key=str)


def test_columns_are_copied_when_they_are_asked_for(place: Path, tmp_path: Path) -> None:
    """A later look-up may want other columns and search by another one; what was copied stays."""
    segment = write_segment(place, _rows(1), FIELDS)
    copies = LookupCopies(tmp_path / "copies")
    _copied(copies, place, [segment], 0, pa.array([5]))
    first = copies.bytes
    found, _ = copies.rows(place, [segment], FIELDS, (8, 6), 1, pa.chunked_array([[3]]))
    assert copies.bytes > first > 0
    rows = _rows(1)
    assert by_position(found).equals(by_position(rows.filter(pc.equal(rows.column(1), 3)).select([8, 6])))
    nothing, left = copies.rows(place, [segment], FIELDS, (8, 6), 1, pa.chunked_array([pa.array([999])]))
    assert not left
    assert nothing.num_rows == 0
    assert nothing.schema.types == [pa.float64(), pa.timestamp("us")]


def test_spark_searches_first_and_what_does_not_fit(place: Path, tmp_path: Path) -> None:
    """One look-up is not worth a copy, floats have several forms, and the budget is a bound for all copies together."""
    segment = write_segment(place, _rows(1), FIELDS)
    copies = LookupCopies(tmp_path / "copies")
    keys = pa.chunked_array([pa.array([5])])
    none, left = copies.rows(place, [segment], FIELDS, (0,), 0, keys)
    assert (none.num_rows, left) == (0, [segment])
    some, left = copies.rows(place, [segment], FIELDS, (0,), 0, keys)
    assert (some.num_rows, left) == (3, [])
    assert _copied(copies, place, [segment], 8, pa.array([0.5])) is None
    for budget in (0, ROWS * 8):
        small = LookupCopies(tmp_path / "small", budget)
        assert _copied(small, place, [segment], 0, pa.array([5])) is None
        assert small.bytes == 0


def test_a_column_beyond_one_array_is_left_to_spark(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text that Arrow has to cut into two arrays would shift the rows of one column against those of the others."""
    segment = write_segment(place, _rows(1), FIELDS)
    parts = segment_copies._even_parts
    read = []

    def cut(source: Any, names: list[str]) -> Any:
        read.append(source)
        for part in parts(source, names):
            yield pa.concat_tables([part.slice(0, 7), part.slice(7)])

    monkeypatch.setattr(segment_copies, "_even_parts", cut)
    copies = LookupCopies(tmp_path / "copies")
    assert _copied(copies, place, [segment], 0, pa.array([5])) is None
    assert len(read) == 1
    assert copies.bytes == 0
    assert _copied(copies, place, [segment], 0, pa.array([5])) is None
    assert len(read) == 1, "it is not tried again"


def test_what_fits_is_copied_and_only_the_rest_is_left(place: Path, tmp_path: Path) -> None:
    """A new segment of a relation is copied at once; where it does not fit, Spark searches it and nothing else."""
    first, second = (write_segment(place, _rows(seed), FIELDS) for seed in (1, 2))
    copies = LookupCopies(tmp_path / "copies", 40 * ROWS)
    keys = pa.chunked_array([pa.array([5])])
    for _ in range(FIRST_COPIED):
        copies.rows(place, [first], FIELDS, (0, 1), 0, keys)
    found, left = copies.rows(place, [first, second], FIELDS, (0, 1), 0, keys)
    assert (found.num_rows, left) == (3, [second])
    roomy = LookupCopies(tmp_path / "roomy")
    for _ in range(FIRST_COPIED):
        roomy.rows(place, [first], FIELDS, (0, 1), 0, keys)
    found, left = roomy.rows(place, [first, second], FIELDS, (0, 1), 0, keys)
    assert (found.num_rows, left) == (6, [])


def test_a_full_disk_leaves_the_search_to_spark(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that cannot be written is no error."""

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    segment = write_segment(place, _rows(1), FIELDS)
    monkeypatch.setattr(lookup_copies, "write_copy", full)
    assert _copied(LookupCopies(tmp_path / "copies"), place, [segment], 0, pa.array([5])) is None


def test_copies_go_with_their_segments(place: Path, tmp_path: Path) -> None:
    """Nothing is left of a segment that is forgotten, nor of any after closing or before opening."""
    segment = write_segment(place, _rows(1), FIELDS)
    folder = tmp_path / "copies"
    copies = LookupCopies(folder)
    _copied(copies, place, [segment], 1, pa.array([5]))
    assert any(folder.rglob("*.rows"))
    copies.forget(place / segment.path)
    assert copies.bytes == 0
    assert not any(folder.rglob("*.rows"))
    _copied(copies, place, [segment], 1, pa.array([5]))
    LookupCopies(folder)
    assert not folder.exists()
    copies.close()
    assert not folder.exists()


def test_a_damaged_segment_is_named(place: Path, tmp_path: Path) -> None:
    """Copying reads the segment as anything else does: what is missing or cut short is said."""
    segment = write_segment(place, _rows(1), FIELDS)
    path = place / segment.path
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with pytest.raises(CorruptDatabase, match=segment.path):
        _copied(LookupCopies(tmp_path / "copies"), place, [segment], 0, pa.array([5]))
    path.write_bytes(b"\0" * (len(whole) // 2) + whole[len(whole) // 2 :])
    with pytest.raises(CorruptDatabase, match=segment.path):
        _copied(LookupCopies(tmp_path / "copies"), place, [segment], 0, pa.array([5]))


def test_rows_are_sorted_by_their_key() -> None:
    """Large segments are sorted, so that a range of keys is in few row groups; rows that ascend already stay as they are."""
    rows = pa.table([pa.array([3, 1, 2, 1]), pa.array(["a", "c", "b", "a"])], names=["x", "y"])
    assert clustered(rows, (0, 1)).to_pylist() == [
        {"c0": 1, "c1": "a"},
        {"c0": 1, "c1": "c"},
        {"c0": 2, "c1": "b"},
        {"c0": 3, "c1": "a"},
    ]
    assert clustered(rows, ()) is rows
    ascending = rows.slice(1, 2)
    assert clustered(ascending, (0,)) is ascending


@pytest.mark.parametrize("by", [0, 1, 3, 5], ids=[FIELDS[b].name for b in (0, 1, 3, 5)])
def test_bytes_read_are_the_pages_touched(tmp_path: Path, by: int) -> None:
    """A look-up by few keys reads few pages of a copy that has many, and one by all keys no more than there are."""
    place = tmp_path / "relation"
    place.mkdir()
    fields = (FIELDS[by], FIELDS[2])
    rows = pa.concat_tables([_rows(seed) for seed in range(200)]).select([by, 2])
    segment = write_segment(place, rows, fields)
    copies = LookupCopies(tmp_path / "copies")
    keys = pc.unique(rows.column(0)).drop_null()

    def read(some: pa.Array) -> int:
        before = copies.bytes_read
        copies.rows(place, [segment], fields, (1,), 0, pa.chunked_array([some]), may_copy=True)
        return copies.bytes_read - before

    assert read(keys[:1]) >= segment.size / 2, "the columns are copied"
    few, most = read(keys[:1]), read(keys)
    rows_of_one = rows.num_rows // len(keys)
    assert packed_rows.PAGE <= few <= 2 * packed_rows.PAGE + 64 * rows_of_one
    assert few < most <= 3 * copies.bytes


def _random(rows: int, keys: int) -> pa.Table:
    """Keys in no order, and columns of all kinds that files have: in records, and too wide for them."""
    rng = np.random.default_rng(rows)
    numbers = rng.integers(0, keys, rows).tolist()
    some = [None if n % 5 == 0 else n for n in numbers]
    columns: list[tuple[list[Any], pa.DataType]] = [
        (numbers, pa.int64()),
        ([None if n is None else f"{n}é" * (n % 40) for n in some], pa.string()),
        ([None if n is None else bytes([n % 256] * (n % 9)) for n in some], pa.binary()),
        ([None if n is None else n % 2 == 0 for n in some], pa.bool_()),
        ([None if n is None else [n, None] * (n % 3) for n in some], pa.list_(pa.int64())),
        ([None if n is None else float(n) for n in some], pa.float32()),
        ([None if n is None else Decimal(-n) / 100 for n in some], pa.decimal128(30, 2)),
        ([n % 100 for n in numbers], pa.int8()),
        ([Decimal(-n) / 100 for n in numbers], pa.decimal128(9, 2)),
    ]
    return pa.table([pa.array(v, t) for v, t in columns], names=[f.name for f in _KINDS])


_KINDS = tuple(
    Field(f"k{i}", t, True)
    for i, t in enumerate(
        (INT64, STRING, BINARY, BOOLEAN, Array(INT64, True), FLOAT32, DecimalType(30, 2), INT8, DecimalType(9, 2))
    )
)


@pytest.mark.parametrize(
    "by", [0, 2, 3, 6, 1, 8], ids=["number", "binary", "bool", "decimal", "long text", "short decimal"]
)
def test_columns_of_all_kinds_come_back_as_they_were(place: Path, tmp_path: Path, by: int) -> None:
    """Narrow or wide, with NULLs, asked for at once or later, opened by another process: the same values."""
    rows = _random(1000, 300)
    segment = write_segment(place, rows, _KINDS)
    keys = rows.column(by).combine_chunks().take(pa.array([3, 4, 5, 6, 7]))
    expected = rows.filter(pc.is_in(rows.column(by), value_set=keys))
    first, second = (LookupCopies(tmp_path / "shared", is_shared=True) for _ in range(2))
    for copies, columns in ((first, (7, by)), (first, tuple(range(9))), (second, (4, 1)), (second, (8, 0, 3, 2))):
        asked = pa.chunked_array([keys])
        found, left = copies.rows(place, [segment], _KINDS, columns, by, asked, may_copy=copies is first)
        assert not left, "the second finds what the first has copied"
        wanted = by_position(expected.select(columns))
        assert found.schema.types == wanted.schema.types
        assert sorted(found.to_pylist(), key=str) == sorted(wanted.to_pylist(), key=str)
    assert expected.num_rows >= 5


def test_pages_touched_do_not_grow_with_the_segment(place: Path, tmp_path: Path) -> None:
    """The same number of keys, scattered or neighbours, touches as many pages of ten times the rows."""
    fields = (Field("k", INT64, False), Field("text", STRING, True), Field("n", INT64, True))
    pages: dict[str, list[int]] = {"scattered": [], "neighbours": [], "absent": []}
    for rows in (50_000, 500_000):
        keys = np.random.default_rng(1).permutation(rows) * 2
        table = pa.table([keys, [f"t{k}" for k in keys % 1000], keys], names=["k", "text", "n"])
        segment = write_segment(place, table, fields)
        copies = LookupCopies(tmp_path / str(rows))
        for name, asked in (
            ("absent", np.array([-1, 2 * rows])),
            ("scattered", np.linspace(0, 2 * rows - 2, 20).astype(np.int64) // 2 * 2),
            ("neighbours", np.arange(rows, rows + 200)),
        ):
            copies.rows(place, [segment], fields, (1, 2), 0, pa.chunked_array([[0]]), may_copy=True)
            before = copies.bytes_read
            found, _ = copies.rows(place, [segment], fields, (1, 2), 0, pa.chunked_array([asked]))
            assert found.num_rows == {"absent": 0, "scattered": 20, "neighbours": 100}[name]
            pages[name].append((copies.bytes_read - before) // packed_rows.PAGE)
    assert pages["scattered"][1] <= 21
    assert pages["neighbours"][1] <= 4
    assert pages["absent"][1] <= 1
    assert all(large <= small + 1 for small, large in pages.values())
