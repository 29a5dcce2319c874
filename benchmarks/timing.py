"""Running a stream through a database: what is timed is ``db.apply``, from an Arrow batch in memory to the views current.

A stream may have a budget. A transaction cannot be interrupted, so the budget is looked at between transactions: the one that
exhausts it is still counted, and what was measured is a prefix of the stream that says why it ended. It is looked at every few
milliseconds, not after each transaction: asking the system for the memory makes the next one slower, by some ten microseconds.
"""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import everview as ev
from benchmarks.steps import AnyStep

Seconds: TypeAlias = npt.NDArray[np.float64]

_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a stream may take, and by how many bytes the process may grow meanwhile."""

    seconds: float = math.inf
    bytes: float = math.inf

    def exhausted(self, seconds: float, grown: float) -> str | None:
        """What has been used up, if anything has.

        >>> Budget(seconds=2).exhausted(2.5, 0)
        'after 2 s'
        """
        if seconds >= self.seconds:
            return f"after {self.seconds:g} s"
        return f"at {self.bytes / 1e9:g} GB" if grown >= self.bytes else None


UNBOUNDED = Budget()
SHORT = 1.0
"""A stream of fewer seconds may be run several times: the work of others on a machine can double such a time."""
LOOK_AFTER = 0.005
"""Seconds of transactions after which a budget is looked at."""


@dataclass(frozen=True, slots=True)
class Timed:
    """The times of transactions, one each: by the clock on the wall, and ``worked``, the processor time of this thread.

    Where others use the machine too, the first is more than the second, and the two tell by how much. ``sizes`` are their
    rows, and ``stopped`` says why a stream was not run to its end.
    """

    sizes: npt.NDArray[np.int64]
    seconds: Seconds
    worked: Seconds
    stopped: str | None = None

    @property
    def rows(self) -> int:
        """The rows of all transactions."""
        return int(self.sizes.sum())

    @property
    def rate(self) -> float:
        """Rows a second."""
        return float(self.sizes.sum() / self.seconds.sum())

    @property
    def worked_rate(self) -> float:
        """Rows a second of processor time."""
        return float(self.sizes.sum() / max(1e-9, float(self.worked.sum())))

    @property
    def mean(self) -> float:
        """The mean time of a transaction."""
        return float(self.seconds.mean())

    def percentile(self, percent: float) -> float:
        """A percentile of the times."""
        return float(np.percentile(self.seconds, percent))

    def first(self, count: int) -> Timed:
        """The first transactions alone: streams that ended at different points are compared where both ran."""
        return Timed(self.sizes[:count], self.seconds[:count], self.worked[:count], self.stopped)

    def against(self, other: Timed) -> tuple[float, dict[str, float]]:
        """The rate over that of another, over the transactions that both have run, which must be the same ones.

        Returns:
            The ratio by the wall, and what to tell with it: the ratio ``by_cpu``, and how many transactions it is over.
        """
        common = min(len(self.seconds), len(other.seconds))
        ours, theirs = self.first(common), other.first(common)
        by_cpu = round(ours.worked_rate / theirs.worked_rate, 3)
        return ours.rate / theirs.rate, {"by_cpu": by_cpu, "common_batches": common}


def feed(db: ev.Database, steps: Sequence[AnyStep], budget: Budget = UNBOUNDED) -> Timed:
    """Applies the steps, each a transaction, and times each, until the budget is exhausted.

    Python's garbage of the preparation is collected before, so that no transaction pays for it.
    """
    gc.collect()
    seconds, worked = np.zeros(len(steps)), np.zeros(len(steps))
    clock, processor = time.perf_counter, time.thread_time
    is_bounded = budget != UNBOUNDED
    at_first = resident_bytes() if is_bounded else 0
    spent, looked, done, stopped = 0.0, -math.inf, 0, None
    for number, step in enumerate(steps):
        changes = step.changes
        before, started = processor(), clock()
        db.apply(changes)
        seconds[number], worked[number] = clock() - started, processor() - before
        done += 1
        if is_bounded and done < len(steps):
            spent += seconds[number]
            if spent - looked < LOOK_AFTER:
                continue
            looked = spent
            stopped = budget.exhausted(spent, resident_bytes() - at_first)
            if stopped is not None:
                break
    sizes = np.fromiter((step.rows for step in steps[:done]), dtype=np.int64, count=done)
    return Timed(sizes, seconds[:done], worked[:done], stopped)


def touch_memory(size: int) -> None:
    """Writes to so much memory and gives it back.

    A virtual machine gets memory from its host when it first touches it, which takes many times as long as getting it from
    its own system: 2 ms a megabyte were seen. Who measures second would seem faster.
    """
    np.full(size, 1, dtype=np.uint8)


def resident_bytes() -> int:
    """The memory of this process now; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * _PAGE
    except OSError:
        return 0


def state_bytes(view: ev.View) -> int:
    """Bytes of everything the view keeps; retained tables are not part of it."""
    return sum(view.stats()["bytes"].values())
