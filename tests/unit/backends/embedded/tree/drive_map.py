"""A view map driven by single instructions of the machine, beside a dict that says what it should hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree.instruction import NONE, Instruction, assembled
from everview.backends.embedded.tree.instructions import FindEntries, ScanEntries, SliceEntries, Upsert
from everview.backends.embedded.tree.kernels.dispatch import run
from everview.backends.embedded.tree.kernels.transactions import settle, undo
from everview.backends.embedded.tree.layout import (
    AMOUNT,
    COUNTED,
    DONE,
    ENVIRONMENT_WORDS,
    EXACT,
    NEED,
    NEED_INDEX,
    NEED_MAP,
    NEED_ROWS,
    SPECIAL_BITS,
    WORDS,
)
from everview.backends.embedded.tree.machine import CHUNK
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Ints

Key = tuple[int, ...]
Part = tuple[int, ...] | tuple[float, int]
"""COUNTED: (number,), EXACT: (number of any size,), FLOATING: (value, what is not finite)."""


def signed(number: int, bits: int) -> int:
    """The number modulo 2^bits, as two's complement."""
    number %= 1 << bits
    return number - (1 << bits) if number >> (bits - 1) else number


def words_of(kind: int, part: Part) -> list[int]:
    """The words of a payload part."""
    if kind == COUNTED:
        return [signed(int(part[0]), 64)]
    if kind == EXACT:
        return [signed(int(part[0]), 64), signed(int(part[0]) >> 64, 64)]
    return [int(np.float64(part[0]).view(np.int64)), 0, int(part[1]) & ((1 << SPECIAL_BITS) - 1)]


def part_of(kind: int, words: Sequence[int]) -> Part:
    """A payload part as numbers."""
    if kind == COUNTED:
        return (words[0],)
    if kind == EXACT:
        return (signed((words[1] << 64) + (words[0] % (1 << 64)), 128),)
    value, error = np.array(words[:2], dtype=np.int64).view(np.float64).tolist()
    return (value + error, signed(words[2], SPECIAL_BITS))


class MapDriver:
    """One map, to which payloads are added as triggers do it."""

    def __init__(self, key_words: int, kinds: Sequence[int], *, is_result: bool = False) -> None:
        self.kinds = tuple(kinds)
        self.width = key_words
        self.view = ViewMap(key_words, kinds, is_result=is_result)
        self._views = np.array([self.view.address], dtype=np.int64)
        self._environment = np.zeros(ENVIRONMENT_WORDS, dtype=np.int64)

    def upsert(self, changes: Sequence[tuple[Key, Sequence[Part]]]) -> None:
        """Adds payloads to keys, in one instruction."""
        columns: list[list[int]] = []
        for key, parts in changes:
            words = [*key, *(w for k, p in zip(self.kinds, parts, strict=True) for w in words_of(k, p))]
            columns.append(words)
        given = np.array(columns, dtype=np.int64).reshape(len(changes), -1)
        starts = [1 + self.width + sum(WORDS[k] for k in self.kinds[:p]) for p in range(len(self.kinds))]
        self._run(Upsert(0, 0, 0, self._keys(self.width), tuple(starts)), given, len(changes))

    def add_rows(self, keys: Ints, count: int) -> None:
        """Adds a count to many keys, which differ, a few thousand an instruction; all other words of the payload are 0."""
        words = sum(WORDS[k] for k in self.kinds)
        starts = [1 + self.width + sum(WORDS[k] for k in self.kinds[:p]) for p in range(len(self.kinds))]
        one = Upsert(0, 0, 0, self._keys(self.width), tuple(starts))
        for start in range(0, len(keys), CHUNK):
            part = keys[start : start + CHUNK]
            payload = np.zeros((len(part), words), dtype=np.int64)
            payload[:, 0] = count
            self._run(one, np.hstack((part, payload)), len(part))

    def lookup(self, keys: Sequence[Key]) -> list[int]:
        """The slot of each key, -1 if there is none."""
        given = np.array(keys, dtype=np.int64).reshape(len(keys), -1)
        one = FindEntries(0, 0, 1, *self._out(given.shape[1]), self._keys(self.width))
        rows, slots = self._run(one, given, len(keys))
        found = dict(zip(rows.tolist(), slots.tolist(), strict=True))
        return [found.get(i, -1) for i in range(len(keys))]

    def slice(self, index: int, keys: Sequence[Key]) -> list[set[Key]]:
        """The keys of the entries that agree with each of these on the words of the index."""
        given = np.array(keys, dtype=np.int64).reshape(len(keys), -1)
        width = given.shape[1]
        one = SliceEntries(0, 0, 1, *self._out(width), NONE, index, self._keys(width))
        return self._matches(*self._run(one, given, len(keys)), len(keys))

    def scan(self) -> set[Key]:
        """The keys of all entries, as one row meets them."""
        one = ScanEntries(0, 0, 1, *self._out(0), NONE)
        (found,) = self._matches(*self._run(one, np.zeros((1, 0), dtype=np.int64), 1), 1)
        return found

    def _matches(self, rows: Ints, slots: Ints, count: int) -> list[set[Key]]:
        found: list[list[Key]] = [[] for _ in range(count)]
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            found[row].append(tuple(self.view.entries[slot, : self.width].tolist()))
        assert all(len(set(f)) == len(f) for f in found), "an entry is met twice"
        return [set(f) for f in found]

    @staticmethod
    def _out(width: int) -> tuple[int, int]:
        return width + 1, width + 2

    @staticmethod
    def _keys(width: int) -> tuple[int, ...]:
        return tuple(range(1, 1 + width))

    def _run(self, one: Instruction, given: Ints, count: int) -> tuple[Ints, Ints]:
        """Runs one instruction; register 0 is free, then come the given columns, then the pairs that a join finds."""
        code = assembled([one])
        room = max(count, 1)
        columns = [np.zeros(room, dtype=np.int64), *(np.ascontiguousarray(c) for c in given.T)]
        rows = np.array([count, 0], dtype=np.int64)
        while True:
            found = [np.zeros(room, dtype=np.int64) for _ in range(2)]
            registers = np.array([address_of(c) for c in (*columns, *found)], dtype=np.int64)
            capacities = np.array([count, room], dtype=np.int64)
            start = address_of(code)
            arguments = [address_of(a) for a in (registers, rows, capacities, self._views, self._environment)]
            run(start, start + 8 * len(code), *arguments)
            need = self._environment[NEED]
            if need == DONE:
                return found[0][: rows[1]], found[1][: rows[1]]
            if need == NEED_MAP:
                self.view.reserve(int(self._environment[AMOUNT]))
            elif need == NEED_INDEX:
                self.view.build_index(int(self._environment[AMOUNT]))
            else:
                assert need == NEED_ROWS
                room = int(self._environment[AMOUNT])

    def settle(self) -> None:
        """The transaction has succeeded."""
        settle(address_of(self._views), 1)
        self.view.end_transaction()

    def undo(self) -> None:
        """The transaction has failed."""
        undo(address_of(self._views), 1)

    def content(self) -> dict[Key, tuple[Part, ...]]:
        """All entries."""
        found = {}
        for entry in self.view.entries[self.view.live_slots()].tolist():
            parts, at = [], self.view.key_words
            for kind in self.kinds:
                parts.append(part_of(kind, entry[at : at + WORDS[kind]]))
                at += WORDS[kind]
            found[tuple(entry[: self.width])] = tuple(parts)
        assert len(found) == len(self.view)
        return found

    def words(self) -> dict[Key, tuple[int, ...]]:
        """All entries, bit by bit."""
        end = self.view.key_words + sum(WORDS[k] for k in self.kinds)
        entries = self.view.entries[self.view.live_slots()].tolist()
        return {tuple(e[: self.width]): tuple(e[self.view.key_words : end]) for e in entries}
