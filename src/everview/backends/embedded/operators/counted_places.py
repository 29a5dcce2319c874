"""How many rows of a group have each of some places, in order: what sketches and bitmaps that shrink are read from."""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.ordered_aggregates import OrderedValues
from everview.backends.embedded.ordered_rows import OrderTerm
from everview.backends.embedded.vectors import Ints, Vector
from everview.relational.types import INT64


class CountedPlaces(OrderedValues):
    """Entries (group, place), each with its number of rows."""

    def __init__(self, dictionary: Dictionary) -> None:
        super().__init__((0,), (OrderTerm(INT64),), 0, dictionary)

    def count(self, slots: Ints, places: Ints, weights: Ints) -> None:
        """Counts rows; those that cancel each other are not looked up."""
        if not len(slots):
            return
        distinct, inverse = np.unique(np.stack([slots, places], axis=1), axis=0, return_inverse=True)
        counts = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(counts, inverse.reshape(-1), weights)
        moved = counts != 0
        self._values.add(distinct[moved, :1], [Vector(INT64, distinct[moved, 1])], counts[moved])

    def places(self, slots: Ints) -> tuple[Ints, Ints]:
        """The places that rows of the groups have, in order: of each the position of its group in ``slots``, and the place."""
        rows, entries = self._entries(slots)
        return rows, self._values.value_at(entries, 0).values
