"""Joins on inequalities: an ordered index by the compared column yields the rows within the bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.order_words import plain_order_words
from everview.backends.embedded.state.float_order import float_order
from everview.backends.embedded.state.ordered import OrderedIndex
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Ints, KeyLayout, Kind, Vector, kind_of
from everview.relational.range_condition import RangeAccess, RangeLimit
from everview.relational.types import DataType

_ALL = (1 << 64) - 1
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def range_words(vector: Vector) -> Ints:
    """A word for each value, whose signed order is that of the values."""
    return float_order(vector.values) if kind_of(vector.type) is Kind.FLOAT else vector.values


def index_words(vector: Vector) -> Ints:
    """A row of words for each value, in the order of the values: two for wide decimals, one for others."""
    return np.column_stack(plain_order_words(vector)) if is_wide(vector.type) else range_words(vector).reshape(-1, 1)


def is_wide(data_type: DataType) -> bool:
    """Whether the order of the values needs two words."""
    return kind_of(data_type) is Kind.WIDE


def words_of(number: int, data_type: DataType) -> tuple[int, ...] | None:
    """The words of a place in the order of a type, whose values are numbers; None behind all values."""
    limit = 1 << 127 if is_wide(data_type) else 1 << 63
    if number >= limit:
        return None
    number = max(number, -limit)
    return (number >> 64, (number & _ALL) + _LEAST) if is_wide(data_type) else (number,)


class RangeIndex:
    """The slots of a map in the order of some key words, then of one column's value; NULLs match nothing and are left out."""

    def __init__(self, rows: WeightMap, layout: KeyLayout, keys: Sequence[int], access: RangeAccess) -> None:
        self._rows = rows
        self._layout = layout
        self._words = list(layout.words(keys))
        self._access = access
        self._value_words = 2 if is_wide(layout.types[access.column]) else 1
        self._index = OrderedIndex(len(self._words) + self._value_words + 1)
        self.add(rows.live_slots())

    def clear(self) -> None:
        """Forgets all slots."""
        self._index = OrderedIndex(len(self._words) + self._value_words + 1)

    def add(self, slots: Ints) -> None:
        """Takes in slots that have been created."""
        self._change(slots, 1)

    def remove(self, slots: Ints) -> None:
        """Drops slots that have been removed, while their keys can still be read."""
        self._change(slots, -1)

    def _change(self, slots: Ints, weight: int) -> None:
        stored = self._rows.keys[slots]
        (value,) = self._layout.pick(stored, [self._access.column])
        if value.nulls is not None:
            kept = ~value.nulls
            stored, slots, value = stored[kept], slots[kept], value.take(kept)
        if not len(slots):
            return
        entries = np.empty((len(slots), len(self._words) + self._value_words + 1), dtype=np.int64)
        entries[:, : len(self._words)] = stored[:, self._words]
        entries[:, len(self._words) : -1] = index_words(value)
        entries[:, -1] = slots
        self._index.add(entries, np.full(len(slots), weight, dtype=np.int64))

    def matches(self, keys: Ints, bounds: Sequence[Vector], kept: Ints | None) -> tuple[Ints, Ints]:
        """Pairs of a probing row and a slot, for the probing rows' keys and the columns of their batch."""
        low, high = (self._bound(keys, bounds, kept, b) for b in (self._access.low, self._access.high))
        known = _known(bounds, (self._access.low, self._access.high), kept, len(keys))
        if known is not None:
            low, high = low[known], high[known]
        low_open = self._access.low is not None and self._access.low.is_open
        high_open = self._access.high is not None and self._access.high.is_open
        rows, places = self._index.ranges(
            self._or_extreme(low, self._access.low, _LEAST),
            self._or_extreme(high, self._access.high, _GREATEST),
            low_open=low_open,
            high_open=high_open,
        )
        slots = self._index.keys_at(places)[:, -1].copy()
        rows = rows if known is None else known[rows]
        return (rows if kept is None else kept[rows]), slots

    def between(
        self, group: Ints, low: tuple[int, ...] | None, high: tuple[int, ...] | None, *, includes_low: bool
    ) -> Ints:
        """The slots of a group's rows between two places: with the first and without the second, or the other way round."""
        rows = group.reshape(1, -1)
        ends = []
        for words, extreme in ((low, _LEAST), (high, _GREATEST)):
            if words is None and len(group):
                ends.append(rows)
            else:
                ends.append(np.append(rows, [[extreme] if words is None else words], axis=1))
        low_open, high_open = low is not None and not includes_low, high is not None and includes_low
        places = self._index.ranges(*(np.ascontiguousarray(e) for e in ends), low_open=low_open, high_open=high_open)[1]
        return self._index.keys_at(places)[:, -1].copy()

    def _bound(self, keys: Ints, bounds: Sequence[Vector], kept: Ints | None, bound: RangeLimit | None) -> Ints:
        prefix = keys[:, : len(self._words)]
        if bound is None:
            return np.ascontiguousarray(prefix)
        values = range_words(bounds[bound.column] if kept is None else bounds[bound.column].take(kept))
        return np.column_stack([prefix, values])

    def _or_extreme(self, rows: Ints, bound: RangeLimit | None, extreme: int) -> Ints:
        """A bound needs a word to compare: without keys and without a limit, the extreme of all words."""
        if bound is None and not self._words:
            return np.full((len(rows), 1), extreme, dtype=np.int64)
        return np.ascontiguousarray(rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the index."""
        return self._index.nbytes


def _known(
    columns: Sequence[Vector], bounds: tuple[RangeLimit | None, RangeLimit | None], kept: Ints | None, count: int
) -> Ints | None:
    """The probing rows whose bounds are not NULL; None for all."""
    mask = np.ones(count, dtype=np.bool_)
    for bound in bounds:
        nulls = None if bound is None else columns[bound.column].nulls
        if nulls is not None:
            mask &= ~(nulls if kept is None else nulls[kept])
    return None if mask.all() else np.flatnonzero(mask)
