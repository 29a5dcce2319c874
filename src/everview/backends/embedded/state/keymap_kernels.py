"""The kernels of hash maps from key rows to slots: probe, insert, delete, rehash, sum.

A map is four arrays:

- ``table``: the probe table, a power of two long, at most half full, linear probing. An entry is the upper half of the row's
  hash (the tag) above slot + 1; 0 is empty. Tags decide almost every comparison, and rehashing and deleting read nothing else.
- ``store``: one row per slot: the key words, then the inline payload words.
- ``links``: per slot its tag if it is live, else -1 - FREE, the chain of free slots.
- ``meta``: the counters below.

The hash is multiplicative (each word, its halves folded together, times an odd constant; the upper bits count), which spreads
dense keys without any collision. Keys that it clusters (some strides, some grids) are noticed by a long probe; the map then
changes to a second, non-linear hash for good (STRONG). So the common case is fast and no natural pattern is slow.

A kernel that finds the map full stops and returns how many rows it has done; the caller makes room and calls it again.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.kernel import inlined, kernel, prefetch
from everview.backends.embedded.vectors import Ints

LIVE, HIGH, FREE, STRONG, LONG, SHIFT, TOUCHED = range(7)
"""Places in ``meta``: entries; slots ever used; first free slot + 1; use the second hash; a long probe happened; 32 minus the
bits of the table's length; distinct rows seen so far by an unfinished ``add_weights``."""
META_WORDS = 7

LOW = np.int64(0xFFFFFFFF)
HALF = np.int64(32)
FIRST = np.int64(-7046029254386353131)
NEXT = np.int64(-4417276706812531889)
STEP = np.int64(2)
ONE = np.int64(1)
LONG_PROBE = np.int64(16)
AHEAD = np.int64(16)


@inlined
def _tag(rows: Ints, i: int, width: int, strong: int) -> int:
    """The upper half of a row's hash, as a signed number."""
    h = np.int64(0)
    if strong == 0:
        factor = FIRST
        for j in range(width):
            word = rows[i, j]
            h += (word ^ (word >> HALF)) * factor
            factor *= NEXT
    else:
        for j in range(width):
            h = (h ^ rows[i, j]) * FIRST
            h = (h ^ ((h >> HALF) & LOW)) * NEXT
    return h >> HALF


@inlined
def _same(store: Ints, slot: int, rows: Ints, i: int, width: int) -> bool:
    """Whether the key in a slot is this row."""
    for j in range(width):  # noqa: SIM110  a generator would not compile
        if store[slot, j] != rows[i, j]:
            return False
    return True


@inlined
def _find(table: Ints, store: Ints, meta: Ints, rows: Ints, slots: Ints, width: int) -> None:
    """Write the slot of each row, or -1."""
    mask = table.shape[0] - 1
    shift, strong = meta[SHIFT], meta[STRONG]
    n = rows.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch(table, (_tag(rows, i + AHEAD, width, strong) & LOW) >> shift)
        tag = _tag(rows, i, width, strong)
        at = (tag & LOW) >> shift
        slots[i] = -1
        while table[at] != 0:
            entry = table[at]
            if entry >> HALF == tag:
                slot = (entry & LOW) - ONE
                if _same(store, slot, rows, i, width):
                    slots[i] = slot
                    break
            at = (at + 1) & mask


@inlined
def _upsert(table: Ints, store: Ints, links: Ints, meta: Ints, rows: Ints, start: int, slots: Ints, width: int) -> int:
    if meta[LONG] != 0:
        return start
    size = table.shape[0]
    mask = size - 1
    capacity, stride = store.shape
    n = rows.shape[0]
    shift, strong = meta[SHIFT], meta[STRONG]
    live, high, free = meta[LIVE], meta[HIGH], meta[FREE]
    done = n
    for i in range(start, n):
        if i + AHEAD < n:
            prefetch(table, (_tag(rows, i + AHEAD, width, strong) & LOW) >> shift)
        tag = _tag(rows, i, width, strong)
        home = (tag & LOW) >> shift
        at = home
        while True:
            entry = table[at]
            if entry == 0:
                if live + live >= size or (free == 0 and high == capacity):
                    slots[i] = -1
                else:
                    if free != 0:
                        slot = free - ONE
                        free = -ONE - links[slot]
                    else:
                        slot = high
                        high += 1
                    live += 1
                    for j in range(width):
                        store[slot, j] = rows[i, j]
                    for j in range(width, stride):
                        store[slot, j] = 0
                    links[slot] = tag & LOW
                    table[at] = (tag << HALF) | (slot + ONE)
                    slots[i] = slot
                    if strong == 0 and (at - home) & mask > LONG_PROBE:
                        meta[LONG] = 1
                break
            if entry >> HALF == tag:
                slot = (entry & LOW) - ONE
                if _same(store, slot, rows, i, width):
                    slots[i] = slot
                    break
            at = (at + 1) & mask
        if slots[i] < 0:
            done = i
            break
        if meta[LONG] != 0:
            done = i + 1
            break
    meta[LIVE], meta[HIGH], meta[FREE] = live, high, free
    return done


@kernel
def find_1(table: Ints, store: Ints, meta: Ints, rows: Ints, slots: Ints) -> None:
    _find(table, store, meta, rows, slots, 1)


@kernel
def upsert_1(table: Ints, store: Ints, links: Ints, meta: Ints, rows: Ints, start: int, slots: Ints) -> int:
    return _upsert(table, store, links, meta, rows, start, slots, 1)


@kernel
def find_2(table: Ints, store: Ints, meta: Ints, rows: Ints, slots: Ints) -> None:
    _find(table, store, meta, rows, slots, 2)


@kernel
def upsert_2(table: Ints, store: Ints, links: Ints, meta: Ints, rows: Ints, start: int, slots: Ints) -> int:
    return _upsert(table, store, links, meta, rows, start, slots, 2)


@kernel
def find_n(table: Ints, store: Ints, meta: Ints, rows: Ints, slots: Ints) -> None:
    _find(table, store, meta, rows, slots, rows.shape[1])


@kernel
def upsert_n(table: Ints, store: Ints, links: Ints, meta: Ints, rows: Ints, start: int, slots: Ints) -> int:
    return _upsert(table, store, links, meta, rows, start, slots, rows.shape[1])
