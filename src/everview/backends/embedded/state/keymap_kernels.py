"""The kernels of hash maps from key rows to slots: probe, insert, delete, rehash, sum.

A map is four arrays:

- ``table``: the probe table, a power of two long, at most half full, linear probing, entries of 32 bits. An entry is slot + 1
  in its lower BITS and the lowest bits of the row's hash (the tag) above them; 0 is empty. Tags decide most comparisons.
- ``store``: one row per slot: the key words, then the inline payload words.
- ``free``: the slots below HIGH that are not live, a stack of FREE entries.
- ``meta``: the counters below.

The hash is multiplicative (each word, its halves folded together, times an odd constant; the upper bits count), which spreads
dense keys without any collision. Keys that it clusters (some strides, some grids) are noticed by a long probe; the map then
changes to a second, non-linear hash for good. So the common case is fast and no natural pattern is slow. The hash is not kept:
what deletes or rehashes an entry computes it again from the key.

A kernel that finds the map full, or in need of care, stops and returns how many rows it has done; the caller sees to it and
calls again. The inlined bodies take the width as an argument, so that keys of one and two words get code of their own.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.intrinsics import fetch_element
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bools, Bytes, Ints

Entries: TypeAlias = npt.NDArray[np.uint32]
Marks: TypeAlias = Bytes

LIVE, HIGH, FREE, STRONG, LONG, SHIFT, TOUCHED, REMOVED, TRIM_AT, BITS, WRAPPED = range(11)
"""Places in ``meta``: entries; slots ever used; free slots below that; whether the second hash is in use; whether a long probe
happened; 32 minus the bits of the table's length; distinct rows of an ``add_weights``; entries removed since the last trim, and
the number of them that calls for the next; bits of an entry that are the slot; whether (below 0) a weight of an ``add_weights``
has left 64 bits."""
META_WORDS = 11

NO_STACK = -2
"""What ``add_weights`` returns when the stack of free slots is too short."""

OUT_OF_RANGE = -2
"""What ``consolidate`` returns when a sum of weights leaves 64 bits."""

NO_ROOM = -1
"""What ``_claim`` returns when the map is full; a slot is 0 or more, a slot just created is below -1."""

FILL = 5
"""Of eight words of the table, so many may be taken: then it takes at most 13 bytes an entry, and probes stay short."""

LOW = np.int64(0xFFFFFFFF)
HALF = np.int64(32)
ONE = np.int64(1)
FACTOR = np.int64(-7046029254386353131)  # 2**64 / golden ratio, odd
NEXT_FACTOR = np.int64(-4417276706812531889)  # odd; the factor of word j is FACTOR * NEXT_FACTOR**j
LONG_PROBE = 16  # random keys at half load reach it once in millions, evenly spread keys never
SOON = 8  # the same for the store
LARGE = 1 << 18  # words of a store that is not in the nearest caches
AHEAD = 16  # rows between asking for a cache line and reading it


@inlined
def _tag(rows: Ints, i: Word, width: Word, strong: Word) -> Word:
    """The upper half of the hash of a row's first words, as a signed number."""
    h = np.int64(0)
    if strong == 0:
        factor = FACTOR
        for j in range(width):
            word = rows[i, j]
            h += (word ^ (word >> HALF)) * factor
            factor *= NEXT_FACTOR
    else:
        for j in range(width):
            h = (h ^ rows[i, j]) * FACTOR
            h = (h ^ ((h >> HALF) & LOW)) * NEXT_FACTOR
    return h >> HALF


@inlined
def _same(store: Ints, slot: Word, rows: Ints, i: Word, width: Word) -> Word:
    """Whether the key in a slot is this row."""
    for j in range(width):  # noqa: SIM110  Numba compiles no generator expression
        if store[slot, j] != rows[i, j]:
            return False
    return True


@inlined
def _entry(tag: Word, slot: Word, bits: Word) -> Word:
    """The entry of a slot."""
    return ((tag << bits) | (slot + ONE)) & LOW


@inlined
def _claim(
    table: Entries, store: Ints, free: Entries, meta: Ints, rows: Ints, i: Word, width: Word, strong: Word, shift: Word,
    bits: Word,
) -> Word:  # fmt: skip
    """The slot of a row; -2 - slot if it is created now; NO_ROOM."""
    size = table.shape[0]
    tag = _tag(rows, i, width, strong)
    home = (tag & LOW) >> shift
    slots, wanted = (ONE << bits) - ONE, ((tag << bits) & LOW) >> bits
    at = home
    while True:
        entry = np.int64(table[at])
        if entry == 0:
            break
        if entry >> bits == wanted:
            slot = (entry & slots) - ONE
            if _same(store, slot, rows, i, width):
                return slot
        at = (at + 1) & (size - 1)
    count, high = meta[FREE], meta[HIGH]
    if meta[LIVE] * 8 >= size * FILL or (count == 0 and high == store.shape[0]):
        return NO_ROOM
    if count != 0:
        slot = np.int64(free[count - ONE])
        meta[FREE] = count - ONE
    else:
        slot = high
        meta[HIGH] = high + ONE
    meta[LIVE] += ONE
    for j in range(width):
        store[slot, j] = rows[i, j]
    for j in range(width, store.shape[1]):
        store[slot, j] = 0
    table[at] = _entry(tag, slot, bits)
    if strong == 0 and (at - home) & (size - 1) > LONG_PROBE:
        meta[LONG] = ONE
    return -2 - slot


@inlined
def _delete(table: Entries, store: Ints, free: Entries, meta: Ints, slot: Word, width: Word) -> Word:
    """Take a slot out of the table, moving later entries of its run back, so that no tombstone is needed; was it live?"""
    mask = table.shape[0] - 1
    shift, strong, slots = meta[SHIFT], meta[STRONG], (ONE << meta[BITS]) - ONE
    hole = (_tag(store, slot, width, strong) & LOW) >> shift
    while np.int64(table[hole]) & slots != slot + ONE:
        if table[hole] == 0:
            return False
        hole = (hole + 1) & mask
    at = hole
    while True:
        at = (at + 1) & mask
        entry = np.int64(table[at])
        if entry == 0:
            break
        home = (_tag(store, (entry & slots) - ONE, width, strong) & LOW) >> shift
        if (at - home) & mask >= (at - hole) & mask:
            table[hole] = entry
            hole = at
    table[hole] = 0
    free[meta[FREE]] = slot
    meta[FREE] += ONE
    meta[LIVE] -= ONE
    meta[REMOVED] += ONE
    return True


@inlined
def _look_ahead(
    table: Entries, store: Ints, rows: Ints, i: Word, n: Word, width: Word, strong: Word, shift: Word, bits: Word,
    is_large: Word,
) -> None:  # fmt: skip
    """Ask for the lines that later rows will read: of the table, and of a large store, once the table's line is there."""
    if i + AHEAD < n:
        fetch_element(table, (_tag(rows, i + AHEAD, width, strong) & LOW) >> shift)
    if is_large and i + SOON < n:
        entry = np.int64(table[(_tag(rows, i + SOON, width, strong) & LOW) >> shift])
        fetch_element(store, ((entry & ((ONE << bits) - ONE)) - ONE) * store.shape[1])


@inlined
def _find(table: Entries, store: Ints, meta: Ints, rows: Ints, slots: Ints, width: Word) -> None:
    mask = table.shape[0] - 1
    shift, strong, bits = meta[SHIFT], meta[STRONG], meta[BITS]
    numbers = (ONE << bits) - ONE
    n = rows.shape[0]
    is_large = store.size > LARGE
    for i in range(n):
        _look_ahead(table, store, rows, i, n, width, strong, shift, bits, is_large)
        tag = _tag(rows, i, width, strong)
        at = (tag & LOW) >> shift
        wanted = ((tag << bits) & LOW) >> bits
        found = -ONE
        while True:
            entry = np.int64(table[at])
            if entry == 0:
                break
            if entry >> bits == wanted:
                slot = (entry & numbers) - ONE
                if _same(store, slot, rows, i, width):
                    found = slot
                    break
            at = (at + 1) & mask
        slots[i] = found


@inlined
def _upsert(
    table: Entries, store: Ints, free: Entries, meta: Ints, rows: Ints, start: Word, slots: Ints, created: Bools,
    width: Word,
) -> Word:  # fmt: skip
    if meta[LONG] != 0 or meta[REMOVED] >= meta[TRIM_AT]:
        return start
    shift, strong, bits = meta[SHIFT], meta[STRONG], meta[BITS]
    n = rows.shape[0]
    is_large = store.size > LARGE
    tells = created.shape[0] != 0
    for i in range(start, n):
        _look_ahead(table, store, rows, i, n, width, strong, shift, bits, is_large)
        slot = _claim(table, store, free, meta, rows, i, width, strong, shift, bits)
        if slot < 0:
            if slot == NO_ROOM:
                return i
            slot = -2 - slot
            if tells:
                created[i] = True
            if meta[LONG] != 0:
                slots[i] = slot
                return i + 1
        slots[i] = slot
    return n


@inlined
def _add_weights(
    table: Entries, store: Ints, free: Entries, meta: Ints, marks: Marks, rows: Ints, weights: Ints, start: Word,
    out: Ints, width: Word,
) -> Word:  # fmt: skip
    count = meta[TOUCHED] if start > 0 else np.int64(0)
    wrapped = meta[WRAPPED] if start > 0 else np.int64(0)
    meta[TOUCHED], meta[WRAPPED] = count, wrapped
    n = rows.shape[0]
    if start < n and (meta[LONG] != 0 or meta[REMOVED] >= meta[TRIM_AT]):
        return start
    shift, strong, bits = meta[SHIFT], meta[STRONG], meta[BITS]
    is_large = store.size > LARGE
    for i in range(start, n):
        _look_ahead(table, store, rows, i, n, width, strong, shift, bits, is_large)
        slot = _claim(table, store, free, meta, rows, i, width, strong, shift, bits)
        is_long = False
        if slot < 0:
            if slot == NO_ROOM:
                meta[TOUCHED], meta[WRAPPED] = count, wrapped
                return i
            slot = -2 - slot
            is_long = meta[LONG] != 0
        if marks[slot] == 0:
            marks[slot] = 1
            out[0, count] = slot
            out[1, count] = i
            out[2, count] = store[slot, width]
            count += 1
        before, weight = store[slot, width], weights[i]
        after = before + weight
        wrapped |= (before ^ after) & (weight ^ after)
        store[slot, width] = after
        if is_long and i + 1 < n:
            meta[TOUCHED], meta[WRAPPED] = count, wrapped
            return i + 1
    meta[TOUCHED], meta[WRAPPED] = count, wrapped
    gone = 0
    for k in range(count):
        slot = out[0, k]
        out[3, k] = store[slot, width]
        gone += store[slot, width] == 0
    if meta[FREE] + gone > free.shape[0]:
        return NO_STACK
    for k in range(count):
        slot = out[0, k]
        marks[slot] = 0
        if gone != 0 and out[3, k] == 0:
            _delete(table, store, free, meta, slot, width)
    return n


@inlined
def _consolidate(
    table: Ints, shift: Word, strong: Word, rows: Ints, weights: Ints, first: Ints, sums: Ints, width: Word
) -> Word:
    mask = table.shape[0] - 1
    table[:] = 0
    n = rows.shape[0]
    count, wrapped = np.int64(0), np.int64(0)
    for i in range(n):
        tag = _tag(rows, i, width, strong)
        home = (tag & LOW) >> shift
        at = home
        while True:
            entry = table[at]
            if entry == 0:
                first[count] = i
                sums[count] = weights[i]
                count += ONE
                table[at] = (tag << HALF) | count
                if strong == 0 and (at - home) & mask > LONG_PROBE:
                    return -1
                break
            if entry >> HALF == tag:
                group = (entry & LOW) - ONE
                if _same(rows, first[group], rows, i, width):
                    after = sums[group] + weights[i]
                    wrapped |= (sums[group] ^ after) & (weights[i] ^ after)
                    sums[group] = after
                    break
            at = (at + 1) & mask
    if wrapped < 0:
        return OUT_OF_RANGE
    kept = 0
    for group in range(count):
        if sums[group] != 0:
            first[kept] = first[group]
            sums[kept] = sums[group]
            kept += 1
    return kept


@kernel
def remove(table: Entries, store: Ints, free: Entries, meta: Ints, width: Word, slots: Ints) -> Word:
    """Delete live slots; returns how many, which is less than asked if a slot was not live."""
    for i in range(slots.shape[0]):
        slot = slots[i]
        if slot < 0 or slot >= meta[HIGH] or not _delete(table, store, free, meta, slot, width):
            return i
    return slots.shape[0]


@kernel
def rehash(table: Entries, store: Ints, meta: Ints, width: Word, slots: Ints) -> None:
    """Fill an empty table with live slots."""
    mask = table.shape[0] - 1
    shift, strong, bits = meta[SHIFT], meta[STRONG], meta[BITS]
    n = slots.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            fetch_element(table, (_tag(store, slots[i + AHEAD], width, strong) & LOW) >> shift)
        tag = _tag(store, slots[i], width, strong)
        at = (tag & LOW) >> shift
        while table[at] != 0:
            at = (at + 1) & mask
        table[at] = _entry(tag, slots[i], bits)


@kernel
def find(table: Entries, store: Ints, meta: Ints, rows: Ints, slots: Ints) -> None:
    """Write the slot of each row, or -1."""
    if rows.shape[1] == 1:
        _find(table, store, meta, rows, slots, 1)
    elif rows.shape[1] == 2:
        _find(table, store, meta, rows, slots, 2)
    else:
        _find(table, store, meta, rows, slots, rows.shape[1])


@kernel
def upsert(
    table: Entries, store: Ints, free: Entries, meta: Ints, rows: Ints, start: Word, slots: Ints, created: Bools
) -> Word:
    """Write the slot of each row, creating what is missing, and mark what was created unless ``created`` is empty."""
    if rows.shape[1] == 1:
        return _upsert(table, store, free, meta, rows, start, slots, created, 1)
    if rows.shape[1] == 2:
        return _upsert(table, store, free, meta, rows, start, slots, created, 2)
    return _upsert(table, store, free, meta, rows, start, slots, created, rows.shape[1])


@kernel
def add_weights(
    table: Entries, store: Ints, free: Entries, meta: Ints, marks: Marks, rows: Ints, weights: Ints, start: Word,
    out: Ints,
) -> Word:  # fmt: skip
    """Add weights to rows; when done, write slot, first row, old and new weight of each distinct row; delete zeros.

    Returns NO_STACK when all is added, and only the stack of free slots is too short to delete the zeros.
    """
    if rows.shape[1] == 1:
        return _add_weights(table, store, free, meta, marks, rows, weights, start, out, 1)
    if rows.shape[1] == 2:
        return _add_weights(table, store, free, meta, marks, rows, weights, start, out, 2)
    return _add_weights(table, store, free, meta, marks, rows, weights, start, out, rows.shape[1])


@kernel
def consolidate(table: Ints, shift: Word, strong: Word, rows: Ints, weights: Ints, first: Ints, sums: Ints) -> Word:
    """Sum the weights of equal rows; returns the number of nonzero groups, -1 if the first hash clusters, or OUT_OF_RANGE."""
    if rows.shape[1] == 1:
        return _consolidate(table, shift, strong, rows, weights, first, sums, 1)
    if rows.shape[1] == 2:
        return _consolidate(table, shift, strong, rows, weights, first, sums, 2)
    return _consolidate(table, shift, strong, rows, weights, first, sums, rows.shape[1])
