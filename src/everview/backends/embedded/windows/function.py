"""The contract of a window function, and what all that look at frames share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.backends.embedded.windows.arguments import Arguments, reached
from everview.backends.embedded.windows.frames import FrameBounds
from everview.backends.embedded.windows.partitions import Partitions
from everview.relational.nodes import WindowCall


class Explained(Protocol):
    """A part of a function that may have to be computed in Python."""

    def definitions(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """What Python computes of it, as text over the names of the columns."""


class WindowFunction:
    """One window function, for all rows of a view that has at least one."""

    parts: tuple[Explained, ...] = ()

    def __call__(self, view: Partitions) -> Vector:
        """The value for each row."""
        return self._values(view)

    def _values(self, view: Partitions) -> Vector:
        raise NotImplementedError

    def definitions(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """What Python computes of it, as text over the names of the columns."""
        return tuple(d for part in self.parts for d in part.definitions(names))


class FrameArguments:
    """The arguments of an aggregate over frames: values, and which rows count."""

    def __init__(self, call: WindowCall, frame: FrameBounds, dictionary: Dictionary) -> None:
        self.frame = frame
        self._arguments = Arguments(call.args, dictionary)
        self._filter = None if call.filter is None else Arguments((call.filter,), dictionary)
        self._can_fail = self._arguments.can_fail or (self._filter is not None and self._filter.can_fail)

    def definitions(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """What Python computes of them."""
        filtered = () if self._filter is None else self._filter.definitions(names)
        return (*self._arguments.definitions(names), *filtered)

    def __call__(self, view: Partitions) -> tuple[tuple[Vector, ...], Bools]:
        """The arguments, and which rows the filter keeps."""
        start, end = self.frame(view)
        needed = reached(start, end) if self._can_fail else np.ones(view.count, dtype=np.bool_)
        if self._filter is not None:
            (kept,) = self._filter(view, needed)
            needed = needed & (kept.values != 0)
            if kept.nulls is not None:
                needed &= ~kept.nulls
        return self._arguments(view, needed), needed


def without_nulls(vectors: Sequence[Vector], mask: Bools) -> Bools:
    """The rows of the mask in which no value is NULL."""
    for vector in vectors:
        if vector.nulls is not None:
            mask = mask & ~vector.nulls
    return mask


def count_before(mask: Bools) -> Ints:
    """How many rows of the mask come before each position, and before the end."""
    counts = np.zeros(len(mask) + 1, dtype=np.int64)
    np.cumsum(mask, out=counts[1:])
    return counts


def count_within(mask: Bools, start: Ints, end: Ints) -> Ints:
    """How many rows of the mask lie in each frame."""
    before = count_before(mask)
    return before[end] - before[start]


def partitions_with(view: Partitions, mask: Bools) -> Bools:
    """The rows of the partitions that have a row of the mask."""
    if not mask.any():
        return mask
    return count_within(mask, view.partition_start, view.partition_end) > 0
