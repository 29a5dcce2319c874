"""The end of a transaction: ``settle`` removes entries that became zero, ``undo`` restores what the logs say."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import load, store
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.tree.kernels.entries import drop_entry
from everview.backends.embedded.tree.kernels.numbers import specials_of, words_of_kind
from everview.backends.embedded.tree.kernels.probing import entry_at, is_held
from everview.backends.embedded.tree.layout import (
    COUNT,
    ENTRIES,
    EXACT,
    FIRST_RING,
    FLOATING,
    INDEX_BUILT,
    INDEX_COUNT,
    INDEX_IDLE,
    INDEXES,
    KEY_WORDS,
    KINDS,
    LOG,
    LOG_CAPACITY,
    LOG_COUNT,
    PARTS,
    RING_INTS,
    RING_MASK,
    STRIDE,
    SUSPECT,
    TOUCHED,
    USED,
)

FEW = 4096
"""An index over fewer entries is not worth giving up."""
SPARSE = 64
"""Slots beyond twice the entries that are worth giving back."""
LARGE_LOG = 4096
"""Records of a log beyond a thirty-second of the entries that are worth giving back."""


@kernel
def _is_zero(view: Word, entry: Word) -> bool:
    """Whether all that is exact in the payload is 0; what a float sum then holds is rounding."""
    kinds = load(view, KINDS)
    at = load(view, KEY_WORDS)
    for p in range(load(view, PARTS)):
        kind = load(kinds, p)
        if kind >= FIRST_RING:
            if kind & RING_MASK == RING_INTS:
                for k in range(words_of_kind(kind)):
                    if load(entry, at + k) != 0:
                        return False
        elif kind == FLOATING:
            if specials_of(load(entry, at + 2)) != 0:
                return False
        elif load(entry, at) != 0 or (kind == EXACT and load(entry, at + 1) != 0):
            return False
        at += words_of_kind(kind)
    return True


@inlined
def _is_untidy(view: Word) -> Word:
    """Whether a map wants housekeeping: it keeps an index that is not used, or has much room to spare.

    Half of an index's entries have come since somebody last sliced: keeping it up then costs as building it does.
    """
    live = load(view, COUNT)
    most = live // 2
    if most < FEW:
        most = FEW
    for i in range(load(view, INDEX_COUNT)):
        index = load(load(view, INDEXES), i)
        if load(index, INDEX_BUILT) != 0 and load(index, INDEX_IDLE) > most:
            return True
    return load(view, USED) > 2 * live + SPARSE or load(view, LOG_CAPACITY) > live // 32 + LARGE_LOG


@kernel
def settle(views: Word, count: Word) -> Word:
    """Ends a transaction: entries that became zero go, the logs are emptied; returns how many maps want housekeeping."""
    untidy = 0
    for v in range(count):
        view = load(views, v)
        logged = load(view, LOG_COUNT)
        if logged == 0:
            continue
        log, stride, width = load(view, LOG), load(view, STRIDE), load(view, KEY_WORDS)
        entries, touched = load(view, ENTRIES), load(view, TOUCHED)
        for i in range(logged):
            slot = load(log, i * (stride + 1))
            entry = entries + slot * stride * 8
            if touched != 0:
                store(touched, slot >> 6, 0)
            if load(entry, width) == 0 and _is_zero(view, entry) and is_held(view, slot):
                drop_entry(view, slot)
        store(view, LOG_COUNT, 0)
        store(view, SUSPECT, 0)
        if _is_untidy(view):
            untidy += 1
    return untidy


@kernel
def undo(views: Word, count: Word) -> None:
    """Takes a transaction back: entries get their old payloads, new ones go."""
    for v in range(count):
        view = load(views, v)
        log, stride, width, touched = load(view, LOG), load(view, STRIDE), load(view, KEY_WORDS), load(view, TOUCHED)
        for j in range(load(view, LOG_COUNT)):
            i = load(view, LOG_COUNT) - 1 - j
            record = log + i * (stride + 1) * 8
            slot = load(record, 0)
            entry = entry_at(view, slot)
            if touched != 0:
                store(touched, slot >> 6, 0)
            if load(record, 1) == 0:
                drop_entry(view, slot)
                continue
            for k in range(width, stride):
                store(entry, k, load(record, 1 + k))
        store(view, LOG_COUNT, 0)
        store(view, SUSPECT, 0)
