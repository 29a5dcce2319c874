from __future__ import annotations

import numpy as np
import pytest

from everview.algebra.finite_algebra import FiniteAlgebra
from everview.algebra.integers import INTEGERS, IntegerRing
from everview.algebra.laws import broken_law
from everview.algebra.ring import Payloads, Ring
from tests.unit.algebra.test_rings import MATRIX_TABLE


class WrongUnit(IntegerRing):
    def ones(self, count: int) -> Payloads:
        return np.full((count, 1), 2)


class WrongWidth(IntegerRing):
    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        return np.concatenate([a, b], axis=1)


class WrongType(IntegerRing):
    def ones(self, count: int) -> Payloads:
        return np.ones((count, 1))


class WrongNegative(IntegerRing):
    def negate(self, a: Payloads) -> Payloads:
        return a


class MaxPlus(Ring):
    """A semiring: what is added cannot be taken away."""

    width = 1

    def ones(self, count: int) -> Payloads:
        return np.ones((count, 1))

    def add(self, a: Payloads, b: Payloads) -> Payloads:
        return np.maximum(a, b)

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        return a * b


class NotAssociative(IntegerRing):
    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        return np.where(a == 1, b, np.where(b == 1, a, a * b * (a + b)))


class Narrow(IntegerRing):
    dtype = np.dtype(np.int32)


class Empty(IntegerRing):
    width = 0


@pytest.mark.parametrize(
    ("ring", "message"),
    [
        (WrongUnit(), "1 * a = a does not hold: [4] is not [2]"),
        (WrongWidth(), "multiply returns an array of shape (2, 2) where (2, 1) was expected"),
        (WrongType(), "ones(2) returns an array of float64 where the ring has int64"),
        (WrongNegative(), "a + (-a) = 0 does not hold: [2] is not [0]"),
        (MaxPlus(), "0 + a = a does not hold: [0.0] is not [-1.0]"),
        (NotAssociative(), "(a * b) * c = a * (b * c) does not hold: [0] is not [-6]"),
        (Narrow(), "its dtype is int32, and must be int64 or float64"),
        (Empty(), "its width is 0, and must be a positive number of words"),
    ],
)
def test_broken_laws_are_named(ring: Ring, message: str) -> None:
    """What is no ring is told by the law that fails, with both sides."""
    found = broken_law(ring)
    assert found is not None
    assert found.startswith(message)


def test_samples_find_what_units_do_not() -> None:
    """Matrices that claim to commute are found out by a sample."""
    ring = FiniteAlgebra(INTEGERS, 4, MATRIX_TABLE, unit={0: 1, 3: 1})
    ring.is_commutative = True
    assert broken_law(ring) is None
    found = broken_law(ring, np.array([[0, 1, 0, 0], [0, 0, 1, 0]]))
    assert found is not None
    assert "says that it is commutative" in found
    assert broken_law(INTEGERS, np.array([1.5])) == "the samples are an array of float64 where the ring has int64"
