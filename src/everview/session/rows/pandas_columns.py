"""The columns of a pandas DataFrame as Arrow, with the frame's own idea of what is missing.

NaN, NaT and NA are missing values: NULL. Contract: nothing that leaves here shares memory with the frame.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.errors import InvalidChange
from everview.relational.nodes import Schema
from everview.session.rows.quick_columns import QuickColumn, quick_column

_REFUSALS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)


def frame_columns(table: str, wanted: Schema, frame: Any) -> tuple[list[str], list[pa.ChunkedArray | list[Any]]]:
    """The names and columns of a frame; those that the table has are in its type, where pyarrow can do that exactly.

    Objects that pyarrow takes for no type at all are left to be converted one by one.
    """
    types = {f.name.lower(): f for f in wanted}
    names: list[str] = []
    columns: list[pa.ChunkedArray | list[Any]] = []
    for given_name, series in frame.items():
        name = str(given_name)
        field = types.get(name.lower())
        quick = None if field is None else quick_column(field.type, nullable=True)
        names.append(name)
        try:
            array = _objects(series.to_numpy(), quick) if series.dtype == object else _copied(series)
        except _REFUSALS as error:
            if series.dtype == object:
                columns.append([None if _is_missing(value) else value for value in series])
                continue
            message = (
                f"column '{name}' of the pandas DataFrame for table '{table}', {series.dtype}, cannot be read: {error}."
            )
            raise InvalidChange(message, hint="convert it to another of pandas' types first.") from error
        columns.append(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))
    return names, columns


def _copied(series: Any) -> pa.Array | pa.ChunkedArray:
    """A column of numbers, times or pandas' own types. Arrow may share their memory, so all are copied but Arrow's own."""
    if isinstance(series.dtype, np.dtype):
        return pa.array(np.array(series.to_numpy()), from_pandas=True)
    values = series.array
    return pa.array(values if hasattr(series.dtype, "pyarrow_dtype") else values.copy(), from_pandas=True)


def _objects(values: Any, quick: QuickColumn | None) -> pa.Array:
    """A column of Python objects: in the table's type if pyarrow converts it exactly, else in the type that pyarrow finds."""
    if quick is not None:
        missing = {NoneType, *(t for t in set(map(type, values)) if _stands_for_missing(t))}
        array = quick.convert_with_missing(values, frozenset(missing))
        if array is not None:
            return array
    return pa.array(values, from_pandas=True)


def _is_missing(value: Any) -> bool:
    return value is None or (_stands_for_missing(type(value)) and not (isinstance(value, float) and value == value))  # noqa: PLR0124


def _stands_for_missing(kind: type) -> bool:
    """Types of pandas' marks. A float may be NaN; pyarrow refuses one that is not, or takes a whole number."""
    return kind in (float, np.float64) or kind.__name__ in ("NAType", "NaTType")
