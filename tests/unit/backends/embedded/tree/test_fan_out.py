"""A trigger that pairs a row with many entries makes some pairs at a time: the answers are Spark's, the memory is bounded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from everview.backends.embedded.tree.instructions import Repeat
from everview.backends.embedded.tree.layout import PAIRS_AT_ONCE
from everview.relational.column_names import WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 400
TREES = {
    "few groups": "SELECT r.g, s.g AS h, count(*) AS n, sum(r.x) AS x FROM r JOIN s ON r.k = s.k GROUP BY r.g, s.g",
    "many groups": "SELECT r.id, s.x AS h, sum(r.f * s.f) AS x, avg(s.f) AS f FROM r JOIN s ON r.k = s.k GROUP BY r.id, s.x",
    "each with each": "SELECT r.g, count(*) AS n, sum(s.f) AS f FROM r JOIN s ON r.x < s.x GROUP BY r.g",
    "two of them": "SELECT r.g, count(*) AS n, sum(s.x) AS x FROM r JOIN s ON r.k = s.k JOIN t ON s.g = t.g GROUP BY r.g",
    "triangle": "SELECT count(*) AS n, sum(r.x) AS x FROM r JOIN s ON r.k = s.k JOIN t ON t.g = s.id AND t.k = r.id",
}
JOINS = {
    "listed": "SELECT r.id, s.id AS i, t.x FROM r JOIN s ON r.k = s.k JOIN t ON t.g = s.id AND t.k = r.id",
    "summed later": "SELECT count(*) AS n, sum(r.x * s.x) AS x FROM r JOIN s ON r.k = s.k",
    "within bounds": "SELECT r.id, s.id AS i FROM r JOIN s ON r.k = s.k AND r.x < s.x AND r.f * s.f > 90",
    "without a partner": "SELECT r.id FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE r.k = s.k AND r.x + s.x > 190)",
}


def rows(seed: int) -> pa.Table:
    """Half of the rows have one key."""
    random = np.random.default_rng(seed)
    keys = np.where(np.arange(ROWS) % 2 == 0, 0, random.integers(0, 50, ROWS))
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS), pa.int32()),
            "k": pa.array(keys, pa.int32()),
            "g": pa.array(random.integers(0, 6, ROWS), pa.int32()),
            "x": pa.array(random.integers(-100, 100, ROWS), pa.int64()),
            "f": random.integers(-40, 40, ROWS) / 4,
        }
    )


def change_and_verify(db: ev.Database) -> None:
    """Inserts and deletes, so that each table meets many rows of the others."""
    given = {table: rows(i) for i, table in enumerate("rst")}
    for table in "rst":
        db.table(table).insert(given[table])
    db.verify()
    minus = pa.array(np.full(150, -1, dtype=np.int64))
    db.apply({table: given[table].slice(0, 150).append_column(WEIGHT, minus) for table in "ts"})
    for table in "srt":
        db.table(table).delete(given[table].slice(200))
    db.verify()


@pytest.fixture
def db(spark: SparkSession) -> Iterator[ev.Database]:
    """Three tables."""
    with ev.connect(spark=spark) as database:
        for table in "rst":
            database.create_table(table, "id int, k int, g int, x bigint, f double")
        yield database


@pytest.mark.parametrize("name", TREES)
def test_many_pairs_are_summed_in_turns(db: ev.Database, name: str) -> None:
    """A view tree meets more pairs than it makes at once."""
    assert (ROWS // 2) ** 2 > 2 * PAIRS_AT_ONCE
    view = db.create_view("v", TREES[name])
    assert Repeat.name in view.explain(mode="code")
    change_and_verify(db)


@pytest.mark.slow
def test_many_pairs_are_summed_in_turns_for_several_views(db: ev.Database) -> None:
    """The same for trees that share views, and for joins that are no trees."""
    for i, query in enumerate([*TREES.values(), *JOINS.values()]):
        db.create_view(f"v{i}", query)
    change_and_verify(db)


PROGRAM = """
import resource, sys
import numpy as np, pyarrow as pa
import everview as ev

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

which, count = sys.argv[1], int(sys.argv[2])
db = ev.connect()

if which == "triangle":
    def hub(one, other):
        def rows(size):
            zeros, all_ = np.zeros(size // 2, dtype=np.int32), np.arange(size // 2, dtype=np.int32)
            return pa.table({one: np.concatenate([zeros, all_]), other: np.concatenate([all_, zeros])})
        return rows
    tables = {"r": hub("a", "b"), "s": hub("b", "c"), "t": hub("c", "a")}
    for name, (one, other) in {"r": "ab", "s": "bc", "t": "ca"}.items():
        db.create_table(name, f"{one} INT, {other} INT")
    sql = "SELECT count(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND t.a = r.a"
else:
    def bids(size):
        random = np.random.default_rng(size)
        price, volume = random.integers(1, 10000, size).astype(float), random.integers(1, 100, size).astype(float)
        return pa.table({"price": price, "volume": volume})
    tables = {"bids": bids}
    db.create_table("bids", "price DOUBLE, volume DOUBLE")
    sql = '''SELECT SUM(b1.price * b1.volume) AS vwap FROM bids b1 WHERE 0.25 * (SELECT SUM(b3.volume) FROM bids b3) >
             (SELECT SUM(b2.volume) FROM bids b2 WHERE b2.price > b1.price)'''
view = db.create_view("v", sql)
for name in tables:
    db.table(name).insert(tables[name](100))
before = peak()
for name in tables:
    db.table(name).insert(tables[name](count))
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("which", "count"), [("triangle", 10_000), ("vwap", 3_000)])
def test_memory_follows_the_rows_not_the_pairs(which: str, count: int) -> None:
    """A hub of 10,000 rows a table has 25 million pairs, which took 3 GB; 3,000 bids have 9 million."""
    command = [sys.executable, "-c", PROGRAM, which, str(count)]
    grown = int(subprocess.check_output(command, text=True, timeout=600).split()[-1])
    assert grown < 150, f"the peak grew by {grown} MB"
