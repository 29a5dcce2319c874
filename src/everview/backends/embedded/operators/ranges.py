"""Joins on inequalities: an ordered index by the compared column yields the rows within the bounds.

Where a second column is compared, too, the index is a tree whose nodes know the greatest value of that column below them. Of
the rows within the bounds, those whose second column reaches a value are then found one after another, each in O(log N).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.backends.embedded.cut_search import CutSearch
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.order_words import plain_order_words, stacked, values_from_words
from everview.backends.embedded.state.float_order import float_order
from everview.backends.embedded.state.ordered import OrderedIndex, Texts
from everview.backends.embedded.state.running_values import RunningExtremes
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Ints, KeyLayout, Kind, Vector, empty_values, kind_of
from everview.relational.range_condition import RangeAccess, RangeSearch, is_text

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def range_words(vector: Vector) -> Ints:
    """A word for each value, whose signed order is that of the values."""
    return float_order(vector.values) if kind_of(vector.type) is Kind.FLOAT else vector.values


class RangeIndex:
    """The slots of a map in the order of some key words, then of one column's value; NULLs match nothing and are left out.

    An entry is the words of the group, those of the value, the slot, and the word of the second column, if there is one.
    Where the access ``keeps_nulls``, the slots left out are in an order of their own, by the words of the group.
    """

    def __init__(
        self, rows: WeightMap, layout: KeyLayout, keys: Sequence[int], access: RangeAccess, texts: Texts | None = None
    ) -> None:
        self._rows = rows
        self._layout = layout
        self._words = list(layout.words(keys))
        self._access = access
        self._type = layout.types[access.column]
        self.texts = texts if is_text(self._type) else None
        """What codes stand for, where the column is a text."""
        assert is_text(self._type) == (self.texts is not None), "texts are compared by their bytes"
        self._value_words = 2 if kind_of(self._type) is Kind.WIDE else 1
        self._slot = len(self._words) + self._value_words
        self._index = self._empty()
        self._nulls = OrderedIndex(len(self._words) + 1, [], None) if access.keeps_nulls else None
        self.add(rows.live_slots())

    def _empty(self) -> OrderedIndex | RunningExtremes:
        if self._access.reach is not None:
            return RunningExtremes(self._slot + 2)
        text = [*([0] * len(self._words)), 1] if self.texts is not None else []
        return OrderedIndex(self._slot + 1, text, self.texts)

    def clear(self) -> None:
        """Forgets all slots."""
        self._index = self._empty()
        if self._nulls is not None:
            self._nulls = OrderedIndex(len(self._words) + 1, [], None)

    def add(self, slots: Ints) -> None:
        """Takes in slots that have been created."""
        self._change(slots, 1)

    def remove(self, slots: Ints) -> None:
        """Drops slots that have been removed, while their keys can still be read."""
        self._change(slots, -1)

    def _change(self, slots: Ints, weight: int) -> None:
        stored = self._rows.entries_at(slots)
        picked = self._layout.pick(stored, self._access.columns)
        known = [~v.nulls for v in picked if v.nulls is not None]
        if known:
            kept = np.logical_and.reduce(known)
            if self._nulls is not None and not kept.all():
                left_out = np.column_stack([stored[~kept][:, self._words], slots[~kept]])
                self._nulls.add(np.ascontiguousarray(left_out), np.full(len(left_out), weight, dtype=np.int64))
            stored, slots, picked = stored[kept], slots[kept], tuple(v.take(kept) for v in picked)
        if not len(slots):
            return
        entries = np.empty((len(slots), self._index.width), dtype=np.int64)
        if self._words:
            entries[:, : len(self._words)] = stored[:, self._words]
        for place, word in enumerate(self._value_columns(picked[0]), len(self._words)):
            entries[:, place] = word
        entries[:, self._slot] = slots
        weights = np.full(len(slots), weight, dtype=np.int64)
        if isinstance(self._index, OrderedIndex):
            self._index.add(entries, weights)
        else:
            reached = range_words(picked[1])
            entries[:, -1] = reached if self._access.reaches_up else ~reached
            if weight > 0 and not len(self._index):
                self._index.put(entries, weights.reshape(-1, 1))
            else:
                self._index.add(entries, weights.reshape(-1, 1))

    def words(self, vector: Vector) -> Ints:
        """What stands for values of the column in a bound, behind the words of the group."""
        return stacked(self._value_columns(vector), len(vector))

    def _value_columns(self, vector: Vector) -> list[Ints]:
        return plain_order_words(vector) if self.texts is None else [vector.values]

    def rank(self, bounds: Ints, *, after: bool = False) -> Ints:
        """How many entries are below each bound (``after``: not above it)."""
        return self._index.rank(bounds, after=after)

    def values_at(self, ranks: Ints) -> Vector:
        """The column in the entries with these ranks."""
        keys = self._index.keys_at(self._index.at(ranks))
        return Vector(self._type, values_from_words(keys[:, len(self._words) : self._slot], self._type))

    def group(self, prefix: Ints) -> tuple[Ints, Ints]:
        """The ranks between which the entries of each group are."""
        if self._words:
            return self.rank(prefix), self.rank(prefix, after=True)
        return np.zeros(len(prefix), dtype=np.int64), np.full(len(prefix), len(self._index), dtype=np.int64)

    @property
    def nothing(self) -> Vector:
        """A NULL of the column."""
        return Vector(self._type, empty_values(self._type, 1), np.ones(1, dtype=np.bool_))

    @property
    def has_nulls(self) -> bool:
        """Whether rows without a value are kept, and there are some."""
        return self._nulls is not None and len(self._nulls) > 0

    def without_value(self, prefix: Ints) -> tuple[Ints, Ints]:
        """Pairs of a number of a group and the slot of a row in it that has no value."""
        assert self._nulls is not None
        first, last = np.zeros(len(prefix), dtype=np.int64), np.full(len(prefix), len(self._nulls), dtype=np.int64)
        if self._words:
            first, last = self._nulls.rank(prefix), self._nulls.rank(prefix, after=True)
        rows, places = self._nulls.from_ranks(first, last - first)
        return rows, self._nulls.rows[places, -1]

    def prefix(self, keys: Ints) -> Ints:
        """The words of the group in keys of the joined columns."""
        return np.ascontiguousarray(keys[:, : len(self._words)])

    def some(self, first: Ints, last: Ints, most: Ints | None = None) -> tuple[Ints, Ints]:
        """Pairs of a number of a stretch and a slot in it, in order; of each stretch ``most`` slots at most."""
        assert isinstance(self._index, OrderedIndex)
        counts = np.maximum(last - first, 0)
        if most is not None:
            counts = np.minimum(counts, most)
        rows, places = self._index.from_ranks(first, counts)
        return rows, self._index.rows[places, self._slot]

    def some_reaching(self, first: Ints, last: Ints, least: Ints, most: Ints | None = None) -> tuple[Ints, Ints, Ints]:
        """The same of those that reach a word, and the ranks."""
        assert isinstance(self._index, RunningExtremes)
        rows, ranks = self._index.reaching(first, last, least, most)
        return rows, self._index.keys_at(self._index.at(ranks))[:, self._slot].copy(), ranks

    def between(
        self, group: Ints, low: tuple[int, ...] | None, high: tuple[int, ...] | None, *, includes_low: bool
    ) -> Ints:
        """The slots of a group's rows between two places: with the first and without the second, or the other way round."""
        first, last = self.group(group.reshape(1, -1))
        bounds = [[*group.tolist(), *bound] for bound in (low, high) if bound is not None]
        if bounds:
            ranks = self.rank(np.array(bounds), after=not includes_low)
            first = first if low is None else ranks[:1]
            last = last if high is None else ranks[-1:]
            if last[0] <= first[0]:
                return ranks[:0]
        return self.some(first, last)[1]

    @property
    def nbytes(self) -> int:
        """Bytes of the index."""
        return self._index.nbytes + (0 if self._nulls is None else self._nulls.nbytes)


@dataclass(slots=True)
class Stretches:
    """For each probing row the ranks between which its partners are, as far as they have not been taken."""

    index: RangeIndex
    first: Ints
    last: Ints
    least: Ints | None
    """What the second column has to reach, where there is one."""
    failing: tuple[Ints, Ints] | None = None
    """Pairs of a probing row and the slot of a row without a value, on which checking the condition may fail."""

    def take(self, most: Ints | None = None) -> tuple[Ints, Ints]:
        """Pairs of a probing row and a slot, of each row ``most`` at most; the next call goes on behind them.

        The first call has those on which the condition may fail, too.
        """
        if self.least is None:
            rows, slots = self.index.some(self.first, self.last, most)
            self.first = self.last if most is None else np.minimum(self.first + most, self.last)
            if self.failing is not None:
                rows, slots = np.concatenate([rows, self.failing[0]]), np.concatenate([slots, self.failing[1]])
                order, self.failing = np.argsort(rows, kind="stable"), None
                rows, slots = rows[order], slots[order]
            return rows, slots
        rows, slots, ranks = self.index.some_reaching(self.first, self.last, self.least, most)
        taken = np.bincount(rows, minlength=len(self.first))
        is_over = taken < most if most is not None else np.ones(len(taken), dtype=np.bool_)
        self.first = self.first.copy()
        self.first[rows] = ranks + 1  # in order: the last of each row counts
        self.first[is_over] = self.last[is_over]
        return rows, slots

    def has_more(self) -> Ints:
        """The rows of which something may be left."""
        return np.flatnonzero(self.first < self.last)

    def of(self, rows: Ints) -> Stretches:
        """The same for some of the rows, of which some partners have been taken."""
        assert self.failing is None, "they come first"
        return Stretches(
            self.index, self.first[rows], self.last[rows], None if self.least is None else self.least[rows]
        )


class RangeProbe:
    """How rows with so many columns search an index."""

    def __init__(self, search: RangeSearch, width: int, dictionary: Dictionary) -> None:
        self.access = search.access
        self._cuts = [CutSearch(cut, width, dictionary) for cut in search.cuts]
        self._reach = search.reach
        self._reached = None if search.reach is None else compile_projection((search.reach.value,), dictionary)

    @property
    def bounds(self) -> str:
        """How the order is bounded, for ``explain``."""
        return "both bounds" if len({cut.is_from for cut in self._cuts}) > 1 else "one bound"

    @property
    def has_one_bound(self) -> bool:
        """Whether one comparison bounds the order, and nothing else is compared."""
        return len(self._cuts) == 1 and self._reach is None

    @property
    def is_from(self) -> bool:
        """Whether what is found begins at the first bound, and ends with the order."""
        return self._cuts[0].is_from

    def stretches(self, index: RangeIndex, keys: Ints, known: Sequence[Vector]) -> Stretches:
        """Where the partners of rows are, whose keys and columns are given.

        Where a comparison fails for a row, neither it nor those behind it bound its partners: checking the pairs will fail.
        """
        prefix = index.prefix(keys)
        first, last = index.group(prefix)
        rows = np.arange(len(keys))
        for cut in self._cuts:
            part = prefix, known, first, last
            if len(rows) < len(keys):
                part = prefix[rows], [v.take(rows) for v in known], first[rows], last[rows]
            if cut.can_fail:
                rows = rows[cut.is_sure(index, *part[1:])]
                part = prefix[rows], [v.take(rows) for v in known], first[rows], last[rows]
            ranks = cut.find(index, *part)
            if cut.is_from:
                first[rows] = np.maximum(first[rows], ranks)
            else:
                last[rows] = np.minimum(last[rows], ranks)
        least = None if self._reached is None else self._least(known, rows, first, last)
        return Stretches(index, first, last, least, self._failing(index, prefix, known) if index.has_nulls else None)

    def _failing(self, index: RangeIndex, prefix: Ints, known: Sequence[Vector]) -> tuple[Ints, Ints] | None:
        """The rows for which a comparison may fail beside a NULL, with all such partners."""
        risky = (c.fails_without(known, index.nothing, len(prefix)) for c in self._cuts if c.can_fail)
        rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *risky]))
        if not len(rows):
            return None
        numbers, slots = index.without_value(prefix[rows])
        return rows[numbers], slots

    def _least(self, known: Sequence[Vector], rows: Ints, first: Ints, last: Ints) -> Ints:
        """What the second column has to reach; rows for which nothing does get no stretch."""
        assert self._reached is not None
        assert self._reach is not None
        (value,) = self._reached(known, len(first))
        words = range_words(value)[rows]
        words = words if self.access.reaches_up else ~words
        is_none = np.zeros(len(rows), dtype=np.bool_) if value.nulls is None else value.nulls[rows]
        if self._reach.comparison in ("<", ">"):
            is_none = is_none | (words == _GREATEST)
            words = words + (words < _GREATEST)
        last[rows[is_none]] = first[rows[is_none]]
        least = np.full(len(first), _LEAST, dtype=np.int64)
        least[rows] = words
        return least
