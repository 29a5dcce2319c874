"""Entries of maps: adding payloads to them, dropping them, and what indicators say of their counts.

Every change is logged with what was there before (see ``transactions``).
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import load, load_float, load_half, store, store_float
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.probing import BLOCK, LONG_PROBE, hash_entry, place_slot
from everview.backends.embedded.tree.instructions import HELD, TURN, UPSERT
from everview.backends.embedded.tree.kernels.indexes import link_slot, unlink_slot
from everview.backends.embedded.tree.kernels.moments import add_moments
from everview.backends.embedded.tree.kernels.numbers import (
    TOO_MANY,
    add_exact,
    add_float,
    add_pair,
    has_lost,
    note_of,
    room_of,
    specials_of,
    sum_note,
    sums_of_kind,
    words_of_kind,
)
from everview.backends.embedded.tree.kernels.probing import (
    LINE,
    NEAR,
    entry_at,
    erase_slot,
    fetch_entry,
    find_slot,
    hash_and_fetch,
    hash_better,
)
from everview.backends.embedded.tree.layout import (
    BIG,
    CAPACITY,
    COUNT,
    COUNT_RANGE,
    COUNTED,
    ENTRIES,
    EXACT,
    EXACT_RANGE,
    FIRST_RING,
    FLOAT_LOST,
    FLOAT_RANGE,
    FREE,
    INDEX_BUILT,
    INDEX_COUNT,
    INDEX_IDLE,
    INDEX_KEYS,
    INDEX_LIMIT,
    INDEX_LONGEST,
    INDEX_MODE,
    INDEXES,
    KEY_WORDS,
    KINDS,
    LIMIT,
    LOG,
    LOG_CAPACITY,
    LOG_COUNT,
    LONGEST,
    MASK,
    MODE,
    MOMENTS,
    PARTS,
    RING_INTS,
    RING_MASK,
    RING_PAIRS,
    STRIDE,
    SUSPECT,
    TABLE,
    TOUCHED,
    USED,
)


@inlined
def _new_slot(view: Word) -> Word:
    free = load(view, FREE)
    if free >= 0:
        store(view, FREE, load(entry_at(view, free), 0))
        slot = free
    else:
        slot = load(view, USED)
        store(view, USED, slot + 1)
    store(view, COUNT, load(view, COUNT) + 1)
    return slot


@kernel
def drop_entry(view: Word, slot: Word) -> None:
    """Removes an entry from the map and all its indexes."""
    entry = entry_at(view, slot)
    indexes = load(view, INDEXES)
    for i in range(load(view, INDEX_COUNT)):
        if load(load(indexes, i), INDEX_BUILT) != 0:
            unlink_slot(view, load(indexes, i), slot)
    hashed = hash_entry(entry, 0, load(view, KEY_WORDS), load(view, MODE))
    erase_slot(view, 0, load(view, TABLE), load(view, MASK), hashed, slot)
    store(entry, 0, load(view, FREE))
    store(view, FREE, slot)
    store(view, COUNT, load(view, COUNT) - 1)


@inlined
def has_room(view: Word, more: Word) -> Word:
    """Whether so many more entries have room in a map, its indexes and its log."""
    count = load(view, COUNT) + more
    if count > load(view, CAPACITY) or count > load(view, LIMIT):
        return False
    for i in range(load(view, INDEX_COUNT)):
        index = load(load(view, INDEXES), i)
        if load(index, INDEX_BUILT) != 0 and load(index, INDEX_KEYS) + more > load(index, INDEX_LIMIT):
            return False
    return load(view, LOG_COUNT) + more <= load(view, LOG_CAPACITY)


@kernel
def _add_element(kind: Word, at: Word, registers: Word, register: Word, row: Word) -> None:
    """Adds the element of a row to the one at an address."""
    width, how = words_of_kind(kind), kind & RING_MASK
    if how == RING_PAIRS:
        for k in range(0, width, 2):
            value = load_float(load(registers, register + k), row)
            error = load_float(load(registers, register + k + 1), row)
            add_pair(at + k * 8, at + k * 8 + 8, value, error)
        return
    for k in range(width):
        given = load(registers, register + k)
        if how == RING_INTS:
            store(at, k, load(at, k) + load(given, row))
        else:
            store_float(at, k, load_float(at, k) + load_float(given, row))


@kernel
def upsert_rows(code: Word, registers: Word, rows: Word, views: Word) -> Word:
    """Returns what went wrong, or 0."""
    view = load(views, load(code, UPSERT.map))
    count, slots = load(rows, load(code, UPSERT.frame)), load(registers, load(code, UPSERT.slots))
    width = load(code, UPSERT.keys)
    at_keys, at_parts, kinds = UPSERT.keys + 1, UPSERT.parts + 1 + width, load(view, KINDS)
    table, mask, stride = load(view, TABLE), load(view, MASK), load(view, STRIDE)
    entries, log, logged, touched = load(view, ENTRIES), load(view, LOG), load(view, LOG_COUNT), load(view, TOUCHED)
    part_count, keys, indexes = load(view, PARTS), load(view, KEY_WORDS), load(view, INDEXES)
    index_count, longest, suspect = load(view, INDEX_COUNT), load(view, LONGEST), load(view, SUSPECT)
    outgrown, wrapped, is_range, is_lost = 0, 0, 0, 0
    is_far = mask > NEAR and stride > 2 * LINE  # the first line of an entry has been asked for, but not what follows
    for i in range(count):
        if i & (BLOCK - 1) == 0:
            hash_and_fetch(view, code, at_keys, width, registers, i, min(i + BLOCK, count), slots)
        if is_far and i + 1 < count and (i + 1) & (BLOCK - 1) != 0:
            guess = load_half(table, load(slots, i + 1) & mask) & mask
            if guess != 0:
                fetch_entry(entries + (guess - 1) * stride * 8, stride)
        hashed = load(slots, i)
        slot = find_slot(table, mask, longest, entries, stride * 8, hashed, code, at_keys, width, registers, i)
        is_new = slot < 0
        if is_new:
            slot = _new_slot(view)
            entry = entries + slot * stride * 8
            store(entry, 0, 0)
            for k in range(width):
                store(entry, k, load(load(registers, load(code, at_keys + k)), i))
            for k in range(keys, stride):
                store(entry, k, 0)
            longest = max(longest, place_slot(table, mask, mask, hashed, slot))
            if longest > LONG_PROBE and load(view, MODE) == 0:
                hash_better(view, 0)
                longest = load(view, LONGEST)
                end = min((i | (BLOCK - 1)) + 1, count)
                hash_and_fetch(view, code, at_keys, width, registers, i + 1, end, slots)
            for x in range(index_count):
                index = load(indexes, x)
                if load(index, INDEX_BUILT) != 0:
                    link_slot(view, index, slot)
                    if load(index, INDEX_LONGEST) > LONG_PROBE and load(index, INDEX_MODE) == 0:
                        hash_better(view, index)
                    if load(index, INDEX_IDLE) >= 0:
                        store(index, INDEX_IDLE, load(index, INDEX_IDLE) + 1)
        else:
            entry = entries + slot * stride * 8
        store(slots, i, slot)
        bit = 1 << (slot & 63)
        if touched == 0 or load(touched, slot >> 6) & bit == 0:
            record = log + logged * (stride + 1) * 8
            store(record, 0, slot)
            store(record, 1, 0 if is_new else 1)
            for k in range(keys, stride):
                store(record, 1 + k, load(entry, k))
            logged += 1
            if touched != 0:
                store(touched, slot >> 6, load(touched, slot >> 6) | bit)
        at = keys
        for p in range(part_count):
            kind, register = load(kinds, p), load(code, at_parts + p)
            if kind == COUNTED:
                held, added = load(entry, at), load(load(registers, register), i)
                wrapped |= (held ^ (held + added)) & (added ^ (held + added))
                store(entry, at, held + added)
                at += 1
            elif kind == EXACT:
                before, more = load(entry, at + 1), load(load(registers, register + 1), i)
                add_exact(entry + at * 8, load(load(registers, register), i), more)
                outgrown |= (before ^ load(entry, at + 1)) & (more ^ load(entry, at + 1))
                if load(entry, at + 1) != load(entry, at) >> 63:
                    suspect = 1
                at += 2
            elif kind >= FIRST_RING:
                words = words_of_kind(kind)
                if kind & RING_MASK >= MOMENTS:
                    given = load(registers, register) + i * 16 * room_of(sums_of_kind(kind))
                    is_lost |= add_moments(kind, entry + at * 8, given, load(entry, keys))
                else:
                    _add_element(kind, entry + at * 8, registers, register, i)
                at += words
            else:
                value, error = load_float(load(registers, register), i), load_float(load(registers, register + 1), i)
                add_float(entry + at * 8, value, error)
                note, given = load(entry, at + 2), load(load(registers, register + 2), i)
                if note | given != 0 or not abs(load_float(entry, at)) < BIG:
                    note = sum_note(note, given, load(entry, at))
                    is_range |= specials_of(note) == TOO_MANY
                    # Without rows there is no sum, and so nothing that it could have lost.
                    if load(entry, keys) != 0 and has_lost(note, load(entry, at)):
                        is_lost = 1
                        note = note_of(specials_of(note), 0)
                    store(entry, at + 2, note)
                at += 3
    store(view, LOG_COUNT, logged)
    store(view, LONGEST, longest)
    store(view, SUSPECT, suspect)
    if wrapped < 0:
        return COUNT_RANGE
    if outgrown < 0:
        return EXACT_RANGE
    if is_range != 0:
        return FLOAT_RANGE
    return FLOAT_LOST if is_lost != 0 else 0


@kernel
def keep_held(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """Pairs of rows and slots, without those of entries that have become 0."""
    frame, view = load(code, HELD.frame), load(views, load(code, HELD.map))
    found, slots = load(registers, load(code, HELD.rows)), load(registers, load(code, HELD.slots))
    at = load(view, KEY_WORDS)
    kept = 0
    for i in range(load(rows, frame)):
        slot = load(slots, i)
        if load(entry_at(view, slot), at) != 0:
            store(found, kept, load(found, i))
            store(slots, kept, slot)
            kept += 1
    store(rows, frame, kept)


@kernel
def turn_indicator(code: Word, registers: Word, rows: Word, views: Word) -> None:
    """What adding counts has done to an indicator, which is 1 where a count differs from 0."""
    view, slots = load(views, load(code, TURN.map)), load(registers, load(code, TURN.slots))
    counts, target = load(registers, load(code, TURN.counts)), load(registers, load(code, TURN.target))
    at = load(view, KEY_WORDS)
    for i in range(load(rows, load(code, TURN.frame))):
        now, added = load(entry_at(view, load(slots, i)), at), load(counts, i)
        turned = 0
        if now != 0:
            turned += 1
        if now != added:
            turned -= 1
        store(target, i, turned)
