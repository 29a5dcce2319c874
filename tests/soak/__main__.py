"""``make soak MINUTES=60 SEED=…``: several processes that play rounds, one line that says how far they are, one report.

``python -m tests.soak [--minutes M] [--seed S] [--workers N] [--folder F]``, or the file of a difference to play it again, or
``--round SEED`` to play one round. The same seed and folder go on where they were. Exit status 1 if there was any difference.
``--endurance`` is another run (``endurance.py``): transactions at full speed against the same twenty views.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.soak.endurance import endure
from tests.soak.worker import show

_HANGS_AFTER = 300.0
"""Seconds that a round may take; reducing a difference is part of it."""


def main() -> int:
    """Parses the arguments and does what they say."""
    parser = argparse.ArgumentParser(prog="soak", description="generated queries and streams, every answer compared")
    parser.add_argument("file", nargs="?", help="play the scenario of this file again")
    parser.add_argument("--round", help="play the round of this seed again")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", default=None, help="default: the time")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", default="soak", help="where what it finds is kept; a folder for each seed below it")
    parser.add_argument(
        "--endurance", action="store_true", help="transactions against twenty views at full speed instead"
    )
    given = parser.parse_args()
    if given.file:
        runpy.run_path(given.file)
        return 0
    if given.round:
        show(given.round)
        return 0
    seed = given.seed or time.strftime("%Y%m%d%H%M%S")
    folder = Path(given.folder) / seed
    if given.endurance:
        print(f"seed {seed}, {given.minutes:g} minutes")
        return endure(60 * given.minutes, seed, folder)
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, {given.workers} processes, {given.minutes:g} minutes; what is found is kept in {folder}/")
    _soak(folder, seed, given.workers, time.time() + 60 * given.minutes)
    return _report(folder)


def _soak(folder: Path, seed: str, workers: int, until: float) -> None:
    """Keeps the processes running until the time is up."""
    begun = time.time()
    running = {n: _start(folder, seed, n, until) for n in range(workers)}
    started = dict.fromkeys(running, begun)
    told = begun
    try:
        while running:
            time.sleep(1)
            for number, process in list(running.items()):
                if process.poll() is None:
                    if _is_hanging(folder, number, started[number]):
                        process.kill()
                        process.wait()
                    continue
                if time.time() < until - 20:
                    running[number], started[number] = _start(folder, seed, number, until), time.time()
                else:
                    del running[number]
            if sys.stdout.isatty():
                print(f"\r{_progress(folder, time.time() - begun)}", end="", flush=True)
            elif time.time() - told >= 60:
                told = time.time()
                print(_progress(folder, told - begun), flush=True)
    except KeyboardInterrupt:
        for process in running.values():
            process.kill()
            process.wait()
    print()


def _start(folder: Path, seed: str, number: int, until: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.soak.worker", str(folder), seed, str(number), str(until)]
    with (folder / f"worker-{number}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=False)


def _is_hanging(folder: Path, number: int, started: float) -> bool:
    """Whether a process plays one round for too long; what its predecessor has left in the file does not count."""
    state = _states(folder).get(number)
    if state is None or not state["is_playing"]:
        return False
    return time.time() - max(started, state["since"]) > _HANGS_AFTER


def _states(folder: Path) -> dict[int, dict]:  # type: ignore[type-arg]
    files = folder.glob("worker-*.json")
    return {int(f.stem.partition("-")[2]): json.loads(f.read_text()) for f in files}


def _sums(folder: Path, part: str) -> Counter[str]:
    return sum((Counter(s[part]) for s in _states(folder).values()), Counter())


def _progress(folder: Path, seconds: float) -> str:
    counts, differences = _sums(folder, "counts"), _sums(folder, "differences")
    return (
        f"{seconds / 60:5.1f} min  {counts['views']:,} views  {counts['pairs']:,} pairs  "
        f"{counts['pairs with Spark']:,} with Spark  {sum(differences.values())} differences  "
    )


def _report(folder: Path) -> int:
    """Prints what was done and found; the exit status."""
    states = _states(folder)
    counts, refusals, differences = (_sums(folder, part) for part in ("counts", "refusals", "differences"))
    seconds = max((s["seconds"] for s in states.values()), default=0.0)
    print(f"{counts['rounds']:,} rounds, {counts['views']:,} views, {counts['transactions']:,} transactions")
    print(
        f"{counts['pairs']:,} pairs of a view and a version compared with the reference, {_rate(counts['pairs'], seconds)}"
    )
    print(f"{counts['pairs with Spark']:,} of them with Spark, {_rate(counts['pairs with Spark'], seconds)}")
    for name in ("suspended pairs", "views that answer again", "Spark has no answer"):
        print(f"{counts[name]:,} {name}")
    print(f"{sum(refusals.values()):,} refusals:")
    for reason, count in refusals.most_common(25):
        print(f"  {count:6,}  {reason}")
    refused = {reason: text for s in states.values() for reason, text in s["refused"].items()}
    (folder / "refusals.txt").write_text(
        "\n\n".join(f"{r}\n{refused[r]}" for r, _ in refusals.most_common() if r in refused)
    )
    print(f"{sum(differences.values())} differences{':' if differences else ''}")
    for kind, count in differences.most_common():
        print(f"  {count:6,}  {kind}")
    return 1 if differences else 0


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:.0f} a second" if seconds else "none yet"


if __name__ == "__main__":
    sys.exit(main())
