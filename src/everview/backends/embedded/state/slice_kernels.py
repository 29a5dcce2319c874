"""The kernels of secondary indexes: the slots of a map in chains, one for each sub-key.

An index is three arrays beside the map's ``store``:

- ``table``: a probe table like the map's own, over sub-keys: an entry is the first slot of a chain + 1 in its lower BITS, and
  the lowest bits of the sub-key's hash above them. The sub-key itself is read from that slot.
- ``links``: per slot the next and the previous one of its chain, + 2; 1 at the ends, 0 where the slot is not in the index.
- ``meta``: the counters below.

``columns`` are the places of the sub-key's words in a row of the store. For the hash see ``keymap_kernels``.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.intrinsics import fetch_element
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.keymap_kernels import Entries
from everview.backends.embedded.vectors import Ints

CHAINS, STRONG, LONG, SHIFT, BITS, ROW, SLOT, COUNT = range(8)
"""Places in ``meta``: the number of chains; whether the second hash is in use; whether a long probe happened; 32 minus the bits
of the table's length; bits of an entry that are the slot; of an ``expand`` that stopped, the row and slot + 2 to go on with,
and the pairs written."""
META_WORDS = 8

NEXT, PREVIOUS = 0, 1
END = 1

LOW = np.int64(0xFFFFFFFF)
HALF = np.int64(32)
ONE = np.int64(1)
TWO = np.int64(2)
FACTOR = np.int64(-7046029254386353131)
NEXT_FACTOR = np.int64(-4417276706812531889)
LONG_PROBE = 16
LARGE = 1 << 18  # words of a store that is not in the nearest caches
AHEAD = 12  # rows between asking for a cache line and reading it
SOON = 6


@inlined
def _mixed(h: Word, word: Word, factor: Word, strong: Word) -> Word:
    """The hash so far with one more word."""
    if strong == 0:
        return h + (word ^ (word >> HALF)) * factor
    h = (h ^ word) * FACTOR
    return (h ^ ((h >> HALF) & LOW)) * NEXT_FACTOR


@inlined
def _tag_of_row(rows: Ints, i: Word, strong: Word) -> Word:
    """The upper half of the hash of a sub-key."""
    h, factor = np.int64(0), FACTOR
    for j in range(rows.shape[1]):
        h = _mixed(h, rows[i, j], factor, strong)
        factor *= NEXT_FACTOR
    return h >> HALF


@inlined
def _tag_of_slot(store: Ints, slot: Word, columns: Ints, strong: Word) -> Word:
    """The same of a slot's sub-key."""
    h, factor = np.int64(0), FACTOR
    for j in range(columns.shape[0]):
        h = _mixed(h, store[slot, columns[j]], factor, strong)
        factor *= NEXT_FACTOR
    return h >> HALF


@inlined
def _entry(tag: Word, slot: Word, bits: Word) -> Word:
    return ((tag << bits) | (slot + ONE)) & LOW


@inlined
def _first_of(table: Entries, store: Ints, meta: Ints, columns: Ints, rows: Ints, i: Word) -> Word:
    """The first slot of a sub-key's chain + 2, or END."""
    mask = table.shape[0] - 1
    bits = meta[BITS]
    tag = _tag_of_row(rows, i, meta[STRONG])
    at = (tag & LOW) >> meta[SHIFT]
    wanted = ((tag << bits) & LOW) >> bits
    while True:
        entry = np.int64(table[at])
        if entry == 0:
            return np.int64(END)
        if entry >> bits == wanted:
            slot = (entry & ((ONE << bits) - ONE)) - ONE
            is_same = True
            for j in range(columns.shape[0]):
                if store[slot, columns[j]] != rows[i, j]:
                    is_same = False
                    break
            if is_same:
                return slot + TWO
        at = (at + 1) & mask


@inlined
def _look_ahead(
    table: Entries, store: Ints, links: Entries, meta: Ints, columns: Ints, slots: Ints, i: Word
) -> None:  # fmt: skip
    """Ask for what later slots will need: their rows and links, and once these are there, their lines of the table."""
    if i + 2 * AHEAD < slots.shape[0]:
        fetch_element(store, slots[i + 2 * AHEAD] * store.shape[1] + columns[0])
        fetch_element(links, slots[i + 2 * AHEAD] * 2)
    if i + AHEAD < slots.shape[0]:
        fetch_element(table, (_tag_of_slot(store, slots[i + AHEAD], columns, meta[STRONG]) & LOW) >> meta[SHIFT])


@kernel
def link(table: Entries, store: Ints, links: Entries, meta: Ints, columns: Ints, slots: Ints, start: Word) -> Word:
    """Put slots at the head of their chains; returns how many are done: less where the table is full or a slot linked."""
    mask = table.shape[0] - 1
    shift, strong, bits = meta[SHIFT], meta[STRONG], meta[BITS]
    numbers = (ONE << bits) - ONE
    n = slots.shape[0]
    is_large = store.size > LARGE
    for i in range(start, n):
        if is_large:
            _look_ahead(table, store, links, meta, columns, slots, i)
        slot = slots[i]
        if links[slot, NEXT] != 0 or 2 * meta[CHAINS] >= table.shape[0] or meta[LONG] != 0:
            return i
        tag = _tag_of_slot(store, slot, columns, strong)
        home = (tag & LOW) >> shift
        at, wanted = home, ((tag << bits) & LOW) >> bits
        after = np.int64(END)
        while True:
            entry = np.int64(table[at])
            if entry == 0:
                meta[CHAINS] += ONE
                if strong == 0 and (at - home) & mask > LONG_PROBE:
                    meta[LONG] = ONE
                break
            if entry >> bits == wanted:
                head = (entry & numbers) - ONE
                is_same = True
                for j in range(columns.shape[0]):
                    if store[head, columns[j]] != store[slot, columns[j]]:
                        is_same = False
                        break
                if is_same:
                    after = head + TWO
                    links[head, PREVIOUS] = slot + TWO
                    break
            at = (at + 1) & mask
        table[at] = _entry(tag, slot, bits)
        links[slot, NEXT] = after
        links[slot, PREVIOUS] = END
    return n


@kernel
def unlink(table: Entries, store: Ints, links: Entries, meta: Ints, columns: Ints, slots: Ints) -> Word:
    """Take slots, whose keys are still in the store, out of their chains; returns how many: less where one was in none."""
    mask = table.shape[0] - 1
    shift, strong, bits = meta[SHIFT], meta[STRONG], meta[BITS]
    numbers = (ONE << bits) - ONE
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
        hole = (_tag_of_slot(store, slot, columns, strong) & LOW) >> shift
        while np.int64(table[hole]) & numbers != slot + ONE:
            hole = (hole + 1) & mask
        if after != END:
            table[hole] = (np.int64(table[hole]) & ~numbers) | (after - ONE)
            continue
        meta[CHAINS] -= ONE
        at = hole
        while True:
            at = (at + 1) & mask
            entry = np.int64(table[at])
            if entry == 0:
                break
            home = (_tag_of_slot(store, (entry & numbers) - ONE, columns, strong) & LOW) >> shift
            if (at - home) & mask >= (at - hole) & mask:
                table[hole] = entry
                hole = at
        table[hole] = 0
    return slots.shape[0]


@kernel
def rehash_chains(
    old: Entries, old_bits: Word, table: Entries, store: Ints, meta: Ints, columns: Ints
) -> None:  # fmt: skip
    """Fill an empty table with the chains of another."""
    mask = table.shape[0] - 1
    for k in range(old.shape[0]):
        entry = np.int64(old[k])
        if entry != 0:
            slot = (entry & ((ONE << old_bits) - ONE)) - ONE
            tag = _tag_of_slot(store, slot, columns, meta[STRONG])
            at = (tag & LOW) >> meta[SHIFT]
            while table[at] != 0:
                at = (at + 1) & mask
            table[at] = _entry(tag, slot, meta[BITS])


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
    shift, strong, bits = meta[SHIFT], meta[STRONG], meta[BITS]
    is_large = store.size > LARGE
    while i < n:
        if slot == 0:
            if is_large and i + AHEAD < n:
                fetch_element(table, (_tag_of_row(rows, i + AHEAD, strong) & LOW) >> shift)
            if is_large and i + SOON < n:
                soon = np.int64(table[(_tag_of_row(rows, i + SOON, strong) & LOW) >> shift]) & ((ONE << bits) - ONE)
                fetch_element(store, (soon - ONE) * store.shape[1])
                fetch_element(links, (soon - ONE) * 2)
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
