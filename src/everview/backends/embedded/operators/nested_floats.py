"""Nested sums of floats along an order, which are exact.

A finite float is an integer number of units 2^u, so a running sum is one, and it is rounded once, when it is compared: with
x = round(s), x ≥ b holds from the middle between b and the float before it on. So the order of additions does not show, and
what comes and goes leaves no trace. The unit follows the numbers that are met. NaN and the infinities are counted aside: from
the first of them on, a running sum is what they make of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.nested_values import BEYOND, ExactSums, Order, Steps
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.float_order import float_from_order, float_order
from everview.backends.embedded.state.large_floats import UNIT_BITS, in_units
from everview.backends.embedded.state.ordered_sums import COUNTED, OrderedSums
from everview.backends.embedded.vectors import Bools, Ints, Vector

Floats = npt.NDArray[np.float64]
BITS = 128
MANTISSA = 53
NOWHERE = 1 << 64
_SLACK = 8
"""Bits below the lowest one that is met: a unit should not change often."""
_UNSET = 2000  # above the exponent of any float
_INFINITY, _MINUS_INFINITY = (int(float_order(np.array([v]))[0]) for v in (math.inf, -math.inf))


class FloatSums:
    """Sums of floats. Bounds are words in the order of floats (``float_order``)."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.finite = ExactSums(order)
        self.unit = self._committed_unit = 0
        self.specials = tuple(OrderedSums(order.group_words + 1, (COUNTED,)) for _ in range(3))
        """The entries that are NaN, infinite, and negatively infinite."""
        self._undo: list[Callable[[], None]] = []

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        floats: Floats = values.values
        is_finite: Bools = np.isfinite(floats)
        if not is_finite.all():
            special = np.isnan(floats), floats == math.inf, floats == -math.inf
            for entries, has in zip(self.specials, special, strict=True):
                if has.any():
                    self._count(entries, keys[has], weights[has])
            keys, floats, weights = keys[is_finite], floats[is_finite], weights[is_finite]
        if len(keys):
            self._add_finite(keys, floats, weights)

    def _count(self, entries: OrderedSums, keys: Ints, weights: Ints) -> None:
        entries.add(keys, weights.reshape(-1, 1))
        self._undo.append(lambda: entries.add(keys, -weights.reshape(-1, 1)))

    def _add_finite(self, keys: Ints, floats: Floats, weights: Ints) -> None:
        numbers, exponents = _scaled(floats)
        is_zero = numbers == 0
        least = int(exponents[~is_zero].min(initial=_UNSET))
        if least != _UNSET and (not len(self.finite) or least < self.unit):
            finer = least - _SLACK
            if len(self.finite):
                self.finite.scale(self.unit - finer)
            self.unit = finer
        shifts: Ints = np.where(is_zero, 0, exponents - self.unit)
        if int(shifts.max()) + MANTISSA < BITS:
            self.finite.add_wide(keys, _shifted(numbers, shifts), weights)
        else:
            long = [n << s for n, s in zip(numbers.tolist(), shifts.tolist(), strict=True)]
            self.finite.add_long(keys, long, weights)

    def _exactly(self, within: Within) -> Within:
        """The exact sums whose floats are within bounds."""
        low, high = within.bounds
        return Within((self.units_from(low), self.units_from(high + 1) - 1), within.is_outside)

    def units_from(self, word: int) -> int:
        """The least sum, in units, whose float is not below the one with this word."""
        if not _MINUS_INFINITY < word <= _INFINITY:
            return BEYOND if word > _INFINITY else -BEYOND
        return _from_float(word, UNIT_BITS + 1 + self.unit)

    def in_units(self, values: Vector) -> Ints:
        """Floats as integers; those that are not finite as 0."""
        numbers, exponents = _scaled(np.where(np.isfinite(values.values), values.values, 0.0))
        return _shifted(numbers, np.where(numbers == 0, 0, exponents - self.unit))

    def turns(self, group: Ints, within: Within) -> Steps:
        places = self.finite.turns(group, self._exactly(within))
        if not any(len(s) for s in self.specials):
            return places
        nan, plus, minus = (self._first(s, group) for s in self.specials)
        ends = [
            (min(nan, plus, minus), math.inf if plus < minus else -math.inf),
            (min(nan, max(plus, minus)), math.nan),
        ]
        turned = {p for p in places if p < ends[0][0]}
        passes = len(turned) % 2 == 1
        for place, value in ends:
            if place < NOWHERE and passes != _is_let(value, within):
                turned ^= {place}
                passes = not passes
        return tuple(sorted(turned))

    def _first(self, entries: OrderedSums, group: Ints) -> int:
        """The first place of a group's entries; nowhere if it has none."""
        first, last = self._order.extent(entries, group)
        if first == last:
            return NOWHERE
        found: int = entries.keys_at(entries.select(np.array([first])))[0, self._order.group_words].item()
        return found

    def passes(self, keys: Ints, within: Within) -> Bools:
        held = self.finite.passes(keys, self._exactly(within))
        if not any(len(s) for s in self.specials):
            return held
        nan, plus, minus = (np.less(*self._order.ranks(s, keys)) for s in self.specials)
        held[plus] = _is_let(math.inf, within)
        held[minus] = _is_let(-math.inf, within)
        held[nan | (plus & minus)] = _is_let(math.nan, within)
        return held

    def groups(self) -> Ints:
        return np.concatenate([self.finite.groups(), *(self._order.groups(e) for e in self.specials)])

    def commit(self) -> None:
        self.finite.commit()
        self._undo.clear()
        self._committed_unit = self.unit

    def rollback(self) -> None:
        self.finite.rollback()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self.unit = self._committed_unit

    @property
    def nbytes(self) -> int:
        return self.finite.nbytes + sum(s.nbytes for s in self.specials)


def _is_let(value: float, within: Within) -> bool:
    low, high = within.bounds
    return (low <= int(float_order(np.array([value]))[0]) <= high) != within.is_outside


def _from_float(word: int, shift: int) -> int:
    """The least n for which n · 2^shift halves of 2^-1074 are rounded to this float or to one above it."""
    at, before = (_units_of(w) for w in (word, word - 1))
    middle = at + before
    bits = float_from_order(np.array([word])).view(np.int64)[0]
    if bits & 1:  # the middle is rounded to the even neighbour
        middle += 1
    # number · 2^shift ≥ middle, in halves of units
    return -(-middle >> shift) if shift >= 0 else middle << -shift


def _units_of(word: int) -> int:
    """A float by its word in units of 2^-1074; infinity is what comes after the greatest finite one."""
    if word in (_INFINITY, _MINUS_INFINITY):
        return (1 if word > 0 else -1) << (1024 + UNIT_BITS)
    return in_units(float(float_from_order(np.array([word]))[0]))


def _scaled(floats: Floats) -> tuple[Ints, Ints]:
    """Finite floats as odd integers (or 0), and the exponents of 2 that they are multiples of."""
    fractions, exponents = np.frexp(floats)
    numbers = np.ldexp(fractions, 53).astype(np.int64)
    zeros = np.frexp((numbers & -numbers).astype(np.float64))[1].astype(np.int64) - 1
    zeros[numbers == 0] = 0
    return numbers >> zeros, exponents.astype(np.int64) - 53 + zeros


def _shifted(numbers: Ints, shifts: Ints) -> Ints:
    """Products of numbers and powers of 2, as integers of 128 bits."""
    words = wide.from_int64(numbers)
    near, far = np.minimum(shifts, 63), np.clip(shifts - 64, 0, 63)
    low = numbers << near
    carried = np.where(near > 0, numbers >> (64 - np.maximum(near, 1)), words[:, 1])
    is_far = shifts >= 64
    words[:, 0] = np.where(is_far, 0, low)
    words[:, 1] = np.where(is_far, numbers << far, carried)
    return words
