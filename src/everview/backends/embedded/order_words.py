"""Values as words whose signed order, word by word, is Spark's order of the values: what ordered indexes compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state.float_order import float_from_order, float_order
from everview.backends.embedded.vectors import AnyArray, Ints, Kind, Vector, kind_of
from everview.relational.types import DataType

_SIGN = np.int64(np.iinfo(np.int64).min)


def order_words(vector: Vector, dictionary: Dictionary, *, descending: bool, nulls_first: bool) -> list[Ints]:
    """The words of one sort key: a NULL rank, then the value; complemented where the order is descending."""
    values = _ascending(vector, dictionary)
    if descending:
        values = [~v for v in values]
    if vector.nulls is not None:
        for value in values:
            value[vector.nulls] = 0
    return [null_ranks(vector, nulls_first=nulls_first), *values]


def null_ranks(vector: Vector, *, nulls_first: bool) -> Ints:
    """A word for each value that puts NULLs where they belong."""
    if vector.nulls is None:
        return np.zeros(len(vector), dtype=np.int64)
    return np.where(vector.nulls, np.int64(-1 if nulls_first else 1), np.int64(0))


def word_count(kind: Kind) -> int:
    """How many words ``order_words`` makes of a value."""
    return 3 if kind is Kind.WIDE else 2


def values_from_words(words: Ints, data_type: DataType) -> AnyArray:
    """The values of ascending value words (without the rank); strings cannot be read off their labels."""
    match kind_of(data_type):
        case Kind.FLOAT:
            return float_from_order(np.ascontiguousarray(words[:, 0]))
        case Kind.WIDE:
            return np.stack([words[:, 1] ^ _SIGN, words[:, 0]], axis=1)
        case _:
            return words[:, 0].copy()


def _ascending(vector: Vector, dictionary: Dictionary) -> list[Ints]:
    if kind_of(vector.type) is Kind.CODE:
        return [dictionary.order_keys(vector.values).copy()]
    return plain_order_words(vector)


def plain_order_words(vector: Vector) -> list[Ints]:
    """The value words of what has no code, ascending; those of NULLs mean nothing."""
    match kind_of(vector.type):
        case Kind.FLOAT:
            return [float_order(vector.values)]
        case Kind.WIDE:
            return [vector.values[:, 1].copy(), vector.values[:, 0] ^ _SIGN]  # the low word is unsigned
        case Kind.CODE:
            raise AssertionError("the order of codes is that of what they stand for")
        case _:
            return [vector.values.astype(np.int64, copy=True)]


def stacked(words: Sequence[Ints], count: int) -> Ints:
    """The words side by side, as a key matrix."""
    keys = np.empty((count, len(words)), dtype=np.int64)
    for i, word in enumerate(words):
        keys[:, i] = word
    return keys
