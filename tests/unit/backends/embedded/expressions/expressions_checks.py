"""The law that all expression tests check: a compiled expression equals its definition, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from everview.backends.embedded.arrow_columns import vector_from_arrow, vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_vectorised
from everview.backends.embedded.vectors import Vector, empty_values
from everview.errors import EvaluationError
from everview.relational.arrow import column_to_arrow, rows_from_arrow, rows_to_arrow
from everview.relational.evaluate import compile_expression
from everview.relational.expressions import Expression
from everview.relational.nodes import Field
from everview.relational.types import DATE, DataType, Null, Value


def vector_of(values: Sequence[Value], t: DataType, dictionary: Dictionary) -> Vector:
    """Python values as a vector."""
    return vector_from_arrow(column_to_arrow(values, t), t, dictionary)


def values_in(vector: Vector, dictionary: Dictionary) -> list[Value]:
    """A vector's values in Python, and a check that the vector is well formed."""
    shape = empty_values(vector.type, len(vector))
    assert vector.values.shape == shape.shape, "shape"
    assert vector.values.dtype == shape.dtype, "dtype"
    if vector.nulls is not None:
        assert vector.nulls.dtype == np.bool_
        assert len(vector.nulls) == len(vector)
        assert not vector.values[vector.nulls].any(), "0 lies beneath NULL"
    if isinstance(vector.type, Null):
        return [None] * len(vector)
    if vector.type == DATE:  # sums of days may leave the range that Arrow can store
        nulls = np.zeros(len(vector), dtype=np.bool_) if vector.nulls is None else vector.nulls
        return [None if absent else day for day, absent in zip(vector.values.tolist(), nulls.tolist(), strict=True)]
    array = vector_to_arrow(vector, dictionary)
    array.validate(full=True)
    table = rows_to_arrow([], (Field("v", vector.type, True),)).schema.empty_table()
    column = type(table).from_arrays([array], schema=table.schema)
    return [value for (value,) in rows_from_arrow(column, (Field("v", vector.type, True),))]


def by_definition(expression: Expression, rows: Sequence[tuple[Value, ...]]) -> tuple[list[Value], set[str]]:
    """The values of the rows, and the conditions of the errors; an error's value is None."""
    evaluate = compile_expression(expression)
    values: list[Value] = []
    conditions: set[str] = set()
    for row in rows:
        try:
            values.append(evaluate(row))
        except EvaluationError as error:
            conditions.add(error.condition)
            values.append(None)
    return values, conditions


def shown(value: Value) -> Any:
    """A value as text that tells apart what == does not, except zeros inside of arrays, which the dictionary makes equal."""
    if isinstance(value, tuple):
        return "(" + ",".join(shown(0.0 if isinstance(v, float) and v == 0 else v) for v in value) + ")"
    return repr(value)


def check(
    expression: Expression,
    columns: Sequence[Sequence[Value]],
    types: Sequence[DataType],
    count: int,
    dictionary: Dictionary,
) -> None:
    """Asserts that the compiled expression agrees with its definition on these columns."""
    rows = [tuple(column[i] for column in columns) for i in range(count)]
    expected, conditions = by_definition(expression, rows)
    if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in expected):
        return  # the definition computes with integers of any size, and a few functions do not check theirs
    compiled = compile_vectorised(expression, dictionary)
    vectors = [vector_of(column, t, dictionary) for column, t in zip(columns, types, strict=True)]
    for _ in range(2):  # the second time, everything that is remembered is known
        if conditions:
            with pytest.raises(EvaluationError) as caught:
                compiled(vectors, count)
            assert caught.value.condition in conditions
            assert compiled.can_fail
            continue
        result = compiled(vectors, count)
        assert result.type == expression.type
        assert list(map(shown, values_in(result, dictionary))) == list(map(shown, expected))
