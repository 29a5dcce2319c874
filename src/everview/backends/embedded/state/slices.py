"""Slices: the entries of a map that agree with a sub-key, found without a scan.

The secondary index of a ``KeyMap`` by some of its key words. A probe table leads from a sub-key to the first slot of its slice;
the slots of a slice are doubly linked, so that an entry comes and goes in constant time. Sub-keys are not stored: they are read
from the map. The index thus takes eight bytes a slot, and eight to sixteen a slice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.state import slice_kernels as kernels
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.keymap_kernels import Entries
from everview.backends.embedded.state.memory import reserve, resized
from everview.backends.embedded.state.slice_kernels import (
    BITS,
    CHAINS,
    COUNT,
    LONG,
    META_WORDS,
    MODE,
    ROW,
    SLOT,
)
from everview.backends.embedded.vectors import Ints

_SMALLEST = 128
_SPARSE = 16
"""A table so many times longer than its slices is made shorter."""


class SliceIndex:
    """An index of a map's slots by the key words at ``columns``. It holds the slots it is told of, and no others.

    A slot is added after it is created, and removed before its map changes again: its key must still be there, so ``remove``
    may come just after the slot's own removal.
    """

    def __init__(self, keymap: KeyMap, columns: Sequence[int]) -> None:
        self.keymap = keymap
        self.columns = np.asarray(columns, dtype=np.int64)
        self._meta: Ints = np.zeros(META_WORDS, dtype=np.int64)
        self._meta[MODE] = len(columns) != 1  # sub-keys of several words are always hashed
        self._links: Entries = np.zeros((0, 2), dtype=np.uint32)
        self._set_table(_SMALLEST)
        keymap.follow(self)

    def _set_table(self, length: int) -> None:
        self._table: Entries = np.zeros(length, dtype=np.uint32)
        slots = max(self.keymap.capacity, len(self._links))  # the map may be about to grow
        self._meta[BITS] = max(length, 1 << (slots + 1).bit_length()) - 1

    @property
    def nbytes(self) -> int:
        """Memory of the index, as far as the map's slots have been used."""
        return self._table.nbytes + self.keymap.used * 2 * self._links.itemsize

    def __len__(self) -> int:
        """How many distinct sub-keys there are."""
        return int(self._meta[CHAINS])

    def build(self) -> None:
        """Index all live slots of the map, which the index does not hold yet."""
        self.add(self.keymap.live_slots())

    def add(self, slots: Ints) -> None:
        """Add slots that have been created."""
        done = 0
        while True:
            done = kernels.link(self._table, self.keymap.store, self._links, self._meta, self.columns, slots, done)
            if done == len(slots):
                return
            assert not self._links[slots[done], kernels.NEXT], f"slot {slots[done]} is in the index already"
            if self._meta[LONG]:
                self._rehash(len(self._table), mode=1)
                self._meta[LONG] = 0
            else:
                quick = len(self._table) < 1 << 16 and 2 * (len(slots) - done) > len(self._table)
                self._rehash(len(self._table) * (4 if quick else 2))

    def remove(self, slots: Ints) -> None:
        """Remove slots."""
        done = kernels.unlink(self._table, self.keymap.store, self._links, self._meta, self.columns, slots)
        assert done == len(slots), f"slot {slots[done]} is not in the index"
        if len(self._table) > _SMALLEST and len(self) * _SPARSE < len(self._table):
            self._rehash(max(_SMALLEST, 1 << (4 * len(self)).bit_length()))

    def _rehash(self, length: int, mode: int | None = None) -> None:
        old, bits = self._table, int(self._meta[BITS])
        self._set_table(length)
        if mode is not None:  # not before there is the table that is filled so
            self._meta[MODE] = mode
        kernels.rehash_chains(old, bits, self._table, self.keymap.store, self._meta, self.columns)

    def count(self, subkeys: Ints) -> Ints:
        """How many slots each sub-key has."""
        counts = np.empty(len(subkeys), dtype=np.int64)
        kernels.count_chains(
            self._table, self.keymap.store, self._links, self._meta, self.columns, subkeys, counts
        )  # fmt: skip
        return counts

    def expand(self, subkeys: Ints) -> tuple[Ints, Ints]:
        """All pairs of a row of ``subkeys`` and a slot with that sub-key, by row; within a row the newest slot first."""
        assert subkeys.shape[1] == len(self.columns)
        out = np.empty((2, 2 * len(subkeys) + 32), dtype=np.int64)
        meta = self._meta
        meta[ROW] = meta[SLOT] = meta[COUNT] = 0
        arrays = self._table, self.keymap.store, self._links, meta, self.columns, subkeys
        while kernels.expand_chains(*arrays, out):
            longer = np.empty((2, 4 * out.shape[1]), dtype=np.int64)
            longer[:, : out.shape[1]] = out
            out = longer
        count = meta[COUNT]
        return out[0, :count], out[1, :count]

    def slots_of(self, subkey: Sequence[int] | Ints) -> Ints:
        """The slots of one sub-key, the newest first."""
        return self.expand(np.asarray(subkey, dtype=np.int64).reshape(1, -1))[1]

    def clear(self) -> None:
        """Forget all slots."""
        self._meta[CHAINS] = 0
        self._set_table(_SMALLEST)
        self._links[:] = 0

    def resize(self, capacity: int) -> None:
        """Have this many slots: called by the map."""
        reserve((capacity - len(self._links)) * self._links.strides[0])
        self._links = resized(self._links, capacity, self.keymap.used, zeros=True)
        if capacity + 1 > self._meta[BITS]:
            self._rehash(len(self._table))

    def vacate(self, slots: Ints) -> None:
        """Slots have been removed from the map; whoever removed them tells the index by ``remove``."""

    def reorder(self, live: Ints, capacity: int) -> None:
        """The map renumbered its slots: link them anew."""
        held = np.flatnonzero(self._links[live, kernels.NEXT])
        self._meta[CHAINS] = 0
        self._links = np.zeros((capacity, 2), dtype=np.uint32)
        self._set_table(_SMALLEST)
        self.add(held)
