"""The sums that models read."""

from __future__ import annotations

import numpy as np

from tests.unit.learn.columns import moments_of


def test_moments_of_a_small_table() -> None:
    """Counts, sums, products, sums a category and counts of pairs are those of the rows."""
    found = moments_of({"x": [1, 2, 4], "y": [1, 0, 1]}, {"c": ["a", "b", "a"], "d": [1, 1, 1]})
    assert found.count == 3
    assert found.sums.tolist() == [7, 2]
    assert found.products.tolist() == [[21, 5], [5, 2]]
    assert found.categories["c"].values == ["a", "b"]
    assert found.categories["c"].sums.tolist() == [[5, 2], [2, 0]]
    assert np.array_equal(found.pairs["c", "d"].counts, [2, 1])


def test_moments_of_no_rows() -> None:
    """An empty join has sums of zero and no category."""
    found = moments_of({"x": []}, {"c": []})
    assert (found.count, found.sums.tolist(), found.categories["c"].values) == (0, [0], [])
