"""What feeds a database from outside: streams of Spark, Delta tables, and the record of how far each has come.

Every batch of a source is one transaction with the batch's number in it, so that reading a source again after a failure
applies each batch once.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.errors import DependencyError
from everview.session.feeds.streaming import start_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from everview.session.core import Core
    from everview.session.feeds.lake_feed import LakeFeed


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


class Feeds:
    """The streams and Delta Lake tables that feed one database."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._streams: list[LiveStream] = []
        self._lake_feeds: weakref.WeakSet[LakeFeed] = weakref.WeakSet()
        """Those that somebody holds: one that nobody does can never be polled again."""
        core.drop_checks.append(self._check_not_fed)

    def stream(
        self, table: str, frame: DataFrame, *, checkpoint: str, trigger: Mapping[str, Any], mode: str, name: str | None
    ) -> StreamingQuery:
        """Starts a stream into a table; the arguments are those of ``Database.stream``."""
        with self._core.locked():
            stream = LiveStream(self._core.catalog.table(table).name)
            self._streams = [*(s for s in self._streams if s.is_active), stream]
        try:
            stream.query = start_stream(
                self._core, stream.table, frame, checkpoint=checkpoint, trigger=trigger, mode=mode, name=name
            )
        except BaseException:
            self._streams.remove(stream)
            raise
        return stream.query

    def follow(
        self, table: str, uri: str, starting_version: int | None, storage_options: Mapping[str, str] | None
    ) -> LakeFeed:
        """Follows a table of Delta Lake; the arguments are those of ``Database.follow_delta``."""
        with self._core.locked():
            definition = self._core.catalog.table(table)
            definition.check_is_ours("cannot follow another Delta table")
            module = importlib.import_module(
                "everview.session.feeds.lake_feed"
            )  # deltalake is imported by those who use it
            feed: LakeFeed = module.LakeFeed(self._core, definition, uri, starting_version, storage_options)
            self._lake_feeds.add(feed)
        return feed

    def refresh(self) -> None:
        """Takes in what is new in the Delta tables that external tables follow."""
        if any(t.follows is not None for t in self._core.catalog.tables):
            importlib.import_module("everview.session.feeds.external_tables").refresh_all(self._core)

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
        for feed in self._lake_feeds:
            if feed.table == table and feed.is_active:
                raise DependencyError(
                    f"table '{table}' cannot be dropped: it follows the Delta table {feed.uri}.",
                    hint="end that first, with the cancel() of the feed that db.follow_delta gave.",
                )

    def stop(self) -> None:
        """Stops the streams."""
        for stream in self._streams:
            if stream.query is not None:
                stream.query.stop()
