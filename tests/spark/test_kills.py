"""The driver's process is killed, time and again: no batch is lost, none is applied twice, and views are right."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from everview.backends.spark.backend import SparkBackend
from everview.relational.arrow import rows_from_arrow
from tests.oracle.bags import assert_same_bag
from tests.spark import killing
from tests.spark.replay import refuse_spark

_REPOSITORY = Path(__file__).resolve().parents[2]
_BATCHES = 50


def _command(mode: str, path: Path, seed: str = "0", batches: int = _BATCHES) -> list[str]:
    return [sys.executable, "-m", "tests.spark.killing", mode, str(path), seed, str(batches)]


def _run(mode: str, path: Path, seed: str, batches: int = _BATCHES) -> subprocess.CompletedProcess[str]:
    command = _command(mode, path, seed, batches)
    return subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, check=False)


def _assert_all_there(path: Path, batches: int = _BATCHES) -> None:
    backend = SparkBackend(str(path), refuse_spark)
    assert killing.check(backend, batches) == batches
    backend.close()


@pytest.mark.parametrize(
    ("seed", "batches"),
    [("one", 20), *(pytest.param(s, _BATCHES, marks=pytest.mark.slow) for s in ("one", "two", "three", "four"))],
)
def test_killed_at_random_points(seed: str, batches: int, tmp_path: Path) -> None:
    """Batches by drivers that die before, in and after commits, compactions and vacuums, or in between."""
    killing.create(tmp_path)
    ended = _run("lives", tmp_path, seed, batches)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = [int(word) for word in ended.stdout.split() if word.isdigit()]
    assert len(told) == 2
    assert min(told) >= 1, ended.stdout
    assert sum(told) >= batches // 5, ended.stdout
    _assert_all_there(tmp_path, batches)


@pytest.mark.slow
def test_killed_with_its_jvm(tmp_path: Path) -> None:
    """The same where executors write the segments and the whole driver, its JVM too, is killed: twelve times at random."""
    killing.create(tmp_path)
    chance = random.Random("jvm")
    kills = 0
    while killing.acknowledged(tmp_path) < _BATCHES:
        until = killing.acknowledged(tmp_path) + chance.randrange(8) if kills < 12 else _BATCHES
        seconds = chance.uniform(0.0, 2.0)
        with subprocess.Popen(
            _command("spark", tmp_path), cwd=_REPOSITORY, stdout=subprocess.DEVNULL, start_new_session=True
        ) as driver:
            while driver.poll() is None and killing.acknowledged(tmp_path) < until:
                time.sleep(0.02)
            if kills < 12:
                time.sleep(seconds)
                os.killpg(driver.pid, signal.SIGKILL)
                kills += 1
            else:
                assert driver.wait() == 0
    assert kills >= 6
    _assert_all_there(tmp_path)


@pytest.mark.slow
def test_a_failing_task_is_run_again(tmp_path: Path) -> None:
    """A task that fails halfway through a segment leaves nothing of its first attempt there."""
    killing.create(tmp_path)
    ended = _run("failing-tasks", tmp_path, "0", 12)
    assert ended.returncode == 0, ended.stderr[-3000:]
    _assert_all_there(tmp_path, 12)


@pytest.mark.slow
def test_a_killed_stream_goes_on(tmp_path: Path) -> None:
    """A stream whose process is killed in the middle of a micro-batch goes on from its checkpoint; each row is there once."""
    killing.create(tmp_path / "db")
    (tmp_path / "in").mkdir()
    for number in range(6):
        file = tmp_path / "in" / f"{number}.json"
        file.write_text(json.dumps({"k": "a", "x": number}))
        os.utime(file, (number + 1, number + 1))
    endings = []
    for fatal_step in (0, 5, 8, 10_000):  # of a batch's commit: before the record, after it, in the next batch, never
        ended = _run("stream", tmp_path, str(fatal_step), 6)
        endings.append(ended.returncode)
    assert endings == [-signal.SIGKILL] * 3 + [0], ended.stderr[-3000:]
    backend = SparkBackend(str(tmp_path / "db"), refuse_spark)
    items = rows_from_arrow(backend.read("items"), killing.ITEMS)
    assert_same_bag(items, [("a", number) for number in range(6)], "items")
    assert rows_from_arrow(backend.read("largest"), killing.ITEMS) == [("a", 5)]
    backend.close()
