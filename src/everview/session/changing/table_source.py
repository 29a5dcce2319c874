"""What a table can be made from, schema and rows together: frames, and files of Parquet, CSV and Delta.

Text is a path if something is there, or if it ends like a file's name; else it is a schema, as ever.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from everview.catalog import TableDefinition
from everview.errors import InvalidQuery, UnsupportedOperation
from everview.session.feeds.lake_storage import StagesFrames
from everview.session.rows.given_rows import as_arrow, is_spark_frame
from everview.session.sql.ddl import read_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.core import Core

_ENDINGS = (".parquet", ".csv", ".csv.gz")


ReadParquet: TypeAlias = "Callable[[list[str]], DataFrame]"


@dataclass(frozen=True, slots=True)
class TableSource:
    """A schema, as ``create_table`` takes it, and the rows to begin with."""

    schema: Any
    rows: Any


def one_source(schema: Any, source: Any) -> Any:
    """What ``create_table`` was given, under either name.

    Raises:
        UnsupportedOperation: both, or neither.
    """
    if (schema is None) == (source is None):
        raise UnsupportedOperation(
            "a table is made from a schema or from a source of rows: give one of them.",
            hint="create_table(name, 'id int, …'), or create_table(name, source=frame_or_path).",
        )
    return source if schema is None else schema


def make_table(
    core: Core, name: str, given: Any, follow: bool, static: bool, retain: bool, declared: Mapping[str, Any]
) -> TableDefinition:
    """Makes a table as ``create_table`` says: empty, with rows, or external.

    Args:
        core: The database.
        name: The table's name.
        given: A schema, a frame or a path.
        follow: Whether the table is external.
        static: Whether it is loaded once.
        retain: Whether it keeps rows.
        declared: Keys and constraints, as ``Core.define_table`` takes them.
    """
    if follow:
        if static or not retain:
            raise UnsupportedOperation(
                "a table that follows a Delta table is neither static nor retain=False.", hint="leave that out."
            )
        external = importlib.import_module("everview.session.feeds.external_tables")  # imports deltalake
        table: TableDefinition = external.define_external(core, name, given, **declared)
        return table
    backend = core.backend
    source = table_source(given, backend.read_parquet if isinstance(backend, StagesFrames) else None)
    if source is not None and is_spark_frame(source.rows) and not isinstance(backend, StagesFrames):
        # Before the database is locked: the DataFrame may read what this database has, by its name in the session.
        core.catalog.check_name(name)
        read_schema(name, source.schema, declared.get("primary_key"))
        source = TableSource(source.schema, as_arrow(source.rows))
    with core.locked():
        made = core.define_table(
            name, given if source is None else source.schema, static=static, retain=retain, **declared
        )
        return made if source is None else core.fill_table(made, source.rows)


def table_source(given: Any, read_parquet: ReadParquet | None = None) -> TableSource | None:
    """The schema and the rows of what ``create_table`` was given; None if it is a schema only.

    Args:
        given: A schema, a frame or a path.
        read_parquet: Makes a DataFrame of Parquet files, where executors are to read them and not this process.

    Raises:
        InvalidQuery: there is no such file, or it cannot be read.
        UnsupportedOperation: the file has another format.
    """
    pandas, pyspark = sys.modules.get("pandas"), sys.modules.get("pyspark.sql")
    if isinstance(given, os.PathLike) or (isinstance(given, str) and _is_path(given)):
        files = None if read_parquet is None else _parquet_files(os.path.abspath(os.fspath(given)))
        if read_parquet is not None and files:
            frame = read_parquet(files)
            return TableSource(frame.schema, frame)
        return _from_arrow(_read(os.fspath(given)))
    if isinstance(given, str | pa.Schema):
        return None
    if pandas is not None and isinstance(given, pandas.DataFrame):
        return _from_arrow(_read_pandas(given))
    if pyspark is not None and isinstance(given, pyspark.DataFrame):
        return TableSource(given.schema, given)
    rows = as_arrow(given)
    if isinstance(rows, pa.RecordBatch):
        return _from_arrow(pa.Table.from_batches([rows]))
    return _from_arrow(rows) if isinstance(rows, pa.Table) else None


def _is_path(text: str) -> bool:
    return text.lower().endswith(_ENDINGS) or os.path.exists(text)


def _parquet_files(path: str) -> list[str]:
    """The Parquet files of a path, if its rows are theirs and nothing else: no parts, and no marks of deleted rows."""
    if os.path.isdir(os.path.join(path, "_delta_log")):
        delta = importlib.import_module("deltalake").DeltaTable(path)
        marks = set(delta.protocol().reader_features or ())
        return [] if delta.metadata().partition_columns or marks else list(delta.file_uris())
    return [path] if path.lower().endswith(".parquet") or os.path.isdir(path) else []


def _read_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame.copy(), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidQuery(
            f"the columns of a pandas DataFrame have no types that pyarrow finds: {'; '.join(map(str, error.args))}.",
            hint="convert the column first, or create the table with a schema and insert the frame.",
        ) from error


def _read(path: str) -> pa.Table:
    try:
        if os.path.isdir(os.path.join(path, "_delta_log")):
            table: pa.Table = importlib.import_module("deltalake").DeltaTable(path).to_pyarrow_table()
            return table
        if path.lower().endswith((".csv", ".csv.gz")):
            return _read_csv(path)
        if path.lower().endswith(".parquet") or os.path.isdir(path):
            return importlib.import_module("pyarrow.parquet").read_table(path)
    except FileNotFoundError as error:
        raise InvalidQuery(f"there is no file '{path}'.") from error
    except (OSError, pa.ArrowException) as error:
        raise InvalidQuery(f"'{path}' cannot be read: {error}") from error
    raise UnsupportedOperation(
        f"'{path}' is no file that a table can be made from.",
        hint="it is a Parquet or CSV file, by its ending, a folder of Parquet files, or a Delta table.",
    )


def _read_csv(path: str) -> pa.Table:
    """A field with nothing in it is NULL, as for Spark, and one with empty quotes is empty text; words such as NA are text."""
    csv = importlib.import_module("pyarrow.csv")
    what_is_null = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    table: pa.Table = csv.read_csv(path, convert_options=csv.ConvertOptions(**what_is_null))
    return table


def _from_arrow(rows: pa.Table) -> TableSource:
    return TableSource(plain_columns(rows.schema), rows)


def plain_columns(columns: pa.Schema) -> pa.Schema:
    """The columns in the types that tables have."""
    return pa.schema([_plain(f) for f in columns])


def _plain(field: pa.Field) -> pa.Field:
    """The column as tables have it: text is text however Arrow lays it out, and times have microseconds."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    elif pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        kind = pa.binary()
    elif pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz)
    elif pa.types.is_unsigned_integer(kind):
        kind = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(kind.bit_width, pa.decimal128(20, 0))
    elif pa.types.is_float16(kind):
        kind = pa.float32()
    elif pa.types.is_date64(kind):
        kind = pa.date32()
    return pa.field(field.name, kind, field.nullable)
