"""The log of a database: one SQLite file in WAL mode, with the records since the last checkpoint and which checkpoint that is.

    durability   a transaction is on disk
    commit       before ``append`` returns: SQLite syncs the WAL
    batch        at most ``BATCH_SECONDS`` later: a thread syncs the WAL for all that were appended meanwhile
    none         when the operating system writes it

With each of them a process that is killed loses nothing that it has appended, and a power cut leaves a prefix of what was. One
connection writes, others read along. Contract: ``append`` has written a whole record, or raises and has written nothing.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from everview.errors import CorruptDatabase, DatabaseLocked, StorageFailed
from everview.storage.disk import Disk, storage_failed
from everview.storage.records import BrokenPiece, Bytes, LogPiece, LogRecord, pieces_of, records_from
from everview.storage.sqlite_errors import (
    broken_page,
    error_for,
    is_lasting,
    not_what_was_written,
    told_of,
    uri_of,
)
from everview.storage.wal_tail import changed_at

FILE: Final = "everview.sqlite"
FORMAT: Final = 2
"""1 had no checkpoints of what has passed through tables with ``retain=False``."""
DURABILITIES: Final = ("commit", "batch", "none")
BATCH_SECONDS: Final = 0.05
_FORGOTTEN_AT_ONCE: Final = 256
_FORGOTTEN_BYTES: Final = 2 * 2**20
"""Pieces, and bytes of them, that one SQLite transaction removes: commits wait for no more than that."""
_SETTINGS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA wal_autocheckpoint=8192",  # 32 MiB: what a commit then copies, and syncs, is a few tens of milliseconds
    "PRAGMA journal_size_limit=67108864",
    "PRAGMA trusted_schema=OFF",  # nothing that stands in the file is run
    "PRAGMA cell_size_check=ON",
)
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, header BLOB NOT NULL, body BLOB NOT NULL, "
    "checksum INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS checkpoint (number INTEGER PRIMARY KEY, manifest BLOB NOT NULL, checksum INTEGER NOT NULL)",
)


class ChangeLog:
    """The log in one folder, open for writing or for reading along.

    Args:
        folder: That of the database; it exists.
        durability: One of ``DURABILITIES``.
        read_only: Another process, or this one, may be writing.
        disk: What syncs files.

    Raises:
        CorruptDatabase: the file is not what was written, or a newer version of everview wrote it.
        StorageFailed: it cannot be opened.
    """

    def __init__(
        self, folder: Path, *, durability: str = "commit", read_only: bool = False, disk: Disk | None = None
    ) -> None:
        self.path = folder / FILE
        self._wal = folder / f"{FILE}-wal"
        self._disk = disk or Disk()
        self._guard = threading.RLock()
        self._process = os.getpid()
        self._durability = durability
        self._lost: StorageFailed | None = None
        """Why nothing can be appended any more."""
        self._flusher: _Flusher | None = None
        if not read_only:
            self._check_not_half_there(folder)
        with told_of(self.path, "opening"):
            place = uri_of(self.path, "ro" if read_only else "rwc")
            self._connection = sqlite3.connect(
                place, uri=True, isolation_level=None, check_same_thread=False, timeout=30.0, cached_statements=32
            )
        try:
            self._open(folder, read_only=read_only)
        except BaseException:
            self._connection.close()
            raise

    def _check_not_half_there(self, folder: Path) -> None:
        if not self.path.exists() and ((folder / "checkpoints").exists() or self._wal.exists()):
            raise CorruptDatabase(f"'{self.path}' is missing, and other files of the database are there.")

    def _open(self, folder: Path, *, read_only: bool) -> None:
        with told_of(self.path, "opening"):
            if read_only:
                self._execute("PRAGMA trusted_schema=OFF")
                self._execute("PRAGMA query_only=ON")
                self._check_format()
                return
            is_new = not self.path.exists() or self.path.stat().st_size == 0
            for setting in _SETTINGS:
                self._execute(setting)
            self._execute(f"PRAGMA synchronous={'FULL' if self._durability == 'commit' else 'NORMAL'}")
            frames = self._execute("PRAGMA wal_checkpoint(PASSIVE)")[0][1]
            if not is_new:
                self._check_format()
                self._check_whole(frames)
            self._begin()
            for table in _TABLES:
                self._execute(table)
            for name, value in (("format", str(FORMAT)), ("durability", self._durability)):
                self._execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))
            self._execute("COMMIT")
        if is_new:
            self._disk.sync_folder(folder)
            self._disk.sync_folder(folder.parent)
        if self._durability == "batch":
            self._flusher = _Flusher(self._sync_wal)

    def _check_format(self) -> None:
        rows = self._about("format")
        if rows is None:
            return  # made, and nothing written: its maker was killed
        if not rows.isdigit():
            raise CorruptDatabase(f"'{self.path}' is not what was written: its format is {rows!r}.")
        if int(rows) > FORMAT:
            raise CorruptDatabase(
                f"'{self.path}' has format {rows}, and this version of everview reads formats up to {FORMAT}.",
                hint="open it with the version of everview that wrote it, or a newer one.",
            )

    def _about(self, name: str) -> str | None:
        if not self._execute("SELECT 1 FROM sqlite_schema WHERE name = 'about'"):
            return None
        rows = self._execute("SELECT value FROM about WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def _check_whole(self, frames: int) -> None:
        """Raises unless the pages are a sound tree, and the WAL ends where a crash may end it."""
        broken = broken_page(self._connection)
        if broken is not None:
            raise not_what_was_written(self.path, *broken)
        if self._about("durability") == "commit":
            at = changed_at(self._wal, max(frames, 0))
            if at is not None:
                raise not_what_was_written(self._wal, "committed transactions stand behind bytes that changed", at)

    # Writing

    def append(self, header: dict[str, Any], body: Sequence[Bytes], after: int) -> int:
        """Writes a record behind the piece with the number ``after``, and returns the number of its last piece.

        Raises:
            StorageFailed: it could not be written, and is not there; or an earlier failure means that the database must be
                opened again.
        """
        if self._lost is not None:
            raise self._lost
        pieces = pieces_of(header, body, after + 1)
        with self._guard:
            try:
                self._begin()
                for p in pieces:
                    row = (p.number, p.header.encode(), p.body, p.checksum)
                    self._execute("INSERT INTO log VALUES (?, ?, ?, ?)", row)
                self._execute("COMMIT")
            except sqlite3.Error as error:
                raise self._failed("writing", error) from error
            except BaseException:
                self._roll_back()
                raise
        if self._flusher is not None:
            self._flusher.wake()
        return pieces[-1].number

    def _failed(self, what: str, error: sqlite3.Error) -> Exception:
        self._roll_back()
        told = error_for(self.path, what, error)
        if is_lasting(error):
            self._lost = StorageFailed(
                f"{told.message} The database cannot be changed any more.", hint="open it again with connect()."
            )
            return self._lost
        return told

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._execute("ROLLBACK")
        except sqlite3.Error as error:
            self._lost = StorageFailed(
                f"'{self.path}' could not be rolled back: {error}. The database cannot be changed any more.",
                hint="open it again with connect().",
            )

    def _sync_wal(self) -> None:
        """Syncs what was appended; a failure ends writing."""
        try:
            handle = os.open(self._wal, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except FileNotFoundError:
            pass  # all of it is in the main file, which SQLite has synced
        except OSError as error:
            self._lost = storage_failed("syncing", self._wal, error)

    # Checkpoints

    def set_checkpoint(self, number: int, manifest: dict[str, Any]) -> None:
        """Puts a checkpoint in force, instead of the one before."""
        text = json.dumps(manifest, separators=(",", ":")).encode()
        with self._guard:
            try:
                self._begin()
                self._execute("DELETE FROM checkpoint")
                self._execute("INSERT INTO checkpoint VALUES (?, ?, ?)", (number, text, zlib.crc32(text)))
                self._execute("COMMIT")
            except sqlite3.Error as error:
                raise self._failed("writing", error) from error

    def forget_up_to(self, number: int) -> None:
        """Removes the pieces up to a number, which the checkpoint in force has in it, a few at a time."""
        while True:
            with self._guard:
                try:
                    found = self._execute(
                        "SELECT number, length(body) FROM log WHERE number <= ? ORDER BY number LIMIT ?",
                        (number, _FORGOTTEN_AT_ONCE),
                    )
                    if not found:
                        return
                    sizes = accumulate(length for _, length in found)
                    last = next(
                        (n for (n, _), size in zip(found, sizes, strict=True) if size > _FORGOTTEN_BYTES), found[-1][0]
                    )
                    self._begin()
                    self._execute("DELETE FROM log WHERE number <= ?", (last,))
                    self._execute("COMMIT")
                except sqlite3.Error as error:
                    raise self._failed("writing", error) from error
            time.sleep(0)  # those who wait for the guard come first

    # Reading

    def checkpoint(self) -> tuple[int, dict[str, Any]] | None:
        """The checkpoint in force: its number, and what was said of it."""
        with self._guard, told_of(self.path, "reading"):
            if not self._execute("SELECT 1 FROM sqlite_schema WHERE name = 'checkpoint'"):
                return None
            rows = self._execute("SELECT number, manifest, checksum FROM checkpoint")
        if not rows:
            return None
        number, text, checksum = rows[0]
        if not isinstance(text, bytes) or zlib.crc32(text) != checksum or len(rows) > 1:
            near = text[:256] if isinstance(text, bytes) else b""
            raise self._broken(BrokenPiece(number, "its checksum is another", near), "the manifest of checkpoint")
        return number, json.loads(text)

    def records(self, after: int) -> Iterator[LogRecord]:
        """The records behind the piece with the number ``after``, as they were when this was called.

        Raises:
            CorruptDatabase: one is missing or not what was written.
        """
        try:
            yield from records_from(self._pieces(after), after)
        except BrokenPiece as broken:
            raise self._broken(broken, "piece") from broken

    def _pieces(self, after: int) -> Iterator[LogPiece]:
        with told_of(self.path, "reading"):
            if not self._execute("SELECT 1 FROM sqlite_schema WHERE name = 'log'"):
                return
            rows = self._connection.execute(
                "SELECT number, header, body, checksum FROM log WHERE number > ? ORDER BY number", (after,)
            )
            for number, header, body, checksum in rows:
                if not (isinstance(header, bytes) and isinstance(body, bytes) and isinstance(checksum, int)):
                    raise BrokenPiece(number, "it has other types")
                try:
                    text = header.decode()
                except UnicodeDecodeError:
                    raise BrokenPiece(number, "its header is no text", header[:256]) from None
                yield LogPiece(number, text, body, checksum)

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        with self._guard, told_of(self.path, "reading"):
            return int(self._execute("PRAGMA data_version")[0][0])

    def bytes_behind(self, after: int) -> int:
        """Bytes of the pieces behind a number."""
        with self._guard, told_of(self.path, "reading"):
            if not self._execute("SELECT 1 FROM sqlite_schema WHERE name = 'log'"):
                return 0
            return int(self._execute("SELECT coalesce(sum(length(body)), 0) FROM log WHERE number > ?", (after,))[0][0])

    def _broken(self, broken: BrokenPiece, what: str) -> CorruptDatabase:
        """The error for a user: with the file, and the offset at which the broken bytes stand."""
        for path in (self._wal, self.path):
            at = _offset_in(path, broken.near)
            if at is not None:
                return not_what_was_written(path, f"{what} {broken.number}: {broken}", at)
        return not_what_was_written(self.path, f"{what} {broken.number}: {broken}", None)

    def close(self) -> None:
        """Lets go of the file; what was appended is on disk. In a forked process SQLite must not be spoken to."""
        if self._process != os.getpid():
            return
        if self._flusher is not None:
            self._flusher.stop()
            self._flusher = None
        with self._guard, told_of(self.path, "closing"):
            self._connection.close()

    def _begin(self) -> None:
        if self._process != os.getpid():  # it has inherited the lock, the connection and a copy of the engine
            raise DatabaseLocked(
                f"the database '{self.path.parent}' was opened by process {self._process}, "
                f"from which process {os.getpid()} was forked.",
                hint="change it in that process; others read along with connect(path, read_only=True).",
            )
        self._execute("BEGIN IMMEDIATE")

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Runs a statement; the one place through which all go that change something."""
        return self._connection.execute(statement, values).fetchall()


class _Flusher:
    """A thread that syncs, some time after it was woken, once for all who woke it."""

    def __init__(self, sync: Any) -> None:
        self._sync = sync
        self._asked = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="everview sync", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Something was appended."""
        self._asked.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._asked.wait()
            self._ended.wait(BATCH_SECONDS)
            self._asked.clear()
            self._sync()

    def stop(self) -> None:
        """Syncs what is left, and ends."""
        self._ended.set()
        self._asked.set()
        self._thread.join()


def _offset_in(path: Path, near: bytes) -> int | None:
    """Where bytes stand in a file; the last place of several, which is the newest."""
    if not near or not path.exists():
        return None
    data = path.read_bytes()
    found = data.rfind(near[:64])
    return found if found >= 0 else None
