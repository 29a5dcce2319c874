"""Rows of a segment sorted by one column and packed into memory pages, so that a look-up of a key touches about one page.

A file is a sequence of blocks, each of a memory page (of a few, where a row is wider) and as many rows as fit in: records of
the key, as a number, and of some columns in a fixed width. Behind them stand the first key of every block, the *directory*, and
what the file holds. The directory, 8 bytes for 4,096, is in the memory of whoever has the file open; blocks are mapped, and the
operating system is told not to read ahead. A key is in the blocks between two places of the directory; neighbours share
theirs. So what a look-up touches grows with the keys and the rows found, not with the segment.

A key is its value where that is an integer of some kind; else a hash of it, and whoever asks compares the values of the rows
found. Rows whose key is NULL stand at the end. Text has a fixed width up to ``NARROW`` bytes; longer text, arrays and structs
are *wide*: they are left in the order of the segment, and a record has the row's number there (``ROW``).

Contract: a file appears whole, by rename, and never changes. Files of a segment and a key have their rows in the same order,
whichever columns they hold, so that places found in one are good for all.
"""

from __future__ import annotations

import mmap
import os
import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.spark.row_hashes import column_hashes

PAGE: Final = 4096
"""Bytes of a memory page: the least that is read of a file that is mapped."""
NARROW: Final = 32
"""The most bytes of a text that stands in a record."""
ROW: Final = -1
"""In the place of a column: the row's number in the segment."""
_EXACT_DIGITS: Final = 18
"""The most digits of a decimal that is a number of 64 bits."""

Numbers = npt.NDArray[np.integer[Any]]
Positions = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class SegmentKeys:
    """Of the rows of a segment: each one's key as a number, and where the NULLs are, if there are some."""

    type: pa.DataType
    are_hashes: bool
    numbers: npt.NDArray[np.int64]
    are_null: npt.NDArray[np.bool_] | None

    def order(self) -> Positions | None:
        """The rows by key, those without one last; None if they stand so."""
        numbers = self.numbers
        if self.are_null is None:
            return None if bool(np.all(numbers[1:] >= numbers[:-1])) else np.argsort(numbers, kind="stable")
        there, absent = np.flatnonzero(~self.are_null), np.flatnonzero(self.are_null)
        return np.concatenate([there[np.argsort(numbers[there], kind="stable")], absent])

    @property
    def known(self) -> int:
        """How many are not NULL."""
        return len(self.numbers) - (0 if self.are_null is None else int(np.count_nonzero(self.are_null)))


@dataclass(frozen=True, slots=True)
class _Held:
    """What stands at the end of a file. ``types`` are those of ``columns``; NULL bits are one a column."""

    rows: int
    known: int
    key_type: pa.DataType
    columns: tuple[int, ...]
    types: tuple[pa.DataType, ...]
    record: np.dtype[np.void]
    directory: Numbers


class PackedRows:
    """A file that is open.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            end = file.seek(-8, os.SEEK_END)
            at = int.from_bytes(file.read(8))
            file.seek(at)
            held: _Held = pickle.loads(file.read(end - at))
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if hasattr(mmap, "MADV_RANDOM"):
            self._map.madvise(mmap.MADV_RANDOM)
        self._held = held
        self.columns = held.columns
        self.key_type = held.key_type
        self.bytes_opened = end + 8 - at
        """What was read to open it."""
        self._slots, self._pages = _slots(self._map, held.record, held.rows)

    def places(self, keys: Numbers, *, with_nulls: bool = False) -> tuple[Positions, Positions]:
        """The places of the rows that have one of the keys, which ascend and are distinct, and the blocks searched."""
        held, per_block = self._held, self._slots.shape[1]
        first = np.maximum(np.searchsorted(held.directory, keys, "left") - 1, 0)
        last = np.searchsorted(held.directory, keys, "right") - 1
        keys, first, last = keys[last >= 0], first[last >= 0], last[last >= 0]
        starts = self._bisected(keys, first * per_block, (first + 1) * per_block, "left")
        ends = self._bisected(keys, np.maximum(last * per_block, starts), (last + 1) * per_block, "right")
        places = runs(starts, ends - starts)
        if with_nulls:
            places = np.concatenate([places, np.arange(held.known, held.rows)])
        return places, np.concatenate([first, last])

    def _bisected(self, keys: Numbers, low: Positions, high: Positions, side: str) -> Positions:
        """From one place to another, the first whose key is as great as wanted, or on the right side greater."""
        per_block, values = self._slots.shape[1], self._slots["key"]
        high = np.minimum(high, self._held.known)
        while len(open_ := np.flatnonzero(low < high)):
            middle = (low[open_] + high[open_]) // 2
            found = values[np.divmod(middle, per_block)]
            is_before = found < keys[open_] if side == "left" else found <= keys[open_]
            low[open_[is_before]] = middle[is_before] + 1
            high[open_[~is_before]] = middle[~is_before]
        return low

    def records(self, places: Positions) -> Records:
        """The records at some places."""
        return self._slots[np.divmod(places, self._slots.shape[1])]

    def columns_of(self, records: Records, wanted: Collection[int]) -> dict[int, pa.Array]:
        """Those of the wanted columns that it has, of some records."""
        columns, types = self._held.columns, self._held.types
        are_there = np.unpackbits(records["known"], axis=1, count=len(columns), bitorder="little").astype(bool)
        return {
            column: _unpacked(records, column, kind, are_there[:, at])
            for at, (column, kind) in enumerate(zip(columns, types, strict=True))
            if column in wanted
        }

    def bytes_of(self, places: Positions, searched: Positions) -> int:
        """The bytes of the pages of rows at some places and of blocks that were searched."""
        are_touched = np.zeros(len(self._slots), dtype=bool)
        are_touched[places // self._slots.shape[1]] = True
        are_touched[searched] = True
        return PAGE * self._pages * int(np.count_nonzero(are_touched))


def key_numbers(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.int64]:
    """The keys of values without NULLs: the same number for the same value."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    numbers = numbers_of(array)
    return column_hashes(array).view(np.int64) if numbers is None else numbers.astype(np.int64, copy=False)


def numbers_of(array: pa.Array) -> Numbers | None:
    """An array without NULLs as integers that are equal and ordered as its values; None for a type that has no such form.

    >>> numbers_of(pa.array([3, 1], pa.int32())).tolist()
    [3, 1]
    >>> numbers_of(pa.array(["a"]))
    """
    kind = array.type
    found: Numbers | None = None
    if pa.types.is_signed_integer(kind):
        found = array.to_numpy()
    elif pa.types.is_date32(kind):
        found = array.view(pa.int32()).to_numpy()
    elif pa.types.is_timestamp(kind):
        found = array.view(pa.int64()).to_numpy()
    elif (
        pa.types.is_decimal128(kind) and kind.precision <= _EXACT_DIGITS
    ):  # the low word of two has all digits and the sign
        found = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :: 2][: len(array)]
    return found


def runs(starts: Positions, counts: Positions) -> Positions:
    """The places start, start + 1, … of each run, as many as it counts, one run after the other.

    >>> runs(np.array([3, 10, 20]), np.array([2, 0, 1])).tolist()
    [3, 4, 20]
    """
    return np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())


def is_narrow(kind: pa.DataType) -> bool:
    """Whether values of a type have a fixed width, if text is short."""
    return is_text(kind) or pa.types.is_decimal128(kind) or bool(pa.types.is_primitive(kind) and kind.bit_width <= 64)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are of bytes, as many as there are."""
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def write_packed(
    path: Path, by: int, keys: SegmentKeys, parts: Iterable[Mapping[int, pa.Array]], widths: Mapping[int, int]
) -> None:
    """Writes a file.

    Args:
        path: Where; nothing is there yet.
        by: The column whose values are the keys.
        keys: Of all rows.
        parts: The columns, some rows at a time, in the order of the segment.
        widths: The columns, of texts with the bytes of the longest.

    Raises:
        OSError: there is no room for it.
    """
    columns, count = tuple(widths), len(keys.numbers)
    order = keys.order()
    place_of: Positions | None = None
    if order is not None:
        place_of = np.empty(count, dtype=np.int64)
        place_of[order] = np.arange(count)
    done, types = 0, dict[int, pa.DataType]()
    with path.open("w+b") as file:
        for part in parts:
            rows = len(part[columns[0]])
            if not done:
                types = {c: part[c].type for c in columns}
                record = _record(types, widths, None if keys.are_hashes else by)
                slots, mapped = _room(file, record, count)
            records = np.zeros(rows, dtype=record)
            records["key"] = keys.numbers[done : done + rows]
            _pack(records, {c: part[c] for c in columns})
            places = np.arange(done, done + rows) if place_of is None else place_of[done : done + rows]
            slots[np.divmod(places, slots.shape[1])] = records
            done += rows
        assert done == count, "the parts are all rows"
        firsts = np.arange(0, keys.known, slots.shape[1])
        directory = keys.numbers[firsts if order is None else order[firsts]]
        del slots
        mapped.close()
        held = _Held(count, keys.known, keys.type, columns, tuple(types[c] for c in columns), record, directory)
        at = file.seek(0, os.SEEK_END)
        file.write(pickle.dumps(held) + at.to_bytes(8))


def _record(types: Mapping[int, pa.DataType], widths: Mapping[int, int], key: int | None) -> np.dtype[np.void]:
    """The key, a bit for each column that says whether there is a value, and the values but for those of the key."""
    values: list[Any] = []
    for column, kind in types.items():
        if column == key:
            continue
        if is_text(kind):
            values += [(f"size{column}", np.uint8), (f"c{column}", np.uint8, (max(1, widths[column]),))]
        elif pa.types.is_decimal128(kind) and kind.precision > _EXACT_DIGITS:
            values.append((f"c{column}", np.int64, (2,)))
        else:
            values.append((f"c{column}", _number(kind)))
    return np.dtype([("key", np.int64), ("known", np.uint8, ((len(types) + 7) // 8,)), *values])


def _number(kind: pa.DataType) -> np.dtype[Any]:
    """What a value of up to 64 bits stands as."""
    return np.dtype(f"i{1 if pa.types.is_boolean(kind) else 8 if pa.types.is_decimal(kind) else kind.bit_width // 8}")


def _room(file: Any, record: np.dtype[np.void], rows: int) -> tuple[Records, mmap.mmap]:
    """Room for the blocks, on the disk already: a mapped page that finds none would end the process."""
    pages, per_block = _shape(record)
    size = PAGE * pages * -(-rows // per_block)
    os.posix_fallocate(file.fileno(), 0, size)
    mapped = mmap.mmap(file.fileno(), size)
    return _slots(mapped, record, rows)[0], mapped


def _shape(record: np.dtype[np.void]) -> tuple[int, int]:
    """How many pages a block has, and how many rows."""
    pages = -(-record.itemsize // PAGE)
    return pages, pages * PAGE // record.itemsize


def _slots(mapped: mmap.mmap, record: np.dtype[np.void], rows: int) -> tuple[Records, int]:
    """The records by block and place in it, and the pages of a block."""
    pages, per_block = _shape(record)
    blocks = -(-rows // per_block)
    strides = (PAGE * pages, record.itemsize)
    return np.ndarray((blocks, per_block), record, mapped, strides=strides), pages


def _fields(records: Records) -> tuple[str, ...]:
    return records.dtype.names or ()


def _pack(records: Records, columns: Mapping[int, pa.Array]) -> None:
    """Writes columns into records."""
    are_there = np.ones((len(records), len(columns)), dtype=bool)
    for at, (column, array) in enumerate(columns.items()):
        if array.null_count:
            are_there[:, at] = array.is_valid().to_numpy(zero_copy_only=False)
        if f"c{column}" not in _fields(records):  # it is the key
            continue
        kind, target = array.type, records[f"c{column}"]
        if is_text(kind):
            _pack_text(records[f"size{column}"], target, array)
        elif pa.types.is_boolean(kind):
            target[:] = array.fill_null(False).to_numpy(zero_copy_only=False)
        elif pa.types.is_decimal128(kind):
            words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset :][: len(array)]
            target[:] = words if target.ndim > 1 else words[:, 0]
        else:
            target[:] = np.frombuffer(array.buffers()[1], target.dtype)[array.offset :][: len(array)]
    if columns:
        records["known"] = np.packbits(are_there, axis=1, bitorder="little")


def _pack_text(sizes: npt.NDArray[np.uint8], target: npt.NDArray[np.uint8], array: pa.Array) -> None:
    as_text = pa.Array.from_buffers(pa.string(), len(array), array.buffers(), array.null_count, array.offset)
    # Arrow's function for ASCII counts bytes, and so takes any.
    padded = pc.ascii_rpad(as_text.fill_null(""), target.shape[1], padding="\0")
    offset = np.frombuffer(padded.buffers()[1], np.int32)[padded.offset]
    target[:] = np.frombuffer(padded.buffers()[2], np.uint8)[offset:][: target.size].reshape(target.shape)
    sizes[:] = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)


def _unpacked(records: Records, column: int, kind: pa.DataType, are_there: npt.NDArray[np.bool_]) -> pa.Array:
    """A column of some records."""
    if f"c{column}" in _fields(records):
        values = np.ascontiguousarray(records[f"c{column}"])
    else:
        values = records["key"].astype(_number(kind))
    count = len(records)
    valid = None if are_there.all() else pa.array(are_there).buffers()[1]
    if is_text(kind):
        sizes = records[f"size{column}"].astype(np.int32)
        offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)])
        text = values[np.arange(values.shape[1]) < sizes[:, None]]
        return pa.Array.from_buffers(kind, count, [valid, pa.py_buffer(offsets), pa.py_buffer(text)])
    if pa.types.is_boolean(kind):
        return pa.array(values.astype(bool), mask=None if valid is None else ~are_there)
    if pa.types.is_decimal128(kind) and values.ndim == 1:
        values = np.stack([values, values >> 63], axis=1)  # the high word of two repeats the sign
    return pa.Array.from_buffers(kind, count, [valid, pa.py_buffer(values)])


def widest(arrays: Iterable[pa.Array]) -> int | None:
    """The bytes of the longest text; None if it is too long for a record."""
    most = 0
    for array in arrays:
        most = max(most, pc.max(pc.binary_length(array)).as_py() or 0)
        if most > NARROW:
            return None
    return most


def keys_of(arrays: Sequence[pa.ChunkedArray]) -> SegmentKeys:
    """The keys of a segment's rows."""
    nulls = [a.is_null().to_numpy() if a.null_count else np.zeros(len(a), dtype=bool) for a in arrays]
    numbers = [_numbers_or_zero(a, n) for a, n in zip(arrays, nulls, strict=True)]
    are_null, kind = np.concatenate(nulls), arrays[0].type
    return SegmentKeys(kind, are_hashed(kind), np.concatenate(numbers), are_null if are_null.any() else None)


def are_hashed(kind: pa.DataType) -> bool:
    """Whether keys of a type are hashes of the values, so that different values may have the same."""
    return numbers_of(pa.array([], kind)) is None


def _numbers_or_zero(column: pa.ChunkedArray, are_null: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    if not column.null_count:
        return key_numbers(column)
    found = np.zeros(len(column), dtype=np.int64)
    found[~are_null] = key_numbers(column.drop_null())
    return found
