"""Publishing a view as a Delta table that follows it: after each commit that moves the view, one commit of its delta there.

The table holds the view's bag as plain rows, any reader can read it, and its change data feed is enabled: the feed of a
version is what the commit did to the view (a row of which some copies stay appears as deletes of all and inserts of the rest,
which sums to the same). A delta without deletes is an append; one with deletes is a merge, which rewrites the files that have
the deleted rows. Both carry the database's version as the application transaction.

Contract: the Delta table is at every moment the view at some version, never in between. Should a write fail, the commit
stands and its call raises; the next write, or publishing again after a restart, compares the contents and writes their
difference, so no commit is needed twice and none is lost.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from everview.algebra.zset import ZSet, bag, difference
from everview.backends.base import VersionedDelta
from everview.catalog import ViewDefinition
from everview.errors import AlreadyExists, EverviewError, UnsupportedOperation
from everview.lake_source import check_reachable
from everview.relational.arrow import arrow_schema, rows_from_arrow, rows_to_arrow
from everview.relational.column_names import WEIGHT
from everview.relational.types import DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL, Array, DataType, Row, Struct
from everview.session.feeds.lake_feed import read_content
from everview.session.stored_on_disk import KeepsPublications

if TYPE_CHECKING:
    from everview.session.core import Core
    from everview.session.subscriptions import Subscription

COMPACT_EVERY: Final = 100
"""After so many commits their small files are joined; the content and the feed stay the same."""

_ENABLE_FEED: Final = {"delta.enableChangeDataFeed": "true"}


class Publication:
    """A view's Delta table, kept current until ``cancel``. Made by ``View.publish``."""

    def __init__(self, core: Core, view: ViewDefinition, uri: str, storage_options: Mapping[str, str] | None) -> None:
        self._core = core
        self._view = view
        self.uri = uri
        self._storage = dict(storage_options) if storage_options else None
        self._application = f"everview/view/{view.name.lower()}"
        self._version: int | None = None
        self._is_behind = False
        self._commits = 0
        # Held while writing. Commits wait for it only when they tell subscribers, without the database's own lock.
        self._writing = threading.RLock()
        self._subscription: Subscription | None = None

    @property
    def view(self) -> str:
        """The view's name."""
        return self._view.name

    @property
    def version(self) -> int | None:
        """The version of the database that the Delta table shows."""
        return self._version

    @property
    def is_active(self) -> bool:
        """Whether the Delta table still follows the view."""
        return self._subscription is not None and self._subscription.is_active

    def start(self) -> None:
        """Writes the view, or what differs from an earlier publication, and follows it from then on."""
        with self._writing:
            try:
                existing = self._existing()
                with self._core.locked():
                    rows, version = self._read_view()
                    self._subscription = self._core.subscriptions.add(self._view.name, self._take)
                self._bring_to(rows, version, existing)
            except (DeltaError, OSError) as error:
                self._end()
                check_reachable(self.uri, error)
                raise UnsupportedOperation(
                    f"view '{self.view}' cannot be published at '{self.uri}': {str(error).strip().splitlines()[0]}",
                    hint="give a path that can be written, or a URI with the storage_options that its store needs.",
                ) from error
            except BaseException:
                self._end()
                raise

    def cancel(self) -> None:
        """Leaves the Delta table as it is now; cancelling again does nothing."""
        if self.is_active:
            self._core.forget_publication(self)
        self._end()

    def _end(self) -> None:
        if self._subscription is not None:
            self._subscription.cancel()

    def _take(self, change: VersionedDelta) -> None:
        with self._writing:
            if self._version is not None and change.version <= self._version:
                return
            try:
                if self._is_behind or not self._apply(change):
                    with self._core.locked():
                        rows, version = self._read_view()
                    self._bring_to(rows, version, self._existing())
            except BaseException as error:
                self._is_behind = True
                error.add_note(
                    f"the Delta table {self.uri} of view '{self.view}' shows version {self._version}; "
                    "the view's next change brings it up to date"
                )
                raise

    def _read_view(self) -> tuple[pa.Table, int]:
        return self._core.backend.read(self._view.name), self._core.backend.version

    def _existing(self) -> DeltaTable | None:
        """The Delta table, if it is there.

        Raises:
            AlreadyExists: it is there, and not a publication of this view.
        """
        if not DeltaTable.is_deltatable(self.uri, self._storage):
            return None
        lake = DeltaTable(self.uri, storage_options=self._storage)
        if lake.transaction_version(self._application) is None:
            raise AlreadyExists(
                f"there is a Delta table at {self.uri} that is not a publication of view '{self.view}'.",
                hint="choose another place.",
            )
        return lake

    def _bring_to(self, rows: pa.Table, version: int, existing: DeltaTable | None) -> None:
        """Makes the Delta table hold these rows, by the smallest change."""
        schema = arrow_schema(self._view.fields)
        if existing is None:
            self._write_whole(rows.cast(schema), version, mode="error")
        elif not _same_columns(existing, schema):
            self._write_whole(rows.cast(schema), version, mode="overwrite", schema_mode="overwrite")
        else:
            fields = self._view.fields
            there = bag(rows_from_arrow(read_content(existing), fields))
            delta = difference(bag(rows_from_arrow(rows, fields)), there)
            if delta:
                table = rows_to_arrow(list(delta), fields).append_column(WEIGHT, pa.array(delta.values(), pa.int64()))
                self._write_delta(existing, table, {row: n for row, n in there.items() if n > 1}, version)
        self._version, self._is_behind = version, False

    def _apply(self, change: VersionedDelta) -> bool:
        """Writes a delta; False if the Delta table is not what this publication has written."""
        lake = self._existing()
        schema = arrow_schema(self._view.fields)
        if lake is None or not _same_columns(lake, schema):
            return False
        rows = change.delta.cast(schema.append(pa.field(WEIGHT, pa.int64())))
        deleted = rows.filter(pc.less(rows.column(WEIGHT), 0))
        copies = self._copies(lake, deleted.drop_columns([WEIGHT])) if deleted.num_rows else {}
        if not self._write_delta(lake, rows, copies, change.version):
            return False
        self._version = change.version
        self._commits += 1
        if self._commits % COMPACT_EVERY == 0:
            lake.optimize.compact()
        return True

    def _copies(self, lake: DeltaTable, rows: pa.Table) -> ZSet[Row]:
        """Of the rows of the Delta table, among them all that ``rows`` has: those that are there more than once."""
        fields = self._view.fields
        found = _candidates(lake, rows)
        if any(isinstance(f.type, Array | Struct) for f in fields):  # which Arrow cannot group by
            return {row: n for row, n in bag(rows_from_arrow(found, fields)).items() if n > 1}
        counted = found.group_by(found.column_names).aggregate([([], "count_all")])
        several = counted.filter(pc.greater(counted.column("count_all"), 1))
        counts = several.column("count_all").to_pylist()
        return dict(zip(rows_from_arrow(several.select(found.column_names), fields), counts, strict=True))

    def _write_delta(self, lake: DeltaTable, change: pa.Table, copies: ZSet[Row], version: int) -> bool:
        """Commits a change with weights to the Delta table; False, and nothing written, if it lacks what is deleted."""
        weights = change.column(WEIGHT)
        rows = change.drop_columns([WEIGHT])
        inserted = _repeated(rows, np.maximum(weights.to_numpy(), 0))
        deleted = rows.filter(pc.less(weights, 0))
        if not deleted.num_rows:
            write_deltalake(lake, inserted, mode="append", commit_properties=self._properties(version))
            return True
        lost = -weights.filter(pc.less(weights, 0)).to_numpy()
        there = np.ones_like(lost)
        if copies:
            there = np.array([copies.get(row, 1) for row in rows_from_arrow(deleted, self._view.fields)])
        if (there < lost).any():
            return False
        # All copies of a changed row go, and those that stay come again: a merge deletes by value.
        inserted = pa.concat_tables([inserted, _repeated(deleted, there - lost)])
        names = rows.column_names
        same = " AND ".join(f"(t.{_quoted(n)} IS NOT DISTINCT FROM s.{_quoted(n)})" for n in names)
        metrics = (
            lake.merge(
                pa.concat_tables([_weighted(deleted, -1), _weighted(inserted, 1)]),
                f"s.{_quoted(WEIGHT)} < 0 AND {same}",
                source_alias="s",
                target_alias="t",
                commit_properties=self._properties(version),
            )
            .when_matched_delete()
            .when_not_matched_insert(
                {_quoted(n): f"s.{_quoted(n)}" for n in names}, predicate=f"s.{_quoted(WEIGHT)} > 0"
            )
            .execute()
        )
        return bool(metrics["num_target_rows_deleted"] == int(there.sum()))

    def _write_whole(self, rows: pa.Table, version: int, **how: Any) -> None:
        write_deltalake(
            self.uri,
            rows,
            name=self.view,
            configuration=_ENABLE_FEED,
            storage_options=self._storage,
            commit_properties=self._properties(version),
            **how,
        )

    def _properties(self, version: int) -> CommitProperties:
        return CommitProperties(
            custom_metadata={"everview.version": str(version)},
            app_transactions=[Transaction(self._application, version)],
        )

    def __repr__(self) -> str:
        state = f"at version {self._version}" if self.is_active else f"ended at version {self._version}"
        return f"<Publication of view '{self.view}' to {self.uri}, {state}>"


def publish(core: Core, view: ViewDefinition, uri: str, storage_options: Mapping[str, str] | None) -> Publication:
    """Begins to publish a view; the arguments are those of ``View.publish``."""
    if any(p.uri == uri and p.is_active for p in core.publications):
        raise AlreadyExists(f"a view is being published at {uri}.", hint="unpublish it first.")
    for column in view.fields:
        if _has_interval(column.type):
            raise UnsupportedOperation(
                f"column '{column.name}' of view '{view.name}' is {column.type}, which a Delta table cannot hold.",
                hint="publish a view that casts it to a number or a string.",
            )
    publication = Publication(core, view, uri, storage_options)
    publication.start()
    core.note_publication(publication, has_options=bool(storage_options))
    return publication


def resume_publications(core: Core) -> None:
    """Goes on with what was published when the database was closed, with what differs; what cannot go on is warned of."""
    if not isinstance(core.backend, KeepsPublications):
        return
    for view, uri, has_options in core.backend.publications:
        try:
            if has_options:
                raise UnsupportedOperation("its storage options are not kept.", hint="publish it again, with them.")
            publish(core, core.catalog.view(view), uri, None)
        except EverviewError as error:
            warnings.warn(f"view '{view}' is not published at {uri} any more: {error}", RuntimeWarning, stacklevel=3)


def _has_interval(data_type: DataType) -> bool:
    match data_type:
        case Array(element):
            return _has_interval(element)
        case Struct(_, types):
            return any(_has_interval(t) for t in types)
        case _:
            return data_type in (DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)


def _same_columns(lake: DeltaTable, schema: pa.Schema) -> bool:
    there = pa.schema(lake.schema().to_arrow())
    return [(f.name, f.type) for f in there] == [(f.name, f.type) for f in schema]


def _candidates(lake: DeltaTable, rows: pa.Table) -> pa.Table:
    """The rows of a Delta table that agree with some of ``rows`` in the column that tells them apart best."""
    dataset = lake.to_pyarrow_dataset()
    simple = [n for n in rows.column_names if not _is_nested_or_float(rows.schema.field(n).type)]
    if not simple:
        return dataset.to_table()
    best = max(simple, key=lambda n: len(rows.column(n).unique()))
    wanted = rows.column(best).unique()
    # Filtered here, not by the scan: that reasons with statistics, whose nulls, NaNs and string views it gets wrong.
    found = [b.filter(pc.is_in(b.column(best), value_set=wanted)) for b in dataset.to_batches()]
    return pa.Table.from_batches(found, dataset.schema)


def _is_nested_or_float(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_nested(arrow) or pa.types.is_floating(arrow))


def _repeated(rows: pa.Table, times: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Table:
    if (times == 1).all():
        return rows
    return rows.take(pa.array(np.repeat(np.arange(len(times)), times)))


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
