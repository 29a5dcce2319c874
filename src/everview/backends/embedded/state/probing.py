"""The probe table: how hash maps and their secondary indexes find a slot by a key. All of them have this one.

A table of 2^m places has half words. The lower bits of a word (the mask ``bits``, at least m of them) are a slot plus 1. The
others, the *tag*, are those of the key's hash that its place does not say; they tell most keys apart without a look at entries.
An empty place is 0. Keys are not in the table: they are words of entries, which lie ``stride`` bytes apart. A key is the first
``width`` words, or in an index those at the places ``words``, which is an address, or 0 for the first ones.

In mode 0 a key of one word is at its own place, so that dense and sorted keys stay close. In mode 2 one of several words is at
the place that a sum says of its words, each times a factor: ids, dates and the like hardly meet there, and a sum is soon made.
Where a key lies too far from its place, all are hashed from then on (mode 1). Removal shifts the table back, so there are no
tombstones; what follows is hashed anew from its entry. Neither a search nor a shift goes further than ``longest``, the longest
way of an entry from its place: dense keys lie in long runs, without a gap to stop at, but at their places.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import fetch, load, load_half, shift_right, store_short
from everview.backends.embedded.state.kernel import Word, inlined

LOW = 0xFFFFFFFF
FACTOR = -7046029254386353131
SPREAD = 2
"""The mode of keys of several words that are spread evenly."""
SPREADING, NEXT_SPREADING = -4836039243618926261, -806726757679248113
"""Factors of the first word and, times the one before, of each other: found by trying which keep rows of ids, grids, dates and
times apart in tables of any length."""
BLOCK = 256
"""Rows whose probes are asked for together, before the first is made."""
AHEAD = 16
"""How far ahead a pass over entries, or over a probe table, asks for what it will touch."""
LONG_PROBE = 128
"""The way from its place of a key of a view map that calls for mode 1; in other maps it is ``LONG_WAY``."""


@inlined
def mix(hashed: Word, word: Word) -> Word:
    """The hash of a key so far, with one more word."""
    # The upper half goes down first: a product spreads bits upwards only, and doubles of whole numbers have them all on top.
    folded = hashed ^ word ^ shift_right(word, 32)
    mixed = folded * FACTOR
    return mixed ^ shift_right(mixed, 32)


@inlined
def hash_word(word: Word, mode: Word) -> Word:
    """The hash of a key of one word: in mode 0 the word itself."""
    if mode == 0:
        return (word ^ shift_right(word, 32)) & LOW
    return mix(0, word) & LOW


@inlined
def hash_entry(entry: Word, words: Word, width: Word, mode: Word) -> Word:
    """The hash of some words at an address, or with ``words`` 0 of the first ones."""
    if width == 1:
        return hash_word(load(entry, load(words, 0) if words != 0 else 0), mode)
    hashed = 0
    if mode == SPREAD:
        factor = SPREADING
        for k in range(width):
            word = load(entry, load(words, k) if words != 0 else k)
            hashed += (word ^ (word >> 32)) * factor
            factor *= NEXT_SPREADING
        return shift_right(hashed, 32)
    for k in range(width):
        hashed = mix(hashed, load(entry, load(words, k) if words != 0 else k))
    return hashed & LOW


@inlined
def is_same(entry: Word, key: Word, width: Word) -> Word:
    """Whether an entry begins with the key at an address."""
    for k in range(width):  # noqa: SIM110  Numba compiles no generator expression
        if load(entry, k) != load(key, k):
            return False
    return True


@inlined
def agree(entry: Word, other: Word, words: Word, width: Word) -> Word:
    """Whether two entries agree on the words of an index."""
    for k in range(width):
        word = load(words, k)
        if load(entry, word) != load(other, word):
            return False
    return True


@inlined
def next_match(table: Word, mask: Word, bits: Word, hashed: Word, position: Word, last: Word) -> tuple[Word, Word]:
    """The next slot, from a position to the last, that may have the key with this hash, or -1; and the position after it.

    A search begins at ``hashed & mask``, and its last position is that plus ``longest``.
    """
    tag = hashed - (hashed & bits)
    while position <= last:
        word = load_half(table, position & mask)
        position += 1
        if word == 0:
            break
        slot = word & bits
        if word - slot == tag:
            return slot - 1, position
    return -1, position


@inlined
def place_of(table: Word, mask: Word, bits: Word, longest: Word, hashed: Word, slot: Word) -> Word:
    """The place of a slot whose key has this hash, or -1."""
    wanted = hashed - (hashed & bits) + slot + 1
    position = hashed & mask
    for _ in range(longest + 1):
        if load_half(table, position) == wanted:
            return position
        position = (position + 1) & mask
    return -1


@inlined
def place_slot(table: Word, mask: Word, bits: Word, hashed: Word, slot: Word) -> Word:
    """Puts a slot into a table with room; returns how far from its place."""
    home = hashed & mask
    position = home
    while load_half(table, position) != 0:
        position = (position + 1) & mask
    put_at(table, position, bits, hashed, slot)
    return (position - home) & mask


@inlined
def put_at(table: Word, position: Word, bits: Word, hashed: Word, slot: Word) -> None:
    """Has a slot, whose key has this hash, at a position."""
    store_short(table, position, hashed - (hashed & bits) + slot + 1)


@inlined
def erase_at(
    table: Word,
    mask: Word,
    bits: Word,
    longest: Word,
    entries: Word,
    stride: Word,
    words: Word,
    width: Word,
    mode: Word,
    hole: Word,
) -> None:
    """Takes out the slot at a place, and moves back what follows."""
    position = (hole + 1) & mask
    while ((position - hole) & mask) <= longest:
        word = load_half(table, position)
        if word == 0:
            break
        home = hash_entry(entries + ((word & bits) - 1) * stride, words, width, mode) & mask
        if ((position - home) & mask) >= ((position - hole) & mask):
            store_short(table, hole, word)
            hole = position
        position = (position + 1) & mask
    store_short(table, hole, 0)


@inlined
def empty_table(table: Word, mask: Word) -> None:
    """Takes out everything."""
    for i in range(mask + 1):
        store_short(table, i, 0)


@inlined
def move_table(
    old: Word,
    length: Word,
    old_bits: Word,
    table: Word,
    mask: Word,
    bits: Word,
    entries: Word,
    stride: Word,
    words: Word,
    width: Word,
    mode: Word,
    most: Word,
) -> tuple[Word, Word]:
    """Moves the slots of a table into another, which is empty; returns the longest way from a place, and the mode.

    The mode becomes 1 where a way is longer than ``most``.
    """
    longest, i = 0, 0
    while i < length:
        if i + AHEAD < length:
            fetch(entries + ((load_half(old, i + AHEAD) & old_bits) - 1) * stride)
        word = load_half(old, i)
        i += 1
        if word != 0:
            slot = (word & old_bits) - 1
            hashed = hash_entry(entries + slot * stride, words, width, mode)
            longest = max(longest, place_slot(table, mask, bits, hashed, slot))
            if longest > most and mode != 1:
                mode, longest, i = 1, 0, 0
                empty_table(table, mask)
    return longest, mode


@inlined
def fill_table(
    table: Word,
    mask: Word,
    bits: Word,
    entries: Word,
    stride: Word,
    width: Word,
    mode: Word,
    slots: Word,
    count: Word,
    most: Word,
) -> tuple[Word, Word]:
    """Fills the empty table of a map with some slots, at an address, or with ``slots`` 0 with the first ones.

    Returns the longest way from a place, and the mode, which becomes 1 where a way is longer than ``most``.
    """
    longest, i = 0, 0
    while i < count:
        if i + AHEAD < count:
            later = load(slots, i + AHEAD) if slots != 0 else i + AHEAD
            fetch(table + (hash_entry(entries + later * stride, 0, width, mode) & mask) * 4)
        slot = load(slots, i) if slots != 0 else i
        i += 1
        hashed = hash_entry(entries + slot * stride, 0, width, mode)
        longest = max(longest, place_slot(table, mask, bits, hashed, slot))
        if longest > most and mode != 1:
            mode, longest, i = 1, 0, 0
            empty_table(table, mask)
    return longest, mode
