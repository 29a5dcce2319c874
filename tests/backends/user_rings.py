"""Rings as users would write them, which nothing in everview knows."""

from __future__ import annotations

import numpy as np

import everview as ev
from everview.algebra.finite_algebra import FiniteAlgebra
from everview.algebra.floats import FLOATS
from everview.algebra.ring import ColumnValues, Payloads

DEGREE = 3


class Complex(ev.Ring):
    """x + iy in plain floats; a number lifts to itself, the second argument to an imaginary one."""

    width = 2

    def ones(self, count: int) -> Payloads:
        ones = self.zeros(count)
        ones[:, 0] = 1.0
        return ones

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        product = np.empty_like(a)
        product[:, 0] = a[:, 0] * b[:, 0] - a[:, 1] * b[:, 1]
        product[:, 1] = a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0]
        return product

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        lifted = self.zeros(len(column))
        lifted[:, position % 2] = column
        return lifted


class Polynomials(ev.Ring):
    """Integer polynomials modulo X^(DEGREE + 1): how many rows have which total."""

    width = DEGREE + 1
    dtype = np.dtype(np.int64)

    def ones(self, count: int) -> Payloads:
        ones = self.zeros(count)
        ones[:, 0] = 1
        return ones

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        product = np.zeros_like(a)
        for i in range(self.width):
            product[:, i:] += a[:, i : i + 1] * b[:, : self.width - i]
        return product

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        """X^x; 0 for a power that is cut off."""
        lifted = self.zeros(len(column))
        rows = np.flatnonzero((column >= 0) & (column < self.width))
        lifted[rows, column[rows]] = 1
        return lifted


def angle(column: ColumnValues) -> Payloads:
    """e^(ix) in the complex numbers with compensated parts."""
    parts = {0: FLOATS.lift(0, np.cos(column)), 1: FLOATS.lift(0, np.sin(column))}
    return PHASORS.assemble(parts, len(column))


def length(column: ColumnValues) -> Payloads:
    """Decimals as real numbers."""
    return PHASORS.assemble({0: FLOATS.lift(0, column.astype(np.float64))}, len(column))


class Letters(ev.Ring):
    """Products of 2x2 integer matrices, which do not commute; a string lifts to the product of its letters."""

    width = 4
    dtype = np.dtype(np.int64)
    is_commutative = False

    def ones(self, count: int) -> Payloads:
        ones = self.zeros(count)
        ones[:, [0, 3]] = 1
        return ones

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        product: Payloads = np.matmul(a.reshape(-1, 2, 2), b.reshape(-1, 2, 2)).reshape(-1, 4)
        return product

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        steps = {"l": [1, 1, 0, 1], "r": [1, 0, 1, 1]}
        lifted = self.ones(len(column))
        for i, word in enumerate(column):
            for letter in word:
                lifted[i : i + 1] = self.multiply(lifted[i : i + 1], np.array([steps[letter]]))
        return lifted


COMPLEX = Complex()
POLYNOMIALS = Polynomials()
PHASORS = FiniteAlgebra(FLOATS, 2, {(0, 0): {0: 1}, (0, 1): {1: 1}, (1, 0): {1: 1}, (1, 1): {0: -1}})
LETTERS = Letters()


def register_all() -> None:
    """Registers the rings of this module; doing it again changes nothing."""
    samples = np.array([[0.5, 2.0], [-3.0, 0.25]])
    ev.register_ring("complex_sum", COMPLEX, returns="struct<re: double, im: double>", samples=samples)
    ev.register_ring("totals", POLYNOMIALS, returns="array<bigint>", samples=np.array([[1, 2, 3, 4], [0, 1, 0, 7]]))
    ev.register_ring("phasor", PHASORS, lifts=[angle, length], returns="array<double>")
    ev.register_ring("walks", LETTERS, returns="array<bigint>")
