"""Commits on stores without rename: a record appears whole under its name, or not at all, and never in place of another."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.backends.spark import commit_log


@pytest.fixture(params=[True, False], ids=["links", "no links"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing can be renamed, and perhaps nothing linked, as in an object store."""
    link = os.link

    def refuse(*_given: Any, **_named: Any) -> None:
        raise OSError(errno.ENOSYS, "no rename here")

    def linked(source: Any, target: Any, **named: Any) -> None:
        if not request.param:
            raise OSError(errno.EPERM, "no links here")
        link(source, target, **named)

    for name in ("rename", "replace", "renames"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(os, "link", linked)
    return tmp_path / "db"


def test_a_database_lives_without_rename(store: Path) -> None:
    """Tables, transactions, compaction, vacuum and reopening need none."""
    with ev.connect(store, backend="spark") as db:
        table = db.create_table("t", "k int, x int", primary_key="k")
        for k in range(12):
            table.insert([(k, k)])
        table.upsert([(3, 30)])
        db.vacuum()
        table.delete_keys([5])
    assert not list(store.rglob("*.tmp"))
    with ev.connect(store, backend="spark") as db:
        assert sorted(db.table("t").rows()) == [(k, 30 if k == 3 else k) for k in range(12) if k != 5]
        db.table("t").insert([(99, 1)])


def test_a_commit_of_another_process_is_not_overwritten(store: Path) -> None:
    """Where the lock does not hold others off, the second commit of a number fails, and the first one stands."""
    with ev.connect(store, backend="spark") as db:
        table = db.create_table("t", "k int")
        table.insert([(1,)])
        (last,) = sorted((store / "_commits").glob("*.json"))[-1:]
        other = last.with_name(f"{int(last.stem) + 1:020d}.json")
        other.write_text("theirs")
        for attempt in (lambda: table.insert([(2,)]), lambda: db.create_table("u", "k int")):
            with pytest.raises(ev.DatabaseLocked, match=r"commit \d+ of the database .* was made by another process"):
                attempt()
        assert other.read_text() == "theirs"
        assert (table.rows(), db.version) == ([(1,)], 1)
        other.unlink()
        db.create_table("u", "k int").insert([(2,)])
        assert db.table("u").rows() == [(2,)]


def test_a_catalog_without_its_record_is_written_anew(store: Path) -> None:
    """What a commit left that failed before its record is in nobody's way."""
    store.mkdir()
    log = commit_log.CommitLog(store)
    log.write_catalog(0, ["lost"])
    (store / "_commits" / "7-x.tmp").write_text("half")
    log.write_catalog(0, ["kept"])
    assert log.read_catalog(0) == ["kept"]
    log.close()
    commit_log.CommitLog(store).close()
    assert not list(store.rglob("*.tmp"))
