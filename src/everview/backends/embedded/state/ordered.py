"""Ordered indexes: entries in key order, for MIN and MAX, inequality joins, top-k, ranks and nested sums.

An ``OrderedIndex`` holds key rows, compared word by word as signed integers, or as the texts that the words are codes of,
each with a weight that is never 0 and the slot its owner gave it. A search takes a *bound*: a row of one to ``width`` words,
compared with the leading words of the entries, so that the entries of a group are those with the group's prefix. All searches
take O(log n) per row, and come in batches.

What a search returns are *places*: row numbers in ``rows``, valid until the index changes.

    >>> index = OrderedIndex(width=2)
    >>> index.add(np.array([[1, 30], [1, 10], [2, 20]]), np.array([1, 2, 3]))
    >>> index.keys_at(index.first(np.array([[1]])))
    array([[ 1, 10]])
    >>> index.prefix_sum(np.array([[2]]))
    array([3])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from everview.backends.embedded.state import ordered_kernels as kernels
from everview.backends.embedded.state.memory import reserve
from everview.backends.embedded.state.ordered_kernels import (
    COUNT,
    FANOUT,
    INNER_HIGH,
    LEAF,
    LEAF_FREE,
    LEAF_HIGH,
    META_WORDS,
)
from everview.backends.embedded.state.ordered_walk import last_leaf, select, walk
from everview.backends.embedded.vectors import Bytes, Ints

NOTHING: Ints = np.zeros(0, dtype=np.int64)
NO_TEXT: Bytes = np.zeros(0, dtype=np.uint8)

THINNEST = 8
"""A tree with room for more than so many times its entries is rebuilt: its leaves are almost empty, or most are free."""

SORT_FROM = 4096
"""Batches so large, and not small against the index, are sorted first: neighbours share the nodes they pass."""

FEW_LEAVES = 16
"""Room that is never worth a rebuild."""


class Texts(Protocol):
    """Texts by code, as a ``StringPool`` has them."""

    @property
    def heap(self) -> Bytes:
        """The bytes of all texts."""

    @property
    def spans(self) -> Ints:
        """Per code two words: where its bytes begin and where they end."""


class OrderedIndex:
    """Key rows in order, with weights and slots.

    Args:
        width: Words of a key.
        texts: For the first words 0 where they are numbers, 1 where they are codes of texts, which sort by their bytes, and -1
            where they sort the other way round.
        source: Where the texts are.
    """

    def __init__(self, width: int, texts: Sequence[int] = (), source: Texts | None = None) -> None:
        self.width = width
        self._source = source
        self._texts: Ints = np.zeros(width, dtype=np.int64)
        self._texts[: len(texts)] = texts
        self.clear()

    def clear(self) -> None:
        """Remove everything, and the memory with it."""
        self.rows: Ints = np.empty((2 * LEAF, self.width + 2), dtype=np.int64)
        self._leaf_meta: Ints = np.zeros((2, 3), dtype=np.int64)
        self._inners: Ints = np.empty((2 * FANOUT, self.width + 3), dtype=np.int64)
        self._inner_meta: Ints = np.zeros(2, dtype=np.int64)
        self._meta: Ints = np.zeros(META_WORDS, dtype=np.int64)
        self._meta[LEAF_HIGH] = 1

    def __len__(self) -> int:
        return int(self._meta[COUNT])

    @property
    def nbytes(self) -> int:
        """Memory of the index."""
        return self.rows.nbytes + self._leaf_meta.nbytes + self._inners.nbytes + self._inner_meta.nbytes

    @property
    def _tree(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        return self.rows, self._leaf_meta, self._inners, self._inner_meta, self._meta

    @property
    def _order(self) -> tuple[Ints, Bytes, Ints]:
        """What kernels compare by."""
        if self._source is None:
            return self._texts, NO_TEXT, NOTHING
        return self._texts, self._source.heap, self._source.spans

    def add(self, keys: Ints, weights: Ints, slots: Ints = NOTHING) -> None:
        """Add weights to entries; an entry is created with its slot (or -1), and vanishes when its weight becomes 0."""
        assert keys.shape[1] == self.width
        assert len(weights) == len(keys)
        n = len(keys)
        if n >= SORT_FROM and n * THINNEST >= len(self):
            order = np.lexsort(keys.T[::-1])  # stable: of equal keys the first still gives the slot
            keys, weights = keys[order], weights[order]
            slots = slots[order] if len(slots) else slots
        if n:
            self._change(keys, weights, slots)

    def remove(self, keys: Ints) -> None:
        """Remove entries, whatever their weight; absent keys are passed over."""
        assert keys.shape[1] == self.width
        self._change(keys, NOTHING, NOTHING)

    def _change(self, keys: Ints, weights: Ints, slots: Ints) -> None:
        n = len(keys)
        done = kernels.add(*self._tree, keys, weights, slots, 0, *self._order)
        while done < n:
            self._make_room()
            done = kernels.add(*self._tree, keys, weights, slots, done, *self._order)
        if len(self._leaf_meta) > FEW_LEAVES and len(self.rows) > THINNEST * len(self):
            self._rebuild()

    def _make_room(self) -> None:
        """Have twice the nodes of the kind that has run out."""
        if not self._meta[LEAF_FREE] and self._meta[LEAF_HIGH] == len(self._leaf_meta):
            reserve(self.rows.nbytes)
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
            self._leaf_meta = np.concatenate([self._leaf_meta, np.zeros_like(self._leaf_meta)])
        else:
            self._inners = np.concatenate([self._inners, np.empty_like(self._inners)])
            self._inner_meta = np.concatenate([self._inner_meta, np.zeros_like(self._inner_meta)])

    def _rebuild(self) -> None:
        """Fill new nodes in order: after deletions the leaves may be almost empty."""
        entries = self.rows[self.all()]
        self.clear()
        keys = np.ascontiguousarray(entries[:, : self.width])
        weights, slots = entries[:, self.width].copy(), entries[:, self.width + 1].copy()
        if len(keys):
            self._change(keys, weights, slots)

    def keys_at(self, places: Ints) -> Ints:
        """The key rows at places."""
        return np.ascontiguousarray(self.rows.take(places, axis=0)[..., : self.width])

    def entries_at(self, places: Ints) -> Ints:
        """The key rows at places, each with its weight behind it."""
        return np.ascontiguousarray(self.rows.take(places, axis=0)[..., : self.width + 1])

    def weights_at(self, places: Ints) -> Ints:
        """The weights at places."""
        return np.asarray(self.rows[places, self.width])

    def slots_at(self, places: Ints) -> Ints:
        """The slots at places."""
        return np.asarray(self.rows[places, self.width + 1])

    def seek(self, bounds: Ints, *, after: bool = False) -> Ints:
        """The place of the first entry not below each bound (``after``: above it), or -1."""
        places: Ints = self._seek(bounds, after, 1)[0]
        return places

    def _seek(self, bounds: Ints, after: bool, outputs: int) -> Ints:
        assert 1 <= bounds.shape[1] <= self.width
        out = np.empty((outputs, len(bounds)), dtype=np.int64)
        kernels.seek(*self._tree, bounds, int(after), out, *self._order)
        return out

    def find(self, keys: Ints) -> Ints:
        """The place of each key, or -1."""
        assert keys.shape[1] == self.width
        return self.first(keys)

    def first(self, prefixes: Ints) -> Ints:
        """The place of the smallest entry that begins with each prefix, or -1."""
        places = self.seek(prefixes)
        kernels.match(self.rows, self._leaf_meta, prefixes, -1, places, *self._order)
        return places

    def last(self, prefixes: Ints) -> Ints:
        """The place of the largest entry that begins with each prefix, or -1."""
        places = self.seek(prefixes, after=True)
        kernels.match(self.rows, self._leaf_meta, prefixes, self._last_leaf(), places, *self._order)
        return places

    def _last_leaf(self) -> int:
        return int(last_leaf(self._inners, self._inner_meta, self._meta))

    def rank(self, bounds: Ints, *, after: bool = False) -> Ints:
        """The number of entries below each bound (``after``: not above it)."""
        ranks: Ints = self._seek(bounds, after, 3)[1]
        return ranks

    def prefix_sum(self, bounds: Ints, *, after: bool = False) -> Ints:
        """The sum of the weights of the entries below each bound (``after``: not above it)."""
        sums: Ints = self._seek(bounds, after, 3)[2]
        return sums

    def at(self, ranks: Ints) -> Ints:
        """The place of the entry with each rank, from 0, or -1."""
        return self._select(ranks, 0)

    def select(self, ranks: Ints) -> Ints:
        """The place of the entry that holds each unit of weight, counted from 0 in key order, or -1.

        It is the row with that number in the sorted bag; all weights must be positive.
        """
        return self._select(ranks, 1)

    def _select(self, ranks: Ints, weighted: int) -> Ints:
        places = np.empty(len(ranks), dtype=np.int64)
        select(*self._tree, ranks, weighted, places)
        return places

    def from_ranks(self, first: Ints, counts: Ints) -> tuple[Ints, Ints]:
        """All pairs of a row and the place of an entry, of which each row has so many from a rank on, in order."""
        rows, places = np.empty((2, int(counts.sum())), dtype=np.int64)
        walk(self._leaf_meta, self.at(first), counts, rows, places)
        return rows, places

    def words_in_use(self, most: int) -> Iterator[Ints]:
        """The key words of all entries, so many at a time, and those that searches compare with on their way to them."""
        leaves = len(self._leaf_meta)
        is_used = np.arange(LEAF) < self._leaf_meta[:, :1]
        step = max(1, most // (LEAF * self.width))
        for start in range(0, leaves, step):
            rows = self.rows[LEAF * start : LEAF * (start + step), : self.width]
            yield rows[is_used[start : start + step].reshape(-1)]
        yield self._inners[: FANOUT * int(self._meta[INNER_HIGH]), : self.width]

    def all(self) -> Ints:
        """The places of all entries, in order."""
        return self.from_ranks(np.zeros(1, dtype=np.int64), np.array([len(self)]))[1]
