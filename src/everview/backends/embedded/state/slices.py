"""Slices: the entries of a map that agree with a sub-key, found without a scan.

The secondary index of a ``KeyMap`` by some of its key words. A second map gives each sub-key the first slot of its slice
and the number of slots; the slots of a slice are doubly linked, so that an entry comes and goes in constant time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.state.kernel import Word, kernel
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.vectors import Ints

HEAD, COUNT = 0, 1
"""Inline words of a group: its first slot + 1, the number of its slots."""

NEXT, PREVIOUS, GROUP = 0, 1, 2
"""Words of a slot: the slot + 1 after and before it, 0 at the ends; its group + 1, 0 where the slot is not in the index."""


class SliceIndex:
    """An index of a map's slots by the key words at ``columns``. It holds the slots it is told of, and no others.

    A slot is added after it is created, and removed before its map changes again (``remove`` does not read the key, so it may
    come just after the slot's own removal).
    """

    def __init__(self, keymap: KeyMap, columns: Sequence[int]) -> None:
        self.keymap = keymap
        self.columns = np.asarray(columns, dtype=np.int64)
        self._groups = KeyMap(len(columns), inline=2)
        self._links: Ints = np.zeros((0, 3), dtype=np.int64)
        keymap.follow(self)

    @property
    def nbytes(self) -> int:
        """Memory of the index."""
        return self._groups.nbytes + self._links.nbytes

    def __len__(self) -> int:
        """How many distinct sub-keys there are."""
        return len(self._groups)

    def build(self) -> None:
        """Index all live slots of the map, which the index does not hold yet."""
        self.add(self.keymap.live_slots())

    def add(self, slots: Ints) -> None:
        """Add slots that have been created."""
        subkeys = np.empty((len(slots), len(self.columns)), dtype=np.int64)
        _gather(self.keymap.store, slots, self.columns, subkeys)
        groups = self._groups.upsert(subkeys)
        done = _link(self._groups.store, len(self.columns), self._links, slots, groups)
        assert done == len(slots), f"slot {slots[done]} is in the index already"

    def remove(self, slots: Ints) -> None:
        """Remove slots."""
        emptied = np.empty(len(slots), dtype=np.int64)
        done, count = _unlink(self._groups.store, len(self.columns), self._links, slots, emptied)
        assert done == len(slots), f"slot {slots[done]} is not in the index"
        if count:
            self._groups.remove(emptied[:count])

    def count(self, subkeys: Ints) -> Ints:
        """How many slots each sub-key has."""
        counts = np.empty(len(subkeys), dtype=np.int64)
        _count(self._groups.store, len(self.columns), self._groups.find(subkeys), counts)
        return counts

    def expand(self, subkeys: Ints) -> tuple[Ints, Ints]:
        """All pairs of a row of ``subkeys`` and a slot with that sub-key, by row; within a row the newest slot first."""
        groups = self._groups.find(subkeys)
        total = _count(self._groups.store, len(self.columns), groups, np.empty(len(subkeys), dtype=np.int64))
        rows, slots = np.empty((2, total), dtype=np.int64)
        _expand(self._groups.store, len(self.columns), self._links, groups, rows, slots)
        return rows, slots

    def slots_of(self, subkey: Sequence[int] | Ints) -> Ints:
        """The slots of one sub-key, the newest first."""
        return self.expand(np.asarray(subkey, dtype=np.int64).reshape(1, -1))[1]

    def clear(self) -> None:
        """Forget all slots."""
        self._groups.clear()
        self._links[:] = 0

    def resize(self, capacity: int) -> None:
        """Have this many slots: called by the map."""
        links = np.zeros((capacity, 3), dtype=np.int64)
        kept = min(capacity, len(self._links))
        links[:kept] = self._links[:kept]
        self._links = links

    def vacate(self, slots: Ints) -> None:
        """Slots have been removed from the map; whoever removed them tells the index by ``remove``."""

    def reorder(self, live: Ints, capacity: int) -> None:
        """The map renumbered its slots: link them anew."""
        held = np.flatnonzero(self._links[live, GROUP])
        self._groups.clear()
        self._links = np.zeros((capacity, 3), dtype=np.int64)
        self.add(held)


@kernel
def _gather(store: Ints, slots: Ints, columns: Ints, subkeys: Ints) -> None:
    """The sub-keys of slots."""
    for i in range(slots.shape[0]):
        for j in range(columns.shape[0]):
            subkeys[i, j] = store[slots[i], columns[j]]


@kernel
def _link(groups: Ints, width: Word, links: Ints, slots: Ints, group_of: Ints) -> Word:
    """Put each slot at the head of its group; stops at a slot that is linked already."""
    for i in range(slots.shape[0]):
        slot, group = slots[i], group_of[i]
        if links[slot, GROUP] != 0:
            return i
        head = groups[group, width + HEAD]
        links[slot, NEXT] = head
        links[slot, PREVIOUS] = 0
        links[slot, GROUP] = group + 1
        if head != 0:
            links[head - 1, PREVIOUS] = slot + 1
        groups[group, width + HEAD] = slot + 1
        groups[group, width + COUNT] += 1
    return slots.shape[0]


@kernel
def _unlink(groups: Ints, width: Word, links: Ints, slots: Ints, emptied: Ints) -> Word:
    """Take slots out of their groups; returns how many, and how many groups have become empty, which it writes."""
    count = 0
    for i in range(slots.shape[0]):
        slot = slots[i]
        group = links[slot, GROUP] - 1
        if group < 0:
            return i, count
        after, before = links[slot, NEXT], links[slot, PREVIOUS]
        if before != 0:
            links[before - 1, NEXT] = after
        else:
            groups[group, width + HEAD] = after
        if after != 0:
            links[after - 1, PREVIOUS] = before
        links[slot, GROUP] = 0
        groups[group, width + COUNT] -= 1
        if groups[group, width + COUNT] == 0:
            emptied[count] = group
            count += 1
    return slots.shape[0], count


@kernel
def _count(groups: Ints, width: Word, group_of: Ints, counts: Ints) -> Word:
    """The size of each group, 0 for group -1; returns the sum."""
    total = 0
    for i in range(group_of.shape[0]):
        group = group_of[i]
        counts[i] = groups[group, width + COUNT] if group >= 0 else 0
        total += counts[i]
    return total


@kernel
def _expand(groups: Ints, width: Word, links: Ints, group_of: Ints, rows: Ints, slots: Ints) -> None:
    """Write all pairs of a position in ``group_of`` and a slot of the group there."""
    at = 0
    for i in range(group_of.shape[0]):
        group = group_of[i]
        slot = groups[group, width + HEAD] if group >= 0 else 0
        while slot != 0:
            rows[at] = i
            slots[at] = slot - 1
            at += 1
            slot = links[slot - 1, NEXT]
