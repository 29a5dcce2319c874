"""Extremes over the entries with another key (``other_values``): the best key of a group, and the second one."""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.other_values import KeyGroups, Turned, keys_at
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.state.ordered_sums import COUNTED, OrderedSums
from everview.backends.embedded.vectors import Bools, Ints, Vector

_WORD = 1 << 63


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

    def stands_apart(self, keys: Ints) -> Bools:
        return np.zeros(len(keys), dtype=np.bool_)

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

    def overflowing(self, groups: Ints) -> Bools:
        return np.zeros(len(groups), dtype=np.bool_)

    def commit(self) -> None:
        self._applied.clear()

    def rollback(self) -> None:
        for entries, keys, weights in reversed(self._applied):
            entries.add(keys, -weights.reshape(-1, 1))
        self._applied.clear()

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes + self._best.nbytes
