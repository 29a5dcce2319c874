"""Hashes of whole rows: a narrow index by which a strict delete is judged without reading all columns of what it deletes.

Equal rows have equal hashes of 64 bits, in every process. Rows with different hashes differ. Rows with equal ones are taken to
be equal: that two different rows agree by chance has a probability of 2⁻⁶⁴ for each row deleted. A hash that does not fit
is no proof of a mistake (the transaction may bring the row itself), and then the rows themselves are compared.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.relational.nodes import Field, Schema
from everview.relational.types import INT64, Array, Struct

ROW_HASH: Final = Field("_row_hash", INT64, False)
"""Stands behind a relation's columns and their weight: not in the files, but in the copies of them."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_NULL: Final = np.uint64(0xD6E8FEB86659FD93)
_TEXTS: Final = 1 << 12
_MIXED: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)

Hashes = npt.NDArray[np.uint64]


def have_hashes(fields: Schema) -> bool:
    """Whether rows of these columns are hashed: arrays and structs are not."""
    return not any(isinstance(f.type, Array | Struct) for f in fields)


def without_hash(fields: Schema) -> Schema:
    """The columns that are in files."""
    return fields[:-1] if fields[-1:] == (ROW_HASH,) else fields


def row_hashes(rows: pa.Table) -> pa.Array:
    """A number for each row, of columns as they stand in files."""
    found: Hashes = np.zeros(rows.num_rows, dtype=np.uint64)
    for column in rows.columns:
        found = (found ^ (found >> np.uint64(29))) * _FACTOR + column_hashes(column)
    return pa.array((found ^ (found >> np.uint64(32))).view(np.int64))


def column_hashes(column: pa.ChunkedArray | pa.Array) -> Hashes:
    """A number for each value of a column as it stands in files."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        coded = array.dictionary_encode()
        values = _text_hashes(coded.dictionary)
        codes = coded.indices.fill_null(len(values)).to_numpy()
        found: Hashes = np.append(values, _NULL)[codes]
        return found
    if array.null_count == len(array):
        return np.full(len(array), _NULL)
    if pa.types.is_timestamp(kind) and kind.unit != "us":  # files of Spark may have other units
        array = array.cast(pa.timestamp("us", kind.tz), safe=False)
    if not array.null_count:
        return _fixed(array)
    values_alone = pa.Array.from_buffers(array.type, len(array), [None, array.buffers()[1]], offset=array.offset)
    return np.where(array.is_null().to_numpy(zero_copy_only=False), _NULL, _fixed(values_alone))


def _fixed(array: pa.Array) -> Hashes:
    """The hashes of an array of fixed width without NULLs."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return _hashed(array.to_numpy(zero_copy_only=False).astype(np.int64))
    if pa.types.is_decimal128(kind):
        words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array)]
        return _hashed(words[::2]) * _FACTOR + _hashed(words[1::2])
    if pa.types.is_floating(kind):
        return _hashed(array.to_numpy().astype(np.float64).view(np.int64))
    width = {32: pa.int32(), 64: pa.int64()}.get(kind.bit_width)
    numbers = array if pa.types.is_integer(kind) or width is None else array.view(width)
    return _hashed(numbers.to_numpy().astype(np.int64))


def _hashed(values: npt.NDArray[np.int64]) -> Hashes:
    """SplitMix64 of numbers."""
    found = values.view(np.uint64)
    for shift, factor in _MIXED:
        found = (found ^ (found >> shift)) * factor
    return found ^ (found >> np.uint64(31))


def _text_hashes(texts: pa.Array) -> Hashes:
    """Of each text without NULLs the sum of a number for every byte and its place; so many at once as fit into a cache."""
    found = np.zeros(len(texts), dtype=np.uint64)
    for start in range(0, len(texts), _TEXTS):
        part = texts.slice(start, _TEXTS).cast(pa.large_binary())
        ends = np.frombuffer(part.buffers()[1], np.int64)[part.offset :][: len(part) + 1]
        if ends[-1] == ends[0]:
            continue
        text = np.frombuffer(part.buffers()[2], np.uint8)[ends[0] : ends[-1]]
        ends = ends - ends[0]
        places = np.arange(1, len(text) + 1) - np.repeat(ends[:-1], np.diff(ends))
        sums = np.append(np.uint64(0), np.cumsum(_hashed(places << 8 | text)))
        found[start : start + len(part)] = sums[ends[1:]] - sums[ends[:-1]]
    return found


def found_in(hashes: pa.Array | pa.ChunkedArray, among: pa.Array) -> pa.Array:
    """For each hash the place of an equal one among others; NULL where there is none."""
    return pc.index_in(hashes, value_set=among)
