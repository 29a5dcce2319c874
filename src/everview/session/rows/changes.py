"""What users give as changes, in whatever form, as checked ``Change`` batches for a backend.

Accepted: Arrow tables and batches (and whatever exports an Arrow stream), pandas and PySpark DataFrames, lists of
tuples, dicts or ``Row``s. Columns are matched by name in any case, those of tuples by position. Contract: the batch
that leaves here has exactly the table's columns and Arrow types, no NULL where none may be, and floats in canonical form
(-0.0 as 0.0, one NaN), because a Z-set must identify what Spark's grouping identifies. All else is ``InvalidChange``
with table, column, value and row numbers, counted from 0. pandas' NaN is a missing value: NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import Change, ChangeKind
from everview.catalog import TableDefinition
from everview.errors import InvalidChange, UnsupportedOperation, did_you_mean
from everview.relational.arrow import arrow_schema, column_to_arrow, rows_to_arrow
from everview.relational.column_names import WEIGHT
from everview.relational.display import show_numbers, show_value
from everview.relational.nodes import Field, Schema
from everview.relational.types import is_integral
from everview.session.rows.change_shape import as_it_is, as_it_is_with_weights, from_python
from everview.session.rows.change_weights import CHANGE_TYPE, read_weights
from everview.session.rows.convert_columns import convert_column, whole_numbers
from everview.session.rows.convert_values import Unfit, converter_to, or_null
from everview.session.rows.given_rows import GivenRows, Mode, as_arrow, read_rows
from everview.session.rows.quick_columns import quick_column

COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
_MINUS_ONE: Final = pa.scalar(-1, pa.int64())
_KINDS: Final = {Mode.UPSERT: ChangeKind.UPSERT, Mode.DELETE_KEYS: ChangeKind.DELETE_KEYS}


def read_changes(table: TableDefinition, data: Any, mode: Mode) -> Change:
    """The change that ``data`` brings to ``table``.

    Raises:
        InvalidChange: the rows do not fit the table.
        UnsupportedOperation: the table does not take this kind of change.
    """
    _check_mode(table, mode)
    data = as_arrow(data)
    if mode is not Mode.DELETE_KEYS:
        fitting = from_python(table, data) if isinstance(data, list) else as_it_is(table, data)
        if fitting is not None:
            weights = pa.repeat(_MINUS_ONE, fitting.num_rows) if mode is Mode.DELETE else None
            return Change(table.name, _KINDS.get(mode, ChangeKind.WEIGHTED), fitting, weights)
        weighted = as_it_is_with_weights(table, data) if mode is Mode.APPLY else None
        if weighted is not None:
            return Change(table.name, ChangeKind.WEIGHTED, *weighted)
    wanted = table.key_fields if mode is Mode.DELETE_KEYS else table.fields
    given = read_rows(table, wanted, data, mode)
    weights = read_weights(table, given, mode)
    ignored = {WEIGHT, CHANGE_TYPE}
    if given.take(CHANGE_TYPE) is not None:
        ignored |= {COMMIT_VERSION, COMMIT_TIMESTAMP}  # a row of Delta's change feed brings them along
    if table.defaults and weights is None and mode is not Mode.DELETE_KEYS:
        given = _with_defaults(table, given)
    _check_names(table, wanted, [n for n in given.names if n.lower() not in ignored], mode)
    columns = [read_column(table, column, given) for column in wanted]
    rows = _batch_of(columns, arrow_schema(wanted))
    return Change(table.name, _KINDS.get(mode, ChangeKind.WEIGHTED), rows, weights)


def check_source(source: object) -> tuple[str, int]:
    """The name and number of a batch, if they are that."""
    match source:
        case (str(name), int(number)) if name and not isinstance(number, bool) and number >= 0:
            return name, number
        case _:
            raise InvalidChange(
                f"{show_value(source)} is not the name of a source and the number of a batch.",
                hint="give a pair such as ('orders.csv', 17).",
            )


def _with_defaults(table: TableDefinition, given: GivenRows) -> GivenRows:
    """Inserted rows with the columns that they lack and that have a default."""
    lacking = {column: default.value for column, default in table.defaults if given.take(column) is None}
    fields = [table.fields[i] for i in table.positions(lacking)]
    every = pa.array(np.zeros(given.rows, dtype=np.int64))
    columns = [rows_to_arrow([(v,)], (f,)).column(0).take(every) for v, f in zip(lacking.values(), fields, strict=True)]
    return replace(given, names=[*given.names, *lacking], columns=[*given.columns, *columns])


def _check_mode(table: TableDefinition, mode: Mode) -> None:
    if mode not in _KINDS:
        return
    if not table.primary_key:
        raise UnsupportedOperation(
            f"table '{table.name}' has no primary key, which {mode.value} needs.",
            hint="declare one with create_table(..., primary_key=...), or use insert and delete.",
        )
    if not table.retain:
        raise UnsupportedOperation(
            f"table '{table.name}' keeps no rows (retain=False), so {mode.value} cannot find the old ones.",
            hint="give the old rows to delete and the new ones to insert.",
        )


def _check_names(table: TableDefinition, wanted: Schema, names: Sequence[str], mode: Mode) -> None:
    known = [f.name for f in wanted]
    folded = [n.lower() for n in names]
    for i, name in enumerate(names):
        if folded[i] in folded[:i]:
            raise InvalidChange(f"the rows for table '{table.name}' have two columns named '{name}'.")
        if folded[i] not in [k.lower() for k in known]:
            if mode is Mode.DELETE_KEYS and folded[i] in [f.name.lower() for f in table.fields]:
                hint = f"delete_keys takes only the key: {', '.join(known)}."
                raise InvalidChange(f"column '{name}' is not in the primary key of table '{table.name}'.", hint=hint)
            raise InvalidChange(f"column '{name}' is not in table '{table.name}'.", hint=did_you_mean(name, known))
    missing = [k for k in known if k.lower() not in folded]
    if missing:
        listed = ", ".join(f"'{m}'" for m in missing)
        many = len(missing) > 1
        raise InvalidChange(
            f"column{'s' if many else ''} {listed} of table '{table.name}' "
            f"{'are' if many else 'is'} missing from the rows."
        )


def read_column(table: TableDefinition, column: Field, given: GivenRows) -> pa.ChunkedArray:
    """A column of the given rows in the table's type, checked."""
    values = given.take(column.name)
    assert values is not None, column
    try:
        if not isinstance(values, pa.ChunkedArray):
            quick = quick_column(column.type, column.nullable)
            array = None if quick is None else quick.convert(values)
            converted = pa.chunked_array([_convert_list(values, column) if array is None else array])
        elif given.is_pandas and is_integral(column.type) and pa.types.is_floating(values.type):
            converted = convert_column(whole_numbers(values), column.type)
        else:
            converted = convert_column(values, column.type)
    except Unfit as unfit:
        raise _invalid(table, column, unfit) from None
    if not column.nullable and converted.null_count:
        nulls = pc.indices_nonzero(converted.is_null()).to_pylist()
        is_key = column.name in table.primary_key
        raise InvalidChange(
            f"column '{column.name}' of table '{table.name}' is {'in the primary key' if is_key else 'NOT NULL'}, "
            f"but has NULL in {show_numbers(nulls)}."
        )
    return converted


def _batch_of(columns: list[pa.ChunkedArray], schema: pa.Schema) -> pa.Table | pa.RecordBatch:
    """One batch where every column is one piece, because an engine has less to do with it."""
    if all(c.num_chunks == 1 for c in columns):
        return pa.RecordBatch.from_arrays([c.chunk(0) for c in columns], schema=schema)
    return pa.Table.from_arrays(columns, schema=schema)


def _convert_list(values: Sequence[Any], column: Field) -> pa.Array:
    convert = or_null(converter_to(column.type))
    converted: list[Any] = []
    first: Unfit | None = None
    unfit_rows: list[int] = []
    for number, value in enumerate(values):
        try:
            converted.append(convert(value))
        except Unfit as unfit:
            first = first or unfit
            unfit_rows.append(number)
    if first is not None:
        raise Unfit(first.why, rows=unfit_rows, hint=first.hint)
    return column_to_arrow(converted, column.type)


def _invalid(table: TableDefinition, column: Field, unfit: Unfit) -> InvalidChange:
    where = f" ({show_numbers(unfit.rows)})" if unfit.rows else ""
    return InvalidChange(
        f"column '{column.name}' of table '{table.name}' is {column.type} and {unfit.why}{where}.", hint=unfit.hint
    )
