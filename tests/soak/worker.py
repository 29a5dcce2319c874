"""A process of the soak: plays round after round until it is told to end, and keeps what it has done in a file.

``python -m tests.soak.worker FOLDER SEED NUMBER UNTIL``. The file says which round is being played: if the process dies, its
successor counts that as a difference and goes on with the next one.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.oracle.answers import Answers
from tests.soak.reproduce import reduced, write
from tests.soak.rounds import Found, play
from tests.soak.scenario import Difference, Scenario, Tally
from tests.soak.session import start_session

_ROUNDS_OF_A_PROCESS = 300
"""After so many rounds another process takes over, with a Java that has not collected anything yet."""
_SECONDS_TO_REDUCE = 40.0
_FILES_OF_A_KIND = 4
"""So many differences of a kind are kept as files; the others are counted, with their seeds."""


class Worker:
    """The state of one process, as it is on disk."""

    def __init__(self, folder: Path, seed: str, number: int) -> None:
        self._folder = folder
        self._seed = seed
        self._number = number
        self._path = folder / f"worker-{number}.json"
        self._tally = Tally()
        self._differences: Counter[str] = Counter()
        self._round = 0
        self._seconds = 0.0
        if self._path.exists():
            self._read(json.loads(self._path.read_text()))

    def _read(self, state: dict[str, Any]) -> None:
        self._tally = Tally(Counter(state["counts"]), Counter(state["refusals"]), state["refused"])
        self._differences = Counter(state["differences"])
        self._round = state["round"]
        self._seconds = state["seconds"]
        if state["is_playing"]:
            self._note_seed("the process died or hung", self._seed_of_round())
            self._round += 1

    def work(self, until: float) -> None:
        """Plays rounds until that time, or until it is another process's turn."""
        self._save(is_playing=False)
        spark = start_session()
        answers = Answers(spark)
        for _ in range(_ROUNDS_OF_A_PROCESS):
            if time.time() > until:
                break
            begun = time.monotonic()
            self._save(is_playing=True)
            found = self._play(spark, answers)
            if found is not None:
                self._keep(spark, answers, found)
            self._round += 1
            self._seconds += time.monotonic() - begun
            self._save(is_playing=False)
        spark.stop()

    def _play(self, spark: Any, answers: Answers) -> Found | None:
        try:
            return play(self._seed_of_round(), spark, answers, self._tally)
        except Exception as error:
            # Not a difference that a scenario found: our own mistake, or an engine that fails where nobody looks.
            text = traceback.format_exc()
            kind = f"the round ends in {type(error).__name__}"
            self._note_seed(kind, self._seed_of_round())
            (self._folder / f"{self._file_name(kind)}.txt").write_text(text)
            return None

    def _keep(self, spark: Any, answers: Answers, found: Found) -> None:
        kind = found.difference.kind
        self._note_seed(kind, self._seed_of_round())
        if self._differences[kind] > _FILES_OF_A_KIND:
            return
        path = self._folder / f"{self._file_name(kind)}.py"
        write(path, self._seed_of_round(), found.difference, found.scenario)
        smallest: Scenario = reduced(spark, answers, found.scenario, kind, _SECONDS_TO_REDUCE)
        if smallest is not found.scenario:
            write(path, self._seed_of_round(), found.difference, smallest)

    def _note_seed(self, kind: str, seed: str) -> None:
        self._differences[kind] += 1
        with (self._folder / "differences.txt").open("a") as file:
            file.write(f"{seed}\t{kind}\n")

    def _seed_of_round(self) -> str:
        return f"{self._seed}-{self._number}-{self._round}"

    def _file_name(self, kind: str) -> str:
        words = "".join(c if c.isalnum() else "_" for c in kind)
        return f"{words}-{self._seed_of_round()}"

    def _save(self, *, is_playing: bool) -> None:
        state = {
            "counts": self._tally.counts,
            "refusals": self._tally.refusals,
            "refused": self._tally.refused,
            "differences": self._differences,
            "round": self._round,
            "seconds": self._seconds,
            "is_playing": is_playing,
            "since": time.time(),
        }
        scratch = self._path.with_suffix(".new")
        scratch.write_text(json.dumps(state))
        os.replace(scratch, self._path)


def show(seed: str) -> None:
    """Plays one round again, by its seed."""
    spark = start_session()
    found = play(seed, spark, Answers(spark), Tally())
    if found is not None:
        print(found.scenario)
        raise found.difference
    print("no difference")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        show(sys.argv[1])
    else:
        folder, seed, number, until = sys.argv[1:]
        Worker(Path(folder), seed, int(number)).work(float(until))


__all__ = ["Difference", "Worker", "show"]
