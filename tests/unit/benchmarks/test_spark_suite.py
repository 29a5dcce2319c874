"""The Spark suite over very little data: its changes are what they say, its counts are Spark's, wrong answers are marked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import everview as ev
from benchmarks import spark as suite
from benchmarks.spark_changes import CHANGED, Workload, prepare, undone
from benchmarks.spark_counters import counting, purposes_of
from benchmarks.spark_measure import Case, Outcome, Plan, crossing, load
from tests.corpus.data import queries, tpch_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = Plan(0.001, ("q12",), (0.01, 0.1), ("recent",), rounds=1, recomputations=1)


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    """Changes of a hundredth and a tenth, recent and scattered."""
    return prepare(tpch_files(TINY.scale), tmp_path_factory.mktemp("states"), TINY.shares)


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows with their weights."""
    columns = table.to_pydict()
    weights = columns.pop("_weight", [1] * len(table))
    total: Counter[tuple[Any, ...]] = Counter()
    for row, weight in zip(zip(*columns.values(), strict=True), weights, strict=True):
        total[row] += weight
    return total


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_leads_from_what_is_loaded_to_its_files(name: str, workload: Workload) -> None:
    """Loaded rows and the change sum up to the rows of the files; nothing is deleted that is not there."""
    loaded = bag(pq.read_table(workload.loaded[name]))
    for change in workload.changes:
        after = bag(pq.read_table(change.files[name]))
        total = loaded.copy()
        total.update(bag(change.rows[name]))
        assert {row: weight for row, weight in total.items() if weight} == after
        total.update(bag(undone(change.rows)[name]))
        assert {row: weight for row, weight in total.items() if weight} == loaded


def test_a_change_is_half_inserts_and_half_deletes_of_whole_orders(workload: Workload) -> None:
    """Its size is its share of all orders, and the lines are those of the orders."""
    count = pq.read_metadata(tpch_files(TINY.scale) / "orders.parquet").num_rows
    for change in workload.changes:
        orders, lines = change.rows["orders"], change.rows["lineitem"]
        weights = orders["_weight"].to_numpy()
        assert len(orders) == pytest.approx(change.share * count, abs=2)
        assert (weights > 0).sum() == (weights < 0).sum()
        for sign in (1, -1):
            own = orders["o_orderkey"].to_numpy()[weights == sign]
            assert set(lines["l_orderkey"].to_numpy()[lines["_weight"].to_numpy() == sign]) == set(own)
    keys = [set(change.rows["orders"]["o_orderkey"].to_numpy()) for change in workload.changes]
    assert keys[0] < keys[1]
    assert keys[2] < keys[3]
    assert keys[1].isdisjoint(keys[3])
    loaded = pq.read_table(workload.loaded["orders"])["o_orderkey"].to_numpy()
    assert (loaded > min(keys[1])).sum() == pytest.approx(len(keys[1]) / 2, abs=1)
    assert (loaded > min(keys[3])).mean() > 0.9


def test_jobs_and_bytes_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A scan is one job that reads about the size of its file; what happens outside is not counted."""
    path = tmp_path / "relations" / "t-4" / "segment.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"a": np.random.default_rng(1).random(200_000), "b": range(200_000)}), path)
    with counting(spark) as counters:
        frame = spark.read.schema("a double, b long").parquet(str(path))
        frame.count()
        with counters.counted() as counted:
            frame.select("a").toArrow()
        frame.count()
        with counters.counted() as nothing:
            pass
    assert counted.jobs == 1
    assert 200_000 * 8 < counted.bytes_read < path.stat().st_size
    assert counted.purposes == {"t (1 columns)": 1}
    assert (nothing.jobs, nothing.bytes_read, nothing.purposes) == (0, 0, {})


def test_jobs_are_explained_by_their_plan() -> None:
    """Broadcasts, writes, and what does not read the database are told apart."""
    scan = "(1) Scan parquet\nOutput [3]: [a, b, c]\nBatched: true\nLocation: InMemoryFileIndex [file:/d/relations/o-3/s-1]\n"
    assert purposes_of(scan, 1) == {"o (3 columns)": 1}
    assert purposes_of(f"BroadcastExchange (7)\n{scan}", 2) == {"broadcast": 1, "o (3 columns)": 1}
    assert purposes_of(f"Execute InsertIntoHadoopFsRelationCommand (4)\n{scan}", 2) == {"o (3 columns) rewritten": 2}
    assert purposes_of(scan.replace("relations", "elsewhere"), 1) == {"other files (3 columns)": 1}
    assert purposes_of("LocalTableScan", 1) == {"rows of the driver": 1}


def test_the_crossing_is_where_the_ratio_is_one() -> None:
    """Interpolated between powers; none where it is not within what was measured."""
    assert crossing([(0.0001, 100.0), (0.01, 10.0), (0.1, 0.1)]) == pytest.approx(0.0316, abs=1e-4)
    assert crossing([(0.01, 0.5), (0.1, 0.1)]) is None
    assert crossing([(0.01, 3.0), (0.1, 1.5)]) is None


@pytest.mark.slow
def test_the_suite_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Every share has both times with right answers; the driver's copies need Spark once, look-ups by executors every time."""
    results = list(suite.measure(spark, TINY))
    measured = [r for r in results if "share" in r.params]
    assert {r.params["answer"] for r in measured} == {"right"}
    for lookups, share in product(TINY.lookups, TINY.shares):
        own = [r for r in measured if (r.params["lookups"], r.params["share"]) == (lookups, share)]
        assert [(r.metric, r.params.get("mode")) for r in own] == [
            ("seconds", "incremental"),
            ("seconds", "recompute"),
            ("ratio_to_spark", None),
        ]
        refresh, recompute, ratio = own
        assert ratio.value == pytest.approx(recompute.value / refresh.value)
        assert refresh.params["refresh"] == "incremental"
        assert recompute.params["bytes_read"] > 1000
        needs_spark = lookups == "executors" or share == TINY.shares[0]
        assert (refresh.params["jobs"] > 0) == (refresh.params["first_jobs"] > 0) == needs_spark
        assert (refresh.params["copied_bytes"] > 1000) == (lookups == "driver")
    said = capsys.readouterr().out
    assert "scale 0.001, with copies at the driver" in said
    assert "scale 0.001, with copies at the executors" in said
    assert str(measured[-1].params["crossing"]) in said


def test_wrong_answers_are_marked(
    spark: SparkSession, workload: Workload, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A view that differs from DuckDB and from Spark over the files is WRONG, with the difference on standard error."""
    stale = replace(workload.changes[1], files=workload.loaded)
    (query,) = (q for q in queries("tpch") if q.name == "q12")
    with (
        counting(spark) as counters,
        ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=1_000_000) as db,
    ):
        load(db, workload, [query])
        case = Case(db, tmp_path / "db", spark, counters, query, TINY)
        found = list(case.outcomes(replace(workload, changes=(stale,))))
    assert isinstance(found[1], Outcome)
    assert (found[0].answer, found[1].answer) == ("right", "WRONG")
    assert "WRONG ANSWER q12, changed" in capsys.readouterr().err
