"""How much the triangle suite measures."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.timing import Budget


@dataclass(frozen=True, slots=True)
class TriangleSizes:
    """The numbers of edges, and the budgets of a load and of the updates of one kind."""

    rows: tuple[int, ...]
    updates: int
    epsilon_rows: int
    epsilons: tuple[float, ...]
    scratch: tuple[int, ...]
    load: Budget
    timed: Budget


FULL = TriangleSizes(
    (10_000, 100_000, 1_000_000, 10_000_000),
    400,
    100_000,
    tuple(i / 10 for i in range(11)),
    (30_000, 100_000, 300_000, 1_000_000),
    Budget(seconds=1_200, bytes=9e9),
    Budget(seconds=20),
)
QUICK = TriangleSizes(
    (4_000, 20_000, 100_000),
    40,
    6_000,
    (0.0, 0.25, 0.5, 0.75, 1.0),
    (3_000, 12_000),
    Budget(seconds=3, bytes=2e9),
    Budget(seconds=0.6),
)
