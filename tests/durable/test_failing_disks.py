"""Disks that refuse: the call raises ``StorageFailed``, nothing has changed in memory or on disk, and the rest goes on."""

from __future__ import annotations

import errno
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.backends.embedded.backend import EmbeddedBackend
from everview.session.database import Database
from everview.session.durable.durable_backend import DurableBackend
from everview.storage.change_log import ChangeLog
from everview.storage.disk import Disk
from tests.durable.shop import check, contents, make_shop, prepared, transaction

ROOT = Path(__file__).resolve().parents[2]


def log_of(db: ev.Database) -> ChangeLog:
    """The log of a database."""
    log: ChangeLog = db._core.backend._log  # type: ignore[attr-defined]
    return log


@contextmanager
def failing(log: ChangeLog, statement: str, code: int, name: str) -> Iterator[None]:
    """A log in which SQLite answers a statement with an error."""
    execute = log._execute

    def fail(text: str, values: tuple[Any, ...] = ()) -> list[Any]:
        if text.startswith(statement):
            error = sqlite3.OperationalError("injected")
            error.sqlite_errorcode, error.sqlite_errorname = code, name
            raise error
        return execute(text, values)

    log._execute = fail  # type: ignore[method-assign]
    try:
        yield
    finally:
        log._execute = execute  # type: ignore[method-assign]


def changes_of(db: ev.Database) -> list[Callable[[], object]]:
    """Calls that write to the log."""
    return [
        lambda: db.apply(transaction(3)),
        lambda: db.create_table("more", "a INT"),
        lambda: db.drop("by_kind"),
    ]


@pytest.mark.parametrize("statement", ["BEGIN", "INSERT", "COMMIT"])
def test_a_full_disk(folder: Path, statement: str) -> None:
    """Each call that needs room raises and has done nothing; with room, the same calls go through."""
    prepared(folder, 3)
    with ev.connect(folder) as db:
        before, names = contents(db), list(db.tables)
        with failing(log_of(db), statement, sqlite3.SQLITE_FULL, "SQLITE_FULL"):
            for change in changes_of(db):
                with pytest.raises(ev.StorageFailed, match="full"):
                    change()
        assert (contents(db), list(db.tables)) == (before, names)
        check(db)
        for change in changes_of(db):
            change()
        after = contents(db)
    with ev.connect(folder) as db:
        assert contents(db) == after


@pytest.mark.parametrize("name", ["SQLITE_IOERR_FSYNC", "SQLITE_IOERR_WRITE"])
def test_a_broken_disk(folder: Path, name: str) -> None:
    """After an I/O error nothing can be changed until the database is opened again, and reading goes on."""
    prepared(folder, 3)
    with ev.connect(folder) as db:
        before = contents(db)
        with failing(log_of(db), "COMMIT", getattr(sqlite3, name), name), pytest.raises(ev.StorageFailed, match=name):
            db.apply(transaction(3))
        for change in changes_of(db):
            with pytest.raises(ev.StorageFailed, match="open it again"):
                change()
        assert contents(db) == before
    with ev.connect(folder) as db:
        assert contents(db) == before
        db.apply(transaction(3))
        check(db)


@pytest.mark.parametrize("step", ["write", "fsync", "rename"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_checkpoint_that_fails(folder: Path, step: str, code: int) -> None:
    """It raises, the one before stays in force, transactions go on, and the next one succeeds."""
    prepared(folder, 3)
    broken = ""

    def fault(reached: str, _path: Path) -> None:
        if reached == broken:
            raise OSError(code, "injected")

    with Database(DurableBackend(folder, EmbeddedBackend, disk=Disk(fault))) as db:
        broken = step
        with pytest.raises(ev.StorageFailed, match="injected"):
            db.checkpoint()
        db.apply(transaction(3))
        broken = ""
        db.checkpoint()
        db.apply(transaction(4))
        after = contents(db)
    with ev.connect(folder) as db:
        assert contents(db) == after


def test_a_checkpoint_that_fails_in_the_background_is_told(folder: Path) -> None:
    """Transactions succeed, and a warning says that the log goes on growing."""
    prepared(folder, 3)

    def fault(reached: str, _path: Path) -> None:
        if reached == "rename":
            raise OSError(errno.ENOSPC, "injected")

    engine = DurableBackend(folder, EmbeddedBackend, disk=Disk(fault), checkpoint_bytes=10_000)
    with Database(engine) as db, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number in range(3, 12):
            db.apply(transaction(number))
            engine._checkpointing.wait()
        assert any("no checkpoint could be written" in str(w.message) for w in told)
        after = contents(db)
    with ev.connect(folder) as db:
        assert contents(db) == after


LIMITED = """
import resource, signal, sys
from pathlib import Path
import everview as ev
from tests.durable.shop import check, contents, transaction
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with ev.connect(sys.argv[1], durability="none") as db:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    number, failed = db.version - 1, 0
    while failed < 3:
        before = contents(db)
        try:
            db.apply(transaction(number))
            number += 1
        except ev.StorageFailed:
            failed += 1
            assert contents(db) == before
    check(db)
    print(number)
    sys.stdout.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def test_files_that_may_not_grow(folder: Path) -> None:
    """The operating system itself refuses to write: what was acknowledged before is there, and nothing else."""
    prepared(folder, 3)
    limit = 300_000
    command = [sys.executable, "-c", LIMITED, str(folder), str(limit)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr[-3000:]
    with ev.connect(folder) as db:
        assert db.version - 1 == int(done.stdout)
        check(db)


def test_a_folder_that_cannot_be_made(folder: Path) -> None:
    """The error names it."""
    (folder / "file").write_text("x")
    with pytest.raises(ev.StorageFailed, match="file"):
        ev.connect(folder / "file" / "shop")


def test_a_rejected_definition_is_not_logged(folder: Path) -> None:
    """A view that cannot be made leaves nothing behind, on disk either."""
    with ev.connect(folder) as db:
        make_shop(db)
        with failing(log_of(db), "COMMIT", sqlite3.SQLITE_FULL, "SQLITE_FULL"), pytest.raises(ev.StorageFailed):
            db.create_table("t", "a INT")
        db.create_table("t", "b INT")
    with ev.connect(folder) as db:
        assert db.table("t").columns == ("b",)
