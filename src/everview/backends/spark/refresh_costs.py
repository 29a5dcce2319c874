"""What refreshes of a view have cost in this database, and by that the choice of ``refresh="auto"``.

Taking in a change costs, stage by stage, what changes of about as many rows have cost before; computing anew costs what it cost
the last time, for as many more rows as there are now:

    move(n)  =  Σ stages  s(rows changed below the stage)            interpolated between measured sizes
    full(N)  =  Σ stages  seconds of the last full computation * N / rows held then

The cheaper one is done, and measured again. Beyond the largest change measured, a further row costs what it did between the
smallest and the largest, if they differ enough to tell; else, and before anything was measured, a change of the share ``SHARE``
of all rows is taken to cost as much as computing anew. Measurements are forgotten after ``KEPT`` refreshes, so that a choice
that was right once is tried anew. The first ``COLD`` changes of a process are not measured: they load code, and make copies.
"""

from __future__ import annotations

import json
import statistics
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from everview.backends.base import Refresh
from everview.backends.refresh_choice import choose_refresh
from everview.backends.spark.stages import StageProgram, scanned

SHARE: Final = 0.2
"""From which share of changed rows on computing anew is taken to be cheaper, as long as nothing is measured: after a change of
10 %, TPC-H 3, 5 and 10 take 1.5 to 2.9 times as long to be computed anew (docs/benchmarks.md)."""
KEPT: Final = 64
COLD: Final = 2
COSTS: Final = "_costs.json"
"""The file of a database's costs: a cache, which may be lost."""
_TELLING: Final = 1.25
"""A slope is measured if the largest change took so many times as long as the smallest: less is noise."""


@dataclass
class StageCosts:
    """What one stage has cost: (number of the refresh, rows changed, seconds) of changes, and of the last full computation."""

    moved: deque[tuple[int, int, float]] = field(default_factory=lambda: deque(maxlen=KEPT))
    full: tuple[int, float] | None = None
    """Rows held by the tables that the view reads, and seconds."""

    def full_seconds(self, held: int) -> float | None:
        """What computing it anew is expected to take; None if that is not known."""
        return None if self.full is None or not self.full[0] else self.full[1] * held / self.full[0]

    def move_seconds(self, rows: int, held: int, now: int) -> float | None:
        """What a change of so many rows is expected to take; None if nothing is known.

        >>> costs = StageCosts(deque([(1, 10, 0.2), (2, 1000, 1.2)]), (100_000, 4.0))
        >>> [round(costs.move_seconds(n, 100_000, 2), 2) for n in (1, 10, 505, 1000, 2980)]
        [0.2, 0.2, 0.7, 1.2, 3.2]
        """
        if not rows:
            return 0.0
        sizes: dict[int, list[tuple[int, float]]] = {}
        for number, count, seconds in self.moved:
            if now - number < KEPT and count:
                sizes.setdefault(count.bit_length(), []).append((count, seconds))
        points = [
            (statistics.median(n for n, _ in same), statistics.median(s for _, s in same))
            for _, same in sorted(sizes.items())
        ]
        if not points:
            return None
        (least, low), (most, high) = points[0], points[-1]
        slope = (self.full_seconds(held) or 0.0) / (SHARE * held)
        if high > _TELLING * low:
            slope = (high - low) / (most - least)
        return _interpolated([*points, (2 * most + 1, high + slope * (most + 1))], rows)

    def to_json(self) -> list[Any]:
        """For the file of costs."""
        return [list(self.moved), self.full]


def _interpolated(points: list[tuple[float, float]], at: float) -> float:
    """The value between two points, that of the first before it, and beyond the last on the line through the last two."""
    if at <= points[0][0]:
        return points[0][1]
    (a, low), (b, high) = next((pair for pair in pairwise(points) if at <= pair[1][0]), (points[-2], points[-1]))
    return low + (high - low) * (at - a) / (b - a)


@dataclass
class RefreshCosts:
    """The costs of one view's refreshes, by stage."""

    stages: dict[str, StageCosts] = field(default_factory=dict)
    refreshes: int = 0
    _cold: int = COLD

    def note(self, how: str, changed: Mapping[str, int], held: int, seconds: Mapping[str, float]) -> None:
        """Takes a measurement.

        Args:
            how: ``full`` or ``incremental``.
            changed: The rows changed below each stage.
            held: The rows of what the view reads, afterwards.
            seconds: What each stage took.
        """
        self.refreshes += 1
        is_cold = how != "full" and self._cold > 0
        self._cold -= is_cold
        for name, taken in seconds.items():
            costs = self.stages.setdefault(name, StageCosts())
            if how == "full":
                costs.full = (held, taken)
            elif not is_cold:
                costs.moved.append((self.refreshes, changed.get(name, 0), taken))

    def choose(self, changed: Mapping[str, int], rows: int, held: int) -> Refresh:
        """The cheaper way.

        Args:
            changed: The rows changed below each stage.
            rows: The rows changed in all.
            held: The rows of what the view reads, afterwards.
        """
        full = self._sum(self.stages[n].full_seconds(held) if n in self.stages else None for n in changed)
        parts = {
            n: self.stages[n].move_seconds(count, held, self.refreshes) if n in self.stages else None
            for n, count in changed.items()
        }
        move = self._sum(parts.values())
        if full is None or move is None:
            return choose_refresh("auto", rows, held, SHARE)
        dearest = max(parts, key=lambda n: parts[n] or 0.0)
        reason = (
            f"auto: by what refreshes have cost so far, {rows:,} rows changed of {held:,} take {move:.2f} s to take in "
            f"(most of it stage '{dearest}', {parts[dearest] or 0.0:.2f} s), and computing anew {full:.2f} s"
        )
        return Refresh("full" if full < move else "incremental", reason)

    def told(self) -> str:
        """What has been measured, for ``explain``."""
        lines = []
        for name, costs in self.stages.items():
            full = "" if costs.full is None else f"anew {costs.full[1]:.2f} s for {costs.full[0]:,} rows"
            moved = "" if not costs.moved else f"{costs.moved[-1][1]:,} rows changed {costs.moved[-1][2]:.2f} s"
            lines.append(f"  {name}: {', '.join(filter(None, (full, moved)))}")
        return "\n".join(["measured:", *lines]) if lines else "measured: nothing yet"

    @staticmethod
    def _sum(parts: Iterable[float | None]) -> float | None:
        known = list(parts)
        return None if any(p is None for p in known) else sum(p for p in known if p is not None)


def rows_below(program: StageProgram, changed: Mapping[str, int]) -> dict[str, int]:
    """For each stage the rows changed in the tables and views below it."""
    below: dict[str, frozenset[str]] = {}
    for stage in program.stages:
        names = {leaf.table for leaf in scanned(stage.terms)}
        below[stage.name] = frozenset().union(*(below.get(n, frozenset({n})) for n in names))
    return {name: sum(changed.get(n, 0) for n in own) for name, own in below.items()}


def read_costs(path: Path) -> dict[str, RefreshCosts]:
    """The costs of views, as they were when the database was closed; what cannot be read is not known."""
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        return {
            view: RefreshCosts(
                {
                    name: StageCosts(deque((tuple(m) for m in moved), KEPT), None if full is None else tuple(full))
                    for name, (moved, full) in stages.items()
                },
                refreshes,
            )
            for view, (stages, refreshes) in written.items()
        }
    except (OSError, ValueError, TypeError):
        return {}


def write_costs(path: Path, costs: Mapping[str, RefreshCosts]) -> None:
    """Keeps the costs of views for the next process."""
    told = {v: [{n: s.to_json() for n, s in c.stages.items()}, c.refreshes] for v, c in costs.items()}
    with suppress(OSError):  # a disk that is full, or a folder that is gone, is told of where it matters
        path.write_text(json.dumps(told), encoding="utf-8")
