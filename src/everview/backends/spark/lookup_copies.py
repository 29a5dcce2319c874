"""Copies of large segments in which rows are looked up, at the driver or in tasks: uncompressed, memory-mapped, sorted by key.

Parquet cannot give out single rows: a small change that is scattered over a large segment would decode nearly all of it. A
copy holds the columns that look-ups have asked for, for each searched column in files of rows sorted by it (``packed_rows``),
so that a look-up reads about a memory page a key, and of neighbouring keys less, however large the segment is.

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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.spark.packed_rows import ROW, PackedRows, are_hashed, key_numbers
from everview.backends.spark.segment_copies import TooLong, taken, write_copy
from everview.backends.spark.segments import Segment, decode, empty_rows, encode, stored_type
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
LAYOUT: Final = 3
"""Of what a copy consists: another version does not look at its files."""
_STRING_WIDTH: Final = 32
"""What a value of unknown width is taken to need, in bytes."""


@dataclass
class _Copy:
    """What there is of a segment: files of packed rows, by the column that they are sorted by, and wide columns."""

    folder: Path
    packed: dict[int, dict[str, PackedRows]] = field(default_factory=dict)
    wide: dict[int, list[pa.Array]] = field(default_factory=dict)
    bytes: int = 0

    def covering(self, by: int, wanted: tuple[int, ...]) -> tuple[list[PackedRows], set[int]]:
        """As few of its files sorted by a column as have the wanted ones, and those that none of them has."""
        left = {ROW if c in self.wide else c for c in wanted}
        chosen: list[PackedRows] = []
        files = list(self.packed.get(by, {}).values())
        while left and files:
            best = max(files, key=lambda f: len(left.intersection(f.columns)))
            if left.isdisjoint(best.columns):
                break
            chosen.append(best)
            left.difference_update(best.columns)
        return chosen, left


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
        encoded = encode(pa.table([keys], names=["k"]), (fields[by],)).column(0).combine_chunks()
        with self._lock:
            self._asked[place] += 1
            found: list[list[pa.Array]] = []
            left = []
            for segment in (s for s in segments if s.rows):
                may_make = self._asked[place] >= FIRST_COPIED if may_copy is None else may_copy
                wanted = tuple(dict.fromkeys((by, *columns)))
                copy = self._copy_of(place, segment, fields, wanted, may_make)
                if copy is None:
                    left.append(segment)
                    continue
                rows = self._search(copy, wanted, encoded)
                if rows is not None:
                    found.append([rows[c] for c in columns])
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
        """The copy of a segment with these columns, sorted by the first; made now if that is worth it and possible."""
        path = place / segment.path
        copy = self._copies.get(path)
        if copy is None and self._is_shared:
            copy = self._copies[path] = _Copy(self._folder / name_of_copy(path, segment))
        missing = set(wanted) if copy is None else copy.covering(wanted[0], wanted)[1]
        if missing and copy is not None and self._is_shared:
            self._open_there(copy, wanted)
            missing = copy.covering(wanted[0], wanted)[1]
        if copy is not None and self._is_shared and copy.folder.exists():
            os.utime(copy.folder)  # it is in use
        if not missing:
            return copy
        if not may_make or path in self._too_long:
            return None
        needed = segment.rows * _width(fields, [c for c in missing if c != ROW])
        if self._is_shared:
            self._make_room(needed, copy)
        if self.bytes + needed > self._budget or needed > FREE_SHARE * _free_bytes(self._folder):
            return None
        if copy is None:
            copy = _Copy(self._folder / str(self._made))
            self._made += 1
        return self._extended(copy, path, segment, fields, wanted)

    def _open_there(self, copy: _Copy, wanted: tuple[int, ...]) -> None:
        """Opens what is there, perhaps by another process, but for what yet another removes at this moment."""
        with suppress(FileNotFoundError):
            for column in wanted:
                made = copy.folder / f"{column}.arrow"
                if column not in copy.wide and made.exists():
                    copy.wide[column] = _opened(made)
            files = copy.packed.setdefault(wanted[0], {})
            for made in copy.folder.glob(f"{wanted[0]}-*.rows"):
                if made.name not in files:
                    files[made.name] = PackedRows(made)
                    self.bytes_read += files[made.name].bytes_opened

    def _make_room(self, needed: int, own: _Copy | None) -> None:
        """Removes the copies that have been unused for longest, until there is room; whoever has one open keeps reading it."""
        taken = self.bytes
        there = [f for f in self._folder.glob("*") if own is None or f != own.folder]
        for folder in sorted(there, key=lambda f: f.stat().st_mtime):
            if taken + needed <= self._budget:
                return
            taken -= sum(_size(path) for path in folder.glob("*.*"))
            shutil.rmtree(folder, ignore_errors=True)

    def _extended(
        self, copy: _Copy, path: Path, segment: Segment, fields: Schema, wanted: tuple[int, ...]
    ) -> _Copy | None:
        """The copy with what it lacks of the wanted columns; None if they cannot be written."""
        scratch = copy.folder / str(os.getpid())
        try:
            scratch.mkdir(parents=True, exist_ok=True)
            _, missing = copy.covering(wanted[0], wanted)
            self.bytes_read += write_copy(path, segment, fields, wanted[0], missing, scratch)
            for written in sorted(scratch.iterdir()):  # wide columns, which are named by numbers alone, first
                made = copy.folder / written.name
                os.replace(written, made)
                copy.bytes += _size(made)
            self._open_there(copy, wanted)
        except (
            OSError,
            TooLong,
        ) as error:  # the disk is full, say; what is wrong with the segment is a CorruptDatabase
            if isinstance(error, TooLong):
                self._too_long.add(path)
            return None
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if copy.covering(wanted[0], wanted)[1]:
            return None
        self._copies[path] = copy
        return copy

    # Searching

    def _search(self, copy: _Copy, wanted: tuple[int, ...], keys: pa.Array) -> dict[int, pa.Array] | None:
        """The wanted columns of the rows that have one of the keys in the first of them; None if there are no such rows."""
        by = wanted[0]
        files, _ = copy.covering(by, wanted)
        asked = keys.cast(files[0].key_type)
        numbers = np.unique(key_numbers(asked.drop_null()))
        places, searched = files[0].places(numbers, with_nulls=asked.null_count > 0)
        self.bytes_read += files[0].bytes_of(places, searched)
        if not len(places):
            return None
        self.bytes_read += sum(file.bytes_of(places, places[:0]) for file in files[1:])
        rows: dict[int, pa.Array] = {}
        for file in files:
            rows |= file.columns_of(file.records(places), (*wanted, ROW))
        for column in wanted:
            if column in copy.wide:
                rows[column], touched = taken(copy.wide[column], rows[ROW].to_numpy())
                self.bytes_read += touched
        if not are_hashed(asked.type):
            return rows
        are_asked = pc.is_in(rows[by], value_set=asked)
        return {column: rows[column].filter(are_asked) for column in wanted}


def name_of_copy(path: Path, segment: Segment) -> str:
    """The folder of a segment's copy among shared ones."""
    return hashlib.sha1(f"{LAYOUT} {path} {segment}".encode()).hexdigest()


def _opened(file: Path) -> list[pa.Array]:
    source = pa.ipc.open_file(pa.memory_map(str(file)))
    return [source.get_batch(i).column(0) for i in range(source.num_record_batches)]


def _size(path: Path) -> int:
    """The bytes of a file; none of one that another process has removed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _is_searchable(data_type: DataType) -> bool:
    """Not floats, which have several forms of a value, and not what Arrow cannot compare."""
    return not is_floating(data_type) and not isinstance(data_type, Array | Struct | Map | Null)


def _width(fields: Schema, columns: list[int]) -> int:
    """About how many bytes a row takes: its columns, and an order of one of them."""
    types = [arrow_type(stored_type(fields[c].type)) for c in columns]
    flat = [t.bit_width // 8 if pa.types.is_primitive(t) or pa.types.is_decimal(t) else _STRING_WIDTH for t in types]
    return sum(flat) + 16


def _free_bytes(folder: Path) -> int:
    there = next(p for p in (folder, *folder.parents) if p.exists())
    return shutil.disk_usage(there).free
