"""Nested averages along an order: an average is above a bound where the sum of the differences from it is above 0.

    AVG(v) ≥ b        Σ (v - b) ≥ 0

What is kept is the running sum of the differences from a *base*, which is the bound at some time. While the bound is there,
turns are found as those of sums are. If it moves by D, n rows have moved the sum by n·D: a line instead of a level bound. Then
more nodes are opened than there are turns. When that has cost more than moving the base would, it is moved, in linear time.

Sums are exact, and so is rounding. An average of decimals has four digits more than they have, rounded HALF_UP; with A =
2·10^4, it is L or more if A·Σv - (2L - 1)·n ≥ 0 (above 0 for L ≤ 0). An average of integers is the nearest float, and it is b
or more if Σv / n is not below the middle between b and the float before it. Spark adds them as floats: beyond 2^53, where such
a sum is rounded itself, averages are computed one by one.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import compress, pairwise

import numpy as np

from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.nested_values import BEYOND, EXACT_FLOATS, ExactSums, Order, Steps, as_wide
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.float_order import float_from_order, float_order
from everview.backends.embedded.state.large_floats import UNIT_BITS, in_units
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.relational.types import DataType, Decimal

DIGITS = 10**4
"""What an average of decimals has more than they have, as a factor."""
_WORD = 64
"""Averages of words are 0 or not below 2^-64, since there are fewer rows, and not above 2^64."""
_ROOM = 1 << 124
_PATIENCE = 50
"""So many nodes are opened in the time in which one entry is moved to another base."""
_ALWAYS, _NEVER = True, False

Line = tuple[int, int, int]
"""Slope m, bits k and start s: A·Σv ≥ A·m/2^k·n + s. For decimals k is 0, and the slope is A times the bound already."""


class NestedAverages:
    """Averages of integers, which are floats, and of decimals. Bounds are those of ``NestedBounds``.

    Args:
        order: What keys are.
        average: The type of an average.
    """

    def __init__(self, order: Order, average: DataType) -> None:
        self._order = order
        self._digits = average.precision if isinstance(average, Decimal) else None
        self._sums = ExactSums(order)
        self._factor, self._base, self._rows, self._size = 1 if self._digits is None else 2 * DIGITS, 0, 0, 0
        self._committed = self._factor, self._base, self._rows, self._size
        self._wasted = 0

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        numbers, long = as_wide(values), None
        if self._digits is None:
            given = values.values.tolist()
            if any(abs(v) > EXACT_FLOATS for v in given):
                given = long = [int(float(v)) for v in given]
            self._size += sum(abs(v) * w for v, w in zip(given, weights.tolist(), strict=True))
        self._rows += int(weights.sum())
        if long is None and self._factor < 1 << 63 and abs(self._base) < _ROOM:
            scaled, fits = wide.multiply_word(numbers, np.full(len(numbers), self._factor))
            if fits.all() and (np.abs(wide.to_float64(scaled)) < _ROOM).all():
                base = np.broadcast_to(wide.from_ints([self._base]), scaled.shape).copy()
                self._sums.add_wide(keys, wide.subtract(scaled, base), weights)
                return
        every = wide.to_ints(numbers) if long is None else long
        self._sums.add_long(keys, [self._factor * v - self._base for v in every], weights)

    def turns(self, group: Ints, within: Within) -> Steps:
        if self._is_rounded:
            places, held = self._judged(within).get(tuple(group.tolist()), ([], []))
            turning = (was != holds for was, holds in pairwise([False, *held]))
            return tuple(compress(places, turning))
        lines = self._lines(within)
        found = self._sums.turns(group, lines)
        if any(lines.slopes):
            self._wasted += self._sums.opened
        return found

    def passes(self, keys: Ints, within: Within) -> Bools:
        if not self._is_rounded:
            return self._sums.passes(keys, self._lines(within))
        judged, passed = self._judged(within), np.zeros(len(keys), dtype=np.bool_)
        for i, (*group, place) in enumerate(keys.tolist()):
            places, held = judged.get(tuple(group), ([], []))
            count = bisect_left(places, place) if self._order.is_strict else bisect_right(places, place)
            passed[i] = count > 0 and held[count - 1]
        return passed

    # Bounds as lines

    def _lines(self, within: Within) -> Within:
        """The sums of differences whose averages are within bounds."""
        low, high = (average_line(b, self._digits) for b in (within.bounds[0], within.bounds[1] + 1))
        if low is _NEVER or high is _ALWAYS:
            return Within((1, 0), within.is_outside)
        known = [line for line in (low, high) if not isinstance(line, bool)]
        if known:
            self._prepare(known)
        slopes = [self._base if isinstance(line, bool) else self._slope(line) for line in (low, high)]
        least = -BEYOND if isinstance(low, bool) else low[2]
        most = BEYOND if isinstance(high, bool) else high[2] - 1
        return replace(within, bounds=(least, most), slopes=(slopes[0] - self._base, slopes[1] - self._base))

    def _slope(self, line: Line) -> int:
        return line[0] if self._digits is not None else (line[0] * self._factor) >> line[1]

    def _prepare(self, lines: list[Line]) -> None:
        """Moves factor and base where lines are too fine or too far for them."""
        bits = max(line[1] for line in lines)
        if self._factor < 1 << bits:
            self._move(1 << bits, lines[0])
        slopes = [self._slope(line) for line in lines]
        is_far = self._wasted > _PATIENCE * len(self._sums) or not self._has_room(slopes)
        if is_far and self._base not in slopes:
            self._move(self._factor, lines[0])
        if not self._has_room(slopes):
            self._sums.widen()

    def _has_room(self, slopes: list[int]) -> bool:
        return all(abs(slope - self._base) * (self._rows + 1) < _ROOM for slope in slopes)

    def _move(self, factor: int, line: Line) -> None:
        """Keeps the differences from a line."""
        old_factor, old = self._factor, self._base
        self._factor, self._wasted = factor, 0
        self._base = base = self._slope(line)
        self._sums.move(lambda count, number: (number + old * count) * factor // old_factor - base * count)

    # Averages of sums that floats round

    @property
    def _is_rounded(self) -> bool:
        return self._size > EXACT_FLOATS

    def _judged(self, within: Within) -> dict[tuple[int, ...], tuple[list[int], list[bool]]]:
        """The places of each group, and whether rows that have the entries up to each of them pass."""
        judged: dict[tuple[int, ...], tuple[list[int], list[bool]]] = {}
        keys, counts, numbers = self._sums.entries()
        low, high = within.bounds
        rows = total = 0
        for (*group, place), count, number in zip(keys.tolist(), counts.tolist(), numbers, strict=True):
            if tuple(group) not in judged:
                rows = total = 0
            places, held = judged.setdefault(tuple(group), ([], []))
            rows, total = rows + count, total + (number + self._base * count) // self._factor
            places.append(place)
            held.append(rows > 0 and (low <= rounded_average(total, rows) <= high) != within.is_outside)
        return judged

    def groups(self) -> Ints:
        return self._sums.groups()

    def commit(self) -> None:
        self._sums.commit()
        self._committed = self._factor, self._base, self._rows, self._size

    def rollback(self) -> None:
        self._sums.rollback()
        self._factor, self._base, self._rows, self._size = self._committed

    @property
    def nbytes(self) -> int:
        return self._sums.nbytes


def average_line(word: int, digits: int | None) -> Line | bool:
    """From where on averages are not below a word; whether all are, or none, where that is so.

    Args:
        word: A decimal as an integer, or a float by its place in the order of floats.
        digits: Those of a decimal; None for a float.
    """
    if digits is not None:
        if abs(word) >= 10**digits:
            return word < 0
        return 2 * word - 1, 0, 0 if word > 0 else 1
    bound = float(float_from_order(np.array([word]))[0]) if _word(-math.inf) < word < _word(math.inf) else math.inf
    if not abs(bound) < 2.0**_WORD:
        return word < 0
    middle, bits = in_units(bound) + in_units(float(float_from_order(np.array([word - 1]))[0])), UNIT_BITS + 1
    if abs(middle) < 1 << (bits - _WORD):
        return 0, 0, 1 if middle > 0 else 0
    zeros = min((middle & -middle).bit_length() - 1, bits)
    is_even = float_from_order(np.array([word])).view(np.int64)[0] & 1 == 0  # to which the middle is rounded
    return middle >> zeros, bits - zeros, 0 if is_even else 1


def rounded_average(total: int, rows: int) -> int:
    """The place, in the order of floats, of an average whose sum is rounded first."""
    return _word(float(total) / rows)


def _word(value: float) -> int:
    return int(float_order(np.array([value]))[0])
