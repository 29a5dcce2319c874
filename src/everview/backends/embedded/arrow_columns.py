"""Between Arrow columns and the engine's vectors.

``vector_from_arrow`` copies nothing where Arrow already stores 64-bit words without NULLs; such values are read-only.
Decimals are taken from Arrow's 128-bit words: the low word where 18 digits suffice, both words otherwise. Contract:
``vector_to_arrow(vector_from_arrow(column, t, d), d)`` equals the column, as one array of ``arrow_type(t)``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.vectors import AnyArray, Batch, Bools, Kind, Vector, empty_values, kind_of
from everview.relational.arrow import arrow_schema, arrow_type, rows_from_arrow
from everview.relational.column_names import WEIGHT
from everview.relational.nodes import Schema
from everview.relational.types import (
    BOOLEAN,
    DATE,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    NULL,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
)

_STORED: Final[dict[DataType, Any]] = {
    INT8: np.int8,
    INT16: np.int16,
    INT32: np.int32,
    DATE: np.int32,
    FLOAT32: np.float32,
    YEAR_MONTH_INTERVAL: np.dtype([("months", np.int32), ("days", np.int32), ("nanoseconds", np.int64)]),
}
"""How Arrow stores types that are not 64 bits wide; the others are int64 or float64 there too."""


def vector_from_arrow(column: pa.ChunkedArray | pa.Array, data_type: DataType, dictionary: Dictionary) -> Vector:
    """The column as a vector of a type whose values Arrow can cast it to; 0 beneath NULL."""
    if kind_of(data_type) is Kind.CODE:
        return _codes_from_arrow(column, data_type, dictionary)
    wanted = arrow_type(data_type)
    if column.type != wanted:
        column = column.cast(wanted)
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks != 1:
            return joined([_vector_from_array(chunk, data_type) for chunk in column.chunks], data_type)
        column = column.chunk(0)
    return _vector_from_array(column, data_type)


def _codes_from_arrow(column: pa.ChunkedArray | pa.Array, data_type: DataType, dictionary: Dictionary) -> Vector:
    wanted, given = arrow_type(data_type), column.type
    is_encoded = pa.types.is_dictionary(given)
    if (given.value_type if is_encoded else given) != wanted:
        column = column.cast(pa.dictionary(given.index_type, wanted) if is_encoded else wanted)
    codes, nulls = dictionary.encode_arrow(column)
    return Vector(data_type, codes, nulls)


def _vector_from_array(array: pa.Array, data_type: DataType) -> Vector:
    count = len(array)
    if data_type == NULL:
        return Vector(data_type, empty_values(data_type, count), np.ones(count, dtype=np.bool_))
    if count == 0:
        return Vector(data_type, empty_values(data_type, 0))
    values = _stored_values(array, data_type)
    if array.null_count == 0:
        return Vector(data_type, values)
    nulls: Bools = array.is_null().to_numpy(zero_copy_only=False)
    if not values.flags.owndata or not values.flags.writeable:
        values = values.copy()
    values[nulls] = 0
    return Vector(data_type, values, nulls)


def _stored_values(array: pa.Array, data_type: DataType) -> AnyArray:
    buffer, start, count = array.buffers()[1], array.offset, len(array)
    if data_type == BOOLEAN:
        bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=start + count, bitorder="little")
        return bits[start:].astype(np.int64)
    if isinstance(data_type, Decimal):
        words = np.frombuffer(buffer, np.int64, 2 * count, 16 * start).reshape(count, 2)
        return words if kind_of(data_type) is Kind.WIDE else words[:, 0].copy()
    is_float = kind_of(data_type) is Kind.FLOAT
    full = np.dtype(np.float64 if is_float else np.int64)
    stored = np.dtype(_STORED.get(data_type, full))
    values: AnyArray = np.frombuffer(buffer, stored, count, stored.itemsize * start)
    if data_type == YEAR_MONTH_INTERVAL:
        values = values["months"]
    return values.astype(full, copy=False)


def joined(parts: list[Vector], data_type: DataType) -> Vector:
    """The values of all parts, in order."""
    if not parts:
        return Vector(data_type, empty_values(data_type, 0))
    values = np.concatenate([p.values for p in parts])
    if all(p.nulls is None for p in parts):
        return Vector(data_type, values)
    masks = [np.zeros(len(p), dtype=np.bool_) if p.nulls is None else p.nulls for p in parts]
    return Vector(data_type, values, np.concatenate(masks))


def vector_to_arrow(vector: Vector, dictionary: Dictionary) -> pa.Array:
    """The vector as an array of ``arrow_type`` of its type."""
    wanted, count, nulls = arrow_type(vector.type), len(vector), vector.nulls
    if vector.type == NULL:
        return pa.nulls(count)
    if kind_of(vector.type) is Kind.CODE:
        return dictionary.decode_arrow(vector.values, nulls, vector.type)
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(wanted, count, [valid, pa.py_buffer(_stored_form(vector))])


def _stored_form(vector: Vector) -> AnyArray:
    values = np.ascontiguousarray(vector.values)
    data_type = vector.type
    if data_type == BOOLEAN:
        return np.packbits(values.astype(np.bool_), bitorder="little")
    if isinstance(data_type, Decimal):
        if values.ndim == 2:
            return values
        words = np.empty((len(values), 2), dtype=np.int64)
        words[:, 0] = values
        np.right_shift(values, 63, out=words[:, 1])
        return words
    if data_type == YEAR_MONTH_INTERVAL:
        stored = np.zeros(len(values), _STORED[data_type])
        stored["months"] = values
        return stored
    return values.astype(_STORED.get(data_type, values.dtype), copy=False)


def bag_table(batch: Batch, fields: Schema, dictionary: Dictionary) -> pa.Table:
    """The rows of a bag, each as often as it is there."""
    if not (batch.weights == 1).all():
        batch = batch.take(np.repeat(np.arange(len(batch)), batch.weights))
    return arrow_table(batch, fields, dictionary)


def weighted_table(batch: Batch, fields: Schema, dictionary: Dictionary) -> pa.Table:
    """The rows of a batch, each once, with their weights in a column more."""
    weights = pa.field(WEIGHT, pa.int64(), nullable=False)
    return arrow_table(batch, fields, dictionary).append_column(weights, pa.array(batch.weights))


def rows_of_batch(batch: Batch, fields: Schema, dictionary: Dictionary) -> list[tuple[Any, ...]]:
    """The rows of a batch, each once, as Python has them inside."""
    return rows_from_arrow(arrow_table(batch, fields, dictionary), fields)


def arrow_table(batch: Batch, fields: Schema, dictionary: Dictionary) -> pa.Table:
    """The rows of a batch, without their weights."""
    return pa.Table.from_arrays([vector_to_arrow(c, dictionary) for c in batch.columns], schema=arrow_schema(fields))
