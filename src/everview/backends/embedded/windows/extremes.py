"""MIN, MAX, MIN_BY and MAX_BY over frames: the position of the least order key, then the value there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.order_words import order_words
from everview.backends.embedded.vectors import Ints, Vector
from everview.backends.embedded.windows.frame_kernels import frame_minima
from everview.backends.embedded.windows.frames import FrameBounds
from everview.backends.embedded.windows.function import FrameArguments, WindowFunction, without_nulls
from everview.backends.embedded.windows.partitions import Partitions, gathered
from everview.relational.nodes import WindowCall


class Extreme(WindowFunction):
    """The first argument where the last one is extreme; among equals the extreme first argument, NULL the least."""

    def __init__(self, call: WindowCall, frame: FrameBounds, dictionary: Dictionary) -> None:
        self._arguments = FrameArguments(call, frame, dictionary)
        self.parts = (self._arguments,)
        self._is_greatest = call.function.startswith("max")
        self._dictionary = dictionary

    def _values(self, view: Partitions) -> Vector:
        values, kept = self._arguments(view)
        counted = without_nulls(values[-1:], kept)
        keys = self._keys(values)
        start, end = self._arguments.frame(view)
        places, queue = np.empty((2, view.count), dtype=np.int64)
        frame_minima(~keys if self._is_greatest else keys, counted, start, end, queue, places)
        return gathered(values[0], places, places >= 0)

    def _keys(self, values: Sequence[Vector]) -> Ints:
        """One integer a row, in the order of the last argument and then of those before it."""
        words: list[Ints] = []
        for vector in reversed(values):
            words += order_words(vector, self._dictionary, descending=False, nulls_first=True)
        # Where the one argument is NULL the row does not count, and its rank need not be compared.
        return words[1] if len(words) == 2 else _dense_ranks(words)


def _dense_ranks(words: Sequence[Ints]) -> Ints:
    places = np.lexsort(words[::-1])
    changes = np.zeros(len(places), dtype=np.bool_)
    for word in words:
        ordered = word[places]
        changes[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[places] = np.cumsum(changes)
    return ranks
