"""The archive of Java's classes: who makes it, who reads it, and when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everview.frontend import java_archive
from everview.frontend.java_archive import VARIABLE, archive_options


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for archives that does not exist yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "java"))
    return tmp_path / "java"


@pytest.fixture
def at_exit(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is to be done when the process ends."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(java_archive.atexit, "register", lambda *call: calls.append(call))
    return calls


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The processes that were started, without starting any."""
    commands: list[list[str]] = []
    monkeypatch.setattr(java_archive.subprocess, "Popen", lambda command, **_: commands.append(command))
    return commands


def test_an_archive_is_made_when_a_process_has_ended(
    folder: Path, at_exit: list[tuple[Any, ...]], started: list[list[str]]
) -> None:
    """The process that finds none starts without, and leaves the work to another, once; who finds one reads it."""
    assert archive_options() == ""
    [(make, archive)] = at_exit
    make(archive)
    make(archive)
    assert [command[-2:] for command in started] == [["everview.frontend.write_java_archive", str(archive)]]
    assert archive_options() == ""
    assert len(at_exit) == 1, "one process a day tries"
    archive.write_bytes(b"classes")
    assert archive_options().startswith(f"-XX:SharedArchiveFile={folder / archive.name} ")


@pytest.mark.usefixtures("at_exit")
def test_no_archive_where_it_is_switched_off_or_cannot_be(
    folder: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be made, one with a blank in its name, and ``off`` all mean a start without archive."""
    folder.write_text("a file")
    assert archive_options() == ""
    java_archive.make_later(folder / "classes-0.jsa")
    monkeypatch.setenv(VARIABLE, str(folder.parent / "with blank"))
    assert archive_options() == ""
    monkeypatch.setenv(VARIABLE, "off")
    assert archive_options() == ""
    assert started == []


@pytest.mark.slow
def test_the_archive_is_written_whole(folder: Path, at_exit: list[tuple[Any, ...]]) -> None:
    """The process that makes it leaves one file, which Java accepts."""
    archive_options()
    archive = at_exit[0][1]
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "everview.frontend.write_java_archive", str(archive)], check=True)
    assert [path.name for path in folder.iterdir()] == [archive.name]
    flags = archive_options().split()[0]
    subprocess.run(["java", "-Xshare:auto", flags, "-version"], check=True)
