"""What the law tests share: one oracle, whose tables each example replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oracle.oracle import Oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def oracle(spark: SparkSession) -> Oracle:
    """Spark and the reference backend, side by side."""
    return Oracle(spark)
