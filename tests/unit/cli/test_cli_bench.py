"""The frame of ``everview bench``: finding suites, running one, writing its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from everview.cli import bench_suites
from everview.cli.main import cli

SUITE = """
from everview.cli.bench_results import Figure

def run(*, quick):
    yield Figure("q1", "tuples_per_second", 10.0 if quick else 20.0, "1/s", {"batch": 1000})
    yield Figure("q1", "ratio_to_recompute", 2.0, "x")
"""


@pytest.fixture
def benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of suites with one suite, tpch."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "tpch.py").write_text(SUITE)
    monkeypatch.setattr(bench_suites, "BENCHMARKS", folder)
    return folder


def test_json_has_the_fixed_layout(benchmarks: Path, tmp_path: Path) -> None:
    """The file keeps suite, machine and results under the names that comparisons rely on."""
    file = tmp_path / "out.json"
    done = CliRunner().invoke(cli, ["bench", "tpch", "--quick", "--json", str(file)])
    assert done.exit_code == 0, done.output
    report = json.loads(file.read_text())
    assert list(report) == ["suite", "machine", "results"]
    assert report["suite"] == "tpch"
    assert report["machine"]["cores"] >= 1
    assert report["results"] == [
        {"case": "q1", "metric": "tuples_per_second", "value": 10.0, "unit": "1/s", "params": {"batch": 1000}},
        {"case": "q1", "metric": "ratio_to_recompute", "value": 2.0, "unit": "x", "params": {}},
    ]


def test_results_are_printed_and_drawn(benchmarks: Path, tmp_path: Path) -> None:
    """Without --quick the suite runs at full size; --plot writes a picture in the format of its suffix."""
    file = tmp_path / "out.svg"
    done = CliRunner().invoke(cli, ["bench", "tpch", "--plot", str(file)])
    assert done.exit_code == 0, done.output
    assert "batch=1000" in done.stdout
    assert "20" in done.stdout
    assert "<svg" in file.read_text()


def test_unknown_suite_is_wrong_usage(benchmarks: Path) -> None:
    """A name that is no suite ends with status 2 and the names that are."""
    done = CliRunner().invoke(cli, ["bench", "tpcc"])
    assert done.exit_code == 2
    assert "'tpcc' is not a suite; the suites are tpch, growth, classes, housing" in " ".join(done.stderr.split())


def test_suite_that_is_not_built_says_what_is(benchmarks: Path) -> None:
    """A planned suite ends with status 1 and one line that lists those that run."""
    done = CliRunner().invoke(cli, ["bench", "triangle"])
    assert done.exit_code == 1
    assert done.stderr == (
        "Error: the suite 'triangle' (triangle counts, uniform and skewed) is not built yet; built are: tpch.\n"
    )


def test_a_wrong_answer_is_an_error(benchmarks: Path, tmp_path: Path) -> None:
    """A suite whose answers are wrong ends with status 1, after its results were written."""
    (benchmarks / "tpch.py").write_text(SUITE.replace('{"batch": 1000}', '{"answer": "WRONG"}'))
    file = tmp_path / "out.json"
    done = CliRunner().invoke(cli, ["bench", "tpch", "--json", str(file)])
    assert done.exit_code == 1
    assert done.stderr == "Error: wrong answers: q1.\n"
    assert json.loads(file.read_text())["results"]


def test_scale_is_for_suites_that_have_one(benchmarks: Path) -> None:
    """It is handed on; for a suite without a scale it is wrong usage, not ignored."""
    refused = CliRunner().invoke(cli, ["bench", "tpch", "--scale", "10"])
    assert refused.exit_code == 2
    assert "the suite 'tpch' has none." in " ".join(refused.stderr.split())
    scaled = SUITE.replace("quick):", "quick, scale=1.0):").replace("20.0", "scale")
    (benchmarks / "spark.py").write_text(scaled)
    done = CliRunner().invoke(cli, ["bench", "spark", "--scale", "37"])
    assert done.exit_code == 0, done.output
    assert "37" in done.stdout
