"""Between Arrow and everview's types and values: schemas, columns and whole bags of rows.

Two kinds of Python values meet here. *Internal* values are those of ``relational.types`` (a date is a number of days),
which the reference backend computes with; *public* values are what Arrow's ``to_pylist`` gives and users see (a date is
a ``datetime.date``). Contract: ``rows_from_arrow(rows_to_arrow(rows, fields), fields) == rows``, and every NaN that
comes in becomes the one ``NAN`` object, so that rows are equal exactly when Spark's grouping makes them equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import UnsupportedOperation, UnsupportedQuery
from everview.relational.nodes import Field, Schema
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT8,
    INT16,
    INT32,
    INT64,
    NAN,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Map,
    Null,
    Row,
    Struct,
    Value,
    Variant,
    YearMonthInterval,
    holds,
    is_floating,
)

_ARROW_TYPES: Final[dict[DataType, pa.DataType]] = {
    BOOLEAN: pa.bool_(),
    INT8: pa.int8(),
    INT16: pa.int16(),
    INT32: pa.int32(),
    INT64: pa.int64(),
    FLOAT32: pa.float32(),
    FLOAT64: pa.float64(),
    STRING: pa.string(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
    YEAR_MONTH_INTERVAL: pa.month_day_nano_interval(),
    DAY_TIME_INTERVAL: pa.duration("us"),
    NULL: pa.null(),
}

_FLOAT_BITS: Final[dict[pa.DataType, tuple[np.dtype[Any], np.dtype[Any], int]]] = {
    pa.float32(): (np.dtype(np.float32), np.dtype(np.int32), -(2**31)),
    pa.float64(): (np.dtype(np.float64), np.dtype(np.int64), -(2**63)),
}
"""Of each type of floats its NumPy type, integers of the same width, and the bits of -0.0 as such an integer."""

_INTEGER_STORAGE: Final[dict[DataType, pa.DataType]] = {
    DATE: pa.int32(),
    TIMESTAMP: pa.int64(),
    TIMESTAMP_NTZ: pa.int64(),
    DAY_TIME_INTERVAL: pa.int64(),
}
"""Types whose internal value is the integer that Arrow stores."""


_IS_VARIANT: Final = {b"variant": b"true"}
"""How Spark marks, in Arrow, the structs that are variants."""


@cache
def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type in which everview gives out values of a type.

    >>> arrow_type(Decimal(10, 2))
    Decimal128Type(decimal128(10, 2))
    """
    match data_type:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element, contains_null):
            return pa.list_(pa.field("element", arrow_type(element), contains_null))
        case Variant():
            return pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata=_IS_VARIANT)])
        case Struct(names, types):
            return pa.struct([pa.field(n, arrow_type(t)) for n, t in zip(names, types, strict=True)])
        case Map(key, value, contains_null):
            return pa.map_(arrow_type(key), pa.field("value", arrow_type(value), contains_null))
        case _:
            return _ARROW_TYPES[data_type]


def arrow_schema(fields: Schema) -> pa.Schema:
    """The Arrow schema of a relation."""
    return pa.schema([pa.field(f.name, arrow_type(f.type), f.nullable) for f in fields])


def data_type_from_arrow(arrow: pa.DataType) -> DataType:
    """The type that holds every value of an Arrow type.

    >>> str(data_type_from_arrow(pa.large_string()))
    'string'

    Raises:
        UnsupportedQuery: there is none (unsigned 64-bit integers, maps, times of day, …).
    """
    kinds = pa.types
    if kinds.is_dictionary(arrow) or kinds.is_run_end_encoded(arrow):
        return data_type_from_arrow(arrow.value_type)
    if isinstance(arrow, pa.BaseExtensionType):
        return data_type_from_arrow(arrow.storage_type)
    for matches, data_type in _FROM_ARROW:
        if matches(arrow):
            return data_type
    if kinds.is_decimal(arrow) and arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision:
        return Decimal(arrow.precision, arrow.scale)
    if kinds.is_timestamp(arrow):
        return TIMESTAMP_NTZ if arrow.tz is None else TIMESTAMP
    if is_arrow_list(arrow):
        return Array(data_type_from_arrow(arrow.value_type), arrow.value_field.nullable)
    if kinds.is_struct(arrow):
        inside = [arrow.field(i) for i in range(arrow.num_fields)]
        if [f.name for f in inside] == list(VARIANT.names) and inside[1].metadata == _IS_VARIANT:
            return VARIANT
        return Struct(tuple(f.name for f in inside), tuple(data_type_from_arrow(f.type) for f in inside))
    if kinds.is_null(arrow):
        return NULL
    if kinds.is_map(arrow):
        key, item = data_type_from_arrow(arrow.key_type), data_type_from_arrow(arrow.item_type)
        return Map(key, item, arrow.item_field.nullable)
    raise _no_column(arrow)


def _no_column(arrow: pa.DataType) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"a table cannot have a column of Arrow type {arrow}.", operator=str(arrow), hint=_arrow_hint(arrow)
    )


def is_arrow_string(arrow: pa.DataType) -> bool:
    """Whether the Arrow type is one of those for text."""
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def is_arrow_binary(arrow: pa.DataType) -> bool:
    """Whether the Arrow type is one of those for bytes."""
    kinds = pa.types
    tests = (kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view, kinds.is_fixed_size_binary)
    return any(matches(arrow) for matches in tests)


def is_arrow_list(arrow: pa.DataType) -> bool:
    """Whether the Arrow type is one of those for lists."""
    kinds = pa.types
    tests = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_list_view, kinds.is_large_list_view)
    return any(matches(arrow) for matches in tests)


_FROM_ARROW: Final[tuple[tuple[Callable[[pa.DataType], bool], DataType], ...]] = (
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_int8, INT8),
    (pa.types.is_int16, INT16),
    (pa.types.is_uint8, INT16),
    (pa.types.is_int32, INT32),
    (pa.types.is_uint16, INT32),
    (pa.types.is_int64, INT64),
    (pa.types.is_uint32, INT64),
    (pa.types.is_float16, FLOAT32),
    (pa.types.is_float32, FLOAT32),
    (pa.types.is_float64, FLOAT64),
    (is_arrow_string, STRING),
    (is_arrow_binary, BINARY),
    (pa.types.is_date, DATE),
    (pa.types.is_duration, DAY_TIME_INTERVAL),
    (pa.types.is_interval, YEAR_MONTH_INTERVAL),
)


def _arrow_hint(arrow: pa.DataType) -> str:
    if pa.types.is_uint64(arrow):
        return "use int64, or decimal128(20, 0) for the full range."
    if pa.types.is_time(arrow):
        return "Spark has no time of day here; use int64 microseconds or a timestamp."
    if "null" in str(arrow):
        return "give the column a type."
    return "use a type that Spark SQL has too."


def fields_from_arrow(schema: pa.Schema) -> Schema:
    """The columns of an Arrow schema.

    Raises:
        UnsupportedQuery: a table cannot have them. A query may make intervals of months, and values that are nothing but NULL.
    """
    fields = tuple(Field(f.name, data_type_from_arrow(f.type), f.nullable) for f in schema)
    for given, field in zip(schema, fields, strict=True):
        if holds(field.type, (Null, YearMonthInterval)):  # only queries have values of these
            raise _no_column(given.type)
    return fields


def rows_from_arrow(table: pa.Table, fields: Schema) -> list[Row]:
    """The rows of a table whose columns hold values of these types, as internal values."""
    if not fields:
        return [()] * table.num_rows
    columns = [internal_values(c, f.type) for c, f in zip(table.columns, fields, strict=True)]
    return list(zip(*columns, strict=True))


def internal_values(column: pa.ChunkedArray, data_type: DataType) -> list[Value]:
    """The values of one column as the algebra has them; the reverse of :func:`column_to_arrow`."""
    wanted = arrow_type(data_type)
    if column.type != wanted:
        column = column.cast(wanted)
    if data_type in _INTEGER_STORAGE:
        column = column.cast(_INTEGER_STORAGE[data_type])
    values: list[Value] = column.to_pylist()
    convert = _internal_converter(data_type, top=True)
    return values if convert is None else [None if v is None else convert(v) for v in values]


def _internal_converter(data_type: DataType, *, top: bool = False) -> Callable[[Any], Value] | None:
    """From one of Arrow's Python values to the internal value; None where they are the same."""
    match data_type:
        case Array(element):
            inside = _internal_converter(element)
            return lambda v: tuple(e if e is None or inside is None else inside(e) for e in v)
        case Struct(names, types):
            parts = [(n, _internal_converter(t)) for n, t in zip(names, types, strict=True)]
            return lambda v: tuple(v[n] if v[n] is None or f is None else f(v[n]) for n, f in parts)
        case Map(key, value):
            first, second = (_internal_converter(t) or (lambda v: v) for t in (key, value))
            return lambda v: tuple([(first(k), None if e is None else second(e)) for k, e in v])
        case _ if is_floating(data_type):
            return lambda v: NAN if math.isnan(v) else v
        case _ if data_type == YEAR_MONTH_INTERVAL:
            return lambda v: v.months
        case _ if data_type in _INTEGER_STORAGE and not top:
            # Inside lists and structs Arrow's own Python values arrive; their storage is one cast away.
            outer, storage = arrow_type(data_type), _INTEGER_STORAGE[data_type]
            return lambda v: pa.scalar(v, outer).cast(storage).as_py()
        case _:
            return None


def rows_to_arrow(rows: Sequence[Row], fields: Schema) -> pa.Table:
    """A bag of internal rows as a table, in the order given."""
    if not fields:
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))])
    columns = zip(*rows, strict=True) if rows else ((),) * len(fields)
    arrays = [column_to_arrow(values, f.type) for values, f in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(fields))


def column_to_arrow(values: Iterable[Value], data_type: DataType) -> pa.Array:
    """Internal values of one type as an Arrow array."""
    wanted, present = arrow_type(data_type), list(values)
    match data_type:
        case _ if data_type in _INTEGER_STORAGE:
            return pa.array(present, _INTEGER_STORAGE[data_type]).cast(wanted)
        case _ if data_type == YEAR_MONTH_INTERVAL:
            return pa.array([None if v is None else pa.MonthDayNano([v, 0, 0]) for v in present], wanted)
        case Array(element):
            return _lists_to_arrow(present, element, wanted)
        case Map(key, value):
            return _maps_to_arrow(present, key, value, wanted)
        case Variant():
            # Spark takes no NULL in the binaries, not even below a NULL.
            parts = [pa.array([b"" if v is None else v[i] for v in present], pa.binary()) for i in range(2)]
            absent = pa.array([v is None for v in present], pa.bool_())
            return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=absent)
        case Struct(names, types):
            if not names:
                return pa.array([None if v is None else {} for v in present], wanted)
            parts = [column_to_arrow([None if v is None else v[i] for v in present], t) for i, t in enumerate(types)]
            absent = pa.array([v is None for v in present], pa.bool_())
            return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=absent)
        case _:
            return pa.array(present, wanted)


def _lists_to_arrow(lists: list[Value], element: DataType, wanted: pa.DataType) -> pa.Array:
    offsets: list[int] = [0]
    inside: list[Value] = []
    for values in lists:
        inside.extend(values or ())
        offsets.append(len(inside))
    absent = pa.array([v is None for v in lists], pa.bool_())
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), column_to_arrow(inside, element), type=wanted, mask=absent
    )


def _maps_to_arrow(maps: list[Value], key: DataType, value: DataType, wanted: pa.DataType) -> pa.Array:
    offsets: list[int | None] = []
    inside: list[Value] = []
    for entries in maps:
        offsets.append(None if entries is None else len(inside))
        inside.extend(entries or ())
    keys = column_to_arrow([k for k, _ in inside], key)
    items = column_to_arrow([v for _, v in inside], value)
    return pa.MapArray.from_arrays(pa.array([*offsets, len(inside)], pa.int32()), keys, items, type=wanted)


def canonical_floats(column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """The column with -0.0 as 0.0 and every NaN as the same NaN: what Spark's grouping identifies is then identical."""
    return pa.chunked_array([canonical_array(c, data_type) for c in column.chunks], column.type)


def canonical_array(array: pa.Array, data_type: DataType) -> pa.Array:
    """The same for one array; one that is canonical already is returned itself."""
    if not holds(data_type, FLOATS) or len(array) == 0:
        return array
    match data_type:
        case Array(element):
            lengths = pc.fill_null(pc.list_value_length(array), 0)
            offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
            inside = canonical_array(array.flatten(), element)
            return pa.ListArray.from_arrays(offsets, inside, type=array.type, mask=array.is_null())
        case Map(key, value):
            parts = [canonical_array(p, t) for p, t in ((array.keys, key), (array.items, value))]
            offsets = pc.if_else(pc.fill_null(array.is_valid(), False), array.offsets[:-1], pa.scalar(None, pa.int32()))
            ends = pa.concat_arrays([offsets, array.offsets[-1:]])
            return pa.MapArray.from_arrays(pc.subtract(ends, array.offsets[0]), *parts, type=array.type)
        case Struct(_, types):
            parts = [canonical_array(p, t) for p, t in zip(array.flatten(), types, strict=True)]
            return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=array.is_null())
        case _ if _is_canonical(array):
            return array
        case _:
            positive = pc.add(array, pa.scalar(0.0, array.type))  # -0.0 + 0.0 is 0.0, all else stays
            return pc.if_else(pc.is_nan(positive), pa.scalar(NAN, array.type), positive)


_FEW_FLOATS: Final = 8
"""So many are looked at one by one sooner than NumPy looks at all of them."""


def _is_canonical(array: pa.Array) -> bool:
    """Whether an array of floats has neither NaN nor -0.0, not even below a NULL."""
    floats, integers, negative_zero = _FLOAT_BITS[array.type]
    values = np.frombuffer(array.buffers()[1], floats, len(array), array.offset * floats.itemsize)
    if len(values) <= _FEW_FLOATS:
        return all(v < 0.0 or v > 0.0 or (v == 0.0 and math.copysign(1.0, v) > 0.0) for v in values.tolist())
    return not (np.isnan(values).any() or (values.view(integers) == negative_zero).any())


def canonical_rows(rows: Iterable[Row], fields: Schema) -> list[Row]:
    """Internal rows with each NaN of a floating column, wherever it was computed, replaced by ``NAN``."""
    floating = [i for i, f in enumerate(fields) if holds(f.type, FLOATS)]
    if not floating:
        return list(rows)
    return [_with_one_nan(row, floating) if any(_is_nan(row[i]) for i in floating) else row for row in rows]


def _is_nan(value: Value) -> bool:
    if isinstance(value, tuple):
        return any(_is_nan(v) for v in value)
    return isinstance(value, float) and value != value and value is not NAN  # noqa: PLR0124 -- only NaN differs from itself


def _with_one_nan(row: Row, positions: list[int]) -> Row:
    def fix(value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(fix(v) for v in value)
        return NAN if _is_nan(value) else value

    values = list(row)
    for i in positions:
        values[i] = fix(values[i])
    return tuple(values)


def without_empty_batches(table: pa.Table) -> pa.Table:
    """The same rows in batches that have some: ``createDataFrame`` of Spark leaves out what comes after an empty one.

    A table without rows has one empty chunk a column: of none, it cannot make arrays or structs.

    >>> halves = pa.concat_tables([pa.table({"x": [1]}), pa.table({"x": pa.array([], pa.int64())}), pa.table({"x": [2]})])
    >>> [batch.num_rows for batch in without_empty_batches(halves).to_batches()]
    [1, 1]
    """
    if not table.num_columns:
        return table
    if not table.num_rows:
        empty: pa.Table = table.schema.empty_table()
        return empty
    return pa.Table.from_batches([b for b in table.to_batches() if b.num_rows], table.schema)


def public_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples of Arrow's Python values, which is what users see.

    Raises:
        UnsupportedOperation: Python has no such value.
    """
    if table.num_columns == 0:
        return [()] * table.num_rows
    with python_values():
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@contextmanager
def python_values() -> Iterator[None]:
    """Around what makes Python values of Arrow's: dates, timestamps and intervals reach further in Spark than in Python."""
    try:
        yield
    except (OverflowError, ValueError) as error:
        raise UnsupportedOperation(
            f"a date, timestamp or interval is none that Python can hold: {error}.",
            hint="read the rows with to_arrow() or to_spark(), which can.",
        ) from error
