"""Writes what look-ups need of a segment: files of packed rows (``packed_rows``), and columns that are too wide for them.

A wide column, of long text, arrays or structs, is an Arrow file of its own, uncompressed and memory-mapped, in the order of the
segment; it is written once, whatever the rows are looked up by.

Contract: memory for the keys of the segment, their order and a million rows is enough. What is not sorted yet is written to its
places in a mapped file, whose memory is the operating system's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from everview.backends.spark.packed_rows import (
    PAGE,
    ROW,
    Numbers,
    Positions,
    is_narrow,
    is_text,
    keys_of,
    widest,
    write_packed,
)
from everview.backends.spark.row_hashes import row_hashes, without_hash
from everview.backends.spark.segments import Segment, SegmentFile
from everview.relational.nodes import Schema

_BATCH_ROWS: Final = 1 << 20


class TooLong(Exception):
    """A part of a column has more text than one Arrow array can hold."""


def write_copy(path: Path, segment: Segment, fields: Schema, by: int, missing: set[int], folder: Path) -> int:
    """Writes columns of a segment into an empty folder.

    Args:
        path: The segment's file.
        segment: The segment, which has rows.
        fields: What is in the file, and behind it the row's hash.
        by: The column that rows are looked up by.
        missing: The columns to write, beside the weight, and ``ROW`` where rows are to be found in wide columns that are there.
        folder: Where to write: one file of packed rows named by ``by``, and one of each wide column named by its number.

    Returns:
        The bytes read.

    Raises:
        CorruptDatabase: the segment is missing or not what was written.
        OSError: there is no room.
        TooLong: a column cannot be copied.
    """
    weight = len(without_hash(fields)) - 1  # every look-up wants it, so that with it in each file one of them is enough
    columns = sorted(missing - {ROW} | {weight})
    with SegmentFile(path, segment, without_hash(fields)) as source:
        keys = keys_of([pa.chunked_array([part[by]]) for part in _parts(source, [by])])
        widths = {c: _width(source, c) for c in columns}
        wide = {c: folder / f"{c}.arrow" for c, width in widths.items() if width is None}
        packed = {c: width for c, width in widths.items() if width is not None}
        if wide or ROW in missing:
            packed[ROW] = 0
        if not keys.are_hashes:
            packed[by] = 0
        name = hashlib.sha1(str(sorted(packed)).encode()).hexdigest()[:16]
        parts = _numbered(_parts(source, sorted({by, *columns})))
        write_packed(folder / f"{by}-{name}.rows", by, keys, _wide_written(parts, wide), packed)
        texts = [c for c in columns if is_text(_type(source, c))]
        return sum(source.bytes_of(_names(source, some)) for some in ([by], texts, [by, *columns]))


def _wide_written(parts: Iterator[dict[int, pa.Array]], files: dict[int, Path]) -> Iterator[dict[int, pa.Array]]:
    """The parts, whose wide columns are written by the way."""
    with ExitStack() as stack:
        writers: dict[int, pa.RecordBatchFileWriter] = {}
        for part in parts:
            for column, file in files.items():
                batch = pa.record_batch([part[column]], names=["c"])
                if column not in writers:
                    writers[column] = stack.enter_context(pa.ipc.new_file(str(file), batch.schema))
                writers[column].write_batch(batch)
            yield part


def _numbered(parts: Iterator[dict[int, pa.Array]]) -> Iterator[dict[int, pa.Array]]:
    """The parts with the number of each row."""
    done = 0
    for part in parts:
        rows = len(next(iter(part.values())))
        yield {**part, ROW: pa.array(np.arange(done, done + rows))}
        done += rows


def _parts(source: SegmentFile, columns: list[int]) -> Iterator[dict[int, pa.Array]]:
    """Some columns, a number of rows at a time, the same for whichever columns."""
    there = source.schema.names
    for part in _even_parts(source, _names(source, columns)):
        found = {c: part.column(there[c]) if c < len(there) else hashes_of(part) for c in columns}
        if any(column.num_chunks > 1 for column in found.values()):
            raise TooLong
        yield {c: column.chunk(0) for c, column in found.items()}


def _names(source: SegmentFile, columns: list[int]) -> list[str]:
    """What is read of a file for some columns: all of it for the hash of the row, which is behind the last one."""
    there = source.schema.names
    return there if any(c >= len(there) for c in columns) else [there[c] for c in columns]


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


def hashes_of(stored: pa.Table) -> pa.ChunkedArray:
    """The hashes of rows as they stand in files, whose last column is the weight."""
    return pa.chunked_array([row_hashes(stored.select(range(stored.num_columns - 1)))])


def _type(source: SegmentFile, column: int) -> pa.DataType:
    return source.schema.types[column] if column < len(source.schema.types) else pa.int64()


def _width(source: SegmentFile, column: int) -> int | None:
    """The bytes of a column's longest text, and none where it has a fixed width; None if it is wide."""
    kind = _type(source, column)
    if not is_narrow(kind):
        return None
    return widest(part[column] for part in _parts(source, [column])) if is_text(kind) else 0


def taken(batches: list[pa.Array], rows: Numbers) -> tuple[pa.Array, int]:
    """The values of a wide column at some rows, and the bytes of the memory pages touched."""
    order = np.argsort(rows, kind="stable")
    batch_of, place = np.divmod(rows[order], _BATCH_ROWS)
    found, touched = [], 0
    for number in np.unique(batch_of).tolist():
        places = place[batch_of == number]
        found.append(batches[number].take(pa.array(places)))
        touched += bytes_taken(batches[number], places)
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(found).take(pa.array(back)), touched


def bytes_taken(batch: pa.Array, positions: Positions) -> int:
    """The memory pages of a batch in which the values at these positions, which ascend, lie.

    >>> bytes_taken(pa.array(["ab"] * 10_000), np.array([0, 1, 1600, 9_999]))
    20480
    """
    kind = batch.type
    if is_text(kind):
        ends = np.frombuffer(batch.buffers()[1], np.int32)[batch.offset :]
        starts = ends[positions]
        long = (ends[positions + 1] - starts) // PAGE
        return _pages((positions + batch.offset) * 4) + _pages(starts.astype(np.int64)) + PAGE * int(long.sum())
    return max(PAGE, int(batch.nbytes) * len(positions) // len(batch))


def _pages(offsets: Numbers) -> int:
    """The bytes of the pages in which the values at these offsets, which ascend, begin."""
    return PAGE * int(np.count_nonzero(np.diff(offsets // PAGE)) + 1) if len(offsets) else 0
