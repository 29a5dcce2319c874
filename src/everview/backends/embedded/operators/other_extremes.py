"""Nested extremes over all others: for each key, the greatest or least value of the entries with another key.

The greatest of all others is the greatest of the group, except for the key that has it, which sees the second one. A key is the
words of a group and those of the compared value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.state.ordered_sums import COUNTED, OrderedSums
from everview.backends.embedded.vectors import Bools, Ints, Vector

_WORD = 1 << 63


@dataclass(frozen=True, slots=True)
class Turned:
    """Keys that turn, and what becomes of all others in a group: they come (1), go (-1), or do not turn (0)."""

    keys: Ints
    signs: Ints
    groups: Ints
    group_signs: Ints
    judged: Ints
    """Keys for which what becomes of others means nothing."""


class KeyGroups:
    """Ordered keys whose first words are those of a group."""

    def __init__(self, group_words: int) -> None:
        self.words = group_words

    def extents(self, entries: OrderedSums, groups: Ints) -> tuple[Ints, Ints]:
        """The ranks between which the entries of each group are."""
        if not self.words:
            return np.zeros(len(groups), dtype=np.int64), np.full(len(groups), len(entries), dtype=np.int64)
        return entries.rank(groups), entries.rank(groups, after=True)

    def touched(self, entries: OrderedSums, keys: Ints, *, has_moved: bool) -> Ints:
        """The groups of keys, or all groups where bounds have moved."""
        if not self.words:
            return np.zeros((1, 0), dtype=np.int64)
        found = keys[:, : self.words]
        if has_moved:
            found = np.concatenate([found, keys_at(entries, np.arange(len(entries)))[:, : self.words]])
        return np.unique(found, axis=0)

    def numbers(self, groups: Ints, keys: Ints) -> Ints:
        """The number of the group of each key, which is among the groups; those are sorted."""
        if not self.words:
            return np.zeros(len(keys), dtype=np.int64)
        both = np.concatenate([groups, keys[:, : self.words]])
        return np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)[len(groups) :]


def keys_at(entries: OrderedSums, ranks: Ints) -> Ints:
    """The keys with these ranks."""
    return entries.keys_at(entries.select(ranks))


class OtherExtremes:
    """Greatest values, or least ones: those are the greatest of complements."""

    def __init__(self, groups: KeyGroups, width: int, *, is_least: bool) -> None:
        self._grouped, self._width, self._is_least = groups, width, is_least
        self._entries = OrderedSums(width + 1, (COUNTED,))
        self._best = OrderedSums(width + 1, (COUNTED,))
        """The greatest value of each key, in the order of groups and values."""
        self._applied: list[tuple[OrderedSums, Ints, Ints]] = []

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        words = range_words(values)
        changed = np.unique(keys, axis=0)
        self._rank(changed, -1)
        self._change(self._entries, np.column_stack([keys, ~words if self._is_least else words]), weights)
        self._rank(changed, 1)

    def _rank(self, keys: Ints, sign: int) -> None:
        """Puts keys in the order of their greatest values, or takes them out."""
        last = self._entries.rank(keys, after=True)
        has = last > self._entries.rank(keys)
        greatest, at = keys_at(self._entries, last[has] - 1), self._grouped.words
        ordered = np.column_stack([greatest[:, :at], greatest[:, -1], greatest[:, at:-1]])
        self._change(self._best, ordered, np.full(len(ordered), sign))

    def _change(self, entries: OrderedSums, keys: Ints, weights: Ints) -> None:
        keys = np.ascontiguousarray(keys)
        entries.add(keys, weights.reshape(-1, 1))
        self._applied.append((entries, keys, weights))

    def _seen(self, groups: Ints, within: Within) -> tuple[Ints, Bools, Bools]:
        """Of each group the key with the greatest value, whether others pass, and whether that key passes.

        Groups without an entry let nothing through, whatever key is said to have the greatest value.
        """
        first, last = self._grouped.extents(self._best, groups)
        best, next_best = (keys_at(self._best, np.maximum(last - n, 0)) for n in (1, 2))
        at = self._grouped.words
        others, top = (
            self._is_let(found[:, at], within) & (last - first >= n) for n, found in ((1, best), (2, next_best))
        )
        return np.column_stack([groups, best[:, at + 1 :]]), others, top

    def _is_let(self, words: Ints, within: Within) -> Bools:
        low, high = within.bounds
        if self._is_least:
            low, high = ~high, ~low
        held: Bools = np.zeros(len(words), dtype=np.bool_)
        if low <= high and low < _WORD and high >= -_WORD:
            held = (words >= max(low, -_WORD)) & (words <= min(high, _WORD - 1))
        let: Bools = held != within.is_outside
        return let

    def passes(self, keys: Ints, within: Within) -> Bools:
        groups = self._grouped.touched(self._best, keys, has_moved=False)
        return self._looked_up(keys, groups, self._seen(groups, within))

    def _looked_up(self, keys: Ints, groups: Ints, seen: tuple[Ints, Bools, Bools]) -> Bools:
        best, others, top = seen
        at = self._grouped.numbers(groups, keys)
        return np.where((best[at] == keys).all(axis=1), top[at], others[at])

    def turn(self, entries: tuple[Ints, Vector, Ints] | None, old: Within, new: Within) -> Turned:
        changed = np.zeros((0, self._width), dtype=np.int64) if entries is None else entries[0]
        groups = self._grouped.touched(self._best, changed, has_moved=old != new)
        was = self._seen(groups, old)
        if entries is not None and len(changed):
            self.add(*entries)
        now = self._seen(groups, new)
        keys = np.unique(np.concatenate([was[0], now[0]]), axis=0)
        before, after = (self._looked_up(keys, groups, seen) for seen in (was, now))
        signs = after.astype(np.int64) - before
        group_signs = now[1].astype(np.int64) - was[1]
        return Turned(keys[signs != 0], signs[signs != 0], groups, group_signs, keys)

    def commit(self) -> None:
        self._applied.clear()

    def rollback(self) -> None:
        for entries, keys, weights in reversed(self._applied):
            entries.add(keys, -weights.reshape(-1, 1))
        self._applied.clear()

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes + self._best.nbytes
