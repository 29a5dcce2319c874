"""What INSERT, UPDATE and MERGE store: values cast to the column's type as Spark does on INSERT in ANSI mode.

``_can_assign`` is Spark's store assignment rule; the cast itself fails on overflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from everview.catalog import TableDefinition
from everview.errors import EvaluationError, InvalidQuery, guarded
from everview.relational.column_names import WEIGHT
from everview.relational.expressions import Cast, Column, Expression, Literal
from everview.relational.nodes import Field, Relation
from everview.relational.types import (
    DATE,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Map,
    Struct,
    is_numeric,
)

if TYPE_CHECKING:
    from everview.session.core import Core


def new_rows(core: Core, table: TableDefinition, plan: Relation) -> pa.Table:
    """The answer of a query for what a statement takes from a table and adds to it."""
    try:
        with guarded(f"of the new values for table {table.name}"):
            return core.backend.query(plan)
    except EvaluationError as error:
        message = f"the new values for table '{table.name}' cannot be computed: {error.message}"
        raise EvaluationError(message, condition=error.condition, hint=error.hint) from error


def default_of(table: TableDefinition, field: Field) -> Literal:
    """What a row that is inserted without a column gets in it."""
    return dict(table.defaults).get(field.name, Literal(None, field.type))


def weighted(rows: pa.Table, weight: int) -> pa.Table:
    """Rows as changes, each of this weight."""
    weights = pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows)
    return rows.cast(nullable(rows.schema)).append_column(WEIGHT, weights)


def nullable(arrow: pa.Schema) -> pa.Schema:
    """The same schema without promises, which the old and the new rows may make differently."""
    return pa.schema([f.with_nullable(True) for f in arrow])


def assigned(table: TableDefinition, field: Field, source: Column, zone: str) -> Expression:
    """A value as a column of the table stores it.

    Raises:
        InvalidQuery: Spark would not assign such a value to the column.
    """
    if source.type == field.type:
        return source
    if not _can_assign(source.type, field.type):
        raise InvalidQuery(
            f"column '{field.name}' of table '{table.name}' is {field.type} and cannot be assigned a {source.type}.",
            hint="write a CAST if that is what you mean.",
        )
    return Cast(source, field.type, zone=zone)


def _can_assign(source: DataType, target: DataType) -> bool:
    """Spark's ``Cast.canANSIStoreAssign``: numbers among themselves, moments too, and anything simple to text."""
    moments = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    match source, target:
        case _ if source in (target, NULL):
            return True
        case Array(inner), Array(outer):
            return _can_assign(inner, outer)
        case Map(key, value), Map(other_key, other_value):
            return _can_assign(key, other_key) and _can_assign(value, other_value)
        case Struct(_, inner_types), Struct(_, outer_types):
            return len(inner_types) == len(outer_types) and all(map(_can_assign, inner_types, outer_types))
        case _ if is_numeric(source) and is_numeric(target):
            return True
        case _ if source in moments and target in moments:
            return True
        case _:
            return target == STRING and not isinstance(source, Array | Map | Struct)
