"""What all tests share: one small Spark session a process, Hypothesis profiles, and the switch for slow tests.

Tests run in several processes at once (``make test`` has two): no test may count on what another has done, nor on being the
only one that runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Quick runs try the same examples every time, so that a red run means a change; long runs look for new ones.
# How long it takes to draw an example says how busy the machine is, so that is no reason to fail.
_UNHURRIED = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("quick", max_examples=30, derandomize=True, **_UNHURRIED)
hypothesis.settings.register_profile("long", max_examples=1000, **_UNHURRIED)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Queries over a handful of rows end before Java's second compiler has paid for itself, and a small heap needs no threads to
# collect it. The environment hands this to every Java that a test starts, those of other processes included.
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS",
    "--conf 'spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData' pyspark-shell",
)

# Translations are kept by checkout, under the hash of the front end's sources: an edit of it, and a clean clone, start anew.
# Tests that are about Spark and the front end ask a gateway of their own, which keeps nothing; so does `db.verify`.
os.environ.setdefault(
    "EVERVIEW_TRANSLATION_CACHE", str(Path(__file__).resolve().parents[1] / ".cache" / "translations")
)
os.environ.setdefault("EVERVIEW_JAVA_ARCHIVE", "off")

SPARK_SETTINGS = {
    "spark.master": "local[1]",  # the other core has the other process
    "spark.app.name": "everview tests",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    # Plans of a few rows gain nothing from being adapted or compiled.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--run-slow``."""
    parser.addoption("--run-slow", action="store_true", help="run the tests marked slow too")


SECOND_BEGINS_WITH = tuple(f"tests/oracle/{name}.py" for name in ("test_corpus", "test_found", "test_corpus_streams"))
"""Long modules of which the first two run no machine code of ours, and the third needs what the first has translated."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out slow tests unless they are asked for, and lets the two processes of ``make test`` begin with different work.

    Each process is given half of the tests, in order. In a clean clone both would begin by compiling the same kernels; so the
    second half begins with tests that need none, and finds most kernels compiled when it has done with them.
    """
    if not config.getoption("--run-slow") and os.environ.get("EVERVIEW_SLOW") != "1":
        slow = [item for item in items if "slow" in item.keywords]
        if slow:
            config.hook.pytest_deselected(items=slow)
            items[:] = [item for item in items if "slow" not in item.keywords]
    later = [item for name in SECOND_BEGINS_WITH for item in items if item.nodeid.startswith(name)]
    others = [item for item in items if not item.nodeid.startswith(SECOND_BEGINS_WITH)]
    half = min(len(items) // 2, len(others))
    items[:] = [*others[:half], *later, *others[half:]]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests of this process; starting it takes seconds."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in SPARK_SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
