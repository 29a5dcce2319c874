"""The commands from outside: what they print, and how they end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import everview as ev
from everview.cli import demo as demo_module
from everview.cli.main import cli

ROOT = Path(__file__).resolve().parents[3]
SHOP = ROOT / "examples" / "shop.sql"


def everview(*arguments: str | Path) -> Result:
    """Runs a command in this process; an exception that is not meant for users is raised."""
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def script(tmp_path: Path, text: str) -> Path:
    """A file with the statements."""
    file = tmp_path / "script.sql"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.usefixtures("spark")
def test_run_prints_the_answers_of_selects() -> None:
    """The example script prints each SELECT as of its place in the script: before and after the changes."""
    done = everview("run", SHOP)
    assert done.exit_code == 0, done.output
    rows = [tuple(re.findall(r"[\w.]+", line)) for line in done.stdout.splitlines() if "│" in line]
    assert rows.count(("Erlangen", "1", "30.50")) == 1
    assert rows.count(("London", "2", "32.00")) == 2
    assert sorted(rows[-2:]) == [("Ada", "32.00"), ("Sofja", "40.00")]


@pytest.mark.usefixtures("spark")
def test_explain_names_every_view_of_the_script() -> None:
    """Each view that the script creates is explained under its name."""
    done = everview("explain", SHOP)
    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if line.startswith("-- ")] == ["-- revenue", "-- best_customers"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("statements", "named"),
    [("CREATE TABLE t (a INT); SELECT b FROM t;", "column 'b'"), ("SELECT 1 AS one;\nSELECT 1 +", "yntax error")],
)
def test_an_error_of_the_user_is_one_line(statements: str, named: str, tmp_path: Path) -> None:
    """A script that fails ends with status 1 and one line on stderr, and no traceback."""
    done = everview("run", script(tmp_path, statements))
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
    assert named in done.stderr


def test_missing_script_is_one_line(tmp_path: Path) -> None:
    """A file that is not there is named; nothing starts."""
    done = everview("run", tmp_path / "none.sql")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"Error: cannot read '{tmp_path / 'none.sql'}': no such file or directory.\n"


@pytest.mark.parametrize("command", ["verify", "inspect"])
def test_missing_database_is_one_line(command: str, tmp_path: Path) -> None:
    """Commands that only look do not create what they look for."""
    done = everview(command, tmp_path / "none")
    assert done.exit_code == 1
    assert done.stderr == f"Error: there is no database at '{tmp_path / 'none'}'.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_uri_is_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands name the URI as it was given, and make no directory of it; a benchmark says so before it measures."""
    monkeypatch.chdir(tmp_path)
    file = script(tmp_path, "SELECT 1 AS one;")
    wanted = {
        (
            "verify",
            "s3://bucket/x",
        ): "there is no database at 's3://bucket/x'. Hint: DIR is a directory of this machine",
        (
            "inspect",
            "s3://bucket/x",
        ): "there is no database at 's3://bucket/x'. Hint: DIR is a directory of this machine",
        ("run", file, "--backend", "spark", "--path", "s3://bucket/x"): "'s3://bucket/x' is a place of scheme 's3'",
        ("bench", "triangle", "--json", "s3://bucket/x.json"): "cannot be written: there is no directory 's3:/bucket'",
    }
    for arguments, told in wanted.items():
        done = everview(*arguments)
        assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
        assert told in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["script.sql"]


@pytest.mark.parametrize(
    "arguments", [["verify", "{dir}"], ["inspect", "{dir}"], ["run", "{script}", "--path", "{dir}"]]
)
def test_storage_that_a_backend_does_not_have(arguments: list[str], tmp_path: Path) -> None:
    """The reference backend keeps nothing on disk, and the commands say so in one line."""
    places = {"dir": tmp_path, "script": script(tmp_path, "SELECT 1 AS one;")}
    done = everview(*(argument.format(**places) for argument in arguments), "--backend", "reference")
    assert done.exit_code == 1
    assert "lives in memory" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["run"], ["run", "--nonsense"], ["explain", "x.sql", "--mode", "x"]]
)
def test_wrong_usage_is_status_two(arguments: list[str]) -> None:
    """A command that click cannot understand ends with status 2."""
    assert everview(*arguments).exit_code == 2


def test_help_lists_the_commands() -> None:
    """The commands are those of the interface."""
    done = everview("--help")
    assert done.exit_code == 0
    assert re.findall(r"^  (\w+) ", done.stdout.split("Commands:")[1], re.MULTILINE) == [
        "bench",
        "demo",
        "explain",
        "inspect",
        "run",
        "verify",
    ]


def test_the_package_runs_as_a_module() -> None:
    """``python -m everview`` is the same program."""
    done = subprocess.run([sys.executable, "-m", "everview", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("everview ")


def test_missing_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """When Spark cannot start for want of Java, the line says what to install."""

    def connect(*_args: object, **_options: object) -> None:
        raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")

    monkeypatch.setattr(ev, "connect", connect)
    done = everview("run", script(tmp_path, "SELECT 1 AS one;"))
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert "openjdk-17-jre-headless" in done.stderr


@pytest.mark.usefixtures("spark")
def test_demo_streams_and_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tour goes through with a small shop and ends with every view equal to Spark's answer."""
    monkeypatch.setattr(demo_module, "CUSTOMERS", 10)
    monkeypatch.setattr(demo_module, "ORDERS", 60)
    monkeypatch.setattr(demo_module, "ORDERS_A_BATCH", 5)
    done = everview("demo")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("equal") == len(demo_module.VIEWS)
    for word in ("new orders", "corrected prices", "cancelled orders", *demo_module.VIEWS):
        assert word in done.stdout


def test_installed_command_keeps_stderr_to_one_line(tmp_path: Path) -> None:
    """Run as a program, the command prints its error and nothing else on stderr."""
    program = "from everview.cli.main import main; main()"
    command = [sys.executable, "-c", program, "run", str(tmp_path / "none.sql")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: cannot read '{tmp_path / 'none.sql'}': no such file or directory.\n"
