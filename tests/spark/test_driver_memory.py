"""Rows that are born on executors stay there: the driver's memory is watched while ten million of them come."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
ROWS = 10_000_000
MOST_MB = 150
"""Ten million rows take 700 MB as Arrow columns."""


@pytest.mark.slow
def test_ten_million_rows_do_not_pass_the_driver(tmp_path: Path) -> None:
    """With 1 GB for Spark's driver, ``insert``, ``apply`` and ``stream`` of a DataFrame leave this process' memory as it is."""
    command = [sys.executable, "-m", "tests.spark.memory_run", str(tmp_path), str(ROWS)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    grown = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines() if line[:1].islower()}
    assert list(grown) == ["insert", "apply", "stream"]
    assert max(grown.values()) < MOST_MB, grown
