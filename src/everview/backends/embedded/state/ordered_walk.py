"""The kernels of ordered indexes that count their way instead of comparing keys: by rank, and along the leaves.

They read the arrays that `ordered_kernels.py` describes.
"""

from __future__ import annotations

from everview.backends.embedded.state.kernel import Word, kernel
from everview.backends.embedded.state.ordered_kernels import (
    CHILD,
    ENTRIES,
    FANOUT,
    HEIGHT,
    LEAF,
    NEXT,
    ROOT,
    SIZE,
)
from everview.backends.embedded.vectors import Ints


@kernel
def last_leaf(inners: Ints, inner_meta: Ints, meta: Ints) -> Word:
    """The leaf with the highest keys."""
    node = meta[ROOT]
    for _ in range(meta[HEIGHT]):
        node = inners[node * FANOUT + inner_meta[node] - 1, inners.shape[1] - 3 + CHILD]
    return node


@kernel
def select(
    leaves: Ints, leaf_meta: Ints, inners: Ints, inner_meta: Ints, meta: Ints, ranks: Ints, weighted: Word, at: Ints
) -> None:
    """Write the place of the entry with a rank (``weighted``: of the unit of weight with that rank), or -1."""
    width = leaves.shape[1] - 2
    for i in range(ranks.shape[0]):
        rest = ranks[i]
        node = meta[ROOT]
        for _ in range(meta[HEIGHT]):
            here, last = node * FANOUT, node * FANOUT + inner_meta[node] - 1
            while here < last and rest >= inners[here, width + ENTRIES + weighted]:
                rest -= inners[here, width + ENTRIES + weighted]
                here += 1
            node = inners[here, width + CHILD]
        place = node * LEAF
        end = place + leaf_meta[node, SIZE]
        while place < end and rest >= (leaves[place, width] if weighted else 1):
            rest -= leaves[place, width] if weighted else 1
            place += 1
        at[i] = place if place < end and ranks[i] >= 0 else -1


@kernel
def walk(leaf_meta: Ints, starts: Ints, counts: Ints, rows: Ints, at: Ints) -> None:
    """Write, for each start and count, the position of the pair and so many places from the start on."""
    total = 0
    for i in range(starts.shape[0]):
        place = starts[i]
        for _ in range(counts[i]):
            rows[total] = i
            at[total] = place
            total += 1
            place += 1
            if place % LEAF == leaf_meta[(place - 1) // LEAF, SIZE] or place % LEAF == 0:
                place = (leaf_meta[(place - 1) // LEAF, NEXT] - 1) * LEAF
