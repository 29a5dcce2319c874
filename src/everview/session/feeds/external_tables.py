"""External tables: tables of a database whose rows are those of a user's Delta table, brought up to date by ``db.refresh()``.

A backend that ``ReadsInPlace`` keeps no rows of them: it reads the files of the version at which its views stand. Others hold a
copy. Either way nobody but the feed changes such a table, and each version of the Delta table is one transaction, taken once.
"""

from __future__ import annotations

import importlib
import os
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from everview.catalog import Followed, TableDefinition
from everview.errors import UnknownName, UnsupportedOperation
from everview.lake_source import open_lake_table
from everview.session.changing.table_source import plain_columns
from everview.session.feeds.lake_feed import LakeFeed
from everview.session.feeds.lake_storage import ReadsInPlace
from everview.session.places import local_directory, scheme_of

if TYPE_CHECKING:
    from everview.session.core import Core

_CATALOG_NAME: Final = re.compile(r"`?[A-Za-z_]\w*`?(\.`?[A-Za-z_]\w*`?){0,2}")


def define_external(core: Core, name: str, source: Any, **declared: Any) -> TableDefinition:
    """Makes a table that follows a Delta table.

    Args:
        core: The database.
        name: The table's name.
        source: The Delta table: its path, its URI, or its name in Spark's catalog.
        **declared: The keys, as ``Core.define_table`` takes them.

    Raises:
        UnknownName: there is no such Delta table.
        UnsupportedOperation: it cannot be followed.
    """
    uri = _place(core, source)
    lake = open_lake_table(uri)
    columns = plain_columns(pa.schema(lake.schema().to_arrow()))
    with core.locked():
        follows = Followed(uri, str(lake.metadata().id))
        table = core.define_table(name, columns, follows=follows, **declared)
        if not isinstance(core.backend, ReadsInPlace):
            try:
                feed_of(core, table).poll()
            except BaseException:
                core.drop(table.name)
                raise
        return table


def feed_of(core: Core, table: TableDefinition) -> LakeFeed:
    """The feed of an external table.

    Raises:
        UnsupportedOperation: it is none.
    """
    if table.follows is None:
        raise UnsupportedOperation(
            f"table '{table.name}' follows no Delta table.",
            hint="create_table(name, source=…, follow=True) makes one that does; db.follow_delta() copies rows into any.",
        )
    return LakeFeed(core, table, table.follows.uri, None, None)


def refresh_all(core: Core) -> None:
    """Takes in the new versions of all Delta tables that are followed, table by table in the order of their creation."""
    for table in core.catalog.tables:
        if table.follows is not None:
            feed_of(core, table).poll()


def _place(core: Core, source: Any) -> str:
    """Where a Delta table is."""
    if not isinstance(source, str | os.PathLike):
        raise UnsupportedOperation(
            f"a table follows a Delta table, not {type(source).__name__}.",
            hint="give the path of the Delta table, or its name in Spark's catalog; without follow=True the rows are copied.",
        )
    text = os.fspath(source)
    if scheme_of(text) is None and not os.path.exists(text) and _CATALOG_NAME.fullmatch(text):
        text = _location(core, text)
    if isinstance(core.backend, ReadsInPlace):
        text = local_directory(text, "a Delta table that is read in place")
    return text if scheme_of(text) is not None else os.path.abspath(text)


def _location(core: Core, name: str) -> str:
    """Where a table of Spark's catalog is, which must be a Delta table."""
    errors = importlib.import_module("pyspark.errors")
    try:
        described = core.gateway.user_session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        told = {row["col_name"]: row["data_type"] for row in described}
    except errors.AnalysisException as error:
        raise UnknownName(
            f"there is no Delta table at '{name}', and no table of that name in Spark's catalog."
        ) from error
    provider = told.get("Provider", "unknown").lower()
    if provider != "delta" or "Location" not in told:
        raise UnsupportedOperation(
            f"table '{name}' of Spark's catalog has the format {provider}, and only Delta tables can be followed.",
            hint="without follow=True, create_table(name, spark.table(…)) copies its rows.",
        )
    return str(told["Location"])
