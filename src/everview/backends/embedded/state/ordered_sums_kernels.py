"""The kernels of ordered sums: a search tree in one array, with the sum of the payloads below every node.

A node is a row of words: its children, a priority, the number of entries below it, its key, its own payload, and the sum of
all payloads below and at it. Nodes are in key order from left to right, and in the order of priorities from the root down
(a treap). The priority is a hash of the key. So the shape of the tree, and with it every sum, rounding errors included, is
a function of what it holds: whatever was put and taken back leaves no trace.

With *relative* sums a node has two more numbers: the least and the greatest sum of its entries up to one of them, counted
from the first entry *below that node*. They are relative to where the node begins, as the keys of RPAI are relative to the
parent: a change of one entry shifts the running sums of all entries behind it by touching only the nodes above it.

Node 0 is nobody. Free nodes are chained by LEFT.
"""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import is_below, load, load_float, start_of, store
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.tree.kernels.numbers import add_exact, add_float, sum_note
from everview.backends.embedded.tree.layout import BIG, COUNTED, EXACT
from everview.backends.embedded.vectors import Ints

LEFT, RIGHT, PRIORITY, SIZE, KEY = range(5)
"""Words of a node; its payload follows the key."""

ROOT, FREE, HIGH, KEY_WORDS, PAYLOAD_WORDS, PARTS, KNOWS, HAS_WRAPPED, KINDS = range(9)
"""Words of ``meta``: root; first free node; nodes ever used; the shape of a node; whether a sum has left its 128 bits."""

PLAIN, RELATIVE, EXTREME = range(3)
"""What nodes know besides sums: nothing, the bounds of running sums, or the greatest word that ends a key."""

BOUNDS = 4
"""Words of the least and the greatest running sum, 128 bits each, low word first."""
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
def _at(nodes: Ints, node: Word, word: Word) -> Word:
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
def _pull_bounds(nodes: Ints, meta: Ints, node: Word) -> None:
    """The least and greatest running sum below a node, from those of its children. The last part of a payload is summed."""
    place, last = _at(nodes, node, bounds_at(meta)), meta[PAYLOAD_WORDS] - 2
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    own = _at(nodes, node, own_at(meta) + last)
    low, high = load(own, 0), load(own, 1)
    if left != 0:
        before = _at(nodes, left, total_at(meta) + last)
        total = low + load(before, 0)
        high += load(before, 1) + is_below(total, low)
        low = total
    store(place, 0, low)
    store(place, 1, high)
    store(place, 2, low)
    store(place, 3, high)
    if left != 0:
        other = _at(nodes, left, bounds_at(meta))
        _widen(place, load(other, 0), load(other, 1))
        _widen(place, load(other, 2), load(other, 3))
    if right != 0:
        other = _at(nodes, right, bounds_at(meta))
        for i in range(2):
            total = load(other, 2 * i) + low
            _widen(place, total, load(other, 2 * i + 1) + high + is_below(total, low))


@kernel
def _pull(nodes: Ints, meta: Ints, node: Word) -> None:
    """What a node says of all below it, from what its children say."""
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    nodes[node, SIZE] = nodes[left, SIZE] + 1 + nodes[right, SIZE]
    own, total, words = own_at(meta), total_at(meta), meta[PAYLOAD_WORDS]
    if left != 0:
        for k in range(words):
            nodes[node, total + k] = nodes[left, total + k]
        add_parts(meta, _at(nodes, node, total), _at(nodes, node, own))
    else:
        for k in range(words):
            nodes[node, total + k] = nodes[node, own + k]
    if right != 0:
        add_parts(meta, _at(nodes, node, total), _at(nodes, right, total))
    if meta[KNOWS] == RELATIVE:
        _pull_bounds(nodes, meta, node)
    elif meta[KNOWS] == EXTREME:
        place, greatest = bounds_at(meta), nodes[node, KEY + meta[KEY_WORDS] - 1]
        if left != 0:
            greatest = max(greatest, nodes[left, place])
        if right != 0:
            greatest = max(greatest, nodes[right, place])
        nodes[node, place] = greatest


@inlined
def compare(nodes: Ints, node: Word, rows: Ints, i: Word, words: Word) -> Word:
    """-1, 0 or 1 as the key of a node is below, equal to or above a row, by their first words."""
    for j in range(words):
        a, b = nodes[node, KEY + j], rows[i, j]
        if a != b:
            return -1 if a < b else 1
    return 0


@kernel
def _priority(rows: Ints, i: Word, words: Word) -> Word:
    """A hash of a key."""
    hashed = 1
    for j in range(words):
        hashed = (hashed ^ rows[i, j]) * -7046029254386353131
        hashed ^= hashed >> 29
    hashed *= -4658895280553007687
    return hashed ^ (hashed >> 32)


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
            add_parts(meta, start_of(payloads) + i * payloads.shape[1] * 8, _at(nodes, node, own))
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
        add_parts(meta, target, _at(nodes, node, own))
        top, middle = node, at
        node = nodes[top, LEFT]
        while node != 0:
            at = base + nodes[nodes[node, LEFT], SIZE]
            if at >= first[i]:
                add_parts(meta, target, _at(nodes, node, own))
                if nodes[node, RIGHT] != 0:
                    add_parts(meta, target, _at(nodes, nodes[node, RIGHT], total))
                node = nodes[node, LEFT]
            else:
                base = at + 1
                node = nodes[node, RIGHT]
        node, base = nodes[top, RIGHT], middle + 1
        while node != 0:
            at = base + nodes[nodes[node, LEFT], SIZE]
            if at < last[i]:
                add_parts(meta, target, _at(nodes, node, own))
                if nodes[node, LEFT] != 0:
                    add_parts(meta, target, _at(nodes, nodes[node, LEFT], total))
                base = at + 1
                node = nodes[node, RIGHT]
            else:
                node = nodes[node, LEFT]
