"""Segments: immutable Parquet files of weighted rows, and how rows of every type stand in them.

Parquet and Delta have no intervals and no void: a year-month interval is its months, a day-time interval its microseconds and
a void column an all-NULL boolean. The driver writes small segments with Arrow; large ones come from executors.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from everview.errors import CorruptDatabase, EverviewError, UnsupportedOperation, UnsupportedQuery
from everview.relational.arrow import arrow_schema, arrow_type, column_to_arrow
from everview.relational.column_names import WEIGHT
from everview.relational.nodes import Field, Schema
from everview.relational.types import (
    BOOLEAN,
    INT32,
    INT64,
    Array,
    DataType,
    DayTimeInterval,
    Null,
    Struct,
    Variant,
    YearMonthInterval,
    holds,
)

GROUP_ROWS = 1 << 17
"""Rows of a row group, and how many make a segment worth sorting: what a reader with a small range of keys reads at least."""
_DELTA_NAME = re.compile(r"[^ ,;{}()\n\t=]+")


@dataclass(frozen=True, slots=True)
class Segment:
    """One Parquet file of a relation, by its path inside the relation's folder.

    A file of a Delta table that the relation stands for (``outside_files``) has its whole path. ``constants`` are columns that
    such a file need not have, by name, with the text of the one value of all its rows: its weight, and its partition.
    """

    path: str
    rows: int
    size: int
    constants: tuple[tuple[str, str | None], ...] = ()

    @property
    def is_outside(self) -> bool:
        """Whether the file is another's: read, and never removed."""
        return bool(self.constants)

    @property
    def run(self) -> str:
        """What it was written with: the files of one Spark job are in one folder; a file of the driver is alone."""
        return self.path.partition("/")[0]

    def weighing(self, weight: int) -> Segment:
        """The same file outside with another weight for its rows."""
        others = tuple((name, text) for name, text in self.constants if name != WEIGHT)
        return replace(self, constants=((WEIGHT, str(weight)), *others))

    def to_json(self) -> dict[str, Any]:
        """For the commit record."""
        told = {"path": self.path, "rows": self.rows, "size": self.size}
        return {**told, "constants": [list(c) for c in self.constants]} if self.constants else told


def segment_from_json(written: dict[str, Any]) -> Segment:
    """The segment of a commit record."""
    constants = tuple((name, text) for name, text in written.get("constants", ()))
    return Segment(written["path"], written["rows"], written["size"], constants)


def stored_type(data_type: DataType) -> DataType:
    """The type that stands in the file.

    Raises:
        UnsupportedQuery: a variant; an interval or void inside an array or struct.
    """
    if holds(data_type, Variant):
        raise UnsupportedQuery(
            f"the Spark backend cannot store {data_type}.",
            operator="variant",
            hint="store its text, to_json(x), and parse_json that where it is read.",
        )
    match data_type:
        case YearMonthInterval():
            return INT32
        case DayTimeInterval():
            return INT64
        case Null():
            return BOOLEAN
        case Array() | Struct():
            inside = (data_type.element,) if isinstance(data_type, Array) else data_type.types
            if any(stored_type(t) != t for t in inside):
                raise UnsupportedQuery(
                    f"the Spark backend cannot store {data_type}: Delta tables have no intervals.",
                    operator=str(data_type),
                    hint="extract the parts of the interval as numbers.",
                )
            return data_type
        case _:
            return data_type


def stored_fields(fields: Schema) -> Schema:
    """The columns of the file: the relation's own names where Delta takes them all, else positions."""
    distinct = len({f.name.lower() for f in fields}) == len(fields)
    valid = distinct and all(_DELTA_NAME.fullmatch(f.name) for f in fields)
    names = [f.name if valid else f"c{i}" for i, f in enumerate(fields)]
    return tuple(Field(n, stored_type(f.type), True) for n, f in zip(names, fields, strict=True))


def stored_schema(fields: Schema) -> pa.Schema:
    """The Arrow schema of the file; every column is nullable, which costs nothing and fits all."""
    return pa.schema([pa.field(f.name, arrow_type(f.type), True) for f in stored_fields(fields)])


def encode(rows: pa.Table, fields: Schema) -> pa.Table:
    """Rows as they stand in a file."""
    wanted = stored_schema(fields)
    arrays = [_encoded(c, f.type, w.type) for c, f, w in zip(rows.columns, fields, wanted, strict=True)]
    return pa.Table.from_arrays(arrays, schema=wanted)


def _encoded(column: pa.ChunkedArray, data_type: DataType, wanted: pa.DataType) -> pa.ChunkedArray:
    match data_type:
        case YearMonthInterval():
            months = [None if v is None else v.months for v in column.to_pylist()]
            return pa.chunked_array([pa.array(months, pa.int32())])
        case Null():
            return pa.chunked_array([pa.nulls(len(column), pa.bool_())])
        case _:
            return column if column.type == wanted else column.cast(wanted)


def decode(rows: pa.Table, fields: Schema) -> pa.Table:
    """Rows of a file as Arrow gives them out, columns named by position."""
    arrays = [_decoded(c, f.type) for c, f in zip(rows.columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


def _decoded(column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    match data_type:
        case YearMonthInterval():
            return pa.chunked_array([column_to_arrow(column.to_pylist(), data_type)])
        case Null():
            return pa.chunked_array([pa.nulls(len(column))])
        case _:
            wanted = arrow_type(data_type)
            return column if column.type == wanted else column.cast(wanted)


def encode_sql(name: str, data_type: DataType) -> str:
    """The same as SQL over a column."""
    match data_type:
        case YearMonthInterval():
            return f"CAST(extract(YEAR FROM {name}) * 12 + extract(MONTH FROM {name}) AS INT)"
        case DayTimeInterval():
            seconds = (
                f"extract(HOUR FROM {name}) * 3600 + extract(MINUTE FROM {name}) * 60 + extract(SECOND FROM {name})"
            )
            days = f"CAST(extract(DAY FROM {name}) AS DECIMAL(20, 0)) * 86400"
            return f"CAST(({days} + {seconds}) * 1000000 AS BIGINT)"
        case Null():
            return f"CAST({name} AS BOOLEAN)"
        case _:
            return name


def decode_sql(name: str, data_type: DataType) -> str:
    """From a column of a file to the relation's value."""
    match data_type:
        case YearMonthInterval():
            return f"make_ym_interval(0, {name})"
        case DayTimeInterval():
            days = f"CAST({name} div 86400000000 AS INT)"
            rest = f"CAST(CAST({name} % 86400000000 AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
            return f"make_dt_interval({days}, 0, 0, {rest})"
        case Null():
            return "NULL"
        case _:
            return name


def write_segment(folder: Path, rows: pa.Table, fields: Schema) -> Segment:
    """Writes rows (the relation's columns and the weight) as a new file, durably."""
    name = f"segment-{uuid.uuid4().hex}.parquet"
    path = folder / name
    with path.open("wb") as file:
        # Decimals as integers are read several times faster, by Spark and by Arrow.
        pq.write_table(
            encode(rows, fields), file, compression="zstd", row_group_size=GROUP_ROWS, store_decimal_as_integer=True
        )
        file.flush()
        os.fsync(file.fileno())
    return Segment(name, rows.num_rows, path.stat().st_size)


def opened_segment(path: Path, segment: Segment) -> pq.ParquetFile:
    """The file of a segment, its footer read.

    Raises:
        CorruptDatabase: the file is missing or not what was written.
    """
    try:
        if path.stat().st_size != segment.size:
            raise CorruptDatabase(
                f"segment '{path}' has {path.stat().st_size} bytes where {segment.size} were written."
            )
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error, segment) from error


def unreadable(path: Path, error: Exception, segment: Segment) -> EverviewError:
    """What to raise when a segment cannot be read."""
    if segment.is_outside:
        return gone_outside(path)
    return CorruptDatabase(
        f"segment '{path}' cannot be read: {error}.", hint="restore the file, or the database, from a copy."
    )


def gone_outside(path: Path) -> UnsupportedOperation:
    """What to raise when a file of a followed Delta table cannot be read."""
    return UnsupportedOperation(
        f"the file '{path}' of a followed Delta table cannot be read: the version at which the views stand needs it.",
        hint="refresh before old files are removed (VACUUM); now drop the views over the table and the table, "
        "and create them anew.",
    )


class SegmentFile:
    """The file of a segment, read as the columns that its relation stores.

    Columns that a file outside lacks have the segment's value; others were added to its Delta table later, and are NULL.

    Args:
        path: The file.
        segment: What was written, or found outside.
        fields: The relation's columns and the weight.

    Raises:
        CorruptDatabase: the file is missing or not what was written.
        UnsupportedOperation: the file is outside, and gone.
    """

    def __init__(self, path: Path, segment: Segment, fields: Schema) -> None:
        self._file = opened_segment(path, segment)
        self._path, self._segment = path, segment
        self.metadata = self._file.metadata
        self.schema: pa.Schema = stored_schema(fields) if segment.is_outside else self._file.schema_arrow

    def read(self, group: int | None = None, names: list[str] | None = None) -> pa.Table:
        """The rows, or those of a row group, with these columns."""
        wanted = self.schema.names if names is None else names
        there = self._there(wanted)
        with self._readable():
            rows = self._file.read(there) if group is None else self._file.read_row_group(group, there)
            return self._as_stored(rows, wanted)

    def batches(self, rows: int, names: list[str]) -> Iterator[pa.Table]:
        """The rows, so many at a time."""
        batches = self._file.iter_batches(rows, columns=self._there(names))
        while True:
            with self._readable():
                batch = next(batches, None)
                if batch is None:
                    return
                part = self._as_stored(pa.Table.from_batches([batch]), names)
            yield part

    def bytes_of(self, names: list[str], group: int | None = None) -> int:
        """What columns take in the file, or in one of its row groups."""
        groups = range(self.metadata.num_row_groups) if group is None else (group,)
        chunks = (self.metadata.row_group(g).column(c) for g in groups for c in range(self.metadata.num_columns))
        return sum(c.total_compressed_size for c in chunks if c.path_in_schema.partition(".")[0] in names)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise unreadable(self._path, error, self._segment) from error

    def _there(self, names: list[str]) -> list[str]:
        own = self._file.schema_arrow.names
        return [n for n in names if n in own] or own[:1]

    def _as_stored(self, rows: pa.Table, names: list[str]) -> pa.Table:
        if not self._segment.is_outside:
            return rows.select(names)
        constants = dict(self._segment.constants)
        arrays = []
        for name in names:
            kind = self.schema.field(name).type
            if name in constants or name not in rows.column_names:
                value = pa.scalar(constants.get(name), pa.string()).cast(kind)
                arrays.append(pa.chunked_array([pa.repeat(value, rows.num_rows)], kind))
            else:  # Spark writes times as nanoseconds, of which it means the microseconds
                arrays.append(rows.column(name).cast(kind, safe=not pa.types.is_timestamp(kind)))
        return pa.Table.from_arrays(arrays, names=names)

    def __enter__(self) -> SegmentFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_segment(folder: Path, segment: Segment, fields: Schema) -> pa.Table:
    """The rows of a segment.

    Raises:
        CorruptDatabase: the file is missing or not what was written.
    """
    path = folder / segment.path
    with SegmentFile(path, segment, fields) as file:
        found = file.read()
    if found.num_rows != segment.rows or found.schema.names != stored_schema(fields).names:
        raise CorruptDatabase(f"segment '{path}' does not hold the rows that were written.")
    return decode(found, fields)


def by_position(rows: pa.Table) -> pa.Table:
    """The same columns, named by position and all nullable, so that tables of equal types can be put together."""
    return pa.Table.from_arrays(rows.columns, names=[f"c{i}" for i in range(rows.num_columns)])


def empty_rows(fields: Schema) -> pa.Table:
    """No rows with these columns."""
    return by_position(arrow_schema(fields).empty_table())


def repeat_by_weight(rows: pa.Table, weights: pa.ChunkedArray) -> pa.Table:
    """Each row as often as its weight, which is positive, says."""
    if rows.num_rows == 0 or pc.all(pc.equal(weights, 1)).as_py():
        return rows
    counts = weights.to_numpy()
    return rows.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
