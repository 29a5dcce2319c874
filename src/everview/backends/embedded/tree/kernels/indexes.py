"""Secondary indexes: a probe table of chain heads, with links between the slots of entries that agree on the index's words."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import load, load_half, load_short, store, store_short
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.tree.kernels.probing import LONG_PROBE, entry_at, erase_slot, hash_entry
from everview.backends.embedded.tree.layout import (
    INDEX_KEYS,
    INDEX_LINKS,
    INDEX_LONGEST,
    INDEX_MASK,
    INDEX_MODE,
    INDEX_SLOTS,
    INDEX_TABLE,
    INDEX_WIDTH,
    INDEX_WORDS,
)


@inlined
def _same_words(one: Word, other: Word, words: Word, width: Word) -> Word:
    for k in range(width):
        word = load(words, k)
        if load(one, word) != load(other, word):
            return False
    return True


@kernel
def link_slot(view: Word, index: Word, slot: Word) -> None:
    """Puts a slot at the head of the chain of its index key."""
    table, mask, links = load(index, INDEX_TABLE), load(index, INDEX_MASK), load(index, INDEX_LINKS)
    words, width, bits = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_SLOTS)
    entry = entry_at(view, slot)
    hashed = hash_entry(entry, words, width, load(index, INDEX_MODE))
    home, tag = hashed & mask, hashed - (hashed & bits)
    position = home
    store_short(links, 2 * slot + 1, -1)
    while True:
        word = load_half(table, position)
        if word == 0:
            store_short(links, 2 * slot, -1)
            store(index, INDEX_KEYS, load(index, INDEX_KEYS) + 1)
            break
        if word - (word & bits) == tag:
            head = (word & bits) - 1
            if _same_words(entry, entry_at(view, head), words, width):
                store_short(links, 2 * slot, head)
                store_short(links, 2 * head + 1, slot)
                break
        position = (position + 1) & mask
    store_short(table, position, tag + slot + 1)
    distance = (position - home) & mask
    if distance > load(index, INDEX_LONGEST):
        store(index, INDEX_LONGEST, distance)


@kernel
def unlink_slot(view: Word, index: Word, slot: Word) -> None:
    """Takes a slot out of the chain of its index key."""
    links = load(index, INDEX_LINKS)
    after, before = load_short(links, 2 * slot), load_short(links, 2 * slot + 1)
    if after >= 0:
        store_short(links, 2 * after + 1, before)
    if before >= 0:
        store_short(links, 2 * before, after)
        return
    table, mask = load(index, INDEX_TABLE), load(index, INDEX_MASK)
    words, width = load(index, INDEX_WORDS), load(index, INDEX_WIDTH)
    hashed = hash_entry(entry_at(view, slot), words, width, load(index, INDEX_MODE))
    if after < 0:
        store(index, INDEX_KEYS, load(index, INDEX_KEYS) - 1)
        erase_slot(view, index, table, mask, hashed, slot)
        return
    position = hashed & mask
    tag = hashed - (hashed & load(index, INDEX_SLOTS))
    while load_half(table, position) != tag + slot + 1:
        position = (position + 1) & mask
    store_short(table, position, tag + after + 1)


@kernel
def link_all(view: Word, index: Word, slots: Word, count: Word) -> bool:
    """Fills a new secondary index; whether its hash suits the keys, otherwise it is to be filled again with the better one."""
    for i in range(count):
        link_slot(view, index, load(slots, i))
        if load(index, INDEX_LONGEST) > LONG_PROBE and load(index, INDEX_MODE) == 0:
            return False
    return True
