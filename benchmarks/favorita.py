"""Favorita, a star of six tables: sums over the join and the join itself under inserts, by strategy and representation.

    everview bench favorita [--quick]

5.0 million sales with items, stores, transactions, oil prices and holidays (a fiftieth in a quick run), the sum that of the
unit sales; the join has as many rows as there are sales, with 18 columns. The sum is measured under updates to all tables and
to the sales alone, the others being static. ``anchors.md`` has no figure for it. What is timed and checked:
`benchmarks/joins_measure.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.favorita_data import favorita
from benchmarks.joins_anchors import print_comparison
from benchmarks.joins_measure import FULL, QUICK, Measurement, Plan
from benchmarks.spark_session import spark_session
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_SCALE = 0.02


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints the trials beside F-IVM's figures at the end."""
    with spark_session() as spark:
        yield from measure(spark, QUICK if quick else FULL, QUICK_SCALE if quick else 1.0)


def measure(spark: SparkSession, plan: Plan, scale: float) -> Iterator[Figure]:
    """The results of a plan."""
    measurement = Measurement(spark, favorita(scale), plan)
    yield from measurement.sums()
    yield from measurement.facts_only()
    yield from measurement.joins()
    print_comparison("favorita", measurement.found)
