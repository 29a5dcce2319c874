"""What feeds a database from outside: streams of Spark, Delta tables, and the record of how far each has come.

Every batch of a source is one transaction with the batch's number in it, so that reading a source again after a failure
applies each batch once.
"""

from __future__ import annotations

import importlib
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.backends.base import Backend, Change
from everview.catalog import Catalog
from everview.errors import DependencyError
from everview.given_rows import Mode
from everview.streaming import start_stream
from everview.transaction import Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from everview.delta_feed import DeltaFeed


@dataclass(slots=True)
class LiveStream:
    """A stream into a table: Spark's query, which is None while it starts."""

    table: str
    query: StreamingQuery | None = None

    @property
    def is_active(self) -> bool:
        """Whether it may bring rows."""
        return self.query is None or self.query.isActive

    def __str__(self) -> str:
        if self.query is None:
            return "a stream that is starting"
        return f"stream {self.query.id}" if self.query.name is None else f"stream '{self.query.name}' ({self.query.id})"


class FedFromOutside(ABC):
    """The part of a ``Database`` that takes in sources."""

    _backend: Backend
    _catalog: Catalog

    def __init__(self) -> None:
        self._streams: list[LiveStream] = []
        self._feeds: weakref.WeakSet[DeltaFeed] = weakref.WeakSet()
        """The Delta feeds that somebody holds: one that nobody does can never be polled again."""

    @abstractmethod
    def _locked(self) -> threading.RLock:
        """The database's lock, if it is open."""

    @abstractmethod
    def _read_change(self, table: str, rows: Any, mode: Mode) -> Change:
        """The rows, checked against the table."""

    @abstractmethod
    def _run(self, changes: list[Change], source: tuple[str, int] | None = None) -> Commit:
        """Commits a transaction and tells the subscribers."""

    def last_batch(self, source: str) -> int | None:
        """The number of the last batch of a source that is committed, as ``apply`` and streams record it."""
        with self._locked():
            return self._backend.last_batch(source)

    def stream(
        self,
        table: str,
        streaming_df: DataFrame,
        *,
        checkpoint: str | os.PathLike[str],
        trigger: Mapping[str, Any] | None = None,
        mode: str = "apply",
        name: str | None = None,
        **trigger_keywords: Any,
    ) -> StreamingQuery:
        """Feeds a table from a Structured Streaming source: every micro-batch is one transaction, applied exactly once.

        Args:
            table: The table to change.
            streaming_df: A streaming DataFrame of any Spark session in this process, with the table's columns.
            checkpoint: A directory for Spark, the stream's own: a query started again with it goes on where it was.
            trigger: What PySpark's ``.trigger`` takes, as a dict: ``{"availableNow": True}``,
                ``{"processingTime": "5 seconds"}``; or as keywords of this call. By default as fast as possible.
            mode: What the rows are: ``apply`` (inserts, or with ``_change_type`` or ``_weight``), ``insert``, ``delete``,
                ``upsert``, ``delete_keys``.
            name: A name for the query, in Spark's reports.
            **trigger_keywords: The trigger, as ``.trigger`` takes it.

        Returns:
            Spark's query; what goes wrong in a batch is its ``exception()``, and nothing of that batch has happened.
        """
        with self._locked():
            stream = LiveStream(self._catalog.table(table).name)
            self._streams = [*(s for s in self._streams if s.is_active), stream]
        try:
            stream.query = start_stream(
                self,
                stream.table,
                streaming_df,
                checkpoint=os.fspath(checkpoint),
                trigger={**(trigger or {}), **trigger_keywords},
                mode=mode,
                name=name,
            )
        except BaseException:
            self._streams.remove(stream)
            raise
        return stream.query

    def follow_delta(
        self,
        table: str,
        uri: str | os.PathLike[str],
        *,
        starting_version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> DeltaFeed:
        """Feeds a table from a Delta table: ``poll()`` of the result takes in its new versions, each once.

        Args:
            table: The table to change; it has the Delta table's columns.
            uri: The Delta table.
            starting_version: The first version whose changes are taken; by default the first poll takes the content of
                the newest. Where this database has followed the Delta table before, it goes on after the last version.
            storage_options: What ``deltalake`` needs to reach the store.
        """
        with self._locked():
            definition = self._catalog.table(table)
            module = importlib.import_module("everview.delta_feed")  # deltalake is imported by those who use it
            feed: DeltaFeed = module.DeltaFeed(self, definition, os.fspath(uri), starting_version, storage_options)
            self._feeds.add(feed)
        return feed

    def _check_not_fed(self, table: str) -> None:
        """Raises if a stream or a Delta feed may still bring rows for a table that is to be dropped.

        Raises:
            DependencyError: with what to do about it.
        """
        for stream in self._streams:
            if stream.table == table and stream.is_active:
                raise DependencyError(
                    f"table '{table}' cannot be dropped: {stream} feeds it.",
                    hint="stop it first, with the stop() of the query that db.stream gave.",
                )
        for feed in self._feeds:
            if feed.table == table and feed.is_active:
                raise DependencyError(
                    f"table '{table}' cannot be dropped: it follows the Delta table {feed.uri}.",
                    hint="end that first, with the cancel() of the feed that db.follow_delta gave.",
                )

    def _stop_streams(self) -> None:
        for stream in self._streams:
            if stream.query is not None:
                stream.query.stop()
