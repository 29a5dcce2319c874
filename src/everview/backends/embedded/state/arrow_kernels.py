"""Arrow's fixed-width columns, read from their buffers into 64-bit words: any number of columns in one call."""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.kernel import Word, address_of, kernel, load8, load16, load32, load64
from everview.backends.embedded.vectors import Bools, Ints

COLUMN_WORDS = 6
STORAGE, DATA, FIRST, VALIDITY, AT, STEP = range(6)
"""Words of a column in the plan: how it is stored; address of its values; position of its first value; address of its validity
bits, or 0 where no value is NULL; where its first word goes, and how far the next is from there."""

BITS, INT8, INT16, INT32, INT64, DECIMAL, MONTHS, FLOAT64 = range(8)
"""Storages. A decimal is the lower one of its two words, an interval of months the first of its four half words. A float is its
bits, with those of 0.0 for -0.0 and the same for every NaN."""

_INFINITY = 0x7FF0000000000000
_NAN = 0x7FF8000000000000
_MAGNITUDE = 0x7FFFFFFFFFFFFFFF


@kernel
def read_columns(plan: Ints, count: Word, out: Ints, nulls: Bools) -> Word:
    """Read ``count`` values of each column of a plan, 0 beneath NULL; returns where ``out`` begins.

    Args:
        plan: Six words for each column.
        count: The number of values.
        out: Where the words go; positions count all of its words.
        nulls: A row of marks for each column, flat; written, and needed, only where some column has NULLs.
    """
    words = out.reshape(out.size)
    for k in range(plan.shape[0] // COLUMN_WORDS):
        column = plan[k * COLUMN_WORDS : (k + 1) * COLUMN_WORDS]
        storage, data, first = column[STORAGE], column[DATA], column[FIRST]
        at, step = column[AT], column[STEP]
        if storage == INT64:
            for i in range(count):
                words[at + i * step] = load64(data + 8 * (first + i))
        elif storage == FLOAT64:
            for i in range(count):
                word = load64(data + 8 * (first + i))
                size = word & _MAGNITUDE
                if size == 0:
                    word = 0
                elif size > _INFINITY:
                    word = _NAN
                words[at + i * step] = word
        elif storage == DECIMAL:
            for i in range(count):
                words[at + i * step] = load64(data + 16 * (first + i))
        elif storage == INT32:
            for i in range(count):
                words[at + i * step] = np.int64(load32(data + 4 * (first + i)) << 32) >> 32
        elif storage == INT16:
            for i in range(count):
                words[at + i * step] = np.int64(load16(data + 2 * (first + i)) << 48) >> 48
        elif storage == INT8:
            for i in range(count):
                words[at + i * step] = np.int64(load8(data + first + i) << 56) >> 56
        elif storage == MONTHS:
            for i in range(count):
                words[at + i * step] = np.int64(load32(data + 16 * (first + i)) << 32) >> 32
        else:
            for i in range(count):
                words[at + i * step] = (load8(data + ((first + i) >> 3)) >> ((first + i) & 7)) & 1
        validity = column[VALIDITY]
        if validity != 0:
            for i in range(count):
                if (load8(validity + ((first + i) >> 3)) >> ((first + i) & 7)) & 1 == 0:
                    words[at + i * step] = 0
                    nulls[k * count + i] = True
    return address_of(out)
