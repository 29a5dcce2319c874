"""R: sums and products of floats that forget, each a sum and its compensation.

A payload is a *double-double*: the unevaluated sum ``high + low`` of two floats, where low is the rounding error that high
alone would have, about 106 bits in all. What was added is taken away again without a trace as long as
partial sums stay within that precision; the floats that come out agree with those that never saw the deleted rows.

R holds finite numbers only. NaN and the infinities have no negative, and a product that overflows becomes one: such a payload
stays what it is for ever. Whoever has them in a column keeps them aside, as counts in Z (``is it NaN``, ``is it +∞`` are
numbers like any other). And since R rounds, whether a key is in a view is for a count in Z to say, not for ``is_zero`` of a
float.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from everview.algebra.ring import FLOAT64, Addition, ColumnValues, Ints, Payloads, Ring

_SPLITTER = 134217729.0  # 2^27 + 1: cuts a mantissa into two halves of 26 bits
_LARGE = 2.0**995  # above this, splitting overflows


class FloatRing(Ring):
    """Double-doubles.

    >>> many = FLOATS.lift(0, np.array([0.1, 0.2, 0.3, -0.1, -0.3, -0.2]))
    >>> FLOATS.sum_by(many, np.zeros(6, dtype=np.int64), 1).tolist()
    [[0.0, 0.0]]
    """

    width = 2
    dtype = FLOAT64
    name = "R"

    def ones(self, count: int) -> Payloads:
        """1 + 0."""
        ones = self.zeros(count)
        ones[:, 0] = 1.0
        return ones

    def add(self, a: Payloads, b: Payloads) -> Payloads:
        """The sum, to the last of 106 bits."""
        with np.errstate(over="ignore", invalid="ignore"):
            total, error = two_sum(a[:, 0], b[:, 0])
            low, lower = two_sum(a[:, 1], b[:, 1])
            high, error = _quick_two_sum(total, error + low)
            high, error = _quick_two_sum(high, error + lower)
        return _paired(total, high, error)

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        """The product, to the last of 106 bits or nearly."""
        with np.errstate(over="ignore", invalid="ignore"):
            product, error = two_product(a[:, 0], b[:, 0])
            error = error + (a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0])
            return _paired(product, *_quick_two_sum(product, error))

    def divide(self, a: Payloads, by: Any) -> Payloads:
        """The quotient by plain floats, to the last of 106 bits or nearly."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            quotient = a[:, 0] / by
            product, error = two_product(quotient, by)
            rest = ((a[:, 0] - product) - error + a[:, 1]) / by
            return _paired(quotient, *two_sum(quotient, rest))

    def scale(self, a: Payloads, weights: Ints) -> Payloads:
        """The multiple; a weight of 64 bits is a double-double too."""
        rounded = weights.astype(np.float64)
        # The float nearest to a weight near 2^63 is 2^63 itself, which no int64 holds: the rest is taken modulo 2^64.
        whole = np.where(rounded == 2.0**63, np.iinfo(np.int64).min, rounded).astype(np.int64)
        with np.errstate(over="ignore"):
            return self.multiply(a, np.column_stack([rounded, (weights - whole).astype(np.float64)]))

    @property
    def addition(self) -> Addition:
        """Double-doubles."""
        is_inherited = type(self).add is FloatRing.add and type(self).scale is FloatRing.scale
        return Addition.PAIRS if is_inherited else Addition.OWN

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        """The floats themselves, without an error."""
        lifted = self.zeros(len(column))
        lifted[:, 0] = column
        return lifted

    def values(self, payloads: Payloads) -> Any:
        """The floats nearest to the payloads."""
        return payloads[:, 0] + payloads[:, 1]


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum a + b and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product a · b and its exact error (Dekker), or no error where halves would overflow."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    is_safe = (np.abs(a) < _LARGE) & (np.abs(b) < _LARGE)
    return product, np.where(is_safe, error, 0.0)


def _halves(a: Any) -> tuple[Any, Any]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def _quick_two_sum(high: Any, low: Any) -> tuple[Any, Any]:
    """The sum of a large and a small float, and its error."""
    total = high + low
    return total, low - (total - high)


def _paired(rough: Any, high: Any, low: Any) -> Payloads:
    """Payloads of two words; where the rough result is not finite, it is the result and there is no error."""
    is_finite = np.isfinite(rough)
    paired = np.empty((len(high), 2), dtype=np.float64)
    paired[:, 0], paired[:, 1] = np.where(is_finite, high, rough), np.where(is_finite, low, 0.0)
    return paired


FLOATS = FloatRing()
