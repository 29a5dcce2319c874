"""Scripts that can be read, and what is said of those that cannot."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

import everview as ev
from everview.cli.script import read_statements


def test_statements_come_in_order(tmp_path: Path) -> None:
    """A script is its statements; comments and empty statements are none."""
    (tmp_path / "x.sql").write_text("-- é\nSELECT ';' AS a;\n;\nSELECT 2\n", encoding="utf-8")
    assert read_statements(tmp_path / "x.sql") == ["SELECT ';' AS a", "SELECT 2"]


def test_open_string_is_an_invalid_query(tmp_path: Path) -> None:
    """A quote without its partner is the user's error, not ours."""
    (tmp_path / "x.sql").write_text("SELECT 'abc; SELECT 2")
    with pytest.raises(ev.InvalidQuery, match="without an end"):
        read_statements(tmp_path / "x.sql")


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A script that is not there is named, with the system's reason."""
    with pytest.raises(click.ClickException) as caught:
        read_statements(tmp_path / "none.sql")
    assert caught.value.message == f"cannot read '{tmp_path / 'none.sql'}': no such file or directory."


def test_binary_file_is_refused(tmp_path: Path) -> None:
    """A file that is not text ends with a line, not with a UnicodeDecodeError."""
    (tmp_path / "x.sql").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(click.ClickException, match="not UTF-8"):
        read_statements(tmp_path / "x.sql")
