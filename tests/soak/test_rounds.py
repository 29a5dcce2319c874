"""Rounds of the soak, the same every time: settings, habits of users, and what generators make, on two backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oracle.answers import Answers
from tests.oracle.generate_changes import apply_transaction, content_of
from tests.oracle.generate_tables import table
from tests.soak.rounds import play
from tests.soak.scenario import Apply, Tally

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


def test_a_scenario_is_played_again_from_its_text() -> None:
    """The text of a step has a NaN of its own for every row; a delete that did not find its row ended the replay."""
    data = table("t", "k int, x double", [(1, float("nan"))])
    content = content_of((data,))
    assert not apply_transaction(content, Apply({"t": [((1, float("nan")), -1)]}).changes)["t"].total()
