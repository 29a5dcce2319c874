"""Joins: pairing rows with entries of a map, by key, by index or all of them, and rows with rows."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import load, load_half, load_short, shift_right, store
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.probing import BLOCK, LOW, next_match
from everview.backends.embedded.tree.instructions import CROSS, JOIN, LOOKUP, SCAN, SLICE
from everview.backends.embedded.tree.kernels.probing import entry_at, find_slot, hash_and_fetch, hash_row
from everview.backends.embedded.tree.layout import (
    ENTRIES,
    INDEX_IDLE,
    INDEX_LINKS,
    INDEX_LONGEST,
    INDEX_MASK,
    INDEX_MODE,
    INDEX_SLOTS,
    INDEX_TABLE,
    INDEX_WORDS,
    INDEXES,
    LONGEST,
    MASK,
    PAIRS_AT_ONCE,
    SCRATCH,
    SCRATCH_MASK,
    STAMP,
    STRIDE,
    TABLE,
)

UNLIMITED = 1 << 62


@kernel
def find_entries(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """Pairs each row with the entry of its key."""
    view = load(views, load(code, LOOKUP.map))
    count, out = load(rows, load(code, LOOKUP.frame)), load(code, LOOKUP.out)
    found, slots = load(registers, load(code, LOOKUP.rows)), load(registers, load(code, LOOKUP.slots))
    width = load(code, LOOKUP.keys)
    table, mask, longest = load(view, TABLE), load(view, MASK), load(view, LONGEST)
    entries, stride = load(view, ENTRIES), load(view, STRIDE) * 8
    pairs = 0
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        hash_and_fetch(view, code, LOOKUP.keys + 1, width, registers, start, end, slots)
        for i in range(start, end):
            hashed = load(slots, i)
            slot = find_slot(table, mask, longest, entries, stride, hashed, code, LOOKUP.keys + 1, width, registers, i)
            if slot >= 0:
                store(found, pairs, i)
                store(slots, pairs, slot)
                pairs += 1
    store(rows, out, pairs)


@kernel
def slice_entries(code: Word, registers: Word, rows: Word, capacities: Word, views: Word) -> Word:
    """Returns the number of rows that the frame would have needed, or 0; a cursor has the row and the entry to go on with."""
    view = load(views, load(code, SLICE.map))
    count, out = load(rows, load(code, SLICE.frame)), load(code, SLICE.out)
    found, slots = load(registers, load(code, SLICE.rows)), load(registers, load(code, SLICE.slots))
    index, width = load(load(view, INDEXES), load(code, SLICE.index)), load(code, SLICE.keys)
    table, mask, links = load(index, INDEX_TABLE), load(index, INDEX_MASK), load(index, INDEX_LINKS)
    words, mode, room = load(index, INDEX_WORDS), load(index, INDEX_MODE), load(capacities, out)
    bits, longest = load(index, INDEX_SLOTS), load(index, INDEX_LONGEST)
    if load(index, INDEX_IDLE) > 0:
        store(index, INDEX_IDLE, 0)
    cursor, limit, first, slot = load(code, SLICE.cursor), UNLIMITED, 0, -1
    if cursor >= 0:
        limit = PAIRS_AT_ONCE
        if load(rows, cursor) != 0:
            first, slot = load(rows, cursor) - 1, load(rows, cursor + 1) - 1
    pairs = 0
    stopped = 0
    for i in range(first, count):
        if pairs == limit:
            stopped = i + 1
            break
        if slot < 0:
            hashed = hash_row(code, SLICE.keys + 1, width, registers, i, mode)
            position = hashed & mask
            last = position + longest
            while True:
                slot, position = next_match(table, mask, bits, hashed, position, last)
                if slot < 0:
                    break
                entry = entry_at(view, slot)
                same = True
                for k in range(width):
                    if load(entry, load(words, k)) != load(load(registers, load(code, SLICE.keys + 1 + k)), i):
                        same = False
                        break
                if same:
                    break
        while slot >= 0 and pairs < limit:
            if pairs < room:
                store(found, pairs, i)
                store(slots, pairs, slot)
            pairs += 1
            slot = load_short(links, 2 * slot)
        if slot >= 0:
            stopped = i + 1
            break
    if pairs > room:
        return pairs
    store(rows, out, pairs)
    if cursor >= 0:
        store(rows, cursor, stopped)
        store(rows, cursor + 1, slot + 1)
    return 0


@kernel
def scan_entries(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """Pairs each row with every entry; a cursor has the place in the probe table and the row to go on with."""
    view = load(views, load(code, SCAN.map))
    count, out = load(rows, load(code, SCAN.frame)), load(code, SCAN.out)
    found, slots = load(registers, load(code, SCAN.rows)), load(registers, load(code, SCAN.slots))
    table = load(view, TABLE)
    mask, pairs = load(view, MASK), 0
    cursor, limit, first, row, stopped = load(code, SCAN.cursor), UNLIMITED, 0, 0, 0
    if cursor >= 0:
        limit = PAIRS_AT_ONCE
        if load(rows, cursor) != 0:
            first, row = load(rows, cursor) - 1, load(rows, cursor + 1)
    for p in range(first, mask + 1):
        word = load_half(table, p)
        if word != 0:
            end = min(count, row + limit - pairs)
            for i in range(row, end):
                store(found, pairs, i)
                store(slots, pairs, (word & mask) - 1)
                pairs += 1
            row = end
            if row < count:
                stopped = p + 1
                break
            row = 0
    store(rows, out, pairs)
    if cursor >= 0:
        store(rows, cursor, stopped)
        store(rows, cursor + 1, row)


@kernel
def cross_rows(code: Word, registers: Word, rows: Word, start: Word, size: Word) -> None:
    """Makes ``size`` pairs of the product of two frames, from pair ``start`` on."""
    others, cursor = load(rows, load(code, CROSS.b)), load(code, CROSS.cursor)
    from_a, from_b = load(registers, load(code, CROSS.rows_a)), load(registers, load(code, CROSS.rows_b))
    j = start // others if others > 0 else 0
    k = start - j * others
    for i in range(size):
        store(from_a, i, j)
        store(from_b, i, k)
        k += 1
        if k == others:
            k = 0
            j += 1
    store(rows, load(code, CROSS.out), size)
    if cursor >= 0:
        is_through = start + size == load(rows, load(code, CROSS.a)) * others
        store(rows, cursor, 0 if is_through else start + size)


@inlined
def _same_keys(code: Word, at: Word, to: Word, width: Word, registers: Word, one: Word, other: Word) -> Word:
    for k in range(width):
        if load(load(registers, load(code, at + k)), one) != load(load(registers, load(code, to + k)), other):
            return False
    return True


@kernel
def join_rows(code: Word, registers: Word, rows: Word, capacities: Word, environment: Word) -> Word:
    """Returns the number of rows that the frame would have needed, or 0."""
    count, others, out = load(rows, load(code, JOIN.a)), load(rows, load(code, JOIN.b)), load(code, JOIN.out)
    from_a, from_b = load(registers, load(code, JOIN.rows_a)), load(registers, load(code, JOIN.rows_b))
    links, width, room = load(registers, load(code, JOIN.links)), load(code, JOIN.keys_a), load(capacities, out)
    at, to = JOIN.keys_a + 1, JOIN.keys_b + 1 + width
    table, mask = load(environment, SCRATCH), load(environment, SCRATCH_MASK)
    stamp = load(environment, STAMP) + 1
    store(environment, STAMP, stamp)
    for k in range(others):  # chains of b's rows with equal keys, their heads in the table
        position = hash_row(code, to, width, registers, k, 1) & mask
        while True:
            word = load(table, position)
            if shift_right(word, 32) != stamp:
                store(links, k, -1)
                break
            if _same_keys(code, to, to, width, registers, k, word & LOW):
                store(links, k, word & LOW)
                break
            position = (position + 1) & mask
        store(table, position, (stamp << 32) | k)
    pairs = 0
    for i in range(count):
        position = hash_row(code, at, width, registers, i, 1) & mask
        k = -1
        while True:
            word = load(table, position)
            if shift_right(word, 32) != stamp:
                break
            if _same_keys(code, at, to, width, registers, i, word & LOW):
                k = word & LOW
                break
            position = (position + 1) & mask
        while k >= 0:
            if pairs < room:
                store(from_a, pairs, i)
                store(from_b, pairs, k)
            pairs += 1
            k = load(links, k)
    if pairs > room:
        return pairs
    store(rows, out, pairs)
    return 0
