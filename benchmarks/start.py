"""How soon the first view of a process answers: what a script pays before its own work.

Each run is a process of its own. Timed are ``import everview``, ``connect`` with a table, and ``create_view`` until it returns,
in three settings: *bare*, without an archive of Java's classes (the very first process of a machine); *archive*, with one, a
query that was not translated before; *again*, the same script a second time, which starts no JVM. Writing the archive is timed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from everview.cli.bench_results import Figure

_SCRIPT = """
import json, sys, time
begin = time.perf_counter()
import everview as ev
imported = time.perf_counter()
db = ev.connect()
db.create_table("t", "id INT, k STRING, v INT", primary_key="id")
connected = time.perf_counter()
view = db.create_view("v", f"SELECT k, sum(v) AS s, count(*) AS n, {sys.argv[1]} AS c FROM t GROUP BY k")
created = time.perf_counter()
db.table("t").insert([(1, "a", 2), (2, "a", 3)])
assert view.rows() == [("a", 5, 2, int(sys.argv[1]))], view.rows()
print(json.dumps({"import": imported - begin, "connect": connected - imported, "view": created - connected}))
"""


def run(*, quick: bool) -> Iterator[Figure]:
    """The seconds of each part of a start, at the median."""
    rounds = 2 if quick else 5
    with tempfile.TemporaryDirectory(prefix="everview-start-") as scratch:
        archive, number = Path(scratch, "archive"), 0
        begin = time.perf_counter()
        _make_archive(archive)
        yield Figure(
            "archive", "seconds", time.perf_counter() - begin, "s", {"what": "written in a process of its own"}
        )
        found: dict[str, list[dict[str, float]]] = {"bare": [], "archive": [], "again": []}
        _start(0, Path(scratch, "warm"), "off")  # kernels are loaded from disk from now on
        for _ in range(rounds):  # the settings take turns: the machine is not equally busy all the time
            number += 2
            found["bare"].append(_start(number, Path(scratch, "bare"), "off"))
            found["archive"].append(_start(number + 1, Path(scratch, "kept"), str(archive)))
            found["again"].append(_start(number + 1, Path(scratch, "kept"), str(archive)))
    middle = {
        case: {part: statistics.median(r[part] for r in results) for part in results[0]}
        for case, results in found.items()
    }
    for case, parts in middle.items():
        for part, seconds in parts.items():
            yield Figure(case, "seconds", seconds, "s", {"what": part, "rounds": rounds})
        yield Figure(case, "ratio_to_bare", parts["view"] / middle["bare"]["view"], "x", {"what": "view"})


def _make_archive(folder: Path) -> None:
    folder.mkdir()
    environment = {**os.environ, "EVERVIEW_JAVA_ARCHIVE": str(folder)}
    ask = "from everview.frontend import java_archive as j; j.atexit.register = lambda _, p: print(p); j.archive_options()"
    asked = subprocess.run([sys.executable, "-c", ask], env=environment, check=True, capture_output=True, text=True)
    command = [sys.executable, "-m", "everview.frontend.write_java_archive", asked.stdout.strip()]
    subprocess.run(command, check=True, capture_output=True)


def _start(number: int, translations: Path, archive: str) -> dict[str, float]:
    environment = {
        **os.environ,
        "EVERVIEW_TRANSLATION_CACHE": str(translations),
        "EVERVIEW_JAVA_ARCHIVE": archive,
    }
    command = [sys.executable, "-c", _SCRIPT, str(number)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    parts: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return parts
