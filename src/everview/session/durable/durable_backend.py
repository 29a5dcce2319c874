"""The embedded engine with a folder: every transaction and every definition is in the log before the call returns.

    apply:   the engine has done all but commit  →  the record is on disk  →  the engine commits
    create:  the engine has made it              →  the record is on disk
    drop:    the record is on disk               →  the engine removes it

What cannot be logged is rolled back in the engine, or was not done. Contract: that of ``backends.base``, and: after a crash the
database holds every transaction whose call has returned, and at most one whose call has not.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from everview.backends.base import AlteredTable, Change
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.interruptions import UNINTERRUPTED
from everview.catalog import Definition, TableDefinition, ViewDefinition
from everview.errors import StorageFailed
from everview.folder_lock import lock_folder
from everview.session.durable.checkpointing import Checkpointing, Snapshot
from everview.session.durable.engine_reads import EngineReads
from everview.session.durable.logged_alterations import altered_to_log
from everview.session.durable.logged_changes import changes_to_log
from everview.session.durable.passed_rows import PassedRows, columns_read
from everview.session.durable.recovery import RecoveredEngine
from everview.storage.change_log import ChangeLog
from everview.storage.definitions import definition_to_json
from everview.storage.disk import Disk, told_as_storage_failure

CHECKPOINT_BYTES: Final = 64 * 2**20
"""How long the log may become before a checkpoint, and as long as the last checkpoint: so all writing stays linear."""


class DurableBackend(EngineReads):
    """Implements ``backends.base.Backend`` on a folder that this process has to itself.

    Args:
        path: The folder; made if it is not there.
        make_engine: Makes an empty engine.
        durability: When a transaction is on disk; see ``storage.change_log``.
        checkpoint_bytes: How long the log may become before a checkpoint.
        memory_limit: How many bytes the engine's state may take. What is there already is opened in any case.
        disk: What writes and syncs files.

    Raises:
        DatabaseLocked: the folder is open already, here or in another process.
        CorruptDatabase: its files are not what was written.
        StorageFailed: it cannot be written to.
    """

    def __init__(
        self,
        path: Path,
        make_engine: Callable[[], EmbeddedBackend],
        *,
        durability: str = "commit",
        checkpoint_bytes: int = CHECKPOINT_BYTES,
        memory_limit: int | None = None,
        disk: Disk | None = None,
    ) -> None:
        self._folder = path
        self._disk = disk or Disk()
        self._disk.make_folder(path)
        with told_as_storage_failure("locking", path):
            self._lock = lock_folder(path, instead="read along with connect(path, read_only=True)")
        try:
            self._log = ChangeLog(path, durability=durability, disk=self._disk)
            try:
                super().__init__(RecoveredEngine(path, self._log, make_engine))
                self._recovered.open()
            except BaseException:
                self._log.close()
                raise
        except BaseException:
            self._lock.close()
            raise
        self._engine = self._recovered.engine
        self._engine.journal = self._record
        if memory_limit is not None:
            self._engine.limit_memory(memory_limit)
        self._checkpointing = Checkpointing(path, self._log, self._disk)
        self._checkpoint_bytes = checkpoint_bytes
        self._lost: StorageFailed | None = None
        """Why the engine no longer is what is on disk."""
        self._gathered: list[dict[str, Any]] | None = None
        """What is to be written as one record, while ``together`` is open."""

    # Definitions

    def create_table(self, table: TableDefinition) -> None:
        """Adds an empty table."""
        self._define(table, self._engine.create_table)

    def create_view(self, view: ViewDefinition) -> None:
        """Adds a view and takes in the rows that its inputs hold; a constraint belongs to its table, which is in the log."""
        if view.constraint is not None:
            self._engine.create_view(view)
        else:
            self._define(view, self._engine.create_view)

    def _define(self, definition: Any, create: Callable[[Any], None]) -> None:
        self._check_usable()
        create(definition)
        try:
            self._append({"kind": "define", "definition": definition_to_json(definition)})
        except BaseException:
            self._engine.drop(definition.name)
            raise
        self._recovered.catalog.add(definition)

    def drop(self, name: str) -> None:
        """Removes a table, view or assertion."""
        if name not in self._recovered.catalog:  # a constraint, of which the log has the table only
            self._engine.drop(name)
            return
        self._check_usable()
        definition: Definition = self._recovered.catalog.get(name)
        self._append({"kind": "drop", "name": definition.name})
        try:
            self._engine.drop(name)
        except BaseException:
            self._differs(f"'{definition.name}' is dropped on disk and not in memory")
            raise
        self._recovered.forget(definition)

    def alter_table(self, name: str, altered: AlteredTable) -> None:
        """Alters a table that nothing reads."""
        self._check_usable()
        before = self._recovered.catalog.table(name)
        self._engine.alter_table(name, altered)
        try:
            self._append({"kind": "alter", "name": before.name, **altered_to_log(altered)})
        except BaseException:
            self._engine.alter_table(altered.definition.name, altered.undone(before))
            raise
        self._recovered.catalog.exchange(before, altered.definition)

    # Transactions

    def apply(self, changes: Sequence[Change], *, source: tuple[str, int] | None = None) -> Mapping[str, pa.Table]:
        """Commits one transaction, on disk and in the engine, or leaves everything as it was."""
        self._check_usable()
        before = self._recovered.number
        try:
            deltas = self._engine.apply(changes, source=source)
        except BaseException:
            if self._recovered.number != before:
                self._differs(f"a transaction after version {self._engine.version} is on disk and not in memory")
            raise
        self._checkpoint_if_due()
        return deltas

    def _record(self, changes: Sequence[Change], source: tuple[str, int] | None) -> datetime.datetime:
        """The engine's journal: what it is about to commit goes to disk."""
        at = datetime.datetime.now(datetime.UTC)
        said, segments = changes_to_log(changes)
        header = {
            "kind": "apply",
            "version": self._engine.version + 1,
            "at": at.isoformat(),
            "source": source,
            "changes": said,
        }
        assert self._gathered is None, "a transaction among definitions that belong together"
        self._append(header, segments)
        self._recovered.note_changes(changes)
        return at

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is defined and dropped inside is one record: a crash leaves all of it, or nothing.

        Whoever leaves with an error has undone what was done.
        """
        self._check_usable()
        self._gathered = []
        try:
            yield
        except BaseException:
            self._gathered = None
            raise
        gathered, self._gathered = self._gathered, None
        if not gathered:
            return
        try:
            self._append({"kind": "together", "records": gathered})
        except BaseException:
            self._differs("definitions were changed in memory and not on disk")
            raise

    def _append(self, header: dict[str, Any], segments: Sequence[bytes | memoryview] = ()) -> None:
        if self._gathered is not None:
            self._gathered.append(header)
            return
        number = self._log.append(header, segments, self._recovered.number)
        self._recovered.note(number, sum(len(s) for s in segments))

    def _check_usable(self) -> None:
        if self._lost is not None:
            raise self._lost

    def _differs(self, how: str) -> None:
        self._lost = StorageFailed(f"{how}; the database cannot be changed any more.", hint="open it again.")

    # Publications

    def note_publication(self, view: str, uri: str, has_options: bool) -> None:
        """Records that a view is published."""
        self._append({"kind": "publish", "view": view, "uri": uri, "has_options": has_options})
        self._recovered.publications[view, uri] = has_options

    def forget_publication(self, view: str, uri: str) -> None:
        """Records that a view is no longer published there."""
        if (view, uri) in self._recovered.publications:
            self._append({"kind": "unpublish", "view": view, "uri": uri})
            del self._recovered.publications[view, uri]

    @property
    def publications(self) -> tuple[tuple[str, str, bool], ...]:
        """Views, the places where they are published, and whether that took storage options."""
        return tuple((view, uri, options) for (view, uri), options in self._recovered.publications.items())

    # Checkpoints

    @UNINTERRUPTED
    def checkpoint(self) -> None:
        """Writes a checkpoint now, so that opening has no log to replay."""
        self._check_usable()
        self._checkpointing.wait()
        self._take_note()
        if not self._recovered.only_in_log and self._recovered.number > self._recovered.checkpoint_number:
            self._checkpointing.write(self._snapshot())
            self._take_note()

    def _checkpoint_if_due(self) -> None:
        if self._checkpointing.is_running:
            return
        self._take_note()
        if self._recovered.cost < max(self._checkpoint_bytes, self._recovered.checkpoint_length):
            return
        if not self._recovered.only_in_log:
            self._checkpointing.start(self._snapshot())
            self._recovered.cost = 0  # of what comes behind this one

    def _take_note(self) -> None:
        """Learns what a checkpoint in the background has come to; what has failed is tried again when the log has grown."""
        if self._checkpointing.done is not None:
            self._recovered.checkpoint_number = self._checkpointing.done.log_number
            self._recovered.checkpoint_length = self._checkpointing.done.length
            self._checkpointing.done = None
        failure, self._checkpointing.failure = self._checkpointing.failure, None
        if failure is not None:
            warnings.warn(
                f"no checkpoint could be written, and the log goes on: {failure}", RuntimeWarning, stacklevel=2
            )

    def _snapshot(self) -> Snapshot:
        tables = self._recovered.catalog.tables
        passing = [t for t in tables if not t.retain and self._engine.stored(t.name).has_received_rows]
        columns = columns_read(self._recovered.catalog, passing)
        passed = PassedRows(self._folder, passing, columns, self._recovered.number)
        return Snapshot(
            self._engine.version,
            self._recovered.number,
            self._recovered.definitions,
            tuple(partial(passed.content, t) if t in passing else self._engine.stored(t.name).whole() for t in tables),
            self._engine.batches,
            self.publications,
        )

    def close(self) -> None:
        """Releases the folder; everything committed is on disk."""
        try:
            self._checkpointing.wait()
            self._log.close()
        finally:
            self._lock.close()
            self._engine.close()
