"""Learning after every batch of a benchmark, over very little data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import everview as ev
from benchmarks.housing_data import housing
from benchmarks.steps import round_robin
from benchmarks.timing import Budget
from benchmarks.training import information_figures, training_figures
from everview.session.covariance import Covariance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTINUOUS = ("price", "livingarea", "averagesalary", "nbbuslines")
CATEGORICAL = ("garden", "nbbedrooms")


@pytest.mark.slow
def test_training_and_information_run(spark: SparkSession) -> None:
    """Every way to learn has a throughput, and starting from the last parameters takes fewer steps than from zero."""
    workload = housing(30, 4)

    def make() -> tuple[ev.Database, Covariance]:
        db = ev.connect(spark=spark)
        for name, table in workload.tables.items():
            db.create_table(name, table.schema, retain=False)
        return db, db.create_covariance("cov", workload.join_sql, continuous=CONTINUOUS, categorical=CATEGORICAL)

    steps, budget = round_robin(workload.tables, 10), Budget(seconds=20)
    results = list(training_figures("housing", make, steps, "price", budget))
    assert [r.params["mode"] for r in results if r.metric == "tuples_per_second"] == ["none", "warm", "scratch"]
    (fewer,) = [r.value for r in results if r.metric == "ratio_to_scratch"]
    assert fewer > 1
    results = list(information_figures("housing", make, steps, budget))
    assert [r.params["mode"] for r in results if r.metric == "tuples_per_second"] == ["none", "tree"]
