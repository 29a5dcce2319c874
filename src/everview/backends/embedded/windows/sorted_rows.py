"""Distinct rows in the order of a window: by partition, then by ORDER BY, ties broken by the whole row.

Partitions only need to lie together, so they sort by their key words; the rest sorts by order words (NULLs where asked, NaN
above all numbers). The whole row is compared only among peers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.order_words import order_words
from everview.backends.embedded.vectors import Bools, Ints, KeyLayout, Vector
from everview.relational.nodes import Window
from everview.relational.schema import is_nullable


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows in order; ``partition`` and ``peers`` number the partitions and the groups of peers from 0 on, ascending."""

    columns: tuple[Vector, ...]
    count: int
    partition: Ints
    peers: Ints
    known: dict[Hashable, tuple[Vector, ...]] = field(default_factory=dict)
    """Columns computed from these rows, by who computed them: old and new rows share the work."""


class RowOrder:
    """The order of one window node."""

    def __init__(self, node: Window, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._terms = node.order
        self._split = len(node.partition)
        keys = (*node.partition, *(k.expression for k in node.order))
        self._keys = compile_projection(keys, dictionary)
        self._layout = KeyLayout(tuple(e.type for e in node.partition), tuple(is_nullable(e) for e in node.partition))

    def definitions(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The sort expressions that Python computes."""
        return self._keys.definitions(names)

    def sort(self, columns: Sequence[Vector], count: int) -> tuple[SortedRows, Ints]:
        """The rows in order, which must be distinct, and where each of them was."""
        keys = self._keys(columns, count)
        partition = _varying(self._layout.pack(keys[: self._split], count).T if self._split else ())
        order = _varying(self._order_words(keys[self._split :]))
        places = _sorted([*partition, *order], count)
        new_partition = _changes([w[places] for w in partition], count)
        new_peers = new_partition | _changes([w[places] for w in order], count)
        peers = np.cumsum(new_peers) - 1
        self._break_ties(columns, places, new_peers, peers)
        taken = tuple(c.take(places) for c in columns)
        return SortedRows(taken, count, np.cumsum(new_partition) - 1, peers), places

    def _order_words(self, keys: Sequence[Vector]) -> list[Ints]:
        words: list[Ints] = []
        for term, vector in zip(self._terms, keys, strict=True):
            words += order_words(vector, self._dictionary, descending=term.descending, nulls_first=term.nulls_first)
        return words

    def _break_ties(self, columns: Sequence[Vector], places: Ints, new_peers: Bools, peers: Ints) -> None:
        tied = ~new_peers
        tied[:-1] |= tied[1:]
        if not tied.any():
            return
        among = np.flatnonzero(tied)
        rows = places[among]
        words = [peers[among]]
        for column in columns:
            words += order_words(column.take(rows), self._dictionary, descending=False, nulls_first=True)
        places[among] = rows[_sorted(_varying(words), len(rows))]


def _varying(words: Sequence[Ints] | Ints) -> list[Ints]:
    """The words that are not the same for all rows: the others say nothing about the order."""
    return [w for w in words if len(w) and (w != w[0]).any()]


def _sorted(words: Sequence[Ints], count: int) -> Ints:
    if not words:
        return np.arange(count)
    if len(words) == 1:
        return np.argsort(words[0], kind="stable")
    return np.lexsort(words[::-1])  # the last key of lexsort is the first to compare


def _changes(words: Sequence[Ints], count: int) -> Bools:
    """Where a row differs from the one before it; the first one does."""
    changes = np.zeros(count, dtype=np.bool_)
    changes[:1] = True
    for word in words:
        changes[1:] |= word[1:] != word[:-1]
    return changes
