"""Exact numbers that must not overflow, bounded by the largest magnitudes that the atoms of a block have held.

Bounds only grow: a value that has gone may still be counted. A number that could leave its range for *some* combination of
values within the bounds ends the tree, though no joined row may have it; rows summed one by one then say what Spark would say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.tree.layout import WATCHED_RANGE
from everview.backends.embedded.tree.machine import range_error
from everview.backends.embedded.vectors import Batch, Vector
from everview.planner.block import Block
from everview.planner.block_join_builder import columns_in
from everview.relational.bounds import exact_bound, type_bound

Place = tuple[int, int]
"""An atom, and a column of its input."""


class WatchedNumbers:
    """The largest magnitudes of the columns that the block's watches read."""

    def __init__(self, block: Block) -> None:
        self._watches = block.watches
        self._largest: dict[Place, int] = {
            watch.places[column.index]: 0
            for watch in block.watches
            for column in columns_in(watch.number)
            if type_bound(column.type) is not None  # others only decide, as in CASE WHEN x > 0.5 THEN i ELSE j END
        }
        self._before: dict[Place, int] = {}

    def admit(self, deltas: Sequence[Batch | None]) -> None:
        """Takes note of the values of changes, one for each atom.

        Raises:
            TreeOutgrown: with them, a number could overflow.
        """
        is_larger = False
        for (atom, column), known in self._largest.items():
            delta = deltas[atom]
            if delta is None or not len(delta):
                continue
            magnitude = _magnitude(delta.columns[column])
            if magnitude > known:
                self._before.setdefault((atom, column), known)
                self._largest[atom, column] = magnitude
                is_larger = True
        if is_larger and not all(self._fits(i) for i in range(len(self._watches))):
            raise range_error(WATCHED_RANGE)

    def _fits(self, number: int) -> bool:
        watch = self._watches[number]
        return exact_bound(watch.number, lambda column: self._largest.get(watch.places[column.index])) is not None

    def commit(self) -> None:
        """The changes stay."""
        self._before.clear()

    def rollback(self) -> None:
        """The changes since the last commit never were."""
        self._largest |= self._before
        self._before.clear()


def _magnitude(vector: Vector) -> int:
    """A bound on the absolute values of a column of integers or decimals; the high words of wide ones say enough."""
    values = vector.values
    if values.ndim == 1:
        return max(int(values.max()), -int(values.min()))
    low, high = values[:, 0], values[:, 1]
    if np.any(high != low >> 63):
        return max(int(high.max()) + 1, -int(high.min())) << 64
    return max(int(low.max()), -int(low.min()))
