"""What a table's rows look like in Arrow, worked out once a table: the short way for batches that already fit.

Most programs send Arrow batches of exactly the table's columns, over and over. For those nothing is left to convert, and the
work per transaction must not grow with the number of columns that no view reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa

from everview.backends.base import WEIGHT
from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema, canonical_floats, has_floats
from everview.relational.types import DataType


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's Arrow schema, the same with every column nullable, with weights behind it, and the columns to look into."""

    exact: pa.Schema
    loose: pa.Schema
    weighted: tuple[pa.Schema, pa.Schema]
    required: list[int]
    floating: tuple[tuple[int, DataType], ...]


_ARROW: Final = (pa.RecordBatch, pa.Table)
_shapes: WeakKeyDictionary[TableDefinition, Shape] = WeakKeyDictionary()


def shape_of(table: TableDefinition) -> Shape:
    """The shape of a table's rows."""
    known = _shapes.get(table)
    if known is None:
        exact = arrow_schema(table.fields)
        known = Shape(
            exact,
            pa.schema([f.with_nullable(True) for f in exact]),
            tuple(exact.append(pa.field(WEIGHT, pa.int64(), nullable)) for nullable in (True, False)),
            [i for i, f in enumerate(table.fields) if not f.nullable],
            tuple((i, f.type) for i, f in enumerate(table.fields) if has_floats(f.type)),
        )
        _shapes[table] = known
    return known


def _has_nulls(data: pa.Table | pa.RecordBatch, shape: Shape) -> bool:
    """Whether a column that must not have NULLs has some: one call, since making Arrow's columns one by one takes longer."""
    checked = data if len(shape.required) == len(shape.exact) else data.select(shape.required)
    return bool(checked.drop_null().num_rows != data.num_rows)


def as_it_is_with_weights(table: TableDefinition, data: Any) -> tuple[pa.RecordBatch, pa.Array] | None:
    """The rows and their weights, if they are one batch of exactly the table's columns, and weights; None otherwise."""
    if not isinstance(data, pa.RecordBatch):
        return None
    shape = shape_of(table)
    if not any(data.schema.equals(schema) for schema in shape.weighted):
        return None
    columns = len(shape.exact)
    weights = data.column(columns)
    if weights.null_count or not weights.to_numpy().all():
        return None
    rows = as_it_is(table, data.select(range(columns)))
    return None if rows is None else (rows, weights)


def as_it_is(table: TableDefinition, data: Any) -> pa.Table | pa.RecordBatch | None:
    """The rows, if they are Arrow with exactly the table's columns and no NULL where none may be; None otherwise.

    Floats of a table that keeps its rows are made canonical here; a table that does not leaves it to whoever reads a column.
    """
    if not isinstance(data, _ARROW):
        return None
    shape = shape_of(table)
    is_exact = data.schema.equals(shape.exact)
    if not (is_exact or data.schema.equals(shape.loose)):
        return None
    if shape.required and _has_nulls(data, shape):
        return None
    if is_exact and not (shape.floating and table.retain):
        return data
    columns = data.columns
    for i, data_type in shape.floating:
        chunked = columns[i] if isinstance(data, pa.Table) else pa.chunked_array([columns[i]])
        canonical = canonical_floats(chunked, data_type)
        columns[i] = canonical if isinstance(data, pa.Table) else canonical.chunk(0)
    return type(data).from_arrays(columns, schema=shape.exact)
