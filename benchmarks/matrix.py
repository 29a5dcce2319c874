"""The product of three n × n matrices under updates of the one in the middle (F-IVM, section 9.7, figure 29).

    everview bench matrix [--quick]

*row*: one row of A2 changes, for growing n. *rank*: A2 changes by U · Vᵀ of rank r, for one n and growing r. Strategies:

- ``factorized``: ``chain.update`` of a chain in arrays, over tables that keep no rows. Timed is a run of updates and one
  read of the product at the end, since part of their work waits for it.
- ``factorized, read``: the same, and the product is read after each update.
- ``rows`` (*row* only): the same change as n rows through ``db.apply``, as any client would send it.
- ``cells`` (*row*, small n only): the same rows into a chain with ``storage="sparse"``, a view tree over hash maps, which is
  what the paper's DBToaster runtime does.
- ``first_order``: NumPy, δA = (A1 · δA2) · A3 with δA2 as a whole matrix; where δA2 is one row, A1 · δA2 is an outer product.
- ``recompute``: NumPy, A1 · A2 · A3 again. Both do not depend on the rank, and are measured once for all ranks.

All of them multiply with the same BLAS in the same process, on one thread. Every product is compared with NumPy's at the
end. ``exponent`` is the slope of a strategy's time over n; the crossing is where an update of rank r takes as long as
multiplying again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.matrix_measure import ByHand, Maintained, Matrix, random_matrices, timed, unit
from everview.cli.bench_results import Figure

SIZES, QUICK_SIZES = (256, 512, 1024, 2048, 4096), (128, 256, 512, 1024)
RANK_SIZE, QUICK_RANK_SIZE = 4096, 512
CELLS_UP_TO = 256
"""The largest n for chains in hash maps."""
SECONDS, QUICK_SECONDS = 5.0, 0.5
"""How long a strategy is measured at one size, at least for one update."""


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints what grows how, and where updates stop to pay."""
    with threadpool_limits(limits=1):
        if quick:
            yield from measure(QUICK_SIZES, QUICK_RANK_SIZE, QUICK_SECONDS)
        else:
            yield from measure(SIZES, RANK_SIZE, SECONDS)


def measure(sizes: Sequence[int], rank_size: int, seconds: float) -> Iterator[Figure]:
    """The results for rows at these sizes, and for ranks at one."""
    console = Console(width=max(Console().width, 120))
    rows: dict[str, dict[int, float]] = {}
    for n in sizes:
        for strategy, taken in _rows_at(n, seconds):
            rows.setdefault(strategy, {})[n] = taken
            yield Figure("A1 A2 A3", "seconds", taken, "s", {"what": "row of A2", "strategy": strategy, "n": n})
        ratio = rows["recompute"][n] / rows["factorized"][n]
        yield Figure("A1 A2 A3", "ratio_to_recompute", ratio, "x", {"what": "row of A2", "n": n})
        ratio = rows["first_order"][n] / rows["factorized"][n]
        yield Figure("A1 A2 A3", "ratio_to_first_order", ratio, "x", {"what": "row of A2", "n": n})
    for strategy, points in rows.items():
        if len(points) > 2:
            slope = float(np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0])
            yield Figure("A1 A2 A3", "exponent", slope, "", {"what": "row of A2", "strategy": strategy})
    console.print(_table("Milliseconds for one row of A2, by n", "n", rows))
    ranks: dict[str, dict[int, float]] = {}
    for rank, strategy, taken in _ranks_at(rank_size, seconds):
        ranks.setdefault(strategy, {})[rank] = taken
        params = {"what": "rank of δA2", "strategy": strategy, "rank": rank, "n": rank_size}
        yield Figure("A1 A2 A3", "seconds", taken, "s", params)
    console.print(_table(f"Milliseconds for an update of rank r, n = {rank_size}", "rank", ranks))
    again = float(np.median(list(ranks["recompute"].values())))
    for strategy in ("factorized", "factorized, read"):
        crossing = crossing_point(ranks[strategy], again)
        shown = f"rank {crossing:,.0f}" if crossing is not None else f"no rank up to {max(ranks[strategy])}"
        console.print(f"{strategy}: as long as multiplying again at {shown}, n = {rank_size}")
        if crossing is not None:
            params = {"what": "crossing rank", "strategy": strategy, "n": rank_size, "rank": round(crossing)}
            yield Figure("A1 A2 A3", "ratio_to_recompute", 1.0, "x", params)


def crossing_point(points: dict[int, float], level: float) -> float | None:
    """Where a line through points, straight in logarithms, first reaches a level; None if it stays below.

    >>> crossing_point({1: 1.0, 4: 4.0}, 2.0)
    2.0
    >>> crossing_point({1: 1.0, 4: 4.0}, 8.0) is None
    True
    """
    before: tuple[int, float] | None = None
    for rank, taken in sorted(points.items()):
        if taken >= level:
            if before is None:
                return float(rank)
            at, low = before
            part = (np.log(level) - np.log(low)) / (np.log(taken) - np.log(low))
            return round(float(np.exp(np.log(at) + part * (np.log(rank) - np.log(at)))), 6)
        before = rank, taken
    return None


def _rows_at(n: int, seconds: float) -> Iterator[tuple[str, float]]:
    """The time for one row of A2, by strategy."""
    random, start = np.random.default_rng(n), random_matrices(n)

    def row() -> tuple[int, Matrix]:
        return int(random.integers(n)), random.normal(size=n)

    def by_factors(kept: Maintained) -> None:
        k, values = row()
        kept.update(unit(n, k), values)

    def by_rows(kept: Maintained) -> None:
        kept.add_row(*row())

    def read_after(kept: Maintained) -> None:
        by_factors(kept)
        kept.chain.to_numpy()

    ways = {"factorized": by_factors, "factorized, read": read_after, "rows": by_rows}
    dense = Maintained(start, "dense")
    for strategy, way in ways.items():
        yield strategy, _maintained(dense, way, seconds)
    if n <= CELLS_UP_TO:
        yield "cells", _maintained(Maintained(start, "sparse"), by_rows, seconds)
    hand = ByHand(start)
    yield "first_order", timed(lambda: hand.first_order_row(*row()), seconds)
    yield "recompute", timed(lambda: hand.recompute_row(*row()), seconds)


def _maintained(kept: Maintained, way: Callable[[Maintained], None], seconds: float) -> float:
    taken = timed(lambda: way(kept), seconds, finish=kept.chain.to_numpy)
    kept.check()
    return taken


def _ranks_at(n: int, seconds: float) -> Iterator[tuple[int, str, float]]:
    """The time for an update of A2, by rank and strategy."""
    start, random = random_matrices(n), np.random.default_rng(n)
    kept, hand = Maintained(start, "dense"), ByHand(start)
    whole = random.normal(size=(n, n))  # by hand δA2 is a whole matrix, whatever its rank
    by_hand = {
        "first_order": timed(lambda: hand.first_order(whole), seconds),
        "recompute": timed(lambda: hand.recompute(whole), seconds),
    }
    rank = 1
    while rank <= n:
        yield from ((rank, strategy, taken) for strategy, taken in _rank_at(kept, random, rank, seconds))
        yield from ((rank, strategy, taken) for strategy, taken in by_hand.items())
        rank *= 4


def _rank_at(kept: Maintained, random: np.random.Generator, rank: int, seconds: float) -> Iterator[tuple[str, float]]:
    n = len(kept.middle)
    u, v = random.normal(size=(n, rank)), random.normal(size=(n, rank))

    def update(kept: Maintained) -> None:
        kept.update(u, v)

    def read_after(kept: Maintained) -> None:
        kept.update(u, v)
        kept.chain.to_numpy()

    yield "factorized", _maintained(kept, update, seconds)
    yield "factorized, read", _maintained(kept, read_after, seconds)


def _table(title: str, size: str, found: dict[str, dict[int, float]]) -> Table:
    table = Table(title=title, title_justify="left")
    sizes = sorted({s for points in found.values() for s in points})
    for heading in ("strategy", *(f"{size} {s}" for s in sizes)):
        table.add_column(heading, justify="left" if heading == "strategy" else "right")
    for strategy, points in found.items():
        table.add_row(strategy, *(f"{points[s] * 1e3:,.2f}" if s in points else "" for s in sizes))
    return table
