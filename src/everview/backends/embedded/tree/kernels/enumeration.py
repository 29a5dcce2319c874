"""Enumeration of a factorized result: a nested loop over chains of entries that stops after so many rows and goes on later.

A *level* is the entries of one view that agree with those chosen on earlier levels; a row is a slot for every level. Every
entry of a level has a row below it (the views of the tree hold only what takes part), so the time between rows does not depend
on how many there are.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import load, load_short, store
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.probing import LOW, hash_word, mix, next_match
from everview.backends.embedded.tree.kernels.probing import entry_at
from everview.backends.embedded.tree.layout import (
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
    MODE,
    TABLE,
)

# Words of a level.
VIEW = 0
INDEX = 1
"""The number of a secondary index, or -1: the one entry with the whole key."""
WIDTH = 2
SOURCES = 3
"""The address of (level, word) for each word of the key; level -1 is the array of constants."""
SLOT = 4
"""The entry chosen now, or one of:"""
LEVEL_WORDS = 5

NONE = -1
UNTRIED = -2

# Words of the state.
DEPTH = 0
"""The level to go on with; -1 when all rows have been listed."""
STEPS = 1
"""How many entries, and ends of chains, have been visited."""
STATE_WORDS = 2


@inlined
def _wanted(levels: Word, sources: Word, k: Word, constants: Word) -> Word:
    """Word k of the key that a level looks for."""
    level, word = load(sources, 2 * k), load(sources, 2 * k + 1)
    if level < 0:
        return load(constants, word)
    source = levels + level * LEVEL_WORDS * 8
    return load(entry_at(load(source, VIEW), load(source, SLOT)), word)


@kernel
def _first(levels: Word, level: Word, constants: Word) -> int:
    """The first entry of a level, or -1."""
    view, number = load(level, VIEW), load(level, INDEX)
    width, sources = load(level, WIDTH), load(level, SOURCES)
    if number >= 0:
        index = load(load(view, INDEXES), number)
        table, mask, mode = load(index, INDEX_TABLE), load(index, INDEX_MASK), load(index, INDEX_MODE)
        words, bits, longest = load(index, INDEX_WORDS), load(index, INDEX_SLOTS), load(index, INDEX_LONGEST)
    else:
        table, mask, mode, longest = load(view, TABLE), load(view, MASK), load(view, MODE), load(view, LONGEST)
        words, bits = 0, mask
    hashed = 0
    if width == 1:
        hashed = hash_word(_wanted(levels, sources, 0, constants), mode)
    else:
        for k in range(width):
            hashed = mix(hashed, _wanted(levels, sources, k, constants))
        hashed &= LOW
    position = hashed & mask
    last = position + longest
    while True:
        slot, position = next_match(table, mask, bits, hashed, position, last)
        if slot < 0:
            return NONE
        entry = entry_at(view, slot)
        same = True
        for k in range(width):
            if load(entry, load(words, k) if words != 0 else k) != _wanted(levels, sources, k, constants):
                same = False
                break
        if same:
            return int(slot)


@kernel
def next_rows(levels: Word, count: Word, constants: Word, state: Word, out: Word, room: Word) -> int:
    """Writes the slots of up to ``room`` more rows, level after level (``out[level * room + row]``); returns how many."""
    depth, steps, rows = load(state, DEPTH), load(state, STEPS), 0
    while depth >= 0 and rows < room:
        level = levels + depth * LEVEL_WORDS * 8
        slot = load(level, SLOT)
        steps += 1
        if slot == UNTRIED:
            slot = _first(levels, level, constants)
        elif load(level, INDEX) >= 0:
            index = load(load(load(level, VIEW), INDEXES), load(level, INDEX))
            slot = load_short(load(index, INDEX_LINKS), 2 * slot)
        else:
            slot = NONE
        if slot < 0:
            store(level, SLOT, UNTRIED)
            depth -= 1
            continue
        store(level, SLOT, slot)
        if depth < count - 1:
            depth += 1
            continue
        # The last level: the rows that differ in its entry only.
        links = 0
        if load(level, INDEX) >= 0:
            links = load(load(load(load(level, VIEW), INDEXES), load(level, INDEX)), INDEX_LINKS)
        while True:
            for i in range(depth):
                store(out, i * room + rows, load(levels + i * LEVEL_WORDS * 8, SLOT))
            store(out, depth * room + rows, slot)
            rows += 1
            if links == 0 or rows == room:
                break
            following = load_short(links, 2 * slot)
            if following < 0:
                break
            steps += 1
            slot = following
        store(level, SLOT, slot)
    store(state, DEPTH, depth)
    store(state, STEPS, steps)
    return rows
