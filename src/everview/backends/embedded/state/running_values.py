"""Running sums and running extremes along an order: where they cross a bound, in O(log n) for each crossing.

Entries are in the order of their keys, in groups with a common prefix. A *running sum* adds up the entries of a group from its
first one on; a *running maximum* is the greatest of the values that end their keys. Both are stored relative to where a part of
the tree begins (``ordered_sums_kernels``), so that a change of one entry moves those of all entries behind it in O(log n).

``LongSums`` does the same for numbers that 128 bits do not hold, in linear time.

A *turn* is an entry at which it changes whether the running value is within bounds. Values that grow along the order turn
twice at most; those of any other sequence as often as they cross a bound, and each crossing costs one way down the tree.

Bounds of a running sum may have *slopes*: they move by so much with each row that is summed. Nodes know sums and numbers of
rows apart, so that more of them may have to be opened than there are turns, the more the steeper the slope is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from everview.backends.embedded.state import running_kernels as kernels
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.ordered_nodes import BOUNDS, DEEPEST, EXTREME, RELATIVE, ROOT
from everview.backends.embedded.state.ordered_sums import COUNTED, EXACT, OrderedSums
from everview.backends.embedded.vectors import Bools, Ints

Bounds = tuple[int, int]
"""The least and the greatest value that is within; none is if the second is below the first."""
ANY: Bounds = (-(1 << 126), 1 << 126)
"""All values."""
LEVEL: Bounds = (0, 0)
"""The slopes of bounds that do not move."""
_FEW = 64
_WORD = 1 << 64
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


class RunningSums(OrderedSums):
    """Entries with a count and an exact number, whose running sums are compared with bounds."""

    def __init__(self, width: int) -> None:
        super().__init__(width, (COUNTED, EXACT), nodes_know=RELATIVE)
        self._stack: Ints = np.zeros(4 * DEEPEST, dtype=np.int64)

    @property
    def opened(self) -> int:
        """How many nodes were opened for the last turns that were asked for."""
        return int(self._stack[0])

    def turns(self, first: int, last: int, within: Bounds, slopes: Bounds = LEVEL) -> Ints:
        """The ranks at which it turns whether the sum from ``first`` on is within bounds; at first it is not."""
        starts = within[0], within[1] + 1
        lines = np.array(
            [w for s, slope in zip(starts, slopes, strict=True) for n in (s, slope) for w in _split(n)], dtype=np.int64
        )
        room = _FEW
        while True:
            found = np.empty(room, dtype=np.int64)
            count = kernels.sum_turns(self.nodes, self.meta, self._stack, first, last, lines, found)
            if count <= room:
                return found[:count]
            room = count

    def extent(self) -> Bounds:
        """The least and the greatest sum from the very first entry on, groups or not."""
        root = int(self.meta[ROOT])
        words = [int(w) for w in self.nodes[root, -BOUNDS:]] if root else [0] * BOUNDS
        return words[0] % _WORD + (words[1] << 64), words[2] % _WORD + (words[3] << 64)

    def is_within(self, first: Ints, last: Ints, within: Bounds, slopes: Bounds = LEVEL) -> Bools:
        """Whether the sums of the entries between ranks are within bounds; those of no entry that counts are not."""
        sums = self.between(first, last)
        counts, totals = np.ascontiguousarray(sums[:, 0]), np.ascontiguousarray(sums[:, 1:])
        least, most = (_line(b, slope, counts) for b, slope in zip(within, slopes, strict=True))
        held: Bools = (wide.compare(totals, least) >= 0) & (wide.compare(totals, most) <= 0) & (counts > 0)
        return held

    def entries(self) -> tuple[Ints, Ints, list[int]]:
        """All keys, their counts and numbers, in order."""
        places = self.select(np.arange(len(self)))
        payloads = self.payloads_at(places)
        return self.keys_at(places), payloads[:, 0], wide.to_ints(payloads[:, 1:])


class LongSums(OrderedSums):
    """Running sums of integers of any length, which are added up whenever they are asked for."""

    def __init__(self, width: int) -> None:
        super().__init__(width, (COUNTED,))
        self._numbers: dict[tuple[int, ...], int] = {}

    def add_long(self, keys: Ints, counts: Ints, numbers: Sequence[int]) -> None:
        """Adds counts and numbers to those of keys."""
        self.add(keys, counts.reshape(-1, 1))
        for key, number in zip(map(tuple, keys.tolist()), numbers, strict=True):
            total = self._numbers.get(key, 0) + number
            if total:
                self._numbers[key] = total
            else:
                self._numbers.pop(key, None)

    def entries(self) -> tuple[Ints, Ints, list[int]]:
        """All keys, their counts and numbers, in order."""
        places = self.select(np.arange(len(self)))
        keys = self.keys_at(places)
        return keys, self.payloads_at(places)[:, 0], [self._numbers.get(tuple(k), 0) for k in keys.tolist()]

    def turns(self, first: int, last: int, within: Bounds, slopes: Bounds = LEVEL) -> Ints:
        """The ranks at which it turns whether the sum from ``first`` on is within bounds; at first it is not."""
        held = [False, *self._held(self._running(first, last), within, slopes)]
        return np.array([first + i for i in range(last - first) if held[i] != held[i + 1]], dtype=np.int64)

    def is_within(self, first: Ints, last: Ints, within: Bounds, slopes: Bounds = LEVEL) -> Bools:
        """Whether the sums of the entries between ranks are within bounds; those of no entry that counts are not."""
        return np.array(self._held(self.long_between(first, last), within, slopes), dtype=np.bool_)

    def long_between(self, first: Ints, last: Ints) -> list[tuple[int, int]]:
        """Counts and sums of the entries between ranks."""
        sums = [(0, 0), *self._running(0, len(self))]
        ends = zip(first.tolist(), np.maximum(first, last).tolist(), strict=True)
        return [(sums[b][0] - sums[a][0], sums[b][1] - sums[a][1]) for a, b in ends]

    def _running(self, first: int, last: int) -> list[tuple[int, int]]:
        """Counts and sums from an entry on."""
        places = self.select(np.arange(first, last))
        keys, counts = self.keys_at(places).tolist(), self.payloads_at(places)[:, 0].tolist()
        sums = accumulate(self._numbers.get(tuple(k), 0) for k in keys)
        return list(zip(accumulate(counts), sums, strict=True))

    def _held(self, running: list[tuple[int, int]], within: Bounds, slopes: Bounds) -> list[bool]:
        low, high = (-math.inf, math.inf) if within == ANY else within
        start, end = slopes
        return [n > 0 and low <= total - start * n and total - end * n <= high for n, total in running]

    @property
    def nbytes(self) -> int:
        """Memory of the map, and of the numbers, about."""
        return self.nodes.nbytes + sum(100 + n.bit_length() // 8 for n in self._numbers.values())


class RunningExtremes(OrderedSums):
    """Entries whose keys end with a value, with a count: the greatest value so far is compared with bounds."""

    def __init__(self, width: int) -> None:
        super().__init__(width, (COUNTED,), nodes_know=EXTREME)

    def turns(self, first: int, last: int, within: Bounds, slopes: Bounds = LEVEL) -> Ints:
        """The ranks at which it turns whether the greatest value from ``first`` on is within bounds."""
        assert slopes == LEVEL, "an extreme does not move with the number of rows"
        found = [self._first(first, last, bound) for bound in (within[0], within[1] + 1)]
        if found[0] >= found[1]:
            return np.zeros(0, dtype=np.int64)
        return np.array([rank for rank in found if rank < last], dtype=np.int64)

    def is_within(self, first: Ints, last: Ints, within: Bounds, slopes: Bounds = LEVEL) -> Bools:
        """Whether the greatest values of the entries between ranks are within bounds."""
        assert slopes == LEVEL, "an extreme does not move with the number of rows"
        reached = [self._reach(first, last, bound) < last for bound in (within[0], within[1] + 1)]
        held: Bools = (first < last) & reached[0] & ~reached[1]
        return held

    def _first(self, first: int, last: int, least: int) -> int:
        return int(self._reach(np.array([first]), np.array([last]), least)[0])

    def _reach(self, first: Ints, last: Ints, least: int) -> Ints:
        """The first rank, between two, with a value not below ``least``; the second of them if there is none."""
        if least > _GREATEST:
            return last
        found = np.empty(len(first), dtype=np.int64)
        kernels.reach(self.nodes, self.meta, first, last, max(least, _LEAST), found)
        return found

    def reaching(self, first: Ints, last: Ints, least: Ints, most: Ints | None = None) -> tuple[Ints, Ints]:
        """Pairs of a range of ranks and a rank in it whose value is not below the range's ``least``, ``most`` of each range."""
        first, room = first.copy(), _FEW + len(first)
        most = np.full(len(first), _GREATEST, dtype=np.int64) if most is None else most.copy()
        parts: list[tuple[Ints, Ints]] = []
        start = 0
        while True:
            rows, ranks = np.empty((2, room), dtype=np.int64)
            count = kernels.reach_all(self.nodes, self.meta, first, last, least, most, start, rows, ranks)
            parts.append((rows[:count], ranks[:count]))
            if count < room:
                break
            start, room = int(rows[-1]), 4 * room
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def at(self, ranks: Ints) -> Ints:
        """The place of the entry with each rank, from 0."""
        return self.select(ranks)


def _line(start: int, slope: int, counts: Ints) -> Ints:
    """Where a bound is for so many rows, as numbers of 128 bits."""
    starts = np.broadcast_to(wide.from_ints([start]), (len(counts), 2)).copy()
    if slope == 0:
        return starts
    return wide.add(
        starts, wide.multiply_word(np.broadcast_to(wide.from_ints([slope]), starts.shape).copy(), counts)[0]
    )


def _split(number: int) -> tuple[int, int]:
    """The two words of a number of 128 bits, the low one as a signed word."""
    low = number % _WORD
    return low - _WORD if low >= 1 << 63 else low, number >> 64
