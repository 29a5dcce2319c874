"""One suite for every backend: what a user can see must not depend on the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["reference", "embedded", "spark"])
def backend(request: pytest.FixtureRequest) -> str:
    """The backends under test."""
    return str(request.param)


@pytest.fixture
def db(backend: str, spark: SparkSession) -> Iterator[ev.Database]:
    """An empty database that may translate queries."""
    with ev.connect(backend=backend, spark=spark) as database:
        yield database


@pytest.fixture
def plain_db(backend: str) -> Iterator[ev.Database]:
    """An empty database for tests that need no query, and so no Spark."""
    with ev.connect(backend=backend) as database:
        yield database


@pytest.fixture
def orders(plain_db: ev.Database) -> ev.Table:
    """A table with a primary key and two rows."""
    table = plain_db.create_table("orders", "id bigint, customer string, price decimal(10,2)", primary_key="id")
    table.insert([(1, "ann", 5), (2, "bob", 7)])
    return table
