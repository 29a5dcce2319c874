"""Rounds of the soak, the same every time: settings, habits of users, and what generators make, on two backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oracle.answers import Answers
from tests.soak.rounds import play
from tests.soak.scenario import Tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK, _SLOW = 3, 121


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=() if n < _QUICK else pytest.mark.slow) for n in range(_QUICK + _SLOW)]
)
def test_a_round_finds_no_difference(spark: SparkSession, number: int) -> None:
    """An answer equal to Spark's or an EverviewError, never anything else."""
    tally = Tally()
    found = play(f"round-{number}", spark.newSession(), Answers(spark), tally)
    assert found is None, f"{found.difference}\n{found.scenario}"
    assert tally.counts["rounds"] == 1
