"""The documents say what is so: the generated page is current, and the code in them runs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

import everview as ev
import supported_sql
from tests.oracle import test_corpus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def test_architecture_names_modules_that_exist() -> None:
    """Every module and package that docs/architecture.md names is there, by its name or the end of its path."""
    source = ROOT / "src" / "everview"
    there = [str(p.relative_to(source)) for p in source.rglob("*")]
    there += [str(p.relative_to(ROOT)) for folder in ("tests", "benchmarks") for p in (ROOT / folder).rglob("*")]
    named = re.findall(r"`([\w/]+?(?:\.py|/))`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(named) > 150
    ends = {f"/{path}" for path in there} | {f"/{p.name}" for p in ROOT.iterdir()}
    wrong = [name for name in named if not any(end.endswith(f"/{name.rstrip('/')}") for end in ends)]
    assert wrong == []


def test_a_row_takes_the_way_that_architecture_tells(spark: SparkSession) -> None:
    """Every module that the walk names runs in the call that it is named for, and those of create_view in that order."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = text[text.index("## A row's way") : text.index("## Who knows whom")]
    creating, _, rest = walk.partition("`db.apply(")
    applying, _, reading = rest.partition("Reading the view")
    with ev.connect(spark=spark) as db:
        db.sql("CREATE TABLE sale (id INT PRIMARY KEY, item INT, amount BIGINT)")
        db.sql("CREATE TABLE item (id INT PRIMARY KEY, name STRING)")
        db.sql("INSERT INTO sale VALUES (1, 1, 3); INSERT INTO item VALUES (1, 'pen')")
        new = f"s{uuid4().hex}"  # a name that no translation is kept of
        query = f"SELECT name, sum(amount) AS {new} FROM sale JOIN item ON sale.item = item.id GROUP BY name"
        calls: dict[str, Callable[[], object]] = {
            creating: lambda: db.create_view("v", query),
            applying: lambda: db.apply({"sale": [(5, 1, 7)]}),
            reading: lambda: db.view("v").rows(),
        }
        for part, call in calls.items():
            ran = modules_run(call)
            named = list(dict.fromkeys(re.findall(r"`([\w/]+\.py)`", part)))
            at = [next((i for i, module in enumerate(ran) if module.endswith(f"/{name}")), None) for name in named]
            assert None not in at, f"not run: {[n for n, i in zip(named, at, strict=True) if i is None]}"
            if part is creating:
                assert [named[i] for i in sorted(range(len(at)), key=lambda i: at[i] or 0)] == named


def modules_run(call: Callable[[], object]) -> list[str]:
    """The modules of everview of which functions run in a call, in the order of their first ones."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/everview/" in frame.f_code.co_filename:
            found.setdefault(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(found)


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
