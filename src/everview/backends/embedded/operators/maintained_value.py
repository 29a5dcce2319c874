"""The one row of a maintained value, as comparisons with it want it: what an uncorrelated subquery has to say.

Where a change of it is deferred and its new row is at hand, the change is never computed: expressions over one row cost less by
their definition than by the kernels for columns, and nobody asks what the row was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import UNBOUNDED, cells_from_vector
from everview.backends.embedded.expressions.words import value_reader, words_of_cells
from everview.backends.embedded.vectors import Batch, DeferredBatch, Ints
from everview.relational.types import DataType, Row


class MaintainedValue:
    """Reads its rows off batches with columns of these types."""

    def __init__(self, types: Sequence[DataType], dictionary: Dictionary) -> None:
        self._readers = tuple(value_reader(t, dictionary) for t in types)

    def moved(self, delta: Batch | None) -> Row | None:
        """The new row after a change; None where there is none."""
        if delta is None:
            return None
        if isinstance(delta, DeferredBatch) and not delta.is_made and delta.arriving is not None:
            return delta.arriving()
        come = np.flatnonzero(delta.weights > 0)
        return self._row_at(delta, come[:1]) if len(come) else None

    def row(self, content: Batch) -> Row | None:
        """The row of a content, if there is one."""
        return self._row_at(content, np.zeros(1, dtype=np.int64)) if len(content) else None

    def _row_at(self, batch: Batch, place: Ints) -> Row:
        row = []
        for column, read in zip(batch.columns, self._readers, strict=True):
            cells = cells_from_vector(column.take(place), UNBOUNDED)
            is_null = cells.nulls is not None and bool(cells.nulls[0])
            row.append(None if is_null else read(words_of_cells(cells)[0]))
        return tuple(row)
