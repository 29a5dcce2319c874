"""The kernels of ordered sums: a search tree in one array, with the sum of the payloads below every node.

A node is a row of words: its children, a priority, the number of entries below it, its key, its own payload, and the sum of
all payloads below and at it. Nodes are in key order from left to right, and in the order of priorities from the root down
(a treap). The priority is a hash of the key. So the shape of the tree, and with it every sum, rounding errors included, is
a function of what it holds: whatever was put and taken back leaves no trace.

What nodes know besides sums is in ``ordered_nodes``.

Node 0 is nobody. Free nodes are chained by LEFT.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import start_of
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.state.ordered_nodes import (
    EXTREME,
    FREE,
    HIGH,
    KEY,
    KEY_WORDS,
    KINDS,
    KNOWS,
    LEFT,
    MARGINS,
    PARTS,
    PAYLOAD_WORDS,
    PRIORITY,
    RELATIVE,
    RIGHT,
    ROOT,
    SIZE,
    add_parts,
    bounds_at,
    compare,
    own_at,
    pull_bounds,
    pull_margins,
    total_at,
    word_at,
)
from everview.backends.embedded.tree.layout import COUNTED, EXACT
from everview.backends.embedded.vectors import Ints


@kernel
def _pull(nodes: Ints, meta: Ints, node: Word) -> None:
    """What a node says of all below it, from what its children say."""
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    nodes[node, SIZE] = nodes[left, SIZE] + 1 + nodes[right, SIZE]
    own, total, words = own_at(meta), total_at(meta), meta[PAYLOAD_WORDS]
    if left != 0:
        for k in range(words):
            nodes[node, total + k] = nodes[left, total + k]
        add_parts(meta, word_at(nodes, node, total), word_at(nodes, node, own))
    else:
        for k in range(words):
            nodes[node, total + k] = nodes[node, own + k]
    if right != 0:
        add_parts(meta, word_at(nodes, node, total), word_at(nodes, right, total))
    if meta[KNOWS] == RELATIVE:
        pull_bounds(nodes, meta, node)
    elif meta[KNOWS] == MARGINS:
        pull_margins(nodes, meta, node)
    elif meta[KNOWS] == EXTREME:
        place, greatest = bounds_at(meta), nodes[node, KEY + meta[KEY_WORDS] - 1]
        if left != 0:
            greatest = max(greatest, nodes[left, place])
        if right != 0:
            greatest = max(greatest, nodes[right, place])
        nodes[node, place] = greatest


UPPER_35, UPPER_32 = (1 << 35) - 1, (1 << 32) - 1
"""The bits that are left of a word that is shifted by 29 and by 32."""


@kernel
def _priority(rows: Ints, i: Word, words: Word) -> Word:
    """A hash of a key. The sign is not shifted in: a word and its complement, 3 and -4, would hash alike."""
    hashed = 1
    for j in range(words):
        hashed = (hashed ^ rows[i, j]) * -7046029254386353131
        hashed ^= (hashed >> 29) & UPPER_35
    hashed *= -4658895280553007687
    return hashed ^ ((hashed >> 32) & UPPER_32)


@inlined
def _is_zero(meta: Ints, payloads: Ints, i: Word) -> Word:
    """Whether nothing is left at a key: all that is exact is 0, and what a float sum then holds is rounding."""
    at = 0
    for p in range(meta[PARTS]):
        kind = meta[KINDS + p]
        if kind == COUNTED:
            if payloads[i, at] != 0:
                return False
            at += 1
        elif kind == EXACT:
            if payloads[i, at] != 0 or payloads[i, at + 1] != 0:
                return False
            at += 2
        else:
            if payloads[i, at + 2] != 0:
                return False
            at += 3
    return True


@inlined
def _hang(nodes: Ints, meta: Ints, parent: Word, old: Word, new: Word) -> None:
    """Hangs another node where one hung: below its parent, or at the root."""
    if parent == 0:
        meta[ROOT] = new
    elif nodes[parent, LEFT] == old:
        nodes[parent, LEFT] = new
    else:
        nodes[parent, RIGHT] = new


@inlined
def _rise(nodes: Ints, node: Word, child: Word) -> None:
    """Turns a child above its node; who hangs above is not told."""
    if nodes[node, LEFT] == child:
        nodes[node, LEFT] = nodes[child, RIGHT]
        nodes[child, RIGHT] = node
    else:
        nodes[node, RIGHT] = nodes[child, LEFT]
        nodes[child, LEFT] = node


@inlined
def _new(nodes: Ints, meta: Ints) -> Word:
    node = meta[FREE]
    if node != 0:
        meta[FREE] = nodes[node, LEFT]
        return node
    node = meta[HIGH]
    meta[HIGH] += 1
    return node


@inlined
def _fill(nodes: Ints, meta: Ints, node: Word, keys: Ints, payloads: Ints, i: Word) -> None:
    """Makes a node that has no children the entry of a row."""
    nodes[node, LEFT] = 0
    nodes[node, RIGHT] = 0
    nodes[node, PRIORITY] = _priority(keys, i, meta[KEY_WORDS])
    for j in range(meta[KEY_WORDS]):
        nodes[node, KEY + j] = keys[i, j]
    for k in range(meta[PAYLOAD_WORDS]):
        nodes[node, own_at(meta) + k] = payloads[i, k]


@kernel
def _insert(nodes: Ints, meta: Ints, path: Ints, depth: Word, node: Word, side: Word) -> Word:
    """Hangs a node at the end of a path, and turns it up to where its priority belongs; returns how deep that is."""
    parent = path[depth - 1] if depth > 0 else 0
    if parent == 0:
        meta[ROOT] = node
    elif side < 0:
        nodes[parent, RIGHT] = node
    else:
        nodes[parent, LEFT] = node
    while depth > 0 and nodes[path[depth - 1], PRIORITY] < nodes[node, PRIORITY]:
        depth -= 1
        _rise(nodes, path[depth], node)
        _hang(nodes, meta, path[depth - 1] if depth > 0 else 0, path[depth], node)
        _pull(nodes, meta, path[depth])
    _pull(nodes, meta, node)
    return depth


@kernel
def _remove(nodes: Ints, meta: Ints, path: Ints, depth: Word, node: Word) -> Word:
    """Turns a node down until nothing hangs below it, and takes it away; the path leads to where it was last."""
    while nodes[node, LEFT] != 0 or nodes[node, RIGHT] != 0:
        left, right = nodes[node, LEFT], nodes[node, RIGHT]
        child = right
        if right == 0 or (left != 0 and nodes[left, PRIORITY] > nodes[right, PRIORITY]):
            child = left
        _rise(nodes, node, child)
        _hang(nodes, meta, path[depth - 1] if depth > 0 else 0, node, child)
        path[depth] = child
        depth += 1
    _hang(nodes, meta, path[depth - 1] if depth > 0 else 0, node, 0)
    nodes[node, LEFT] = meta[FREE]
    nodes[node, SIZE] = 0
    meta[FREE] = node
    return depth


@kernel
def put(nodes: Ints, meta: Ints, path: Ints, keys: Ints, payloads: Ints, start: Word, adds: Word) -> Word:
    """Gives keys their payloads, from row ``start`` on, or adds to them; zero removes a key.

    Stops where nodes run out, and returns the next row. Where it adds, ``payloads`` become what the keys have afterwards.
    """
    words, own = meta[KEY_WORDS], own_at(meta)
    for i in range(start, len(keys)):
        node, depth, side = meta[ROOT], 0, 1
        while node != 0:
            side = compare(nodes, node, keys, i, words)
            if side == 0:
                break
            path[depth] = node
            depth += 1
            node = nodes[node, RIGHT] if side < 0 else nodes[node, LEFT]
        if adds != 0 and node != 0:
            add_parts(meta, start_of(payloads) + i * payloads.shape[1] * 8, word_at(nodes, node, own))
        if _is_zero(meta, payloads, i):
            if node == 0:
                continue
            depth = _remove(nodes, meta, path, depth, node)
        elif node != 0:
            for k in range(meta[PAYLOAD_WORDS]):
                nodes[node, own + k] = payloads[i, k]
            _pull(nodes, meta, node)
        else:
            if meta[FREE] == 0 and meta[HIGH] == len(nodes):
                return i
            node = _new(nodes, meta)
            _fill(nodes, meta, node, keys, payloads, i)
            depth = _insert(nodes, meta, path, depth, node, side)
        while depth > 0:
            depth -= 1
            _pull(nodes, meta, path[depth])
    return len(keys)


@kernel
def build(nodes: Ints, meta: Ints, path: Ints, keys: Ints, payloads: Ints) -> None:
    """Makes the tree of sorted, distinct keys with payloads that are not zero, from nothing, in linear time."""
    depth = 0
    for i in range(len(keys)):
        node = i + 1
        _fill(nodes, meta, node, keys, payloads, i)
        below = 0
        while depth > 0 and nodes[path[depth - 1], PRIORITY] < nodes[node, PRIORITY]:
            depth -= 1
            below = path[depth]
            _pull(nodes, meta, below)
        nodes[node, LEFT] = below
        if depth > 0:
            nodes[path[depth - 1], RIGHT] = node
        else:
            meta[ROOT] = node
        path[depth] = node
        depth += 1
    while depth > 0:
        depth -= 1
        _pull(nodes, meta, path[depth])
    meta[HIGH] = len(keys) + 1


@kernel
def find(nodes: Ints, meta: Ints, keys: Ints, out: Ints) -> None:
    """The node of each key, or 0."""
    for i in range(len(keys)):
        node = meta[ROOT]
        while node != 0:
            side = compare(nodes, node, keys, i, meta[KEY_WORDS])
            if side == 0:
                break
            node = nodes[node, RIGHT] if side < 0 else nodes[node, LEFT]
        out[i] = node


@kernel
def rank(nodes: Ints, meta: Ints, bounds: Ints, after: Word, out: Ints) -> None:
    """How many entries are below each bound, or with ``after`` not above it."""
    words = bounds.shape[1]
    for i in range(len(bounds)):
        node, below = meta[ROOT], 0
        while node != 0:
            side = compare(nodes, node, bounds, i, words)
            if side < 0 or (side == 0 and after != 0):
                below += nodes[nodes[node, LEFT], SIZE] + 1
                node = nodes[node, RIGHT]
            else:
                node = nodes[node, LEFT]
        out[i] = below


@kernel
def select(nodes: Ints, meta: Ints, ranks: Ints, out: Ints) -> None:
    """The node with each rank, from 0, or 0."""
    for i in range(len(ranks)):
        node, left = meta[ROOT], ranks[i]
        while node != 0:
            before = nodes[nodes[node, LEFT], SIZE]
            if left == before:
                break
            if left < before:
                node = nodes[node, LEFT]
            else:
                left -= before + 1
                node = nodes[node, RIGHT]
        out[i] = node


@kernel
def sums(nodes: Ints, meta: Ints, first: Ints, last: Ints, rows: Ints, out: Ints) -> None:
    """Adds to rows of ``out`` the payloads of the entries from one rank up to, not with, another. Nothing is subtracted."""
    own, total, stride = own_at(meta), total_at(meta), out.shape[1] * 8
    for i in range(len(first)):
        if first[i] >= last[i]:
            continue
        target = start_of(out) + rows[i] * stride
        node, base = meta[ROOT], 0
        at = base + nodes[nodes[node, LEFT], SIZE]
        while at < first[i] or at >= last[i]:
            if at < first[i]:
                base = at + 1
                node = nodes[node, RIGHT]
            else:
                node = nodes[node, LEFT]
            at = base + nodes[nodes[node, LEFT], SIZE]
        add_parts(meta, target, word_at(nodes, node, own))
        top, middle = node, at
        node = nodes[top, LEFT]
        while node != 0:
            at = base + nodes[nodes[node, LEFT], SIZE]
            if at >= first[i]:
                add_parts(meta, target, word_at(nodes, node, own))
                if nodes[node, RIGHT] != 0:
                    add_parts(meta, target, word_at(nodes, nodes[node, RIGHT], total))
                node = nodes[node, LEFT]
            else:
                base = at + 1
                node = nodes[node, RIGHT]
        node, base = nodes[top, RIGHT], middle + 1
        while node != 0:
            at = base + nodes[nodes[node, LEFT], SIZE]
            if at < last[i]:
                add_parts(meta, target, word_at(nodes, node, own))
                if nodes[node, LEFT] != 0:
                    add_parts(meta, target, word_at(nodes, nodes[node, LEFT], total))
                base = at + 1
                node = nodes[node, RIGHT]
            else:
                node = nodes[node, LEFT]
