"""Databases whose tables and views are tables of Delta Lake: what their backend has besides.

The protocols name DataFrames, which the one of all backends does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from everview.backends.base import Change
from everview.catalog import TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@runtime_checkable
class StoredInLake(Protocol):
    """A backend that keeps Delta tables."""

    def to_spark(self, name: str, version: int | None = None) -> DataFrame:
        """The content of a table or view, now or at a version, as a DataFrame over its files.

        Raises:
            UnsupportedOperation: that version is not kept.
        """

    def location(self, name: str) -> str:
        """Where the Delta table of a table or view is."""

    def vacuum(self) -> int:
        """Sums up tables and views, and removes the files that only older versions need; returns how many."""


@runtime_checkable
class StagesFrames(Protocol):
    """A backend whose executors take in DataFrames, which then never come to the driver."""

    def near_rows(self, frame: DataFrame) -> pa.Table | None:
        """The rows of a DataFrame that is small enough for the driver; None for any other."""

    def read_parquet(self, paths: list[str]) -> DataFrame:
        """The rows of Parquet files, as executors read them."""

    def stage(self, table: TableDefinition, frame: DataFrame, mode: str) -> Change:
        """The change that a DataFrame with a table's columns brings.

        Raises:
            InvalidChange: some value does not fit.
        """


@runtime_checkable
class ReadsInPlace(Protocol):
    """A backend that reads the rows of external tables where they are; others hold a copy of them."""

    def outside_change(self, table: TableDefinition, version: int, read: Callable[[pa.Table], Change]) -> Change:
        """The change that the next version of its Delta table brings to an external table.

        Args:
            table: The table.
            version: The one after that at which the table stands.
            read: Checks rows against the table.

        Raises:
            UnsupportedOperation: it cannot be read (any more), or has other columns.
            InvalidChange: rows do not fit.
        """


@runtime_checkable
class DeltasOnDisk(Protocol):
    """The sequence of a view's deltas, where they are files."""

    def to_spark(self, format: str) -> DataFrame:  # noqa: A002 -- as in View.changes
        """All of them as one DataFrame, in the columns of ``weights`` or ``cdf``, with version and time of the commit."""
