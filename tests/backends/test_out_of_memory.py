"""A transaction that gets no memory, at any point, changes nothing and says so: as if each allocation failed in turn."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "tree": "SELECT r.g, count(*) AS n, sum(s.x) AS x FROM r JOIN s ON r.k = s.k GROUP BY r.g",
    "triangle": "SELECT count(*) AS n FROM r JOIN s ON r.k = s.k JOIN t ON s.g = t.g AND r.g = t.k",
    "listed": "SELECT r.id, s.id AS i, t.x FROM r JOIN s ON r.k = s.k JOIN t ON s.g = t.g AND t.x = r.x",
    "joined": "SELECT r.id, s.id AS i FROM r JOIN s ON r.k = s.k AND r.x < s.x",
    "unmatched": "SELECT r.id, r.k FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE r.k = s.k)",
    "outer_joined": "SELECT r.id, s.x FROM r LEFT JOIN s ON r.id = s.id AND r.x <= s.x",
    "grouped": "SELECT k % 7 AS m, count(DISTINCT g) AS d, max(x) AS x, avg(x) AS a FROM r GROUP BY k % 7",
    "ranked": "SELECT id, row_number() OVER (PARTITION BY g ORDER BY x, id) AS n FROM r",
    "top": "SELECT id, x FROM r ORDER BY x DESC, id LIMIT 5",
    "difference": "SELECT k FROM r EXCEPT SELECT k FROM s",
}
ALLOCATIONS = (
    "empty",
    "zeros",
    "ones",
    "full",
    "concatenate",
    "arange",
    "repeat",
    "stack",
    "zeros_like",
    "flatnonzero",
)


class Failing:
    """Makes NumPy fail at one of its allocations."""

    def __init__(self) -> None:
        self.left = -1

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, until its turn has come."""

        def allocate(*args: Any, **kwargs: Any) -> Any:
            if self.left == 0:
                self.left = -1
                raise MemoryError
            self.left -= self.left > 0
            return function(*args, **kwargs)

        return allocate


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[Failing]:
    """Fails once, after so many allocations."""
    state = Failing()
    with monkeypatch.context() as patch:
        for name in ALLOCATIONS:
            patch.setattr(np, name, state.wrap(getattr(np, name)))
        state.left = after
        yield state


def rows(start: int, count: int, spread: int) -> list[tuple[int, int, int, int]]:
    """Rows of a table, with other keys for another start."""
    return [(i, i % spread, i % 5, (i * 7919) % 101) for i in range(start, start + count)]


def contents(db: ev.Database) -> dict[str, list[Any]]:
    """The rows of all tables and views."""
    kept: dict[str, Iterable[Any]] = {t: db.table(t) for t in "rst"} | {v: db.view(v) for v in VIEWS}
    return {name: sorted(rows, key=repr) for name, rows in kept.items()}


def test_each_allocation_may_fail(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever allocation fails, the transaction is rejected whole, and works when it is tried again."""
    steps: list[dict[str, Any]] = [
        {"r": rows(30, 300, 90)},
        {"s": rows(20, 200, 70)},
        {"r": rows(400, 100, 300), "t": rows(300, 90, 5)},
    ]
    with contextlib.ExitStack() as stack:
        db, twin, first = (stack.enter_context(ev.connect(spark=spark)) for _ in range(3))
        for one in (db, twin, first):
            for table in "rst":
                one.create_table(table, "id int, k int, g int, x int")
            for name, query in VIEWS.items():
                one.create_view(name, query)
            one.apply({"r": rows(0, 30, 11), "s": rows(0, 20, 9), "t": rows(0, 50, 5)})
        for step in steps:
            first.apply(step)  # every kernel has been loaded: it is not Numba whose allocations fail
        for step in steps:
            before = contents(twin)
            attempts = 0
            messages: set[str] = set()
            while True:
                with failing(monkeypatch, attempts):
                    try:
                        db.apply(step)
                        break
                    except ev.OutOfMemory as error:
                        messages.add(error.message)
                assert contents(db) == before, f"after allocation {attempts}"
                attempts += 1
            assert attempts > 20
            assert all("nothing has been changed" in m for m in messages)
            assert any("view '" in m for m in messages)
            twin.apply(step)
            assert contents(db) == contents(twin)
