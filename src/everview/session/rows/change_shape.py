"""What a table's rows look like, worked out once a table: the short ways for rows that fit, or almost fit, as they are.

Most programs send rows of exactly the table's columns, over and over: Arrow batches, or lists of tuples or dicts. For those
little is left to decide, and the work per transaction must not grow with the number of columns that no view reads. Contract: a
short way gives exactly the rows that the long one would, or None; it never raises.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

from everview.catalog import TableDefinition
from everview.relational.arrow import (
    arrow_schema,
    canonical_array,
    canonical_floats,
    is_arrow_binary,
    is_arrow_string,
)
from everview.relational.arrow_text import is_unicode
from everview.relational.column_names import WEIGHT
from everview.relational.types import FLOATS, STRING, DataType, String, holds
from everview.session.rows.quick_columns import REFUSALS, QuickColumn, are_among, quick_column

if TYPE_CHECKING:
    from everview.backends.embedded.arrow_batches import BatchCheck

_Getter: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's Arrow schema, the same with every column nullable, with weights behind it, and the columns to look into.

    ``floating`` and ``texts`` are looked into where the table keeps its rows; ``inner_texts`` are those inside of other values.
    ``quick`` takes each column out of a dict, or out of a tuple, and converts its values. ``whole`` is a row as one value,
    where every column has a quick way. ``check`` looks at batches. ``layouts`` are the schemas seen last that differ from the
    table's in layout only, each with the columns to cast.
    """

    exact: pa.Schema
    loose: pa.Schema
    weighted: tuple[pa.Schema, pa.Schema]
    required: list[int]
    floating: tuple[tuple[int, DataType], ...]
    texts: tuple[int, ...]
    inner_texts: tuple[int, ...]
    quick: tuple[tuple[_Getter, _Getter, QuickColumn | None], ...]
    whole: WholeRows | None
    check: BatchCheck
    layouts: list[tuple[pa.Schema, tuple[int, ...]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WholeRows:
    """The type of a row as one value, and of each column which Python types pyarrow may convert, and which values."""

    type: pa.DataType
    names: tuple[str, ...]
    columns: tuple[tuple[str, frozenset[type], Callable[[Any], bool] | None], ...]


_ARROW: Final = (pa.RecordBatch, pa.Table)
_MOST_LAYOUTS: Final = 8
_FEW_ROWS: Final = 8
"""Up to so many rows are converted by one call of pyarrow, which costs more a row and less a column than a call for each."""
_shapes: WeakKeyDictionary[TableDefinition, Shape] = WeakKeyDictionary()


def shape_of(table: TableDefinition) -> Shape:
    """The shape of a table's rows."""
    known = _shapes.get(table)
    if known is None:
        exact = arrow_schema(table.fields)
        required = [i for i, f in enumerate(table.fields) if not f.nullable]
        texts = tuple(i for i, f in enumerate(table.fields) if holds(f.type, String)) if table.retain else ()
        plain = tuple(i for i in texts if table.fields[i].type == STRING)
        checks = importlib.import_module("everview.backends.embedded.arrow_batches")  # with Numba, once it is needed
        quick = [quick_column(f.type, f.nullable) for f in table.fields]
        known = Shape(
            exact,
            pa.schema([f.with_nullable(True) for f in exact]),
            tuple(exact.append(pa.field(WEIGHT, pa.int64(), nullable)) for nullable in (True, False)),
            required,
            tuple((i, f.type) for i, f in enumerate(table.fields) if holds(f.type, FLOATS)) if table.retain else (),
            texts,
            tuple(i for i in texts if i not in plain),
            tuple((operator.itemgetter(f.name), operator.itemgetter(i), quick[i]) for i, f in enumerate(table.fields)),
            _whole_rows(exact, quick),
            checks.BatchCheck(exact, required, plain),
        )
        _shapes[table] = known
    return known


def _whole_rows(exact: pa.Schema, quick: Sequence[QuickColumn | None]) -> WholeRows | None:
    known = [q for q in quick if q is not None]
    if len(known) < len(quick):
        return None
    columns = tuple((name, q.taken, q.fits) for name, q in zip(exact.names, known, strict=True))
    return WholeRows(pa.struct(list(exact)), tuple(exact.names), columns)


def from_python(table: TableDefinition, data: Any) -> pa.RecordBatch | None:
    """The rows, if they are a list of tuples, or of dicts, with exactly the table's columns, which pyarrow can convert."""
    if type(data) is not list or not data:
        return None
    shape = shape_of(table)
    if len(data) <= _FEW_ROWS and shape.whole is not None and (few := _few_rows(shape.whole, data)) is not None:
        return few
    kind = type(data[0])
    if kind not in (tuple, dict) or not are_among(frozenset((kind,)), list(map(type, data))):
        return None
    if not are_among(frozenset((len(shape.exact),)), list(map(len, data))):
        return None
    arrays = []
    for by_name, by_position, quick in shape.quick:
        try:
            values = list(map(by_name if kind is dict else by_position, data))
        except KeyError:
            return None
        array = None if quick is None else quick.convert(values)
        if array is None:
            return None
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=shape.exact)


def _few_rows(whole: WholeRows, data: list[Any]) -> pa.RecordBatch | None:
    """A few tuples, or dicts, each as one value; None where a value has to be looked at by the long way."""
    first, rows = type(data[0]), []
    if first is not tuple and first is not dict:
        return None
    for given in data:
        if type(given) is not first or len(given) != len(whole.names):
            return None
        row = dict(zip(whole.names, given, strict=True)) if first is tuple else given
        try:
            for name, taken, fits in whole.columns:
                value = row[name]
                if type(value) not in taken or not (fits is None or value is None or fits(value)):
                    return None
        except KeyError:
            return None
        rows.append(row)
    try:
        return pa.RecordBatch.from_struct_array(pa.array(rows, whole.type))
    except REFUSALS:
        return None


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
    """The rows, if they are Arrow with the table's columns, but for layout, and no NULL where none may be; None otherwise.

    Floats of a table that keeps its rows are made canonical here, and its text is looked at, which Arrow does not do; a table
    that keeps none leaves both to whoever reads a column.
    """
    if not isinstance(data, _ARROW):
        return None
    shape = shape_of(table)
    is_exact = data.schema.equals(shape.exact)
    cast = () if is_exact or data.schema.equals(shape.loose) else _columns_to_cast(shape, data.schema)
    if cast is None:
        return None
    if is_exact and not (shape.floating or shape.texts):
        return None if shape.required and _has_nulls(data, shape) else data
    is_batch = isinstance(data, pa.RecordBatch)
    rows, texts = shape.check.passed(data, is_exact=is_exact) if is_batch and not cast else None, shape.inner_texts
    if rows is None:
        has_nulls = shape.required and _has_nulls(data, shape)
        rows, texts = None if has_nulls else _cast(data, cast, shape, is_exact=is_exact), shape.texts
    if rows is None or not all(is_unicode(rows.column(i)) for i in texts):
        return None
    make, changed = canonical_array if is_batch else canonical_floats, {}
    for i, data_type in shape.floating:
        column = rows.column(i)
        canonical = make(column, data_type)
        if canonical is not column:
            changed[i] = canonical
    if not changed:
        return rows
    columns = [changed.get(i, column) for i, column in enumerate(rows.columns)]
    return type(rows).from_arrays(columns, schema=shape.exact)


def _cast(
    data: pa.Table | pa.RecordBatch, cast: Iterable[int], shape: Shape, *, is_exact: bool
) -> pa.Table | pa.RecordBatch | None:
    """The rows with the table's schema; None if text is too long for the layout of its column."""
    if is_exact:
        return data
    columns = data.columns
    try:
        for i in cast:
            columns[i] = columns[i].cast(shape.exact.field(i).type)
    except pa.ArrowException:
        return None
    return type(data).from_arrays(columns, schema=shape.exact)


def _has_nulls(data: pa.Table | pa.RecordBatch, shape: Shape) -> bool:
    """Whether a column that must not have NULLs has some."""
    if len(shape.required) == 1:  # of several, selecting them and one call for all takes less than asking each
        return bool(data.column(shape.required[0]).null_count)
    checked = data if len(shape.required) == len(shape.exact) else data.select(shape.required)
    return bool(checked.drop_null().num_rows != data.num_rows)


def _columns_to_cast(shape: Shape, given: pa.Schema) -> tuple[int, ...] | None:
    """The columns of a schema that are text in another layout (large, view, dictionary); None if more than that differs."""
    for known, cast in shape.layouts:
        if given.equals(known):
            return cast
    if given.names != shape.exact.names:
        return None
    wrong = [i for i, (ours, theirs) in enumerate(zip(shape.exact, given, strict=True)) if ours.type != theirs.type]
    if not all(_is_same_text(shape.exact.field(i).type, given.field(i).type) for i in wrong):
        return None
    del shape.layouts[: len(shape.layouts) - _MOST_LAYOUTS + 1]
    shape.layouts.append((given, tuple(wrong)))
    return tuple(wrong)


def _is_same_text(ours: pa.DataType, theirs: pa.DataType) -> bool:
    plain = theirs.value_type if pa.types.is_dictionary(theirs) else theirs
    is_text = is_arrow_string if pa.types.is_string(ours) else is_arrow_binary
    return (pa.types.is_string(ours) or pa.types.is_binary(ours)) and is_text(plain)
