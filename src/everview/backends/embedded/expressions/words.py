"""Between cells and the Python values of ``relational.types``, by way of *words*.

A word is what a cell holds, as a Python number: a boolean, an integer (of a decimal, the unscaled one, of any size; of a
string, its code) or a float. None is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import UNBOUNDED, WORD, Cells, cell_dtype
from everview.backends.embedded.vectors import Kind, kind_of
from everview.relational.functions.decimals import CONTEXT
from everview.relational.types import BOOLEAN, NAN, DataType, Decimal, is_floating

Convert = Callable[[Any], Any]


def value_reader(data_type: DataType, dictionary: Dictionary) -> Convert:
    """The function from a word of the type to its Python value."""
    if isinstance(data_type, Decimal):
        digits = -data_type.scale
        return lambda word: Number(word).scaleb(digits, CONTEXT)
    if is_floating(data_type):
        return lambda word: NAN if word != word else word  # noqa: PLR0124 -- only NaN differs from itself
    if kind_of(data_type) is Kind.CODE:
        return dictionary.value_of
    return bool if data_type == BOOLEAN else int


def word_writer(data_type: DataType, dictionary: Dictionary) -> Convert:
    """The function from a Python value of the type, or None, to its word."""
    if isinstance(data_type, Decimal):
        digits = data_type.scale
        return lambda value: None if value is None else int(value.scaleb(digits, CONTEXT))
    if kind_of(data_type) is Kind.CODE:
        return lambda value: None if value is None else dictionary.code_of(value)
    return lambda value: value


def words_of_cells(cells: Cells) -> list[Any]:
    """The words of cells, NULL or not."""
    values = cells.values
    if values.ndim == 1:
        return list(values.tolist())
    return [(high << 64) + (low & (2**64 - 1)) for low, high in values.tolist()]


def cells_of_words(words: list[Any], data_type: DataType) -> Cells:
    """Words as cells; None is NULL."""
    nulls = None
    if None in words:
        nulls = np.array([w is None for w in words], dtype=np.bool_)
        words = [0 if w is None else w for w in words]
    if kind_of(data_type) is Kind.WIDE and any(not -WORD <= w <= WORD for w in words):
        return Cells(wide_words(words), nulls, 2**127)
    return Cells(np.array(words, dtype=cell_dtype(data_type)), nulls, UNBOUNDED)


def wide_words(words: list[int]) -> Any:
    """Integers of up to 128 bits as rows of a low and a high word."""
    data = b"".join([w.to_bytes(16, "little", signed=True) for w in words])
    return np.frombuffer(data, dtype=np.int64).reshape(len(words), 2).copy()
