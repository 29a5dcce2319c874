"""The rows that users give for a table, in whatever container, as named columns; what is in them is not looked at yet."""

from __future__ import annotations

import importlib
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from everview.catalog import TableDefinition
from everview.errors import InvalidChange
from everview.frontend.spark_types import from_spark_json
from everview.relational.arrow import arrow_type
from everview.relational.display import show_value
from everview.relational.nodes import Schema
from everview.session.rows.pandas_columns import frame_columns


class Mode(Enum):
    """Which call brought the rows."""

    APPLY = "apply"
    INSERT = "insert"
    DELETE = "delete"
    UPSERT = "upsert"
    DELETE_KEYS = "delete_keys"

    __hash__ = object.__hash__  # there is one object for each; Enum's own is written in Python


@dataclass(frozen=True, slots=True)
class GivenRows:
    """The user's columns as they came: Arrow, or lists of Python values.

    An INT column of pandas that has missing values arrives as float64, because NumPy's integers have none; so whole numbers of
    a float column are integers if ``is_pandas``.
    """

    names: Sequence[str]
    columns: Sequence[pa.ChunkedArray | Sequence[Any]]
    rows: int
    is_pandas: bool = False

    def take(self, name: str) -> pa.ChunkedArray | Sequence[Any] | None:
        """The column of this name, in whatever case."""
        return next((c for n, c in zip(self.names, self.columns, strict=True) if n.lower() == name.lower()), None)


def _frame_of(module: str) -> Any:
    """The class ``DataFrame`` of a module; nothing where it is not imported, or another thread is importing it."""
    return getattr(sys.modules.get(module), "DataFrame", ())


def as_arrow(data: Any) -> Any:
    """Arrow data, and a PySpark DataFrame or what else exports it, as a batch or a table; all else as it is.

    Arrow takes some microseconds longer to answer about a table than about a batch, which is much where there is one row.

    Raises:
        InvalidChange: what is exported has no named columns.
    """
    if isinstance(data, (pa.RecordBatch, list, _frame_of("pandas"))):
        return data
    if isinstance(data, _frame_of("pyspark.sql")):
        data = importlib.import_module("everview.frontend.arrow_of_frame").rows_of_frame(data)
    elif isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    elif not isinstance(data, pa.Table) and (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
        try:
            data = pa.table(data)
        except pa.ArrowException as error:
            raise InvalidChange(
                f"the rows are of type {type(data).__name__}, which is no table: {error}.",
                hint="give columns with names, as a pyarrow.Table has.",
            ) from error
    if not isinstance(data, pa.Table):
        return data
    batches = data.to_batches()
    return batches[0] if len(batches) == 1 else data


def is_spark_frame(data: Any) -> bool:
    """Whether it is a DataFrame of a Spark session of this process."""
    return isinstance(data, _frame_of("pyspark.sql")) and hasattr(data, "_jdf")


def columns_of_frame(frame: Any) -> pa.Table:
    """No rows with the columns of a PySpark DataFrame."""
    fields = [(f.name, arrow_type(from_spark_json(f.dataType.jsonValue()))) for f in frame.schema]
    return pa.schema(fields).empty_table()


def read_rows(table: TableDefinition, wanted: Schema, data: Any, mode: Mode) -> GivenRows:
    """The columns of ``data``, which has passed ``as_arrow``; tuples have those of ``wanted``, by position."""
    if isinstance(data, pa.Table):
        return _from_arrow(data)
    if isinstance(data, pa.RecordBatch):
        return _from_arrow(pa.Table.from_batches([data]))
    if isinstance(data, _frame_of("pandas")):
        names, columns = frame_columns(table.name, wanted, data)
        return GivenRows(names, columns, len(data), is_pandas=True)
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise InvalidChange(
            f"the rows for table '{table.name}' are of type {type(data).__name__}.",
            hint="give a list of tuples or dicts, or an Arrow, pandas or PySpark table.",
        )
    return _from_list(table, wanted, list(data), mode)


def _from_arrow(rows: pa.Table) -> GivenRows:
    return GivenRows(rows.column_names, rows.columns, rows.num_rows)


def _from_list(table: TableDefinition, wanted: Schema, rows: list[Any], mode: Mode) -> GivenRows:
    if not rows:
        return GivenRows([f.name for f in wanted], [[] for _ in wanted], 0)
    if mode is Mode.DELETE_KEYS and len(wanted) == 1 and not _is_row(rows[0]):
        rows = [(key,) for key in rows]
    quick = _alike(rows, wanted)
    if quick is not None:
        return quick
    named = [_by_name(row) for row in rows]
    if all(row is not None for row in named):
        return _from_dicts(table, [row for row in named if row is not None])
    for number, (row, fields) in enumerate(zip(rows, named, strict=True)):
        if fields is not None or not isinstance(row, tuple | list):
            raise InvalidChange(
                f"row {number} for table '{table.name}' is {show_value(row)} of type {type(row).__name__}.",
                hint="give a list of tuples, or a list of dicts.",
            )
        if len(row) != len(wanted):
            columns = ", ".join(f.name for f in wanted)
            raise InvalidChange(
                f"row {number} for table '{table.name}' has {len(row)} value{'' if len(row) == 1 else 's'}, but there "
                f"should be {len(wanted)}: {columns}.",
                hint="weights go into a column of their own." if len(row) > len(wanted) else None,
            )
    return GivenRows([f.name for f in wanted], [list(column) for column in zip(*rows, strict=True)], len(rows))


def _alike(rows: list[Any], wanted: Schema) -> GivenRows | None:
    """Tuples of the right length, or dicts that all have the same keys, without a look at each row; None for all else."""
    kinds = set(map(type, rows))
    if kinds not in ({tuple}, {dict}):
        return None
    lengths = set(map(len, rows))
    if kinds == {tuple} and lengths == {len(wanted)}:
        columns = [list(map(operator.itemgetter(i), rows)) for i in range(len(wanted))]
        return GivenRows([f.name for f in wanted], columns, len(rows))
    names = list(rows[0])
    if kinds == {tuple} or lengths != {len(names)} or not _are_names(names):
        return None
    try:
        columns = [list(map(operator.itemgetter(name), rows)) for name in names]
    except KeyError:  # some row has other keys, and the error must say which
        return None
    return GivenRows(names, columns, len(rows))


def _are_names(keys: list[Any]) -> bool:
    return all(isinstance(k, str) for k in keys) and len({k.lower() for k in keys}) == len(keys)


def _is_row(value: Any) -> bool:
    return isinstance(value, tuple | list | Mapping)


def _by_name(row: Any) -> Mapping[str, Any] | None:
    """The row as a mapping if it names its columns: a dict, or a PySpark ``Row``."""
    if isinstance(row, Mapping):
        return {str(k): v for k, v in row.items()}
    fields = getattr(row, "__fields__", None)
    return dict(zip(fields, row, strict=True)) if isinstance(row, tuple) and fields else None


def _from_dicts(table: TableDefinition, rows: list[Mapping[str, Any]]) -> GivenRows:
    spelling: dict[str, str] = {}
    for row in rows:
        for name in row:
            spelling.setdefault(name.lower(), name)
    columns: dict[str, list[Any]] = {folded: [] for folded in spelling}
    for number, row in enumerate(rows):
        folded_row = {name.lower(): value for name, value in row.items()}
        if len(folded_row) < len(row):
            raise InvalidChange(f"row {number} for table '{table.name}' names a column twice: {', '.join(row)}.")
        for folded, name in spelling.items():
            if folded not in folded_row:
                raise InvalidChange(
                    f"row {number} for table '{table.name}' has no column '{name}', which other rows have."
                )
            columns[folded].append(folded_row[folded])
    return GivenRows(list(spelling.values()), list(columns.values()), len(rows))
