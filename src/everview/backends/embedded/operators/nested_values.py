"""Nested aggregates along an order: running values in groups, asked for by places of the order.

A key is the words of a group and a *place*, a word of the order. The nested value of an outer row is that of the entries of
its group up to its place. Exact sums and extremes are here, sums of floats in ``nested_floats``, averages in
``nested_averages``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np

from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.ordered_sums import OrderedSums
from everview.backends.embedded.state.running_values import ANY, Bounds, LongSums, RunningExtremes, RunningSums
from everview.backends.embedded.vectors import Bools, Ints, Kind, Vector, kind_of
from everview.errors import EvaluationError

Steps: TypeAlias = tuple[int, ...]
"""Places of the order, ascending, at which it turns whether rows pass; at first they do not."""

_BITS = 128
EXACT_FLOATS = 1 << 53
"""Integers up to it are floats."""
BEYOND = 1 << 4000  # above any sum


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
        self.sums: RunningSums | LongSums = RunningSums(order.group_words + 1)
        self._undo: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self.sums)

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        self.add_wide(keys, wide.from_int64(np.ones_like(weights)) if self._is_count else as_wide(values), weights)
        if self._limit is not None:
            self._require_range(keys, self._limit)

    def add_wide(self, keys: Ints, numbers: Ints, weights: Ints) -> None:
        """Adds numbers of 128 bits, as often as weights say."""
        if isinstance(self.sums, RunningSums):
            size = float(np.abs(wide.to_float64(numbers)) @ np.abs(weights.astype(np.float64)))
            if not self._has_room(size):
                self.widen()
        sums = self.sums
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
        long = self.sums
        assert isinstance(long, LongSums)
        products = [n * w for n, w in zip(numbers, weights.tolist(), strict=True)]
        long.add_long(keys, weights, products)
        self._undo.append(lambda: long.add_long(keys, -weights, [-n for n in products]))

    def scale(self, bits: int) -> None:
        """Multiplies all numbers by a power of 2."""
        self.move(lambda _count, number: number << bits)

    def move(self, moved: Callable[[int, int], int]) -> None:
        """Gives every entry another number, by its count and the number that it has."""
        keys, counts, old = self.sums.entries()
        numbers = [moved(c, n) for c, n in zip(counts.tolist(), old, strict=True)]
        fits = 2 * sum(map(abs, numbers)) < 1 << (_BITS - 3)
        self._replace((RunningSums if fits else LongSums)(self.sums.width), keys, counts, numbers)

    def widen(self) -> None:
        """Goes on with numbers of any length."""
        if isinstance(self.sums, RunningSums):
            self._replace(LongSums(self.sums.width), *self.sums.entries())

    def _replace(self, new: RunningSums | LongSums, keys: Ints, counts: Ints, numbers: Sequence[int]) -> None:
        old = self.sums
        if isinstance(new, LongSums):
            new.add_long(keys, counts, numbers)
        elif len(keys):
            new.put(keys, np.column_stack([counts, wide.from_ints(numbers)]))
        self.sums = new
        self._undo.append(lambda: setattr(self, "sums", old))

    def _has_room(self, size: float) -> bool:
        """Whether no sum leaves its 128 bits if so much is added."""
        assert isinstance(self.sums, RunningSums)
        held = float(max(map(abs, self.sums.extent())))
        return 2 * (size + held) < 2.0 ** (_BITS - 3)

    @property
    def opened(self) -> int:
        """How many nodes were opened for the last turns that were asked for."""
        return self.sums.opened if isinstance(self.sums, RunningSums) else len(self)

    def entries(self) -> tuple[Ints, Ints, list[int]]:
        """All keys, their counts and numbers, in order."""
        return self.sums.entries()

    def _require_range(self, keys: Ints, limit: Bounds) -> None:
        """A sum that its type cannot hold is an error, as it is for Spark, whether an outer row asks for it or not."""
        if isinstance(self.sums, RunningSums):
            least, greatest = self.sums.extent()
            if limit[0] <= least and greatest <= limit[1]:
                return
        for group in np.unique(keys[:, : self._order.group_words], axis=0):
            if self.turns(group, Within(limit)) != self.turns(group, Within(ANY)):
                raise EvaluationError("a nested sum is beyond what its type can hold.", condition="ARITHMETIC_OVERFLOW")

    def turns(self, group: Ints, within: Within) -> Steps:
        first, last = self._order.extent(self.sums, group)
        return self._order.places(self.sums, _turns(self.sums, first, last, self._clipped(within)))

    def passes(self, keys: Ints, within: Within) -> Bools:
        return _held(self.sums, *self._order.ranks(self.sums, keys), self._clipped(within))

    def _clipped(self, within: Within) -> Within:
        if isinstance(self.sums, LongSums):
            return within
        (low, high), (least, most) = within.bounds, ANY
        return replace(within, bounds=(min(max(low, least), most + 1), max(min(high, most), least - 1)))

    def groups(self) -> Ints:
        return self._order.groups(self.sums)

    def commit(self) -> None:
        self._undo.clear()
        if isinstance(self.sums, LongSums) and not len(self.sums):
            self.sums = RunningSums(self.sums.width)

    def rollback(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes


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


def _turns(entries: RunningSums | RunningExtremes | LongSums, first: int, last: int, within: Within) -> Ints:
    every = entries.turns(first, last, ANY) if within.is_outside else None
    ranks = entries.turns(first, last, within.bounds, within.slopes)
    return ranks if every is None else np.setxor1d(ranks, every)


def _held(entries: RunningSums | RunningExtremes | LongSums, first: Ints, last: Ints, within: Within) -> Bools:
    held = entries.is_within(first, last, within.bounds, within.slopes)
    return entries.is_within(first, last, ANY) & ~held if within.is_outside else held


def as_wide(value: Vector) -> Ints:
    """Integers and decimals as numbers of 128 bits."""
    return value.values if kind_of(value.type) is Kind.WIDE else wide.from_int64(value.values)


def _negated(payloads: Ints) -> Ints:
    return np.column_stack([-payloads[:, 0], wide.negate(np.ascontiguousarray(payloads[:, 1:]))])
