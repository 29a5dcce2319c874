"""An engine filled from disk: the tables of the checkpoint, its views over them, then the log, record by record.

    state  =  views(checkpoint)  then  every record behind it, in order

Views are made from the rows of their tables, by the planner of this version; no plan is translated, so no JVM is started.
Transactions of the log go through the engine as they first did, so that views have their changes since the checkpoint. The same
code follows a log that another process writes. Contract: the engine is at a whole version after every call.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.algebra.registry import is_registered
from everview.backends.base import AlteredTable, Change
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.tables.stored_table import TableContent
from everview.catalog import Catalog, Definition, TableDefinition, ViewDefinition
from everview.errors import CorruptDatabase, EverviewError, UnknownName
from everview.relational.arrow import arrow_schema
from everview.relational.nodes import Aggregate
from everview.relational.traverse import nodes_of
from everview.session.durable.logged_alterations import altered_from_log
from everview.session.durable.logged_changes import changes_from_log, is_too_large_to_expand
from everview.session.durable.progress import OpeningProgress
from everview.storage.change_log import ChangeLog
from everview.storage.checkpoint_files import read_rows
from everview.storage.definitions import definition_from_json, definition_to_json
from everview.storage.manifest import Manifest, TableFile, manifest_from_json
from everview.storage.records import LogRecord

CHECKPOINTS = "checkpoints"
RECORD_COST = 4096
"""What a record costs to replay beside its bytes, counted in bytes."""


class RecoveredEngine:
    """The engine of a database on disk, and the point of the log that it has come to.

    Args:
        folder: That of the database.
        log: Its log.
        make_engine: Makes an empty engine.
    """

    def __init__(self, folder: Path, log: ChangeLog, make_engine: Callable[[], EmbeddedBackend]) -> None:
        self._folder = folder
        self._log = log
        self._make_engine = make_engine
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.engine = self._make_engine()
        self.catalog = Catalog()
        self.number = 0
        """The last piece of the log that the engine has taken in."""
        self.cost = 0
        """What the log behind the checkpoint would cost to replay."""
        self.checkpoint_number = 0
        self.checkpoint_length = 0
        self.only_in_log: set[str] = set()
        """Tables that keep no rows and have received products that are too large for a checkpoint."""
        self.publications: dict[tuple[str, str], bool] = {}
        """Views and the places where they are published; whether it was with storage options, which are not kept."""

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """Tables, views and assertions, in order of creation."""
        return self.catalog.definitions

    def open(self) -> None:
        """Fills the engine.

        Raises:
            CorruptDatabase: a file is not what was written.
            UnknownName: a view uses a ring that is not registered.
        """
        while True:
            manifest = manifest_in_force(self._log)
            try:
                self._fill(manifest)
            except CorruptDatabase:
                again = self._log.checkpoint()
                if again is not None and again[0] > manifest.log_number:
                    continue  # a writer has made another checkpoint meanwhile, and removed this one and its log
                raise
            return

    def _fill(self, manifest: Manifest) -> None:
        known = {d.name: d for d in self.definitions}
        self._begin_anew()
        behind = self._log.bytes_behind(manifest.log_number)
        definitions = [_same_object(d, known.get(d.name)) for d in manifest.definitions]
        tables = [d for d in definitions if isinstance(d, TableDefinition)]
        views = [d for d in definitions if isinstance(d, ViewDefinition)]
        each = manifest.length // (len(views) or 1)
        with OpeningProgress(f"opening {self._folder}", manifest.length + each * len(views) + behind) as progress:
            for table in tables:
                self.engine.create_table(table)
                self.catalog.add(table)
            self.engine.restore(manifest.version, manifest.sources, self._contents(manifest, progress))
            for table in tables:
                for constraint in self.catalog.constraint_views(table):
                    self._create_view(constraint)
            for view in views:
                self._create_view(view)
                self.catalog.add(view)
                progress.advance(each)
            self.engine.restored()
            self.number = self.checkpoint_number = manifest.log_number
            self.checkpoint_length = manifest.length
            self.publications = {(view, uri): has_options for view, uri, has_options in manifest.publications}
            for record in self._log.records(self.number):
                self.replay(record)
                progress.advance(len(record.body))

    def _contents(self, manifest: Manifest, progress: OpeningProgress) -> Iterator[TableContent]:
        for file in manifest.tables:
            yield read_content(self._folder, manifest, file, self.catalog.table(file.table))
            progress.advance(file.written.length)

    def follow(self) -> list[tuple[int, Mapping[str, pa.Table]]]:
        """Takes in what has been written since; returns the versions, with the changes of views.

        Where the log was cut behind a checkpoint that this engine has not come to, it is filled anew, and nobody is told how
        views came there.
        """
        moved = []
        try:
            for record in self._log.records(self.number):
                deltas = self.replay(record)
                if deltas is not None:
                    moved.append((self.engine.version, deltas))
        except CorruptDatabase:
            if not self._is_left_behind():
                raise
        if self._is_left_behind():
            self.open()
            return []
        return moved

    def _is_left_behind(self) -> bool:
        found = self._log.checkpoint()
        return found is not None and found[0] > self.number

    def replay(self, record: LogRecord) -> Mapping[str, pa.Table] | None:
        """Does again what a record says; returns the changes of views where it is a transaction.

        Raises:
            CorruptDatabase: it cannot be done.
        """
        deltas = None
        try:
            match record.header.get("kind"):
                case "apply":
                    deltas = self._apply(record)
                case "together":
                    for said in record.header["records"]:
                        self._redo(said)
                case _:
                    self._redo(record.header)
        except KeyError as error:
            raise CorruptDatabase(f"record {record.number} of the log lacks {error}.") from error
        self.note(record.number, len(record.body))
        return deltas

    def _redo(self, said: dict[str, Any]) -> None:
        """Does again what is said of the catalog or of publications."""
        match said.get("kind"):
            case "define":
                self.define(definition_from_json(said["definition"]))
            case "drop":
                self.drop(self.catalog.get(said["name"]))
            case "alter":
                self._alter(self.catalog.table(said["name"]), altered_from_log(said))
            case "publish":
                self.publications[said["view"], said["uri"]] = said["has_options"]
            case "unpublish":
                self.publications.pop((said["view"], said["uri"]), None)
            case kind:
                raise CorruptDatabase(
                    f"the log has a record of kind '{kind}', which this version of everview does not know.",
                    hint="open the database with the version of everview that wrote it, or a newer one.",
                )

    def note_changes(self, changes: Sequence[Change]) -> None:
        """These changes are part of a transaction."""
        large = (self.catalog.table(c.table) for c in changes if is_too_large_to_expand(c))
        self.only_in_log.update(t.name for t in large if not t.retain)

    def note(self, number: int, length: int) -> None:
        """The engine has come to this piece of the log."""
        self.number = number
        self.cost += length + RECORD_COST

    def _apply(self, record: LogRecord) -> Mapping[str, pa.Table]:
        header = record.header
        changes = changes_from_log(header["changes"], record.body, self.catalog.table)
        source = None if header["source"] is None else (header["source"][0], header["source"][1])
        at = datetime.datetime.fromisoformat(header["at"])
        journal, self.engine.journal = self.engine.journal, lambda _changes, _source: at
        try:
            deltas = self.engine.apply(changes, source=source)
        except EverviewError as error:
            raise CorruptDatabase(
                f"transaction {header['version']} of the log cannot be repeated: {error.message}"
            ) from error
        finally:
            self.engine.journal = journal
        if self.engine.version != header["version"]:
            raise CorruptDatabase(f"the log has version {header['version']} where {self.engine.version} was expected.")
        self.note_changes(changes)
        return deltas

    def define(self, definition: Definition) -> None:
        """Makes a table with its constraints, or a view."""
        if isinstance(definition, TableDefinition):
            self.engine.create_table(definition)
            self.catalog.add(definition)
            for constraint in self.catalog.constraint_views(definition):
                self._create_view(constraint)
        else:
            self._create_view(definition)
            self.catalog.add(definition)

    def _create_view(self, view: ViewDefinition) -> None:
        calls = [c for n in nodes_of(view.plan) if isinstance(n, Aggregate) for c in n.aggregates]
        for call in calls:
            if call.is_ring and not is_registered(call.function):
                raise UnknownName(
                    f"the database '{self._folder}' cannot be opened: {view.kind} '{view.name}' uses the ring "
                    f"'{call.function}', which this process has not registered.",
                    hint="register it with ev.register_ring before connect().",
                )
        self.engine.create_view(view)

    def _alter(self, before: TableDefinition, altered: AlteredTable) -> None:
        """Alters a table that no view reads; constraints are made anew."""
        for constraint in self.catalog.constraints_over(before):
            self.engine.drop(constraint.name)
        self.engine.alter_table(before.name, altered)
        self.catalog.exchange(before, altered.definition)
        for constraint in self.catalog.constraints_over(altered.definition):
            self._create_view(constraint)

    def drop(self, definition: Definition) -> None:
        """Removes a table with its constraints, or a view."""
        if isinstance(definition, TableDefinition):
            for constraint in reversed(self.catalog.constraint_views(definition)):
                self.engine.drop(constraint.name)
        self.engine.drop(definition.name)
        self.forget(definition)

    def forget(self, definition: Definition) -> None:
        """What the engine has dropped is no longer in the catalog."""
        self.catalog.remove(definition)
        self.only_in_log.discard(definition.name)


def manifest_in_force(log: ChangeLog) -> Manifest:
    """What is said of the checkpoint in force; of an empty one, where there is none."""
    found = log.checkpoint()
    return Manifest(0, 0) if found is None else manifest_from_json(found[1])


def read_content(folder: Path, manifest: Manifest, file: TableFile, table: TableDefinition) -> TableContent:
    """What a checkpoint has of a table.

    Raises:
        CorruptDatabase: the file is missing, or is not what was written.
    """
    path = folder / CHECKPOINTS / checkpoint_folder(manifest) / file.file
    if Path(file.file).name != file.file:
        raise CorruptDatabase(f"the checkpoint names a file outside its folder: '{file.file}'.")
    try:
        rows, weights = read_rows(path, file.written)
    except FileNotFoundError as error:
        raise CorruptDatabase(f"'{path}' is missing, a file of the checkpoint in force.") from error
    fields = table.fields if table.retain else tuple(f for f in table.fields if f.name in rows.schema.names)
    if not rows.schema.equals(arrow_schema(fields)) or rows.num_rows != file.rows:
        raise CorruptDatabase(f"'{path}' does not hold the rows of table '{file.table}'.")
    return TableContent(table.name, rows, weights, file.received)


def checkpoint_folder(manifest: Manifest) -> str:
    """The name of the folder with a checkpoint's files."""
    return f"{manifest.version:012d}-{manifest.log_number}"


def _same_object(definition: Definition, known: Definition | None) -> Definition:
    """The definition that is known, if it says the same: handles of users hold it."""
    if known is not None and definition_to_json(known) == definition_to_json(definition):
        return known
    return definition
