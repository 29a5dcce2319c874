"""Margins: a number for each key, to which ranges of keys have something added, and the keys for which it gets to 0 or below.

    margins.shift(first, last, counts, amounts)     all keys between two ranks have so much more, of so many rows more
    margins.turned(start)                           those that are now on the other side of 0 than before

What is kept of a key is its difference from the key before, in an ordered map whose running sums they are. So a range is two
changed entries, and a node of the tree, which counts from where it begins, need not know what is added before it. Of each key
the side that it was on last is kept, and of each node how far its keys are from another one (``margin_kernels``): keys that
turn are found in O(log n) each, whatever the margins along the order look like.

A key of which no row is counted has no margin: it is *empty*. All margins start at one number, which may be another each time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from everview.backends.embedded.state import margin_kernels as kernels
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.ordered_nodes import COUNT, DEEPEST, MARGIN, MARGINS, MARK, ROWS
from everview.backends.embedded.state.ordered_sums import COUNTED, EXACT, OrderedSums
from everview.backends.embedded.vectors import Bools, Ints

_KINDS = (COUNTED, COUNTED, COUNTED, EXACT)
_WORDS = 5
_FEW = 64


class Margins:
    """Keys in order, each with a number of rows that have it, a mark, and a margin.

    Args:
        width: Words of a key.
    """

    def __init__(self, width: int) -> None:
        self.entries = OrderedSums(width, _KINDS, nodes_know=MARGINS)
        self._stack: Ints = np.zeros(kernels.FRAME * DEEPEST, dtype=np.int64)
        self._undo: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self.entries)

    def marks(self, keys: Ints) -> Ints:
        """The marks of keys that are there."""
        return np.ascontiguousarray(self.entries.payloads_at(self.entries.find(keys))[:, MARK])

    def held(self, keys: Ints) -> Ints:
        """How many rows have each key."""
        return np.ascontiguousarray(self.entries.payloads_at(self.entries.find(keys))[:, ROWS])

    def put(self, keys: Ints, rows: Ints, marks: Ints, counts: Ints, margins: Ints) -> None:
        """Adds rows to distinct keys, in order. Those that are new get what is given; those without a row left go."""
        before = self.held(keys)
        is_new, goes = before == 0, before + rows == 0
        stays = ~is_new & ~goes
        if stays.any():
            self._add(keys[stays], _payloads(int(stays.sum()), rows=rows[stays]))
        if (goes & ~is_new).any():
            self._remove(keys[goes & ~is_new])
        come = is_new & ~goes
        if come.any():
            self._insert(keys[come], rows[come], marks[come], counts[come], margins[come])

    def _insert(self, keys: Ints, rows: Ints, marks: Ints, counts: Ints, margins: Ints) -> None:
        ranks = self.entries.rank(keys)
        before = self.entries.between(np.zeros_like(ranks), ranks)
        follows: Bools = np.concatenate([[False], ranks[1:] == ranks[:-1]])
        """Which keys come right after another new one."""
        at = np.flatnonzero(follows)
        last_counts, last_margins = before[:, COUNT].copy(), before[:, MARGIN:].copy()
        last_counts[at], last_margins[at] = counts[at - 1], margins[at - 1]
        own = _payloads(
            len(keys), rows, marks, counts - last_counts, wide.subtract(margins, np.ascontiguousarray(last_margins))
        )
        ends = np.flatnonzero(np.concatenate([~follows[1:], [True]]) & (ranks < len(self.entries)))
        behind = self._keys(ranks[ends])
        back = _payloads(
            len(ends),
            counts=before[ends, COUNT] - counts[ends],
            margins=wide.subtract(np.ascontiguousarray(before[ends, MARGIN:]), np.ascontiguousarray(margins[ends])),
        )
        self._add(np.concatenate([behind, keys]), np.concatenate([back, own]))

    def _remove(self, keys: Ints) -> None:
        ranks = self.entries.rank(keys)
        ends = np.flatnonzero(np.append(ranks[1:] != ranks[:-1] + 1, True))
        starts = np.append(0, ends[:-1] + 1)
        sums = self.entries.between(ranks[starts], ranks[ends] + 1)
        has = ranks[ends] + 1 < len(self.entries)
        behind = self._keys(ranks[ends[has]] + 1)
        moved = _payloads(len(behind), counts=sums[has, COUNT], margins=np.ascontiguousarray(sums[has, MARGIN:]))
        own = self.entries.payloads_at(self.entries.find(keys))
        self._add(np.concatenate([behind, keys]), np.concatenate([moved, _negated(own)]))

    def shift(self, first: Ints, last: Ints, counts: Ints, amounts: Ints) -> None:
        """Adds counts and amounts to all keys from one rank up to, not with, another."""
        has = first < last
        first, last, counts, amounts = first[has], last[has], counts[has], np.ascontiguousarray(amounts[has])
        ends = last < len(self.entries)
        up = _payloads(len(first), counts=counts, margins=amounts)
        self._add(np.concatenate([self._keys(first), self._keys(last[ends])]), np.concatenate([up, _negated(up[ends])]))

    def turned(self, count: int, start: int) -> tuple[Ints, Ints, Ints]:
        """Keys whose marks are wrong, if the first key starts there: what was marked, and what is now. Marks are mended."""
        whole: Ints = np.array([count, *wide.from_ints([start])[0]], dtype=np.int64)
        room = _FEW
        while True:
            places, marks = np.empty((2, room), dtype=np.int64)
            found = kernels.turned(self.entries.nodes, self.entries.meta, self._stack, whole, places, marks)
            if found <= room:
                break
            room = found
        places, marks = places[:found], marks[:found]
        keys, before = self.entries.keys_at(places), self.entries.payloads_at(places)[:, MARK]
        self._add(keys, _payloads(found, marks=marks - before))
        return keys, before, marks

    def all_keys(self) -> Ints:
        """All keys, in order."""
        return self._keys(np.arange(len(self.entries)))

    def _keys(self, ranks: Ints) -> Ints:
        return self.entries.keys_at(self.entries.select(ranks))

    def _add(self, keys: Ints, payloads: Ints) -> None:
        if len(keys):
            entries = self.entries
            (entries.add if len(entries) else entries.put)(keys, payloads)
            self._undo.append(lambda: entries.add(keys[::-1], _negated(payloads)[::-1]))

    def commit(self) -> None:
        """Makes the changes final."""
        self._undo.clear()

    def rollback(self) -> None:
        """Takes back the changes since the last commit."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.entries.nbytes


def rank_by(entries: OrderedSums, bounds: Ints, word: int, *, after: bool) -> Ints:
    """How many entries are below each bound (``after``: not above it), whose last word is compared with that one of keys."""
    ranks = np.empty(len(bounds), dtype=np.int64)
    kernels.rank_by(entries.nodes, entries.meta, np.ascontiguousarray(bounds), word, int(after), ranks)
    return ranks


def _payloads(
    count: int,
    rows: Ints | int = 0,
    marks: Ints | int = 0,
    counts: Ints | int = 0,
    margins: Ints | int = 0,
) -> Ints:
    made = np.empty((count, _WORDS), dtype=np.int64)
    made[:, ROWS], made[:, MARK], made[:, COUNT], made[:, MARGIN:] = rows, marks, counts, margins
    return made


def _negated(payloads: Ints) -> Ints:
    return np.column_stack([-payloads[:, :MARGIN], wide.negate(np.ascontiguousarray(payloads[:, MARGIN:]))])
