"""Writing checkpoints: the tables' files first, then one SQLite transaction that puts them in force, then the old ones go.

A snapshot is taken between two transactions and costs next to nothing, because tables keep immutable batches; its files are
written by a thread while transactions go on. What tables have not kept is summed up from the log by that thread
(``passed_rows``). Contract: at every moment the checkpoint in force is whole, and the log has what comes behind it; a
checkpoint that fails changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from everview.backends.embedded.tables.stored_table import TableContent
from everview.catalog import Definition
from everview.errors import EverviewError, StorageFailed
from everview.session.durable.recovery import CHECKPOINTS, checkpoint_folder
from everview.storage.change_log import ChangeLog
from everview.storage.checkpoint_files import write_rows
from everview.storage.disk import Disk
from everview.storage.manifest import Manifest, TableFile, manifest_to_json


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A database at one version, up to one piece of its log."""

    version: int
    log_number: int
    definitions: tuple[Definition, ...]
    contents: tuple[Callable[[], TableContent], ...]
    sources: Mapping[str, int]
    publications: tuple[tuple[str, str, bool], ...]


class Checkpointing:
    """Writes checkpoints into one folder, one at a time."""

    def __init__(self, folder: Path, log: ChangeLog, disk: Disk) -> None:
        self._folder = folder / CHECKPOINTS
        self._log = log
        self._disk = disk
        self._thread: threading.Thread | None = None
        self.failure: EverviewError | None = None
        """Why the last one in the background failed; it is reset by whoever has told the user."""
        self.done: Manifest | None = None
        """The last that was made."""

    @property
    def is_running(self) -> bool:
        """Whether one is being written in the background."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, snapshot: Snapshot) -> None:
        """Writes a checkpoint in the background."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(snapshot,), name="everview checkpoint", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until none is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, snapshot: Snapshot) -> None:
        try:
            self.write(snapshot)
        except EverviewError as error:
            self.failure = error
        except MemoryError:
            self.failure = StorageFailed("there was no memory for a checkpoint.")

    def write(self, snapshot: Snapshot) -> None:
        """Writes a checkpoint, and forgets what it makes superfluous.

        Raises:
            StorageFailed: the disk did not take it; the checkpoint before stays in force.
        """
        bare = Manifest(
            snapshot.version, snapshot.log_number, snapshot.definitions, (), snapshot.sources, snapshot.publications
        )
        own = self._folder / checkpoint_folder(bare)
        self._disk.make_folder(own)
        files = []
        for i, read in enumerate(snapshot.contents):
            content = read()
            name = f"{i:06d}.arrow"  # not the table's name, which is the user's
            written = write_rows(self._disk, own / name, content.rows, content.weights)
            files.append(TableFile(content.table, name, content.rows.num_rows, content.received, written))
        for folder in (own, self._folder, self._folder.parent):
            self._disk.sync_folder(folder)
        manifest = Manifest(
            bare.version, bare.log_number, bare.definitions, tuple(files), bare.sources, bare.publications
        )
        self._log.set_checkpoint(manifest.log_number, manifest_to_json(manifest))
        self.done = manifest
        self._log.forget_up_to(manifest.log_number)
        self._disk.remove_folders(f for f in self._folder.iterdir() if f.name != own.name)
