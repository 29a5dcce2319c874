"""Delta tables of others, as sources of rows: opening them at a version, and what about them everview cannot take.

Contract: what cannot be read is an error that names the Delta table and the version; nothing here writes to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from everview.errors import UnknownName, UnsupportedOperation

_CHANGE_FEED: Final = "delta.enableChangeDataFeed"
_HARMLESS: Final = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Reader features that leave the rows of a table those of its files."""


def open_lake_table(uri: str, version: int | None = None, storage: Mapping[str, str] | None = None) -> DeltaTable:
    """A Delta table at a version, or at its newest.

    Raises:
        UnknownName: there is none.
        UnsupportedOperation: that version cannot be read.
    """
    try:
        return DeltaTable(uri, version=version, storage_options=dict(storage) if storage else None)
    except TableNotFoundError as error:
        check_reachable(uri, error)
        raise UnknownName(f"there is no Delta table at {uri}.") from error
    except (DeltaError, OSError) as error:
        raise unreadable(uri, version, error) from error


def check_reachable(uri: str, error: Exception) -> None:
    """Raises if the error, met at a Delta table, says that ``deltalake`` does not know the scheme of its URI.

    Raises:
        UnsupportedOperation: it does not.
    """
    if "Unknown scheme" in str(error):
        scheme = urlsplit(uri).scheme
        raise UnsupportedOperation(
            f"no Delta table can be opened at '{uri}': '{scheme}' is not a scheme that the deltalake package knows.",
            hint="give a path, or a URI such as s3://bucket/table with its storage_options.",
        ) from error


def unreadable(uri: str, version: int | None, error: Exception) -> UnsupportedOperation:
    """What to raise when a version of a Delta table cannot be read."""
    which = "the newest version" if version is None else f"version {version}"
    return UnsupportedOperation(
        f"{which} of the Delta table {uri} cannot be read: {str(error).strip().splitlines()[0]}",
        hint="enable its change data feed, and poll before its old files and log entries are cleaned up.",
    )


def has_change_feed(lake: DeltaTable) -> bool:
    """Whether the changes of its version are in a change data feed."""
    return str(lake.metadata().configuration.get(_CHANGE_FEED, "false")).lower() == "true"


def columns_of(lake: DeltaTable) -> list[tuple[str, Any, bool]]:
    """The names and types of its columns, and whether they may be NULL; comments do not count."""
    return [(f.name, f.type, f.nullable) for f in lake.schema().fields]


def check_same_columns(uri: str, before: DeltaTable, after: DeltaTable, table: str) -> None:
    """Raises if the columns of a followed Delta table have changed from one version to the next.

    Raises:
        UnsupportedOperation: they have.
    """
    old, new = columns_of(before), columns_of(after)
    if old == new:
        return
    gone = [_shown(c) for c in old if c not in new]
    come = [_shown(c) for c in new if c not in old]
    what = (
        "their order"
        if not gone and not come
        else f"{', '.join(gone) or 'nothing'} became {', '.join(come) or 'nothing'}"
    )
    raise UnsupportedOperation(
        f"the columns of the Delta table {uri}, which table '{table}' follows, change with version {after.version()}: {what}.",
        hint="the views stand at the version before; drop them and the table, and create them anew with the new columns.",
    )


def _shown(column: tuple[str, Any, bool]) -> str:
    name, kind, is_nullable = column
    return f"{name} {getattr(kind, 'type', kind)}{'' if is_nullable else ' NOT NULL'}"


def check_read_in_place(uri: str, lake: DeltaTable) -> None:
    """Raises unless the rows of a Delta table are those of its Parquet files, under their names.

    Raises:
        UnsupportedOperation: it marks deleted rows, or maps columns to other names.
    """
    protocol, configuration = lake.protocol(), lake.metadata().configuration
    features = sorted(set(protocol.reader_features or ()) - _HARMLESS)
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        features = sorted({*features, "columnMapping"})
    if features:
        raise UnsupportedOperation(
            f"the Delta table {uri} has the reader feature {', '.join(features)}: its files alone do not tell its rows.",
            hint="copy its rows instead: make a table with its columns, and feed it with db.follow_delta().",
        )
