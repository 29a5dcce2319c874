"""Housing, a star of six tables: sums over the join and the join itself under inserts, by strategy and representation.

    everview bench housing [--quick]

25,000 postcodes with 62 rows each at scale 20 (1.55 million rows; 1,000 postcodes in a quick run). The sum is that of the
postcode, over a join of a thousand million rows: what lists the join cannot keep up. The listing join is measured at scale 4
(1.6 million rows of 27 columns), the factorized one at both scales. What is timed and checked: `benchmarks/joins_measure.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.housing_data import POSTCODES, SCALE, housing
from benchmarks.joins_anchors import print_comparison
from benchmarks.joins_measure import FULL, JOINS, QUICK, Measurement, Plan
from benchmarks.spark_session import spark_session
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_POSTCODES = 1_000
LISTED_SCALE = 4


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures, and prints the trials beside F-IVM's figures at the end."""
    with spark_session() as spark:
        yield from measure(spark, QUICK if quick else FULL, QUICK_POSTCODES if quick else POSTCODES)


def measure(spark: SparkSession, plan: Plan, postcodes: int, scale: int = SCALE) -> Iterator[Figure]:
    """The results of a plan."""
    whole = Measurement(spark, housing(postcodes, scale), plan)
    yield from whole.sums()
    yield from whole.joins(JOINS[:1])
    small = Measurement(spark, housing(postcodes, LISTED_SCALE), plan)
    yield from small.joins()
    print_comparison("housing", [*whole.found, *small.found])
