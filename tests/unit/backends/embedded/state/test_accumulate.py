"""Sums per slot against exact rational sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.embedded.state.accumulate import (
    FLOAT_COUNTERS,
    FLOAT_PARTS,
    LARGE,
    SMALL_WEIGHT,
    float_totals,
    is_left,
    joined_weights,
    scatter_add_float,
    scatter_add_int,
    scatter_add_weight,
    total_weight,
)
from everview.errors import EvaluationError

finite = st.one_of(st.floats(-1e30, 1e30), st.sampled_from([0.1, -0.0, 1e-300, 5e-324, 3.0, 1e16, 1e45]))
weight = st.one_of(st.sampled_from([1, -1, 1, -1, 3, -7]), st.integers(1 - SMALL_WEIGHT, SMALL_WEIGHT - 1))


class Accumulators:
    """Float accumulators of three slots, in the middle of wider payloads."""

    def __init__(self) -> None:
        self.payload = np.zeros((3, FLOAT_PARTS + 2))
        self.counters = np.zeros((3, FLOAT_COUNTERS + 1), dtype=np.int64)
        self.left = 0

    def add(self, *rows: tuple[int, float, int]) -> list[float]:
        slots = np.array([s for s, _, _ in rows], dtype=np.int64)
        values = np.array([v for _, v, _ in rows], dtype=np.float64)
        weights = np.array([w for _, _, w in rows], dtype=np.int64)
        self.left = scatter_add_float(self.payload, 1, self.counters, 1, slots, values, weights)
        assert self.left == is_left(values, weights).sum()
        return float_totals(self.payload[:, 1:-1].copy(), self.counters[:, 1:]).tolist()


@given(st.lists(st.tuples(st.integers(0, 2), finite, weight), max_size=40), st.randoms())
def test_float_sums_are_almost_exact_and_forget(rows: list[tuple[int, float, int]], random: object) -> None:
    """The error is some 2^-200 of what went in, however it cancels; taking all away again leaves as little."""
    sums = Accumulators()
    totals = sums.add(*rows)
    exact = [Fraction(0)] * 3
    volume = Fraction(0)
    for slot, value, count in rows:
        exact[slot] += Fraction(value) * count
        volume += abs(Fraction(value) * count)
    for slot in range(3):
        stored = sum(Fraction(part) for part in sums.payload[slot, 1:-1])
        assert abs(stored - exact[slot]) <= volume / 2**198
        assert abs(Fraction(totals[slot]) - exact[slot]) <= abs(exact[slot]) / 2**50 + volume / 2**198 + Fraction(
            5e-324
        )
    taken = [(slot, value, -count) for slot, value, count in rows]
    random.shuffle(taken)  # type: ignore[attr-defined]  # Hypothesis gives a random.Random
    assert max(map(abs, sums.add(*taken))) <= float(volume) / 2**198


@given(st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(-3, 3)), max_size=30), st.randoms())
def test_sums_of_similar_floats_leave_no_trace_at_all(rows: list[tuple[int, int]], random: object) -> None:
    """Where so many bits hold the running sum, deleting what was inserted restores exactly 0."""
    sums = Accumulators()
    taken = [(0, value / 1024, -count) for value, count in rows]
    sums.add(*[(0, value / 1024, count) for value, count in rows])
    random.shuffle(taken)  # type: ignore[attr-defined]  # Hypothesis gives a random.Random
    sums.add(*taken)
    assert not sums.payload.any()
    assert not sums.counters.any()


def test_what_cannot_be_subtracted_is_counted() -> None:
    """NaN and infinities pass by as if they had never been there."""
    sums = Accumulators()
    assert sums.add((0, 5.0, 1))[0] == 5.0
    assert math.isnan(sums.add((0, math.inf, 2), (0, -math.inf, 1))[0])
    assert sums.add((0, math.inf, -2))[0] == -math.inf
    assert math.isnan(sums.add((0, math.nan, 1))[0])
    assert sums.add((0, math.nan, -1), (0, -math.inf, -1)) == [5.0, 0.0, 0.0]
    assert not sums.counters.any()


def test_what_is_too_large_is_left() -> None:
    """Large values, and large weights of finite values, are for the caller to sum; nothing has been added for them."""
    sums = Accumulators()
    sums.add((0, LARGE, 1), (1, -1e308, 2), (2, 1.0, SMALL_WEIGHT), (2, math.inf, SMALL_WEIGHT))
    assert sums.left == 3
    assert not sums.payload.any()


def test_weights_beyond_64_bits_are_noticed() -> None:
    """In sums, in products, and where only the total is asked for."""
    most = np.array([2**62, 2**62 - 1], dtype=np.int64)
    counts, slots = np.zeros((1, 1), dtype=np.int64), np.zeros(2, dtype=np.int64)
    assert scatter_add_weight(counts, 0, slots, most)
    assert counts[0, 0] == 2**63 - 1
    assert not scatter_add_weight(counts, 0, slots[:1], np.ones(1, dtype=np.int64))
    assert joined_weights(most, np.array([1, -2], dtype=np.int64)).tolist() == [2**62, 2 - 2**63]
    with pytest.raises(EvaluationError, match="2\\^63"):
        joined_weights(most, np.array([1, 4], dtype=np.int64))
    assert total_weight(np.full(5, -(2**62), dtype=np.int64)) == -5 * 2**62


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_integer_sums_and_counts(count: int) -> None:
    """Products and weights are added to the column of their slot."""
    rng = np.random.default_rng(count)
    slots, values, weights = rng.integers(0, 5, count), rng.integers(-9, 9, count), rng.integers(-2, 3, count)
    payload = np.zeros((5, 3), dtype=np.int64)
    scatter_add_int(payload, 1, slots, values, weights)
    scatter_add_weight(payload, 2, slots, weights)
    for slot in range(5):
        here = slots == slot
        assert payload[slot].tolist() == [0, int((values * weights)[here].sum()), int(weights[here].sum())]
