"""The handles of a database's tables, views and assertions: what users hold, read and change.

A handle has no state of its own; after its relation is dropped every call on it is ``UnknownName``.
"""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.backends.base import Suspension, VersionedDelta
from everview.backends.rejections import view_has_no_listing
from everview.catalog import Definition, TableDefinition, ViewDefinition, kind_of
from everview.errors import InvalidQuery, UnknownName, UnsupportedOperation
from everview.relational.arrow import arrow_schema, public_rows
from everview.relational.column_names import find_column
from everview.session.changing.history_rows import given_columns, with_history
from everview.session.changing.sequenced_rows import latest_rows
from everview.session.database_lock import DatabaseLock
from everview.session.explain_views import explain_view
from everview.session.feeds.lake_storage import StoredInLake
from everview.session.results import Changes, Readable, named_rows
from everview.session.rows.changes import read_changes
from everview.session.rows.convert_values import Unfit, converter_to, or_null
from everview.session.rows.given_rows import Mode
from everview.session.sql.merge import merge_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.core import Core
    from everview.session.feeds.lake_feed import LakeFeed
    from everview.session.feeds.publishing import Publication
    from everview.session.subscriptions import Subscription
    from everview.session.transaction import Commit


_FACTORIZED = "representation='factorized'"

_PIECE = 1024
"""Rows that an iteration takes at a time."""


class _Relation(Readable):
    """What tables and views have in common: a name, a schema, and the ways to read."""

    def __init__(self, core: Core, definition: Definition) -> None:
        self._core = core
        self._definition = definition

    @property
    def name(self) -> str:
        """The name, as it was given."""
        return self._current().name

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return arrow_schema(self._current().fields)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(f.name for f in self._current().fields)

    def to_arrow(self) -> pa.Table:
        with self._locked():
            return self._core.backend.read(self.name)

    def to_spark(self, version: int | None = None) -> DataFrame:
        """The rows as a DataFrame; on the Spark backend over its files, and at an older version if asked.

        Raises:
            UnsupportedOperation: the backend keeps no older versions, or not this one.
        """
        with self._locked():
            backend = self._core.backend
            if isinstance(backend, StoredInLake):
                return backend.to_spark(self.name, version)
        if version is not None:
            raise UnsupportedOperation(
                f"the {self._core.backend.name} backend keeps no older versions of {self._title()}.",
                hint="connect(path, backend='spark') does.",
            )
        return self._core.to_spark(self.to_arrow())

    @property
    def location(self) -> str:
        """The Delta table that holds the rows, for other readers: a row's ``_weight`` says how often it is there.

        The weights of a row are to be summed up; after ``db.vacuum()`` each row stands there once.

        Raises:
            UnsupportedOperation: the backend keeps no Delta tables.
        """
        with self._locked():
            backend = self._core.backend
            if not isinstance(backend, StoredInLake):
                raise UnsupportedOperation(
                    f"the {backend.name} backend keeps no Delta table of {self._title()}.",
                    hint="view.publish(uri) writes one; connect(path, backend='spark') keeps them.",
                )
            return backend.location(self.name)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Enumerates the rows without building the listing, where the backend can; ``pd.DataFrame(view)`` keeps names.

        Raises:
            UnsupportedOperation: while rows are read, when another transaction has been committed since the first.
        """
        with self._locked():
            version = self._core.backend.version
            rows = self._core.backend.iterate(self.name)
        return named_rows(self._whole_version(rows, version), self.columns)

    def _whole_version(self, rows: Iterator[tuple[Any, ...]], version: int) -> Iterator[tuple[Any, ...]]:
        """The rows of one version: a few at a time under the lock, and none of a later one."""
        count = 1  # the first row comes at once
        while True:
            with self._core.lock.without_following():
                self._core.check_not_closed()
                if self._core.backend.version != version:
                    raise UnsupportedOperation(
                        f"{self._title()} was at version {version} when its first row was read, and the database is at "
                        f"{self._core.backend.version} now.",
                        hint="rows() and to_arrow() read one version at once.",
                    )
                found = list(itertools.islice(rows, count))
            if not found:
                return
            yield from found
            count = min(2 * count, _PIECE)

    def lookup(self, **key: Any) -> list[tuple[Any, ...]]:
        """The rows with these column values, by index where there is one; None finds NULL."""
        self._check()
        wanted = self._key(key)
        with self._locked():
            return public_rows(self._core.backend.lookup(self.name, wanted))

    def _key(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """Values of columns as the backend wants them."""
        wanted: dict[str, Any] = {}
        for name, value in key.items():
            column = self._definition.fields[find_column(self._title(), self._definition.fields, name)]
            try:
                wanted[column.name] = or_null(converter_to(column.type))(value)
            except Unfit as unfit:
                message = f"column '{column.name}' of {self._title()} is {column.type} and {unfit.why}."
                raise InvalidQuery(message, hint=unfit.hint) from None
        return wanted

    def _title(self) -> str:
        return f"{kind_of(self._definition)} '{self.name}'"

    def _current(self) -> Definition:
        """What the handle means now; tables are altered, and views replaced."""
        self._definition = self._core.current(self._definition)
        return self._definition

    def _check(self) -> None:
        self._core.check_open()
        if not self._core.catalog.has(self._definition) and not self._core.catalog.has(self._current()):
            raise UnknownName(f"{self._title()} was dropped.")

    def _locked(self) -> DatabaseLock:
        """The database's lock, to read under: a stream may be committing in another thread."""
        self._check()
        return self._core.lock

    def _columns_text(self) -> str:
        return ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' not null'}" for f in self._current().fields)


class Table(_Relation):
    """A base table. ``insert``, ``delete``, ``upsert`` and ``delete_keys`` are each a transaction of their own."""

    _definition: TableDefinition

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the primary key; none without one."""
        self._current()
        return self._definition.primary_key

    @property
    def feed(self) -> LakeFeed:
        """The feed of a table that was made with ``follow=True``: its ``poll`` takes in new versions, as ``db.refresh()`` does.

        Raises:
            UnsupportedOperation: the table follows no Delta table.
        """
        self._current()
        made: LakeFeed = importlib.import_module("everview.session.feeds.external_tables").feed_of(
            self._core, self._definition
        )
        return made

    def insert(self, rows: Any, *, decompose: bool = False) -> Commit:
        """Adds rows, or an ``ev.Product``; ``decompose`` finds out whether the rows are a product, as for ``db.apply``."""
        return self._change(rows, Mode.INSERT, decompose)

    def delete(self, rows: Any, *, decompose: bool = False) -> Commit:
        """Removes rows, each as often as it is given; a row that is not there rejects the transaction."""
        return self._change(rows, Mode.DELETE, decompose)

    def upsert(self, rows: Any, *, sequence_by: str | None = None, stored_as_scd_type: int = 1) -> Commit:
        """Replaces the rows with the same primary key, and adds those whose key is new.

        Args:
            rows: The rows.
            sequence_by: A column that grows with time. Keys may then repeat, and the row with its greatest value counts, also
                if it is the one that is stored: late rows do not overwrite newer ones. Reads the keys of the whole table.
            stored_as_scd_type: 2 keeps every version of a row, with the values of ``sequence_by`` from which on and until which
                it held in the columns ``__START_AT``, which belongs to the primary key, and ``__END_AT``.
        """
        if stored_as_scd_type not in (1, 2):
            raise UnsupportedOperation(f"there is no type {stored_as_scd_type!r} of history.", hint="it is 1 or 2.")
        if sequence_by is None and stored_as_scd_type == 1:
            return self._change(rows, Mode.UPSERT)
        with self._locked():
            self._check()
            core, table = self._core, self._definition
            if stored_as_scd_type == 2:
                versions = read_changes(given_columns(table, sequence_by), rows, Mode.INSERT).rows
                moved = with_history(table, versions, str(sequence_by), core.backend.read(table.name))
                change = core.read_change(table.name, moved, Mode.APPLY)
            else:
                stored = core.backend.read(table.name)
                change = latest_rows(table, core.read_change(table.name, rows, Mode.UPSERT), str(sequence_by), stored)
            commit = core.commit([change])
        self._core.subscriptions.deliver()
        return commit

    def truncate(self) -> Commit:
        """Deletes all rows."""
        with self._locked():
            rows = self._core.backend.read(self.name)
            commit = self._core.commit([self._core.read_change(self.name, rows, Mode.DELETE)])
        self._core.subscriptions.deliver()
        return commit

    def merge(self, source: Any, rules: str, *, name: str = "source") -> Commit:
        """``MERGE INTO`` this table from a Spark, pandas or Arrow frame, or a Parquet, CSV or Delta path.

        Args:
            source: The rows; they are held in memory while it lasts.
            rules: The statement from ON on: ``ON orders.id = source.id WHEN MATCHED THEN UPDATE SET * …``.
            name: What the rules call the source; nothing in the database has this name.

        Raises:
            InvalidChange: several source rows match one row of the table; nothing has changed.
        """
        self._check()
        return merge_rows(self._core, self._definition, source, rules, name)

    def delete_keys(self, keys: Any) -> Commit:
        """Removes the rows with these primary keys: tuples, dicts or a table; bare values for a key of one column."""
        return self._change(keys, Mode.DELETE_KEYS)

    def _change(self, rows: Any, mode: Mode, decompose: bool = False) -> Commit:
        self._check()
        read_at = self._core.catalog.generation
        return self._core.run([self._core.read_change(self.name, rows, mode, decompose)], read_at=read_at)

    def __repr__(self) -> str:
        key = f" primary key ({', '.join(self.primary_key)})" if self.primary_key else ""
        flags = (" static" if self._definition.static else "") + ("" if self._definition.retain else " retain=False")
        flags += "" if self._definition.follows is None else f" follows {self._definition.follows.uri}"
        return f"<Table {self.name} ({self._columns_text()}){key}{flags}>"


class View(_Relation):
    """A maintained view: always the answer of its query at the database's version."""

    _definition: ViewDefinition

    @property
    def query(self) -> str | None:
        """The SQL text of the view; None for one made from a DataFrame."""
        self._current()
        return self._definition.query

    @property
    def suspension(self) -> Suspension | None:
        """Why the view has no answer, and since which version; None if it has one. Reading it then is ``ViewSuspended``."""
        with self._locked():
            return self._core.backend.suspensions().get(self.name)

    def _check(self) -> None:
        super()._check()
        self._core.heal()

    def changes(self, since: int | None = None, *, format: str = "weights") -> Changes:  # noqa: A002 -- fixed by interface.md
        """The deltas of the versions after ``since``, in order; versions that did not move the view are left out.

        A sequence of deltas, which is also one table: ``.to_spark()``, ``.to_arrow()``, ``.to_pandas()``.

        Args:
            since: A version; the content then plus these deltas is the content now. By default as far back as is kept.
            format: ``weights`` (the view's columns and ``_weight``) or ``cdf`` (Delta's change feed columns).

        Raises:
            UnsupportedOperation: the deltas since that version are not all kept.
        """
        self._check()
        if format not in ("weights", "cdf"):
            raise UnsupportedOperation(f"there is no format '{format}' for changes.", hint="it is 'weights' or 'cdf'.")
        if since is not None and not isinstance(since, int):
            raise UnsupportedOperation(
                f"changes since {since!r}: that is no version.", hint="a version is a number, as db.version gives it."
            )
        with self._locked():
            start = self._core.backend.changes_kept_since(self.name) if since is None else since
            found = self._core.backend.changes(self.name, start)
        return Changes(found, self._definition.fields, format, self._core.lock, self._core.to_spark)

    def subscribe(self, callback: Callable[[VersionedDelta], object]) -> Subscription:
        """Calls ``callback`` with ``.version`` and ``.delta`` after every commit that moves the view.

        In order, once each, in the thread that committed. A callback that raises neither undoes the commit nor keeps
        others from being called: afterwards the committing call raises an ``ExceptionGroup`` of all that was raised. A
        commit made inside a callback is announced after the current one. While the view is suspended nothing is called;
        when it answers again, the delta is what has changed since it last did.

        Raises:
            UnsupportedOperation: the view is lazy or factorized, so that commits do not compute its changes.
        """
        self._check()
        self._check_moves_with_commits()
        if not callable(callback):
            raise UnsupportedOperation(
                f"a subscriber of type {type(callback).__name__} cannot be called.",
                hint="give a function of one argument, which has .version and .delta.",
            )
        return self._core.subscriptions.add(self.name, callback)

    def publish(self, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> Publication:
        """Writes the view as a Delta table, and after every commit that moves it, its changes.

        Any Delta reader can read it, and its change data feed. Publishing to the same place again, after a restart say,
        writes what differs.

        Raises:
            AlreadyExists: another Delta table is there.
            UnsupportedOperation: the view is lazy or factorized, so that commits do not compute its changes.
        """
        self._check()
        self._check_moves_with_commits()
        publishing = importlib.import_module(
            "everview.session.feeds.publishing"
        )  # deltalake is imported by those who use it
        started: Publication = publishing.publish(self._core, self._definition, os.fspath(uri), storage_options)
        return started

    def _check_moves_with_commits(self) -> None:
        assert isinstance(self._definition, ViewDefinition)
        options = self._definition.options
        if options.representation == "matrix":
            raise view_has_no_listing(self._definition, "its changes are not computed when a transaction commits")
        for option, is_set in (("lazy=True", options.lazy), (_FACTORIZED, options.representation == "factorized")):
            if is_set:
                raise UnsupportedOperation(
                    f"view '{self.name}' has {option}: its changes are not computed when a transaction commits.",
                    hint=f"create it without {option} to be told of changes.",
                )

    def unpublish(self, uri: str | os.PathLike[str] | None = None) -> None:
        """Ends the publication at ``uri``, or all of this view; the Delta tables stay as they are now.

        Raises:
            UnknownName: there is none.
        """
        self._check()
        place = None if uri is None else os.fspath(uri)
        own = [p for p in self._core.publications if p.is_active and p.view == self.name]
        ended = [p for p in own if place is None or p.uri == place]
        if not ended:
            where = "" if place is None else f" at {place}"
            raise UnknownName(f"view '{self.name}' is not published{where}.")
        for publication in ended:
            publication.cancel()

    def explain(self, mode: str = "text") -> str:
        """How it is maintained: ``text``, ``json``, ``svg``, ``triggers``, ``code`` or ``analyze``; not all on every backend.

        ``text`` begins with what a changed row of each table costs, with numbers of the rows that are there (it counts them),
        and advice that was tried. ``analyze`` is what has been measured since the view was made.
        """
        with self._locked():
            return explain_view(self._core.backend, self._definition, mode)

    def stats(self) -> dict[str, Any]:
        """Rows, bytes of state, updates and seconds so far; of a view that is recomputed after every change, that it is."""
        with self._locked():
            told = self._core.backend.stats(self.name)
            return told | {"refresh": "full"} if self._definition.options.is_recomputed else told

    def __repr__(self) -> str:
        is_there = self._core.is_open and self._core.catalog.has(self._definition)
        why = self.suspension if is_there else None
        how = ", recomputed after every change" if self._definition.options.is_recomputed else ""
        return f"<View {self.name} ({self._columns_text()}){how}{'' if why is None else f', {why}'}>"


class Assertion:
    """A query that must stay empty; it cannot be read, only explained and dropped."""

    def __init__(self, core: Core, definition: ViewDefinition) -> None:
        self._core = core
        self._definition = definition

    @property
    def name(self) -> str:
        """The name, as it was given."""
        return self._definition.name

    @property
    def query(self) -> str | None:
        """The SQL text; None for one made from a DataFrame."""
        return self._definition.query

    def explain(self, mode: str = "text") -> str:
        """How the assertion is checked."""
        with self._core.locked():
            return explain_view(self._core.backend, self._definition, mode)

    def __repr__(self) -> str:
        return f"<Assertion {self.name}>"
