"""Databases whose tables and views are tables of Delta Lake: what their backend has besides.

The protocols name DataFrames, which the one of all backends does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@runtime_checkable
class StoredInDelta(Protocol):
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
class DeltasOnDisk(Protocol):
    """The sequence of a view's deltas, where they are files."""

    def to_spark(self, format: str) -> DataFrame:  # noqa: A002 -- as in View.changes
        """All of them as one DataFrame, in the columns of ``weights`` or ``cdf``, with version and time of the commit."""
