"""The endurance run, for a minute; `make soak-endurance` runs it for longer."""

from __future__ import annotations

import pytest

import everview as ev
from tests.soak.endurance import Cycle, Endurance, judged


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_minute_of_transactions() -> None:
    """Twenty views stay right, quick and small while tables are filled and emptied."""
    with ev.connect(history=0) as db:
        verdict = Endurance(db, "a minute", most_rows=5000).run(60, lambda _: None)
    assert not verdict.wrong, verdict.report()


def test_what_is_wrong_is_said() -> None:
    """Growth, slowness and lost digits are found in the figures."""
    steady = [Cycle([0.1], [(1, 0.1)], 1e-14, 100 * 2**20) for _ in range(6)]
    assert judged(steady) == []
    assert "memory" in judged([*steady, Cycle([0.1], [(1, 0.1)], 0.0, 200 * 2**20)])[0]
    assert "processor time" in judged([*steady, Cycle([0.1], [(1, 0.3)], 0.0, 100 * 2**20)])[0]
    assert "floats" in judged([*steady, Cycle([0.1], [(1, 0.1)], 1e-9, 100 * 2**20)])[0]
