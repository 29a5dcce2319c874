"""Files that are not what was written: torn ends are recovered, everything else is a documented error with file and offset."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

import everview as ev
from everview.relational import serialize
from everview.storage import change_log
from tests.durable.shop import check, contents, make_shop, prepared, transaction

HOW_MANY = 40
"""Edits of each kind in a quick run."""


@pytest.fixture
def original(folder: Path) -> Path:
    """A database with a checkpoint and a log behind it, closed."""
    path = folder / "original"
    with ev.connect(path) as db:
        make_shop(db)
        for number in range(8):
            db.apply(transaction(number))
        db.checkpoint()
        for number in range(8, 12):
            db.apply(transaction(number))
    return path


@pytest.fixture
def crashed(folder: Path) -> Path:
    """A copy of a database made while it was open: its last transactions are in the WAL only."""
    path, copy = folder / "open", folder / "crashed"
    with ev.connect(path) as db:
        make_shop(db)
        for number in range(12):
            db.apply(transaction(number))
        shutil.copytree(path, copy)
        (copy / f"{change_log.FILE}-shm").unlink()
    return copy


def expected(count: int) -> dict[str, object]:
    """The contents after some transactions."""
    with ev.connect() as db:
        make_shop(db)
        for number in range(count):
            db.apply(transaction(number))
        return dict(contents(db))


def test_a_crash_is_recovered(crashed: Path) -> None:
    """What the WAL holds whole is there."""
    with ev.connect(crashed) as db:
        assert contents(db) == expected(12)
        check(db)


@pytest.mark.parametrize("cut", [1, 24, 1000, 4096, 9000, 30_000])
def test_a_torn_end_is_recovered_to_a_whole_transaction(crashed: Path, cut: int) -> None:
    """A WAL that ends early gives a prefix of the transactions, and the database goes on from there."""
    wal = crashed / f"{change_log.FILE}-wal"
    wal.write_bytes(wal.read_bytes()[:-cut])
    with ev.connect(crashed) as db:
        there = db.version - 1
        assert there < 12
        assert contents(db) == expected(there)
        db.apply(transaction(there))
        check(db)


def test_a_changed_byte_in_the_middle_of_the_wal(crashed: Path) -> None:
    """Transactions behind it were acknowledged, so it is an error with the file and the offset of its transaction."""
    wal = crashed / f"{change_log.FILE}-wal"
    data = bytearray(wal.read_bytes())
    at = len(data) // 2
    data[at] ^= 0xFF
    wal.write_bytes(data)
    with pytest.raises(ev.CorruptDatabase) as caught:
        ev.connect(crashed)
    offset = int(re.findall(r"offset (\d+)", str(caught.value))[0])
    assert wal.name in str(caught.value)
    frames_of_a_transaction = 4
    assert at - frames_of_a_transaction * (4096 + 24) <= offset <= at


def test_a_changed_byte_in_a_checkpoint(original: Path) -> None:
    """The error has the file and the offset of its block."""
    file = max((original / "checkpoints").rglob("*.arrow"), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ev.CorruptDatabase, match=rf"{file.name}.*offset 0"):
        ev.connect(original)


def test_a_changed_byte_in_the_log(original: Path) -> None:
    """The error has the file and the place of the record."""
    file = original / change_log.FILE
    data = bytearray(file.read_bytes())
    at = data.rfind(b'"kind":"apply"') + 16
    data[at + 40] ^= 1
    file.write_bytes(data)
    with pytest.raises(ev.CorruptDatabase) as caught:
        ev.connect(original)
    offset = int(re.findall(r"offset (\d+)", str(caught.value))[0])
    assert abs(offset - at) < 4096


@pytest.mark.parametrize("read_only", [False, True])
def test_a_changed_page_of_sqlite(original: Path, *, read_only: bool) -> None:
    """The error has the offset of the page, in a line, also where SQLite stumbles over it only when it reads."""
    file = original / change_log.FILE
    data = bytearray(file.read_bytes())
    page = next(at for at in range(4096, len(data), 4096) if data[at] == 0x0D)  # a leaf, by its first byte
    for at, offset in ((page, page), (0, 0)):
        broken = bytearray(data)
        broken[at] ^= 0xFF
        file.write_bytes(broken)
        with pytest.raises(ev.CorruptDatabase) as caught:
            ev.connect(original, read_only=read_only)
        assert f"at offset {offset}:" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_definition_that_is_no_text(original: Path) -> None:
    """SQLite quotes the bytes that it does not understand, which need not be UTF-8."""
    file = original / change_log.FILE
    data = file.read_bytes()
    edited = data.replace(b"tableloglog", b"tablel\xc3glog").replace(b"CREATE TABLE log", b"\xc3REATE TABLE log")
    assert edited.count(b"\xc3") == data.count(b"\xc3") + 2
    file.write_bytes(edited)
    for read_only in (False, True):
        with pytest.raises(ev.CorruptDatabase, match="no text"):
            ev.connect(original, read_only=read_only)


@pytest.mark.parametrize("missing", ["everview.sqlite", "checkpoints"])
def test_a_missing_file(original: Path, missing: str) -> None:
    """It is named, and no empty database is opened in its stead."""
    path = original / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ev.CorruptDatabase, match=missing):
        ev.connect(original)


def _edited(data: bytes, rng: random.Random) -> bytes:
    """Some random edit of a file."""
    at = rng.randrange(max(len(data), 1))
    match rng.randrange(5):
        case 0:
            return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data + rng.randbytes(rng.randrange(1, 5000))
        case 3:
            length = rng.randrange(1, 200)
            return data[:at] + rng.randbytes(length) + data[at + length :]
        case _:
            return rng.randbytes(rng.randrange(1, 10_000))


def _fuzz(original: Path, folder: Path, seed: int, count: int) -> None:
    """Edits files at random; a database then opens with what was committed, or raises a documented error.

    Of a WAL that ends early, and of nothing else, a prefix of the transactions may be left.
    """
    rng = random.Random(seed)
    whole = [expected(n) for n in range(13)]
    files = sorted(p.relative_to(original) for p in original.rglob("*") if p.is_file())
    for i in range(count):
        copy = folder / f"copy {i}"
        shutil.copytree(original, copy)
        edited = rng.choice(files)
        (copy / edited).write_bytes(_edited((original / edited).read_bytes(), rng))
        try:
            with ev.connect(copy) as db:
                found, version = contents(db), db.version
                is_right = found == whole[version - 1] if version else not any(found.values())
                assert is_right, (seed, i, edited)
                if not edited.name.endswith("-wal"):
                    assert version == 13, (seed, i, edited)
        except (ev.CorruptDatabase, ev.StorageFailed):
            pass
        shutil.rmtree(copy)


@pytest.mark.parametrize("kind", ["original", "crashed"])
def test_random_edits(kind: str, folder: Path, request: pytest.FixtureRequest) -> None:
    """Whatever is done to a file: an error of ours, or the right rows."""
    _fuzz(request.getfixturevalue(kind), folder, seed=1, count=HOW_MANY)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["original", "crashed"])
def test_many_random_edits(kind: str, folder: Path, request: pytest.FixtureRequest) -> None:
    """The same, a thousand times."""
    _fuzz(request.getfixturevalue(kind), folder, seed=random.randrange(2**32), count=1000)


def test_a_newer_format_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the folder, of a plan, of a definition: each names what is newer."""
    prepared(folder / "shop", 1)
    with sqlite3.connect(folder / "shop" / change_log.FILE) as connection:
        connection.execute("UPDATE about SET value = '3' WHERE name = 'format'")
    connection.close()
    with pytest.raises(ev.CorruptDatabase, match="format 3"):
        ev.connect(folder / "shop")

    monkeypatch.setattr(serialize, "_FORMAT", 7)
    prepared(folder / "plans", 1)
    monkeypatch.undo()
    with pytest.raises(ev.CorruptDatabase, match="format 7"):
        ev.connect(folder / "plans")


def test_a_field_of_a_newer_version_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition with a field that this version does not know is not read without it."""
    dumps = json.dumps
    monkeypatch.setattr(
        "everview.storage.records.json.dumps",
        lambda value, **how: dumps(value, **how).replace('"lazy":', '"colour":1,"lazy":'),
    )
    with ev.connect(folder) as db:
        make_shop(db)
    monkeypatch.undo()
    with pytest.raises(ev.CorruptDatabase, match="'colour'"):
        ev.connect(folder)


def test_nothing_in_the_folder_is_executed() -> None:
    """No module that reads a database can: there is neither pickle nor eval in them."""
    source = Path(ev.__file__).parent
    for path in [*(source / "storage").glob("*.py"), *(source / "session" / "durable").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\b(pickle|eval|exec|marshal|compile)\b\s*[.(]", text), path
