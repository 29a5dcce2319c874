"""Databases whose tables and views are Delta tables: what their backend has besides, and what they need from time to time.

The protocols name DataFrames, which the one of all backends does not know.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from everview.backends.base import Backend
from everview.errors import UnsupportedOperation

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


class KeptOnDisk(ABC):
    """The part of a ``Database`` that looks after its files."""

    _backend: Backend

    @abstractmethod
    def _locked(self) -> threading.RLock:
        """The database's lock, if it is open."""

    def checkpoint(self) -> None:
        """Makes the state durable; on the Spark backend every transaction is when it returns."""
        with self._locked():
            if not isinstance(self._backend, StoredInDelta):
                raise UnsupportedOperation(
                    f"the {self._backend.name} backend has no checkpoint: this database lives in memory."
                )
            self._backend.checkpoint()

    def vacuum(self) -> int:
        """Sums up the Delta tables of tables and views, and removes the files that only older versions need.

        Afterwards each row stands once in its Delta table, with its multiplicity as ``_weight``, and older versions can
        neither be read nor their changes asked for.

        Returns:
            How many files it removed.

        Raises:
            UnsupportedOperation: the backend keeps no Delta tables.
        """
        with self._locked():
            if not isinstance(self._backend, StoredInDelta):
                raise UnsupportedOperation(f"the {self._backend.name} backend keeps no files to vacuum.")
            return self._backend.vacuum()
