"""The public face of the compiler: expressions as functions of the columns of a batch.

The objects returned are callable. Their vectors obey ``vectors.py`` and are not to be changed: they may share memory with the
columns that came in. Evaluation raises ``EvaluationError`` when, by the definition, some row of the batch has no value; of
several errors in a batch any one may be raised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import Cells, spread, vector_from_cells
from everview.backends.embedded.expressions.compile import Compiler, literal_step
from everview.backends.embedded.expressions.frame import RowFrame
from everview.backends.embedded.vectors import Bools, Vector
from everview.relational.expressions import Expression, Literal, columns_of
from everview.relational.sql_text import sql_text
from everview.relational.types import BOOLEAN


class _Compiled:
    """Steps over one set of columns, with what ``explain`` wants to know about them."""

    def __init__(self, expressions: Sequence[Expression], dictionary: Dictionary) -> None:
        compiler = Compiler(expressions, dictionary)
        self._steps = tuple(compiler.step(e) for e in expressions)
        self._runs = tuple(s.run for s in self._steps)
        self._is_quiet = not compiler.has_floats
        self._by_definition = tuple(dict.fromkeys(compiler.by_definition))
        self.can_fail = any(s.can_fail for s in self._steps)
        """Whether evaluation could raise EvaluationError; False is a promise."""

    @property
    def uses_python(self) -> bool:
        """Whether a sub-expression is computed by the Python definition, once per distinct value."""
        return bool(self._by_definition)

    def definitions(self, names: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The sub-expressions that the Python definition computes, as text over the names of the input columns."""
        return tuple(sql_text(e, names or _numbered(e)) for e in self._by_definition)

    def _cells(self, columns: Sequence[Vector], count: int) -> list[Cells]:
        frame = RowFrame(columns, count)
        if self._is_quiet:
            return [run(frame) for run in self._runs]
        with np.errstate(all="ignore"):  # once for all steps: it costs more than a step on one row
            return [run(frame) for run in self._runs]


def _numbered(expression: Expression) -> tuple[str, ...]:
    return tuple(f"column {i}" for i in range(max(columns_of(expression), default=-1) + 1))


class Vectorised(_Compiled):
    """One expression."""

    def __init__(self, expression: Expression, dictionary: Dictionary) -> None:
        super().__init__((expression,), dictionary)
        self.type = expression.type

    def __call__(self, columns: Sequence[Vector], count: int) -> Vector:
        """The expression's column for a batch of ``count`` rows."""
        (cells,) = self._cells(columns, count)
        return vector_from_cells(cells, self.type, count)


class Predicate(_Compiled):
    """One condition."""

    def __init__(self, condition: Expression, dictionary: Dictionary) -> None:
        assert condition.type == BOOLEAN, condition.type
        super().__init__((condition,), dictionary)

    def __call__(self, columns: Sequence[Vector], count: int) -> Bools:
        """The mask of the rows for which the condition is true: neither false nor NULL."""
        (cells,) = self._cells(columns, count)
        mask: Bools = spread(cells, count).values
        return mask


class Projection(_Compiled):
    """Several expressions, their common parts computed once."""

    def __init__(self, expressions: Sequence[Expression], dictionary: Dictionary) -> None:
        super().__init__(expressions, dictionary)
        self.types = tuple(e.type for e in expressions)

    def __call__(self, columns: Sequence[Vector], count: int) -> tuple[Vector, ...]:
        """The columns of the projection for a batch of ``count`` rows."""
        cells = self._cells(columns, count)
        return tuple([vector_from_cells(c, t, count) for c, t in zip(cells, self.types, strict=True)])


def compile_vectorised(expression: Expression, dictionary: Dictionary) -> Vectorised:
    """The expression as a function from columns and a row count to a vector.

    >>> from everview.relational.expressions import Call, Column
    >>> from everview.relational.types import INT64
    >>> twice = compile_vectorised(Call("+", (Column(0, INT64), Column(0, INT64)), INT64), Dictionary())
    >>> twice([Vector(INT64, np.array([1, 2, 3]))], 3).values
    array([2, 4, 6])
    """
    return Vectorised(expression, dictionary)


def compile_predicate(condition: Expression, dictionary: Dictionary) -> Predicate:
    """The condition as a function from columns and a row count to the mask of the rows it keeps."""
    return Predicate(condition, dictionary)


def compile_projection(expressions: Sequence[Expression], dictionary: Dictionary) -> Projection:
    """The expressions as a function from columns and a row count to vectors."""
    return Projection(expressions, dictionary)


def constant_vector(literal: Literal, count: int, dictionary: Dictionary) -> Vector:
    """A literal, ``count`` times."""
    cells = literal_step(literal, dictionary).run(RowFrame((), count))
    return vector_from_cells(cells, literal.type, count)
