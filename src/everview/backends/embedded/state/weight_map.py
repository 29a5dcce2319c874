"""Z-sets: a map from rows to weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everview.backends.embedded.state import keymap_kernels as kernels
from everview.backends.embedded.state.keymap import SMALLEST, KeyMap
from everview.backends.embedded.state.keymap_kernels import NO_STACK, TOUCHED, WRAPPED
from everview.backends.embedded.vectors import Bytes, Ints
from everview.relational.functions.failures import count_overflow


class WeightChanges(NamedTuple):
    """What ``add_weights`` did to each distinct row of a batch, in order of first occurrence.

    ``slots`` of entries whose new weight is 0 are removed, readable until the map changes again; ``rows`` are the positions of
    the first occurrences in the batch. Old and new may be equal, where a batch cancels itself.
    """

    slots: Ints
    rows: Ints
    old: Ints
    new: Ints


class WeightMap(KeyMap):
    """A Z-set: rows with a weight that is never 0."""

    _marks: Bytes = np.zeros(0, dtype=np.uint8)
    """Per slot whether the batch at hand has met it; all 0 between batches."""

    def __init__(self, width: int, capacity: int = SMALLEST) -> None:
        super().__init__(width, capacity, inline=1)

    def _set_store(self, store: Ints) -> None:
        marks: Bytes = np.zeros(len(store), dtype=np.uint8)
        super()._set_store(store)
        kept = min(len(marks), len(self._marks), self.used)  # a batch may be under way
        marks[:kept] = self._marks[:kept]
        self._marks = marks

    @property
    def nbytes(self) -> int:
        """Memory of the map."""
        return super().nbytes + self.used

    @property
    def weights(self) -> Ints:
        """The weight of each slot; defined for live slots."""
        return self.inline[:, 0]

    def weights_of(self, keys: Ints) -> Ints:
        """The weight of each row, 0 where it is absent."""
        slots = self.find(keys)
        return np.where(slots >= 0, self.store[slots, self.width], 0)

    def add_weights(self, keys: Ints, weights: Ints) -> WeightChanges:
        """Add a batch; rows may repeat. Entries are created as needed and removed when their weight becomes 0.

        Raises:
            EvaluationError: a weight would leave 64 bits; the map is as it was.
        """
        changes = self._add_weights(keys, weights)
        if self._meta[WRAPPED] < 0:
            self._add_weights(keys, -weights)
            raise count_overflow()
        return changes

    def _add_weights(self, keys: Ints, weights: Ints) -> WeightChanges:
        assert keys.shape[1] == self.width
        n = len(keys)
        out = np.empty((4, n), dtype=np.int64)
        done = 0
        try:
            while (done := self._add(keys, weights, done, out)) < n:
                self._take_care(n - done)
        except MemoryError:
            count = self._meta[TOUCHED]
            self.store[out[0, :count], self.width] = out[2, :count]
            self._add(keys, weights, n, out)
            raise
        count = self._meta[TOUCHED]
        changes = WeightChanges(out[0, :count], out[1, :count], out[2, :count], out[3, :count])
        if self._followers:
            removed = changes.slots[changes.new == 0]
            for follower in self._followers:
                follower.vacate(removed)
        return changes

    def _add(self, keys: Ints, weights: Ints, start: int, out: Ints) -> int:
        """Adds rows from one on; where it gets to the end, what weighs nothing is removed."""
        arrays = keys, weights, start, out
        done = kernels.add_weights(self._table, self.store, self._free, self._meta, self._marks, *arrays)
        if done != NO_STACK:
            return int(done)
        self._stack_up(int(self._meta[TOUCHED]))
        return self._add(keys, weights, len(keys), out)
