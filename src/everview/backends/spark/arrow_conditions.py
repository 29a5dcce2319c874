"""Conditions that Arrow decides as Spark does, for rows at the driver: what fails one need not be looked up, nor joined.

These are comparisons of columns with constants and with each other, IN and IS NOT NULL, over types whose order is that of their
values. Whatever else a condition says is left to the plan that runs in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.relational.arrow import column_to_arrow
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.types import DATE, INT8, INT16, INT32, INT64, STRING, DataType, Decimal

_COMPARISONS: Final[dict[str, Callable[..., pa.ChunkedArray]]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_PLAIN: Final = frozenset({INT8, INT16, INT32, INT64, DATE, STRING})


def passing(rows: pa.Table, conditions: Sequence[Expression]) -> pa.Table:
    """The rows without those that surely fail one of the conditions, which are over the columns by position.

    None of them can raise an error, which would be lost with the row.
    """
    kept: pa.ChunkedArray | None = None
    for condition in conditions:
        holds = _holds(condition, rows)
        if holds is not None:
            kept = holds if kept is None else pc.and_(kept, holds)
    return rows if kept is None else rows.filter(kept)


def _holds(condition: Expression, rows: pa.Table) -> pa.ChunkedArray | None:
    """Where the condition is true; None if Arrow is not to tell."""
    if not isinstance(condition, Call) or not condition.args:
        return None
    first, *others = condition.args
    if condition.function == "isnotnull" and isinstance(first, Column):
        return rows.column(first.index).is_valid()
    if not all(isinstance(a, Column | Literal) and a.type == first.type for a in condition.args):
        return None
    if not _is_plain(first.type) or any(isinstance(a, Literal) and a.value is None for a in condition.args):
        return None
    if condition.function == "in" and isinstance(first, Column):
        if not all(isinstance(a, Literal) for a in others):
            return None
        values = column_to_arrow([a.value for a in others if isinstance(a, Literal)], first.type)
        column = rows.column(first.index)
        return pc.is_in(column, value_set=values.cast(column.type))
    compare = _COMPARISONS.get(condition.function)
    columns = [a for a in condition.args if isinstance(a, Column)]
    if compare is None or not columns:
        return None
    stored = rows.column(columns[0].index).type
    return compare(*(_operand(a, rows, stored) for a in condition.args))


def _operand(argument: Expression, rows: pa.Table, stored: pa.DataType) -> pa.ChunkedArray | pa.Scalar:
    if isinstance(argument, Column):
        return rows.column(argument.index)
    assert isinstance(argument, Literal)
    return column_to_arrow([argument.value], argument.type).cast(stored)[0]


def _is_plain(data_type: DataType) -> bool:
    return data_type in _PLAIN or isinstance(data_type, Decimal)
