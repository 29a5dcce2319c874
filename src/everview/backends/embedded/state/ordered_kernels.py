"""The kernels of ordered indexes: a B+ tree in flat arrays, with the number and weight of the entries below every child.

- ``leaves``: LEAF rows per leaf: key words, weight, slot. ``leaf_meta``: per leaf its size, the next and the previous leaf + 1.
- ``inners``: FANOUT rows per inner node: a lower bound of the child's keys, the child, its number of entries, the sum of their
  weights. ``inner_meta``: per inner node its size. Free nodes are chained through NEXT (leaves) and the size (inner nodes).
- ``meta``: the places below, then the path of the last descent.
- ``texts``: per key word 0 if it is a number, 1 or -1 if it is the code of a text that sorts up or down; ``heap`` and ``spans``
  are the bytes of all texts and where those of each code end. Equal codes are equal texts.

Full nodes are split on the way down, so a split never climbs. A node is freed when it is empty and never merged before; the
owner of the arrays rebuilds a tree that deletions have thinned out. The bound of a node's first child is not read, so bounds
need no care on deletion. Kernels that may need nodes stop when there might be too few, and return how many rows are done.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.state.intrinsics import load8, start_of
from everview.backends.embedded.state.kernel import Word, inlined, kernel
from everview.backends.embedded.vectors import Bytes, Ints

LEAF = 32
FANOUT = 32

SIZE, NEXT, PREVIOUS = range(3)
CHILD, ENTRIES, WEIGHT = range(3)
"""Words of a child after its bound."""

ROOT, HEIGHT, COUNT, LEAF_HIGH, LEAF_FREE, INNER_HIGH, INNER_FREE, PATH = range(8)
"""Places in ``meta``: root node; levels of inner nodes; entries; leaves ever used, first free leaf + 1; the same
of inner nodes; from PATH on, per level the node and the child passed."""
META_WORDS = PATH + 2 * 32

ONE = np.int64(1)


@inlined
def _compare_text(heap: Bytes, spans: Ints, a: Word, b: Word) -> Word:
    """-1 or 1 as the text of one code is below or above that of another, byte by byte; 0 has no bytes."""
    first, second = start_of(heap) + spans[2 * a], start_of(heap) + spans[2 * b]
    length, other = spans[2 * a + 1] - spans[2 * a], spans[2 * b + 1] - spans[2 * b]
    for at in range(min(length, other)):
        x, y = load8(first + at), load8(second + at)
        if x != y:
            return -1 if x < y else 1
    return -1 if length < other else 1


@inlined
def _compare(
    nodes: Ints, at: Word, rows: Ints, i: Word, words: Word, texts: Ints, heap: Bytes, spans: Ints
) -> Word:  # fmt: skip
    """-1, 0 or 1 as the key at a place is below, equal to or above a row, by their first words."""
    for j in range(words):
        a, b = nodes[at, j], rows[i, j]
        if a != b:
            if texts[j] == 0:
                return -1 if a < b else 1
            return texts[j] * _compare_text(heap, spans, a, b)
    return 0


@inlined
def _child(
    inners: Ints, base: Word, size: Word, rows: Ints, i: Word, words: Word, after: Word, texts: Ints, heap: Bytes,
    spans: Ints,
) -> Word:  # fmt: skip
    """The last child with a bound below the row, or (``after`` 1) not above it; the first child if there is none."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if _compare(inners, base + middle, rows, i, words, texts, heap, spans) < after:
            low = middle
        else:
            high = middle - 1
    return low


@inlined
def _place(
    leaves: Ints, base: Word, size: Word, rows: Ints, i: Word, words: Word, after: Word, texts: Ints, heap: Bytes,
    spans: Ints,
) -> Word:  # fmt: skip
    """The number of entries of a leaf below the row, or (``after`` 1) not above it."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if _compare(leaves, base + middle, rows, i, words, texts, heap, spans) < after:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _move(nodes: Ints, source: Word, target: Word, count: Word) -> None:
    """Move rows, which may overlap."""
    if target > source:
        for k in range(count - 1, -1, -1):
            for j in range(nodes.shape[1]):
                nodes[target + k, j] = nodes[source + k, j]
    else:
        for k in range(count):
            for j in range(nodes.shape[1]):
                nodes[target + k, j] = nodes[source + k, j]


@inlined
def _new_leaf(leaf_meta: Ints, meta: Ints) -> Word:
    free = meta[LEAF_FREE]
    if free != 0:
        meta[LEAF_FREE] = leaf_meta[free - ONE, NEXT]
        return free - ONE
    meta[LEAF_HIGH] += ONE
    return meta[LEAF_HIGH] - ONE


@inlined
def _new_inner(inner_meta: Ints, meta: Ints) -> Word:
    free = meta[INNER_FREE]
    if free != 0:
        meta[INNER_FREE] = inner_meta[free - ONE]
        return free - ONE
    meta[INNER_HIGH] += ONE
    return meta[INNER_HIGH] - ONE


@kernel
def _split_leaf(
    leaves: Ints, leaf_meta: Ints, inners: Ints, inner_meta: Ints, meta: Ints, node: Word, pos: Word, rows: Ints,
    i: Word, texts: Ints, heap: Bytes, spans: Ints,
) -> None:  # fmt: skip
    """Split the full leaf that is child ``pos`` of an inner node with room.

    A row above the last entry of all goes to a leaf of its own: rows that come in order fill their leaves.
    """
    width = rows.shape[1]
    here = node * FANOUT + pos
    left = inners[here, width + CHILD]
    right = _new_leaf(leaf_meta, meta)
    cut = LEAF // 2
    after = leaf_meta[left, NEXT]
    if after == 0 and _compare(leaves, left * LEAF + LEAF - 1, rows, i, width, texts, heap, spans) < 0:
        cut = LEAF
    for k in range(cut, LEAF):
        for j in range(width + 2):
            leaves[right * LEAF + k - cut, j] = leaves[left * LEAF + k, j]
    leaf_meta[left, SIZE], leaf_meta[left, NEXT] = cut, right + 1
    leaf_meta[right, SIZE], leaf_meta[right, NEXT], leaf_meta[right, PREVIOUS] = LEAF - cut, after, left + 1
    if after != 0:
        leaf_meta[after - 1, PREVIOUS] = right + 1
    weight = np.int64(0)
    for k in range(LEAF - cut):
        weight += leaves[right * LEAF + k, width]
    _move(inners, here + 1, here + 2, inner_meta[node] - pos - 1)
    inner_meta[node] += 1
    for j in range(width):
        inners[here + 1, j] = rows[i, j] if cut == LEAF else leaves[right * LEAF, j]
    inners[here + 1, width + CHILD] = right
    inners[here + 1, width + ENTRIES] = LEAF - cut
    inners[here + 1, width + WEIGHT] = weight
    inners[here, width + ENTRIES] -= LEAF - cut
    inners[here, width + WEIGHT] -= weight


@kernel
def _split_inner(inners: Ints, inner_meta: Ints, meta: Ints, node: Word, pos: Word, width: Word) -> None:
    """Split the full inner node that is child ``pos`` of an inner node with room; the last child moves alone if it is last."""
    here = node * FANOUT + pos
    left = inners[here, width + CHILD]
    right = _new_inner(inner_meta, meta)
    cut = FANOUT - 1 if pos == inner_meta[node] - 1 else FANOUT // 2
    entries, weight = np.int64(0), np.int64(0)
    for k in range(cut, FANOUT):
        source, target = left * FANOUT + k, right * FANOUT + k - cut
        for j in range(width + 3):
            inners[target, j] = inners[source, j]
        entries += inners[target, width + ENTRIES]
        weight += inners[target, width + WEIGHT]
    inner_meta[left], inner_meta[right] = cut, FANOUT - cut
    _move(inners, here + 1, here + 2, inner_meta[node] - pos - 1)
    inner_meta[node] += 1
    for j in range(width):
        inners[here + 1, j] = inners[right * FANOUT, j]
    inners[here + 1, width + CHILD] = right
    inners[here + 1, width + ENTRIES] = entries
    inners[here + 1, width + WEIGHT] = weight
    inners[here, width + ENTRIES] -= entries
    inners[here, width + WEIGHT] -= weight


@kernel
def _raise_root(leaves: Ints, leaf_meta: Ints, inners: Ints, inner_meta: Ints, meta: Ints, width: Word) -> None:
    """Put an inner node with one child above the root."""
    old, root = meta[ROOT], _new_inner(inner_meta, meta)
    here = root * FANOUT
    weight = np.int64(0)
    if meta[HEIGHT] == 0:
        for k in range(leaf_meta[old, SIZE]):
            weight += leaves[old * LEAF + k, width]
    else:
        for k in range(inner_meta[old]):
            weight += inners[old * FANOUT + k, width + WEIGHT]
    for j in range(width):
        inners[here, j] = 0
    inners[here, width + CHILD] = old
    inners[here, width + ENTRIES] = meta[COUNT]
    inners[here, width + WEIGHT] = weight
    inner_meta[root] = 1
    meta[ROOT] = root
    meta[HEIGHT] += ONE


@kernel
def _drop_leaf(leaf_meta: Ints, inners: Ints, inner_meta: Ints, meta: Ints, leaf: Word, width: Word) -> None:
    """Free the empty leaf at the end of the path, and the inner nodes that become empty with it."""
    after, before = leaf_meta[leaf, NEXT], leaf_meta[leaf, PREVIOUS]
    if before != 0:
        leaf_meta[before - 1, NEXT] = after
    if after != 0:
        leaf_meta[after - 1, PREVIOUS] = before
    leaf_meta[leaf, NEXT] = meta[LEAF_FREE]
    meta[LEAF_FREE] = leaf + ONE
    for level in range(1, meta[HEIGHT] + 1):
        node, pos = meta[PATH + 2 * level], meta[PATH + 2 * level + 1]
        here = node * FANOUT + pos
        inner_meta[node] -= 1
        _move(inners, here + 1, here, inner_meta[node] - pos)
        if inner_meta[node] > 0:
            break
        inner_meta[node] = meta[INNER_FREE]
        meta[INNER_FREE] = node + ONE
    while meta[HEIGHT] > 0 and inner_meta[meta[ROOT]] == 1:
        root = meta[ROOT]
        meta[ROOT] = inners[root * FANOUT, width + CHILD]
        inner_meta[root] = meta[INNER_FREE]
        meta[INNER_FREE] = root + ONE
        meta[HEIGHT] -= ONE


@inlined
def _descend(
    leaves: Ints, leaf_meta: Ints, inners: Ints, inner_meta: Ints, meta: Ints, rows: Ints, i: Word, splits: Word,
    texts: Ints, heap: Bytes, spans: Ints,
) -> Word:  # fmt: skip
    """The leaf of a row, keeping the path; with ``splits`` it has room for one entry more."""
    width = rows.shape[1]
    node = meta[ROOT]
    if splits and (
        (meta[HEIGHT] == 0 and leaf_meta[node, SIZE] == LEAF) or (meta[HEIGHT] > 0 and inner_meta[node] == FANOUT)
    ):
        _raise_root(leaves, leaf_meta, inners, inner_meta, meta, width)
        node = meta[ROOT]
    for level in range(meta[HEIGHT], 0, -1):
        pos = _child(inners, node * FANOUT, inner_meta[node], rows, i, width, 1, texts, heap, spans)
        if splits:
            child = inners[node * FANOUT + pos, width + CHILD]
            is_split = False
            if level == 1:
                if leaf_meta[child, SIZE] == LEAF:
                    _split_leaf(leaves, leaf_meta, inners, inner_meta, meta, node, pos, rows, i, texts, heap, spans)
                    is_split = True
            elif inner_meta[child] == FANOUT:
                _split_inner(inners, inner_meta, meta, node, pos, width)
                is_split = True
            if is_split and _compare(inners, node * FANOUT + pos + 1, rows, i, width, texts, heap, spans) <= 0:
                pos += 1
        meta[PATH + 2 * level] = node
        meta[PATH + 2 * level + 1] = pos
        node = inners[node * FANOUT + pos, width + CHILD]
    return node


@inlined
def _count_path(inners: Ints, meta: Ints, width: Word, entries: Word, weight: Word) -> None:
    """Add to the numbers of every child passed."""
    for level in range(1, meta[HEIGHT] + 1):
        here = meta[PATH + 2 * level] * FANOUT + meta[PATH + 2 * level + 1]
        inners[here, width + ENTRIES] += entries
        inners[here, width + WEIGHT] += weight


@kernel
def add(
    leaves: Ints, leaf_meta: Ints, inners: Ints, inner_meta: Ints, meta: Ints, rows: Ints, weights: Ints, slots: Ints,
    start: Word, texts: Ints, heap: Bytes, spans: Ints,
) -> Word:  # fmt: skip
    """Add weights to entries, created as needed and deleted at 0; without weights delete the entries."""
    n, width = rows.shape
    deletes = weights.shape[0] == 0
    for i in range(start, n):
        if meta[LEAF_FREE] == 0 and meta[LEAF_HIGH] == leaf_meta.shape[0]:
            return i
        if meta[INNER_HIGH] + meta[HEIGHT] + 1 >= inner_meta.shape[0]:
            return i  # free nodes are not counted: room for a whole path is simpler to promise
        leaf = _descend(leaves, leaf_meta, inners, inner_meta, meta, rows, i, False, texts, heap, spans)
        base, size = leaf * LEAF, leaf_meta[leaf, SIZE]
        pos = _place(leaves, base, size, rows, i, width, 0, texts, heap, spans)
        if pos < size and _compare(leaves, base + pos, rows, i, width, texts, heap, spans) == 0:
            old = leaves[base + pos, width]
            weight = -old if deletes else weights[i]
            if old + weight != 0:
                leaves[base + pos, width] = old + weight
                _count_path(inners, meta, width, 0, weight)
            else:
                _count_path(inners, meta, width, -1, weight)
                _move(leaves, base + pos + 1, base + pos, size - pos - 1)
                leaf_meta[leaf, SIZE] = size - 1
                meta[COUNT] -= ONE
                if size == 1 and meta[HEIGHT] > 0:
                    _drop_leaf(leaf_meta, inners, inner_meta, meta, leaf, width)
        elif not deletes and weights[i] != 0:
            if size == LEAF:
                leaf = _descend(leaves, leaf_meta, inners, inner_meta, meta, rows, i, True, texts, heap, spans)
                base, size = leaf * LEAF, leaf_meta[leaf, SIZE]
                pos = _place(leaves, base, size, rows, i, width, 0, texts, heap, spans)
            _move(leaves, base + pos, base + pos + 1, size - pos)
            for j in range(width):
                leaves[base + pos, j] = rows[i, j]
            leaves[base + pos, width] = weights[i]
            leaves[base + pos, width + 1] = slots[i] if slots.shape[0] != 0 else -1
            leaf_meta[leaf, SIZE] = size + 1
            meta[COUNT] += ONE
            _count_path(inners, meta, width, 1, weights[i])
    return n


@kernel
def seek(
    leaves: Ints, leaf_meta: Ints, inners: Ints, inner_meta: Ints, meta: Ints, bounds: Ints, after: Word, out: Ints,
    texts: Ints, heap: Bytes, spans: Ints,
) -> None:  # fmt: skip
    """Write of each bound the place of the first entry not below it (``after``: above it), or -1.

    If ``out`` has two more rows, they get the number and the weight of the entries before that place.
    """
    words, width = bounds.shape[1], leaves.shape[1] - 2
    counts = out.shape[0] > 1
    for i in range(bounds.shape[0]):
        node = meta[ROOT]
        entries, weight = np.int64(0), np.int64(0)
        for _ in range(meta[HEIGHT]):
            base = node * FANOUT
            pos = _child(inners, base, inner_meta[node], bounds, i, words, after, texts, heap, spans)
            if counts:
                for at in range(base, base + pos):
                    entries += inners[at, width + ENTRIES]
                    weight += inners[at, width + WEIGHT]
            node = inners[base + pos, width + CHILD]
        base, size = node * LEAF, leaf_meta[node, SIZE]
        pos = _place(leaves, base, size, bounds, i, words, after, texts, heap, spans)
        if counts:
            for at in range(base, base + pos):
                weight += leaves[at, width]
            out[1, i] = entries + pos
            out[2, i] = weight
        if pos < size:
            out[0, i] = base + pos
        else:
            out[0, i] = (leaf_meta[node, NEXT] - 1) * LEAF if leaf_meta[node, NEXT] != 0 else -1


@kernel
def match(
    leaves: Ints, leaf_meta: Ints, prefixes: Ints, last: Word, at: Ints, texts: Ints, heap: Bytes, spans: Ints
) -> None:
    """Turn places found by ``seek`` into the first or last entry with the prefix, or -1.

    ``last`` is -1 for the first entry, else the leaf with the highest keys.
    """
    for i in range(at.shape[0]):
        place = at[i]
        if last >= 0:
            if place < 0:
                place = last * LEAF + leaf_meta[last, SIZE] - 1 if leaf_meta[last, SIZE] > 0 else -1
            elif place % LEAF > 0:
                place -= 1
            else:
                before = leaf_meta[place // LEAF, PREVIOUS] - 1
                place = before * LEAF + leaf_meta[before, SIZE] - 1 if before >= 0 else -1
        if place >= 0 and _compare(leaves, place, prefixes, i, prefixes.shape[1], texts, heap, spans) != 0:
            place = -1
        at[i] = place
