"""The values of an index of matrices, each with a position: the order in which they came."""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.vectors import Ints


class IndexDomain:
    """Positions of 64-bit values. Values never go; a value that no cell has any more keeps its position."""

    def __init__(self) -> None:
        self.values: Ints = np.zeros(0, dtype=np.int64)
        self._sorted: Ints = np.zeros(0, dtype=np.int64)
        self._order: Ints = np.zeros(0, dtype=np.int64)
        self._is_range = True
        """Whether value and position are the same, as for matrices that are loaded row by row."""

    def __len__(self) -> int:
        return len(self.values)

    def positions(self, values: Ints) -> Ints:
        """The positions of values; new values get the next ones, in ascending order.

        >>> domain = IndexDomain()
        >>> domain.positions(np.array([7, 3, 7])).tolist()
        [1, 0, 1]
        >>> domain.positions(np.array([5, 3])).tolist()
        [2, 0]
        """
        if not len(values):
            return values
        if self._is_range and len(self) and values.min() >= 0 and values.max() < len(self):
            return values
        found = self._find(values)
        if (found < 0).any():
            self.values = np.concatenate([self.values, np.unique(values[found < 0])])
            self._order = np.argsort(self.values, kind="stable")
            self._sorted = self.values[self._order]
            self._is_range = bool((self.values == np.arange(len(self.values))).all())
            found = self._find(values)
        return found

    def _find(self, values: Ints) -> Ints:
        """The positions, -1 for values that have none."""
        if not len(self.values):
            return np.full(len(values), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, values), len(self._sorted) - 1)
        return np.where(self._sorted[at] == values, self._order[at], -1)
