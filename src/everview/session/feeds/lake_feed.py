"""Following a Delta table: each of its versions becomes one transaction here, in order and once.

The change of a version is taken from the table's change data feed where that is enabled. Elsewhere it is computed from the
files: a version only ever adds and removes whole files, so as bags

    content(v) - content(v-1)  =  rows of the files added by v  -  rows of the files removed by v

which is exact for every operation (an append, a rewrite by UPDATE or DELETE, an OPTIMIZE that changes nothing), but reads
rewritten files twice. The number of the version is recorded in the transaction, under the Delta table's own id and the name
of the table that it feeds, so that following again, after a restart too, goes on after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from everview.backends.base import Change, source_of_table
from everview.catalog import TableDefinition
from everview.errors import UnsupportedOperation
from everview.lake_source import check_same_columns, has_change_feed, open_lake_table, unreadable
from everview.relational.column_names import WEIGHT
from everview.session.feeds.lake_storage import ReadsInPlace
from everview.session.rows.given_rows import Mode
from everview.session.transaction import Commit

if TYPE_CHECKING:
    from everview.session.core import Core


class LakeFeed:
    """A Delta table as the source of a table. Made by ``Database.follow_delta``."""

    def __init__(
        self,
        core: Core,
        table: TableDefinition,
        uri: str,
        starting_version: int | None,
        storage_options: Mapping[str, str] | None,
    ) -> None:
        self._core = core
        self._table = table.name
        self.uri = uri
        self._is_active = True
        self._storage = dict(storage_options) if storage_options else None
        lake = self._open()
        self._follows = table.follows
        self._id = lake.metadata().id if table.follows is None else table.follows.id
        self._source = source_of_table(f"delta:{self._id}", table.name)
        self._starting_version = starting_version
        if starting_version is not None:
            _check_version(uri, starting_version, lake.version())
        if table.follows is None:  # a Delta table that does not fit is refused now, not at the first poll
            core.read_change(self._table, pa.schema(lake.schema().to_arrow()).empty_table(), Mode.APPLY)

    @property
    def version(self) -> int | None:
        """The last version of the Delta table that is taken in; None before the first."""
        return self._core.last_batch(self._source)

    @property
    def table(self) -> str:
        """The name of the table that it feeds."""
        return self._table

    @property
    def is_active(self) -> bool:
        """Whether ``poll`` may be called: the table cannot be dropped as long as it may."""
        return self._is_active

    def cancel(self) -> None:
        """Ends the feed; what it has taken in stays. Following the Delta table again goes on after the last version.

        Raises:
            UnsupportedOperation: it is that of an external table, which ends when the table is dropped.
        """
        if self._follows is not None:
            raise UnsupportedOperation(
                f"table '{self._table}' stands for the Delta table {self.uri} as long as it is there.",
                hint="do not refresh it, or drop it.",
            )
        self._is_active = False

    def poll(self, *, limit: int | None = None) -> list[Commit]:
        """Takes in the versions that are new, each in a transaction of its own.

        Args:
            limit: At most so many versions.

        Raises:
            InvalidChange: the rows of a version do not fit; those before it are committed, it and those after are not.
            UnsupportedOperation: the changes of a version can no longer be read, or the feed was cancelled.
        """
        if not self._is_active:
            raise UnsupportedOperation(
                f"the feed of table '{self._table}' from {self.uri} was cancelled.",
                hint="follow the Delta table again with db.follow_delta().",
            )
        lake = self._open()
        newest, last = lake.version(), self.version
        if self._id != lake.metadata().id:
            raise UnsupportedOperation(
                f"the Delta table {self.uri} has been replaced by another since table '{self._table}' follows it.",
                hint="follow the new one with a table of its own.",
            )
        if last is None and self._starting_version is None:
            return [self._take(newest, lambda _: self._read(self._content(newest)))]
        first = self._starting_version if last is None else last + 1
        assert first is not None
        versions = range(first, newest + 1)
        return [self._take(v, self._change) for v in (versions if limit is None else versions[:limit])]

    def _take(self, version: int, change: Callable[[int], Change]) -> Commit:
        try:
            if self._follows is None:
                return self._core.run([change(version)], (self._source, version))
            with self._core.locked():  # from reading it in place until it is taken, no other feed may take it
                taken = self.version
                changes = [] if taken is not None and version <= taken else [change(version)]
                commit = self._core.commit(changes, (self._source, version))
            self._core.subscriptions.deliver()
            return commit
        except Exception as error:
            error.add_note(f"in version {version} of the Delta table {self.uri}, followed by table '{self._table}'")
            raise

    def _change(self, version: int) -> Change:
        """What a version changes: in place where the backend reads external tables there, else its rows."""
        backend = self._core.backend
        if self._follows is not None:
            if isinstance(backend, ReadsInPlace):
                return backend.outside_change(self._core.catalog.table(self._table), version, self._read)
            check_same_columns(self.uri, self._open(version - 1), self._open(version), self._table)
        return self._read(self._changes_of(version))

    def _read(self, rows: pa.Table) -> Change:
        return self._core.read_change(self._table, rows, Mode.APPLY, by_feed=self._follows is not None)

    def _content(self, version: int) -> pa.Table:
        try:
            return read_content(self._open(version))
        except (DeltaError, OSError) as error:
            raise unreadable(self.uri, version, error) from error

    def _changes_of(self, version: int) -> pa.Table:
        after = self._open(version)
        try:
            if has_change_feed(after):
                return pa.table(after.load_cdf(version, version))
            if version == 0:
                return read_content(after)
            return _difference_of_files(self._open(version - 1).to_pyarrow_dataset(), after.to_pyarrow_dataset())
        except (DeltaError, OSError) as error:
            raise unreadable(self.uri, version, error) from error

    def _open(self, version: int | None = None) -> DeltaTable:
        return open_lake_table(self.uri, version, self._storage)

    def __repr__(self) -> str:
        state = "" if self._is_active else ", cancelled"
        return f"<LakeFeed of table '{self._table}' from {self.uri}, version {self.version}{state}>"


def read_content(lake: DeltaTable) -> pa.Table:
    """The rows of a Delta table at its version."""
    return pa.table(QueryBuilder().register("content", lake).execute("SELECT * FROM content"))


def _difference_of_files(before: ds.FileSystemDataset, after: ds.FileSystemDataset) -> pa.Table:
    old, new = set(before.files), set(after.files)
    added, removed = _read_files(after, new - old), _read_files(before, old - new)
    return pa.concat_tables([_weighted(added, 1), _weighted(removed, -1)], promote_options="default")


def _read_files(dataset: ds.FileSystemDataset, paths: set[str]) -> pa.Table:
    fragments = [f for f in dataset.get_fragments() if f.path in paths]
    return ds.FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem).to_table()


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows))


def _check_version(uri: str, version: object, newest: int) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version <= newest + 1:
        raise UnsupportedOperation(
            f"starting_version={version!r} is no version of the Delta table {uri}.", hint=f"its newest is {newest}."
        )
