"""Secondary indexes: a probe table of chain heads, with links between the slots of entries that agree on the index's words."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import load, load_short, store, store_short
from everview.backends.embedded.state.kernel import Word, kernel
from everview.backends.embedded.state.probing import (
    LONG_PROBE,
    agree,
    hash_entry,
    next_match,
    place_of,
    place_slot,
    put_at,
)
from everview.backends.embedded.tree.kernels.probing import entry_at, erase_slot
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


@kernel
def link_slot(view: Word, index: Word, slot: Word) -> None:
    """Puts a slot at the head of the chain of its index key."""
    table, mask, links = load(index, INDEX_TABLE), load(index, INDEX_MASK), load(index, INDEX_LINKS)
    words, width, bits = load(index, INDEX_WORDS), load(index, INDEX_WIDTH), load(index, INDEX_SLOTS)
    entry = entry_at(view, slot)
    hashed = hash_entry(entry, words, width, load(index, INDEX_MODE))
    position = hashed & mask
    last = position + load(index, INDEX_LONGEST)
    store_short(links, 2 * slot + 1, -1)
    while True:
        head, position = next_match(table, mask, bits, hashed, position, last)
        if head < 0 or agree(entry, entry_at(view, head), words, width):
            break
    store_short(links, 2 * slot, head)
    if head >= 0:
        store_short(links, 2 * head + 1, slot)
        put_at(table, (position - 1) & mask, bits, hashed, slot)
        return
    store(index, INDEX_KEYS, load(index, INDEX_KEYS) + 1)
    distance = place_slot(table, mask, bits, hashed, slot)
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
    bits = load(index, INDEX_SLOTS)
    put_at(table, place_of(table, mask, bits, load(index, INDEX_LONGEST), hashed, slot), bits, hashed, after)


@kernel
def link_all(view: Word, index: Word, slots: Word, count: Word) -> bool:
    """Fills a new secondary index; whether its hash suits the keys, otherwise it is to be filled again with the better one."""
    for i in range(count):
        link_slot(view, index, load(slots, i))
        if load(index, INDEX_LONGEST) > LONG_PROBE and load(index, INDEX_MODE) == 0:
            return False
    return True
