"""Values as words whose signed order, word by word, is Spark's order of the values: what ordered indexes compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state.ordered import float_order
from everview.backends.embedded.vectors import Ints, Kind, Vector, kind_of

_SIGN = np.int64(np.iinfo(np.int64).min)


def order_words(vector: Vector, dictionary: Dictionary, *, descending: bool, nulls_first: bool) -> list[Ints]:
    """The words of one sort key: a NULL rank, then the value; complemented where the order is descending."""
    values = _ascending(vector, dictionary)
    if descending:
        values = [~v for v in values]
    nulls = np.zeros(len(vector), dtype=np.bool_) if vector.nulls is None else vector.nulls
    rank = np.where(nulls, -1 if nulls_first else 1, 0).astype(np.int64)
    if vector.nulls is not None:
        for value in values:
            value[nulls] = 0
    return [rank, *values]


def word_count(vector_type_kind: Kind) -> int:
    """How many words ``order_words`` makes of a value."""
    return 3 if vector_type_kind is Kind.WIDE else 2


def _ascending(vector: Vector, dictionary: Dictionary) -> list[Ints]:
    match kind_of(vector.type):
        case Kind.FLOAT:
            return [float_order(vector.values)]
        case Kind.WIDE:
            return [vector.values[:, 1].copy(), vector.values[:, 0] ^ _SIGN]  # the low word is unsigned
        case Kind.CODE:
            return [dictionary.order_keys(vector.values).copy()]
        case _:
            return [vector.values.astype(np.int64, copy=True)]


def stacked(words: Sequence[Ints], count: int) -> Ints:
    """The words side by side, as a key matrix."""
    keys = np.empty((count, len(words)), dtype=np.int64)
    for i, word in enumerate(words):
        keys[:, i] = word
    return keys
