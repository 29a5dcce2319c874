"""What all tests share: one small Spark session, Hypothesis profiles, and the switch for slow tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Quick runs try the same examples every time, so that a red run means a change; long runs look for new ones.
hypothesis.settings.register_profile("quick", max_examples=30, deadline=None, derandomize=True)
hypothesis.settings.register_profile("long", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.app.name": "everview tests",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # plans of a few rows gain nothing from it
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--run-slow``."""
    parser.addoption("--run-slow", action="store_true", help="run the tests marked slow too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips slow tests unless they are asked for."""
    if config.getoption("--run-slow") or os.environ.get("EVERVIEW_SLOW") == "1":
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow; use --run-slow or EVERVIEW_SLOW=1"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests; starting it takes seconds."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in SPARK_SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
