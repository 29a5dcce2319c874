"""What the Spark backend decides by cost: computing a view anew, and who merges segments; and that it says so."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev
from everview.backends.spark import refresh_costs
from everview.backends.spark.backend import SparkBackend
from tests.spark import killing
from tests.spark.replay import refuse_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RATIOS = "SELECT a.k, a.x / b.y AS ratio FROM a JOIN b ON a.k = b.k"


@pytest.fixture
def db(spark: SparkSession) -> Iterator[ev.Database]:
    """An empty database on the Spark backend."""
    with ev.connect(backend="spark", spark=spark.newSession()) as database:
        yield database


def test_a_large_batch_is_computed_anew(db: ev.Database) -> None:
    """With refresh='auto' the commit says how many rows decided it, one way and the other."""
    table = db.create_table("t", "k int, x int")
    view = db.create_view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k", refresh="auto")
    first = table.insert([(i % 10, i) for i in range(100)])
    assert first.refreshed["v"].how == "full"
    small = table.insert([(1, 1)])
    assert small.refreshed["v"].how == "incremental"
    assert small.refreshed["v"].reason == "auto: 1 rows changed, 101 held, and computing anew pays above 20"
    large = table.insert([(k, 0) for k in range(10)] * 15)
    assert large.refreshed["v"].how == "full"
    assert large.refreshed["v"].reason == "auto: 150 rows changed, 251 held, and computing anew pays above 50"
    assert large.changes.get("v") is None or large.changes["v"].num_rows == 0, "zeros move no sum"
    assert dict(view.rows()) == {k: sum(range(k, 100, 10)) + (1 if k == 1 else 0) for k in range(10)}
    assert "computed anew where that is cheaper, by what refreshes have cost, stage by stage" in view.explain()
    assert "by a transaction that changes more than 20% of the rows it reads" in view.explain()
    assert "v: anew" in view.explain()


def test_measured_costs_decide(spark: SparkSession, tmp_path: Path) -> None:
    """Once refreshes have been measured, the cheaper way is taken, said with its seconds, and known to the next process."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark) as db:
        table = db.create_table("t", "k int, x int")
        table.insert([(i % 10, i) for i in range(100)])
        db.create_view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k", refresh="auto")
        for i in range(refresh_costs.COLD + 1):
            assert table.insert([(i, 1)]).refreshed["v"].how == "incremental"
        backend = db._core.backend
        assert isinstance(backend, SparkBackend)
        (costs,) = backend._views["v"].costs.stages.values()
        assert len(costs.moved) == 1, "cold refreshes are not measured"
        costs.moved[0], costs.full = (costs.moved[0][0], 1, 2.0), (100, 1.0)
    with ev.connect(tmp_path / "db", backend="spark", spark=spark) as db:
        dear = db.table("t").insert([(1, 1)]).refreshed["v"]
        assert dear.how == "full"
        assert dear.reason == (
            "auto: by what refreshes have cost so far, 1 rows changed of 104 take 2.00 s to take in "
            "(most of it stage 'v', 2.00 s), and computing anew 1.04 s"
        )
        backend = db._core.backend
        assert isinstance(backend, SparkBackend)
        (costs,) = backend._views["v"].costs.stages.values()
        assert costs.full is not None
        assert costs.full[0] == 104, "what was computed anew was measured"
        costs.full = (104, 60.0)
        assert db.table("t").insert([(1, 1)]).refreshed["v"].how == "incremental"
        db.verify("v")


def test_strictly_incremental_means_it(db: ev.Database) -> None:
    """However large the batch."""
    table = db.create_table("t", "x int")
    view = db.create_view("v", "SELECT sum(x) AS s FROM t", refresh="incremental_strict")
    assert table.insert([(i,) for i in range(100)]).refreshed["v"].how == "incremental"
    assert view.rows() == [(4950,)]
    assert "a transaction that would need a recomputation is rejected" in view.explain()


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_delta_that_cannot_be_computed(first: str, db: ev.Database) -> None:
    """Rows that are never there together may meet in a delta: then the view is computed anew, or, if strict, nothing is done.

    A row of one table goes in the transaction in which a row comes to the other that it cannot be divided by.
    """
    rows = {"a": [(1, 10)], "b": [(1, 0)]}
    last = "b" if first == "a" else "a"
    for name in ("a", "b"):
        db.create_table(name, f"k int, {'x' if name == 'a' else 'y'} int")
    db.table(first).insert(rows[first])
    view = db.create_view("v", _RATIOS)
    with db.transaction() as tx:
        tx.delete(first, rows[first])
        tx.insert(last, rows[last])
    assert tx.commit.refreshed["v"].how in ("incremental", "full")
    if tx.commit.refreshed["v"].how == "full":
        assert tx.commit.refreshed["v"].reason == "the delta met a row that cannot be computed (DIVIDE_BY_ZERO)"
    assert view.rows() == []


def test_a_strict_view_rejects_what_only_a_recomputation_could_do(db: ev.Database) -> None:
    """One of the two orders must meet the impossible pair, and then nothing has changed."""
    rejected = 0
    for number, first in enumerate(("a", "b")):
        left, right = f"a{number}", f"b{number}"
        rows = {left: [(1, 10)], right: [(1, 0)]}
        name, other = (left, right) if first == "a" else (right, left)
        db.create_table(left, "k int, x int")
        db.create_table(right, "k int, y int")
        db.table(name).insert(rows[name])
        query = f"SELECT {left}.x / {right}.y AS ratio FROM {left} JOIN {right} USING (k)"
        view = db.create_view(f"v{number}", query, refresh="incremental_strict")
        version = db.version
        try:
            with db.transaction() as tx:
                tx.delete(name, rows[name])
                tx.insert(other, rows[other])
        except ev.EvaluationError:
            rejected += 1
            assert (db.version, db.table(name).rows(), db.table(other).rows()) == (version, rows[name], [])
        assert view.rows() == []
    assert rejected >= 1


def test_spark_forgets_the_rows_of_a_transaction(spark: SparkSession) -> None:
    """A view that is computed anew by Spark leaves no temporary view behind, but those of files."""
    with ev.connect(backend="spark", spark=spark, local_rows=10) as db:
        table = db.create_table("t", "k int, x int")
        table.insert([(i % 10, i) for i in range(100)])
        db.create_view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k", refresh="full")
        assert table.insert([(1, 1), (2, 5)]).refreshed["v"].how == "full"
        db.verify()
        backend = db._core.backend
        assert isinstance(backend, SparkBackend)
        views = {row.viewName for row in backend._engine.session.sql("SHOW VIEWS").collect()}
        assert views == set(backend._engine._frames.values())


def _written_by_executors(path: Path) -> list[int]:
    """For each compaction in the commit log, how many relations have segments that came from executors."""
    records = [json.loads(file.read_text()) for file in sorted((path / "_commits").glob("*.json"))]
    added = [[m["add"] for m in r["moves"].values() if m["add"]] for r in records if r["kind"] == "compact"]
    return [sum(all("/part-" in s["path"] for s in segments) for segments in moves) for moves in added]


@pytest.mark.parametrize("upkeep", ["by itself", pytest.param("vacuum", marks=pytest.mark.slow)])
def test_compaction_by_executors(upkeep: str, spark: SparkSession, tmp_path: Path) -> None:
    """Segments that are too large for the driver are merged by Spark, and rows, payloads and deltas stay the same."""
    killing.create(tmp_path)

    def opened(local_rows: int, session: Callable[[], SparkSession]) -> SparkBackend:
        return SparkBackend(str(tmp_path), session, local_rows=local_rows)

    batches = 7 if upkeep == "by itself" else 3
    backend = opened(200_000, refuse_spark)
    for number in range(batches):
        killing.apply_batch(backend, number)
    backend.close()
    assert _written_by_executors(tmp_path) == []
    backend = opened(0, lambda: spark)
    before = [d.version for d in backend.changes("totals", 1)]
    if upkeep == "vacuum":
        assert backend.vacuum() > 0
    else:
        for number in (7, 8):
            killing.apply_batch(backend, number)
        assert [d.version for d in backend.changes("totals", 1)][: len(before)] == before
        assert _written_by_executors(tmp_path) == [1, 1], "one relation a transaction"
    assert any(_written_by_executors(tmp_path))
    done = batches if upkeep == "vacuum" else 9
    assert killing.check(backend, done) == done
    backend.close()
    backend = opened(200_000, refuse_spark)
    assert killing.check(backend, done) == done
    killing.apply_batch(backend, done)
    assert killing.check(backend, done + 1) == done + 1
    backend.close()


def test_plans_are_compiled_once(db: ev.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction like the one before it runs no rewrite rule: its stages' plans and their programs are known."""
    db.create_table("a", "k int, x int, y int")
    db.create_table("b", "k int, z int", primary_key="k")
    db.create_view("sums", "SELECT b.z, sum(a.x) AS s FROM a JOIN b ON a.k = b.k GROUP BY b.z")
    db.create_view("most", "SELECT k, max(x) AS m FROM a GROUP BY k")
    db.create_view("first", "SELECT k, x FROM a ORDER BY x DESC, k LIMIT 3")
    db.create_view("over", "SELECT z, count(*) AS n FROM sums JOIN b USING (z) GROUP BY z")
    db.apply({"a": [(i % 10, i, 1) for i in range(40)], "b": [(i, i % 3) for i in range(40)]})
    ran: list[str] = []

    def watched(module: str, name: str) -> None:
        rule = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(f"{module}.{name}", lambda *given: ran.append(name) or rule(*given))

    watched("everview.backends.embedded.graph", "run_rules")
    watched("everview.backends.spark.stage_plans", "prune_columns")
    watched("everview.backends.spark.maintain", "prune_columns")
    for number in range(3):
        ran.clear()
        db.apply({"a": [(number, 100 + number, 2)], "b": [(100 + number, 1)]})
    assert ran == []
    db.verify()
