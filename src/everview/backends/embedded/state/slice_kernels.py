"""The kernels of secondary indexes: the slots of a map in chains, one for each sub-key.

An index is three arrays beside the map's ``store``:

- ``table``: a probe table over sub-keys, with the first slots of the chains (``probing``).
- ``links``: per slot the next and the previous one of its chain, + 2; 1 at the ends, 0 where the slot is not in the index.
- ``meta``: the counters below.

``columns`` are the places of the sub-key's words in a row of the store.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.intrinsics import fetch, fetch_element, load, load_half, start_of
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.keymap_kernels import LARGE, LONG_WAY, Entries
from everview.backends.embedded.state.probing import (
    agree,
    erase_at,
    hash_entry,
    move_table,
    next_match,
    place_of,
    place_slot,
    put_at,
)
from everview.backends.embedded.vectors import Ints

CHAINS, MODE, LONG, LONGEST, BITS, ROW, SLOT, COUNT = range(8)
"""Places in ``meta``: the number of chains; the mode, and whether a sub-key lies so far from its place that it must be 1; the
longest way of a sub-key from its place; the mask of what is the slot in a word of the table; of an ``expand`` that stopped, the
row and slot + 2 to go on with, and the pairs written."""
META_WORDS = 8

NEXT, PREVIOUS = 0, 1
END = 1

ONE = np.int64(1)
TWO = np.int64(2)
AHEAD = 12  # rows between asking for a cache line and reading it
SOON = 6


@inlined
def _first_of(table: Entries, store: Ints, meta: Ints, columns: Ints, rows: Ints, i: Word) -> Word:
    """The first slot of a sub-key's chain + 2, or END."""
    places, mask, bits, width = start_of(table), table.shape[0] - 1, meta[BITS], columns.shape[0]
    key = start_of(rows) + i * width * 8
    hashed = hash_entry(key, 0, width, meta[MODE])
    position = hashed & mask
    last = position + meta[LONGEST]
    while True:
        slot, position = next_match(places, mask, bits, hashed, position, last)
        if slot < 0:
            return np.int64(END)
        is_same = True
        for j in range(width):
            if store[slot, columns[j]] != load(key, j):
                is_same = False
                break
        if is_same:
            return slot + TWO


@inlined
def _look_ahead(
    table: Entries, store: Ints, links: Entries, meta: Ints, columns: Ints, slots: Ints, i: Word
) -> None:  # fmt: skip
    """Ask for what later slots will need: their rows and links, and once these are there, their lines of the table."""
    if i + 2 * AHEAD < slots.shape[0]:
        fetch_element(store, slots[i + 2 * AHEAD] * store.shape[1] + columns[0])
        fetch_element(links, slots[i + 2 * AHEAD] * 2)
    if i + AHEAD < slots.shape[0]:
        entry = start_of(store) + slots[i + AHEAD] * store.shape[1] * 8
        hashed = hash_entry(entry, start_of(columns), columns.shape[0], meta[MODE])
        fetch_element(table, hashed & (table.shape[0] - 1))


@kernel
def link(table: Entries, store: Ints, links: Entries, meta: Ints, columns: Ints, slots: Ints, start: Word) -> Word:
    """Put slots at the head of their chains; returns how many are done: less where the table is full or a slot linked."""
    places, mask, bits, mode = start_of(table), table.shape[0] - 1, meta[BITS], meta[MODE]
    entries, stride, words, width = start_of(store), store.shape[1] * 8, start_of(columns), columns.shape[0]
    n = slots.shape[0]
    is_large = store.size > LARGE
    for i in range(start, n):
        if is_large:
            _look_ahead(table, store, links, meta, columns, slots, i)
        slot = slots[i]
        if links[slot, NEXT] != 0 or 2 * meta[CHAINS] >= table.shape[0] or meta[LONG] != 0:
            return i
        entry = entries + slot * stride
        hashed = hash_entry(entry, words, width, mode)
        position = hashed & mask
        last = position + meta[LONGEST]
        while True:
            head, position = next_match(places, mask, bits, hashed, position, last)
            if head < 0 or agree(entry, entries + head * stride, words, width):
                break
        links[slot, PREVIOUS] = END
        if head >= 0:
            links[slot, NEXT] = head + TWO
            links[head, PREVIOUS] = slot + TWO
            put_at(places, (position - 1) & mask, bits, hashed, slot)
            continue
        links[slot, NEXT] = END
        meta[CHAINS] += ONE
        distance = place_slot(places, mask, bits, hashed, slot)
        if distance > meta[LONGEST]:
            meta[LONGEST] = distance
            if distance > LONG_WAY and mode == 0:
                meta[LONG] = ONE
    return n


@kernel
def unlink(table: Entries, store: Ints, links: Entries, meta: Ints, columns: Ints, slots: Ints) -> Word:
    """Take slots, whose keys are still in the store, out of their chains; returns how many: less where one was in none."""
    places, mask, bits, mode, longest = start_of(table), table.shape[0] - 1, meta[BITS], meta[MODE], meta[LONGEST]
    entries, stride, words, width = start_of(store), store.shape[1] * 8, start_of(columns), columns.shape[0]
    is_large = store.size > LARGE
    for i in range(slots.shape[0]):
        if is_large:
            _look_ahead(table, store, links, meta, columns, slots, i)
        slot = slots[i]
        after, before = np.int64(links[slot, NEXT]), np.int64(links[slot, PREVIOUS])
        if after == 0:
            return i
        if after != END:
            links[after - TWO, PREVIOUS] = before
        links[slot, NEXT] = 0
        links[slot, PREVIOUS] = 0
        if before != END:
            links[before - TWO, NEXT] = after
            continue
        hashed = hash_entry(entries + slot * stride, words, width, mode)
        place = place_of(places, mask, bits, longest, hashed, slot)
        if after != END:
            put_at(places, place, bits, hashed, after - TWO)
            continue
        meta[CHAINS] -= ONE
        erase_at(places, mask, bits, longest, entries, stride, words, width, mode, place)
    return slots.shape[0]


@kernel
def rehash_chains(
    old: Entries, old_bits: Word, table: Entries, store: Ints, meta: Ints, columns: Ints
) -> None:  # fmt: skip
    """Fill an empty table with the chains of another."""
    meta[LONGEST], meta[MODE] = move_table(
        start_of(old), old.shape[0], old_bits, start_of(table), table.shape[0] - 1, meta[BITS],
        start_of(store), store.shape[1] * 8, start_of(columns), columns.shape[0], meta[MODE], LONG_WAY,
    )  # fmt: skip


@kernel
def count_chains(
    table: Entries, store: Ints, links: Entries, meta: Ints, columns: Ints, rows: Ints, counts: Ints
) -> None:
    """Write how many slots each sub-key has."""
    for i in range(rows.shape[0]):
        slot = _first_of(table, store, meta, columns, rows, i)
        counts[i] = 0
        while slot != END:
            counts[i] += 1
            slot = np.int64(links[slot - TWO, NEXT])


@kernel
def expand_chains(
    table: Entries, store: Ints, links: Entries, meta: Ints, columns: Ints, rows: Ints, out: Ints
) -> Word:
    """Write pairs of a row and a slot of its chain until all are written (0) or ``out`` is full (1); resumes where it was."""
    n, room = rows.shape[0], out.shape[1]
    i, slot, count = meta[ROW], meta[SLOT], meta[COUNT]
    given, width, mode = start_of(rows), columns.shape[0], meta[MODE]
    places, mask, bits = start_of(table), table.shape[0] - 1, meta[BITS]
    is_large = store.size > LARGE
    while i < n:
        if slot == 0:
            if is_large and i + AHEAD < n:
                fetch(places + (hash_entry(given + (i + AHEAD) * width * 8, 0, width, mode) & mask) * 4)
            if is_large and i + SOON < n:
                hashed = hash_entry(given + (i + SOON) * width * 8, 0, width, mode)
                soon = (load_half(places, hashed & mask) & bits) - ONE
                fetch_element(store, soon * store.shape[1])
                fetch_element(links, soon * 2)
            slot = _first_of(table, store, meta, columns, rows, i)
        while slot != END:
            if count == room:
                meta[ROW], meta[SLOT], meta[COUNT] = i, slot, count
                return 1
            out[0, count] = i
            out[1, count] = slot - TWO
            count += 1
            slot = np.int64(links[slot - TWO, NEXT])
        slot = np.int64(0)
        i += 1
    meta[COUNT] = count
    return 0
