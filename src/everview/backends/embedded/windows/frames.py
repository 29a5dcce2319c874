"""Frames as positions: for every row the half-open range of rows that it sees, never beyond its partition.

ROWS bounds are the row's own position plus an offset. RANGE bounds at the current row are those of its peers. RANGE bounds at
an offset are found by binary search, for all rows at once, for the order value plus the offset among the order values of the
partition that are not NULL; a row whose order value is NULL sees its peers, the NULLs.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.order_words import order_words
from everview.backends.embedded.vectors import Bools, Ints, Vector, kind_of
from everview.backends.embedded.windows.arguments import Arguments
from everview.backends.embedded.windows.partitions import Partitions
from everview.relational.evaluate import evaluate
from everview.relational.expressions import Cast, Expression
from everview.relational.nodes import Frame, FrameUnit, SortKey
from everview.relational.range_frame import range_bound
from everview.relational.types import Decimal

_WIDEST_OFFSET = 1 << 40
"""ROWS offsets are cut here: no partition has so many rows, and positions plus offsets stay far from overflow."""


class FrameBounds:
    """One frame of a window; ``is_comparable`` says whether this module can find its bounds."""

    def __init__(self, frame: Frame, order: tuple[SortKey, ...], dictionary: Dictionary) -> None:
        self._frame = frame
        self._lower: _RangeSearch | None = None
        self._upper: _RangeSearch | None = None
        self.is_comparable = True
        if frame.unit is FrameUnit.RANGE and order:
            self._lower = self._search(frame.lower, order, dictionary, after=False)
            self._upper = self._search(frame.upper, order, dictionary, after=True)

    def _search(
        self, offset: Expression | None, order: tuple[SortKey, ...], dictionary: Dictionary, *, after: bool
    ) -> _RangeSearch | None:
        if offset is None or evaluate(offset) == 0:
            return None
        (key,) = order
        bound = range_bound(key.expression, offset, descending=key.descending, zone=self._frame.zone)
        value = _comparable(key.expression, bound)
        if value is None:
            self.is_comparable = False
            return None
        return _RangeSearch(value, bound, key, dictionary, after=after)

    def definitions(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The bounds that Python computes."""
        return tuple(d for s in (self._lower, self._upper) if s is not None for d in s.arguments.definitions(names))

    def __call__(self, view: Partitions) -> tuple[Ints, Ints]:
        """The begin and the end of each row's frame; an empty frame begins where it ends."""
        known = view.known.get(self._frame)
        if known is None:
            known = view.known[self._frame] = (
                self._rows(view) if self._frame.unit is FrameUnit.ROWS else self._range(view)
            )
        return known

    def _rows(self, view: Partitions) -> tuple[Ints, Ints]:
        start, end = view.partition_start, view.partition_end
        if self._frame.lower is not None:
            start = np.clip(view.positions + _rows_offset(self._frame.lower), start, end)
        if self._frame.upper is not None:
            end = np.clip(view.positions + (_rows_offset(self._frame.upper) + 1), start, end)
        return start, end

    def _range(self, view: Partitions) -> tuple[Ints, Ints]:
        start, end = view.partition_start, view.partition_end
        if self._frame.lower is not None:
            start = view.peer_start if self._lower is None else self._lower(view)
        if self._frame.upper is not None:
            end = view.peer_end if self._upper is None else self._upper(view)
        return start, np.maximum(start, end)


def _rows_offset(offset: Expression) -> int:
    return max(-_WIDEST_OFFSET, min(_WIDEST_OFFSET, int(evaluate(offset))))


def _comparable(value: Expression, bound: Expression) -> Expression | None:
    """The order value as something whose words compare with the bound's; None where only exact decimals would do."""
    if not isinstance(value.type, Decimal) or not isinstance(bound.type, Decimal):
        return value if kind_of(value.type) is kind_of(bound.type) else None
    fraction = bound.type.scale - value.type.scale
    whole = bound.type.precision - value.type.precision - fraction
    if fraction < 0 or whole < 0:
        return None  # the sum would have needed more than 38 digits
    return value if value.type == bound.type else Cast(value, bound.type)


class _RangeSearch:
    """The first position of the partition at which the order value reaches the bound (or, ``after``, exceeds it)."""

    def __init__(
        self, value: Expression, bound: Expression, key: SortKey, dictionary: Dictionary, *, after: bool
    ) -> None:
        self.arguments = Arguments((value, bound), dictionary)
        self._key = key
        self._dictionary = dictionary
        self._after = after

    def __call__(self, view: Partitions) -> Ints:
        values, bounds = self.arguments(view)
        low, high = view.partition_start, view.partition_end
        peers = view.peer_end if self._after else view.peer_start
        if values.nulls is None:
            return self._search(self._words(values), self._words(bounds), low, high)
        known = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(~values.nulls)])
        count = known[high] - known[low]
        first = high - count if self._key.nulls_first else low
        found = self._search(self._words(values), self._words(bounds), first, first + count)
        return np.where(values.nulls, peers, found)

    def _words(self, vector: Vector) -> list[Ints]:
        nulls_first = self._key.nulls_first
        return order_words(vector, self._dictionary, descending=self._key.descending, nulls_first=nulls_first)[1:]

    def _search(self, values: list[Ints], bounds: list[Ints], low: Ints, high: Ints) -> Ints:
        """Binary search in [low, high), a step for all rows at a time."""
        low, high = low.copy(), high.copy()
        rows = np.flatnonzero(low < high)
        while len(rows):
            middle = (low[rows] + high[rows]) >> 1
            is_before = self._is_before([v[middle] for v in values], [b[rows] for b in bounds])
            low[rows] = np.where(is_before, middle + 1, low[rows])
            high[rows] = np.where(is_before, high[rows], middle)
            rows = rows[low[rows] < high[rows]]
        return low

    def _is_before(self, values: list[Ints], bounds: list[Ints]) -> Bools:
        is_before: Bools = values[-1] <= bounds[-1] if self._after else values[-1] < bounds[-1]
        for value, bound in zip(reversed(values[:-1]), reversed(bounds[:-1]), strict=True):
            is_before = (value < bound) | ((value == bound) & is_before)
        return is_before
