"""The documents say what is so: the generated page is current, and the code in them runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import supported_sql
from tests.oracle import test_corpus

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_supported_sql_is_up_to_date() -> None:
    """The page of supported SQL is what `make docs` would write now."""
    assert supported_sql.PAGE.read_text(encoding="utf-8") == supported_sql.render()


def test_supported_sql_lists_what_is_proven() -> None:
    """The folders on the page are those that the oracle test runs against Spark."""
    assert set(supported_sql.FOLDERS) == set(test_corpus._FOLDERS)


@pytest.mark.parametrize(
    "page", ["README.md", "docs/rings.md", "docs/streaming.md", "docs/tutorial/getting-started.md"]
)
@pytest.mark.usefixtures("spark")
def test_python_blocks_run(page: str) -> None:
    """The Python of a page runs from top to bottom, as a reader would run it."""
    scope: dict[str, Any] = {}
    for match in CODE.finditer((ROOT / page).read_text(encoding="utf-8")):
        line = page_line(page, match.start(1))
        exec(compile("\n" * line + match[1], str(ROOT / page), "exec"), scope)
    assert scope


@pytest.mark.usefixtures("spark")
def test_example_prints_what_each_commit_did(capsys: pytest.CaptureFixture[str]) -> None:
    """examples/subscribe.py runs, and ends with the counts."""
    code = (ROOT / "examples" / "subscribe.py").read_text(encoding="utf-8")
    exec(compile(code, "subscribe.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines()[-1] == "[('bag', 1), ('ring', 1)]"


def test_links_lead_somewhere() -> None:
    """Relative links in the documents name files that exist."""
    missing = []
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]:
        targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        missing += [f"{page.relative_to(ROOT)}: {to}" for to in targets if not (page.parent / to).exists()]
    assert missing == []


def test_docs_tool_reports_an_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`supported_sql.py --check` fails with a hint while the page is old, and writing it makes it current."""
    monkeypatch.setattr(supported_sql, "PAGE", tmp_path / "supported-sql.md")
    assert supported_sql.main(["--check"]) == 1
    assert supported_sql.main([]) == 0
    assert supported_sql.main(["--check"]) == 0


def test_missing_java_is_one_clear_line(tmp_path: Path) -> None:
    """Without Java, the check that `make demo` and `make test` begin with says in one line what to install."""
    done = subprocess.run(
        [str(ROOT / "tools" / "check-java")],
        env={"PATH": "/usr/bin:/bin", "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "Java 17" in done.stderr
    assert "openjdk-17-jre-headless" in done.stderr


def test_old_java_is_refused(tmp_path: Path) -> None:
    """A Java before 17 is named with its version, in the numbering of Java 8 too."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / "tools" / "check-java")],
        env={"PATH": "/usr/bin:/bin", "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "is version 1.8.0_392." in done.stderr


def page_line(page: str, position: int) -> int:
    """The number of lines before a position, so that a traceback names the line of the page."""
    return (ROOT / page).read_text(encoding="utf-8")[:position].count("\n")
