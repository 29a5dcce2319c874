"""EXPLODE and POSEXPLODE: linear; each distinct array is unfolded once and remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from everview.backends.embedded.arrow_columns import vector_from_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_projection
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.vectors import Batch, Ints, Vector, concatenate, empty_batch
from everview.relational.arrow import column_to_arrow
from everview.relational.nodes import Generate
from everview.relational.schema import schema
from everview.relational.types import INT32, Array


class ExplodeOperator(Operator):
    """Every input row once for each element of its array."""

    def __init__(self, node: Generate, child: Operator, dictionary: Dictionary) -> None:
        super().__init__(schema(node), (child,))
        assert isinstance(node.array.type, Array)
        self._node = node
        self._element = node.array.type.element
        self._dictionary = dictionary
        self._array = compile_projection((node.array,), dictionary)
        self.forget_codes()

    def forget_codes(self) -> None:
        self._start: Ints = np.full(1, -1, dtype=np.int64)  # by code: where its elements begin in the pool, -1 unknown
        self._length: Ints = np.zeros(1, dtype=np.int64)
        self._pool = empty_batch((self._element,))

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        (delta,) = deltas
        if delta is None or not len(delta):
            return None
        (arrays,) = self._array(delta.columns, len(delta))
        codes = arrays.values
        self._unfold(codes if arrays.nulls is None else codes[~arrays.nulls])
        lengths = self._length[codes]
        if arrays.nulls is not None:
            lengths = np.where(arrays.nulls, 0, lengths)
        shown = np.maximum(lengths, 1) if self._node.outer else lengths
        rows = np.repeat(np.arange(len(delta)), shown)
        if not len(rows):
            return None
        position = np.arange(len(rows)) - np.repeat(np.cumsum(shown) - shown, shown)
        padded = lengths[rows] == 0
        element = self._elements(self._start[codes[rows]] + position, padded)
        taken = delta.take(rows)
        if not self._node.with_position:
            return Batch((*taken.columns, element), taken.weights)
        where = Vector(INT32, np.where(padded, 0, position), padded if padded.any() else None)
        return Batch((*taken.columns, where, element), taken.weights)

    def _unfold(self, codes: Ints) -> None:
        top = int(codes.max(initial=0)) + 1
        if top > len(self._start):
            grow = max(top, 2 * len(self._start)) - len(self._start)
            self._start = np.concatenate([self._start, np.full(grow, -1, dtype=np.int64)])
            self._length = np.concatenate([self._length, np.zeros(grow, dtype=np.int64)])
        new = np.unique(codes[self._start[codes] < 0])
        if not len(new):
            return
        arrays: list[Any] = self._dictionary.decode(new)
        lengths = np.array([len(a) for a in arrays], dtype=np.int64)
        self._start[new] = len(self._pool) + np.cumsum(lengths) - lengths
        self._length[new] = lengths
        flat = column_to_arrow([e for a in arrays for e in a], self._element)
        vector = vector_from_arrow(flat, self._element, self._dictionary)
        self._pool = concatenate([self._pool, Batch((vector,), np.zeros(len(vector), dtype=np.int64))])

    def _elements(self, at: Ints, padded: Any) -> Vector:
        pool = self._pool.columns[0]
        if not padded.any():
            return pool.take(at)
        if not len(pool):
            return Vector(self._element, np.zeros((len(at), *pool.values.shape[1:]), dtype=pool.values.dtype), padded)
        vector = pool.take(np.where(padded, 0, at))
        values = vector.values.copy()
        values[padded] = 0
        return Vector(self._element, values, padded if vector.nulls is None else padded | vector.nulls)

    def nbytes(self) -> dict[str, int]:
        return {"unfolded arrays": self._start.nbytes + self._length.nbytes + self._pool.columns[0].values.nbytes}

    def describe(self) -> str:
        return f"{'outer ' if self._node.outer else ''}explode"
