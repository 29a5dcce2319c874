"""The kernels of hash maps from key rows to slots: probe, insert, delete, rehash, sum.

A map is four arrays:

- ``table``: the probe table, a power of two long, at most half full, linear probing. An entry is the upper half of the row's
  hash (the tag) above slot + 1; 0 is empty. Tags decide almost every comparison; rehashing and deleting read nothing else.
- ``store``: one row per slot: the key words, then the inline payload words.
- ``links``: per slot its tag if it is live, else -1 - FREE: the chain of free slots.
- ``meta``: the counters below.

The hash is multiplicative (each word, its halves folded together, times an odd constant; the upper bits count), which spreads
dense keys without any collision. Keys that it clusters (some strides, some grids) are noticed by a long probe; the map then
changes to a second, non-linear hash for good. So the common case is fast and no natural pattern is slow.

A kernel that finds the map full, or in need of care, stops and returns how many rows it has done; the caller sees to it and
calls again. The inlined bodies take the width as an argument, so that keys of one and two words get code of their own.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.kernel import Word, inlined, kernel, prefetch
from everview.backends.embedded.vectors import Bools, Ints

LIVE, HIGH, FREE, STRONG, LONG, SHIFT, TOUCHED, REMOVED, TRIM_AT = range(9)
"""Places in ``meta``: entries; slots ever used; first free slot + 1; whether the second hash is in use; whether a long probe
happened; 32 minus the bits of the table's length; distinct rows of an ``add_weights``; entries removed since the last trim, and
the number of them that calls for the next."""
META_WORDS = 9

NO_ROOM = -1
"""What ``_claim`` returns when the map is full; a slot is 0 or more, a slot just created is below -1."""

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
def _claim(
    table: Ints, store: Ints, links: Ints, meta: Ints, rows: Ints, i: Word, width: Word, strong: Word, shift: Word
) -> Word:
    """The slot of a row; -2 - slot if it is created now; NO_ROOM."""
    size = table.shape[0]
    tag = _tag(rows, i, width, strong)
    home = (tag & LOW) >> shift
    at = home
    while True:
        entry = table[at]
        if entry == 0:
            break
        if entry >> HALF == tag:
            slot = (entry & LOW) - ONE
            if _same(store, slot, rows, i, width):
                return slot
        at = (at + 1) & (size - 1)
    free, high = meta[FREE], meta[HIGH]
    if meta[LIVE] * 2 >= size or (free == 0 and high == store.shape[0]):
        return NO_ROOM
    if free != 0:
        slot = free - ONE
        meta[FREE] = -ONE - links[slot]
    else:
        slot = high
        meta[HIGH] = high + ONE
    meta[LIVE] += ONE
    for j in range(width):
        store[slot, j] = rows[i, j]
    for j in range(width, store.shape[1]):
        store[slot, j] = 0
    links[slot] = tag & LOW
    table[at] = (tag << HALF) | (slot + ONE)
    if strong == 0 and (at - home) & (size - 1) > LONG_PROBE:
        meta[LONG] = ONE
    return -2 - slot


@inlined
def _delete(table: Ints, links: Ints, meta: Ints, slot: Word, shift: Word) -> None:
    """Take a live slot out of the table, moving later entries of its run back so that no tombstone is needed."""
    mask = table.shape[0] - 1
    hole = links[slot] >> shift
    while table[hole] & LOW != slot + ONE:
        hole = (hole + 1) & mask
    at = hole
    while True:
        at = (at + 1) & mask
        entry = table[at]
        if entry == 0:
            break
        home = ((entry >> HALF) & LOW) >> shift
        if (at - home) & mask >= (at - hole) & mask:
            table[hole] = entry
            hole = at
    table[hole] = 0
    links[slot] = -ONE - meta[FREE]
    meta[FREE] = slot + ONE
    meta[LIVE] -= ONE
    meta[REMOVED] += ONE


@inlined
def _place(table: Ints, tag: Word, slot: Word, shift: Word) -> None:
    """Put a slot that is not in the table into it."""
    at = (tag & LOW) >> shift
    while table[at] != 0:
        at = (at + 1) & (table.shape[0] - 1)
    table[at] = (tag << HALF) | (slot + ONE)


@inlined
def _look_ahead(
    table: Ints, store: Ints, rows: Ints, i: Word, n: Word, width: Word, strong: Word, shift: Word, is_large: Word
) -> None:
    """Ask for the lines that later rows will read: of the table, and of a large store, once the table's line is there."""
    if i + AHEAD < n:
        prefetch(table, (_tag(rows, i + AHEAD, width, strong) & LOW) >> shift)
    if is_large and i + SOON < n:
        entry = table[(_tag(rows, i + SOON, width, strong) & LOW) >> shift]
        prefetch(store, ((entry & LOW) - ONE) * store.shape[1])


@inlined
def _find(table: Ints, store: Ints, meta: Ints, rows: Ints, slots: Ints, width: Word) -> None:
    mask = table.shape[0] - 1
    shift, strong = meta[SHIFT], meta[STRONG]
    n = rows.shape[0]
    is_large = store.size > LARGE
    for i in range(n):
        _look_ahead(table, store, rows, i, n, width, strong, shift, is_large)
        tag = _tag(rows, i, width, strong)
        at = (tag & LOW) >> shift
        found = -ONE
        while True:
            entry = table[at]
            if entry == 0:
                break
            if entry >> HALF == tag:
                slot = (entry & LOW) - ONE
                if _same(store, slot, rows, i, width):
                    found = slot
                    break
            at = (at + 1) & mask
        slots[i] = found


@inlined
def _upsert(
    table: Ints,
    store: Ints,
    links: Ints,
    meta: Ints,
    rows: Ints,
    start: Word,
    slots: Ints,
    created: Bools,
    width: Word,
) -> Word:
    if meta[LONG] != 0 or meta[REMOVED] >= meta[TRIM_AT]:
        return start
    shift, strong = meta[SHIFT], meta[STRONG]
    n = rows.shape[0]
    is_large = store.size > LARGE
    tells = created.shape[0] != 0
    for i in range(start, n):
        _look_ahead(table, store, rows, i, n, width, strong, shift, is_large)
        slot = _claim(table, store, links, meta, rows, i, width, strong, shift)
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
    table: Ints,
    store: Ints,
    links: Ints,
    meta: Ints,
    rows: Ints,
    weights: Ints,
    start: Word,
    out: Ints,
    width: Word,
) -> Word:
    count = meta[TOUCHED] if start > 0 else np.int64(0)
    meta[TOUCHED] = count
    if meta[LONG] != 0 or meta[REMOVED] >= meta[TRIM_AT]:
        return start
    shift, strong = meta[SHIFT], meta[STRONG]
    n = rows.shape[0]
    is_large = store.size > LARGE
    mark = width + 1
    for i in range(start, n):
        _look_ahead(table, store, rows, i, n, width, strong, shift, is_large)
        slot = _claim(table, store, links, meta, rows, i, width, strong, shift)
        is_long = False
        if slot < 0:
            if slot == NO_ROOM:
                meta[TOUCHED] = count
                return i
            slot = -2 - slot
            is_long = meta[LONG] != 0
        if store[slot, mark] == 0:
            store[slot, mark] = 1
            out[0, count] = slot
            out[1, count] = i
            out[2, count] = store[slot, width]
            count += 1
        store[slot, width] += weights[i]
        if is_long and i + 1 < n:
            meta[TOUCHED] = count
            return i + 1
    for k in range(count):
        slot = out[0, k]
        store[slot, mark] = 0
        out[3, k] = store[slot, width]
        if store[slot, width] == 0:
            _delete(table, links, meta, slot, shift)
    meta[TOUCHED] = count
    return n


@inlined
def _consolidate(
    table: Ints, shift: Word, strong: Word, rows: Ints, weights: Ints, first: Ints, sums: Ints, width: Word
) -> Word:
    mask = table.shape[0] - 1
    table[:] = 0
    n = rows.shape[0]
    count = np.int64(0)
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
                    sums[group] += weights[i]
                    break
            at = (at + 1) & mask
    kept = 0
    for group in range(count):
        if sums[group] != 0:
            first[kept] = first[group]
            sums[kept] = sums[group]
            kept += 1
    return kept


@kernel
def remove(table: Ints, links: Ints, meta: Ints, slots: Ints) -> Word:
    """Delete live slots; returns how many, which is less than asked if a slot was not live."""
    shift = meta[SHIFT]
    for i in range(slots.shape[0]):
        slot = slots[i]
        if slot < 0 or slot >= links.shape[0] or links[slot] < 0:
            return i
        _delete(table, links, meta, slot, shift)
    return slots.shape[0]


@kernel
def rehash(old: Ints, table: Ints, shift: Word) -> None:
    """Fill an empty table with the entries of another."""
    for at in range(old.shape[0]):
        entry = old[at]
        if entry != 0:
            _place(table, entry >> HALF, (entry & LOW) - ONE, shift)


@kernel
def change_hash(table: Ints, store: Ints, links: Ints, meta: Ints, width: Word) -> None:
    """Fill an empty table by the second hash."""
    for slot in range(meta[HIGH]):
        if links[slot] >= 0:
            tag = _tag(store, slot, width, 1)
            links[slot] = tag & LOW
            _place(table, tag, slot, meta[SHIFT])


@kernel
def chain_free(links: Ints, meta: Ints) -> None:
    """Chain the free slots below HIGH anew, the lowest first: it is the next to be used."""
    meta[FREE] = 0
    for slot in range(meta[HIGH] - ONE, -1, -1):
        if links[slot] < 0:
            links[slot] = -ONE - meta[FREE]
            meta[FREE] = slot + ONE


@kernel
def find(table: Ints, store: Ints, meta: Ints, rows: Ints, slots: Ints) -> None:
    """Write the slot of each row, or -1."""
    if rows.shape[1] == 1:
        _find(table, store, meta, rows, slots, 1)
    elif rows.shape[1] == 2:
        _find(table, store, meta, rows, slots, 2)
    else:
        _find(table, store, meta, rows, slots, rows.shape[1])


@kernel
def upsert(
    table: Ints, store: Ints, links: Ints, meta: Ints, rows: Ints, start: Word, slots: Ints, created: Bools
) -> Word:
    """Write the slot of each row, creating what is missing, and mark what was created unless ``created`` is empty."""
    if rows.shape[1] == 1:
        return _upsert(table, store, links, meta, rows, start, slots, created, 1)
    if rows.shape[1] == 2:
        return _upsert(table, store, links, meta, rows, start, slots, created, 2)
    return _upsert(table, store, links, meta, rows, start, slots, created, rows.shape[1])


@kernel
def add_weights(
    table: Ints, store: Ints, links: Ints, meta: Ints, rows: Ints, weights: Ints, start: Word, out: Ints
) -> Word:
    """Add weights to rows; when done, write slot, first row, old and new weight of each distinct row; delete zeros."""
    if rows.shape[1] == 1:
        return _add_weights(table, store, links, meta, rows, weights, start, out, 1)
    if rows.shape[1] == 2:
        return _add_weights(table, store, links, meta, rows, weights, start, out, 2)
    return _add_weights(table, store, links, meta, rows, weights, start, out, rows.shape[1])


@kernel
def consolidate(table: Ints, shift: Word, strong: Word, rows: Ints, weights: Ints, first: Ints, sums: Ints) -> Word:
    """Sum the weights of equal rows; returns the number of nonzero groups, or -1 if the first hash clusters."""
    if rows.shape[1] == 1:
        return _consolidate(table, shift, strong, rows, weights, first, sums, 1)
    if rows.shape[1] == 2:
        return _consolidate(table, shift, strong, rows, weights, first, sums, 2)
    return _consolidate(table, shift, strong, rows, weights, first, sums, rows.shape[1])
