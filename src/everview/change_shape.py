"""What a table's rows look like in Arrow, worked out once a table: the short way for batches that already fit.

Most programs send Arrow batches of exactly the table's columns, over and over. For those nothing is left to convert, and the
work per transaction must not grow with the number of columns that no view reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema, canonical_floats, has_floats
from everview.relational.types import DataType


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's Arrow schema, the same with every column nullable, and the columns that need a look at their values."""

    exact: pa.Schema
    loose: pa.Schema
    required: tuple[int, ...]
    floating: tuple[tuple[int, DataType], ...]


_shapes: WeakKeyDictionary[TableDefinition, Shape] = WeakKeyDictionary()


def shape_of(table: TableDefinition) -> Shape:
    """The shape of a table's rows."""
    known = _shapes.get(table)
    if known is None:
        exact = arrow_schema(table.fields)
        known = Shape(
            exact,
            pa.schema([f.with_nullable(True) for f in exact]),
            tuple(i for i, f in enumerate(table.fields) if not f.nullable),
            tuple((i, f.type) for i, f in enumerate(table.fields) if has_floats(f.type)),
        )
        _shapes[table] = known
    return known


def as_it_is(table: TableDefinition, data: Any) -> pa.Table | None:
    """The rows, if they are Arrow with exactly the table's columns and no NULL where none may be; None otherwise."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table):
        return None
    shape = shape_of(table)
    if not (data.schema.equals(shape.exact) or data.schema.equals(shape.loose)):
        return None
    columns = data.columns
    if any(columns[i].null_count for i in shape.required):
        return None
    for i, data_type in shape.floating:
        columns[i] = canonical_floats(columns[i], data_type)
    return pa.Table.from_arrays(columns, schema=shape.exact)
