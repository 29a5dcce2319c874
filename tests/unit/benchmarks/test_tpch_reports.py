"""How benchmark answers are judged and set beside other systems' figures."""

from __future__ import annotations

from decimal import Decimal

import pytest
from rich.console import Console

from benchmarks.answers import first_difference
from benchmarks.tpch_anchors import DBTOASTER, FIVM, anchor_ratio, comparison, geometric_mean
from everview.cli.bench_results import Figure
from tests.corpus.data import queries


def test_rounding_is_no_difference() -> None:
    """A decimal may differ from a float by half its last digit; decimals among themselves, and all else, must be equal."""
    assert first_difference([("a", Decimal("0.049985"))], [("a", 0.0499853)]) is None
    assert first_difference([("a", Decimal("0.049985"))], [("a", 0.0499863)]) is not None
    assert first_difference([("a", Decimal("1.10"))], [("a", Decimal("1.1"))]) is None
    assert first_difference([("a", Decimal("1.11"))], [("a", Decimal("1.1"))]) is not None
    assert first_difference([(None, 1.0)], [(0, 1.0)]) is not None


def test_bags_are_compared_not_lists() -> None:
    """The order of rows does not matter, how often each occurs does."""
    assert first_difference([(1, 0.1), (2, 0.2)], [(2, 0.2), (1, 0.1)]) is None
    assert first_difference([(1,), (1,), (2,)], [(1,), (2,), (2,)]) is not None
    assert first_difference([(1,)], []) == "1 rows here and 0 there"


def test_every_query_has_an_anchor() -> None:
    """Figures are named as the corpus names its queries."""
    assert list(DBTOASTER) == [q.name for q in queries("tpch")]
    assert anchor_ratio(DBTOASTER, "q02", 2.3e6) == pytest.approx(1.0)
    assert anchor_ratio(FIVM, "q02", 2.3e6) is None


def test_the_comparison_shows_wrong_answers() -> None:
    """A wrong answer stands in the table, beside rates, ratios and their geometric mean; DBToaster is beside mixed rates."""
    params = {
        "batch": 1000,
        "phase": "inserts",
        "answer": "right",
        "tuples": 1000,
        "cpu_seconds": 0.5,
        "mode": "trusted",
    }
    mixed, alone = {**params, "transactions": "mixed"}, {**params, "transactions": "one_table"}
    results = [
        Figure("q08", "tuples_per_second", 430_000, "1/s", mixed),
        Figure("q08", "tuples_per_second", 5_200_000, "1/s", alone),
        Figure("q09", "tuples_per_second", 480_000, "1/s", {**mixed, "answer": "WRONG"}),
    ]
    console = Console(width=250)
    with console.capture() as captured:
        console.print(comparison(results))
    lines = captured.get().splitlines()
    assert any("q08" in line and "right" in line for line in lines)
    assert any("q09" in line and "WRONG: trusted" in line for line in lines)
    mean = next(line.split() for line in lines if "mean" in line)
    headings = next(line for line in lines if "DBToaster" in line)
    assert headings.index("mixed strict") < headings.index("DBToaster") < headings.index("one table strict")
    assert mean.count("2") == 2  # 1 and 4 times DBToaster on mixed transactions, 2 times F-IVM on those of one table


def test_geometric_mean_ignores_nothing_measured() -> None:
    """Of ratios that were not measured there is no mean."""
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert str(geometric_mean([])) == "nan"
