"""Rows of Arrow batches compared where they lie, value by value."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import fetch, load8, load16, load32, load64
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bools, Ints

COLUMN_WORDS = 4
DATA, OFFSETS, VALIDITY, FIRST = range(COLUMN_WORDS)
"""Words of a column of a batch: address of its values; of their offsets, for text; of its validity bits, or 0 where no value is
NULL; the position of its first value."""

AHEAD = 16  # rows between asking for a value and reading it
SOON = 8  # the same for the bytes of text

BITS, TEXT = 0, -1
"""Widths of columns that are not so many bytes wide: a bit, and bytes between 32-bit offsets."""


@inlined
def _is_valid(validity: Word, i: Word) -> Word:
    return validity == 0 or (load8(validity + (i >> 3)) >> (i & 7)) & 1 != 0


@inlined
def _same_bytes(a: Word, b: Word, length: Word) -> Word:
    at = 0
    while at + 8 <= length:
        if load64(a + at) != load64(b + at):
            return False
        at += 8
    while at < length:
        if load8(a + at) != load8(b + at):
            return False
        at += 1
    return True


@inlined
def _same_value(width: Word, a: Word, a_offsets: Word, i: Word, b: Word, b_offsets: Word, j: Word) -> Word:
    if width == 8:
        return load64(a + 8 * i) == load64(b + 8 * j)
    if width == 16:
        return load64(a + 16 * i) == load64(b + 16 * j) and load64(a + 16 * i + 8) == load64(b + 16 * j + 8)
    if width == 4:
        return load32(a + 4 * i) == load32(b + 4 * j)
    if width == TEXT:
        begin, other = load32(a_offsets + 4 * i), load32(b_offsets + 4 * j)
        length = load32(a_offsets + 4 * i + 4) - begin
        return length == load32(b_offsets + 4 * j + 4) - other and _same_bytes(a + begin, b + other, length)
    if width == 2:
        return load16(a + 2 * i) == load16(b + 2 * j)
    if width == 1:
        return load8(a + i) == load8(b + j)
    return (load8(a + (i >> 3)) >> (i & 7)) & 1 == (load8(b + (j >> 3)) >> (j & 7)) & 1


@inlined
def _ask_for(width: Word, places: Ints, home: Word, c: Word, row: Word) -> None:
    """Ask for the line of a value, or for text that of its offset."""
    at = row + places[home, c, FIRST]
    if width == TEXT:
        fetch(places[home, c, OFFSETS] + 4 * at)
    else:
        fetch(places[home, c, DATA] + width * at)


@inlined
def _ask_for_text(places: Ints, home: Word, c: Word, row: Word) -> None:
    """Ask for the line of a text, whose offset is there by now."""
    offsets = places[home, c, OFFSETS]
    fetch(places[home, c, DATA] + load32(offsets + 4 * (row + places[home, c, FIRST])))


@kernel
def compare_rows(
    widths: Ints, left: Ints, left_homes: Ints, left_rows: Ints, right: Ints, right_homes: Ints, right_rows: Ints,
    same: Bools,
) -> None:  # fmt: skip
    """Write whether rows are the same, pair by pair; NULL is the same as NULL.

    Args:
        widths: Of each column.
        left: The words of each column of each batch.
        left_homes: The batch of each row.
        left_rows: Its position in there.
        right: The same of the rows to compare with.
        right_homes: The same.
        right_rows: The same.
        same: Where to write.
    """
    same[:] = True
    # Column by column, so that what is asked for ahead is near.
    for c in range(widths.shape[0]):
        width = widths[c]
        n = same.shape[0]
        for k in range(n):
            if k + AHEAD < n:
                _ask_for(width, left, left_homes[k + AHEAD], c, left_rows[k + AHEAD])
                _ask_for(width, right, right_homes[k + AHEAD], c, right_rows[k + AHEAD])
            if width == TEXT and k + SOON < n:
                _ask_for_text(right, right_homes[k + SOON], c, right_rows[k + SOON])
            if not same[k]:
                continue
            a, b = left_homes[k], right_homes[k]
            i, j = left_rows[k] + left[a, c, FIRST], right_rows[k] + right[b, c, FIRST]
            is_value = _is_valid(left[a, c, VALIDITY], i)
            if is_value != _is_valid(right[b, c, VALIDITY], j):
                same[k] = False
            elif is_value:
                same[k] = _same_value(
                    width, left[a, c, DATA], left[a, c, OFFSETS], i, right[b, c, DATA], right[b, c, OFFSETS], j
                )
