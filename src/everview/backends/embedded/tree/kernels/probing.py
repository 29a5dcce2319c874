"""The probe tables of view maps and of their indexes (see ``state.probing``), which kernels find by the fields of both.

In a secondary index the bits of a slot are those of its map, whose table may be longer.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import fetch, load, load_half, load_short, store
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.probing import (
    LONG_PROBE,
    LOW,
    empty_table,
    erase_at,
    fill_table,
    hash_entry,
    hash_word,
    mix,
    move_table,
    next_match,
    place_of,
    place_slot,
)
from everview.backends.embedded.tree.layout import (
    ENTRIES,
    FREE,
    INDEX_LINKS,
    INDEX_LONGEST,
    INDEX_MASK,
    INDEX_MODE,
    INDEX_SLOTS,
    INDEX_TABLE,
    INDEX_WIDTH,
    INDEX_WORDS,
    KEY_WORDS,
    LONGEST,
    MASK,
    MODE,
    STRIDE,
    TABLE,
    USED,
)

LINE = 8
"""Words that the processor reads at once."""
NEAR = 1 << 15
"""The entries of a map with a probe table of so many places are in the processor's cache anyway."""


@inlined
def hash_row(code: Word, at: Word, width: Word, registers: Word, row: Word, mode: Word) -> Word:
    """The hash of a row's key."""
    if width == 1:
        return hash_word(load(load(registers, load(code, at)), row), mode)
    hashed = 0
    for k in range(width):
        hashed = mix(hashed, load(load(registers, load(code, at + k)), row))
    return hashed & LOW


@inlined
def entry_at(view: Word, slot: Word) -> Word:
    """The address of the entry in a slot."""
    return load(view, ENTRIES) + slot * load(view, STRIDE) * 8


@inlined
def fetch_entry(entry: Word, words: Word) -> None:
    """A hint to the processor that all of an entry will be read."""
    k = 0
    while k < words:
        fetch(entry + k * 8)
        k += LINE


@kernel
def hash_and_fetch(
    view: Word, code: Word, at: Word, width: Word, registers: Word, start: Word, end: Word, out: Word
) -> None:
    """The hashes of some rows' keys, and a hint to the processor which places and entries their probes will read."""
    table, mask, mode = load(view, TABLE), load(view, MASK), load(view, MODE)
    if width == 1:
        key = load(registers, load(code, at))
        for i in range(start, end):
            hashed = hash_word(load(key, i), mode)
            store(out, i, hashed)
            fetch(table + (hashed & mask) * 4)
    else:
        for i in range(start, end):
            hashed = hash_row(code, at, width, registers, i, 1)
            store(out, i, hashed)
            fetch(table + (hashed & mask) * 4)
    if mask > NEAR:
        entries, stride = load(view, ENTRIES), load(view, STRIDE) * 8
        for i in range(start, end):
            fetch(entries + ((load_half(table, load(out, i) & mask) & mask) - 1) * stride)


@inlined
def find_slot(
    table: Word,
    mask: Word,
    longest: Word,
    entries: Word,
    stride: Word,
    hashed: Word,
    code: Word,
    at: Word,
    width: Word,
    registers: Word,
    row: Word,
) -> Word:
    """The slot with the row's key, or -1; ``stride`` is in bytes."""
    position = hashed & mask
    last = position + longest
    while True:
        slot, position = next_match(table, mask, mask, hashed, position, last)
        if slot < 0:
            return -1
        entry = entries + slot * stride
        same = True
        for k in range(width):
            if load(entry, k) != load(load(registers, load(code, at + k)), row):
                same = False
                break
        if same:
            return slot


@kernel
def slot_of_key(view: Word, code: Word, registers: Word) -> Word:
    """The slot of the key in row 0 of some registers, or -1."""
    width, entries, stride = load(view, KEY_WORDS), load(view, ENTRIES), load(view, STRIDE) * 8
    table, mask, hashed = load(view, TABLE), load(view, MASK), hash_row(code, 0, width, registers, 0, load(view, MODE))
    return find_slot(table, mask, load(view, LONGEST), entries, stride, hashed, code, 0, width, registers, 0)


@kernel
def erase_slot(view: Word, index: Word, table: Word, mask: Word, hashed: Word, slot: Word) -> None:
    """Takes a slot out of the probe table of an index, or with ``index`` 0 of its map, and moves what follows back."""
    if index != 0:
        words, width, mode = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_MODE)
        longest, bits = load(index, INDEX_LONGEST), load(index, INDEX_SLOTS)
    else:
        words, width, mode, longest, bits = 0, load(view, KEY_WORDS), load(view, MODE), load(view, LONGEST), mask
    hole = place_of(table, mask, bits, longest, hashed, slot)
    erase_at(table, mask, bits, longest, load(view, ENTRIES), load(view, STRIDE) * 8, words, width, mode, hole)


@inlined
def is_held(view: Word, slot: Word) -> Word:
    """Whether the slot is in the probe table: it may have been logged, and dropped, twice."""
    hashed = hash_entry(entry_at(view, slot), 0, load(view, KEY_WORDS), load(view, MODE))
    mask = load(view, MASK)
    return place_of(load(view, TABLE), mask, mask, load(view, LONGEST), hashed, slot) >= 0


@kernel
def rehash(view: Word, index: Word, old: Word, length: Word, table: Word, mask: Word) -> None:
    """Moves the slots of an index's probe table, or with ``index`` 0 of the map's, into another, which is empty."""
    words, width, mode, old_bits, bits = 0, load(view, KEY_WORDS), load(view, MODE), length - 1, mask
    if index != 0:
        words, width, mode = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_MODE)
        old_bits, bits = load(index, INDEX_SLOTS), load(view, MASK)
        store(index, INDEX_SLOTS, bits)
    entries, stride = load(view, ENTRIES), load(view, STRIDE) * 8
    longest, mode = move_table(
        old, length, old_bits, table, mask, bits, entries, stride, words, width, mode, LONG_PROBE
    )
    if index != 0:
        store(index, INDEX_LONGEST, longest)
        store(index, INDEX_MODE, mode)
    else:
        store(view, LONGEST, longest)
        store(view, MODE, mode)


@kernel
def hash_again(view: Word, count: Word) -> None:
    """Fills the empty probe table of a map with its first slots, all of which are in use."""
    table, mask, width, mode = load(view, TABLE), load(view, MASK), load(view, KEY_WORDS), load(view, MODE)
    entries, stride = load(view, ENTRIES), load(view, STRIDE) * 8
    longest, mode = fill_table(table, mask, mask, entries, stride, width, mode, 0, count, LONG_PROBE)
    store(view, LONGEST, longest)
    store(view, MODE, mode)


@kernel
def _sort_free(view: Word) -> None:
    """Puts the list of free slots into increasing order, by merging runs of 1, 2, 4, … of them: it takes no memory."""
    size, merges = 1, 2
    while merges > 1:
        left, tail, merges = load(view, FREE), -1, 0
        while left >= 0:
            merges += 1
            right, lefts = left, 0
            while lefts < size and right >= 0:
                lefts += 1
                right = load(entry_at(view, right), 0)
            rights = size
            while lefts > 0 or (rights > 0 and right >= 0):
                if lefts > 0 and (rights == 0 or right < 0 or left < right):
                    least = left
                    left = load(entry_at(view, left), 0)
                    lefts -= 1
                else:
                    least = right
                    right = load(entry_at(view, right), 0)
                    rights -= 1
                if tail >= 0:
                    store(entry_at(view, tail), 0, least)
                else:
                    store(view, FREE, least)
                tail = least
            left = right
        if tail >= 0:
            store(entry_at(view, tail), 0, -1)
        size *= 2


@kernel
def hash_better(view: Word, index: Word) -> None:
    """Hashes the keys of an index, or with ``index`` 0 of the map, so that they lie in no long runs.

    It takes no memory, and may be called between two rows of a transaction.
    """
    _sort_free(view)
    links, words, width, bits = 0, 0, load(view, KEY_WORDS), load(view, MASK)
    table, mask = load(view, TABLE), load(view, MASK)
    if index != 0:
        words, width, bits = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_SLOTS)
        table, mask, links = load(index, INDEX_TABLE), load(index, INDEX_MASK), load(index, INDEX_LINKS)
    empty_table(table, mask)
    longest, free = 0, load(view, FREE)
    for slot in range(load(view, USED)):
        entry = entry_at(view, slot)
        if slot == free:
            free = load(entry, 0)
        elif links == 0 or load_short(links, 2 * slot + 1) < 0:  # an index holds the heads of its chains
            longest = max(longest, place_slot(table, mask, bits, hash_entry(entry, words, width, 1), slot))
    if index != 0:
        store(index, INDEX_LONGEST, longest)
        store(index, INDEX_MODE, 1)
    else:
        store(view, LONGEST, longest)
        store(view, MODE, 1)


@kernel
def live_slots(view: Word, slots: Word) -> Word:
    """Writes the slots in use, in the order of the probe table; returns how many."""
    table, mask, found = load(view, TABLE), load(view, MASK), 0
    for i in range(mask + 1):
        word = load_half(table, i)
        if word != 0:
            store(slots, found, (word & mask) - 1)
            found += 1
    return found
