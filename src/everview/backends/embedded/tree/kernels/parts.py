"""Heavy and light parts: which part a row belongs to, and which keys have the wrong one by now."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import load, load_half, store
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.probing import hash_entry, is_same, next_match
from everview.backends.embedded.tree.instructions import PART
from everview.backends.embedded.tree.kernels.probing import entry_at, find_slot, hash_row
from everview.backends.embedded.tree.layout import (
    COUNT,
    ENTRIES,
    KEY_WORDS,
    LOG,
    LOG_COUNT,
    LONGEST,
    MASK,
    MODE,
    STRIDE,
    TABLE,
)


@kernel
def tell_parts(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """Which rows have keys with a count in a map, and which have not."""
    view, width = load(views, load(code, PART.map)), load(code, PART.keys)
    inside, outside = load(registers, load(code, PART.inside)), load(registers, load(code, PART.outside))
    table, mask, longest = load(view, TABLE), load(view, MASK), load(view, LONGEST)
    entries, stride, mode = load(view, ENTRIES), load(view, STRIDE) * 8, load(view, MODE)
    count_at, at, is_empty = load(view, KEY_WORDS), PART.keys + 1, load(view, COUNT) == 0
    for i in range(load(rows, load(code, PART.frame))):
        found = 0
        if not is_empty:
            hashed = hash_row(code, at, width, registers, i, mode)
            slot = find_slot(table, mask, longest, entries, stride, hashed, code, at, width, registers, i)
            if slot >= 0 and load(entries + slot * stride, count_at) != 0:
                found = 1
        store(inside, i, found)
        store(outside, i, 1 - found)


@inlined
def _count_at_key(view: Word, key: Word, width: Word) -> Word:
    """The count of the entry with the key at an address; 0 without one."""
    hashed = hash_entry(key, 0, width, load(view, MODE))
    table, mask = load(view, TABLE), load(view, MASK)
    position = hashed & mask
    last = position + load(view, LONGEST)
    while True:
        slot, position = next_match(table, mask, mask, hashed, position, last)
        if slot < 0:
            return 0
        if is_same(entry_at(view, slot), key, width):
            return load(entry_at(view, slot), width)


@inlined
def _wrong_part(degrees: Word, heavy: Word, slot: Word, heavy_from: Word, light_below: Word) -> Word:
    """1 for a light key with so many rows that it turns heavy, -1 for a heavy one with so few that it turns light, else 0."""
    entry, width = entry_at(degrees, slot), load(degrees, KEY_WORDS)
    degree = load(entry, width)
    if degree >= heavy_from:
        return 1 if _count_at_key(heavy, entry, width) == 0 else 0
    if degree < light_below:
        return -1 if _count_at_key(heavy, entry, width) != 0 else 0
    return 0


@kernel
def turned_keys(degrees: Word, heavy: Word, heavy_from: Word, light_below: Word, turned: Word, slots: Word) -> Word:
    """Writes which slots of ``degrees`` have keys in the wrong part, and how they turn; returns how many.

    Only keys that the transaction has touched are looked at.
    """
    log, stride, found = load(degrees, LOG), load(degrees, STRIDE) + 1, 0
    for i in range(load(degrees, LOG_COUNT)):
        slot = load(log, i * stride)
        turn = _wrong_part(degrees, heavy, slot, heavy_from, light_below)
        if turn != 0:
            store(slots, found, slot)
            store(turned, found, turn)
            found += 1
    return found


@kernel
def all_turned_keys(degrees: Word, heavy: Word, heavy_from: Word, light_below: Word, turned: Word, slots: Word) -> Word:
    """The same of all keys."""
    table, mask, found = load(degrees, TABLE), load(degrees, MASK), 0
    for i in range(mask + 1):
        word = load_half(table, i)
        if word != 0:
            slot = (word & mask) - 1
            turn = _wrong_part(degrees, heavy, slot, heavy_from, light_below)
            if turn != 0:
                store(slots, found, slot)
                store(turned, found, turn)
                found += 1
    return found


@kernel
def grown_by(degrees: Word) -> Word:
    """By how much the sum of a map's counts has changed in the transaction; the map logs each entry once."""
    log, stride, at = load(degrees, LOG), load(degrees, STRIDE) + 1, load(degrees, KEY_WORDS)
    total = 0
    for i in range(load(degrees, LOG_COUNT)):
        record = log + i * stride * 8
        total += load(entry_at(degrees, load(record, 0)), at) - load(record, 1 + at)
    return total
