"""Some columns of a table's batches as vectors, the same columns batch after batch: what is decided per type is decided once.

All columns of fixed width are read by one call of a kernel, each column of text by another; lists, structs and the types that
need arithmetic go the general way of ``arrow_columns``. Contract: the vectors equal those of ``vector_from_arrow``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from everview.backends.embedded.arrow_columns import joined, vector_from_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state import arrow_kernels as kernels
from everview.backends.embedded.state.kernel_cache import IS_CHECKED
from everview.backends.embedded.state.memory import address_of, address_of_buffer
from everview.backends.embedded.vectors import AnyArray, Bools, Ints, KeyLayout, Kind, Vector, kind_of
from everview.relational.arrow import arrow_schema
from everview.relational.nodes import Field, Schema
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
)

Rows: TypeAlias = pa.Table | pa.RecordBatch
"""Rows as they came: a batch stays a batch, which is quicker to read than a table."""

_STORAGES: Final[dict[DataType, int]] = {
    BOOLEAN: kernels.BITS,
    INT8: kernels.INT8,
    INT16: kernels.INT16,
    INT32: kernels.INT32,
    DATE: kernels.INT32,
    INT64: kernels.INT64,
    FLOAT64: kernels.FLOAT64,
    TIMESTAMP: kernels.INT64,
    TIMESTAMP_NTZ: kernels.INT64,
    DAY_TIME_INTERVAL: kernels.INT64,
    YEAR_MONTH_INTERVAL: kernels.MONTHS,
}
MANY_UNREAD = 3
"""Where nobody reads more columns of a batch than these, the others are selected: that takes as long as exporting three."""

_NO_NULLS: Final[Bools] = np.zeros(0, dtype=np.bool_)


def _storage(data_type: DataType) -> int | None:
    """How a kernel reads the type; None where it does not."""
    if isinstance(data_type, Decimal):
        return kernels.DECIMAL if kind_of(data_type) is Kind.INT else None
    return _STORAGES.get(data_type)


class ColumnReader:
    """Reads some columns.

    Args:
        fields: All columns of the table.
        columns: The positions of those to read.
        dictionary: Where strings get their codes.
    """

    def __init__(self, fields: Sequence[Field], columns: Sequence[int], dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._schema = arrow_schema(tuple(fields))
        self._types = {c: fields[c].type for c in columns}
        self._plain = [(c, t, s) for c, t in self._types.items() if (s := _storage(t)) is not None]
        self._texts = [(c, t) for c, t in self._types.items() if t in (STRING, BINARY)]
        self._rest = [(c, t) for c, t in self._types.items() if _storage(t) is None and t not in (STRING, BINARY)]
        words = kernels.COLUMN_WORDS * len(self._plain)
        self._plan_words: Ints = np.zeros(words, dtype=np.int64)
        # In checked mode buffers have to be known, and one that is exported is not.
        self._exports = not IS_CHECKED and bool(self._plain)
        is_few = len(fields) - len(self._plain) > MANY_UNREAD
        self._selected = [c for c, _, _ in self._plain] if is_few else None
        """The columns to export; None for all."""
        self._export = np.zeros(kernels.EXPORTED_WORDS, dtype=np.int64)
        self._export_address = address_of(self._export)
        self._export_plan = np.array(
            [(k if is_few else c, s) for k, (c, _, s) in enumerate(self._plain)], dtype=np.int64
        ).reshape(-1)
        self._write_plan = struct.Struct(f"{words}q").pack_into  # a third of the time that NumPy takes for a list

    def read(self, rows: Rows) -> dict[int, Vector]:
        """The vectors by position of the column."""
        if not isinstance(rows, pa.RecordBatch):
            batches = rows.to_batches()
            if len(batches) != 1:
                parts = [self.read(batch) for batch in batches]
                return {c: joined([part[c] for part in parts], t) for c, t in self._types.items()}
            rows = batches[0]
        # Only the very types of the table are read by address, of arrays that have the buffers they should have.
        vectors = self._read_by_address(rows) if rows.num_rows and rows.schema.equals(self._schema) else None
        if vectors is None:
            return {c: vector_from_arrow(rows.column(c), t, self._dictionary) for c, t in self._types.items()}
        for c, text in self._texts:
            vectors[c] = Vector(text, *self._dictionary.encode_arrow(rows.column(c)))
        for c, t in self._rest:
            vectors[c] = vector_from_arrow(rows.column(c), t, self._dictionary)
        return vectors

    def read_side_by_side(self, batch: pa.RecordBatch) -> Ints | None:
        """The columns of a matrix, if all are of fixed width and without NULLs; None otherwise."""
        if self._texts or self._rest or not batch.schema.equals(self._schema):
            return None
        out = np.empty((batch.num_rows, len(self._plain)), dtype=np.int64)
        if self._exports:
            return out if self._read_exported(batch, len(self._plain), out) else None
        planned = self._plan(batch, len(self._plain))
        if planned is None or planned[1]:
            return None
        self._write_plan(self._plan_words.data, 0, *planned[0])
        kernels.read_columns(self._plan_words, batch.num_rows, out, _NO_NULLS)
        return out

    def _plan(self, batch: pa.RecordBatch, width: int) -> tuple[list[int], bool] | None:
        """The kernel's plan, and whether some column has NULLs; ``width`` columns lie side by side."""
        plan: list[int] = []
        has_nulls, count = False, batch.num_rows
        for k, (c, _, storage) in enumerate(self._plain):
            array = batch.column(c)
            validity, data = array.buffers()
            if data is None:
                return None
            bits = 0
            if array.null_count:
                bits, has_nulls = address_of_buffer(validity), True
            plan += (storage, address_of_buffer(data), array.offset, bits, k * count if width == 1 else k, width)
        return plan, has_nulls

    def _read_by_address(self, rows: pa.RecordBatch) -> dict[int, Vector] | None:
        """The plain columns; None where an array lacks the buffer that it should have."""
        if self._exports:
            out = np.empty((len(self._plain), rows.num_rows), dtype=np.int64)
            if place := self._read_exported(rows, 1, out):
                return self._vectors(out, place)
            self._exports = False  # where there was a NULL, there will be others, and a batch would be read twice
        planned = self._plan(rows, 1)
        return None if planned is None else self._read_plain(rows.num_rows, *planned)

    def _read_exported(self, rows: pa.RecordBatch, width: int, out: Ints) -> int:
        """Reads the plain columns of a batch, ``width`` of them side by side, and says where; 0 if they have NULLs."""
        exported = rows if self._selected is None else rows.select(self._selected)
        exported._export_to_c(self._export_address)
        return int(kernels.read_exported(self._export_address, self._export_plan, rows.num_rows, width, out))

    def _read_plain(self, count: int, plan: list[int], has_nulls: bool) -> dict[int, Vector]:
        size = len(self._plain)
        out = np.empty((size, count), dtype=np.int64)
        nulls = np.zeros(size * count, dtype=np.bool_) if has_nulls else _NO_NULLS
        self._write_plan(self._plan_words.data, 0, *plan)
        place = int(kernels.read_columns(self._plan_words, count, out, nulls))
        vectors = self._vectors(out, place)
        if has_nulls:
            for k, vector in enumerate(vectors.values()):
                if plan[kernels.COLUMN_WORDS * k + kernels.VALIDITY]:
                    vector.nulls = nulls[k * count : (k + 1) * count]
        return vectors

    def _vectors(self, out: Ints, place: int) -> dict[int, Vector]:
        """The rows of a matrix at ``place`` as the plain columns."""
        vectors, size = {}, 8 * out.shape[1]
        if IS_CHECKED:
            place = address_of(out)
        for k, (c, data_type, storage) in enumerate(self._plain):
            values: AnyArray = out[k] if storage != kernels.FLOAT64 else out[k].view(np.float64)
            vectors[c] = Vector(data_type, values, None, place)
            place += size
        return vectors


class KeyReader:
    """Reads the key of each row: the words of a key's columns, none of them NULL, side by side."""

    def __init__(self, fields: Schema, columns: Sequence[int], dictionary: Dictionary) -> None:
        self._columns = tuple(columns)
        self._reader = ColumnReader(fields, columns, dictionary)
        types = tuple(fields[c].type for c in columns)
        self.layout = KeyLayout(types, (False,) * len(types))
        self._is_plain = all(_storage(t) is not None and t != FLOAT64 for t in types)

    def read(self, rows: Rows) -> Ints:
        """The key matrix."""
        count = rows.num_rows
        if self._is_plain and isinstance(rows, pa.RecordBatch) and count:
            keys = self._reader.read_side_by_side(rows)
            if keys is not None:
                return keys
        vectors = self._reader.read(rows)
        return self.layout.pack([vectors[c] for c in self._columns], count)
