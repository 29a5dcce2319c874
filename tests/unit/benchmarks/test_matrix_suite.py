"""The suite of matrix chains over very small matrices."""

from __future__ import annotations

import pytest

from benchmarks import matrix


@pytest.mark.slow
def test_matrix_suite_runs() -> None:
    """Every strategy has a time for rows and for ranks, and what grows has an exponent; wrong products would raise."""
    results = list(matrix.measure((4, 8, 16), 16, 0.001))
    row_times = {r.params["strategy"] for r in results if r.metric == "seconds" and r.params["what"] == "row of A2"}
    assert row_times == {"factorized", "factorized, read", "rows", "cells", "first_order", "recompute"}
    ranks = {r.params["rank"] for r in results if r.params["what"] == "rank of δA2"}
    assert ranks == {1, 4, 16}
    assert len([r for r in results if r.metric == "exponent"]) == 6
    assert {r.params["n"] for r in results if r.metric == "ratio_to_recompute" and r.params["what"] == "row of A2"} == {
        4,
        8,
        16,
    }


def test_crossing_points() -> None:
    """A line that is above the level from the start crosses at its first point; one that stays below nowhere."""
    assert matrix.crossing_point({2: 5.0, 4: 9.0}, 3.0) == 2
    assert matrix.crossing_point({1: 1.0, 100: 100.0}, 10.0) == 10
    assert matrix.crossing_point({1: 1.0}, 2.0) is None
