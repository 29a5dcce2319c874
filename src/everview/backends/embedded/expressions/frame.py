"""The rows over which an expression is being evaluated: a batch, or those rows of it that reach a branch.

A frame loads a column when it is first used, and remembers the cells of sub-expressions that occur more than once. What is
known for a frame need not be computed again for its part.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from everview.backends.embedded.expressions.cells import Cells, cells_from_vector
from everview.backends.embedded.vectors import Bools, Ints, Vector


class RowFrame:
    """Some rows of a batch."""

    __slots__ = ("_columns", "_parent", "_rows", "count", "known")

    def __init__(self, columns: Sequence[Vector], count: int) -> None:
        self._columns = columns
        self._parent: RowFrame | None = None
        self._rows: Ints | None = None
        self.count = count
        self.known: dict[Hashable, Cells] = {}
        """Cells by column position or by shared expression."""

    def column(self, index: int, bound: int) -> Cells:
        """The cells of a column; ``bound`` is that of its type."""
        cells = self.known.get(index)
        if cells is None:
            if self._parent is None:
                cells = cells_from_vector(self._columns[index], bound)
            else:
                assert self._rows is not None
                cells = self._parent.column(index, bound).take(self._rows)
            self.known[index] = cells
        return cells

    def recall(self, key: Hashable) -> Cells | None:
        """What this frame, or one that contains it, knows under the key."""
        cells = self.known.get(key)
        if cells is None and self._parent is not None:
            cells = self._parent.recall(key)
            if cells is not None:
                assert self._rows is not None
                cells = cells.take(self._rows)
                self.known[key] = cells
        return cells

    def part(self, rows: Ints) -> RowFrame:
        """The frame of these rows alone."""
        part = RowFrame(self._columns, len(rows))
        part._parent, part._rows = self, rows
        return part


def rows_of(mask: Bools) -> Ints:
    """The positions of the set bits."""
    return np.flatnonzero(mask)
