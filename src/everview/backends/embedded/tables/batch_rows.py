"""Whether rows of Arrow batches are equal, found out without taking them out of their batches.

Two rows are equal when Spark groups them together, which for floats in canonical form means equal bits. Lists and structs are
not compared here.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from everview.backends.embedded.state.memory import address_of_buffer
from everview.backends.embedded.state.row_kernels import BITS, COLUMN_WORDS, TEXT, compare_rows
from everview.backends.embedded.vectors import Bools, Ints
from everview.relational.arrow import arrow_type
from everview.relational.nodes import Schema
from everview.relational.types import BINARY, BOOLEAN, NULL, STRING, Array, DataType, Struct

_WIDTHS: Final[dict[DataType, int]] = {BOOLEAN: BITS, STRING: TEXT, BINARY: TEXT}


def are_comparable(fields: Schema) -> bool:
    """Whether all columns are of types that are compared here."""
    return all(not isinstance(f.type, Array | Struct) and f.type != NULL for f in fields)


def widths_of(fields: Schema) -> Ints:
    """How wide the values of each column are, as ``compare_rows`` wants it."""
    return np.array([_WIDTHS.get(f.type) if f.type in _WIDTHS else arrow_type(f.type).bit_width // 8 for f in fields])


def places_of(batch: pa.RecordBatch) -> Ints:
    """Where the columns of a batch lie; true for as long as the batch lives."""
    words: list[int] = []
    for array in batch.columns:
        buffers = array.buffers()
        validity, data = buffers[0], buffers[-1]
        words += (
            address_of_buffer(data),
            address_of_buffer(buffers[1]) if len(buffers) == 3 else 0,
            address_of_buffer(validity) if array.null_count else 0,
            array.offset,
        )
    return np.array(words, dtype=np.int64).reshape(1, -1, COLUMN_WORDS)


def rows_are_same(
    widths: Ints, left: Ints, left_rows: Ints, right: Ints, right_homes: Ints | None, right_rows: Ints
) -> Bools:
    """Whether rows of one batch are those of other batches, pair by pair.

    Args:
        widths: Of the columns.
        left: The places of the one batch.
        left_rows: Positions in it.
        right: The places of the others.
        right_homes: Which of them each row is in; None where there is one.
        right_rows: Positions in them.
    """
    same = np.empty(len(left_rows), dtype=np.bool_)
    none = np.zeros(len(left_rows), dtype=np.int64)
    homes = none if right_homes is None else right_homes
    compare_rows(widths, left, none, left_rows, right, homes, right_rows, same)
    return same
