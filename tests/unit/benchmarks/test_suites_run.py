"""The suites over very little data: every trial has right results or says why it was skipped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from rich.console import Console

import everview as ev
from benchmarks import classes, doors, favorita, housing, paths, retailer, sql, triangle
from benchmarks.classes_data import CLASSES, QueryClass
from benchmarks.classes_measure import Sizes
from benchmarks.joins_anchors import anchor_of, comparison
from benchmarks.joins_measure import JOINS as JOIN_WAYS
from benchmarks.joins_measure import STRATEGIES, Plan
from benchmarks.steps import round_robin
from benchmarks.timing import Budget
from benchmarks.trial import Outcome, Skipped, Trial, attempt
from benchmarks.triangle_sizes import TriangleSizes
from everview.cli.bench_plot import plot
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT = Budget(seconds=0.3, bytes=1e9)
TINY = Plan(SHORT, SHORT, orders=("shuffled",), modes=("strict",), batch=100)

JOINS: dict[str, Callable[[SparkSession], Iterator[Figure]]] = {
    "housing": lambda spark: housing.measure(spark, TINY, 20, 4),
    "retailer": lambda spark: retailer.measure(spark, TINY, 0.001),
    "favorita": lambda spark: favorita.measure(spark, TINY, 0.001),
}


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["housing", "retailer", "favorita"])
def test_join_suites_run(suite: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Sums and joins have right rates and sizes, each strategy and representation has some or was skipped aloud."""
    results = list(JOINS[suite](spark))
    assert {r.params["answer"] for r in results} == {"right"}
    assert {"tuples_per_second", "state_bytes", "seconds"} <= {r.metric for r in results}
    said = " ".join(capsys.readouterr().err.split())
    for strategy in STRATEGIES:
        own = {"strategy": strategy}
        assert f"SKIPPED sum strategy={strategy} " in said or any(own.items() <= r.params.items() for r in results)
    for representation, strategy in JOIN_WAYS:
        own = {"representation": representation, "strategy": strategy}
        measured = any(own.items() <= r.params.items() for r in results)
        assert measured or f"join strategy={strategy} representation={representation} " in said
    assert any(r.case == "sum, facts only" for r in results) == (suite != "housing")


@pytest.mark.slow
def test_functions_the_clock_and_closures_run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """All answers are compared on the way: with Spark's, with how many rows expire, with a recomputed view."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    results = [*sql.functions(spark, 200, 1), *sql.clock(spark, 4_000, 3), *sql.closure(spark, 6, 2)]
    cases = {"no view", *sql.PROJECTIONS, "clock", "closure, insert", "closure, delete"}
    assert {r.case for r in results} == cases
    assert {r.params["expiring"] for r in results if r.metric == "exponent"} == {10}


@pytest.mark.slow
def test_doors_run() -> None:
    """Every form of rows has its rate and its ratio to pyarrow, and brings the right rows."""
    results = list(doors.measure(size=20, transactions=2))
    forms = {form.name for form in doors.FORMS}
    for metric in ("tuples_per_second", "latency_p50", "ratio_to_pyarrow"):
        assert {r.params["form"] for r in results if r.metric == metric and r.value > 0} == forms


@pytest.mark.slow
def test_paths_run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Copies and self-joins are counted right, with their numbers of views and rounds."""
    results = list(paths.measure(spark, 2_000, (2, 4), (2,), SHORT))
    assert {r.params["answer"] for r in results} == {"right"}
    assert {(r.case, r.params["k"]) for r in results} == {("copies", 2), ("copies", 4), ("self-join", 2)}
    assert all(r.params["views"] > 0 for r in results)
    assert "Paths" in capsys.readouterr().out


@pytest.mark.slow
def test_a_strategy_that_cannot_do_a_round_is_not_tried_at_larger_lengths(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is skipped with the length at which it gave up."""
    results = list(paths.measure(spark, 2_000, (3, 4), (), Budget(seconds=0)))
    assert {r.params["k"] for r in results if r.params["strategy"] == "auto"} == {3}
    assert all(r.params["stopped"] == "after 0 s" for r in results)
    said = " ".join(capsys.readouterr().err.split())
    assert "SKIPPED copies strategy=auto representation=auto mode=trusted k=4" in said
    assert "less than a round within the budget at k = 3." in said


@pytest.mark.slow
@pytest.mark.parametrize("covered", [CLASSES[1:2], CLASSES], ids=["keys", "all"])
def test_classes_run(covered: tuple[QueryClass, ...], spark: SparkSession, tmp_path: Path) -> None:
    """Every class has latencies of each table, a delay, and exponents; the results can be drawn over the sizes."""
    results = list(classes.measure(spark, Sizes((200, 400), 24, 2, Budget(seconds=5), Budget(seconds=0)), covered))
    assert {r.params["answer"] for r in results} == {"right"}
    for chosen in covered:
        own = [r for r in results if r.case == chosen.name and r.params["strategy"] == "auto"]
        kinds = {f"update {name}" for name in chosen.tables(200)} | {"delay"}
        for metric in ("latency_p50", "exponent", "ratio_to_smallest"):
            assert {r.params["what"] for r in own if r.metric == metric} == kinds
            assert {r.params["clock"] for r in own if r.metric == metric} == {"wall", "processor"}
    plot("classes", results, tmp_path / "classes.svg")
    assert "<svg" in (tmp_path / "classes.svg").read_text()


@pytest.mark.slow
def test_a_class_whose_load_is_too_long_is_not_tried_at_larger_sizes(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The load that exhausted the budget is told, and nothing is measured of that size."""
    results = list(classes.measure(spark, Sizes((200, 400), 24, 2, Budget(seconds=0), SHORT), CLASSES[:1]))
    said = " ".join(capsys.readouterr().err.split())
    assert results == []
    assert "SKIPPED q-hierarchical strategy=auto representation=auto mode=strict rows=200: loading stopped" in said
    assert "rows=400" not in said


def test_wrong_answers_are_marked_and_printed(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """A check that finds a difference makes the outcome WRONG, with the difference on standard error."""
    tables = {"t": pa.table({"a": [1, 2]})}
    trial = Trial("sum", "SELECT SUM(a) AS total FROM t", tables)
    outcome = attempt(spark, trial, round_robin(tables, 1), lambda view, given: f"{view.rows()} of {len(given['t'])}")
    assert isinstance(outcome, Outcome)
    assert outcome.params["answer"] == "WRONG"
    assert "[(3,)] of 2" in capsys.readouterr().err


def test_what_is_not_supported_is_skipped_with_its_reason(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine's own words are kept, printed, and shown in the table of the suite; other errors are not caught."""
    tables = {"t": pa.table({"a": [1, 2]})}
    trial = Trial("sum", "SELECT SUM(a) AS total FROM t", tables, strategy="fastest", params={"order": "sorted"})
    outcome = attempt(spark, trial, [], lambda view, given: None)
    assert isinstance(outcome, Skipped)
    assert outcome.reason == "there is no strategy 'fastest'."
    assert "SKIPPED sum strategy=fastest" in capsys.readouterr().err
    console = Console(width=250)
    with console.capture() as captured:
        console.print(comparison("housing", [outcome]))
    assert "skipped: there is no strategy 'fastest'." in captured.get()
    with pytest.raises(ev.UnknownName):
        attempt(spark, Trial("sum", "SELECT nothing FROM t", tables), [], lambda view, given: None)


def test_anchors_are_found_by_case_and_order() -> None:
    """F-IVM's figure for a sum depends on the order in which rows arrive."""
    found = [anchor_of("housing", "sum", {"order": order}) for order in ("sorted", "shuffled", "other")]
    assert [anchor and anchor.rate for anchor in found] == [39, 7.3, None]
    assert anchor_of("favorita", "sum", {"order": "sorted"}) is None


@pytest.mark.slow
def test_triangles_run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts are right; there are slopes of all strategies, figures against ε, and those of a graph inserted from nothing."""
    sizes = TriangleSizes((600, 1_200), 24, 600, (0.0, 0.5), (600, 1_200), Budget(seconds=5), Budget(seconds=1))
    results = list(triangle.measure(spark, sizes))
    assert triangle.answers(results).keys() == {"right"}
    slopes = {(r.case, r.params["strategy"]) for r in results if r.metric == "exponent" and r.case != "from scratch"}
    assert slopes == {(graph, strategy) for graph in ("worst case", "power law") for strategy in triangle.VARIANTS}
    assert {r.params["epsilon"] for r in results if r.case == "against ε"} == {0.0, 0.5}
    assert {r.metric for r in results if r.case == "from scratch"} >= {"ratio_to_static", "ratio_to_single", "exponent"}
    assert "Triangles" in capsys.readouterr().out
