"""Joins on inequalities: an ordered index by the compared column yields the rows within the bounds.

The ranges found are only candidates: the whole condition is checked on the pairs afterwards, so an access path can be
narrower than the condition or not exist at all, and never changes an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.backends.embedded.state.float_order import float_order
from everview.backends.embedded.state.ordered import OrderedIndex
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Ints, KeyLayout, Kind, Vector, kind_of
from everview.relational.expressions import Call, Column, Expression, conjuncts

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class RangeLimit:
    """A column of the probing side that limits the indexed column, and whether the limit itself is outside."""

    column: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class RangeAccess:
    """``low ≤ column ≤ high`` with the column on the indexed side and the bounds on the probing one."""

    column: int
    low: RangeLimit | None = None
    high: RangeLimit | None = None


def range_accesses(condition: Expression | None, width: int) -> tuple[RangeAccess | None, RangeAccess | None]:
    """How the left and the right side can be searched, given a condition over left (``width`` columns) ++ right."""
    left: dict[int, dict[str, RangeLimit]] = {}
    right: dict[int, dict[str, RangeLimit]] = {}
    for part in conjuncts(condition) if condition is not None else ():
        if not (isinstance(part, Call) and part.function in _MIRRORED):
            continue
        a, b = part.args
        if not (isinstance(a, Column) and isinstance(b, Column)) or kind_of(a.type) not in (Kind.INT, Kind.FLOAT):
            continue
        function = part.function
        if a.index >= width > b.index:
            a, b, function = b, a, _MIRRORED[function]
        if not a.index < width <= b.index:
            continue
        is_open = function in ("<", ">")
        side = "high" if function in ("<", "<=") else "low"
        other = "low" if side == "high" else "high"
        left.setdefault(a.index, {})[side] = RangeLimit(b.index - width, is_open)
        right.setdefault(b.index - width, {})[other] = RangeLimit(a.index, is_open)
    return _tightest(left), _tightest(right)


def _tightest(bounds: dict[int, dict[str, RangeLimit]]) -> RangeAccess | None:
    """The column with the most bounds."""
    if not bounds:
        return None
    column = max(bounds, key=lambda c: (len(bounds[c]), -c))
    return RangeAccess(column, bounds[column].get("low"), bounds[column].get("high"))


def _word(vector: Vector) -> Ints:
    return float_order(vector.values) if kind_of(vector.type) is Kind.FLOAT else vector.values


class RangeIndex:
    """The slots of a map in the order of some key words, then of one column's value; NULLs match nothing and are left out."""

    def __init__(self, rows: WeightMap, layout: KeyLayout, keys: Sequence[int], access: RangeAccess) -> None:
        self._rows = rows
        self._layout = layout
        self._words = list(layout.words(keys))
        self._access = access
        self._index = OrderedIndex(len(self._words) + 2)
        self.add(rows.live_slots())

    def clear(self) -> None:
        """Forgets all slots."""
        self._index = OrderedIndex(len(self._words) + 2)

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
        entries = np.empty((len(slots), len(self._words) + 2), dtype=np.int64)
        entries[:, :-2] = stored[:, self._words]
        entries[:, -2] = _word(value)
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

    def _bound(self, keys: Ints, bounds: Sequence[Vector], kept: Ints | None, bound: RangeLimit | None) -> Ints:
        prefix = keys[:, : len(self._words)]
        if bound is None:
            return np.ascontiguousarray(prefix)
        values = _word(bounds[bound.column] if kept is None else bounds[bound.column].take(kept))
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
