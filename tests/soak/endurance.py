"""Endurance: random transactions against twenty views at full speed, in cycles that fill the tables and empty them again.

``python -m tests.soak --endurance [--minutes M] [--seed S] [--folder F]``. What is judged, at the end of the run:

- *answers*: in each cycle, when few rows are left, every view equals the reference backend's;
- *floats*: in each cycle, when the tables are full, sums of floats are within 1e-12 (relative) of exactly rounded ones;
- *memory*: with empty tables the process takes no more at the end than it took after the first cycles;
- *speed*: the median processor time of a transaction does not grow from the first third of the cycles to the last.

It prints p50, p99 and the longest latency, and draws them by cycle into ``endurance.png``.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

import everview as ev

TABLES = {
    "orders": "id bigint, customer int, item string, price decimal(12,2), qty int, share double, day date, note string",
    "customers": "id int, region string, limits double",
}
_JOINED = "orders o JOIN customers c ON o.customer = c.id"
VIEWS = {
    "by_item": "SELECT item, sum(price) AS total, count(*) AS n FROM orders GROUP BY item",
    "shares": "SELECT customer, sum(share) AS share, count(*) AS n FROM orders GROUP BY customer",
    "all_shares": "SELECT sum(share) AS share, avg(share) AS mean, count(*) AS n FROM orders",
    "spread": "SELECT item, var_pop(share) AS v, stddev_pop(share) AS sd FROM orders GROUP BY item",
    "by_region": f"SELECT region, sum(price * qty) AS t FROM {_JOINED} GROUP BY region",
    "weighted": f"SELECT region, sum(share * limits) AS t FROM {_JOINED} GROUP BY region",
    "dear": "SELECT id, item, upper(note) AS note, price FROM orders WHERE price > 900",
    "items": "SELECT DISTINCT item, day FROM orders",
    "extremes": "SELECT item, min(price) AS low, max(price) AS high FROM orders GROUP BY item",
    "top": "SELECT id, price FROM orders ORDER BY price DESC, id LIMIT 10",
    "idle": "SELECT c.id, c.region FROM customers c LEFT ANTI JOIN orders o ON o.customer = c.id",
    "active": "SELECT c.region, count(*) AS n FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id) "
    "GROUP BY c.region",
    "outer_sums": "SELECT c.id, count(o.id) AS n FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id",
    "days": "SELECT day, count(DISTINCT item) AS items FROM orders GROUP BY day",
    "ranked": "SELECT item, id, row_number() OVER (PARTITION BY item ORDER BY price, id) AS r FROM orders WHERE qty = 1",
    "above": "SELECT count(*) AS n FROM orders WHERE price > (SELECT avg(price) FROM orders)",
    "unions": "SELECT note AS name, day FROM orders WHERE qty > 7 UNION ALL SELECT region, NULL FROM customers",
    "texts": "SELECT upper(item) AS item, count(*) AS n FROM orders WHERE item LIKE '%1%' GROUP BY upper(item)",
    "totals": "SELECT sum(total) AS total, sum(n) AS n FROM by_item",
    "large": "SELECT item, total FROM by_item WHERE total > 5000",
}
CUSTOMERS, ITEMS = 200, 300
MOST_ROWS = 20_000
FEW_ROWS = 300
WARM_UP = 2
"""Cycles after which memory and speed count."""
FLOATS = 1e-12
MEMORY_GROWTH = (1.1, 32 * 2**20)
"""By what factor, and by how many bytes besides, the process may have grown at the end."""
SLOWER = 1.5
_DAYS = np.datetime64("2024-01-01")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Cycle:
    """What one cycle of filling and emptying has shown."""

    latencies: list[float] = field(default_factory=list)
    worked: list[tuple[int, float]] = field(default_factory=list)
    """Of each transaction its rows and its processor time: where others use the machine too, that says more than the clock."""
    float_error: float = 0.0
    empty_bytes: int = 0

    @property
    def rows(self) -> int:
        """How many rows were changed."""
        return sum(rows for rows, _ in self.worked)

    def seconds_a_row(self) -> float:
        """Processor time, by the row."""
        return sum(seconds for _, seconds in self.worked) / self.rows


@dataclass(slots=True)
class Verdict:
    """The cycles of a run, and what was wrong."""

    cycles: list[Cycle]
    wrong: list[str]

    def report(self) -> str:
        """All of it, for people."""
        latencies = np.array([t for c in self.cycles[1:] for t in c.latencies]) * 1e3
        worked = np.array([t for c in self.cycles[1:] for _, t in c.worked]) * 1e3
        changes = sum(c.rows for c in self.cycles)
        lines = [
            f"{len(self.cycles)} cycles, {len(latencies):,} transactions, {changes:,} changed rows, {len(VIEWS)} views",
            "latency, but for the first cycle, in which kernels may be compiled: "
            f"p50 {np.median(latencies):.2f} ms, p99 {np.quantile(latencies, 0.99):.2f} ms, max {latencies.max():.1f} ms",
            f"of it processor time: p50 {np.median(worked):.2f} ms, p99 {np.quantile(worked, 0.99):.2f} ms, "
            f"max {worked.max():.1f} ms; the rest was waiting for the machine",
            f"largest error of a sum of floats {max(c.float_error for c in self.cycles):.1e}",
            "MB with empty tables: " + " ".join(f"{c.empty_bytes / 2**20:.0f}" for c in self.cycles),
            "processor time of a row by cycle, µs: " + " ".join(f"{c.seconds_a_row() * 1e6:.1f}" for c in self.cycles),
        ]
        return "\n".join([*lines, *(self.wrong or ["nothing wrong"])])


class Endurance:
    """The database, a copy of its rows, and the transactions made from a seed."""

    def __init__(self, db: ev.Database, seed: str, most_rows: int = MOST_ROWS) -> None:
        self._db = db
        self._random = random.Random(seed)
        self._most_rows = most_rows
        self._orders: dict[int, tuple[Any, ...]] = {}
        self._ids: list[int] = []
        self._next = 0
        for name, columns in TABLES.items():
            db.create_table(name, columns, primary_key="id")
        for name, query in VIEWS.items():
            db.create_view(name, query)

    def run(self, seconds: float, tell: Callable[[str], None]) -> Verdict:
        """Whole cycles until the time is up, three at the least."""
        until, cycles, wrong = time.monotonic() + seconds, [], []
        while len(cycles) < WARM_UP + 1 or time.monotonic() < until:
            cycle = Cycle()
            self._fill(cycle, until if len(cycles) > WARM_UP else math.inf)
            cycle.float_error = self._float_error()
            self._drain(cycle, FEW_ROWS)
            wrong += [f"cycle {len(cycles)}: {name} is not what the reference says" for name in self._differing()]
            self._drain(cycle, 0)
            cycle.empty_bytes = _resident()
            cycles.append(cycle)
            tell(
                f"cycle {len(cycles)}: {len(cycle.latencies):,} transactions, {cycle.empty_bytes / 2**20:.0f} MB empty"
            )
        return Verdict(cycles, wrong + judged(cycles))

    def _fill(self, cycle: Cycle, until: float) -> None:
        regions = [(i, f"region {i % 7}", self._random.uniform(-1e6, 1e6)) for i in range(CUSTOMERS)]
        self._apply(cycle, {"customers": regions}, len(regions))
        while len(self._orders) < self._most_rows and time.monotonic() < until:
            size = self._random.choice((1, 1, 10, 100, 1000))
            new = [self._order() for _ in range(size)]
            old = self._taken(self._random.randrange(size // 2 + 1))
            changes = [(*row, 1) for row in new] + [(*row, -1) for row in old]
            self._change(cycle, changes)
            self._orders.update((row[0], row) for row in new)
            self._ids += [row[0] for row in new]

    def _drain(self, cycle: Cycle, left: int) -> None:
        while len(self._orders) > left:
            size = min(len(self._orders) - left, self._random.choice((1, 10, 100, 1000, 1000)))
            self._change(cycle, [(*row, -1) for row in self._taken(size)])
        if left == 0:
            table = self._db.table("customers")
            self._apply(cycle, {"customers": [(*r, -1) for r in table.rows()]}, CUSTOMERS)

    def _change(self, cycle: Cycle, changes: Sequence[tuple[Any, ...]]) -> None:
        self._apply(cycle, {"orders": changes}, len(changes))

    def _apply(self, cycle: Cycle, changes: dict[str, Sequence[tuple[Any, ...]]], rows: int) -> None:
        """One transaction; rows that are longer than their table have a weight at the end."""
        given = {}
        for table, values in changes.items():
            names = self._db.table(table).columns
            wide = [*names, "_weight"] if values and len(values[0]) > len(names) else names
            given[table] = [dict(zip(wide, row, strict=True)) for row in values]
        began, worked = time.perf_counter(), time.thread_time()
        self._db.apply(given)
        cycle.latencies.append(time.perf_counter() - began)
        cycle.worked.append((rows, time.thread_time() - worked))

    def _order(self) -> tuple[Any, ...]:
        self._next += 1
        pick = self._random
        day = (_DAYS + pick.randrange(60)).astype(object)
        share = pick.uniform(-1, 1) * 10.0 ** pick.randrange(-8, 9)
        price = round(pick.uniform(1, 1000) * 100)
        item = f"item {pick.randrange(ITEMS)}"
        note = f"note number {self._next}, which no other order has"  # so that codes of strings come and go
        return (self._next, pick.randrange(CUSTOMERS), item, _cents(price), pick.randrange(1, 9), share, day, note)

    def _taken(self, size: int) -> list[tuple[Any, ...]]:
        """Rows to delete, taken out of the copy."""
        taken = []
        while len(taken) < size and self._ids:
            place = self._random.randrange(len(self._ids))
            self._ids[place], self._ids[-1] = self._ids[-1], self._ids[place]
            taken.append(self._orders.pop(self._ids.pop()))
        return taken

    def _float_error(self) -> float:
        """How far sums of floats are from exactly rounded ones, relative to these."""
        groups: defaultdict[int, list[float]] = defaultdict(list)
        for row in self._orders.values():
            groups[row[1]].append(row[5])
        worst = 0.0
        for customer, share, n in self._db.view("shares").rows():
            values = groups.pop(customer)
            assert n == len(values), customer
            exact = math.fsum(values)
            worst = max(worst, abs(share - exact) / (abs(exact) or 1.0))
        assert not groups
        return worst

    def _differing(self) -> list[str]:
        with ev.connect(backend="reference") as reference:
            for name, columns in TABLES.items():
                reference.create_table(name, columns, primary_key="id").insert(self._db.table(name).to_arrow())
            wrong = []
            for name, query in VIEWS.items():
                theirs = reference.create_view(name, query).rows()
                if not _are_close(self._db.view(name).rows(), theirs):
                    wrong.append(name)
            return wrong


def judged(cycles: Sequence[Cycle]) -> list[str]:
    """What is wrong with the figures of a run, in words."""
    wrong = []
    worst = max(c.float_error for c in cycles)
    if worst > FLOATS:
        wrong.append(f"a sum of floats is off by {worst:.1e}")
    counted = cycles[WARM_UP - 1 :]
    factor, besides = MEMORY_GROWTH
    first, last = counted[0].empty_bytes, counted[-1].empty_bytes
    if last > first * factor + besides:
        wrong.append(f"memory with empty tables grew from {first / 2**20:.0f} to {last / 2**20:.0f} MB")
    third = max(1, len(counted) // 3)
    for digits in (1, 2, 3, 4):  # transactions of one row to nine, of ten to 99, …
        early, late = (_median_time(part, digits) for part in (counted[:third], counted[-third:]))
        if late > SLOWER * early:
            wrong.append(
                f"{10 ** (digits - 1)} rows took {early * 1e3:.2f} ms of processor time, later {late * 1e3:.2f} ms"
            )
    return wrong


def _median_time(cycles: Sequence[Cycle], digits: int) -> float:
    times = [seconds for c in cycles for rows, seconds in c.worked if len(str(rows)) == digits]
    return float(np.median(times)) if times else math.inf


def draw(cycles: Sequence[Cycle], path: Path) -> None:
    """Latencies by cycle, and memory with empty tables."""
    # Imported here: only a run that draws needs it.
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(8, 6), layout="constrained")
    above, below = drawing.subplots(2, 1, sharex=True)
    numbers = range(1, len(cycles) + 1)
    for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        above.plot(numbers, [np.quantile(c.latencies, part) * 1e3 for c in cycles], marker="o", label=name)
    above.set(yscale="log", ylabel="ms a transaction")
    above.legend()
    below.plot(numbers, [c.empty_bytes / 2**20 for c in cycles], marker="o")
    below.set(xlabel="cycle", ylabel="MB with empty tables", ylim=(0, None))
    drawing.savefig(path)


def endure(seconds: float, seed: str, folder: Path) -> int:
    """Runs, prints, draws; the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    with ev.connect(history=0) as db:
        verdict = Endurance(db, seed).run(seconds, lambda line: print(line, flush=True))
    picture = folder / "endurance.png"
    draw(verdict.cycles, picture)
    print(verdict.report())
    print(f"drawn in {picture}")
    return 1 if verdict.wrong else 0


def _cents(number: int) -> Any:
    return Decimal(number).scaleb(-2)


def _are_close(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> bool:
    def order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return sorted(rows, key=lambda r: [repr(round(v, 6)) if isinstance(v, float) else repr(v) for v in r])

    def is_close(a: Any, b: Any) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
        return bool(a == b)

    return len(ours) == len(theirs) and all(
        len(a) == len(b) and all(map(is_close, a, b)) for a, b in zip(order(ours), order(theirs), strict=True)
    )


def _resident() -> int:
    """Bytes of memory that the process takes, after it has given back what it can."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
