"""Sums of limbs by NumPy: they are the floats, to the last digit that limbs have, whatever the weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from everview.backends.spark.float_totals import UNFIT, WHOLE, float_totals

_PARTS = ((1, WHOLE), UNFIT, *((2, i) for i in range(5)))


def _batch(keys: list[int | None], floats: list[float | None], weights: list[int]) -> pa.RecordBatch:
    ones = [1] * len(keys)
    arrays = [pa.array(keys, pa.int32()), pa.array(ones, pa.int64()), pa.array(floats, pa.float64())]
    return pa.RecordBatch.from_arrays([*arrays, pa.array(weights, pa.int64())], names=["k", "n", "x", "w"])


def _added(batches: list[pa.RecordBatch]) -> dict[int | None, tuple[int, int, Fraction]]:
    """For each group, the rows, those that do not fit, and the number that the limbs are."""
    found: dict[int | None, tuple[int, int, Fraction]] = {}
    for batch in float_totals(batches, 1, _PARTS):
        for key, n, unfit, *limbs in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            total = sum(limb * Fraction(2) ** (31 * (1 - i)) for i, limb in enumerate(limbs))
            old = found.get(key, (0, 0, Fraction(0)))
            found[key] = (old[0] + n, old[1] + unfit, old[2] + total)
    return found


def test_limbs_of_many_batches_are_the_exact_sum() -> None:
    """Positive and negative floats of all sizes that fit, several batches that are grouped together, deletes among them."""
    rng = np.random.default_rng(4)
    batches, exact = [], {}
    for _ in range(20):
        keys = [None if k == 3 else int(k) for k in rng.integers(0, 4, 5_000)]
        floats = (np.round(rng.normal(size=5_000) * 2.0**40) * 2.0 ** rng.integers(-90, 15, 5_000)).tolist()
        weights = rng.choice([-1, 1, 2], 5_000).tolist()
        batches.append(_batch(keys, floats, weights))
        for key, x, w in zip(keys, floats, weights, strict=True):
            exact[key] = exact.get(key, 0) + Fraction(x) * w
    found = _added(batches)
    assert {key: total for key, (_, _, total) in found.items()} == exact
    assert all(unfit == 0 for _, unfit, _ in found.values())


def test_floats_that_do_not_fit_are_counted_and_nulls_are_nothing() -> None:
    """NaN, infinities, too large and too fine ones add to the count alone."""
    strange = [float("nan"), float("inf"), -(2.0**62), 5e-324, 1e-40]
    found = _added([_batch([1] * 7, [*strange, None, 0.1], [1, 1, 1, 1, -1, 1, 1])])
    assert found == {1: (5, 3, Fraction(0.1))}


def test_weights_as_large_as_they_come() -> None:
    """Rows that are there very often are added up in smaller steps; only what has no 64 bits is an error."""
    often = 2**33 + 1
    found = _added([_batch([1, 1, 2], [1.0, -3.0, 3.0], [often, often, 1])])
    assert found == {1: (2 * often, 0, Fraction(-2 * often)), 2: (1, 0, Fraction(3))}
    with pytest.raises(OverflowError, match="ARITHMETIC_OVERFLOW"):
        _added([_batch([1], [2.0**31 - 1], [often])])


def test_a_grouping_by_nothing_has_one_row_a_batch() -> None:
    """Without keys the sums are those of all rows; no rows have none."""
    batch = _batch([1, 2], [1.0, 0.5], [1, 3])
    (only,) = float_totals([batch], 0, _PARTS)
    assert [c.to_pylist() for c in only.columns] == [[4], [0], [0], [1], [3 * 2**30], [0], [0]]
    assert list(float_totals([], 0, _PARTS)) == []
    assert _added([_batch([], [], [])]) == {}
