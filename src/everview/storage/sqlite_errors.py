"""What SQLite's errors mean to the user of a database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
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
    problem, at = f"{error}{f' ({name})' if name else ''}", 0 if name == "SQLITE_NOTADB" else None
    if name.startswith("SQLITE_CORRUPT"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(uri_of(path, "ro"), uri=True)) as connection:
            problem, at = broken_page(connection) or (problem, at)
    return not_what_was_written(path, problem, at)


def broken_page(connection: sqlite3.Connection) -> tuple[str, int | None] | None:
    """What SQLite finds wrong with its pages, in a line, and the offset of the page; None if they are a sound tree."""
    problem = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if problem == "ok":
        return None
    page = re.search(r"\bpage (\d+)", problem, re.IGNORECASE)
    size = int(connection.execute("PRAGMA page_size").fetchone()[0])
    return problem.rpartition("\n")[2], None if page is None else (int(page[1]) - 1) * size


def not_what_was_written(path: Path, problem: str, at: int | None) -> CorruptDatabase:
    """The error for a file that has been changed, at an offset if that is known."""
    where = "" if at is None else f", at offset {at}"
    return CorruptDatabase(
        f"'{path}' is not what was written{where}: {problem}.", hint="restore the database from a backup."
    )


def uri_of(path: Path, mode: str) -> str:
    """A file as a URI of SQLite's."""
    text = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{text}?mode={mode}"


def is_lasting(error: BaseException) -> bool:
    """Whether SQLite cannot say what is on disk now: after a failed sync nobody knows what a later one writes."""
    return isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorname", None) or "").startswith(
        "SQLITE_IOERR"
    )
