"""Probe tables: hashing keys, finding and placing slots, taking them out.

A probe table of 2^m places has half words: the m lower bits are a slot plus 1, the others those of the hash that its place
does not say, which tell most keys apart without a look at the entry. (In a secondary index, m is that of its map.) Removal
shifts the table back, so there are no tombstones; the places of what follows are hashed anew from their entries. Neither a
search nor a shift goes further than the longest way of an entry from its place: dense keys lie in long runs, without a gap to
stop at, but at their places.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import (
    fetch,
    load,
    load_half,
    load_short,
    shift_right,
    store,
    store_short,
)
from everview.backends.embedded.state.kernel import Word, inlined, kernel
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

LOW = 0xFFFFFFFF
FACTOR = -7046029254386353131
BLOCK = 256
"""Rows whose probes are asked for together, before the first is made."""
AHEAD = 16
"""How far ahead a pass over entries, or over a probe table, asks for what it will touch."""
LINE = 8
"""Words that the processor reads at once."""
LONG_PROBE = 128
"""A probe this long means that the keys do not suit the plain hash (mode 0): they are hashed better (mode 1) there and then."""
NEAR = 1 << 15
"""The entries of a map with a probe table of so many places are in the processor's cache anyway."""


@inlined
def mix(hashed: Word, word: Word) -> Word:
    """The hash of a key so far, with one more word."""
    # The upper half goes down first: a product spreads bits upwards only, and doubles of whole numbers have them all on top.
    folded = hashed ^ word ^ shift_right(word, 32)
    mixed = folded * FACTOR
    return mixed ^ shift_right(mixed, 32)


@inlined
def _finish(hashed: Word) -> Word:
    return hashed & LOW


@inlined
def hash_word(word: Word, mode: Word) -> Word:
    """The hash of a key of one word: in mode 0 the word itself, so that dense and sorted keys stay close."""
    if mode == 0:
        return _finish(word ^ shift_right(word, 32))
    return _finish(mix(0, word))


@inlined
def hash_row(code: Word, at: Word, width: Word, registers: Word, row: Word, mode: Word) -> Word:
    """The hash of a row's key."""
    if width == 1:
        return hash_word(load(load(registers, load(code, at)), row), mode)
    hashed = 0
    for k in range(width):
        hashed = mix(hashed, load(load(registers, load(code, at + k)), row))
    return _finish(hashed)


@inlined
def hash_entry(entry: Word, words: Word, width: Word, mode: Word) -> Word:
    """The hash of some words of an entry, or with ``words`` 0 of its first ones, as ``hash_row`` has it for a row."""
    if width == 1:
        return hash_word(load(entry, load(words, 0) if words != 0 else 0), mode)
    hashed = 0
    for k in range(width):
        hashed = mix(hashed, load(entry, load(words, k) if words != 0 else k))
    return _finish(hashed)


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
    tag = hashed - position
    last = position + longest
    while True:
        word = load_half(table, position & mask)
        if word == 0:
            return -1
        slot = word & mask
        if word - slot == tag:
            entry = entries + (slot - 1) * stride
            same = True
            for k in range(width):
                if load(entry, k) != load(load(registers, load(code, at + k)), row):
                    same = False
                    break
            if same:
                return slot - 1
        if position == last:
            return -1
        position += 1


@inlined
def place_slot(table: Word, mask: Word, bits: Word, hashed: Word, slot: Word) -> Word:
    """Puts a slot into a probe table, whose words have slots in these bits; returns how far from its place."""
    home = hashed & mask
    position = home
    while load_half(table, position) != 0:
        position = (position + 1) & mask
    store_short(table, position, hashed - (hashed & bits) + slot + 1)
    return (position - home) & mask


@kernel
def erase_slot(view: Word, index: Word, table: Word, mask: Word, hashed: Word, slot: Word) -> None:
    """Takes a slot out of the probe table of an index, or with ``index`` 0 of its map, and moves what follows back."""
    if index != 0:
        words, width, mode = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_MODE)
        longest, bits = load(index, INDEX_LONGEST), load(index, INDEX_SLOTS)
    else:
        words, width, mode, longest, bits = 0, load(view, KEY_WORDS), load(view, MODE), load(view, LONGEST), mask
    hole = hashed & mask
    wanted = hashed - (hashed & bits) + slot + 1
    while load_half(table, hole) != wanted:
        hole = (hole + 1) & mask
    position = (hole + 1) & mask
    while ((position - hole) & mask) <= longest:
        word = load_half(table, position)
        if word == 0:
            break
        home = hash_entry(entry_at(view, (word & bits) - 1), words, width, mode) & mask
        if ((position - home) & mask) >= ((position - hole) & mask):
            store_short(table, hole, word)
            hole = position
        position = (position + 1) & mask
    store_short(table, hole, 0)


@inlined
def is_held(view: Word, slot: Word) -> Word:
    """Whether the slot is in the probe table: it may have been logged, and dropped, twice."""
    hashed = hash_entry(entry_at(view, slot), 0, load(view, KEY_WORDS), load(view, MODE))
    table, mask = load(view, TABLE), load(view, MASK)
    position = hashed & mask
    wanted = hashed - position + slot + 1
    for _ in range(load(view, LONGEST) + 1):
        if load_half(table, position) == wanted:
            return True
        position = (position + 1) & mask
    return False


@inlined
def _clear(table: Word, mask: Word) -> None:
    for i in range(mask + 1):
        store_short(table, i, 0)


@kernel
def rehash(view: Word, index: Word, old: Word, length: Word, table: Word, mask: Word) -> None:
    """Moves the slots of an index's probe table, or with ``index`` 0 of the map's, into another, which is empty."""
    words, width, mode, old_bits, bits = 0, load(view, KEY_WORDS), load(view, MODE), length - 1, mask
    if index != 0:
        words, width, mode = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_MODE)
        old_bits, bits = load(index, INDEX_SLOTS), load(view, MASK)
        store(index, INDEX_SLOTS, bits)
    longest, i = 0, 0
    while i < length:
        if i + AHEAD < length:
            fetch(entry_at(view, (load_half(old, i + AHEAD) & old_bits) - 1))
        word = load_half(old, i)
        i += 1
        if word != 0:
            slot = (word & old_bits) - 1
            distance = place_slot(table, mask, bits, hash_entry(entry_at(view, slot), words, width, mode), slot)
            longest = max(longest, distance)
            if longest > LONG_PROBE and mode == 0:
                mode, longest, i = 1, 0, 0
                _clear(table, mask)
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
    longest, slot = 0, 0
    while slot < count:
        if slot + AHEAD < count:
            fetch(table + (hash_entry(entry_at(view, slot + AHEAD), 0, width, mode) & mask) * 4)
        distance = place_slot(table, mask, mask, hash_entry(entry_at(view, slot), 0, width, mode), slot)
        longest = max(longest, distance)
        slot += 1
        if longest > LONG_PROBE and mode == 0:
            mode, longest, slot = 1, 0, 0
            _clear(table, mask)
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
    _clear(table, mask)
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
