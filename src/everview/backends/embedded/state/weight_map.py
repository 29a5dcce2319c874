"""Z-sets: a map from rows to weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everview.backends.embedded.state import keymap_kernels as kernels
from everview.backends.embedded.state.keymap import SMALLEST, KeyMap
from everview.backends.embedded.state.keymap_kernels import NO_STACK, TOUCHED, WRAPPED
from everview.backends.embedded.state.memory import resized
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
        marks = resized(self._marks, len(store), self.used, zeros=True)  # a batch may be under way
        super()._set_store(store)
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
        return np.where(slots >= 0, self.weights[slots], 0)

    def entries_at(self, slots: Ints) -> Ints:
        """The rows in these slots, each with its weight behind it."""
        return self.store.take(slots, axis=0)  # an index over part of its columns takes ten times as long

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

    def add_and_tell(self, keys: Ints, weights: Ints, most: int = 0) -> tuple[Ints, Ints]:
        """Add a batch, and ``tell`` what has changed."""
        return tell(keys, self.add_weights(keys, weights), most)

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


def tell(keys: Ints, changes: WeightChanges, most: int = 0) -> tuple[Ints, Ints]:
    """The rows of a batch that came (1) or went (-1), each once.

    With ``most`` above 0 the rows whose weight is at most that, or was, with the difference, which may be 0.
    """
    count, told = len(changes.slots), changes.slots.base
    assert told is not None, "changes are parts of what the kernel wrote"
    rows, more = np.empty((count, keys.shape[1]), dtype=np.int64), np.empty(count, dtype=np.int64)
    found = kernels.turned(keys, told, count, most, rows, more)
    return rows[:found], more[:found]
