"""Nested aggregates along an order: running values in groups, asked for by places of the order.

A key is the words of a group and a *place*, a word of the order. The nested value of an outer row is that of the entries of
its group up to its place. Three kinds hold it: exact sums, extremes, and sums of floats (averages: ``nested_averages``).

Sums of floats are exact, too. A finite float is an integer number of units 2^u, so a running sum is one, and it is rounded
once, when it is compared: with x = round(s), x ≥ b holds from the middle between b and the float before it on. So the order
of additions does not show, and what comes and goes leaves no trace. The unit follows the numbers that are met. NaN and the
infinities are counted aside: from the first of them on, a running sum is what they make of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.float_order import float_from_order, float_order
from everview.backends.embedded.state.large_floats import UNIT_BITS, in_units
from everview.backends.embedded.state.ordered_sums import COUNTED, OrderedSums
from everview.backends.embedded.state.running_values import ANY, Bounds, LongSums, RunningExtremes, RunningSums
from everview.backends.embedded.vectors import Bools, Ints, Kind, Vector, kind_of
from everview.errors import EvaluationError

Floats = npt.NDArray[np.float64]
Steps: TypeAlias = tuple[int, ...]
"""Places of the order, ascending, at which it turns whether rows pass; at first they do not."""

BITS = 128
MANTISSA = 53
EXACT_FLOATS = 1 << MANTISSA
"""Integers up to it are floats."""
NOWHERE = 1 << 64
_SLACK = 8
"""Bits below the lowest one that is met: a unit should not change often."""
BEYOND, _UNSET = 1 << 4000, 2000  # above any sum, and above the exponent of any float
_INFINITY, _MINUS_INFINITY = (int(float_order(np.array([v]))[0]) for v in (math.inf, -math.inf))


class NestedValues(Protocol):
    """The values of a nested aggregate, by group and place."""

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        """Adds entries; until ``commit``, ``rollback`` takes them back."""

    def turns(self, group: Ints, within: Within) -> Steps:
        """Where it turns whether rows of a group pass."""

    def passes(self, keys: Ints, within: Within) -> Bools:
        """Whether outer rows with these keys pass; without an entry they do not."""

    def groups(self) -> Ints:
        """The words of the group of each entry."""

    def commit(self) -> None:
        """Makes the changes final."""

    def rollback(self) -> None:
        """Takes back the changes since the last commit."""

    @property
    def nbytes(self) -> int:
        """Bytes of state."""


class Order:
    """How keys are cut into groups and places.

    Args:
        group_words: Words of a group.
        is_strict: An entry at the place of an outer row does not count for it.
    """

    def __init__(self, group_words: int, *, is_strict: bool) -> None:
        self.group_words, self.is_strict = group_words, is_strict

    def ranks(self, entries: OrderedSums, keys: Ints) -> tuple[Ints, Ints]:
        """The ranks of the entries that count for outer keys: from the first of its group on."""
        first = np.zeros(len(keys), dtype=np.int64)
        if self.group_words:
            first = entries.rank(np.ascontiguousarray(keys[:, : self.group_words]))
        return first, entries.rank(np.ascontiguousarray(keys), after=not self.is_strict)

    def extent(self, entries: OrderedSums, group: Ints) -> tuple[int, int]:
        """The ranks of the entries of a group."""
        if not len(group):
            return 0, len(entries)
        prefix = group.reshape(1, -1)
        return int(entries.rank(prefix)[0]), int(entries.rank(prefix, after=True)[0])

    def groups(self, entries: OrderedSums) -> Ints:
        """The words of the group of each entry."""
        return entries.keys_at(entries.select(np.arange(len(entries))))[:, : self.group_words]

    def places(self, entries: OrderedSums, ranks: Ints) -> Steps:
        """The places with an odd number of turns: entries at one place count together, and two turns at it are none."""
        turned: set[int] = set()
        for word in entries.keys_at(entries.select(ranks))[:, self.group_words].tolist():
            turned ^= {word}
        return tuple(sorted(turned))


class ExactSums:
    """Sums of integers and decimals, and counts. What 128 bits may not hold is summed in linear time (``LongSums``).

    Args:
        order: What keys are.
        limit: What the type of a sum can hold; None for all numbers.
        is_count: Entries count, whatever their value is.
    """

    def __init__(self, order: Order, limit: Bounds | None = None, *, is_count: bool = False) -> None:
        self._order, self._limit, self._is_count = order, limit, is_count
        self._sums: RunningSums | LongSums = RunningSums(order.group_words + 1)
        self._undo: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        self.add_wide(keys, wide.from_int64(np.ones_like(weights)) if self._is_count else as_wide(values), weights)
        if self._limit is not None:
            self._require_range(keys, self._limit)

    def add_wide(self, keys: Ints, numbers: Ints, weights: Ints) -> None:
        """Adds numbers of 128 bits, as often as weights say."""
        if isinstance(self._sums, RunningSums):
            size = float(np.abs(wide.to_float64(numbers)) @ np.abs(weights.astype(np.float64)))
            if not self._has_room(size):
                self.widen()
        sums = self._sums
        if isinstance(sums, LongSums):
            self.add_long(keys, wide.to_ints(numbers), weights)
            return
        payloads = np.empty((len(keys), 3), dtype=np.int64)
        payloads[:, 0] = weights
        payloads[:, 1:] = wide.multiply_word(numbers, weights)[0]
        sums.add(keys, payloads)
        self._undo.append(lambda: sums.add(keys, _negated(payloads)))

    def add_long(self, keys: Ints, numbers: Sequence[int], weights: Ints) -> None:
        """Adds numbers of any length, as often as weights say."""
        self.widen()
        long = self._sums
        assert isinstance(long, LongSums)
        products = [n * w for n, w in zip(numbers, weights.tolist(), strict=True)]
        long.add_long(keys, weights, products)
        self._undo.append(lambda: long.add_long(keys, -weights, [-n for n in products]))

    def scale(self, bits: int) -> None:
        """Multiplies all numbers by a power of 2."""
        self.move(lambda _count, number: number << bits)

    def move(self, moved: Callable[[int, int], int]) -> None:
        """Gives every entry another number, by its count and the number that it has."""
        keys, counts, old = self._sums.entries()
        numbers = [moved(c, n) for c, n in zip(counts.tolist(), old, strict=True)]
        fits = 2 * sum(map(abs, numbers)) < 1 << (BITS - 3)
        self._replace((RunningSums if fits else LongSums)(self._sums.width), keys, counts, numbers)

    def widen(self) -> None:
        """Goes on with numbers of any length."""
        if isinstance(self._sums, RunningSums):
            self._replace(LongSums(self._sums.width), *self._sums.entries())

    def _replace(self, new: RunningSums | LongSums, keys: Ints, counts: Ints, numbers: Sequence[int]) -> None:
        old = self._sums
        if isinstance(new, LongSums):
            new.add_long(keys, counts, numbers)
        elif len(keys):
            new.put(keys, np.column_stack([counts, wide.from_ints(numbers)]))
        self._sums = new
        self._undo.append(lambda: setattr(self, "_sums", old))

    def _has_room(self, size: float) -> bool:
        """Whether no sum leaves its 128 bits if so much is added."""
        assert isinstance(self._sums, RunningSums)
        held = float(max(map(abs, self._sums.extent())))
        return 2 * (size + held) < 2.0 ** (BITS - 3)

    @property
    def opened(self) -> int:
        """How many nodes were opened for the last turns that were asked for."""
        return self._sums.opened if isinstance(self._sums, RunningSums) else len(self)

    def entries(self) -> tuple[Ints, Ints, list[int]]:
        """All keys, their counts and numbers, in order."""
        return self._sums.entries()

    def _require_range(self, keys: Ints, limit: Bounds) -> None:
        """A sum that its type cannot hold is an error, as it is for Spark, whether an outer row asks for it or not."""
        if isinstance(self._sums, RunningSums):
            least, greatest = self._sums.extent()
            if limit[0] <= least and greatest <= limit[1]:
                return
        for group in np.unique(keys[:, : self._order.group_words], axis=0):
            if self.turns(group, Within(limit)) != self.turns(group, Within(ANY)):
                raise EvaluationError("a nested sum is beyond what its type can hold.", condition="ARITHMETIC_OVERFLOW")

    def turns(self, group: Ints, within: Within) -> Steps:
        first, last = self._order.extent(self._sums, group)
        return self._order.places(self._sums, _turns(self._sums, first, last, self._clipped(within)))

    def passes(self, keys: Ints, within: Within) -> Bools:
        return _held(self._sums, *self._order.ranks(self._sums, keys), self._clipped(within))

    def _clipped(self, within: Within) -> Within:
        if isinstance(self._sums, LongSums):
            return within
        (low, high), (least, most) = within.bounds, ANY
        return replace(within, bounds=(min(max(low, least), most + 1), max(min(high, most), least - 1)))

    def groups(self) -> Ints:
        return self._order.groups(self._sums)

    def commit(self) -> None:
        self._undo.clear()
        if isinstance(self._sums, LongSums) and not len(self._sums):
            self._sums = RunningSums(self._sums.width)

    def rollback(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    @property
    def nbytes(self) -> int:
        return self._sums.nbytes


class NestedExtremes:
    """Greatest values, or least ones: those are the greatest of complements."""

    def __init__(self, order: Order, *, is_least: bool) -> None:
        self._order, self._is_least = order, is_least
        self._entries = RunningExtremes(order.group_words + 2)
        self._applied: list[tuple[Ints, Ints]] = []

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        words = range_words(values)
        keys = np.column_stack([keys, ~words if self._is_least else words])
        self._entries.add(keys, weights.reshape(-1, 1))
        self._applied.append((keys, weights))

    def turns(self, group: Ints, within: Within) -> Steps:
        first, last = self._order.extent(self._entries, group)
        return self._order.places(self._entries, _turns(self._entries, first, last, self._mirrored(within)))

    def passes(self, keys: Ints, within: Within) -> Bools:
        return _held(self._entries, *self._order.ranks(self._entries, keys), self._mirrored(within))

    def _mirrored(self, within: Within) -> Within:
        if not self._is_least:
            return within
        low, high = within.bounds
        return Within((~high, ~low), within.is_outside)

    def groups(self) -> Ints:
        return self._order.groups(self._entries)

    def commit(self) -> None:
        self._applied.clear()

    def rollback(self) -> None:
        for keys, weights in reversed(self._applied):
            self._entries.add(keys, -weights.reshape(-1, 1))
        self._applied.clear()

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes


class FloatSums:
    """Sums of floats. Bounds are words in the order of floats (``float_order``)."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._finite = ExactSums(order)
        self._unit = self._committed_unit = 0
        self._specials = tuple(OrderedSums(order.group_words + 1, (COUNTED,)) for _ in range(3))
        """The entries that are NaN, infinite, and negatively infinite."""
        self._undo: list[Callable[[], None]] = []

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        floats: Floats = values.values
        is_finite: Bools = np.isfinite(floats)
        if not is_finite.all():
            special = np.isnan(floats), floats == math.inf, floats == -math.inf
            for entries, has in zip(self._specials, special, strict=True):
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
        if least != _UNSET and (not len(self._finite) or least < self._unit):
            finer = least - _SLACK
            if len(self._finite):
                self._finite.scale(self._unit - finer)
            self._unit = finer
        shifts: Ints = np.where(is_zero, 0, exponents - self._unit)
        if int(shifts.max()) + MANTISSA < BITS:
            self._finite.add_wide(keys, _shifted(numbers, shifts), weights)
        else:
            long = [n << s for n, s in zip(numbers.tolist(), shifts.tolist(), strict=True)]
            self._finite.add_long(keys, long, weights)

    def _exactly(self, within: Within) -> Within:
        """The exact sums whose floats are within bounds."""
        shift = UNIT_BITS + 1 + self._unit
        low, high = within.bounds
        if low > _INFINITY or high < _MINUS_INFINITY:
            return Within((1, 0), within.is_outside)
        least = -BEYOND if low <= _MINUS_INFINITY else _from_float(low, shift)
        most = BEYOND if high >= _INFINITY else _from_float(high + 1, shift) - 1
        return Within((least, most), within.is_outside)

    def turns(self, group: Ints, within: Within) -> Steps:
        places = self._finite.turns(group, self._exactly(within))
        if not any(len(s) for s in self._specials):
            return places
        nan, plus, minus = (self._first(s, group) for s in self._specials)
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
        held = self._finite.passes(keys, self._exactly(within))
        if not any(len(s) for s in self._specials):
            return held
        nan, plus, minus = (np.less(*self._order.ranks(s, keys)) for s in self._specials)
        held[plus] = _is_let(math.inf, within)
        held[minus] = _is_let(-math.inf, within)
        held[nan | (plus & minus)] = _is_let(math.nan, within)
        return held

    def groups(self) -> Ints:
        return np.concatenate([self._finite.groups(), *(self._order.groups(e) for e in self._specials)])

    def commit(self) -> None:
        self._finite.commit()
        self._undo.clear()
        self._committed_unit = self._unit

    def rollback(self) -> None:
        self._finite.rollback()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self._unit = self._committed_unit

    @property
    def nbytes(self) -> int:
        return self._finite.nbytes + sum(s.nbytes for s in self._specials)


def _turns(entries: RunningSums | RunningExtremes | LongSums, first: int, last: int, within: Within) -> Ints:
    every = entries.turns(first, last, ANY) if within.is_outside else None
    ranks = entries.turns(first, last, within.bounds, within.slopes)
    return ranks if every is None else np.setxor1d(ranks, every)


def _held(entries: RunningSums | RunningExtremes | LongSums, first: Ints, last: Ints, within: Within) -> Bools:
    held = entries.is_within(first, last, within.bounds, within.slopes)
    return entries.is_within(first, last, ANY) & ~held if within.is_outside else held


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


def as_wide(value: Vector) -> Ints:
    """Integers and decimals as numbers of 128 bits."""
    return value.values if kind_of(value.type) is Kind.WIDE else wide.from_int64(value.values)


def _negated(payloads: Ints) -> Ints:
    return np.column_stack([-payloads[:, 0], wide.negate(np.ascontiguousarray(payloads[:, 1:]))])
