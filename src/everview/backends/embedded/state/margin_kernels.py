"""The kernels of margins: which entries are on the other side of 0 than their marks say, in O(log n) for each of them."""

from __future__ import annotations

from everview.backends.embedded.state.intrinsics import is_below
from everview.backends.embedded.state.kernel import Word, kernel
from everview.backends.embedded.state.ordered_nodes import (
    ABOVE,
    BELOW,
    COUNT,
    EMPTY,
    KEY,
    LEFT,
    MARGIN,
    MARK,
    RIGHT,
    ROOT,
    SIZE,
    bounds_at,
    compare,
    is_less,
    own_at,
    total_at,
)
from everview.backends.embedded.vectors import Ints

FRAME = 4
"""Words of a node on the stack: its number, and where it starts."""


@kernel
def turned(nodes: Ints, meta: Ints, stack: Ints, start: Ints, places: Ints, marks: Ints) -> Word:
    """The places of entries whose marks are wrong, and what they should be, if the first entry starts at a count and a margin.

    Only nodes are opened below which there is such an entry. Returns how many there are; the arrays get as many as they have
    room for.
    """
    own, total, known, found = own_at(meta), total_at(meta), bounds_at(meta), 0
    stack[0], stack[1], stack[2], stack[3] = meta[ROOT], start[0], start[1], start[2]
    depth = FRAME
    while depth > 0:
        depth -= FRAME
        node, count, low, high = stack[depth], stack[depth + 1], stack[depth + 2], stack[depth + 3]
        if node == 0:
            continue
        rises = not is_less(low, high, nodes[node, known], nodes[node, known + 1])
        falls = is_less(low, high, nodes[node, known + 2], nodes[node, known + 3])
        if not rises and not falls and count + nodes[node, known + 4] > 0 and count + nodes[node, known + 5] <= 0:
            continue
        left = nodes[node, LEFT]
        stack[depth], stack[depth + 1], stack[depth + 2], stack[depth + 3] = left, count, low, high
        depth += FRAME
        for child, part in ((left, total), (node, own)):
            if child != 0:
                count += nodes[child, part + COUNT]
                added = low + nodes[child, part + MARGIN]
                high += nodes[child, part + MARGIN + 1] + is_below(added, low)
                low = added
        mark = EMPTY if count <= 0 else BELOW if high < 0 else ABOVE
        if mark != nodes[node, own + MARK]:
            if found < len(places):
                places[found], marks[found] = node, mark
            found += 1
        right = nodes[node, RIGHT]
        stack[depth], stack[depth + 1], stack[depth + 2], stack[depth + 3] = right, count, low, high
        depth += FRAME
    return found


@kernel
def rank_by(nodes: Ints, meta: Ints, bounds: Ints, word: Word, after: Word, out: Ints) -> None:
    """How many entries are below each bound, or with ``after`` not above it, where its last word is compared with another one.

    Within entries that agree on the words before, that one is to be in order, too.
    """
    words = bounds.shape[1] - 1
    for i in range(len(bounds)):
        node, below = meta[ROOT], 0
        while node != 0:
            side = compare(nodes, node, bounds, i, words)
            if side == 0:
                a, b = nodes[node, KEY + word], bounds[i, words]
                side = -1 if a < b else 1 if a > b else 0
            if side < 0 or (side == 0 and after != 0):
                below += nodes[nodes[node, LEFT], SIZE] + 1
                node = nodes[node, RIGHT]
            else:
                node = nodes[node, LEFT]
        out[i] = below
