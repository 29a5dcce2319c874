"""The front door: the ``Database`` that ``connect`` opens.

The session resolves names, turns whatever users give into checked Arrow batches, asks Spark (through the gateway) what
queries mean, and leaves state to a backend. Contract: a call that raises has changed nothing.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from everview.backends.base import Backend
from everview.catalog import CovarianceFeatures, ViewDefinition, ViewOptions
from everview.errors import UnknownName, UnsupportedOperation
from everview.frontend.translation_cache import TranslationCache
from everview.learn.matrix_chain import MatrixChain, create_matrix_chain, matrix_chain
from everview.session import clock, watermark
from everview.session.bins import Bins, bin_name, with_bins
from everview.session.changing.replace_view import replace_view
from everview.session.changing.sort_out import define_assertion
from everview.session.changing.table_source import make_table, one_source
from everview.session.core import Core
from everview.session.covariance import Covariance, named
from everview.session.covariance_plans import define_covariance
from everview.session.declared_order import with_declared_order
from everview.session.defining_views import define_view
from everview.session.feeds.feeding import Feeds
from everview.session.feeds.lake_storage import StoredInLake
from everview.session.queries import UnionMaxQuery
from everview.session.relations import Assertion, Table, View
from everview.session.results import Result
from everview.session.rows.changes import check_source
from everview.session.sql.ddl import Columns
from everview.session.sql.execute import execute_script
from everview.session.sql.parameters import bind_parameters
from everview.session.stored_on_disk import Follows, KeepsPublications
from everview.session.subscriptions import Subscription
from everview.session.transaction import Commit, Transaction
from everview.session.verification import VerificationReport
from everview.session.verify_views import verify_all, verify_one
from everview.session.view_options import check_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from everview.session.feeds.lake_feed import LakeFeed

__all__ = ["Assertion", "Commit", "Database", "Subscription", "Table", "Transaction", "View"]


class Database:
    """Tables, the views over them, and the transactions that change both. Made by ``connect``."""

    def __init__(
        self, backend: Backend, spark: SparkSession | None = None, translations: TranslationCache | None = None
    ) -> None:
        self._core = Core(backend, spark, translations)
        self._feeds = Feeds(self._core)

    def go_on(self) -> None:
        """Shows names in the user's Spark session, and goes on with the publications that were there when it was closed."""
        self._core.show_names()
        backend = self._core.backend
        if isinstance(backend, KeepsPublications) and backend.publications:
            module = importlib.import_module("everview.session.feeds.publishing")  # imports deltalake
            module.resume_publications(self._core)

    def create_table(
        self,
        name: str,
        schema: Any = None,
        *,
        source: Any = None,
        follow: bool = False,
        primary_key: str | Iterable[str] | None = None,
        static: bool = False,
        retain: bool = True,
        unique: Iterable[Columns] = (),
        foreign_keys: Mapping[Columns, str | tuple[str, Columns]] | None = None,
    ) -> Table:
        """Creates a table: empty, or with the schema and the rows of what is given.

        Args:
            name: Its name; case does not matter afterwards.
            schema: A Spark DDL string, a ``StructType`` or a ``pyarrow.Schema``; or rows: a Spark, pandas or Arrow frame, or
                the path of a Parquet or CSV file, of a folder of Parquet files, or of a Delta table.
            source: The same, for rows.
            follow: Its rows are those of the Delta table ``source`` (a path, or a name in Spark's catalog), whose new versions
                ``refresh`` takes in. The Spark backend reads them in place, others hold a copy.
            primary_key: A column or several; they become NOT NULL.
            static: The table is loaded by one transaction and then never changes.
            retain: False keeps no rows of the table itself, only what its views need.
            unique: Further keys, each a column or a tuple of columns; rows with a NULL in such a key may repeat.
            foreign_keys: From a column, or a tuple of columns, to the table whose primary key it refers to, or to the table
                and its columns: ``{"item": "items", ("shop", "day"): ("openings", ("shop", "day"))}``. Checked at commit.
        """
        declared = {"primary_key": primary_key, "unique": unique, "foreign_keys": foreign_keys}
        given = one_source(schema, source)
        return Table(self._core, make_table(self._core, name, given, follow, static, retain, declared))

    def create_view(
        self,
        name: str,
        query: str | DataFrame | UnionMaxQuery,
        *,
        strategy: str = "auto",
        lazy: bool = False,
        representation: str = "auto",
        depth: int | None = None,
        epsilon: float | Mapping[str, float] | None = None,
        refresh: str | None = None,
        partitions: str = "single",
        on_error: str | None = None,
        order_by: str | Iterable[str] | None = None,
    ) -> View:
        """Creates a view, fills it from the rows that are there, and keeps it fresh from now on.

        Args:
            name: Its name; case does not matter afterwards.
            query: Spark SQL over tables and views of this database, a DataFrame built from ``spark_table``, or
                ``ev.union_max(…)`` of such.
            strategy: How to maintain it; ``auto`` leaves that to the planner.
            lazy: Update the result on the first read instead of at once.
            representation: ``listing`` stores rows, ``factorized`` the view tree; ``auto`` decides.
            depth: For ``recursive``: to which depth deltas are materialized.
            epsilon: For ``skew``: the exponent of the heavy/light threshold, from 0 to 1, for all relations or by name.
            refresh: ``incremental`` (what the embedded backend does by itself), ``auto`` by cost, ``incremental_strict``
                fails rather than recompute, ``full`` recomputes; ``Commit.refreshed`` says what was done.
            partitions: For ``skew``: ``single`` partitions a relation on one key, ``refined`` on each (less space, more time).
            on_error: What becomes of rows on which the view's arithmetic fails: with ``suspend`` they are committed, and the
                view has no answer until they are gone; with ``reject`` their transaction is rejected. By default ``suspend``,
                for a view over a table with ``retain=False`` ``reject``.
            order_by: Which rows a LIMIT without ORDER BY keeps: the first by ``"primary key"``, or by a list of columns.

        Raises:
            InvalidQuery: Spark cannot resolve the query.
            UnsupportedQuery: the backend cannot maintain it.
        """
        thresholds = tuple(sorted(epsilon.items())) if isinstance(epsilon, Mapping) else epsilon
        options = check_options(
            ViewOptions(strategy, lazy, representation, depth, thresholds, refresh, partitions, on_error)
        )
        ordered = query if order_by is None else with_declared_order(self._core, query, order_by)
        return View(self._core, define_view(self._core, name, ordered, options, is_assertion=False))

    def create_assertion(self, name: str, query: str | DataFrame, *, on_violation: str = "reject") -> Assertion:
        """Creates an assertion: a query that must stay empty.

        Args:
            name: Its name.
            query: Its answer must be empty.
            on_violation: A transaction that would break it is rejected (``reject``), or goes on without the inserted rows that
                the query catches (``drop``); ``quarantine`` keeps them in table ``<name>_quarantine``. ``Commit.caught`` tells.

        Raises:
            AssertionViolated: it does not hold now.
            UnsupportedQuery: it is to catch rows, and does not catch single rows of one table.
        """
        options = check_options(ViewOptions(on_violation=on_violation))
        return Assertion(self._core, define_assertion(self._core, name, query, options))

    def replace_view(
        self,
        name: str,
        query: str | DataFrame | UnionMaxQuery,
        *,
        order_by: str | Iterable[str] | None = None,
        **options: Any,
    ) -> View:
        """Gives a view another query, with the options of ``create_view``; makes it if there is none.

        What reads it stays, where each of its columns is still there with its type, and is made anew over the new rows.
        Handles and subscriptions stay; ``changes`` begin with the new query.

        Raises:
            DependencyError: what reads it could not any more, or it is published.
        """
        chosen = check_options(ViewOptions(**{"on_error": None, **options}))
        ordered = query if order_by is None else with_declared_order(self._core, query, order_by)
        return View(self._core, replace_view(self._core, name, ordered, chosen))

    def drop(self, name: str) -> None:
        """Drops a table, view or assertion that nothing depends on.

        Raises:
            UnknownName: there is none.
            DependencyError: a view or assertion reads it, a stream or Delta feed brings rows for it, or it is published.
        """
        self._core.drop(name)

    def apply(
        self, changes: Mapping[str, Any], *, source: tuple[str, int] | None = None, decompose: bool = False
    ) -> Commit:
        """Commits one transaction: for each table, rows with ``_weight`` or ``_change_type``, rows to insert, or products.

        Args:
            changes: Table names to rows.
            source: The name of where they come from, and the number of the batch, ascending: recorded in the same
                transaction. A batch that is not above the recorded one is not applied (``Commit.is_repeat``), so a program
                that reads a source again after a failure applies each batch once.
            decompose: Find out whether the rows for a table are a product (``ev.Product``) and take them in as such;
                ``Commit.decomposed`` says what was found.
        """
        checked = None if source is None else check_source(source)
        read_at = self._core.catalog.generation
        return self._core.run(self._core.read_mapping(changes, decompose), checked, read_at)

    def advance(self, now: datetime | None = None) -> Commit:
        """Moves the clock, which stands still in between, to a moment or to the present one; ``now()`` in a view reads it."""
        return clock.advance(self._core, now)

    @property
    def now(self) -> datetime | None:
        """What the clock shows, in UTC; None as long as no query has asked for the time."""
        return clock.now(self._core)

    def retain(self, table: str, where: str) -> None:
        """Keeps the rows for which ``ts > now() - INTERVAL 7 DAYS`` or the like is not false; others go with the clock."""
        clock.retain(self._core, table, where)

    def watermark(self, table: str, column: str, delay: str | timedelta) -> None:
        """The clock follows the greatest time in ``column``, less the delay; rows of before it are left out of transactions."""
        watermark.watermark(self._core, table, column, delay)

    def transaction(self) -> Transaction:
        """Several changes in one transaction: ``with db.transaction() as tx: …``."""
        self._core.check_open()
        return Transaction(self._core)

    def table(self, name: str) -> Table:
        """The table of this name."""
        self._core.check_open()
        return Table(self._core, self._core.catalog.table(name))

    def view(self, name: str) -> View:
        """The view of this name."""
        self._core.check_open()
        return self._handle(self._core.catalog.view(name))

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name, in order of creation."""
        self._core.check_open()
        return {t.name: Table(self._core, t) for t in self._core.catalog.tables if not clock.is_hidden(t.name)}

    @property
    def views(self) -> dict[str, View]:
        """All views by name, each after those it reads; the parts of a covariance are not listed."""
        self._core.check_open()
        return {v.name: self._handle(v) for v in self._core.catalog.views if not (v.part_of or clock.is_hidden(v.name))}

    @property
    def assertions(self) -> dict[str, Assertion]:
        """All assertions by name."""
        self._core.check_open()
        return {a.name: Assertion(self._core, a) for a in self._core.catalog.assertions}

    @property
    def version(self) -> int:
        """The number of transactions committed."""
        self._core.check_open()
        return self._core.backend.version

    def spark_table(self, name: str) -> DataFrame:
        """An empty DataFrame that stands for a table or view, to build queries with; starts Spark if need be."""
        self._core.check_open()
        definition = self._core.catalog.get(name)
        if isinstance(definition, ViewDefinition) and definition.is_assertion:
            raise UnknownName(f"'{definition.name}' is an assertion, not a table or view.")
        return self._core.gateway.table(definition.name)

    def sql(
        self, text: str, args: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> Result | Commit | Table | View | Assertion | str | None:
        """Runs statements, separated by semicolons, and returns the result of the last.

        ``args`` are values for markers in the text, as in ``spark.sql``: a dict for ``:name``, a list for ``?``.

        A SELECT gives a ``Result`` (one that we cannot run goes to Spark, and ``Result.computed_by`` says so); INSERT,
        DELETE, UPDATE, MERGE and TRUNCATE the ``Commit`` (each is a transaction of its own); CREATE and ALTER the handle of
        what they made; EXPLAIN text, DROP None. The first statement that fails ends the run, and its error has the statement;
        those before it have happened.
        """
        self._core.check_open()
        return execute_script(self._core, text if args is None else bind_parameters(text, args))

    def verify(self, name: str | None = None) -> VerificationReport:
        """Recomputes a view or assertion, or all, with Spark and compares.

        Views over views are recomputed from the tables too. Without a name, what cannot be recomputed because a table
        keeps no rows, or because it is suspended, is listed as skipped.

        Raises:
            VerificationFailed: with the differing rows.
        """
        self._core.heal()
        with self._core.locked():
            return verify_all(self._core) if name is None else verify_one(self._core, name)

    def last_batch(self, source: str) -> int | None:
        """The number of the last batch of a source that is committed, as ``apply`` and streams record it."""
        return self._core.last_batch(source)

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
        given, at = {**(trigger or {}), **trigger_keywords}, os.fspath(checkpoint)
        return self._feeds.stream(table, streaming_df, checkpoint=at, trigger=given, mode=mode, name=name)

    def follow_delta(
        self,
        table: str,
        uri: str | os.PathLike[str],
        *,
        starting_version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> LakeFeed:
        """Feeds a table from a Delta table: ``poll()`` of the result takes in its new versions, each once.

        Args:
            table: The table to change; it has the Delta table's columns.
            uri: The Delta table.
            starting_version: The first version whose changes are taken; by default the first poll takes the content of
                the newest. Where this database has followed the Delta table before, it goes on after the last version.
            storage_options: What ``deltalake`` needs to reach the store.
        """
        return self._feeds.follow(table, os.fspath(uri), starting_version, storage_options)

    def checkpoint(self) -> None:
        """Writes the tables as files now, so that opening the database has no log to replay.

        Every transaction is on disk when it returns, checkpoint or not, and checkpoints are made as the log grows; on the Spark
        backend there is nothing else to do.

        Raises:
            UnsupportedOperation: the database lives in memory, or was opened with ``read_only=True``.
        """
        with self._core.locked():
            backend = self._core.backend
            if not isinstance(backend, StoredInLake | KeepsPublications | Follows):
                raise UnsupportedOperation(
                    f"the {backend.name} backend has no checkpoint: this database lives in memory."
                )
            backend.checkpoint()

    def refresh(self) -> int:
        """The version now, after taking in the new versions of Delta tables that tables follow (``create_table``).

        With ``read_only=True`` what the writer has committed, as every other call does; subscribers are told of it.
        """
        self._core.check_open()
        if not isinstance(self._core.backend, Follows):
            self._feeds.refresh()
        return self._core.backend.version

    def vacuum(self) -> int:
        """Sums up the Delta tables of tables and views, and removes the files that only older versions need.

        Afterwards each row stands once in its Delta table, with its multiplicity as ``_weight``, and older versions can
        neither be read nor their changes asked for.

        Returns:
            How many files it removed.

        Raises:
            UnsupportedOperation: the backend keeps no Delta tables.
        """
        with self._core.locked():
            backend = self._core.backend
            if not isinstance(backend, StoredInLake):
                raise UnsupportedOperation(f"the {backend.name} backend keeps no files to vacuum.")
            return backend.vacuum()

    def create_covariance(
        self,
        name: str,
        query: str | DataFrame,
        *,
        continuous: Iterable[str] = (),
        categorical: Iterable[str] = (),
        bins: Mapping[str, Bins] | None = None,
        group_by: Iterable[str] = (),
        strategy: str = "auto",
        lazy: bool = False,
        refresh: str | None = None,
    ) -> Covariance:
        """Maintains the covariance matrix of a query's columns, of the rows in which no continuous feature is NULL.

        Args:
            name: Its name; case does not matter afterwards.
            query: A join, say, as for ``create_view``.
            continuous: The columns that are numbers to multiply.
            categorical: The columns whose values are categories, of which NULL is one.
            bins: Columns to cut into bins of equal width, as categories named ``<column>_bin``: how many, over the values
                that are there now, or (low, high, how many).
            group_by: Columns of which each combination of values gets a matrix of its own.
            strategy: As for ``create_view``.
            lazy: As for ``create_view``.
            refresh: As for ``create_view``.
        """
        binned = (bin_name(column) for column in bins or {})
        features = CovarianceFeatures(named(continuous), (*named(categorical), *binned), named(group_by))
        options = check_options(ViewOptions(strategy, lazy, refresh=refresh))
        source = with_bins(self._core, query, bins or {})
        return Covariance(self._core, define_covariance(self._core, name, source, features, options))

    def create_matrix_chain(self, name: str, matrices: Iterable[str], *, storage: str = "auto") -> MatrixChain:
        """Maintains the product of matrices, as a view (i, j, v): see ``learn.matrix_chain.create_matrix_chain``."""
        return create_matrix_chain(self._core, name, tuple(matrices), storage)

    def matrix_chain(self, name: str) -> MatrixChain:
        """The product of matrices of this name."""
        self._core.check_open()
        return matrix_chain(self._core, name)

    def close(self) -> None:
        """Releases everything; further calls are errors, except closing again. Streams stop; a Spark session stays."""
        if self._core.is_open:
            self._feeds.stop()
            self._core.is_open = False
            if self._core.names is not None:
                self._core.names.close()
            self._core.backend.close()

    def __enter__(self) -> Database:
        self._core.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._core.is_open:
            return f"<Database {self._core.backend.name}, closed>"
        counts = f"{len(self._core.catalog.tables)} tables, {len(self._core.catalog.views)} views"
        return f"<Database {self._core.backend.name}, version {self._core.backend.version}, {counts}>"

    def _handle(self, definition: ViewDefinition) -> View:
        return View(self._core, definition) if definition.covariance is None else Covariance(self._core, definition)
