"""Nested sums, counts and averages of any stretches of inner rows, and whether they are below their bounds.

A bound is a straight line (``nested_averages``): f·Σv - m·n ≥ s. The left side less s, an integer of 128 bits, is the margin of
an outer key. Sums whose numbers are too far apart for that, averages whose sums Spark's floats round before they divide, and
keys that count a NaN or an infinity are judged one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from everview.backends.embedded.operators.nested_averages import DIGITS, average_line, rounded_average
from everview.backends.embedded.operators.nested_floats import FloatSums
from everview.backends.embedded.operators.nested_values import BEYOND, EXACT_FLOATS, ExactSums, Order, as_wide
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.float_order import float_order
from everview.backends.embedded.state.ordered_nodes import ABOVE, BELOW, EMPTY
from everview.backends.embedded.state.ordered_sums import OrderedSums
from everview.backends.embedded.state.running_values import Bounds, LongSums
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.errors import EvaluationError
from everview.relational.nodes import AggregateCall
from everview.relational.types import Decimal, is_floating

_ROOM = 1 << 122
_WORD = 1 << 63
RankRanges: TypeAlias = list[tuple[Ints, Ints, int]]
"""Of each key the ranks between which entries count for it (1), or do not after all (-1)."""
Slant: TypeAlias = tuple[int, int]
"""Factor and slope of a line."""
KeptFrom: TypeAlias = tuple[tuple[Slant, ...], int | None]
"""What margins are kept from: the slants of all lines, and the unit of floats."""


class MarginSums:
    """What inner rows add up to.

    Args:
        width: Words of an inner key.
        call: ``sum``, ``count`` or ``avg``.
        limit: What the type of a sum can hold.
        has_own: Each outer key has bounds of its own; else all have the same.
    """

    def __init__(self, width: int, call: AggregateCall, limit: Bounds, *, has_own: bool) -> None:
        self._function, self._has_own = call.function, has_own
        is_float = is_floating(call.type) and call.function == "sum"
        self._digits = call.type.precision if isinstance(call.type, Decimal) else None
        self._limit = limit if call.function == "sum" and not is_float else None
        order = Order(width - 1, is_strict=False)
        self._floats = FloatSums(order) if is_float else None
        self._exact = ExactSums(order, is_count=self.is_count) if self._floats is None else self._floats.finite
        self._kept = self._exact if self._floats is None else self._floats
        self._size = self._committed_size = 0
        """The sum of the sizes of all that is summed; of decimals, and where averages are not asked for, about."""

    @property
    def is_count(self) -> bool:
        """Whether entries are counted: then nothing is 0, and no key is empty."""
        return self._function == "count"

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        """Adds entries; until ``commit``, ``rollback`` takes them back."""
        self._kept.add(keys, values, weights)
        if self._function == "avg" and self._digits is None:
            self._size += sum(abs(v) * w for v, w in zip(values.values.tolist(), weights.tolist(), strict=True))
        elif self._limit is not None:
            self._size += int(np.abs(wide.to_float64(as_wide(values))) @ weights)

    def amounts(self, values: Vector, weights: Ints, slant: Slant) -> tuple[Ints, Ints]:
        """How many rows entries are, and what they add to margins."""
        if self.is_count:
            return np.zeros_like(weights), wide.from_int64(weights)
        numbers = as_wide(values) if self._floats is None else self._floats.in_units(values)
        return weights, _slanted(weights, wide.multiply_word(numbers, weights)[0], slant)

    # Bounds

    def _line(self, bound: int) -> tuple[int, int, int]:
        """From where on values are not below a bound: factor, slope and start."""
        if abs(bound) == BEYOND:
            return 1, 0, bound
        if self._floats is not None:
            return 1, 0, self._floats.units_from(bound)
        if self._function != "avg":
            return 1, 0, bound
        line = average_line(bound, self._digits)
        if isinstance(line, bool):
            return 1, 0, -BEYOND if line else BEYOND
        slope, bits, start = line
        return (1 << bits if self._digits is None else 2 * DIGITS), slope, start

    def start(self, bound: int) -> int:
        """What margins, which do not know the bound, start at."""
        return -_clipped(self._line(bound)[2])

    def kept_from(self, bounds: Sequence[int]) -> KeptFrom | None:
        """What margins can be kept from as things are, for the bounds that all keys have; None if they cannot be."""
        sums, unit = self._exact.sums, None if self._floats is None else self._floats.unit
        if isinstance(sums, LongSums) or self._is_rounded or self._has_specials:
            return None
        lines = [(1, 0, 0) if self._has_own else self._line(b) for b in bounds]
        most = max(map(abs, sums.extent()))
        rows = int(sums.between(np.array([0]), np.array([len(sums)]))[0, 0])
        if any(8 * (f * most + abs(m) * rows) > _ROOM or max(f, abs(m)) >= _WORD for f, m, _ in lines):
            return None
        return tuple((f, m) for f, m, _ in lines), unit

    @property
    def _is_rounded(self) -> bool:
        return self._function == "avg" and self._digits is None and self._size > EXACT_FLOATS

    @property
    def _has_specials(self) -> bool:
        return self._floats is not None and any(len(s) for s in self._floats.specials)

    # Judging

    def judged(
        self, counting: Callable[[OrderedSums], RankRanges], bounds: Sequence[Sequence[int]], kept: KeptFrom | None
    ) -> tuple[list[Ints], Ints, list[Ints]]:
        """For each sequence of bounds the marks of keys; their counts; and the margins, if they are kept from something.

        Args:
            counting: The entries that count for each key.
            bounds: One for all keys, or one for each, any number of times.
            kept: What ``kept_from`` says.
        """
        counts, sums = self._summed(counting)
        has: Bools = np.ones(len(counts), dtype=np.bool_) if self.is_count else counts > 0
        special = [_counted(s, counting) > 0 for s in self._floats.specials] if self._floats is not None else []
        for held in special:
            has |= held
        marks, margins = [], []
        for number, side in enumerate(bounds):
            if kept is not None and not isinstance(sums, list):
                slanted = _slanted(counts, sums, kept[0][number])
                starts = wide.from_ints([self.start(b) for b in side])
                moved = wide.add(slanted, np.broadcast_to(starts, slanted.shape).copy())
                above: Bools = moved[:, 1] >= 0
                margins.append(moved if self._has_own else slanted)
            else:
                above = self._are_above(counts, sums, side)
                _place_specials(above, special, side)
                margins.append(np.zeros((len(counts), 2), dtype=np.int64))
            marks.append(np.where(has, np.where(above, ABOVE, BELOW), EMPTY))
        return marks, np.zeros_like(counts) if self.is_count else counts, margins

    def _summed(self, counting: Callable[[OrderedSums], RankRanges]) -> tuple[Ints, Ints | list[int]]:
        """Counts and sums of keys: as numbers of 128 bits, or as long ones."""
        sums = self._exact.sums
        ranges = counting(sums)
        counts = np.zeros(len(ranges[0][0]), dtype=np.int64)
        if isinstance(sums, LongSums):
            totals = [0] * len(counts)
            for first, last, sign in ranges:
                pairs = sums.long_between(first, last)
                counts += sign * np.array([n for n, _ in pairs], dtype=np.int64)
                totals = [t + sign * more for t, (_, more) in zip(totals, pairs, strict=True)]
            return counts, totals
        found = np.zeros((len(counts), 2), dtype=np.int64)
        for first, last, sign in ranges:
            part = sums.between(first, last)
            found = (wide.add if sign > 0 else wide.subtract)(found, np.ascontiguousarray(part[:, 1:]))
            counts += sign * part[:, 0]
        return counts, found

    def _are_above(self, counts: Ints, sums: Ints | list[int], bounds: Sequence[int]) -> Bools:
        """Which values are not below their bounds, one by one."""
        above: Bools = np.zeros(len(counts), dtype=np.bool_)
        lines = [self._line(b) for b in bounds]
        for i, (count, total) in enumerate(zip(counts.tolist(), _integers(sums), strict=True)):
            at = i if len(bounds) > 1 else 0
            if self._is_rounded:
                above[i] = count > 0 and rounded_average(total, count) >= bounds[at]
            else:
                factor, slope, start = lines[at]
                above[i] = factor * total - slope * count >= start
        return above

    def require_range(self, counting: Callable[[OrderedSums], RankRanges]) -> None:
        """A sum that its type cannot hold is an error.

        Raises:
            EvaluationError: there is such a sum.
        """
        if self._limit is None or 2 * self._size <= self._limit[1]:
            return
        low, high = self._limit
        if any(not low <= n <= high for n in _integers(self._summed(counting)[1])):
            raise EvaluationError("a nested sum is beyond what its type can hold.", condition="ARITHMETIC_OVERFLOW")

    def commit(self) -> None:
        """Makes the changes final."""
        self._kept.commit()
        self._committed_size = self._size

    def rollback(self) -> None:
        """Takes back the changes since the last commit."""
        self._kept.rollback()
        self._size = self._committed_size

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self._kept.nbytes


def _counted(entries: OrderedSums, counting: Callable[[OrderedSums], RankRanges]) -> Ints:
    ranges = counting(entries)
    counts = np.zeros(len(ranges[0][0]), dtype=np.int64)
    for first, last, sign in ranges:
        counts += sign * entries.between(first, last)[:, 0]
    return counts


def _place_specials(above: Bools, special: list[Bools], bounds: Sequence[int]) -> None:
    """Where a NaN or an infinity counts, it decides."""
    if not special:
        return
    nan, plus, minus = special
    for held, value in ((plus, np.inf), (minus, -np.inf), (nan | (plus & minus), np.nan)):
        word = int(float_order(np.array([value]))[0])
        for i in np.flatnonzero(held).tolist():
            above[i] = word >= bounds[i if len(bounds) > 1 else 0]


def _integers(sums: Ints | list[int]) -> list[int]:
    return sums if isinstance(sums, list) else wide.to_ints(sums)


def _slanted(counts: Ints, sums: Ints, slant: Slant) -> Ints:
    """f·Σv - m·n, as numbers of 128 bits."""
    factor, slope = slant
    if slant == (1, 0):
        return sums
    scaled = wide.multiply_word(sums, np.full(len(sums), factor))[0]
    slopes = np.broadcast_to(wide.from_ints([slope]), (len(sums), 2)).copy()
    return wide.subtract(scaled, wide.multiply_word(slopes, counts)[0])


def _clipped(start: int) -> int:
    return min(max(start, -_ROOM), _ROOM)
