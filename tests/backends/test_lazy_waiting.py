"""What waits for a lazy view is consolidated as it comes: a queue of rows that come and go leaves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import everview as ev
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.propagation import FEW_WAITING, MOST_WAITING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def waiting(db: ev.Database) -> tuple[int, int]:
    """How many rows wait, in how many batches."""
    backend = db._core.backend
    assert isinstance(backend, EmbeddedBackend)
    held = [d for w in backend._propagation._waiting.values() for d in w.deltas]
    return sum(len(d) for d in held), len(held)


def test_rows_that_come_and_go_do_not_wait(spark: SparkSession) -> None:
    """4,000 inserts, each with its delete, and then one row that stays."""
    with ev.connect(spark=spark) as db:
        db.create_table("t", "k int, x int")
        view = db.create_view("v", "SELECT k, sum(x) AS x FROM t GROUP BY k", lazy=True)
        table = db.table("t")
        for i in range(4000):
            table.insert([(i, 1)])
            table.delete([(i, 1)])
            rows, batches = waiting(db)
            assert rows <= FEW_WAITING + MOST_WAITING
            assert batches <= MOST_WAITING
        table.insert([(7, 3)])
        assert list(view) == [(7, 3)]


def test_rows_that_stay_wait_once(spark: SparkSession) -> None:
    """Rows of all transactions are there when the view is read, also those that large transactions bring."""
    with ev.connect(spark=spark) as db:
        db.create_table("t", "k int, x int")
        view = db.create_view("v", "SELECT k, sum(x) AS x FROM t GROUP BY k", lazy=True)
        table = db.table("t")
        for i in range(300):
            table.insert([(k, i) for k in range(i % 40)])
        for _ in range(20):
            table.insert([(1, x) for x in range(1000)])
            table.delete([(1, x) for x in range(1000)])
        assert waiting(db)[0] <= 2 * sum(i % 40 for i in range(300)) + FEW_WAITING + 2000
        wanted = [(k, sum(i for i in range(300) if k < i % 40)) for k in range(39)]
        assert sorted(view) == wanted
