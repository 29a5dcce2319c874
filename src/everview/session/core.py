"""The inner interface of a session: what handles, transactions, statements and feeds ask of the database they belong to.

A ``Core`` has the catalog, the backend, the lock under which both are used, and the door to Spark. It reads what users give as
changes, and commits them. ``Database`` is its public face. Contract: a call that raises has changed nothing.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.backends.base import Backend, Change, ChangeKind
from everview.backends.interruptions import UNINTERRUPTED
from everview.catalog import (
    Catalog,
    Definition,
    Followed,
    TableDefinition,
    ViewDefinition,
)
from everview.errors import DependencyError, InvalidChange, UnknownName, UnsupportedOperation, UnsupportedQuery, guarded
from everview.frontend.translated import Translated
from everview.frontend.translation_cache import TranslationCache
from everview.frontend.translator import Translator
from everview.relational import spark_code
from everview.relational.arrow import arrow_schema
from everview.relational.clock import CLOCK, reads_clock
from everview.relational.nodes import Schema
from everview.session.changing.sort_out import sort_out
from everview.session.clock import ensure_clock
from everview.session.database_lock import DatabaseLock
from everview.session.feeds.lake_storage import StagesFrames
from everview.session.queries import UnionMaxQuery, settled, union_max_plan
from everview.session.rows.change_shape import shape_of
from everview.session.rows.changes import read_changes
from everview.session.rows.decompose import decompose as decomposed_change
from everview.session.rows.factorized_change import is_factorized, read_products
from everview.session.rows.given_rows import Mode, columns_of_frame, is_spark_frame
from everview.session.sql.ddl import Columns, read_schema
from everview.session.stored_on_disk import Follows, KeepsPublications, LogsDefinitions
from everview.session.subscriptions import Subscriptions
from everview.session.transaction import Commit, GuardedDeltas
from everview.session.watermark import follow, without_late

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from everview.frontend.gateway import SparkGateway
    from everview.session.feeds.publishing import Publication
    from everview.session.names_in_spark import NamesInSpark


spark_code.provide(lambda: importlib.import_module("everview.frontend.evaluate_in_spark").evaluate)


class Core:
    """What the parts of one database share."""

    def __init__(
        self, backend: Backend, spark: SparkSession | None = None, translations: TranslationCache | None = None
    ) -> None:
        self.backend = backend
        self.spark = spark
        self.catalog = Catalog()
        for definition in backend.definitions:
            self.catalog.add(definition)
        self.subscriptions = Subscriptions()
        self.publications: list[Publication] = []
        self.drop_checks: list[Callable[[str], None]] = [self._check_not_published]
        """What else is asked before a table or view is dropped: each raises if something outside hangs on it."""
        self.sources: dict[str, DataFrame | UnionMaxQuery] = {}
        """What views were made from that is no text, by their lower-case names."""
        self._stages = backend if isinstance(backend, StagesFrames) else None
        self._follows = isinstance(backend, Follows)  # asking a protocol takes longer than a small transaction
        self.lock = DatabaseLock(self._follow if self._follows else None)
        self._superseded: dict[int, tuple[Definition, Definition]] = {}
        """Definitions that others have replaced, by identity: handles of the old find the new."""
        self._borrowed: dict[str, Schema] = {}
        self.uninterrupted: AbstractContextManager[None] = nullcontext() if backend.name == "spark" else UNINTERRUPTED
        """Around what changes state in several steps. What Spark computes can be interrupted, and is committed as a whole."""
        self.is_open = True
        self.names: NamesInSpark | None = None
        self._gateway: SparkGateway | None = None
        self._translator = Translator(translations, lambda: self.gateway, spark is not None)

    def check_not_closed(self) -> None:
        """Raises if the database is closed."""
        if not self.is_open:
            raise UnsupportedOperation("the database is closed.", hint="open it again with connect().")

    def check_open(self) -> None:
        """Raises if the database is closed; one that another process writes is brought up to date."""
        if self.is_open and not self._follows:
            return
        self.check_not_closed()
        with self.lock:
            pass  # whoever enters takes in what the writer has committed
        self.subscriptions.deliver()

    def locked(self) -> DatabaseLock:
        """The lock, to hold while catalog and backend are used."""
        self.check_open()
        return self.lock

    def _follow(self) -> None:
        """Takes in what the writer of the database has committed since the last time."""
        if not self.is_open or not isinstance(self.backend, Follows):
            return
        with self.uninterrupted:
            for version, deltas in self.backend.follow():
                self.subscriptions.announce(version, deltas)
            there = {id(d) for d in self.backend.definitions}
            for definition in self.catalog.definitions:
                if id(definition) not in there:
                    self.catalog.remove(definition)
                    if not (isinstance(definition, ViewDefinition) and definition.is_assertion):
                        self.forget_in_spark(definition.name)
            for definition in self.backend.definitions:
                if not self.catalog.has(definition):
                    self.catalog.add(definition)
                    self.tell_spark_of(definition.name)

    def together(self) -> AbstractContextManager[None]:
        """For definitions that replace others: on disk they are changed all at once."""
        return self.backend.together() if isinstance(self.backend, LogsDefinitions) else nullcontext()

    # Publications

    def note_publication(self, publication: Publication, *, has_options: bool) -> None:
        """Remembers a publication, also for when the database is opened again."""
        self.publications = [*(p for p in self.publications if p.is_active), publication]
        if isinstance(self.backend, KeepsPublications):
            with self.locked():
                self.backend.note_publication(publication.view, publication.uri, has_options)

    def forget_publication(self, publication: Publication) -> None:
        """Forgets a publication that has ended."""
        if isinstance(self.backend, KeepsPublications) and self.is_open:
            with self.locked():
                self.backend.forget_publication(publication.view, publication.uri)

    # Spark

    @property
    def gateway(self) -> SparkGateway:
        """The door to Spark, made on first use: it imports pyspark, which programs without queries need not pay for."""
        if self._gateway is None:
            module = importlib.import_module("everview.frontend.gateway")
            gateway: SparkGateway = module.SparkGateway(
                self.spark,
                computes=self.backend.name == "spark",
                meanwhile=self._to_do_while_spark_starts(),
                marks=self._marks_of_names,
            )
            for name, fields in self._readable().items():
                gateway.register(name, fields)
            self._gateway = gateway
        return self._gateway

    def _to_do_while_spark_starts(self) -> Callable[[], None] | None:
        """What the first view needs besides Spark."""
        if self.backend.name != "embedded":
            return None
        start: Callable[[], None] = importlib.import_module("everview.backends.embedded.numba_start").start_numba
        return start

    def show_names(self) -> None:
        """Lets the Spark session that the user gave read tables and views by name."""
        if self.spark is not None and self.backend.name == "embedded":
            module = importlib.import_module("everview.session.names_in_spark")
            self.names = module.NamesInSpark(self, self.spark)
            for definition in self.catalog.definitions:
                self.names.add(definition)

    def _marks_of_names(self) -> Mapping[str, str]:
        """How the plans of temporary views of the user's session say that they stand for tables and views of now."""
        shown = getattr(self.backend, "shown", None) if self.names is None else self.names.shown
        marks: Mapping[str, str] = {} if shown is None else shown.marks()
        return marks

    def tell_spark_of(self, name: str) -> None:
        """Makes a new table or view known to queries."""
        definition = self.catalog.get(name)
        if self._gateway is not None:
            self._gateway.register(name, definition.fields)
        if self.names is not None:
            self.names.add(definition)

    def forget_in_spark(self, name: str) -> None:
        """Takes the name of a table or view from queries."""
        if self._gateway is not None:
            self._gateway.unregister(name)
        if self.names is not None:
            self.names.shown.remove(name)

    @contextmanager
    def also_readable(self, name: str, fields: Schema) -> Iterator[None]:
        """Lets queries read something under a name that nothing has, as long as it lasts."""
        self.catalog.check_name(name)
        self._borrowed[name] = fields
        if self._gateway is not None:
            self._gateway.register(name, fields)
        try:
            yield
        finally:
            del self._borrowed[name]
            self.forget_in_spark(name)

    def translate(self, query: str | DataFrame | UnionMaxQuery, *, may_be_whole: bool = False) -> Translated:
        """What Spark says that a query means; where the algebra cannot say it, and ``may_be_whole``, Spark is to answer it."""

        def translated(part: Any) -> Translated:
            try:
                return self._translator.translate(part, self._readable())
            except UnsupportedQuery:
                if not may_be_whole:
                    raise
                return self.gateway.translate_whole(part)

        with guarded(query):
            if isinstance(query, UnionMaxQuery):
                parts = [translated(part) for part in query.parts]
                whole = replace(parts[0], plan=union_max_plan([p.plan for p in parts]), text=None)
            else:
                whole = translated(query)
        if reads_clock(whole.plan):
            ensure_clock(self)
        return settled(self.catalog, whole)

    def _readable(self) -> dict[str, Schema]:
        """What queries may read, by name."""
        definitions: list[TableDefinition | ViewDefinition] = [*self.catalog.tables, *self.catalog.views]
        return {**{d.name: d.fields for d in definitions if d.name != CLOCK}, **self._borrowed}

    def to_spark(self, rows: pa.Table) -> DataFrame:
        """Rows as a DataFrame of the user's session."""
        return self.gateway.to_dataframe(rows)

    # Definitions

    def define_table(
        self,
        name: str,
        schema: str | pa.Schema | StructType,
        primary_key: str | Iterable[str] | None = None,
        static: bool = False,
        retain: bool = True,
        unique: Iterable[Columns] = (),
        foreign_keys: Mapping[Columns, str | tuple[str, Columns]] | None = None,
        follows: Followed | None = None,
    ) -> TableDefinition:
        """Makes an empty table, with the views that watch over its constraints."""
        with self.uninterrupted, self.locked():
            self.catalog.check_name(name)
            read = read_schema(name, schema, primary_key, unique, foreign_keys)
            declared = TableDefinition(
                name, read.fields, read.primary_key, static, retain, read.constraints, follows=follows
            )
            definition = self.catalog.with_references(declared)
            self.backend.create_table(definition)
            made = [name]
            try:
                for constraint in self.catalog.constraint_views(definition):
                    self.backend.create_view(constraint)
                    made.append(constraint.name)
            except BaseException:
                self._drop_from_backend(made)
                raise
            self.catalog.add(definition)
            self.tell_spark_of(name)
            return definition

    def fill_table(self, table: TableDefinition, rows: Any) -> TableDefinition:
        """Gives a table that has just been made its first rows; if it cannot take them, it is dropped again."""
        with self.uninterrupted, self.locked():
            try:
                self.commit([self.read_change(table.name, rows, Mode.INSERT)])
            except BaseException:
                self.drop(table.name)
                raise
            return table

    def remove(self, views: Iterable[ViewDefinition]) -> None:
        """Takes views away that nothing depends on."""
        for view in views:
            self.backend.drop(view.name)
            self.catalog.remove(view)
            self.forget_in_spark(view.name)

    def add_view(self, definition: ViewDefinition) -> None:
        """Makes a view of which all is known already; its name has been checked."""
        with self.uninterrupted, self.locked():
            self.backend.create_view(definition)
            self.catalog.add(definition)
            if not definition.is_assertion:
                self.tell_spark_of(definition.name)

    def supersede(self, before: Definition, after: Definition) -> None:
        """Notes that handles of one definition mean another from now on."""
        self._superseded[id(before)] = before, after

    def current(self, definition: Definition) -> Definition:
        """What stands in the place of a definition, which may have been replaced."""
        while id(definition) in self._superseded:
            definition = self._superseded[id(definition)][1]
        return definition

    def heal(self) -> None:
        """Lets suspended views answer again whose rows allow it, and tells their subscribers."""
        with self.locked():
            if not self.backend.suspensions():
                return
            with self.uninterrupted:
                self.subscriptions.announce(self.backend.version, self.backend.heal())
        self.subscriptions.deliver()

    def drop(self, name: str) -> None:
        """Drops a table, view or assertion that nothing depends on.

        Raises:
            UnknownName: there is none.
            DependencyError: a view or assertion reads it, or something outside hangs on it.
        """
        with self.uninterrupted, self.locked():
            definition = self.catalog.droppable(name)
            for check in self.drop_checks:
                check(definition.name)
            for hidden in self.catalog.dependents(name):
                self.drop(hidden.name)  # its retention and its watermark
            constraints = self.catalog.constraint_views(definition) if isinstance(definition, TableDefinition) else ()
            parts = self.catalog.parts_of(definition)
            self._drop_from_backend([definition.name, *(c.name for c in constraints)])
            self.remove(parts)
            self.catalog.remove(definition)
            self.sources.pop(definition.name.lower(), None)
            self.subscriptions.remove_view(definition.name)
            if not (isinstance(definition, ViewDefinition) and definition.is_assertion):
                self.forget_in_spark(definition.name)

    def _drop_from_backend(self, names: list[str]) -> None:
        """A table comes with the constraints over it, which go first."""
        for name in reversed(names):
            self.backend.drop(name)

    def _check_not_published(self, view: str) -> None:
        for publication in self.publications:
            if publication.view == view and publication.is_active:
                raise DependencyError(
                    f"view '{view}' cannot be dropped: it is published at {publication.uri}.",
                    hint="end that first, with view.unpublish(); the Delta table stays as it is.",
                )

    # Changes

    def read_change(
        self, table: str, rows: Any, mode: Mode, decompose: bool = False, *, by_feed: bool = False
    ) -> Change:
        """The rows that a user, or the feed of an external table, gives for a table, checked against it."""
        self.check_open()
        definition = self.catalog.table(table)
        if not by_feed:
            definition.check_is_ours("takes no changes")
        if definition.name == CLOCK:
            raise InvalidChange("the clock is no table to change.", hint="db.advance(now) moves it.")
        if is_factorized(rows):
            return read_products(definition, rows, mode)
        if self._stages is not None and is_spark_frame(rows):
            near = self._stages.near_rows(rows)
            if near is None:
                read_changes(definition, columns_of_frame(rows), mode)  # names and types, which no row has to show
                return self._stages.stage(definition, rows, mode.value)
            rows = near
        change = read_changes(definition, rows, mode)
        return decomposed_change(definition, change) if decompose else change

    def read_mapping(self, changes: Mapping[str, Any], decompose: bool = False) -> list[Change]:
        """What a user gives for several tables."""
        if not isinstance(changes, (dict, Mapping)):  # of a dict it is known at once
            raise InvalidChange(
                f"changes are of type {type(changes).__name__}.", hint="give a dict from table names to rows."
            )
        return [self.read_change(table, rows, Mode.APPLY, decompose) for table, rows in changes.items()]

    def run(self, changes: list[Change], source: tuple[str, int] | None = None, read_at: int | None = None) -> Commit:
        """Commits a transaction and tells the subscribers."""
        commit = self.commit(changes, source, read_at)
        self.subscriptions.deliver()
        return commit

    def commit(
        self, changes: list[Change], source: tuple[str, int] | None = None, read_at: int | None = None
    ) -> Commit:
        """Commits a transaction, whose subscribers the caller then tells; a batch of a source that is not new does nothing.

        Whoever interrupts it finds all of it or nothing. ``read_at`` is the catalog's generation when the rows were read.
        """
        with self.uninterrupted, self.locked():
            if source is not None:
                last = self.backend.last_batch(source[0])
                if last is not None and source[1] <= last:
                    return Commit(self.backend.version, {}, 0.0, is_repeat=True)
            if read_at != self.catalog.generation:
                for change in changes:
                    self._check_current(change)
            backend, marked = self.backend, self.catalog.watermarks
            started = time.perf_counter()
            changes, caught = sort_out(self, changes) if self.catalog.sorts_rows_out else (changes, {})
            if marked:
                changes, late = without_late(self, changes)
                caught = {**caught, **late}
            before = backend.suspensions()
            deltas = backend.apply(changes, source=source)
            seconds = time.perf_counter() - started
            version = backend.version
            self.subscriptions.announce(version, deltas)
            found = {c.table: c.decomposed for c in changes if c.decomposed is not None}
            after = backend.suspensions()
            suspended = {name: why for name, why in after.items() if name not in before} if after else {}
            told = GuardedDeltas(deltas, self.lock)
            refreshed = backend.refreshed()
            commit = Commit(version, told, seconds, refreshed, decomposed=found, suspended=suspended, caught=caught)
            if marked and any(c.table.lower() in marked for c in changes):
                follow(self)
            return commit

    def last_batch(self, source: str) -> int | None:
        """The number of the last batch of a source that is committed."""
        with self.locked():
            return self.backend.last_batch(source)

    def _check_current(self, change: Change) -> None:
        """Raises if the table was dropped, or made anew with other columns, since its rows were read."""
        table = self.catalog.table(change.table)
        by_key = change.kind is ChangeKind.DELETE_KEYS
        schema = arrow_schema(table.key_fields) if by_key else shape_of(table).exact
        if not change.schema.equals(schema):
            raise UnknownName(f"table '{change.table}' was dropped and made anew during the transaction.")
