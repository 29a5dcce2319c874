"""What SQLite's errors mean to the user of a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from everview.errors import CorruptDatabase, EverviewError, StorageFailed

_OF_THE_DISK: Final = (
    "SQLITE_IOERR",
    "SQLITE_CANTOPEN",
    "SQLITE_READONLY",
    "SQLITE_PERM",
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
)


@contextmanager
def told_of(path: Path, what: str) -> Iterator[None]:
    """Turns SQLite's errors into ours; ``what`` says what was being done.

    Raises:
        StorageFailed: the disk is full, or did not do what it was asked.
        CorruptDatabase: the file is not what was written.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise error_for(path, what, error) from error
    except (
        UnicodeDecodeError
    ) as error:  # SQLite tells what it cannot read, and Python's module cannot read what it tells
        raise CorruptDatabase(f"'{path}' is not what was written: {error.object!r} is no text.") from error


def error_for(path: Path, what: str, error: sqlite3.Error) -> EverviewError:
    """Our error for SQLite's."""
    name: str = getattr(error, "sqlite_errorname", None) or ""
    if name == "SQLITE_FULL":
        return StorageFailed(f"{what} '{path}' failed: the disk is full.", hint="make room on the disk.")
    if name.startswith(_OF_THE_DISK):
        return StorageFailed(f"{what} '{path}' failed: {error} ({name}).")
    return CorruptDatabase(f"'{path}' is not what was written: {error}{f' ({name})' if name else ''}.")


def is_lasting(error: BaseException) -> bool:
    """Whether SQLite cannot say what is on disk now: after a failed sync nobody knows what a later one writes."""
    return isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorname", None) or "").startswith(
        "SQLITE_IOERR"
    )
