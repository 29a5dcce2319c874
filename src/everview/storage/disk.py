"""The few things that are done to files: write, sync, rename, remove. Tests put one in its place that fails.

Contract: an operation that the machine refuses raises ``StorageFailed``, with the file and the reason.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from everview.errors import StorageFailed

Fault = Callable[[str, Path], None]


@contextmanager
def told_as_storage_failure(what: str, path: Path) -> Iterator[None]:
    """Turns what the machine refuses into ``StorageFailed``."""
    try:
        yield
    except OSError as error:
        raise storage_failed(what, path, error) from error


def storage_failed(what: str, path: Path, error: OSError) -> StorageFailed:
    """The error for a user."""
    hint = "make room on the disk." if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
    return StorageFailed(f"{what} '{path}' failed: {error.strerror or error}.", hint=hint)


class Disk:
    """Files of this machine.

    Args:
        fault: Called with the name of each step and its file before it is done; tests make it raise ``OSError``.
    """

    def __init__(self, fault: Fault = lambda _step, _path: None) -> None:
        self._fault = fault

    def make_folder(self, path: Path) -> None:
        """Makes a folder, and those above it."""
        if path.is_file():
            raise StorageFailed(f"'{path}' is a file, and a database is a folder.", hint="give another path.")
        with told_as_storage_failure("making the folder", path):
            path.mkdir(parents=True, exist_ok=True)

    def write(self, path: Path, fill: Callable[[IO[Any]], None]) -> None:
        """Writes a file beside its place, syncs it, and renames it there: it is there whole or not at all."""
        scratch = path.with_name(path.name + ".tmp")
        with told_as_storage_failure("writing", path):
            with scratch.open("wb") as file:
                self._fault("write", path)
                fill(file)
                file.flush()
                self._fault("fsync", path)
                os.fsync(file.fileno())
            self._fault("rename", path)
            os.rename(scratch, path)

    def sync_folder(self, path: Path) -> None:
        """Makes the names in a folder durable."""
        with told_as_storage_failure("syncing the folder", path):
            self._fault("fsync", path)
            folder = os.open(path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def remove_folders(self, paths: Iterable[Path]) -> None:
        """Removes folders that nothing refers to any more; what cannot be removed now is tried again with the next ones."""
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)
