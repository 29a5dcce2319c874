"""The Python definition of a function, applied to cells: once for each distinct combination of argument values.

This is correct for every function, and what all functions without a NumPy kernel use, as well as the rare rows that a
kernel declines. Results are remembered across batches, up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import Cells, spread
from everview.backends.embedded.expressions.words import cells_of_words, value_reader, word_writer, words_of_cells
from everview.backends.embedded.vectors import Ints
from everview.relational.types import DataType, Value

_REMEMBERED: Final = 1 << 16
_FEW: Final = 24
"""Up to so many rows, looking each of them up is faster than sorting them."""
_MISSING: Final = object()


class Definition:
    """A bound function with a memory of its results."""

    def __init__(
        self, function: Callable[..., Value], arguments: Sequence[DataType], result: DataType, dictionary: Dictionary
    ) -> None:
        self._function = function
        self._readers = tuple(value_reader(t, dictionary) for t in arguments)
        self._write = word_writer(result, dictionary)
        self.result = result
        self._known: dict[tuple[Any, ...], Any] = {}

    def __call__(self, arguments: Sequence[Cells], count: int) -> Cells:
        """The results for all rows; the function sees None where an argument is NULL.

        Raises:
            EvaluationError: the function has no value for some row.
        """
        arguments = [spread(a, count) for a in arguments]
        if count <= _FEW:
            return cells_of_words([self._word(key) for key in keys_of(arguments, count)], self.result)
        first, inverse = distinct_rows([column for a in arguments for column in cell_columns(a)], count)
        chosen = [a.take(first) for a in arguments]
        distinct = cells_of_words([self._word(key) for key in keys_of(chosen, len(first))], self.result)
        return distinct.take(inverse)

    def _word(self, key: tuple[Any, ...]) -> Any:
        word = self._known.get(key, _MISSING)
        if word is not _MISSING:
            return word
        values = [None if w is None else read(w) for w, read in zip(key[1:], self._readers, strict=True)]
        word = self._write(self._function(*values))
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = word
        return word


def keys_of(arguments: Sequence[Cells], count: int) -> list[tuple[Any, ...]]:
    """The words of each row, with None for NULL, behind the signs of its floating zeros, which == does not tell apart."""
    has_floats = any(a.values.dtype == np.float64 for a in arguments)
    columns: list[list[Any]] = [_zero_signs(arguments, count) if has_floats else [0] * count]
    for cells in arguments:
        words = words_of_cells(cells)
        if cells.nulls is not None:
            words = [None if is_null else w for w, is_null in zip(words, cells.nulls.tolist(), strict=True)]
        columns.append(words)
    return list(zip(*columns, strict=True))


def _zero_signs(arguments: Sequence[Cells], count: int) -> list[Any]:
    signs = np.zeros(count, dtype=np.int64)
    for cells in arguments:
        if cells.values.dtype == np.float64:
            signs = 2 * signs + np.signbit(cells.values)
    return signs.tolist()


def cell_columns(cells: Cells) -> list[Ints]:
    """The cells as integer columns that are equal in two rows exactly when the cells are the same there."""
    values = cells.values
    columns: list[Ints]
    if values.ndim == 2:
        columns = [values[:, 0], values[:, 1]]
    elif values.dtype == np.float64:
        columns = [np.ascontiguousarray(values).view(np.int64)]
    else:
        columns = [values.astype(np.int64, copy=False)]
    if cells.nulls is not None:
        columns.append(cells.nulls.astype(np.int64))
    return columns


def distinct_rows(columns: list[Ints], count: int) -> tuple[Ints, Ints]:
    """The first row of each distinct combination, and for each row the number of its combination."""
    if not columns:
        return np.zeros(1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    mixed = columns[0]
    for column in columns[1:]:
        mixed = mixed * np.int64(-7046029254386353131) + column
        mixed = mixed ^ (mixed >> np.int64(29))
    _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
    if len(columns) > 1 and not all(np.array_equal(c[first][inverse], c) for c in columns):  # two rows with one hash
        _, first, inverse = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    return first, inverse
