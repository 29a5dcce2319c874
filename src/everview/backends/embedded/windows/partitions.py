"""Sorted rows as often as they occur, with the positions at which each one's partition and peers begin and end."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from everview.backends.embedded.vectors import AnyArray, Bools, Ints, Vector, empty_values
from everview.backends.embedded.windows.sorted_rows import SortedRows
from everview.relational.types import DataType


class Partitions:
    """A view of sorted rows in which row i occurs ``weights[i]`` times, for each of several worlds one after the other.

    The old and the new rows are two worlds: a partition of one has nothing to do with that of the other, but both are
    computed together. Positions are those of the repeated rows; ``rows`` leads back to the sorted ones.
    """

    def __init__(self, source: SortedRows, *worlds: Ints) -> None:
        self.source = source
        sorted_rows = np.arange(source.count)
        repeated = [np.repeat(sorted_rows, weights) for weights in worlds]
        self.rows: Ints = np.concatenate(repeated)
        self.count = len(self.rows)
        self.worlds: Ints = np.cumsum([0, *(len(r) for r in repeated)])
        """Where each world begins, and where the last one ends."""
        world = np.repeat(np.arange(len(worlds)), np.diff(self.worlds)) * source.count
        self.partition_start, self.partition_end, _ = _runs(source.partition[self.rows] + world)
        self.peer_start, self.peer_end, self.peer_number = _runs(source.peers[self.rows] + world)
        self.known: dict[Hashable, tuple[Ints, Ints]] = {}
        """Bounds of frames, by frame: functions over equal frames share them."""

    @property
    def positions(self) -> Ints:
        """The numbers 0, 1, 2, … of the rows."""
        return np.arange(self.count)

    def spread(self, vector: Vector) -> Vector:
        """A column of the sorted rows as a column of this view."""
        return vector.take(self.rows)


def _runs(numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """For each position the begin, end and ordinal of its run of equal numbers."""
    is_first = np.ones(len(numbers), dtype=np.bool_)
    is_first[1:] = numbers[1:] != numbers[:-1]
    begins = np.flatnonzero(is_first)
    ends = np.append(begins[1:], len(numbers))
    ordinals = np.cumsum(is_first) - 1
    return begins[ordinals], ends[ordinals], ordinals


def with_nulls(data_type: DataType, values: AnyArray, nulls: Bools | None) -> Vector:
    """A vector with 0 beneath its NULLs; ``values`` must be the caller's own."""
    if nulls is None or not nulls.any():
        return Vector(data_type, values)
    values[nulls] = 0
    return Vector(data_type, values, nulls)


def gathered(vector: Vector, positions: Ints, found: Bools) -> Vector:
    """The values at these positions, NULL where nothing is found."""
    if not len(vector):
        return Vector(vector.type, empty_values(vector.type, 0))
    taken = vector.take(np.where(found, positions, 0))
    missing = ~found
    return with_nulls(vector.type, taken.values, missing if taken.nulls is None else missing | taken.nulls)
