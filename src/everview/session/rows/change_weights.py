"""What each given row is: an insert, a delete, or a row with a weight.

``_weight`` is an integer, ``_change_type`` one of Delta's four words; without either, rows are what the call says. The
result is an int64 array without NULL and 0, or None where every weight is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.catalog import TableDefinition
from everview.errors import InvalidChange, did_you_mean
from everview.relational.column_names import WEIGHT
from everview.relational.display import show_numbers, show_value
from everview.session.rows.given_rows import GivenRows, Mode

CHANGE_TYPE: Final = "_change_type"
_SIGNS: Final = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def read_weights(table: TableDefinition, given: GivenRows, mode: Mode) -> pa.Array | None:
    """The weights of the given rows."""
    weight, change_type = given.take(WEIGHT), given.take(CHANGE_TYPE)
    if weight is not None and change_type is not None:
        raise InvalidChange(
            f"the rows for table '{table.name}' have both {WEIGHT} and {CHANGE_TYPE}.", hint="give one."
        )
    extra = CHANGE_TYPE if weight is None else WEIGHT
    takes_no_weight = mode in (Mode.UPSERT, Mode.DELETE_KEYS) and weight is not None
    if takes_no_weight or (mode is not Mode.APPLY and change_type is not None):
        raise InvalidChange(
            f"the rows for {mode.value} on table '{table.name}' have a column {extra}.",
            hint="such rows go to db.apply().",
        )
    if change_type is not None:
        return _signs(table, change_type)
    if weight is None:
        return pa.repeat(pa.scalar(-1, pa.int64()), given.rows) if mode is Mode.DELETE else None
    weights = _integer_weights(table, weight)
    if mode is Mode.APPLY:
        return weights
    _reject_weights(table, weights, pc.less(weights, 0), f"which {mode.value} does not take", hint="use db.apply().")
    return pc.negate(weights) if mode is Mode.DELETE else weights


def _integer_weights(table: TableDefinition, given: pa.ChunkedArray | Sequence[Any]) -> pa.Array:
    if not isinstance(given, pa.ChunkedArray):
        for number, value in enumerate(given):
            plain = value.item() if hasattr(value, "item") else value
            if not isinstance(plain, int) or isinstance(plain, bool) or not -(2**63) < plain < 2**63:
                raise _weight_error(table, f"{show_value(plain)} in row {number}, which is not an integer")
        weights = pa.array([int(v) for v in given], pa.int64())
    else:
        if not pa.types.is_integer(given.type):
            rows = range(len(given))
            first = next((i for i in rows if not _is_whole(given[i].as_py())), 0) if len(given) else 0
            shown = f"{show_value(given[first].as_py())} in row {first}" if len(given) else f"Arrow type {given.type}"
            raise _weight_error(table, f"{shown}, which is not an integer", hint=f"{WEIGHT} is a column of integers.")
        if given.null_count:
            nulls = pc.indices_nonzero(given.is_null()).to_pylist()
            raise _weight_error(table, f"NULL in {show_numbers(nulls)}, which is not an integer")
        try:
            weights = pa.concat_arrays([pa.array([], pa.int64()), *given.cast(pa.int64()).chunks])
        except pa.ArrowInvalid as error:
            raise _weight_error(table, "a value beyond 64 bits") from error
    _reject_weights(table, weights, pc.equal(weights, 0), "which changes nothing", hint="leave such rows out.")
    return weights


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _reject_weights(table: TableDefinition, weights: pa.Array, is_wrong: pa.Array, why: str, hint: str) -> None:
    rows = pc.indices_nonzero(is_wrong).to_pylist()
    if rows:
        raise _weight_error(table, f"{weights[rows[0]].as_py()} in {show_numbers(rows)}, {why}", hint=hint)


def _weight_error(table: TableDefinition, what: str, hint: str | None = None) -> InvalidChange:
    return InvalidChange(f"the {WEIGHT} column for table '{table.name}' has {what}.", hint=hint)


def _signs(table: TableDefinition, given: pa.ChunkedArray | Sequence[Any]) -> pa.Array:
    column = (
        pa.chunked_array([[str(v) for v in given]], pa.string()) if not isinstance(given, pa.ChunkedArray) else given
    )
    kinds = pa.array(list(_SIGNS), pa.string())
    try:
        positions = pc.index_in(column.cast(pa.string()), value_set=kinds)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise InvalidChange(f"the {CHANGE_TYPE} column for table '{table.name}' is not text.") from None
    unknown = pc.indices_nonzero(positions.is_null()).to_pylist()
    if unknown:
        found = column[unknown[0]].as_py() if isinstance(given, pa.ChunkedArray) else given[unknown[0]]
        raise InvalidChange(
            f"the {CHANGE_TYPE} column for table '{table.name}' has {show_value(found)} in {show_numbers(unknown)}.",
            hint=did_you_mean(str(found), _SIGNS) or f"it is one of {', '.join(_SIGNS)}.",
        )
    signs = pa.array(list(_SIGNS.values()), pa.int64())
    return signs.take(pa.concat_arrays([pa.array([], pa.int32()), *positions.chunks]))
