"""BITMAP_CONSTRUCT_AGG and BITMAP_OR_AGG: how many rows of each group set each bit, so that a delete needs no other row.

A bitmap of Spark's has 32,768 bits in 4,096 bytes, the lowest bit of a byte first. A group has an entry for each bit that some
row sets, with the number of such rows; the bits with an entry are the answer. Law: OR over rows is "some row has it", and
counts of rows can be taken back. Bitmaps to be merged may be shorter; of longer ones Spark reads the first 4,096 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.backends.embedded.arrow_columns import vector_from_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.accumulator import without_nulls
from everview.backends.embedded.operators.counted_places import CountedPlaces
from everview.backends.embedded.vectors import Ints, Vector
from everview.errors import EvaluationError
from everview.relational.definitions.spark_aggregates import spark_function
from everview.relational.nodes import AggregateCall
from everview.relational.types import BINARY

_BYTES = 4096
_BITS = 8 * _BYTES
_AT_ONCE = 1024
"""So many bitmaps are spread into bits at a time."""


class BitmapAccumulator(CountedPlaces):
    """Entries (group, bit), each with its number of rows."""

    def __init__(self, call: AggregateCall, dictionary: Dictionary) -> None:
        super().__init__(dictionary)
        self._merges = spark_function(call).name == "bitmap_or_agg"

    def add(self, slots: Ints, args: Sequence[Vector], weights: Ints) -> None:
        slots, (values, *_), weights = without_nulls(slots, args[:1], weights)
        if not self._merges:
            self.count(slots, values.values, weights)
            return
        for start in range(0, len(slots), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            rows, bits = self._bits(values.values[part])
            self.count(slots[part][rows], bits, weights[part][rows])

    def _bits(self, codes: Ints) -> tuple[Ints, Ints]:
        """The bits that bitmaps have: of each the position of its bitmap in ``codes``, and its own in that bitmap."""
        array = self._dictionary.decode_arrow(codes, None, BINARY)
        _, offset_buffer, data = array.buffers()
        offsets = np.frombuffer(offset_buffer, dtype=np.int32)[: len(codes) + 1].astype(np.int64)
        written = (
            np.frombuffer(data, dtype=np.uint8)[: offsets[-1]] if data is not None else np.zeros(0, dtype=np.uint8)
        )
        found = np.flatnonzero(np.unpackbits(written, bitorder="little"))
        rows = np.searchsorted(offsets, found // 8, side="right") - 1
        bits = found - 8 * offsets[rows]
        is_read = bits < _BITS
        return rows[is_read], bits[is_read]

    def result(self, slots: Ints) -> Vector:
        rows, bits = self.places(slots)
        outside = bits[(bits < 0) | (bits >= _BITS)]
        if len(outside):
            raise EvaluationError(
                f"the bitmap position {outside[0]} is out of bounds: a bitmap has {_BITS} bits.",
                condition="INVALID_BITMAP_POSITION",
                hint="bitmap_bit_position(x) is the position of x in the bitmap bitmap_bucket_number(x).",
            )
        written = np.zeros(len(slots) * _BYTES, dtype=np.uint8)
        np.bitwise_or.at(written, rows * _BYTES + bits // 8, (1 << bits % 8).astype(np.uint8))
        offsets = np.arange(len(slots) + 1, dtype=np.int64) * _BYTES
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(written)]
        return vector_from_arrow(
            pa.Array.from_buffers(pa.large_binary(), len(slots), buffers), BINARY, self._dictionary
        )
