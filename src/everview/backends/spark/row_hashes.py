"""Hashes of whole rows: a narrow index by which a strict delete is judged without reading all columns of what it deletes.

Equal rows have equal hashes of 64 bits, in every process. Rows with different hashes differ. Rows with equal ones are taken to
be equal: that two different rows agree by chance has a probability of 2⁻⁶⁴ for each row deleted. A hash that does not fit
is no proof of a mistake (the transaction may bring the row itself), and then the rows themselves are compared.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from everview.relational.nodes import Field, Schema
from everview.relational.types import INT64, Array, Struct

ROW_HASH: Final = Field("_row_hash", INT64, False)
"""Stands behind a relation's columns and their weight: not in the files, but in the copies of them."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_NULL: Final = np.uint64(0xD6E8FEB86659FD93)

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
        values = _hashed(np.array(coded.dictionary.to_pylist(), dtype=object))
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


def _hashed(values: npt.NDArray[Any]) -> Hashes:
    return pd.util.hash_array(values, categorize=False) if len(values) else np.zeros(0, dtype=np.uint64)


def found_in(hashes: pa.Array | pa.ChunkedArray, among: pa.Array) -> pa.Array:
    """For each hash the place of an equal one among others; NULL where there is none."""
    return pc.index_in(hashes, value_set=among)
