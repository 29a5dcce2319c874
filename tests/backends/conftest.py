"""One suite for every backend: what a user can see must not depend on the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


QUICK_ON_SPARK = ("test_connect", "test_tables", "test_transactions")
"""The modules that the quick run tries on the Spark backend too; the others are slow there."""

LACKING = {("spark", "test_registered_rings"): "Spark cannot sum in a user's ring"}
"""What a backend does not have, by module of tests; not strict, because some of them only check what the front end refuses."""


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is slow on Spark, and what a backend lacks."""
    for item in items:
        engine = getattr(item, "callspec", None) and item.callspec.params.get("backend")  # type: ignore[attr-defined]
        module = item.path.stem
        if engine == "spark" and module not in QUICK_ON_SPARK:
            item.add_marker(pytest.mark.slow)
        if (engine, module) in LACKING:
            item.add_marker(pytest.mark.xfail(reason=LACKING[engine, module], raises=ev.UnsupportedQuery, strict=False))


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
