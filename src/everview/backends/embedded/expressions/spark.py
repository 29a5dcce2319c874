"""Expressions that Spark's own code computes, over cells: distinct arguments of a batch go to it together.

A function of one code is a memo like any other function of text. Other results are remembered too, as long as a batch has few
distinct arguments: a call costs milliseconds, and then most of its time. Of a large batch nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from everview.backends.embedded.arrow_columns import vector_from_arrow, vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import (
    Cells,
    cell_dtype,
    cells_from_vector,
    narrowed,
    spread,
    type_bound,
    vector_from_cells,
)
from everview.backends.embedded.expressions.definition import cell_columns, distinct_rows, keys_of
from everview.backends.embedded.expressions.frame import RowFrame
from everview.backends.embedded.expressions.step import Compiled
from everview.backends.embedded.expressions.words import cells_of_words, words_of_cells
from everview.backends.embedded.vectors import AnyArray, Bools, Ints, Kind, kind_of
from everview.relational import spark_code
from everview.relational.expressions import SparkExpression

_REMEMBERED: Final = 1 << 16
_LOOKED_UP: Final = 1 << 12
"""Of a batch with more distinct arguments than this, all are computed: looking each up would take as long."""


def apply_in_spark(expression: SparkExpression, args: tuple[Compiled, ...], dictionary: Dictionary) -> Compiled:
    """The step that lets Spark compute the expression of compiled arguments."""
    function = _Function(expression, dictionary)
    if len(args) == 1 and kind_of(args[0].type) is Kind.CODE:
        run = _by_code(function, args[0], dictionary)
    else:

        def run(frame: RowFrame) -> Cells:
            return function([spread(a.run(frame), frame.count) for a in args], frame.count)

    return Compiled(run, expression.type, True, type_bound(expression.type))


def _by_code(function: _Function, argument: Compiled, dictionary: Dictionary) -> Any:
    expression = function.expression
    is_wide, bound = kind_of(expression.type) is Kind.WIDE, type_bound(expression.type)
    memo = dictionary.memo(
        function.word_of,
        cell_dtype(expression.type),
        wide=is_wide,
        key=(spark_code.function_of(expression), expression.type),
        bulk=function.of_codes,
    )

    def run(frame: RowFrame) -> Cells:
        values, nulls = memo(argument.run(frame).values)
        cells = Cells(values, nulls, bound)
        return narrowed(cells) if is_wide else cells

    return run


class _Function:
    """A function that Spark computes, with a memory of its results."""

    def __init__(self, expression: SparkExpression, dictionary: Dictionary) -> None:
        self.expression = expression
        self._dictionary = dictionary
        self._known: dict[tuple[Any, ...], Any] = {}

    def __call__(self, arguments: Sequence[Cells], count: int) -> Cells:
        """The values for all rows.

        Raises:
            EvaluationError: some row has none.
        """
        first, inverse = distinct_rows([column for a in arguments for column in cell_columns(a)], count)
        chosen = [a.take(first) for a in arguments]
        if len(first) > _LOOKED_UP:
            return self._compute(chosen, len(first)).take(inverse)
        keys = keys_of(chosen, len(first))
        new = [i for i, key in enumerate(keys) if key not in self._known]
        if new:
            if len(self._known) + len(new) > _REMEMBERED:
                self._known.clear()
                new = list(range(len(keys)))
            rows = np.array(new, dtype=np.int64)
            computed = self._compute([a.take(rows) for a in chosen], len(new))
            words = words_of_cells(computed)
            nulls = [False] * len(new) if computed.nulls is None else computed.nulls.tolist()
            for i, word, is_null in zip(new, words, nulls, strict=True):
                self._known[keys[i]] = None if is_null else word
        return cells_of_words([self._known[key] for key in keys], self.expression.type).take(inverse)

    def of_codes(self, codes: Ints) -> tuple[AnyArray, Bools | None]:
        """The values for distinct codes of the one argument."""
        nulls = codes == 0
        cells = self._compute([Cells(codes, nulls if nulls.any() else None)], len(codes))
        is_wide = kind_of(self.expression.type) is Kind.WIDE
        values = vector_from_cells(cells, self.expression.type, len(codes)).values if is_wide else cells.values
        return values, cells.nulls

    def word_of(self, value: Any) -> Any:
        """The word of the value for one code: never asked, for a memo with a bulk form uses that."""
        raise AssertionError(value)

    def _compute(self, arguments: Sequence[Cells], count: int) -> Cells:
        given = zip(arguments, self.expression.args, strict=True)
        inputs = [vector_to_arrow(vector_from_cells(c, a.type, count), self._dictionary) for c, a in given]
        result = spark_code.compute(self.expression, inputs, count)
        vector = vector_from_arrow(result, self.expression.type, self._dictionary)
        return cells_from_vector(vector, type_bound(self.expression.type))
