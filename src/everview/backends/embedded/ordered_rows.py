"""Tuples of values kept in SQL's order: what MIN, MAX and top-k are read from.

An entry is a prefix of plain words (a group), then for each value its order words, then the codes of the lists and structs
among them. From the words the values can be read back, so no other copy of the rows is needed. The order word of a string is
its code, which the index compares by the bytes. Lists and structs are ordered by labels that the dictionary may have to
renumber; then the index is built anew from the codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.order_words import null_ranks, order_words, stacked, values_from_words, word_count
from everview.backends.embedded.state.ordered import OrderedIndex
from everview.backends.embedded.vectors import Bools, Ints, Kind, Vector, kind_of
from everview.relational.types import Binary, DataType, String


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """One value of an entry, and how it sorts."""

    type: DataType
    descending: bool = False
    nulls_first: bool = True


class OrderedRows:
    """A bag of tuples in order, with changes that can be taken back until they are committed."""

    def __init__(self, prefix: int, terms: Sequence[OrderTerm], dictionary: Dictionary) -> None:
        self._prefix = prefix
        self._terms = tuple(terms)
        self._is_text = tuple(isinstance(t.type, String | Binary) for t in terms)
        self._dictionary = dictionary
        kinds = [kind_of(t.type) for t in terms]
        self._starts = np.cumsum([prefix, *(word_count(k) for k in kinds)])
        self._coded = [i for i, k in enumerate(kinds) if k is Kind.CODE and not self._is_text[i]]
        self._codes_at = int(self._starts[-1])
        texts = np.zeros(self._codes_at, dtype=np.int64)
        for start, term, is_text in zip(self._starts.tolist(), self._terms, self._is_text, strict=False):
            if is_text:
                texts[start + 1] = -1 if term.descending else 1
        self.index = OrderedIndex(self._codes_at + len(self._coded), texts.tolist(), dictionary)
        self._epoch = dictionary.order_epoch
        self._applied: list[tuple[Ints, Ints]] = []

    def add(self, prefix: Ints | None, values: Sequence[Vector], weights: Ints) -> None:
        """Adds entries ``weights`` times; ``prefix`` has a row of words for each (None where there is none)."""
        keys = self._keys(prefix, values, len(weights))
        if self._epoch != self._dictionary.order_epoch:
            self._relabel()
            keys = self._keys(prefix, values, len(weights))
        self.index.add(keys, weights)
        self._applied.append((keys, weights))

    def _keys(self, prefix: Ints | None, values: Sequence[Vector], count: int) -> Ints:
        words: list[Ints] = [] if prefix is None else list(prefix.T)
        for term, vector, is_text in zip(self._terms, values, self._is_text, strict=True):
            if is_text:
                words += (null_ranks(vector, nulls_first=term.nulls_first), vector.values)
            else:
                words += order_words(vector, self._dictionary, descending=term.descending, nulls_first=term.nulls_first)
        words.extend(values[i].values for i in self._coded)
        return stacked(words, count)

    def _relabel(self) -> None:
        places = self.index.all()
        keys, weights = self._relabelled(self.index.keys_at(places)), self.index.weights_at(places).copy()
        self._applied = [(self._relabelled(k), w) for k, w in self._applied]
        self._epoch = self._dictionary.order_epoch
        self.index.clear()
        self.index.add(keys, weights)

    def _relabelled(self, keys: Ints) -> Ints:
        keys = np.ascontiguousarray(keys).copy()
        for k, i in enumerate(self._coded):
            labels = self._dictionary.order_keys(keys[:, self._codes_at + k].copy())
            if self._terms[i].descending:
                labels = ~labels
            rank = int(self._starts[i])
            keys[:, rank + 1] = np.where(keys[:, rank] == 0, labels, 0)
        return keys

    def commit(self) -> None:
        """Makes the changes since the last commit final."""
        self._applied.clear()

    def rollback(self) -> None:
        """Takes back the changes since the last commit."""
        for keys, weights in reversed(self._applied):
            self.index.add(keys, -weights)
        self._applied.clear()

    def value_at(self, places: Ints, term: int) -> Vector:
        """One value of the entries at these places; the term must sort ascending, or be text."""
        return self.value_of(self.index.keys_at(places), term)

    def value_of(self, keys: Ints, term: int) -> Vector:
        """One value of entries with these keys."""
        is_text = self._is_text[term]
        assert is_text or not self._terms[term].descending, "a complemented value cannot be read back"
        start, end = int(self._starts[term]), int(self._starts[term + 1])
        data_type = self._terms[term].type
        nulls: Bools = keys[:, start] != 0
        if is_text:
            values = keys[:, start + 1].copy()
        elif kind_of(data_type) is Kind.CODE:
            values = keys[:, self._codes_at + self._coded.index(term)].copy()
        else:
            values = values_from_words(keys[:, start + 1 : end], data_type)
        if not nulls.any():
            return Vector(data_type, values)
        values[nulls] = 0
        return Vector(data_type, values, nulls)

    def renumber_prefix(self, live: Ints) -> None:
        """The first prefix word ``live[i]`` is now i."""
        places = self.index.all()
        keys, weights = self.index.keys_at(places).copy(), self.index.weights_at(places).copy()
        keys[:, 0] = np.searchsorted(live, keys[:, 0])
        self.index.clear()
        self.index.add(np.ascontiguousarray(keys), weights)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.index.nbytes
