"""The kernels of hash maps from key rows to slots: find, insert, delete, rehash, sum.

A map is four arrays:

- ``table``: the probe table, a power of two long, at most five eighths full (``probing``).
- ``store``: one row per slot: the key words, then the inline payload words.
- ``free``: the slots below HIGH that are not live, a stack of FREE entries.
- ``meta``: the counters below.

A kernel that finds the map full, or in need of care, stops and returns how many rows it has done; the caller sees to it and
calls again. The inlined bodies take the width as an argument, so that keys of one and two words get code of their own.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.intrinsics import fetch, load, load_half, start_of
from everview.backends.embedded.state.intrinsics import store as put
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.probing import (
    BLOCK,
    LOW,
    erase_at,
    fill_table,
    hash_entry,
    is_same,
    next_match,
    place_of,
    place_slot,
)
from everview.backends.embedded.vectors import Bools, Bytes, Ints

Entries: TypeAlias = npt.NDArray[np.uint32]
Marks: TypeAlias = Bytes

LIVE, HIGH, FREE, MODE, LONG, LONGEST, TOUCHED, REMOVED, TRIM_AT, BITS, WRAPPED = range(11)
"""Places in ``meta``: entries; slots ever used; free slots below that; the mode, and whether a key lies so far from its place
that it must be 1; the longest way of an entry from its place; distinct rows of an ``add_weights``; entries removed since the
last trim, and the number of them that calls for the next; the mask of what is the slot in a word of the table; whether (below
0) a weight of an ``add_weights`` has left 64 bits."""
META_WORDS = 11

NO_STACK = -2
"""What ``add_weights`` returns when the stack of free slots is too short."""

OUT_OF_RANGE = -2
"""What ``consolidate`` returns when a sum of weights leaves 64 bits."""

NO_ROOM = -1
"""What ``_claim`` returns when the map is full; a slot is 0 or more, a slot just created is below -1."""

FILL = 5
"""Of eight words of the table, so many may be taken: then it takes at most 13 bytes an entry, and probes stay short."""

LONG_WAY, LONG_SPREAD_WAY = 16, 32
"""The way of a key from its place that calls for mode 1: dense keys have none, and others lose nothing by it. Keys of several
words have longer ones where the table is nearly full, as in mode 1."""
LARGE = 1 << 18
"""Words of a store that is not in the nearest caches."""
HALF = np.int64(32)
ONE = np.int64(1)


@inlined
def _longest_of(width: Word) -> Word:
    """The way of a key that calls for mode 1."""
    return LONG_WAY if width == 1 else LONG_SPREAD_WAY


@inlined
def _hash_block(
    table: Word,
    mask: Word,
    bits: Word,
    entries: Word,
    stride: Word,
    rows: Word,
    start: Word,
    end: Word,
    width: Word,
    mode: Word,
    out: Word,
) -> None:
    """The hashes of some rows, and hints to the processor which places and entries of a large map are next."""
    for i in range(start, end):
        hashed = hash_entry(rows + i * width * 8, 0, width, mode)
        put(out, i, hashed)
        fetch(table + (hashed & mask) * 4)
    for i in range(start, end):
        fetch(entries + ((load_half(table, load(out, i) & mask) & bits) - 1) * stride)


@inlined
def _slot_of(
    table: Word,
    mask: Word,
    bits: Word,
    longest: Word,
    entries: Word,
    stride: Word,
    key: Word,
    hashed: Word,
    width: Word,
) -> Word:
    """The slot with a key, or -1."""
    position = hashed & mask
    last = position + longest
    while True:
        slot, position = next_match(table, mask, bits, hashed, position, last)
        if slot < 0 or is_same(entries + slot * stride, key, width):
            return slot


@inlined
def _claim(
    table: Word,
    mask: Word,
    bits: Word,
    store: Ints,
    free: Entries,
    meta: Ints,
    key: Word,
    hashed: Word,
    width: Word,
) -> Word:
    """The slot of a key; -2 - slot if it is created now; NO_ROOM."""
    entries, stride = start_of(store), store.shape[1] * 8
    slot = _slot_of(table, mask, bits, meta[LONGEST], entries, stride, key, hashed, width)
    if slot >= 0:
        return slot
    count, high = meta[FREE], meta[HIGH]
    if meta[LIVE] * 8 >= (mask + 1) * FILL or (count == 0 and high == store.shape[0]):
        return NO_ROOM
    if count != 0:
        slot = np.int64(free[count - ONE])
        meta[FREE] = count - ONE
    else:
        slot = high
        meta[HIGH] = high + ONE
    meta[LIVE] += ONE
    for j in range(width):
        store[slot, j] = load(key, j)
    for j in range(width, store.shape[1]):
        store[slot, j] = 0
    distance = place_slot(table, mask, bits, hashed, slot)
    if distance > meta[LONGEST]:
        meta[LONGEST] = distance
        if distance > _longest_of(width) and meta[MODE] != 1:
            meta[LONG] = ONE
    return -2 - slot


@inlined
def _delete(table: Entries, store: Ints, free: Entries, meta: Ints, slot: Word, width: Word) -> Word:
    """Take a slot out of the table; was it live?"""
    places, mask, bits = start_of(table), table.shape[0] - 1, meta[BITS]
    entries, stride = start_of(store), store.shape[1] * 8
    hashed = hash_entry(entries + slot * stride, 0, width, meta[MODE])
    hole = place_of(places, mask, bits, meta[LONGEST], hashed, slot)
    if hole < 0:
        return False
    erase_at(places, mask, bits, meta[LONGEST], entries, stride, 0, width, meta[MODE], hole)
    free[meta[FREE]] = slot
    meta[FREE] += ONE
    meta[LIVE] -= ONE
    meta[REMOVED] += ONE
    return True


@inlined
def _find(table: Entries, store: Ints, meta: Ints, rows: Ints, slots: Ints, width: Word) -> None:
    places, mask, bits, longest, mode = start_of(table), table.shape[0] - 1, meta[BITS], meta[LONGEST], meta[MODE]
    entries, stride, given, out = start_of(store), store.shape[1] * 8, start_of(rows), start_of(slots)
    n, is_large = rows.shape[0], store.size > LARGE
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        if is_large:
            _hash_block(places, mask, bits, entries, stride, given, start, end, width, mode, out)
        for i in range(start, end):
            key = given + i * width * 8
            hashed = load(out, i) if is_large else hash_entry(key, 0, width, mode)
            put(out, i, _slot_of(places, mask, bits, longest, entries, stride, key, hashed, width))


@inlined
def _upsert(
    table: Entries, store: Ints, free: Entries, meta: Ints, rows: Ints, start: Word, slots: Ints, created: Bools,
    number: Word, width: Word,
) -> Word:  # fmt: skip
    if meta[LONG] != 0 or meta[REMOVED] >= meta[TRIM_AT]:
        return start
    places, mask, bits, mode = start_of(table), table.shape[0] - 1, meta[BITS], meta[MODE]
    entries, stride, given, out = start_of(store), store.shape[1] * 8, start_of(rows), start_of(slots)
    n, is_large = rows.shape[0], store.size > LARGE
    tells = created.shape[0] != 0
    for first in range(start, n, BLOCK):
        end = min(first + BLOCK, n)
        if is_large:
            _hash_block(places, mask, bits, entries, stride, given, first, end, width, mode, out)
        for i in range(first, end):
            key = given + i * width * 8
            hashed = load(out, i) if is_large else hash_entry(key, 0, width, mode)
            slot = _claim(places, mask, bits, store, free, meta, key, hashed, width)
            if slot < 0:
                if slot == NO_ROOM:
                    return i
                slot = -2 - slot
                if tells:
                    created[i] = True
                if number >= 0:
                    store[slot, width] = number + i
                if meta[LONG] != 0:
                    slots[i] = slot
                    return i + 1
            elif number >= 0:
                return -1 - i
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
    places, mask, bits, mode = start_of(table), table.shape[0] - 1, meta[BITS], meta[MODE]
    entries, stride, given = start_of(store), store.shape[1] * 8, start_of(rows)
    is_large = store.size > LARGE
    hashes = start_of(out) + 24 * out.shape[1]  # its last row is written when all rows are done
    for first in range(start, n, BLOCK):
        end = min(first + BLOCK, n)
        if is_large:
            _hash_block(places, mask, bits, entries, stride, given, first, end, width, mode, hashes)
        for i in range(first, end):
            key = given + i * width * 8
            hashed = load(hashes, i) if is_large else hash_entry(key, 0, width, mode)
            slot = _claim(places, mask, bits, store, free, meta, key, hashed, width)
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
def _consolidate(table: Ints, rows: Ints, weights: Ints, first: Ints, sums: Ints, width: Word) -> Word:
    mask = table.shape[0] - 1
    table[:] = 0
    given, n = start_of(rows), rows.shape[0]
    count, wrapped = np.int64(0), np.int64(0)
    for i in range(n):
        key = given + i * width * 8
        hashed = hash_entry(key, 0, width, 1)
        at = hashed & mask
        while True:
            entry = table[at]
            if entry == 0:
                first[count] = i
                sums[count] = weights[i]
                count += ONE
                table[at] = (hashed << HALF) | count
                break
            if (entry >> HALF) & LOW == hashed:
                group = (entry & LOW) - ONE
                if is_same(given + first[group] * width * 8, key, width):
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
    """Fill an empty table with live slots; where every slot that was ever used is live, these need not be listed."""
    is_all = slots.shape[0] == 0 and meta[FREE] == 0
    meta[LONGEST], meta[MODE] = fill_table(
        start_of(table), table.shape[0] - 1, meta[BITS], start_of(store), store.shape[1] * 8, width, meta[MODE],
        0 if is_all else start_of(slots), meta[HIGH] if is_all else slots.shape[0], _longest_of(width),
    )  # fmt: skip


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
    table: Entries, store: Ints, free: Entries, meta: Ints, rows: Ints, start: Word, slots: Ints, created: Bools,
    number: Word,
) -> Word:  # fmt: skip
    """Write the slot of each row, creating what is missing, and mark what was created unless ``created`` is empty.

    With a ``number``, that of the first row, all rows should be new: each gets its number as payload, and at a row i that is
    there already the kernel stops, and returns -1 - i.
    """
    if rows.shape[1] == 1:
        return _upsert(table, store, free, meta, rows, start, slots, created, number, 1)
    if rows.shape[1] == 2:
        return _upsert(table, store, free, meta, rows, start, slots, created, number, 2)
    return _upsert(table, store, free, meta, rows, start, slots, created, number, rows.shape[1])


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
def turned(keys: Ints, changes: Ints, count: Word, most: Word, out: Ints, more: Ints) -> Word:
    """Write the rows whose weight is, or was, at most so much, and how much more it is now; returns how many they are.

    Args:
        keys: What was added to a map.
        changes: What ``add_weights`` has written.
        count: How many distinct rows that were.
        most: 0 tells the rows that came or went, as 1 and -1: a weight above 0 counts as 1 then.
        out: Where to write rows.
        more: Where to write how much more.
    """
    found = 0
    for k in range(count):
        old, new = changes[2, k], changes[3, k]
        if most == 0:
            old, new = (1 if old > 0 else 0), (1 if new > 0 else 0)
        if min(old, new) <= most and (most != 0 or old != new):
            row = changes[1, k]
            for word in range(keys.shape[1]):
                out[found, word] = keys[row, word]
            more[found] = new - old
            found += 1
    return found


@kernel
def consolidate(table: Ints, rows: Ints, weights: Ints, first: Ints, sums: Ints) -> Word:
    """Sum the weights of equal rows; returns the number of nonzero groups, or OUT_OF_RANGE."""
    if rows.shape[1] == 1:
        return _consolidate(table, rows, weights, first, sums, 1)
    if rows.shape[1] == 2:
        return _consolidate(table, rows, weights, first, sums, 2)
    return _consolidate(table, rows, weights, first, sums, rows.shape[1])
