"""Functions of positions: ranks, and the values of rows at a distance or at the ends of a frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.vectors import AnyArray, Bools, Ints, Vector
from everview.backends.embedded.windows.arguments import Arguments, reached
from everview.backends.embedded.windows.frames import FrameBounds
from everview.backends.embedded.windows.function import WindowFunction, count_before
from everview.backends.embedded.windows.partitions import Partitions, gathered
from everview.relational.evaluate import evaluate
from everview.relational.nodes import WindowCall


class Ranking(WindowFunction):
    """A function of the positions of partitions and peers alone."""

    def __init__(self, call: WindowCall) -> None:
        self._type = call.type
        self._rank = RANKINGS[call.function]

    def _values(self, view: Partitions) -> Vector:
        return Vector(self._type, self._rank(view))


def _row_number(view: Partitions) -> Ints:
    return view.positions - view.partition_start + 1


def _rank(view: Partitions) -> Ints:
    return view.peer_start - view.partition_start + 1


def _dense_rank(view: Partitions) -> Ints:
    return view.peer_number - view.peer_number[view.partition_start] + 1


def _percent_rank(view: Partitions) -> AnyArray:
    others = np.maximum(view.partition_end - view.partition_start - 1, 1)
    ranks: AnyArray = (view.peer_start - view.partition_start) / others
    return ranks


def _cume_dist(view: Partitions) -> AnyArray:
    shares: AnyArray = (view.peer_end - view.partition_start) / (view.partition_end - view.partition_start)
    return shares


RANKINGS: dict[str, Callable[[Partitions], AnyArray]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
}


class Ntile(WindowFunction):
    """The number of the bucket, of buckets that differ by at most one row, the larger ones first."""

    def __init__(self, call: WindowCall) -> None:
        self._type = call.type
        self._buckets = int(evaluate(call.args[0]))

    def _values(self, view: Partitions) -> Vector:
        small, larger = np.divmod(view.partition_end - view.partition_start, self._buckets)
        place = view.positions - view.partition_start
        in_larger = larger * (small + 1)
        after = (place - in_larger) // np.maximum(small, 1) + larger
        return Vector(self._type, np.where(place < in_larger, place // (small + 1), after) + 1)


class Lead(WindowFunction):
    """The value some rows further on, or before, in the partition; NULLs may be stepped over."""

    def __init__(self, call: WindowCall, dictionary: Dictionary) -> None:
        self._value = Arguments(call.args[:1], dictionary)
        self._default = Arguments(call.args[2:], dictionary)
        self.parts = (self._value, self._default)
        self._offset = int(evaluate(call.args[1]))
        self._ignores_nulls = call.ignore_nulls and self._offset != 0

    def _values(self, view: Partitions) -> Vector:
        (value,) = self._value(view)
        if self._ignores_nulls and value.nulls is not None:
            places, found = self._known_places(view, ~value.nulls)
        else:
            places = view.positions + self._offset
            found = (places >= view.partition_start) & (places < view.partition_end)
        shifted = gathered(value, places, found)
        if found.all():
            return shifted
        missing = ~found
        (default,) = self._default(view, missing)
        values = shifted.values
        values[missing] = default.values[missing]
        nulls = missing & (False if default.nulls is None else default.nulls)
        if shifted.nulls is not None:
            nulls = nulls | (found & shifted.nulls)
        return Vector(value.type, values, nulls if nulls.any() else None)

    def _known_places(self, view: Partitions, is_known: Bools) -> tuple[Ints, Bools]:
        """The positions of the values that are so many known values away, and where there are as many."""
        known, before = np.flatnonzero(is_known), count_before(is_known)
        if self._offset > 0:
            ordinal = before[view.positions + 1] + self._offset - 1
            found = ordinal < before[view.partition_end]
        else:
            ordinal = before[view.positions] + self._offset
            found = ordinal >= before[view.partition_start]
        return _at(known, ordinal, found), found


class FrameValue(WindowFunction):
    """FIRST_VALUE, LAST_VALUE and NTH_VALUE of the frame."""

    def __init__(self, call: WindowCall, frame: FrameBounds, dictionary: Dictionary) -> None:
        self._value = Arguments(call.args[:1], dictionary)
        self.parts = (self._value,)
        self._frame = frame
        self._ignores_nulls = call.ignore_nulls
        self._is_last = call.function == "last_value"
        self._skipped = int(evaluate(call.args[1])) - 1 if call.function == "nth_value" else 0

    def _values(self, view: Partitions) -> Vector:
        start, end = self._frame(view)
        (value,) = self._value(view, reached(start, end) if self._value.can_fail else None)
        if not self._ignores_nulls or value.nulls is None:
            place = end - 1 if self._is_last else start + self._skipped
            return gathered(value, place, (start <= place) & (place < end))
        is_known = ~value.nulls
        known, before = np.flatnonzero(is_known), count_before(is_known)
        ordinal = before[end] - 1 if self._is_last else before[start] + self._skipped
        found = (before[start] <= ordinal) & (ordinal < before[end])
        return gathered(value, _at(known, ordinal, found), found)


def _at(known: Ints, ordinal: Ints, found: Bools) -> Ints:
    if not len(known):
        return np.zeros(len(ordinal), dtype=np.int64)
    return known[np.where(found, ordinal, 0)]
