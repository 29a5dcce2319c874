"""A materialized view of a tree: a map from key words to payload words, with secondary indexes by some of the key words.

The arrays belong to this object; kernels find them through the addresses in ``fields``, an array that never moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.state.memory import address_of, grown, reserve, resize
from everview.backends.embedded.tree.kernels.indexes import link_all
from everview.backends.embedded.tree.kernels.probing import hash_again, live_slots, rehash, slot_of_key
from everview.backends.embedded.tree.kernels.transactions import FEW, LARGE_LOG, SPARSE
from everview.backends.embedded.tree.layout import (
    CAPACITY,
    COUNT,
    ENTRIES,
    FREE,
    INDEX_BUILT,
    INDEX_COUNT,
    INDEX_FIELDS,
    INDEX_IDLE,
    INDEX_KEYS,
    INDEX_LIMIT,
    INDEX_LINKS,
    INDEX_LONGEST,
    INDEX_MASK,
    INDEX_MODE,
    INDEX_SLOTS,
    INDEX_TABLE,
    INDEX_WIDTH,
    INDEX_WORDS,
    INDEXES,
    KEY_WORDS,
    KINDS,
    LIMIT,
    LOG,
    LOG_CAPACITY,
    LOG_COUNT,
    MAP_FIELDS,
    MASK,
    PARTS,
    STRIDE,
    SUSPECT,
    TABLE,
    TOUCHED,
    USED,
    words_of,
)
from everview.backends.embedded.tree.view_order import ViewOrder
from everview.backends.embedded.vectors import Ints, KeyLayout

Halves: TypeAlias = npt.NDArray[np.uint32]

SMALLEST = 16
LARGE = 1 << 14
"""From so many entries on a map grows by a sixteenth, otherwise by half: the system moves the pages of a large array."""
MANY = 1 << 62
ROOMY = 1 << 16
"""Up to this length the probe table of an index is half empty."""


def most_entries(length: int, stride: int) -> int:
    """How many entries the probe table of a map is to hold: half its places, or a bit more where it weighs most."""
    return length // 2 if stride > 2 else length // 8 * 5


def most_keys(length: int) -> int:
    """How many keys the probe table of an index is to hold."""
    return length // 2 if length <= ROOMY else length // 4 * 3


class ViewMap:
    """A view. ``kinds`` are the kinds of its payload parts; the first is the count.

    Args:
        key_words: How many words a key has; a view without keys has one entry.
        kinds: Of each payload part.
        is_result: Whether to log an entry once a transaction, with what it was before, which is what a result's delta needs.
    """

    def __init__(self, key_words: int, kinds: Sequence[int], *, is_result: bool = False) -> None:
        self.name = "a view"
        """As its program calls it, for errors."""
        self.key_words = max(1, key_words)
        self.is_result = is_result
        self.kinds = tuple(kinds)
        *self.offsets, self.stride = accumulate((words_of(k) for k in kinds), initial=self.key_words)
        self._kinds = np.array([*kinds, 0], dtype=np.int64)
        self.fields = np.zeros(MAP_FIELDS, dtype=np.int64)
        self.address = address_of(self.fields)
        f = self.fields
        f[STRIDE], f[KEY_WORDS], f[FREE] = self.stride, self.key_words, -1
        f[KINDS], f[PARTS] = address_of(self._kinds), len(kinds)
        self._touched: Ints | None = np.zeros(1, dtype=np.int64) if is_result else None
        self._indexes: list[_Index] = []
        self.orders: dict[tuple[int, ...], ViewOrder] = {}
        """Its entries in some order, by the key words that are equal within a group and then by one variable's."""
        self._index_addresses: Ints = np.zeros(1, dtype=np.int64)
        self.entries: Ints = np.empty((0, self.stride), dtype=np.int64)
        self._log: Ints = np.empty((0, self.stride + 1), dtype=np.int64)
        self._set_table(np.zeros(2 * SMALLEST, dtype=np.uint32))
        self._grow_entries(SMALLEST)
        self._grow_log(SMALLEST)

    def __len__(self) -> int:
        return int(self.fields[COUNT])

    def __repr__(self) -> str:
        return f"<view map of {len(self)} entries, {self.key_words} key words, {self.nbytes} bytes>"

    def reserve(self, more: int) -> None:
        """Makes room for so many more entries."""
        f = self.fields
        self._give_up_indexes()
        wanted = int(f[COUNT]) + more
        if wanted > f[CAPACITY]:
            held = int(f[CAPACITY])
            self._grow_entries(max(wanted, held + held // (2 if held < LARGE else 16)))
        if wanted > f[LIMIT]:
            self._rehash(wanted)
        for index in self._built():
            index.reserve(more)
        logged = int(f[LOG_COUNT]) + more
        if logged > f[LOG_CAPACITY]:
            self._grow_log(max(logged, 2 * int(f[LOG_CAPACITY])))

    def _grow_entries(self, capacity: int) -> None:
        used = int(self.fields[USED])
        reserve((capacity - len(self.entries)) * 8 * self.stride)
        self.entries = grown(self.entries, capacity)
        self.fields[ENTRIES] = address_of(self.entries)
        if self._touched is not None:
            resize(self._touched, capacity // 64 + 1)
            self.fields[TOUCHED] = address_of(self._touched)
        for index in self._built():
            index.grow_links(capacity, used)
        self.fields[CAPACITY] = capacity  # last: there may be no memory for one of them

    def _grow_log(self, capacity: int) -> None:
        reserve((capacity - len(self._log)) * 8 * (self.stride + 1))
        grown = np.empty((capacity, self.stride + 1), dtype=np.int64)
        logged = int(self.fields[LOG_COUNT])
        grown[:logged] = self._log[:logged]
        self._log = grown
        self.fields[LOG], self.fields[LOG_CAPACITY] = address_of(grown), capacity

    def _set_table(self, table: Halves) -> None:
        self._table = table
        self.fields[TABLE], self.fields[MASK] = address_of(table), len(table) - 1
        self.fields[LIMIT] = most_entries(len(table), self.stride)

    def _table_length(self, entries: int) -> int:
        length = 2 * SMALLEST
        while most_entries(length, self.stride) < entries:
            length *= 2
        return length

    def _rehash(self, entries: int) -> None:
        reserve(4 * (self._table_length(entries) - len(self._table)))
        old, table = self._table, np.zeros(self._table_length(entries), dtype=np.uint32)
        tables = [(i, i.new_table(int(i.fields[INDEX_KEYS]))) for i in self._built()]  # while nothing has changed
        if self.fields[FREE] < 0:
            self._set_table(table)
            hash_again(self.address, len(self))  # in the order of the slots, all of which are in use
        else:
            rehash(self.address, 0, address_of(old), len(old), address_of(table), len(table) - 1)
            self._set_table(table)
        for index, own in tables:
            index.rehash(own)

    def end_transaction(self) -> None:
        """Housekeeping after a transaction: less memory after many removals."""
        f = self.fields
        self._give_up_indexes()
        if f[USED] > 2 * f[COUNT] + SPARSE:
            self._shrink()
        if f[LOG_CAPACITY] > f[COUNT] // 32 + LARGE_LOG:
            self._log = np.empty((0, self.stride + 1), dtype=np.int64)
            self._grow_log(SMALLEST)

    def _give_up_indexes(self) -> None:
        for index in self._built():
            if index.fields[INDEX_IDLE] > max(self.fields[COUNT] // 2, FEW):
                index.give_up()

    def _built(self) -> list[_Index]:
        return [i for i in self._indexes if i.fields[INDEX_BUILT]]

    def _shrink(self) -> None:
        self._hold(np.sort(self.live_slots()), self)

    def copy(self, *, is_result: bool) -> ViewMap:
        """A map with the same entries, and without indexes. To be called between transactions."""
        made = ViewMap(self.key_words, self.kinds, is_result=is_result)
        made._hold(self.live_slots(), self)
        return made

    def _hold(self, slots: Ints, source: ViewMap) -> None:
        """Holds the entries in these slots of a map, and no others. If memory is short, nothing has changed."""
        f, count = self.fields, len(slots)
        live = np.empty((max(count + count // 16, SMALLEST), self.stride), dtype=np.int64)
        live[:count] = source.entries[slots]
        table, order = np.zeros(self._table_length(count), dtype=np.uint32), np.arange(count, dtype=np.int64)
        built = [(i, i.new_table(count)) for i in self._built()]  # the last that may fail for memory
        f[COUNT] = count
        f[USED], f[FREE] = count, -1
        self.entries = live
        self._grow_entries(len(live))
        self._set_table(table)
        hash_again(self.address, count)
        for index, own in built:
            index.fill(order, int(index.fields[INDEX_MODE]), own)

    def index(self, words: Sequence[int], *, is_kept: bool = True) -> int:
        """The number of the secondary index by these key words, made on first use.

        Unless ``is_kept``, it is given up when it has been kept up for long without a slice, and built again for the next.
        """
        wanted = tuple(words)
        for number, known in enumerate(self._indexes):
            if known.words == wanted:
                if is_kept and known.fields[INDEX_IDLE] >= 0:
                    known.fields[INDEX_IDLE] = -1
                    self.build_index(number)
                return number
        made = _Index(self, wanted)
        self._indexes.append(made)
        made.fields[INDEX_IDLE] = -1 if is_kept else 0
        made.grow_links(int(self.fields[CAPACITY]), 0)
        made.fill(self.live_slots(), 0)
        self._index_addresses = np.array([i.address for i in self._indexes], dtype=np.int64)
        self.fields[INDEXES], self.fields[INDEX_COUNT] = address_of(self._index_addresses), len(self._indexes)
        return len(self._indexes) - 1

    def order(self, group: tuple[int, ...], variable: tuple[int, ...], layout: KeyLayout) -> ViewOrder:
        """Its entries in the order of a variable, within groups of equal key words; made on first use, and kept up."""
        key = (*group, *variable)
        order = self.orders.get(key)
        if order is None:
            order = self.orders[key] = ViewOrder(group, variable, layout, self.kinds)
            self._tell(order, self.live_slots())
            order.taken = int(self.fields[LOG_COUNT])
        self._tell_logged(order)
        return order

    def settle_orders(self) -> None:
        """The transaction is about to be settled: the orders take in what they have not yet."""
        for order in self.orders.values():
            self._tell_logged(order)
            order.taken = 0

    def _tell_logged(self, order: ViewOrder) -> None:
        """Tells an order what has changed since it was told last; a result's entries are logged once, and change again."""
        logged = int(self.fields[LOG_COUNT])
        self._tell(order, self._log[0 if self.is_result else order.taken : logged, 0])
        order.taken = logged

    def _tell(self, order: ViewOrder, slots: Ints) -> None:
        if len(slots):
            order.put(self.entries[slots, : self.key_words], self.entries[slots, self.key_words :])

    def undo_orders(self) -> None:
        """The transaction is about to be taken back: the orders get what was there before, by the first record of each slot."""
        log = self.logged()
        slots, first = np.unique(log[:, 0], return_index=True)
        old = np.where(log[first, 1:2] != 0, log[first, 1 + self.key_words :], 0)
        for order in self.orders.values():
            if order.taken:
                order.put(self.entries[slots, : self.key_words], old)
            order.taken = 0

    def release_indexes(self) -> None:
        """Nobody insists on an index any more, until somebody asks again: those that stay idle are given up."""
        for index in self._indexes:
            index.fields[INDEX_IDLE] = max(0, index.fields[INDEX_IDLE])

    def build_index(self, number: int) -> None:
        """Builds an index that was given up."""
        index = self._indexes[number]
        if not index.fields[INDEX_BUILT]:
            index.grow_links(int(self.fields[CAPACITY]), 0)
            index.fill(self.live_slots(), int(index.fields[INDEX_MODE]))

    def live_slots(self) -> Ints:
        """The slots in use."""
        slots = np.empty(len(self), dtype=np.int64)
        live_slots(self.address, address_of(slots))
        return slots

    def slots_of(self, key: Ints) -> Ints:
        """The slot of a key, if it has one."""
        words = np.arange(self.key_words)
        registers = address_of(key) + 8 * words
        slot = slot_of_key(self.address, address_of(words), address_of(registers))
        return np.array([slot] if slot >= 0 else [], dtype=np.int64)

    def words_in_use(self, most: int) -> Iterator[Ints]:
        """The words of all entries, so many at a time, and those that are logged."""
        slots, step = self.live_slots(), max(1, most // self.stride)
        for start in range(0, len(slots), step):
            yield self.entries[slots[start : start + step]]
        yield self.logged()

    def logged(self) -> Ints:
        """What the transaction under way has logged: slot, whether the entry existed, the rest of a key, its old payload."""
        return self._log[: int(self.fields[LOG_COUNT])]

    @property
    def is_suspect(self) -> bool:
        """Whether a sum may have outgrown its type, or a float is not finite."""
        return bool(self.fields[SUSPECT])

    @property
    def index_words(self) -> list[tuple[int, ...]]:
        """The key words of each secondary index."""
        return [i.words for i in self._indexes]

    @property
    def nbytes(self) -> int:
        """Bytes of the entries, their probe table and the log."""
        touched = 0 if self._touched is None else self._touched.nbytes
        return self.entries.nbytes + self._table.nbytes + self._log.nbytes + touched

    def index_nbytes(self, number: int) -> int:
        """Bytes of a secondary index."""
        return self._indexes[number].nbytes


class _Index:
    """Chains of the entries that agree on some key words; on none: one chain of all entries."""

    def __init__(self, view: ViewMap, words: tuple[int, ...]) -> None:
        self.words = words
        self._view = view
        self._words = np.array([*words, 0], dtype=np.int64)
        self._links: npt.NDArray[np.int32] = np.empty((0, 2), dtype=np.int32)
        self.fields = np.zeros(INDEX_FIELDS, dtype=np.int64)
        self.address = address_of(self.fields)
        self.fields[INDEX_WORDS], self.fields[INDEX_WIDTH] = address_of(self._words), len(words)
        self._set_table(np.zeros(1, dtype=np.uint32))

    def grow_links(self, capacity: int, used: int) -> None:
        reserve(8 * (capacity - len(self._links)))
        if used:
            self._links = grown(self._links, capacity)
        else:
            self._links = np.empty((capacity, 2), dtype=np.int32)
        self.fields[INDEX_LINKS] = address_of(self._links)

    def give_up(self) -> None:
        """Frees the index until somebody asks for it again."""
        self.fields[INDEX_BUILT] = 0
        self._set_table(np.zeros(1, dtype=np.uint32))
        self._links = np.empty((0, 2), dtype=np.int32)

    def fill(self, slots: Ints, mode: int, table: Halves | None = None) -> None:
        """Makes the chains of some slots, which are all there are, from scratch."""
        f = self.fields
        self._set_table(self.new_table(len(slots)) if table is None else table)
        f[INDEX_MODE], f[INDEX_BUILT], f[INDEX_KEYS], f[INDEX_LONGEST] = mode, 1, 0, 0
        f[INDEX_SLOTS] = self._view.fields[MASK]
        if not link_all(self._view.address, self.address, address_of(slots), len(slots)):
            self._table[:] = 0
            self.fill(slots, 1, self._table)
            return
        if self._table_length(int(f[INDEX_KEYS])) < len(self._table):  # there are fewer keys than entries
            self.rehash(self.new_table(int(f[INDEX_KEYS])))

    def reserve(self, more: int) -> None:
        """Makes room for so many more keys."""
        wanted = int(self.fields[INDEX_KEYS]) + more
        if wanted > self.fields[INDEX_LIMIT]:
            self.rehash(self.new_table(wanted))

    def new_table(self, keys: int) -> Halves:
        """An empty table for so many keys."""
        return np.zeros(self._table_length(keys), dtype=np.uint32)

    def rehash(self, table: Halves) -> None:
        """Goes on with another table, for all slots that the map's table has room for."""
        old = self._table
        rehash(self._view.address, self.address, address_of(old), len(old), address_of(table), len(table) - 1)
        self._set_table(table)

    def _set_table(self, table: Halves) -> None:
        self._table = table
        self.fields[INDEX_TABLE], self.fields[INDEX_MASK] = address_of(table), len(table) - 1
        self.fields[INDEX_LIMIT] = most_keys(len(table)) if self.words else MANY

    def _table_length(self, keys: int) -> int:
        length = SMALLEST
        while self.words and most_keys(length) < keys:
            length *= 2
        return length

    @property
    def nbytes(self) -> int:
        return self._links.nbytes + self._table.nbytes
