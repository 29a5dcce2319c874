from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import everview as ev


def test_the_default_backend_is_embedded() -> None:
    """connect() opens the engine that maintains views incrementally, and says so."""
    with ev.connect() as db:
        assert "embedded" in repr(db)


@pytest.mark.parametrize("backend", ["embedded", "spark"])
def test_a_database_on_disk_starts_no_spark_by_itself(backend: str, tmp_path: Path) -> None:
    """Opening, filling and reading a small database on disk needs no JVM; opening it again finds everything."""
    with ev.connect(tmp_path, backend=backend) as db:
        db.create_table("t", "a int").insert([(1,), (2,)])
    with ev.connect(tmp_path, backend=backend) as db:
        assert sorted(db.table("t").rows()) == [(1,), (2,)]
        assert db.version == 1


@pytest.mark.parametrize(
    "place", ["s3://bucket/x", Path("s3://bucket/x"), "hdfs:///x", "S3A:/bucket/x", "file://host/x"]
)
def test_a_uri_that_cannot_be_opened(
    backend: str, place: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused and names the place, and no local directory is made in its stead."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ev.UnsupportedOperation) as caught:
        ev.connect(place, backend=backend)
    assert f"'{place}'" in str(caught.value)
    if backend != "reference":
        scheme = str(place).partition(":")[0].lower()
        assert f"is a place of scheme '{scheme}'. Hint: give a path" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", ["embedded", "spark"])
@pytest.mark.parametrize("place", ["", "a\0b"])
def test_what_is_no_path(backend: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty text, of a variable that is not set perhaps, does not make a database of the working directory."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ev.UnsupportedOperation, match="is no path"):
        ev.connect(place, backend=backend)
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``~`` is what it is in a shell, and no directory of that name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with ev.connect("~/shop"):
        assert [p.name for p in tmp_path.iterdir()] == ["shop"]


@pytest.mark.parametrize("backend", ["embedded", "spark"])
def test_a_database_at_a_file_uri(backend: str, tmp_path: Path) -> None:
    """It is the directory that the URI says."""
    path = tmp_path / "my shop"
    with ev.connect(path.as_uri(), backend=backend) as db:
        db.create_table("t", "a int")
    with ev.connect(path, backend=backend) as db:
        assert list(db.tables) == ["t"]


@pytest.mark.parametrize("backend", ["embedded", "spark"])
def test_a_second_opening_says_who_has_the_database(backend: str, tmp_path: Path) -> None:
    """This process, or which other; afterwards it can be opened."""
    code = """import sys, everview as ev
try: ev.connect(sys.argv[1], backend=sys.argv[2])
except ev.DatabaseLocked as e: print(e)
"""
    with ev.connect(tmp_path, backend=backend):
        with pytest.raises(ev.DatabaseLocked) as caught:
            ev.connect(tmp_path, backend=backend)
        elsewhere = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), backend], capture_output=True, text=True, check=True
        )
    assert str(caught.value) == (
        f"the database '{tmp_path}' is already open in this process. "
        "Hint: use the Database that is open, or close it first."
    )
    assert elsewhere.stdout.startswith(f"the database '{tmp_path}' is open in process {os.getpid()} on ")
    ev.connect(tmp_path, backend=backend).close()

    other = {"embedded": "spark", "spark": "embedded"}[backend]
    with pytest.raises(ev.UnsupportedOperation, match=f"is one of the {backend} backend"):
        ev.connect(tmp_path, backend=other)
    assert ev.backend_of(tmp_path) == backend


def test_unknown_backend() -> None:
    """A misspelt backend is found."""
    with pytest.raises(ev.UnsupportedOperation) as caught:
        ev.connect(backend="referense")
    assert str(caught.value) == "there is no backend 'referense'. Hint: did you mean 'reference'?"


def test_unknown_option(backend: str) -> None:
    """An option that a backend does not know is an error, not ignored."""
    with pytest.raises(ev.UnsupportedOperation) as caught:
        ev.connect(backend=backend, histroy=3)
    assert str(caught.value) == f"the {backend} backend has no option 'histroy'. Hint: did you mean 'history'?"


def test_history_must_be_a_number_of_versions(backend: str) -> None:
    """A negative history makes no sense."""
    with pytest.raises(ev.UnsupportedOperation) as caught:
        ev.connect(backend=backend, history=-1)
    assert str(caught.value) == "history=-1 is not a number of versions to keep."


def test_the_reference_backend_has_no_path(tmp_path: Path) -> None:
    """Nobody believes that data was kept when it was not."""
    with pytest.raises(ev.UnsupportedOperation) as caught:
        ev.connect(tmp_path, backend="reference")
    expected = f"the reference backend lives in memory and cannot open '{tmp_path}'. Hint: leave the path out."
    assert str(caught.value) == expected


def test_a_closed_database_says_so(backend: str) -> None:
    """Every call after close is a clear error; closing again is none."""
    with ev.connect(backend=backend) as database:
        table = database.create_table("t", "a int")
    calls = [
        lambda: database.tables,
        lambda: database.version,
        lambda: table.insert([(1,)]),
        table.rows,
        lambda: database.sql("SELECT 1"),
        lambda: database.create_table("u", "a int"),
        database.transaction,
        database.verify,
        database.__enter__,
    ]
    for call in calls:
        with pytest.raises(ev.UnsupportedOperation) as caught:
            call()
        assert str(caught.value) == "the database is closed. Hint: open it again with connect()."
    database.close()
    assert repr(database) == f"<Database {backend}, closed>"


def test_checkpoints_of_what_lives_in_memory(plain_db: ev.Database, backend: str) -> None:
    """Where nothing is kept there is nothing to checkpoint; on Spark every transaction is on disk already."""
    if backend == "spark":
        plain_db.checkpoint()
        return
    with pytest.raises(ev.UnsupportedOperation, match="has no checkpoint: this database lives in memory"):
        plain_db.checkpoint()


def test_every_error_has_its_own_code() -> None:
    """Programs tell errors apart by their codes."""
    errors = [
        e for e in (getattr(ev, name) for name in ev.__all__) if isinstance(e, type) and issubclass(e, ev.EverviewError)
    ]
    assert len({e.code for e in errors}) == len(errors)
