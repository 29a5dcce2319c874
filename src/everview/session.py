"""The front door: ``connect``, and the ``Database`` that it opens.

The session resolves names, turns whatever users give into checked Arrow batches, asks Spark (through the gateway) what
queries mean, and leaves state to a backend. Contract: a call that raises has changed nothing.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from everview.backends.base import Backend, Change, ChangeKind
from everview.catalog import Catalog, TableDefinition, ViewDefinition, ViewOptions, check_columns
from everview.change_shape import shape_of
from everview.changes import check_source, read_changes
from everview.ddl import read_schema
from everview.decompose import decompose as decomposed_change
from everview.delta_storage import KeptOnDisk
from everview.errors import DependencyError, InvalidChange, UnknownName, UnsupportedOperation, guarded
from everview.execute import execute_script
from everview.factorized_change import is_factorized, read_products
from everview.feeding import FedFromOutside
from everview.given_rows import Mode
from everview.open_backend import open_backend
from everview.queries import UnionMaxQuery, union_max_plan
from everview.relational.arrow import arrow_schema
from everview.relational.schema import schema as columns_of
from everview.relations import Assertion, Table, View
from everview.results import Result
from everview.subscriptions import Subscription, Subscriptions
from everview.transaction import Commit, GuardedDeltas, Transaction
from everview.verification import VerificationReport
from everview.verify_views import verify_all, verify_one
from everview.view_options import check_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from everview.frontend.gateway import SparkGateway, Translated
    from everview.publishing import Publication

__all__ = ["Assertion", "Commit", "Database", "Subscription", "Table", "Transaction", "View", "connect"]


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    backend: str = "embedded",
    spark: SparkSession | None = None,
    **options: Any,
) -> Database:
    """Opens a database.

    Args:
        path: A directory to keep it in; in memory without one.
        backend: The engine that maintains the views.
        spark: The Spark session to resolve queries with; without one, the active session, or one started when needed.
        **options: What the backend takes; ``history``: for how many versions to keep the deltas of views.

    Raises:
        UnsupportedOperation: the backend has no such option, or the session has a setting that everview cannot follow.
    """
    if spark is not None:
        importlib.import_module("everview.frontend.session_settings").read_settings(spark)
    return Database(open_backend(backend, None if path is None else os.fspath(path), spark, options), spark)


class Database(FedFromOutside, KeptOnDisk):
    """Tables, the views over them, and the transactions that change both. Made by ``connect``."""

    def __init__(self, backend: Backend, spark: SparkSession | None = None) -> None:
        super().__init__()
        self._backend = backend
        self._spark = spark
        self._catalog = Catalog()
        for definition in backend.definitions:
            self._catalog.add(definition)
        self._gateway: SparkGateway | None = None
        self._dataframes: dict[str, DataFrame | UnionMaxQuery] = {}
        self._subscriptions = Subscriptions()
        self._publications: list[Publication] = []
        self._lock = threading.RLock()
        self._is_open = True

    def create_table(
        self,
        name: str,
        schema: str | pa.Schema | StructType,
        *,
        primary_key: str | Iterable[str] | None = None,
        static: bool = False,
        retain: bool = True,
    ) -> Table:
        """Creates an empty table.

        Args:
            name: Its name; case does not matter afterwards.
            schema: A Spark DDL string, a ``StructType`` or a ``pyarrow.Schema``.
            primary_key: A column or several; they become NOT NULL.
            static: The table is loaded by one transaction and then never changes.
            retain: False keeps no rows of the table itself, only what its views need.
        """
        with self._locked():
            self._catalog.check_name(name)
            read = read_schema(name, schema, primary_key)
            definition = TableDefinition(name, read.fields, read.primary_key, static, retain)
            self._backend.create_table(definition)
            self._catalog.add(definition)
            if self._gateway is not None:
                self._gateway.register(name, definition.fields)
            return Table(self, definition)

    def create_view(
        self,
        name: str,
        query: str | DataFrame | UnionMaxQuery,
        *,
        strategy: str = "auto",
        lazy: bool = False,
        representation: str = "auto",
        depth: int | None = None,
        epsilon: float | None = None,
        refresh: str | None = None,
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
            epsilon: For ``skew``: the exponent of the heavy/light threshold, from 0 to 1.
            refresh: ``incremental`` (what the embedded backend does by itself), ``auto`` by cost, ``incremental_strict``
                fails rather than recompute, ``full`` recomputes; ``Commit.refreshed`` says what was done.

        Raises:
            InvalidQuery: Spark cannot resolve the query.
            UnsupportedQuery: the backend cannot maintain it.
        """
        options = check_options(ViewOptions(strategy, lazy, representation, depth, epsilon, refresh))
        with self._locked():
            definition = self._define(name, query, options, is_assertion=False)
            if self._gateway is not None:
                self._gateway.register(name, definition.fields)
            return View(self, definition)

    def create_assertion(self, name: str, query: str | DataFrame) -> Assertion:
        """Creates an assertion: a query that must stay empty. A transaction that would break it is rejected.

        Raises:
            AssertionViolated: it does not hold now.
        """
        with self._locked():
            return Assertion(self, self._define(name, query, ViewOptions(), is_assertion=True))

    def drop(self, name: str) -> None:
        """Drops a table, view or assertion that nothing depends on.

        Raises:
            UnknownName: there is none.
            DependencyError: a view or assertion reads it, a stream or Delta feed brings rows for it, or it is published.
        """
        with self._locked():
            definition = self._catalog.droppable(name)
            self._check_not_fed(definition.name)
            self._check_not_published(definition.name)
            self._backend.drop(definition.name)
            self._catalog.remove(definition)
            self._dataframes.pop(definition.name.lower(), None)
            self._subscriptions.remove_view(definition.name)
            is_registered = isinstance(definition, TableDefinition) or not definition.is_assertion
            if self._gateway is not None and is_registered:
                self._gateway.unregister(definition.name)

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
        return self._run(self._read_mapping(changes, decompose), None if source is None else check_source(source))

    def transaction(self) -> Transaction:
        """Several changes in one transaction: ``with db.transaction() as tx: …``."""
        self._check_open()
        return Transaction(self)

    def table(self, name: str) -> Table:
        """The table of this name."""
        self._check_open()
        return Table(self, self._catalog.table(name))

    def view(self, name: str) -> View:
        """The view of this name."""
        self._check_open()
        return View(self, self._catalog.view(name))

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name, in order of creation."""
        self._check_open()
        return {t.name: Table(self, t) for t in self._catalog.tables}

    @property
    def views(self) -> dict[str, View]:
        """All views by name, each after those it reads."""
        self._check_open()
        return {v.name: View(self, v) for v in self._catalog.views}

    @property
    def assertions(self) -> dict[str, Assertion]:
        """All assertions by name."""
        self._check_open()
        return {a.name: Assertion(self, a) for a in self._catalog.assertions}

    @property
    def version(self) -> int:
        """The number of transactions committed."""
        self._check_open()
        return self._backend.version

    def spark_table(self, name: str) -> DataFrame:
        """An empty DataFrame that stands for a table or view, to build queries with; starts Spark if need be."""
        self._check_open()
        definition = self._catalog.get(name)
        if isinstance(definition, ViewDefinition) and definition.is_assertion:
            raise UnknownName(f"'{definition.name}' is an assertion, not a table or view.")
        return self._spark_gateway().table(definition.name)

    def sql(self, text: str) -> Result | Commit | Table | View | Assertion | str | None:
        """Runs statements, separated by semicolons, and returns the result of the last.

        A SELECT gives a ``Result``, INSERT, DELETE and UPDATE the ``Commit`` (each is a transaction of its own), CREATE
        the handle of what it made, EXPLAIN text, DROP None. The first statement that fails ends the run, and its error
        has the statement; those before it have happened.
        """
        self._check_open()
        return execute_script(self, text)

    def verify(self, name: str | None = None) -> VerificationReport:
        """Recomputes a view or assertion, or all, with Spark and compares.

        Views over views are recomputed from the tables too. Without a name, what cannot be recomputed because a table
        keeps no rows is listed as skipped.

        Raises:
            VerificationFailed: with the differing rows.
        """
        with self._locked():
            return verify_all(self) if name is None else verify_one(self, name)

    def create_covariance(self, name: str, query: str | DataFrame, **_options: Any) -> NoReturn:
        """Maintains the covariance matrix of a query's columns, to learn from."""
        self._missing("create_covariance", f"'{name}' cannot be created")

    def create_matrix_chain(self, name: str, _matrices: Iterable[str], **_options: Any) -> NoReturn:
        """Maintains the product of matrices."""
        self._missing("create_matrix_chain", f"'{name}' cannot be created")

    def close(self) -> None:
        """Releases everything; further calls are errors, except closing again. Streams stop; a Spark session stays."""
        if self._is_open:
            self._stop_streams()
            self._is_open = False
            self._backend.close()

    def __enter__(self) -> Database:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._is_open:
            return f"<Database {self._backend.name}, closed>"
        counts = f"{len(self._catalog.tables)} tables, {len(self._catalog.views)} views"
        return f"<Database {self._backend.name}, version {self._backend.version}, {counts}>"

    def _check_not_published(self, view: str) -> None:
        for publication in self._publications:
            if publication.view == view and publication.is_active:
                raise DependencyError(
                    f"view '{view}' cannot be dropped: it is published at {publication.uri}.",
                    hint="end that first, with view.unpublish(); the Delta table stays as it is.",
                )

    def _check_open(self) -> None:
        if not self._is_open:
            raise UnsupportedOperation("the database is closed.", hint="open it again with connect().")

    def _locked(self) -> threading.RLock:
        self._check_open()
        return self._lock

    def _missing(self, call: str, meanwhile: str) -> NoReturn:
        self._check_open()
        raise UnsupportedOperation(f"the {self._backend.name} backend has no {call}: {meanwhile}.")

    def _spark_gateway(self) -> SparkGateway:
        """Our door to Spark, made on first use: it imports pyspark, which programs without queries need not pay for."""
        if self._gateway is None:
            module = importlib.import_module("everview.frontend.gateway")
            gateway: SparkGateway = module.SparkGateway(self._spark)
            for table in self._catalog.tables:
                gateway.register(table.name, table.fields)
            for view in self._catalog.views:
                gateway.register(view.name, view.fields)
            self._gateway = gateway
        return self._gateway

    def _translate(self, query: str | DataFrame | UnionMaxQuery) -> Translated:
        with guarded(query):
            if isinstance(query, UnionMaxQuery):
                parts = [self._spark_gateway().translate(part) for part in query.parts]
                return replace(parts[0], plan=union_max_plan([p.plan for p in parts]), text=None)
            return self._spark_gateway().translate(query)

    def _to_spark(self, rows: pa.Table) -> DataFrame:
        return self._spark_gateway().to_dataframe(rows)

    def _define(
        self, name: str, query: str | DataFrame | UnionMaxQuery, options: ViewOptions, *, is_assertion: bool
    ) -> ViewDefinition:
        self._catalog.check_name(name)
        translated = self._translate(query)
        if not is_assertion:
            check_columns(f"view '{name}'", columns_of(translated.plan))
        zone, others = translated.settings.time_zone, translated.settings.others
        definition = ViewDefinition(name, translated.plan, translated.text, zone, options, is_assertion, others)
        with guarded(query):
            self._backend.create_view(definition)
        self._catalog.add(definition)
        if not isinstance(query, str):
            self._dataframes[name.lower()] = query
        return definition

    def _read_change(self, table: str, rows: Any, mode: Mode, decompose: bool = False) -> Change:
        self._check_open()
        definition = self._catalog.table(table)
        if is_factorized(rows):
            return read_products(definition, rows, mode)
        change = read_changes(definition, rows, mode)
        return decomposed_change(definition, change) if decompose else change

    def _read_mapping(self, changes: Mapping[str, Any], decompose: bool = False) -> list[Change]:
        if not isinstance(changes, Mapping):
            raise InvalidChange(
                f"changes are of type {type(changes).__name__}.", hint="give a dict from table names to rows."
            )
        return [self._read_change(table, rows, Mode.APPLY, decompose) for table, rows in changes.items()]

    def _run(self, changes: list[Change], source: tuple[str, int] | None = None) -> Commit:
        commit = self._commit(changes, source)
        self._notify()
        return commit

    def _commit(self, changes: list[Change], source: tuple[str, int] | None = None) -> Commit:
        with self._locked():
            if source is not None:
                last = self._backend.last_batch(source[0])
                if last is not None and source[1] <= last:
                    return Commit(self._backend.version, {}, 0.0, is_repeat=True)
            for change in changes:
                self._check_current(change)
            started = time.perf_counter()
            deltas = self._backend.apply(changes, source=source)
            seconds = time.perf_counter() - started
            version = self._backend.version
            self._subscriptions.announce(version, deltas)
            found = {c.table: c.decomposed for c in changes if c.decomposed is not None}
            return Commit(
                version, GuardedDeltas(deltas, self._lock), seconds, self._backend.refreshed(), decomposed=found
            )

    def _check_current(self, change: Change) -> None:
        """Raises if the table was dropped, or made anew with other columns, since its rows were read."""
        table = self._catalog.table(change.table)
        by_key = change.kind is ChangeKind.DELETE_KEYS
        schema = arrow_schema(table.key_fields) if by_key else shape_of(table).exact
        if not change.schema.equals(schema):
            raise UnknownName(f"table '{change.table}' was dropped and made anew during the transaction.")

    def _notify(self) -> None:
        self._subscriptions.deliver()
