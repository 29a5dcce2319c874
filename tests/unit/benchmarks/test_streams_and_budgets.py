"""What all suites share: streams of inserts, budgets, rates over a common prefix, and fingerprints of bags."""

from __future__ import annotations

import math
from collections import Counter
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from benchmarks.answers import fingerprint
from benchmarks.steps import Step, inserted, round_robin, shuffled
from benchmarks.timing import UNBOUNDED, Budget, Timed, feed, resident_bytes


class Recorder:
    """Stands for a database: remembers what it was given."""

    def __init__(self) -> None:
        self.applied: list[str] = []

    def apply(self, changes: dict[str, pa.RecordBatch]) -> None:
        self.applied += changes


@pytest.fixture
def tables() -> dict[str, pa.Table]:
    """A table of ten rows and one of three."""
    return {"long": pa.table({"a": np.arange(10)}), "short": pa.table({"b": np.arange(3)})}


def test_a_table_that_ends_early_drops_out(tables: dict[str, pa.Table]) -> None:
    """Batches alternate until one table is exhausted, then the other goes on alone."""
    steps = round_robin(tables, 2)
    assert [(s.table, s.rows) for s in steps] == [
        ("long", 2), ("short", 2), ("long", 2), ("short", 1), ("long", 2), ("long", 2), ("long", 2),
    ]  # fmt: skip


def test_what_was_inserted_is_the_prefix(tables: dict[str, pa.Table]) -> None:
    """The tables after some steps hold the rows of those steps; one that had none yet is empty, not whole."""
    schemas = {name: t.schema for name, t in tables.items()}
    after = inserted(round_robin(tables, 4)[:1], schemas)
    assert after["long"].column("a").to_pylist() == [0, 1, 2, 3]
    assert after["short"].num_rows == 0
    assert after["short"].schema == tables["short"].schema


def test_shuffling_keeps_rows_together(tables: dict[str, pa.Table]) -> None:
    """Every row is there once, in another order, and the same one each time."""
    wide = {"t": pa.table({"a": np.arange(100), "b": np.arange(100) * 2})}
    mixed = shuffled(wide, 1)["t"].to_pylist()
    assert all(row["b"] == 2 * row["a"] for row in mixed)
    assert Counter(row["a"] for row in mixed) == Counter(range(100))
    assert mixed != wide["t"].to_pylist()
    assert mixed == shuffled(wide, 1)["t"].to_pylist()


def test_a_budget_stops_a_stream_between_transactions(tables: dict[str, pa.Table]) -> None:
    """The transaction that exhausts the budget counts; those after it are not run, and the reason is told."""
    steps, db = round_robin(tables, 2), Recorder()
    timed = feed(cast(ev.Database, db), steps, Budget(seconds=0))
    assert db.applied == ["long"]
    assert (timed.rows, len(timed.seconds), timed.stopped) == (2, 1, "after 0 s")


def test_a_stream_that_ends_within_its_budget_was_not_stopped(tables: dict[str, pa.Table]) -> None:
    """Neither without a budget nor when the last transaction happens to exhaust it."""
    steps = round_robin(tables, 2)
    for budget in (UNBOUNDED, Budget(seconds=1_000)):
        db = Recorder()
        timed = feed(cast(ev.Database, db), steps, budget)
        assert (timed.rows, len(db.applied), timed.stopped) == (13, 7, None)
    assert feed(cast(ev.Database, Recorder()), steps[:1], Budget(seconds=0)).stopped is None


def test_memory_is_a_budget_too() -> None:
    """Growth beyond the limit is told as such; the process does have a size."""
    assert Budget(bytes=2e9).exhausted(1.0, 3e9) == "at 2 GB"
    assert Budget(bytes=2e9).exhausted(1.0, 1e9) is None
    assert resident_bytes() > 1_000_000


def test_rates_are_compared_over_the_batches_both_have_run() -> None:
    """The rate of a prefix counts its own rows and seconds only."""
    timed = Timed(np.array([10, 10, 100]), np.array([1.0, 1.0, 98.0]), np.zeros(3))
    assert timed.rate == pytest.approx(1.2)
    assert timed.first(2).rate == pytest.approx(10.0)


def test_a_ratio_is_over_what_both_have_run() -> None:
    """By the wall and in processor time; the slow end of the longer stream does not count."""
    ours = Timed(np.array([10, 10, 10]), np.array([1.0, 1.0, 9.0]), np.array([0.5, 0.5, 9.0]))
    theirs = Timed(np.array([10, 10]), np.array([2.0, 4.0]), np.array([2.0, 3.0]), "after 2 s")
    assert ours.against(theirs) == (3.0, {"by_cpu": 5.0, "common_batches": 2})
    assert theirs.against(ours)[1] == {"by_cpu": 0.2, "common_batches": 2}


def test_fingerprints_tell_bags_apart() -> None:
    """The order of rows does not matter, multiplicities and values do."""
    bags = {
        "one": [(1, "a"), (2, "b"), (2, "b")],
        "same": [(2, "b"), (1, "a"), (2, "b")],
        "other": [(1, "a"), (1, "a"), (2, "b")],
    }
    found = {
        name: fingerprint(
            "SELECT * FROM bag", {"bag": pa.table({"x": [r[0] for r in rows], "y": [r[1] for r in rows]})}, ("x", "y")
        )
        for name, rows in bags.items()
    }
    assert found["one"] == found["same"]
    assert found["one"] != found["other"]
    empty = pa.table({"x": pa.array([], pa.int64()), "y": pa.array([], pa.string())})
    assert fingerprint("SELECT * FROM bag", {"bag": empty}, ("x", "y")) == (0, 0)


def test_an_unlimited_budget_is_never_exhausted() -> None:
    """Without limits no amount is too much."""
    assert UNBOUNDED.exhausted(1e9, 1e18) is None
    assert math.isinf(UNBOUNDED.seconds)
    assert Step("t", pa.record_batch({"a": [1, 2]})).rows == 2
