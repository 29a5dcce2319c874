"""Writers that are killed at any moment: what was acknowledged is there, and at most one transaction more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def killed_writers(path: Path, *arguments: object) -> str:
    """What the program of ``killed_writers`` prints; it has a process of its own, which forks."""
    command = [sys.executable, "-m", "tests.durable.killed_writers", str(path), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_twenty_writers_are_killed(folder: Path) -> None:
    """After each, every transaction that returned is there, at most one more, and views equal recomputation."""
    assert killed_writers(folder / "shop", 20, 18).startswith("20 kills")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_writers_are_killed(seed: int, folder: Path) -> None:
    """The same fifty times a seed."""
    assert killed_writers(folder / "shop", 50, seed).startswith("50 kills")


def test_a_writer_is_killed_at_each_step_of_a_checkpoint(folder: Path) -> None:
    """Wherever it is cut off, the checkpoint before stays in force, and nothing is missing."""
    assert killed_writers(folder, "steps").endswith("steps\n")
