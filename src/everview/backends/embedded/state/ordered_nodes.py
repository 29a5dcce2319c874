"""The nodes of ordered sums (``ordered_sums_kernels``): where their words are, and what they know besides sums.

With *relative* sums a node has two more numbers: the least and the greatest sum of its entries up to one of them, counted
from the first entry *below that node*. They are relative to where the node begins, as the keys of RPAI are relative to the
parent: a change of one entry shifts the running sums of all entries behind it by touching only the nodes above it.

With *margins* the running sum of an entry says on which side of 0 it is, and each entry has a mark of the side that it was on.
A node knows how far its running sums may rise, and fall, until one of those marks is wrong (``margin_kernels``).
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.intrinsics import is_below, load, load_float, start_of, store
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.tree.kernels.numbers import add_exact, add_float, sum_note
from everview.backends.embedded.tree.layout import BIG, COUNTED, EXACT
from everview.backends.embedded.vectors import Ints

LEFT, RIGHT, PRIORITY, SIZE, KEY = range(5)
"""Words of a node; its payload follows the key."""

ROOT, FREE, HIGH, KEY_WORDS, PAYLOAD_WORDS, PARTS, KNOWS, HAS_WRAPPED, KINDS = range(9)
"""Words of ``meta``: root; first free node; nodes ever used; the shape of a node; whether a sum has left its 128 bits."""

PLAIN, RELATIVE, EXTREME, MARGINS = range(4)
"""What nodes know besides sums: nothing, the bounds of running sums, the greatest word that ends a key, or what may turn."""

BOUNDS = 4
"""Words of the least and the greatest running sum, 128 bits each, low word first."""
TURNING = 6
"""Words of what may turn: from which start on an entry below 0 is so no more, up to which start another one is, 128 bits each;
the least count of an entry that is not empty, and the greatest one of those that are."""
ROWS, MARK, COUNT, MARGIN = 0, 1, 2, 3
"""Words of a payload: rows that have the key, its mark, and by how much it counts more, and is more, than the one before."""
EMPTY, BELOW, ABOVE = range(3)
"""Marks: no row is summed; the margin is below 0; it is not."""
NEVER = np.int64(1 << 62)
"""The high word, or the count, of what does not turn."""
DEEPEST = 512


@inlined
def own_at(meta: Ints) -> Word:
    """The first word of a node's own payload."""
    return KEY + meta[KEY_WORDS]


@inlined
def total_at(meta: Ints) -> Word:
    """The first word of the sum of all payloads below and at a node."""
    return KEY + meta[KEY_WORDS] + meta[PAYLOAD_WORDS]


@inlined
def bounds_at(meta: Ints) -> Word:
    """The first word of what a node knows besides."""
    return KEY + meta[KEY_WORDS] + 2 * meta[PAYLOAD_WORDS]


@inlined
def word_at(nodes: Ints, node: Word, word: Word) -> Word:
    """The address of a word of a node."""
    return start_of(nodes) + (node * nodes.shape[1] + word) * 8


@kernel
def add_parts(meta: Ints, target: Word, source: Word) -> None:
    """Adds the payload at one address to the one at another."""
    at = 0
    for p in range(meta[PARTS]):
        kind = meta[KINDS + p]
        if kind == COUNTED:
            held, more = load(target, at), load(source, at)
            if (held ^ (held + more)) & (more ^ (held + more)) < 0:
                meta[HAS_WRAPPED] = 1
            store(target, at, held + more)
            at += 1
        elif kind == EXACT:
            before, more = load(target, at + 1), load(source, at + 1)
            add_exact(target + at * 8, load(source, at), more)
            if (before ^ load(target, at + 1)) & (more ^ load(target, at + 1)) < 0:
                meta[HAS_WRAPPED] = 1
            at += 2
        else:
            note, given = load(target, at + 2), load(source, at + 2)
            add_float(target + at * 8, load_float(source, at), load_float(source, at + 1))
            if note | given != 0 or not abs(load_float(target, at)) < BIG:
                store(target, at + 2, sum_note(note, given, load(target, at)))
            at += 3


@inlined
def is_less(low: Word, high: Word, other: Word, other_high: Word) -> Word:
    """Whether an integer of 128 bits is below another."""
    return high < other_high or (high == other_high and is_below(low, other) != 0)


@inlined
def _widen(at: Word, low: Word, high: Word) -> None:
    """Makes the bounds at an address include a number."""
    if is_less(low, high, load(at, 0), load(at, 1)):
        store(at, 0, low)
        store(at, 1, high)
    if is_less(load(at, 2), load(at, 3), low, high):
        store(at, 2, low)
        store(at, 3, high)


@kernel
def pull_bounds(nodes: Ints, meta: Ints, node: Word) -> None:
    """The least and greatest running sum below a node, from those of its children. The last part of a payload is summed."""
    place, last = word_at(nodes, node, bounds_at(meta)), meta[PAYLOAD_WORDS] - 2
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    own = word_at(nodes, node, own_at(meta) + last)
    low, high = load(own, 0), load(own, 1)
    if left != 0:
        before = word_at(nodes, left, total_at(meta) + last)
        total = low + load(before, 0)
        high += load(before, 1) + is_below(total, low)
        low = total
    store(place, 0, low)
    store(place, 1, high)
    store(place, 2, low)
    store(place, 3, high)
    if left != 0:
        other = word_at(nodes, left, bounds_at(meta))
        _widen(place, load(other, 0), load(other, 1))
        _widen(place, load(other, 2), load(other, 3))
    if right != 0:
        other = word_at(nodes, right, bounds_at(meta))
        for i in range(2):
            total = load(other, 2 * i) + low
            _widen(place, total, load(other, 2 * i + 1) + high + is_below(total, low))


@inlined
def _rebased(low: Word, high: Word, total: Word, total_high: Word) -> Word:
    """A start, as it is for the node above, in which a sum comes before: both words; what never turns stays so."""
    if high in (NEVER, -NEVER):
        return low, high
    less = low - total
    return less, high - total_high - is_below(low, total)


@kernel
def pull_margins(nodes: Ints, meta: Ints, node: Word) -> None:
    """What may turn below a node, from its children: it starts not below its first number, or below its second one."""
    place, own = bounds_at(meta), own_at(meta)
    left, right, mark = nodes[node, LEFT], nodes[node, RIGHT], nodes[node, own + MARK]
    count, low, high = nodes[node, own + COUNT], nodes[node, own + MARGIN], nodes[node, own + MARGIN + 1]
    rise, rise_high, fall, fall_high, least, most = 0, NEVER, 0, -NEVER, NEVER, -NEVER
    if left != 0:
        total = total_at(meta)
        count += nodes[left, total + COUNT]
        added = low + nodes[left, total + MARGIN]
        high += nodes[left, total + MARGIN + 1] + is_below(added, low)
        low = added
        rise, rise_high = nodes[left, place], nodes[left, place + 1]
        fall, fall_high = nodes[left, place + 2], nodes[left, place + 3]
        least, most = nodes[left, place + 4], nodes[left, place + 5]
    start, start_high = _rebased(0, 0, low, high)
    if mark == EMPTY:
        most = max(most, count)
    else:
        least = min(least, count)
        if mark == BELOW and is_less(start, start_high, rise, rise_high):
            rise, rise_high = start, start_high
        elif mark == ABOVE and is_less(fall, fall_high, start, start_high):
            fall, fall_high = start, start_high
    if right != 0:
        start, start_high = _rebased(nodes[right, place], nodes[right, place + 1], low, high)
        if is_less(start, start_high, rise, rise_high):
            rise, rise_high = start, start_high
        start, start_high = _rebased(nodes[right, place + 2], nodes[right, place + 3], low, high)
        if is_less(fall, fall_high, start, start_high):
            fall, fall_high = start, start_high
        if nodes[right, place + 4] != NEVER:
            least = min(least, count + nodes[right, place + 4])
        if nodes[right, place + 5] != -NEVER:
            most = max(most, count + nodes[right, place + 5])
    nodes[node, place], nodes[node, place + 1] = rise, rise_high
    nodes[node, place + 2], nodes[node, place + 3] = fall, fall_high
    nodes[node, place + 4], nodes[node, place + 5] = least, most


@inlined
def compare(nodes: Ints, node: Word, rows: Ints, i: Word, words: Word) -> Word:
    """-1, 0 or 1 as the key of a node is below, equal to or above a row, by their first words."""
    for j in range(words):
        a, b = nodes[node, KEY + j], rows[i, j]
        if a != b:
            return -1 if a < b else 1
    return 0
