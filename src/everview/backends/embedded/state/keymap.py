"""Hash maps from key rows to stable slots, the state behind every view.

A ``KeyMap`` gives each distinct row of int64 words a *slot*, a small number that stays the same while the row lives; payloads
are arrays indexed by slot. Removed slots are reused. ``WeightMap`` is the Z-set: a map whose payload is a weight, and whose
entries exist exactly while the weight is not 0.

Contract: key matrices are C-contiguous ``int64[n, width]``. Arrays taken from a map (``keys``, ``inline``, a SlotArray's
``data``) are replaced when it grows or shrinks: take them anew after each call that changes the map. Slots that a call removed
keep their key words until the next call that changes the map, so that indexes can still be told.

    >>> people = KeyMap(width=1)
    >>> rows = np.array([[7], [9], [7]], dtype=np.int64)
    >>> people.upsert(rows)
    array([0, 1, 0])
    >>> people.find(np.array([[9], [1]], dtype=np.int64))
    array([ 1, -1])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from everview.backends.embedded.state import keymap_kernels as kernels
from everview.backends.embedded.state.keymap_kernels import (
    BITS,
    FILL,
    FREE,
    HIGH,
    LIVE,
    LONG,
    META_WORDS,
    MODE,
    REMOVED,
    TRIM_AT,
    Entries,
)
from everview.backends.embedded.state.memory import reserve, resized
from everview.backends.embedded.state.probing import SPREAD
from everview.backends.embedded.vectors import Bools, Ints

SMALLEST = 64
"""Slots of an empty map; its table is twice as long."""

QUICK_GROWTH = 1 << 16
"""Below so many slots a map grows fourfold where that is foreseen, above always twofold. Slots that were never used take no
memory: the system gives a page when it is first written to."""

MOST_SLOTS = (1 << 31) - 2
"""What an entry of 32 bits can number, with a bit of the tag."""

UNTOLD: Bools = np.zeros(0, dtype=np.bool_)
UNNUMBERED = -1
NEVER = np.iinfo(np.int64).max
_ALL: Ints = np.zeros(0, dtype=np.int64)
"""Stands for all slots that have ever been used, where none of them is free."""


class Follower(Protocol):
    """What grows, shrinks and moves with the slots of a map."""

    def resize(self, capacity: int) -> None:
        """Have this many slots; slots cut off are not live."""

    def vacate(self, slots: Ints) -> None:
        """These slots have been removed."""

    def reorder(self, live: Ints, capacity: int) -> None:
        """Slot ``live[i]`` is now slot i, and nothing else is live."""


class KeyMap:
    """An open-addressing hash map from key rows to slots.

    Args:
        width: Words of a key.
        capacity: Slots to begin with.
        inline: Payload words that lie next to the key, in the same cache line; 0 when an entry is created.
    """

    def __init__(self, width: int, capacity: int = SMALLEST, *, inline: int = 0) -> None:
        self.width = width
        self._inline = inline
        self._followers: list[Follower] = []
        self._reset(_power_of_two(max(capacity, SMALLEST)))

    def _reset(self, capacity: int) -> None:
        self._meta: Ints = np.zeros(META_WORDS, dtype=np.int64)
        self._meta[MODE] = 0 if self.width == 1 else SPREAD  # until keys lie too far from their places
        self._free: Entries = np.empty(0, dtype=np.uint32)
        self._set_store(np.empty((capacity, self.width + self._inline), dtype=np.int64))
        self._set_table(2 * capacity)

    def _set_store(self, store: Ints) -> None:
        self.store = store
        self.keys: Ints = store[:, : self.width]
        self.inline: Ints = store[:, self.width :]
        self._meta[TRIM_AT] = len(store) // 2 if len(store) > SMALLEST else NEVER

    def _set_table(self, length: int, capacity: int = 0) -> None:
        """Have an empty table of this length, for slots up to the capacity (or a larger one) and as many as it is long."""
        self._table: Entries = np.zeros(length, dtype=np.uint32)
        self._meta[BITS] = max(length, _power_of_two(max(self.capacity, capacity) + 2)) - 1

    def __len__(self) -> int:
        return int(self._meta[LIVE])

    @property
    def capacity(self) -> int:
        """Slots that exist, live or not: the length of every array indexed by slot."""
        return len(self.store)

    @property
    def nbytes(self) -> int:
        """Memory of the map itself, without its followers: the table, and the slots that have been used."""
        row = self.store.itemsize * self.store.shape[1]
        return int(self._table.nbytes + self.used * row + self._free.nbytes)

    @property
    def used(self) -> int:
        """How many slots have ever been used: those above were never written."""
        return int(self._meta[HIGH])

    @property
    def is_sparse(self) -> bool:
        """Whether ``compact`` would free most of the slots."""
        return self.capacity > SMALLEST and len(self) * 8 < self.capacity

    def live_slots(self) -> Ints:
        """The slots in use, ascending."""
        meta = self._meta
        if not meta[FREE]:
            return np.arange(meta[HIGH])
        is_live = np.ones(meta[HIGH], dtype=np.bool_)
        is_live[self._free[: meta[FREE]]] = False
        return np.flatnonzero(is_live)

    def words_in_use(self, most: int) -> Iterator[Ints]:
        """The key words of all entries, so many at a time; what lies next to them is weights and numbers."""
        slots, step = self.live_slots(), max(1, most // self.width)
        for start in range(0, len(slots), step):
            yield self.keys[slots[start : start + step]]

    def find(self, keys: Ints) -> Ints:
        """The slot of each row, or -1."""
        assert keys.shape[1] == self.width
        slots = np.empty(len(keys), dtype=np.int64)
        kernels.find(self._table, self.store, self._meta, keys, slots)
        return slots

    def upsert(self, keys: Ints) -> Ints:
        """The slot of each row, created where it is missing."""
        return self._upsert(keys, UNTOLD, UNNUMBERED)

    def upsert_new(self, keys: Ints) -> tuple[Ints, Bools]:
        """The slot of each row, and whether that row created it; of equal rows in the batch the first one did."""
        created = np.zeros(len(keys), dtype=np.bool_)
        return self._upsert(keys, created, UNNUMBERED), created

    def insert(self, keys: Ints, number: int) -> Ints:
        """The slots of new rows, numbered in their inline word from ``number`` on; only of those before one that is not new.

        If there is no memory for all of them, there is none of them.
        """
        return self._upsert(keys, UNTOLD, number)

    def _upsert(self, keys: Ints, created: Bools, number: int) -> Ints:
        assert keys.shape[1] == self.width
        n = len(keys)
        slots = np.empty(n, dtype=np.int64)
        done = kernels.upsert(self._table, self.store, self._free, self._meta, keys, 0, slots, created, number)
        while 0 <= done < n:
            try:
                self._take_care(n - done)
            except MemoryError:
                if number != UNNUMBERED:
                    self.remove(slots[:done])
                raise
            done = kernels.upsert(self._table, self.store, self._free, self._meta, keys, done, slots, created, number)
        return slots if done == n else slots[: -1 - done]

    def remove(self, slots: Ints) -> None:
        """Remove these live slots, each once; their payloads in SlotArrays become 0."""
        if self._meta[REMOVED] >= self._meta[TRIM_AT]:
            self.trim()
        self._stack_up(len(slots))
        done = kernels.remove(self._table, self.store, self._free, self._meta, self.width, slots)
        assert done == len(slots), f"slot {slots[done]} is not live"
        for follower in self._followers:
            follower.vacate(slots)

    def reserve(self, extra: int) -> None:
        """Make room for so many more entries now; needless for correctness, since batches make room as they go."""
        wanted = len(self) + extra
        if wanted > self.capacity:
            self._resize_store(_power_of_two(wanted))
        if 8 * wanted > FILL * len(self._table):
            self._resize_table(_power_of_two(-(-8 * wanted // FILL)))

    def _stack_up(self, extra: int) -> None:
        """Make room for so many more free slots."""
        wanted = int(self._meta[FREE]) + extra
        if wanted > len(self._free):
            longer = np.empty(max(wanted, len(self._free) + len(self._free) // 2), dtype=np.uint32)
            longer[: self._meta[FREE]] = self._free[: self._meta[FREE]]
            self._free = longer

    def clear(self) -> None:
        """Remove everything, and the memory with it."""
        self._reset(SMALLEST)
        for follower in self._followers:
            follower.reorder(np.zeros(0, dtype=np.int64), SMALLEST)

    def forget_if_empty(self) -> None:
        """Give the memory of a map back from which everything was removed; for when nobody needs the removed keys any more."""
        if not self._meta[LIVE] and self._meta[HIGH]:
            self.trim()

    def copy(self) -> KeyMap:
        """An independent map with the same slots; followers are not copied."""
        twin = object.__new__(type(self))
        twin.width, twin._inline, twin._followers = self.width, self._inline, []
        twin._meta, twin._free = self._meta.copy(), self._free.copy()
        twin._set_store(self.store.copy())
        twin._table = self._table.copy()
        return twin

    def follow(self, follower: Follower) -> None:
        """Tell this follower of every change of slots from now on."""
        self._followers.append(follower)
        follower.resize(self.capacity)

    def unfollow(self, follower: Follower) -> None:
        """Tell it no longer."""
        self._followers.remove(follower)

    def _take_care(self, extra: int) -> None:
        """Do what made a kernel stop: change the hash, give memory back, or grow for up to ``extra`` entries."""
        meta = self._meta
        if meta[LONG]:
            self._resize_table(len(self._table), mode=1)
            meta[LONG] = 0
        elif meta[REMOVED] >= meta[TRIM_AT]:
            self.trim()
        else:
            step = 4 if self.capacity < QUICK_GROWTH and extra >= self.capacity else 2
            if not meta[FREE] and meta[HIGH] == self.capacity:
                self._resize_store(self.capacity * step)
            if 8 * len(self) >= FILL * len(self._table):
                self._resize_table(len(self._table) * step)

    def trim(self) -> None:
        """Give back memory that removals have freed: the table, and slots above the highest live one.

        Runs by itself once removals amount to half the capacity, so its cost is constant per removal.
        """
        meta = self._meta
        meta[REMOVED] = 0
        live = len(self)
        if live * 8 < len(self._table) and len(self._table) > 2 * SMALLEST:
            self._resize_table(_power_of_two(max(4 * live, 2 * SMALLEST)))
        if live * 4 < self.capacity and self.capacity > SMALLEST:
            slots = self.live_slots()
            high = int(slots[-1]) + 1 if live else 0
            is_free = np.ones(high, dtype=np.bool_)
            is_free[slots] = False
            self._free = np.flatnonzero(is_free)[::-1].astype(np.uint32)  # the lowest is the next to be used
            meta[HIGH], meta[FREE] = high, len(self._free)
            capacity = _power_of_two(max(2 * int(meta[HIGH]), SMALLEST))
            if capacity < self.capacity:
                self._resize_store(capacity)

    def compact(self) -> Ints:
        """Renumber the live slots 0, 1, … in ascending order, with all followers, and free the rest.

        The only operation that moves an entry. Returns the old slots by new slot.
        """
        meta = self._meta
        live = self.live_slots()
        capacity = max(len(live), SMALLEST)
        store = self.store[live]
        meta[HIGH], meta[FREE], meta[REMOVED] = len(live), 0, 0
        self._free = self._free[:0].copy()
        self._set_store(resized(store, capacity, len(live)))
        self._resize_table(min(len(self._table), 2 * _power_of_two(capacity)))
        for follower in self._followers:
            follower.reorder(live, capacity)
        return live

    def _resize_store(self, capacity: int) -> None:
        assert capacity <= MOST_SLOTS, f"a map of {capacity} entries is larger than this engine can hold"
        # What fails for memory must not leave the map with more slots than a follower, or than its table can number.
        is_growing = capacity > self.capacity
        reserve((capacity - self.capacity) * self.store.strides[0])
        store = resized(self.store, capacity, self.used)
        if is_growing:
            self._resize_followers(capacity)
            if capacity + 1 > self._meta[BITS]:
                self._resize_table(len(self._table), capacity)
        self._set_store(store)
        if not is_growing:
            self._resize_followers(capacity)

    def _resize_followers(self, capacity: int) -> None:
        for follower in self._followers:
            follower.resize(capacity)

    def _resize_table(self, length: int, capacity: int = 0, mode: int | None = None) -> None:
        slots = self.live_slots() if self._meta[FREE] else _ALL
        reserve((length - len(self._table)) * self._table.itemsize)
        self._set_table(length, capacity)
        if mode is not None:  # not before there is the table that is filled so
            self._meta[MODE] = mode
        kernels.rehash(self._table, self.store, self._meta, self.width, slots)


def _power_of_two(least: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << (least - 1).bit_length()
