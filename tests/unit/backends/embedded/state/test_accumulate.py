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
    float_totals,
    scatter_add_float,
    scatter_add_int,
    scatter_add_weight,
)

LARGEST = 1.7e308
finite = st.one_of(st.floats(-1e30, 1e30), st.sampled_from([0.1, -0.0, 1e-300, 5e-324, 3.0, 1e16]))
weight = st.one_of(st.sampled_from([1, -1, 1, -1, 3, -7]), st.integers(-(2**50), 2**50))


class Accumulators:
    """Float accumulators of three slots, in the middle of wider payloads."""

    def __init__(self) -> None:
        self.payload = np.zeros((3, 4))
        self.counters = np.zeros((3, FLOAT_COUNTERS + 1), dtype=np.int64)

    def add(self, *rows: tuple[int, float, int]) -> list[float]:
        slots = np.array([s for s, _, _ in rows], dtype=np.int64)
        values = np.array([v for _, v, _ in rows], dtype=np.float64)
        weights = np.array([w for _, _, w in rows], dtype=np.int64)
        scatter_add_float(self.payload, 1, self.counters, 1, slots, values, weights)
        return float_totals(self.payload[:, 1:3], self.counters[:, 1:]).tolist()


@given(st.lists(st.tuples(st.integers(0, 2), finite, weight), max_size=40), st.randoms())
def test_float_sums_are_almost_exact_and_forget(rows: list[tuple[int, float, int]], random: object) -> None:
    """The error is some 2^-100 of what went in, however it cancels; taking all away again leaves as little."""
    sums = Accumulators()
    totals = sums.add(*rows)
    exact = [Fraction(0)] * 3
    volume = Fraction(0)
    for slot, value, count in rows:
        exact[slot] += Fraction(value) * count
        volume += abs(Fraction(value) * count)
    for slot in range(3):
        stored = Fraction(sums.payload[slot, 1]) + Fraction(sums.payload[slot, 2])
        assert abs(stored - exact[slot]) <= volume / 2**98
        assert abs(Fraction(totals[slot]) - exact[slot]) <= abs(exact[slot]) / 2**52 + volume / 2**98 + Fraction(5e-324)
    taken = [(slot, value, -count) for slot, value, count in rows]
    random.shuffle(taken)  # type: ignore[attr-defined]  # Hypothesis gives a random.Random
    assert max(map(abs, sums.add(*taken))) <= float(volume) / 2**98


@given(st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(-3, 3)), max_size=30), st.randoms())
def test_sums_of_similar_floats_leave_no_trace_at_all(rows: list[tuple[int, int]], random: object) -> None:
    """Where 106 bits hold the running sum, deleting what was inserted restores exactly 0."""
    sums = Accumulators()
    taken = [(0, value / 1024, -count) for value, count in rows]
    sums.add(*[(0, value / 1024, count) for value, count in rows])
    random.shuffle(taken)  # type: ignore[attr-defined]  # Hypothesis gives a random.Random
    sums.add(*taken)
    assert not sums.payload.any()
    assert not sums.counters.any()


def test_what_cannot_be_subtracted_is_counted() -> None:
    """NaN, infinities and overflow pass by as if they had never been there."""
    sums = Accumulators()
    assert sums.add((0, 5.0, 1), (0, LARGEST, 2))[0] == math.inf
    assert sums.add((0, LARGEST, -1))[0] == LARGEST
    assert sums.add((0, LARGEST, 10**15))[0] == math.inf
    assert sums.add((0, LARGEST, -(10**15)))[0] == LARGEST
    assert sums.add((0, -LARGEST, 4))[0] == -math.inf
    assert sums.add((0, -LARGEST, -3))[0] == 5.0
    assert math.isnan(sums.add((0, math.inf, 2), (0, -math.inf, 1))[0])
    assert sums.add((0, math.inf, -2))[0] == -math.inf
    assert math.isnan(sums.add((0, math.nan, 1))[0])
    assert sums.add((0, math.nan, -1), (0, -math.inf, -1)) == [5.0, 0.0, 0.0]
    assert not sums.counters.any()


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
