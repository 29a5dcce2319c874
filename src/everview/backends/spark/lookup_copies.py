"""Copies of large segments in which rows are looked up, at the driver or in tasks: uncompressed Arrow columns, memory-mapped.

Parquet cannot give out single rows: a small change that is scattered over a large segment would decode nearly all of it. A
copy holds the columns that look-ups have asked for, a file each, and per searched column either the fact that its batches
are sorted or their sorted order, so that k keys are found in O(k log n) and only the memory pages of their rows are read.

Contract: a copy is a cache of an immutable file. The driver's belong to its process; the folder is emptied when the database is
opened or closed. Those of an executor are *shared* by its Python workers and outlive them: a file appears whole, by rename,
under a name made of its segment's, which is never used again, so that a stale one is never read. All copies together stay below
a number of bytes; shared ones make room by the longest unused going, others leave what does not fit to be searched elsewhere.
The first look-up in a relation makes no copy, so that a process that makes one small change does not pay for copying.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.spark.row_hashes import ROW_HASH, row_hashes, without_hash
from everview.backends.spark.segments import (
    Segment,
    SegmentFile,
    decode,
    empty_rows,
    encode,
    stored_type,
)
from everview.relational.arrow import arrow_type
from everview.relational.nodes import Schema
from everview.relational.types import Array, DataType, Map, Null, Struct, is_floating

LOOKUP_BYTES: Final = 16 * 2**30
"""The default for all copies together. They are files: memory is the operating system's, which takes it back when needed."""
COPIES: Final = "_copies"
"""The folder of a database in which copies of tasks are kept that run beside the driver."""
FREE_SHARE: Final = 0.5
"""At most this share of the disk's free space is taken at once."""
FIRST_COPIED: Final = 2
"""The look-up in a relation with which copying begins."""
PAGE: Final = 4096
"""Bytes of a memory page: the least that is read of a file that is mapped."""
_BATCH_ROWS: Final = 1 << 20
_STRING_WIDTH: Final = 32
"""What a value of unknown width is taken to need, in bytes."""

Numbers = npt.NDArray[np.integer[Any]]
Positions = npt.NDArray[np.int64]


class _TooLong(Exception):
    """A part of a column has more text than one Arrow array can hold."""


@dataclass
class _Column:
    """One column of a segment: its batches, and for those that are not sorted by it their order."""

    batches: list[pa.Array]
    orders: dict[int, tuple[Numbers, Positions | None]] = field(default_factory=dict)


@dataclass
class _Copy:
    folder: Path
    columns: dict[int, _Column] = field(default_factory=dict)
    bytes: int = 0


class LookupCopies:
    """The copies of one database.

    Args:
        folder: Where they are; its content is removed now and by ``close``.
        budget: The most bytes that all of them together may take; 0 for no copies at all.
        is_shared: Whether other processes have the same folder: what is in it is used, and stays.
    """

    def __init__(self, folder: Path, budget: int = LOOKUP_BYTES, *, is_shared: bool = False) -> None:
        self._folder = folder
        self._budget = budget
        self._is_shared = is_shared
        self._copies: dict[Path, _Copy] = {}
        self._asked: Counter[Path] = Counter()
        self._too_long: set[Path] = set()
        self._made = 0
        self.bytes_read = 0
        """Of copies the memory pages that look-ups have touched, and of segments the columns that were copied."""
        self._lock = threading.RLock()
        if not is_shared:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def are_on(self) -> bool:
        """Whether there may be any."""
        return self._budget > 0

    @property
    def bytes(self) -> int:
        """What all copies take now."""
        if self._is_shared:
            return sum(_size(path) for path in self._folder.rglob("*.*"))
        return sum(c.bytes for c in self._copies.values())

    def rows(
        self,
        place: Path,
        segments: list[Segment],
        fields: Schema,
        columns: tuple[int, ...],
        by: int,
        keys: pa.ChunkedArray,
        *,
        may_copy: bool | None = None,
    ) -> tuple[pa.Table, list[Segment]]:
        """The rows of segments that have one of the keys in a column, and the segments that are left for Spark to search.

        Args:
            place: The relation's folder.
            segments: Where to look.
            fields: What is in their files, and behind it the row's hash.
            columns: The columns wanted, as positions in ``fields``.
            by: The column searched, another or one of them.
            keys: Values of it.
            may_copy: Whether copies may be made now; by default from the second look-up in a relation on.

        Raises:
            CorruptDatabase: a segment is missing or not what was written.
        """
        own = tuple(fields[c] for c in columns)
        if not _is_searchable(fields[by].type):
            return empty_rows(own), segments
        encoded = encode(pa.table([keys], names=["k"]), (fields[by],)).column(0)
        with self._lock:
            self._asked[place] += 1
            found: list[list[pa.Array]] = []
            left = []
            for segment in segments:
                may_make = self._asked[place] >= FIRST_COPIED if may_copy is None else may_copy
                copy = self._copy_of(place, segment, fields, tuple(dict.fromkeys((*columns, by))), may_make)
                if copy is None:
                    left.append(segment)
                    continue
                for number, positions in self._search(copy, by, encoded):
                    batches = [copy.columns[c].batches[number] for c in columns]
                    self.bytes_read += sum(bytes_taken(batch, positions) for batch in batches)
                    found.append([batch.take(pa.array(positions)) for batch in batches])
        if not found:
            return empty_rows(own), left
        arrays = [pa.chunked_array(parts).combine_chunks() for parts in zip(*found, strict=True)]
        return decode(pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))]), own), left

    def forget(self, path: Path) -> None:
        """Removes the copy of a segment that is gone."""
        with self._lock:
            copy = self._copies.pop(path, None)
            if copy is not None:
                shutil.rmtree(copy.folder, ignore_errors=True)

    def close(self) -> None:
        """Removes all copies."""
        with self._lock:
            self._copies.clear()
            self._asked.clear()
            shutil.rmtree(self._folder, ignore_errors=True)

    # Copying

    def _copy_of(
        self, place: Path, segment: Segment, fields: Schema, wanted: tuple[int, ...], may_make: bool
    ) -> _Copy | None:
        """The copy of a segment with these columns, made now if that is worth it and possible."""
        path = place / segment.path
        copy = self._copies.get(path)
        if copy is None and self._is_shared:
            copy = self._copies[path] = _Copy(self._folder / name_of_copy(path, segment))
        if copy is not None and self._is_shared:
            self._open_there(copy, wanted)
        missing = [c for c in wanted if copy is None or c not in copy.columns]
        if not missing:
            return copy
        if not may_make or path in self._too_long:
            return None
        needed = segment.rows * _width(fields, missing)
        if self._is_shared:
            self._make_room(needed, copy)
        if self.bytes + needed > self._budget or needed > FREE_SHARE * _free_bytes(self._folder):
            return None
        if copy is None:
            copy = _Copy(self._folder / str(self._made))
            self._made += 1
        return self._extended(copy, path, segment, fields, missing)

    def _open_there(self, copy: _Copy, wanted: tuple[int, ...]) -> None:
        """Opens the columns that another process has copied, and notes that the copy is in use."""
        for column in wanted:
            made = copy.folder / f"{column}.arrow"
            if column not in copy.columns and made.exists():
                copy.columns[column] = _opened(made)
        if copy.folder.exists():
            os.utime(copy.folder)

    def _make_room(self, needed: int, own: _Copy | None) -> None:
        """Removes the copies that have been unused for longest, until there is room; whoever has one open keeps reading it."""
        taken = self.bytes
        there = [f for f in self._folder.glob("*") if own is None or f != own.folder]
        for folder in sorted(there, key=lambda f: f.stat().st_mtime):
            if taken + needed <= self._budget:
                return
            taken -= sum(_size(path) for path in folder.glob("*.*"))
            shutil.rmtree(folder, ignore_errors=True)

    def _extended(self, copy: _Copy, path: Path, segment: Segment, fields: Schema, wanted: list[int]) -> _Copy | None:
        """The copy with further columns; None if they cannot be written."""
        files = [copy.folder / f"{c}.arrow" for c in wanted]
        scratch = [f.with_suffix(f".{os.getpid()}") for f in files]
        try:
            copy.folder.mkdir(parents=True, exist_ok=True)
            self.bytes_read += _write_columns(path, segment, fields, wanted, scratch)
            for written, made in zip(scratch, files, strict=True):
                os.replace(written, made)
        except (
            OSError,
            _TooLong,
        ) as error:  # the disk is full, say; what is wrong with the segment is a CorruptDatabase
            if isinstance(error, _TooLong):
                self._too_long.add(path)
            for made in (*files, *scratch):
                made.unlink(missing_ok=True)
            return None
        for column, made in zip(wanted, files, strict=True):
            copy.columns[column] = _opened(made)
            copy.bytes += _size(made)
        self._copies[path] = copy
        return copy

    # Searching

    def _search(self, copy: _Copy, by: int, keys: pa.ChunkedArray) -> Iterator[tuple[int, Positions]]:
        """Where the keys are: the batches that have some, and their positions there, ascending."""
        column = copy.columns[by]
        if not column.batches:
            return
        asked = keys.combine_chunks().cast(column.batches[0].type)
        numbers = numbers_of(asked.drop_null())
        if numbers is not None:
            numbers = np.unique(numbers)
        for number, batch in enumerate(column.batches):
            if numbers is None or batch.null_count:
                positions = np.flatnonzero(pc.is_in(batch, value_set=asked).to_numpy(zero_copy_only=False))
                self.bytes_read += batch.nbytes
            else:
                if number not in column.orders:
                    column.orders[number] = self._order(copy, by, number)
                positions, touched = _positions(*column.orders[number], numbers)
                self.bytes_read += touched
            if len(positions):
                yield number, positions

    def _order(self, copy: _Copy, by: int, number: int) -> tuple[Numbers, Positions | None]:
        """The values of a batch ascending, and where each was; None in the second place if they ascend as they are."""
        values = numbers_of(copy.columns[by].batches[number])
        assert values is not None
        ascends = copy.folder / f"{by}.{number}.ascends"
        if self._is_shared and ascends.exists():
            return values, None
        files = [copy.folder / f"{by}.{number}.{name}.npy" for name in ("values", "order")]
        if self._is_shared and all(f.exists() for f in files):
            return np.load(files[0], mmap_mode="r"), np.load(files[1], mmap_mode="r")
        self.bytes_read += values.nbytes
        if bool(np.all(values[1:] >= values[:-1])):
            ascends.touch()
            return values, None
        order = np.argsort(values, kind="stable")
        kept = []
        for path, array in zip(files, (values[order], order), strict=True):
            scratch = path.with_suffix(f".{os.getpid()}.npy")
            np.save(scratch, array)
            kept.append(np.load(scratch, mmap_mode="r"))
            os.replace(scratch, path)
            copy.bytes += _size(path)
        return kept[0], kept[1]


def name_of_copy(path: Path, segment: Segment) -> str:
    """The folder of a segment's copy among shared ones."""
    return hashlib.sha1(f"{path} {segment}".encode()).hexdigest()


def _opened(file: Path) -> _Column:
    source = pa.ipc.open_file(pa.memory_map(str(file)))
    return _Column([source.get_batch(i).column(0) for i in range(source.num_record_batches)])


def _size(path: Path) -> int:
    """The bytes of a file; none of one that another process has removed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _positions(ordered: Numbers, order: Positions | None, keys: Numbers) -> tuple[Positions, int]:
    """Where the keys, which ascend, are in a batch that is not empty, ascending; and the bytes of the pages touched."""
    # A segment is sorted by its key: most keys of a look-up are in other batches, and are left out before they are searched.
    keys = keys[np.searchsorted(keys, ordered[0], "left") : np.searchsorted(keys, ordered[-1], "right")]
    if not len(keys):
        return np.zeros(0, dtype=np.int64), 2 * PAGE
    first = np.searchsorted(ordered, keys, "left")
    counts = np.searchsorted(ordered, keys, "right") - first
    # The runs first[i], first[i] + 1, … of counts[i] places, one after the other.
    places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    touched = _bytes_searched(ordered, first)
    if order is None:
        return places, touched
    return np.sort(order[places]), touched + _pages(places * order.itemsize)


def _pages(offsets: Numbers) -> int:
    """The bytes of the pages in which the values at these offsets, which ascend, begin."""
    return PAGE * int(np.count_nonzero(np.diff(offsets // PAGE)) + 1) if len(offsets) else 0


def _bytes_searched(ordered: Numbers, ends: Positions) -> int:
    """The pages that binary searches touch which end at these places: on level d at most 2^d, and at most one for each end."""
    width = ordered.strides[0]
    leaves = _pages(ends * width)
    levels = (len(ordered) * width // PAGE).bit_length()
    return leaves + sum(min(PAGE << level, leaves) for level in range(levels))


def bytes_taken(batch: pa.Array, positions: Positions) -> int:
    """The memory pages of a batch in which the values at these positions, which ascend, lie.

    >>> bytes_taken(pa.array(range(10_000)), np.array([0, 1, 600, 9_999]))
    12288
    """
    kind = batch.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        ends = np.frombuffer(batch.buffers()[1], np.int32)[batch.offset :]
        starts = ends[positions]
        long = (ends[positions + 1] - starts) // PAGE
        return _pages((positions + batch.offset) * 4) + _pages(starts.astype(np.int64)) + PAGE * int(long.sum())
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return _pages((positions + batch.offset) * kind.bit_width // 8)
    return int(batch.nbytes) * len(positions) // len(batch)


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
    elif pa.types.is_decimal128(kind) and kind.precision <= 18:  # the low word of two has all digits and the sign
        found = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :: 2][: len(array)]
    return found


def _is_searchable(data_type: DataType) -> bool:
    """Not floats, which have several forms of a value, and not what Arrow cannot compare."""
    return not is_floating(data_type) and not isinstance(data_type, Array | Struct | Map | Null)


def _write_columns(path: Path, segment: Segment, fields: Schema, wanted: list[int], files: list[Path]) -> int:
    """Copies columns of a segment, each into a file; returns the bytes read."""
    source = SegmentFile(path, segment, without_hash(fields))
    there = source.schema.names
    names = [there[c] if c < len(there) else ROW_HASH.name for c in wanted]
    read = there if ROW_HASH.name in names else names
    with ExitStack() as stack:
        writers: list[pa.RecordBatchFileWriter] = []
        for part in _even_parts(source, read):
            columns = [hashes_of(part) if n == ROW_HASH.name else part.column(n) for n in names]
            schemas = [pa.schema([pa.field("c", c.type)]) for c in columns]
            if not writers:
                writers = [stack.enter_context(pa.ipc.new_file(str(f), s)) for f, s in zip(files, schemas, strict=True)]
            for column, schema, writer in zip(columns, schemas, writers, strict=True):
                if column.num_chunks > 1:  # its batches would be others than those of the other columns
                    raise _TooLong
                writer.write_table(pa.Table.from_arrays([column], schema=schema))
    return source.bytes_of(read)


def hashes_of(stored: pa.Table) -> pa.ChunkedArray:
    """The hashes of rows as they stand in files, whose last column is the weight."""
    return pa.chunked_array([row_hashes(stored.select(range(stored.num_columns - 1)))])


def _even_parts(source: SegmentFile, names: list[str]) -> Iterator[pa.Table]:
    """The rows in parts of one chunk each, cut at the same places whichever columns are read."""
    left = source.schema.empty_table().select(names)
    for part in source.batches(_BATCH_ROWS, names):
        left = pa.concat_tables([left, part])
        while left.num_rows >= _BATCH_ROWS:
            yield left.slice(0, _BATCH_ROWS).combine_chunks()
            left = left.slice(_BATCH_ROWS)
    if left.num_rows:
        yield left.combine_chunks()


def _width(fields: Schema, columns: list[int]) -> int:
    """About how many bytes a row takes: its columns, and an order of one of them."""
    types = [arrow_type(stored_type(fields[c].type)) for c in columns]
    flat = [t.bit_width // 8 if pa.types.is_primitive(t) or pa.types.is_decimal(t) else _STRING_WIDTH for t in types]
    return sum(flat) + 16


def _free_bytes(folder: Path) -> int:
    there = next(p for p in (folder, *folder.parents) if p.exists())
    return shutil.disk_usage(there).free
