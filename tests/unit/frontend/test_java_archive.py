"""The archive of Java's classes: who writes it, who reads it, and when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.frontend.java_archive import VARIABLE, archive_options


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for archives that does not exist yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "java"))
    return tmp_path / "java"


def _place(options: str) -> Path:
    return Path(options.split(maxsplit=1)[0].partition("=")[2])


def test_first_process_writes_and_later_ones_read(folder: Path) -> None:
    """One process is told to write an archive; once that is whole, the next reads it under its lasting name."""
    written = _place(archive_options())
    assert written.parent == folder
    assert archive_options() == "", "only one process at a time tries"
    written.write_bytes(b"\0" * 64)
    assert archive_options() == "", "no header: it is still being written"
    written.write_bytes(b"\xa8" + b"\0" * 63)
    options = archive_options()
    assert options.startswith("-XX:SharedArchiveFile=")
    assert _place(options).exists()
    assert archive_options() == options


def test_no_archive_where_it_is_switched_off_or_cannot_be(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be made, one with a blank in its name, and ``off`` all mean a start without archive."""
    folder.write_text("a file")
    assert archive_options() == ""
    monkeypatch.setenv(VARIABLE, str(folder.parent / "with blank"))
    assert archive_options() == ""
    monkeypatch.setenv(VARIABLE, "off")
    assert archive_options() == ""
