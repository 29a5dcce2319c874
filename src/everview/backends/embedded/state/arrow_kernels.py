"""Arrow's fixed-width columns, read from their buffers into 64-bit words: any number of columns in one call.

Where the buffers lie is said by a plan, or by a batch exported through Arrow's C data interface: making Python's objects for a
batch's columns takes longer than reading a thousand rows.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.intrinsics import call_at, fetch, load8, load16, load32, load64, start_of
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bools, Ints

COLUMN_WORDS = 6
STORAGE, DATA, FIRST, VALIDITY, AT, STEP = range(6)
"""Words of a column in the plan: how it is stored; address of its values; position of its first value; address of its validity
bits, or 0 where no value is NULL; where its first word goes, and how far the next is from there."""

BITS, INT8, INT16, INT32, INT64, DECIMAL, MONTHS, FLOAT64 = range(8)
"""Storages. A decimal is the lower one of its two words, an interval of months the first of its four half words. A float is its
bits, with those of 0.0 for -0.0 and the same for every NaN."""

EXPORTED_WORDS = 10
NULL_COUNT, OFFSET, BUFFERS, CHILDREN, RELEASE = 1, 2, 5, 6, 8
"""Words of Arrow's ``ArrowArray``, and those read here: how many values are NULL (-1: not counted); position of the first;
addresses of the buffers' addresses (validity bits, values) and of the columns' arrays, and the function that lets go of it."""

LINE = 64
AHEAD = 32 * LINE
"""Bytes that the processor gets at once, and how far ahead it is told to: nobody has looked at a batch that has just come."""
_PIECE = 128
"""Values that are read between two such hints."""
_SIZES = (0, 1, 2, 4, 8, 16, 16, 8)
"""Bytes of a value, by storage."""
_INFINITY = 0x7FF0000000000000
_NAN = 0x7FF8000000000000
_MAGNITUDE = 0x7FFFFFFFFFFFFFFF


@inlined
def _read_values(storage: Word, data: Word, first: Word, count: Word, words: Ints, at: Word, step: Word) -> None:
    """Read ``count`` values from the one at ``first`` on, whatever lies beneath NULL."""
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


@inlined
def _read_column(storage: Word, data: Word, first: Word, count: Word, words: Ints, at: Word, step: Word) -> None:
    """The same, in pieces: while one is read, what lies ahead is got."""
    size = _SIZES[storage]
    for start in range(0, count, _PIECE):
        place, some = first + start, min(_PIECE, count - start)
        for line in range(0, some * size, LINE):
            fetch(data + place * size + AHEAD + line)
        _read_values(storage, data, place, some, words, at + start * step, step)


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
        first, at, step = column[FIRST], column[AT], column[STEP]
        _read_column(column[STORAGE], column[DATA], first, count, words, at, step)
        validity = column[VALIDITY]
        if validity != 0:
            for i in range(count):
                if (load8(validity + ((first + i) >> 3)) >> ((first + i) & 7)) & 1 == 0:
                    words[at + i * step] = 0
                    nulls[k * count + i] = True
    return start_of(out)


@inlined
def _has_null(exported: Word, count: Word) -> bool:
    """Whether a value of an exported array is NULL; Arrow may not have counted them."""
    validity, first = load64(load64(exported + 8 * BUFFERS)), load64(exported + 8 * OFFSET)
    if validity == 0 or load64(exported + 8 * NULL_COUNT) == 0:
        return False
    valid = 0
    for i in range(first, first + count):
        valid += (load8(validity + (i >> 3)) >> (i & 7)) & 1
    return bool(valid < count)


@kernel
def read_exported(batch: Word, columns: Ints, count: Word, width: Word, out: Ints) -> Word:
    """Read columns of an exported batch, and release it.

    Returns where ``out`` begins; 0 if a column has NULLs, or no buffer, so that the caller has to read it in another way.

    Args:
        batch: Where its ``ArrowArray`` lies.
        columns: Two words for each column: its position, and its storage.
        count: The number of rows, at least 1.
        width: How many columns lie side by side: all, or 1, so that they lie one below the other.
        out: Where the words go.
    """
    words, place = out.reshape(out.size), start_of(out)
    for k in range(columns.shape[0] // 2):
        exported = load64(load64(batch + 8 * CHILDREN) + 8 * columns[2 * k])
        data = load64(load64(exported + 8 * BUFFERS) + 8)
        if data == 0 or _has_null(exported, count):
            place = 0
            break
        first = load64(exported + 8 * OFFSET)
        if width == 1:
            _read_column(columns[2 * k + 1], data, first, count, words, k * count, 1)
        else:
            _read_column(columns[2 * k + 1], data, first, count, words, k, width)
    call_at(load64(batch + 8 * RELEASE), batch)
    return place


_BEYOND_ASCII = -0x7F7F7F7F7F7F7F80
"""The highest bit of each byte of a word."""


@inlined
def _is_ascii(exported: Word, count: Word) -> bool:
    """Whether all bytes of an exported array of strings are ASCII, those beneath NULL too."""
    buffers, first = load64(exported + 8 * BUFFERS), load64(exported + 8 * OFFSET)
    offsets, data = load64(buffers + 8), load64(buffers + 16)
    if offsets == 0 or data == 0:
        return False
    at, stop = np.int64(load32(offsets + 4 * first)), np.int64(load32(offsets + 4 * (first + count)))
    seen = np.int64(0)
    while at + LINE <= stop:
        fetch(data + at + AHEAD)
        for word in range(at, at + LINE, 8):
            seen |= load64(data + word)
        at += LINE
    while at + 8 <= stop:
        seen |= load64(data + at)
        at += 8
    while at < stop:
        seen |= np.int64(load8(data + at)) & 0x80
        at += 1
    return bool((seen & _BEYOND_ASCII) == 0)


@kernel
def is_surely_right(batch: Word, required: Ints, texts: Ints, count: Word, is_kept: bool) -> bool:
    """Whether an exported batch has no NULL in some columns, and nothing but ASCII in others; it is released.

    Args:
        batch: Where its ``ArrowArray`` lies.
        required: The columns without NULLs.
        texts: The columns of strings.
        count: The number of rows, at least 1.
        is_kept: It is not released if it is right.
    """
    children = load64(batch + 8 * CHILDREN)
    is_right = True
    for k in range(required.shape[0]):
        if _has_null(load64(children + 8 * required[k]), count):
            is_right = False
    for k in range(texts.shape[0]):
        if is_right and not _is_ascii(load64(children + 8 * texts[k]), count):
            is_right = False
    if not (is_right and is_kept):
        call_at(load64(batch + 8 * RELEASE), batch)
    return is_right
