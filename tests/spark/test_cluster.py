"""A standalone cluster of one master and two workers, each a process of this machine: the law there, and a worker's death."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

_HOME = Path(pyspark.__file__).parent
_DEADLINE = 600.0
"""Seconds, enough for a machine that does much else."""


def _found_in(text: str, pattern: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


@contextmanager
def _java(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon of Spark's, in a process group of its own, gone at the end."""
    paths = [str(Path(__file__).resolve().parents[2]), *sys.path]
    environment = {
        **os.environ,
        "SPARK_HOME": str(_HOME),
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # The launcher of executors looks for it in folders of a source tree, which an installed PySpark is not.
        "SPARK_SCALA_VERSION": _found_in(next((_HOME / "jars").glob("spark-core_*.jar")).name, r"_([\d.]+)-"),
    }
    command = ["java", "-Xmx256m", "-cp", str(_HOME / "jars" / "*"), *arguments]
    with log.open("wb") as file:
        daemon = subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
    try:
        yield daemon
    finally:
        for send in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(daemon.pid, send)
            except ProcessLookupError:
                break
            time.sleep(0.5)
        daemon.wait()


def _found(log: Path, pattern: str) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        match = re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))
        if match:
            return match[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace")[-3000:])


@pytest.mark.slow
def test_the_law_on_a_cluster_that_loses_a_worker(tmp_path: Path) -> None:
    """Loads, look-ups in tasks and large changes are right on executors elsewhere, and after one has died."""
    deploy = "org.apache.spark.deploy"
    log = tmp_path / "master.log"
    with _java(log, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"):
        master = _found(log, r"Starting Spark master at (spark://\S+)")
        place = ("--host", "127.0.0.1", "--cores", "1", "--memory", "600m", "--webui-port", "0")
        logs = [tmp_path / f"worker{i}.log" for i in range(2)]
        folders = [str(tmp_path / f"worker{i}") for i in range(2)]
        worker = f"{deploy}.worker.Worker"
        with (
            _java(logs[0], worker, *place, "-d", folders[0], master) as first,
            _java(logs[1], worker, *place, "-d", folders[1], master),
        ):
            for own in logs:
                _found(own, r"(Successfully registered with master)")
            command = [sys.executable, "-m", "tests.spark.cluster_run", master, str(tmp_path), str(first.pid)]
            own = {**os.environ, "PYSPARK_PYTHON": sys.executable}
            done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE, check=False, env=own)
    assert done.returncode == 0, done.stderr[-4000:]
    told = [line.split() for line in done.stdout.splitlines() if line[:1].islower()]
    assert [" ".join(t[:-2]) for t in told] == ["loaded", "changed", "worker lost", "changed again"]
