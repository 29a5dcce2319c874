"""Arrow columns that users give, whole, as columns of a table's type, or not at all.

The same law as for single values: without loss or not at all, and no Python loop over rows. Encodings do not matter
(dictionary, run-end, large and view layouts are unpacked). Contract: the result has exactly ``arrow_type(target)``;
otherwise ``Unfit`` says why and at which rows.
"""

from __future__ import annotations

import decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.relational.arrow import (
    arrow_type,
    canonical_floats,
    column_to_arrow,
    is_arrow_binary,
    is_arrow_list,
    is_arrow_string,
)
from everview.relational.arrow_text import is_unicode, rows_without_unicode
from everview.relational.display import show_value
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    Map,
    String,
    Struct,
    holds,
    integer_bounds,
    is_floating,
    is_integral,
)
from everview.session.rows.convert_values import EXACT_INTEGERS, Unfit, converter_to, or_null
from everview.session.rows.local_times import instants_of

_WIDEST: Final = 76
"""Digits of Arrow's largest decimal: room for every integer and decimal that can come in."""


def convert_column(column: pa.ChunkedArray, target: DataType) -> pa.ChunkedArray:
    """The column in the Arrow type of ``target``, with floats in their canonical form, and text that is text."""
    try:
        made = _converted(_unpacked(column), target)
    except pa.ArrowException as error:
        raise Unfit(f"cannot take these values of Arrow type {column.type}: {error}") from error
    if holds(target, String) and not is_unicode(made):
        raise _no_text(made)
    return canonical_floats(made, target)


def _no_text(column: pa.ChunkedArray) -> Unfit:
    if not pa.types.is_string(column.type):
        return Unfit("cannot hold text that is not UTF-8")
    rows = rows_without_unicode(column)
    shown = show_value(column[rows[0]].cast(pa.binary()).as_py())
    return Unfit(f"cannot hold {shown}, which is not UTF-8", rows=rows, hint="a binary column takes any bytes.")


def whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of floats as integers, NaN as NULL, if all of them are whole and exact."""
    numbers = column.cast(pa.float64()) if column.type != pa.float64() else column
    numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    largest = float(EXACT_INTEGERS[FLOAT64])
    is_whole = pc.and_(pc.equal(pc.trunc(numbers), numbers), pc.less_equal(pc.abs(numbers), largest))
    _checked(numbers, pc.invert(is_whole), hint="an INT column of pandas takes whole numbers, and NaN for NULL.")
    return numbers.cast(pa.int64())


def _unpacked(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without its encoding."""
    arrow = column.type
    if isinstance(arrow, pa.BaseExtensionType):
        chunks = [c.storage for c in column.chunks]
        return _unpacked(pa.chunked_array(chunks, arrow.storage_type))
    if pa.types.is_dictionary(arrow):
        return _unpacked(column.cast(arrow.value_type))
    if pa.types.is_run_end_encoded(arrow):
        return _unpacked(pa.chunked_array([pc.run_end_decode(c) for c in column.chunks], arrow.value_type))
    return column


def _converted(column: pa.ChunkedArray, target: DataType) -> pa.ChunkedArray:
    arrow, wanted = column.type, arrow_type(target)
    if arrow == wanted:
        return column
    if pa.types.is_null(arrow):
        return column.cast(wanted)
    match target:
        case _ if is_integral(target) and pa.types.is_integer(arrow):
            return _checked(column, _outside(column, *integer_bounds(target))).cast(wanted)
        case _ if is_floating(target) and pa.types.is_integer(arrow):
            largest = EXACT_INTEGERS[target]
            return _checked(column, _outside(column, -largest, largest)).cast(wanted, safe=False)
        case _ if is_floating(target) and pa.types.is_floating(arrow):
            return _narrowed_floats(column) if target == FLOAT32 else column.cast(wanted)
        case Decimal(precision, scale) if pa.types.is_integer(arrow) or pa.types.is_decimal(arrow):
            return _rescaled(column, precision, scale)
        case Array(element, contains_null) if is_arrow_list(arrow):
            return _converted_lists(column, element, contains_null, wanted)
        case Map() if pa.types.is_map(arrow):
            convert = or_null(converter_to(target))
            return pa.chunked_array([column_to_arrow([convert(v) for v in column.to_pylist()], target)])
        case Struct() if pa.types.is_struct(arrow):
            return _converted_structs(column, target)
        case _ if target == TIMESTAMP and pa.types.is_timestamp(arrow) and arrow.tz is None:
            return instants_of(_cast_or_locate(column, arrow_type(TIMESTAMP_NTZ)))
        case _ if target == DATE and pa.types.is_timestamp(arrow) and arrow.tz is None:
            days = column.cast(wanted, safe=False)
            hint = "a date column takes times at midnight; convert the column to dates first."
            return _lossless(column, days, pc.not_equal(days.cast(arrow), column), hint)
        case _ if _differs_only_in_layout(arrow, target):
            return _cast_or_locate(column, wanted)
        case _:
            raise Unfit(f"cannot take values of Arrow type {arrow}", hint=_advice(arrow, target))


def _differs_only_in_layout(arrow: pa.DataType, target: DataType) -> bool:
    kinds = pa.types
    return bool(
        (target == STRING and is_arrow_string(arrow))
        or (target == BINARY and is_arrow_binary(arrow))
        or (target == DATE and kinds.is_date(arrow))
        or (target == TIMESTAMP and kinds.is_timestamp(arrow) and arrow.tz is not None)
        or (target == TIMESTAMP_NTZ and kinds.is_timestamp(arrow) and arrow.tz is None)
        or (target == DAY_TIME_INTERVAL and kinds.is_duration(arrow))
        or (target == BOOLEAN and kinds.is_boolean(arrow))
    )


def _advice(arrow: pa.DataType, target: DataType) -> str | None:
    kinds = pa.types
    if kinds.is_floating(arrow) and is_integral(target):
        return "convert the column to integers first; in pandas, Int64 keeps missing values."
    if kinds.is_floating(arrow) and isinstance(target, Decimal):
        return "convert the column to decimals first."
    if kinds.is_timestamp(arrow) and target == TIMESTAMP_NTZ:
        return "remove the column's time zone, or declare it timestamp."
    if kinds.is_timestamp(arrow) and target == DATE:
        return "convert the column to dates first."
    if is_arrow_string(arrow):
        return "parse the column first."
    return None


def _checked(column: pa.ChunkedArray, is_wrong: pa.ChunkedArray, hint: str | None = None) -> pa.ChunkedArray:
    """The column, unless some of its values are marked wrong."""
    if pc.any(is_wrong).as_py():
        rows = pc.indices_nonzero(pc.fill_null(is_wrong, False)).to_pylist()
        raise Unfit(f"cannot hold {_shown(column[rows[0]])}", rows=rows, hint=hint)
    return column


def _shown(value: pa.Scalar) -> str:
    try:
        return show_value(value.as_py())
    except (OverflowError, ValueError):  # a time that Python does not know; its number says how far off it is
        return f"{value.value} as {value.type}"


def _outside(column: pa.ChunkedArray, low: int, high: int) -> pa.ChunkedArray:
    """Where an integer column is below ``low`` or above ``high``, which may lie beyond the column's own type."""
    width = column.type.bit_width
    is_signed = pa.types.is_signed_integer(column.type)
    own_low, own_high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    below = pc.less(column, pa.scalar(max(low, own_low), column.type))
    return pc.or_(below, pc.greater(column, pa.scalar(min(high, own_high), column.type)))


def _narrowed_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    narrow = column.cast(pa.float32(), safe=False)
    return _lossless(
        column, narrow, pc.and_(pc.not_equal(narrow.cast(column.type), column), pc.invert(pc.is_nan(column)))
    )


def _lossless(
    column: pa.ChunkedArray, result: pa.ChunkedArray, is_wrong: pa.ChunkedArray, hint: str | None = None
) -> pa.ChunkedArray:
    _checked(column, is_wrong, hint)
    return result


def _rescaled(column: pa.ChunkedArray, precision: int, scale: int) -> pa.ChunkedArray:
    arrow = column.type
    if pa.types.is_integer(arrow):
        limit = 10 ** (precision - scale) - 1
        _checked(column, _outside(column, -limit, limit))
        return column.cast(pa.decimal256(_WIDEST, scale)).cast(pa.decimal128(precision, scale))
    try:
        return column.cast(pa.decimal128(precision, scale))
    except pa.ArrowInvalid:
        wide = column.cast(pa.decimal256(_WIDEST, max(arrow.scale, scale)))
        rounded = pc.round(wide, ndigits=scale, round_mode="towards_zero")
        limit_scalar = pa.scalar(decimal.Decimal(10) ** (precision - scale), wide.type)
        too_large = pc.greater_equal(pc.abs(wide), limit_scalar)
        _checked(column, pc.or_(pc.not_equal(rounded, wide), too_large))
        raise


def _cast_or_locate(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """A safe cast; when it fails, the rows that do not survive the way there and back."""
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        back = column.cast(wanted, safe=False).cast(column.type, safe=False)
        _checked(column, pc.not_equal(back, column))
        raise Unfit(f"cannot take values of Arrow type {column.type}: {error}") from error


def _converted_lists(
    column: pa.ChunkedArray, element: DataType, contains_null: bool, wanted: pa.DataType
) -> pa.ChunkedArray:
    lists = _one_chunk(column)
    lengths = pc.if_else(lists.is_null(), pa.scalar(0, pa.int32()), pc.list_value_length(lists).cast(pa.int32()))
    try:
        inside = _converted(_unpacked(pa.chunked_array([lists.flatten()], column.type.value_type)), element)
        if not contains_null and inside.null_count:
            raise Unfit("cannot have NULL inside", rows=pc.indices_nonzero(inside.is_null()).to_pylist())
    except Unfit as unfit:
        parents = np.repeat(np.arange(len(lists)), lengths.to_numpy(zero_copy_only=False))
        raise Unfit(unfit.why, rows=np.unique(parents[list(unfit.rows)]).tolist(), hint=unfit.hint) from None
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    return pa.chunked_array([pa.ListArray.from_arrays(offsets, _one_chunk(inside), type=wanted, mask=lists.is_null())])


def _converted_structs(column: pa.ChunkedArray, target: Struct) -> pa.ChunkedArray:
    given = {column.type.field(i).name.lower(): i for i in range(column.type.num_fields)}
    if given.keys() != {n.lower() for n in target.names} or len(given) != column.type.num_fields:
        raise Unfit(
            f"cannot take values of Arrow type {column.type}", hint=f"its fields are {', '.join(target.names)}."
        )
    structs, wanted = _one_chunk(column), arrow_type(target)
    parts = structs.flatten()
    converted = [
        _one_chunk(_converted(_unpacked(pa.chunked_array([parts[given[n.lower()]]])), t))
        for n, t in zip(target.names, target.types, strict=True)
    ]
    return pa.chunked_array([pa.StructArray.from_arrays(converted, fields=list(wanted), mask=structs.is_null())])


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
