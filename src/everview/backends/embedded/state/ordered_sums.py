"""Ordered maps from keys to payloads of rings, with the sum of any range in O(log n): what inequality joins are summed by.

Keys are rows of words, compared word by word as signed integers (``order_words`` makes such words of any value that can be
ordered). Payloads are counts, exact sums of 128 bits and compensated float sums, laid out as in the views of a tree. A *bound*
is a row of one to all words, compared with the leading words of the keys; the entries of a group are those with its prefix.

    >>> sums = OrderedSums(2, (COUNTED, EXACT))
    >>> sums.put(np.array([[1, 10], [1, 30], [2, 20]]), np.array([[1, 5, 0], [1, 7, 0], [1, 9, 0]]))
    >>> sums.between(sums.rank(np.array([[1]])), sums.rank(np.array([[1]]), after=True))
    array([[ 2, 12,  0]])

The content decides the shape of the tree and all sums in it (see the kernels), so a change that is taken back, by putting what
was there before, leaves the map as it was, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.state import ordered_sums_kernels as kernels
from everview.backends.embedded.state.memory import reserve
from everview.backends.embedded.state.ordered_nodes import (
    BOUNDS,
    DEEPEST,
    FREE,
    HAS_WRAPPED,
    HIGH,
    KEY,
    KEY_WORDS,
    KINDS,
    KNOWS,
    MARGINS,
    PARTS,
    PAYLOAD_WORDS,
    PLAIN,
    ROOT,
    SIZE,
    TURNING,
)
from everview.backends.embedded.tree.layout import COUNTED, EXACT, words_of
from everview.backends.embedded.vectors import Ints

__all__ = ["COUNTED", "EXACT", "OrderedSums"]

FEWEST = 16
BUILD_FROM = 1024
"""So many new entries in an empty map are sorted and built at once."""
SPARSE = 4
"""A map with room for so many times its entries is built anew."""


class OrderedSums:
    """Keys in order, with payloads.

    Args:
        width: Words of a key.
        kinds: The kinds of the payload's parts.
        nodes_know: What nodes know besides sums (see the kernels).
    """

    def __init__(self, width: int, kinds: Sequence[int], *, nodes_know: int = PLAIN) -> None:
        self.width = width
        self.kinds = tuple(kinds)
        self.payload_words = sum(words_of(k) for k in kinds)
        self._nodes_know = nodes_know
        self._path: Ints = np.zeros(DEEPEST, dtype=np.int64)
        self.clear()

    def clear(self) -> None:
        """Removes everything, and the memory with it."""
        self.meta: Ints = np.zeros(KINDS + len(self.kinds), dtype=np.int64)
        self.meta[KINDS:] = self.kinds
        self.meta[[HIGH, KEY_WORDS, PAYLOAD_WORDS, PARTS]] = 1, self.width, self.payload_words, len(self.kinds)
        self.meta[KNOWS] = self._nodes_know
        self.nodes = self._rows(FEWEST)

    def _rows(self, count: int) -> Ints:
        more = {PLAIN: 0, MARGINS: TURNING}.get(self._nodes_know, BOUNDS)
        words = KEY + self.width + 2 * self.payload_words + more
        reserve(8 * words * count // 2)  # it takes the place of one half as large
        rows = np.empty((count, words), dtype=np.int64)
        rows[0] = 0
        return rows

    def __len__(self) -> int:
        return int(self.nodes[self.meta[ROOT], SIZE])

    @property
    def nbytes(self) -> int:
        """Memory of the map."""
        return self.nodes.nbytes

    @property
    def has_wrapped(self) -> bool:
        """Whether a sum inside has left its 128 bits, so that sums are not to be trusted."""
        return bool(self.meta[HAS_WRAPPED])

    def put(self, keys: Ints, payloads: Ints) -> None:
        """Gives keys their payloads; a key whose payload is zero is removed. Of equal keys the last counts."""
        assert keys.shape[1] == self.width
        assert payloads.shape == (len(keys), self.payload_words)
        if len(keys) >= BUILD_FROM and not len(self) and self._build(keys, payloads):
            return
        self._change(keys, payloads, adds=False)

    def add(self, keys: Ints, payloads: Ints) -> None:
        """Adds payloads to those of keys; a key whose payload becomes zero is removed."""
        assert keys.shape[1] == self.width
        self._change(np.ascontiguousarray(keys), payloads.copy(), adds=True)

    def _change(self, keys: Ints, payloads: Ints, *, adds: bool) -> None:
        done = kernels.put(self.nodes, self.meta, self._path, keys, payloads, 0, int(adds))
        while done < len(keys):
            grown = self._rows(2 * len(self.nodes))
            grown[: len(self.nodes)] = self.nodes
            self.nodes = grown
            done = kernels.put(self.nodes, self.meta, self._path, keys, payloads, done, int(adds))
        if len(self.nodes) > BUILD_FROM and len(self.nodes) > SPARSE * len(self):
            self._rebuild()

    def _build(self, keys: Ints, payloads: Ints) -> bool:
        """Builds the tree at once, if no key is there twice or has nothing."""
        order = np.lexsort(keys.T[::-1])
        keys, payloads = np.ascontiguousarray(keys[order]), np.ascontiguousarray(payloads[order])
        if not (keys[1:] != keys[:-1]).any(axis=1).all() or not payloads[:, 0].all():
            return False
        self.clear()
        self.nodes = self._rows(len(keys) + len(keys) // 2)
        kernels.build(self.nodes, self.meta, self._path, keys, payloads)
        return True

    def _rebuild(self) -> None:
        places = self.select(np.arange(len(self)))
        keys, payloads = self.keys_at(places), self.payloads_at(places)
        self.clear()
        self.put(keys, payloads)

    def find(self, keys: Ints) -> Ints:
        """The place of each key, or 0."""
        assert keys.shape[1] == self.width
        places = np.empty(len(keys), dtype=np.int64)
        kernels.find(self.nodes, self.meta, keys, places)
        return places

    def keys_at(self, places: Ints) -> Ints:
        """The keys at places."""
        return np.ascontiguousarray(self.nodes[places, KEY : KEY + self.width])

    def payloads_at(self, places: Ints) -> Ints:
        """The payloads at places; zero at 0."""
        start = KEY + self.width
        return np.ascontiguousarray(self.nodes[places, start : start + self.payload_words])

    def rank(self, bounds: Ints, *, after: bool = False) -> Ints:
        """How many entries are below each bound (``after``: not above it)."""
        assert 1 <= bounds.shape[1] <= self.width
        ranks = np.empty(len(bounds), dtype=np.int64)
        kernels.rank(self.nodes, self.meta, bounds, int(after), ranks)
        return ranks

    def select(self, ranks: Ints) -> Ints:
        """The place of the entry with each rank, from 0, or 0."""
        places = np.empty(len(ranks), dtype=np.int64)
        kernels.select(self.nodes, self.meta, ranks, places)
        return places

    def between(self, first: Ints, last: Ints) -> Ints:
        """The sums of the payloads of the entries from one rank up to, not with, another, by row."""
        found = np.zeros((len(first), self.payload_words), dtype=np.int64)
        self.add_between(first, last, np.arange(len(first)), found)
        return found

    def add_between(self, first: Ints, last: Ints, rows: Ints, out: Ints) -> None:
        """Adds such sums to rows of a matrix of payloads."""
        kernels.sums(self.nodes, self.meta, first, last, rows, out)

    @property
    def free(self) -> int:
        """The first node that is free, for tests."""
        return int(self.meta[FREE])
