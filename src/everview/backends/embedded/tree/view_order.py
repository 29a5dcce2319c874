"""A view of a tree in the order of one variable: ordered sums beside its hash map, for ranges.

An entry's key is the words of the other variables, as they lie in the view, which are only compared for equality, then the
order words of the variable, NULLs first. Its payload is that of the view's entry, word for word. The view tells what has
changed, by its log, before somebody searches and before a transaction ends.
"""

from __future__ import annotations

import numpy as np

from everview.backends.embedded.order_words import null_ranks, plain_order_words, values_from_words
from everview.backends.embedded.state.ordered_sums import OrderedSums
from everview.backends.embedded.vectors import Ints, KeyLayout, Vector

FIRST_VALUE = 0
"""The rank word of what is not NULL."""


class ViewOrder:
    """The entries of a view: ``group`` and ``variable`` are words of its key, ``layout`` says how the variable lies in its."""

    def __init__(
        self, group: tuple[int, ...], variable: tuple[int, ...], layout: KeyLayout, kinds: tuple[int, ...]
    ) -> None:
        self._group, self._variable, self._layout = list(group), list(variable), layout
        (self.type,) = layout.types
        self._value_words = 2 if values_are_wide(layout) else 1
        self.sums = OrderedSums(len(group) + 1 + self._value_words, kinds)
        self.taken = 0
        """How many records of the view's log it has been told."""

    def put(self, keys: Ints, payloads: Ints) -> None:
        """Takes in entries as they are now."""
        (vector,) = self._layout.unpack(keys[:, self._variable])
        words = self.words(vector)
        joined = np.concatenate([keys[:, self._group], words], axis=1) if self._group else words
        self.sums.put(np.ascontiguousarray(joined), np.ascontiguousarray(payloads))

    def rank(self, bounds: Ints, *, after: bool = False) -> Ints:
        """How many entries are below each bound (``after``: not above it)."""
        return self.sums.rank(bounds, after=after)

    def words(self, vector: Vector) -> Ints:
        """The order words of values, their rank first."""
        words = np.empty((len(vector), 1 + self._value_words), dtype=np.int64)
        words[:, 0] = null_ranks(vector, nulls_first=True)
        for i, word in enumerate(plain_order_words(vector)):
            words[:, 1 + i] = word
        if vector.nulls is not None:
            words[vector.nulls, 1:] = 0
        return words

    def values_at(self, ranks: Ints) -> Vector:
        """The variable's values in the entries with these ranks, none of which is NULL."""
        keys = self.sums.keys_at(self.sums.select(ranks))
        return Vector(self.type, values_from_words(keys[:, len(self._group) + 1 :], self.type))

    @property
    def nbytes(self) -> int:
        """Bytes of the order."""
        return self.sums.nbytes


def values_are_wide(layout: KeyLayout) -> bool:
    """Whether a value takes two words, besides one that may say NULL."""
    return len(plain_order_words(layout.unpack(np.zeros((0, layout.width), dtype=np.int64))[0])) > 1
