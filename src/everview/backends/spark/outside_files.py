"""The files of a user's Delta table as segments: read where they are, with a weight of 1 and the values of their partition.

A version of a Delta table is a set of Parquet files, and between two versions whole files come and go. So as Z-sets

    content(v) - content(v-1)  =  files added by v  -  files removed by v

which holds for every operation. Contract: nothing here writes; files are named by whole paths.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from everview.backends.spark.segments import Segment, gone_outside, stored_fields
from everview.errors import UnsupportedOperation
from everview.relational.column_names import WEIGHT
from everview.relational.nodes import Schema
from everview.relational.types import Boolean, Date, String, is_integral
from everview.relational.types import Decimal as DecimalType

_PARTITION = "partition."


def outside_segments(uri: str, lake: DeltaTable, fields: Schema) -> list[Segment]:
    """The files of a Delta table at its version, as segments of a relation with these columns."""
    actions = pa.table(lake.get_add_actions(flatten=True))
    found = []
    for action in actions.to_pylist():
        path = _path(uri, action["path"])
        values = {n.removeprefix(_PARTITION): _text(v) for n, v in action.items() if n.startswith(_PARTITION)}
        rows = action["num_records"]
        constants = ((WEIGHT, "1"), *sorted(values.items()))
        found.append(Segment(str(path), _count(path) if rows is None else rows, action["size_bytes"], constants))
    return sorted(found, key=lambda s: s.path)


def check_columns(uri: str, lake: DeltaTable, fields: Schema) -> None:
    """Raises if a column cannot be read where it is.

    Raises:
        UnsupportedOperation: a name, or the type of a partition, is beyond us.
    """
    for field, stored in zip(fields, stored_fields(fields), strict=True):
        if field.name != stored.name:
            raise UnsupportedOperation(
                f"column '{field.name}' of the Delta table {uri} cannot be read in place under that name.",
                hint="copy its rows instead, with db.follow_delta().",
            )
    types = {f.name: f.type for f in fields}
    for name in lake.metadata().partition_columns:
        kind = types[name]
        if not (is_integral(kind) or isinstance(kind, String | Date | Boolean | DecimalType)):
            raise UnsupportedOperation(
                f"the Delta table {uri} is partitioned by '{name}' of type {kind}, which cannot be read in place.",
                hint="copy its rows instead, with db.follow_delta().",
            )


def _path(uri: str, path: str) -> Path:
    """Where a file is: the log has its path percent-encoded, inside the table's folder or, of a clone, as a URI."""
    return Path(unquote(urlsplit(path).path)) if "://" in path else Path(uri) / unquote(path)


def _count(path: Path) -> int:
    """The rows of a file whose writer did not count them."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except OSError as error:
        raise gone_outside(path) from error


def _text(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case datetime.date():
            return value.isoformat()
        case int() | Decimal():
            return str(value)
        case _:
            raise AssertionError(f"a partition of type {type(value).__name__} was refused")
