"""Sums, counts and averages over the entries with another key (``other_values``), as the whole without each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from everview.backends.embedded.operators.nested_averages import DIGITS, average_line, rounded_average
from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.nested_values import EXACT_FLOATS, as_wide
from everview.backends.embedded.operators.other_values import KeyGroups, Turned, keys_at
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.ordered_sums import COUNTED, EXACT, OrderedSums
from everview.backends.embedded.state.running_values import Bounds
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.errors import EvaluationError
from everview.relational.types import DataType, Decimal

_ROOM = 1 << 124
_WORD = 1 << 63
_SIGN = np.int64(-_WORD)
_DIFFERENCE = 2
"""Words of a sum, or of a difference, in an ordered key."""

Line: TypeAlias = tuple[int, int, int] | bool
"""Factor f, slope m and start s: f·Σv - m·n ≥ s; or whether that is so for all sums, or for none."""


class OtherSums:
    """Sums, counts and averages of integers and decimals.

    Args:
        groups: How keys are cut.
        width: Words of a key.
        function: ``sum``, ``count`` or ``avg``.
        type_: The type of what it gives.
        limit: What the type of a sum can hold.
    """

    def __init__(self, groups: KeyGroups, width: int, function: str, type_: DataType, limit: Bounds) -> None:
        self._grouped, self._width, self._function = groups, width, function
        self._limit = limit if function == "sum" else None
        self._digits = type_.precision if isinstance(type_, Decimal) else None
        self._entries = OrderedSums(width, (COUNTED, EXACT))
        self._orders: dict[tuple[int, int], OrderedSums] = {}
        """Keys by their differences, for the factors and slopes of lines."""
        self._made: set[tuple[int, int]] = set()
        """Those that were made in this transaction."""
        self._size = self._rows = 0
        self._committed = 0, 0
        self._undo: list[Callable[[], None]] = []

    # Entries

    def add(self, keys: Ints, values: Vector, weights: Ints) -> None:
        self._add(keys, np.unique(keys, axis=0), values, weights)

    def _add(self, keys: Ints, changed: Ints, values: Vector, weights: Ints) -> None:
        payloads = np.empty((len(keys), 3), dtype=np.int64)
        payloads[:, 0] = weights
        payloads[:, 1:] = wide.multiply_word(self._numbers(values, weights), weights)[0]
        self._rows += int(weights.sum())
        own = self._own(changed)
        self._entries.add(keys, payloads)
        negated = np.column_stack([-weights, wide.negate(np.ascontiguousarray(payloads[:, 1:]))])
        self._undo.append(lambda: self._entries.add(keys, negated))
        now = self._own(changed)
        for line, order in list(self._orders.items()):
            if self._has_room(*line):
                self._place(order, line, changed, own, -1)
                self._place(order, line, changed, now, 1)
            else:
                del self._orders[line]
        if self._limit is not None:
            self._require_range(changed, self._limit)

    def _numbers(self, values: Vector, weights: Ints) -> Ints:
        """What is summed, as numbers of 128 bits."""
        if self._function == "count":
            return wide.from_int64(np.ones_like(weights))
        if self._function == "sum":
            return as_wide(values)
        if self._digits is not None:
            numbers = as_wide(values)
            self._size += int(np.abs(wide.to_float64(numbers)) @ np.abs(weights))  # about
            return numbers
        given = values.values.tolist()
        if any(abs(v) > EXACT_FLOATS for v in given):
            given = [int(float(v)) for v in given]
        self._size += sum(abs(v) * w for v, w in zip(given, weights.tolist(), strict=True))
        return wide.from_ints(given)

    def _own(self, keys: Ints) -> Ints:
        """Counts and sums of keys; zero for those without an entry."""
        return self._entries.payloads_at(self._entries.find(np.ascontiguousarray(keys)))

    def _totals(self, groups: Ints) -> Ints:
        """Counts and sums of groups."""
        return self._entries.between(*self._grouped.extents(self._entries, groups))

    def _place(self, order: OrderedSums, line: tuple[int, int], keys: Ints, own: Ints, sign: int) -> None:
        """Puts keys that have entries in an order, or takes them out."""
        has = own[:, 0] > 0
        placed, weights = (
            self._ordered(keys[has], self._differences(own[has], line)),
            np.full((int(has.sum()), 1), sign),
        )
        order.add(placed, weights)
        self._undo.append(lambda: order.add(placed, -weights))

    def _ordered(self, keys: Ints, differences: Ints) -> Ints:
        at = self._grouped.words
        words = differences[:, 1], differences[:, 0] ^ _SIGN
        return np.ascontiguousarray(np.column_stack([keys[:, :at], *words, keys[:, at:]]))

    def _require_range(self, changed: Ints, limit: Bounds) -> None:
        """A sum that its type cannot hold is an error, whether an outer row asks for it or not."""
        groups = self._grouped.touched(self._entries, changed, has_moved=False)
        order = self._order((1, 0))
        assert order is not None, "sums have room"
        first, last = self._grouped.extents(order, groups)
        several = last - first > 1
        totals, at = self._totals(groups)[several], self._grouped.words
        for ranks in (first, last - 1):
            words = keys_at(order, ranks[several])[:, at : at + _DIFFERENCE]
            own = np.column_stack([words[:, 1] ^ _SIGN, words[:, 0]])
            _check(wide.subtract(np.ascontiguousarray(totals[:, 1:]), own), limit)

    # Lines

    def _lines(self, within: Within) -> tuple[Line, Line]:
        """From where on sums are not below the bounds: the first is to hold, and the second is not to."""
        low, high = (self._line(b) for b in (within.bounds[0], within.bounds[1] + 1))
        return low, high

    def _line(self, bound: int) -> Line:
        if self._function != "avg":
            return 1, 0, min(max(bound, -_ROOM), _ROOM)
        line = average_line(bound, self._digits)
        if isinstance(line, bool):
            return line
        slope, bits, start = line
        return (1 << bits if self._digits is None else 2 * DIGITS), slope, start

    def _has_room(self, factor: int, slope: int) -> bool:
        """Whether 128 bits hold the differences from a line."""
        if self._function != "avg":
            return True
        if max(factor, abs(slope)) >= _WORD or (self._digits is None and self._size > EXACT_FLOATS):
            return False
        return 2 * (factor * self._size + abs(slope) * self._rows) < _ROOM

    def _differences(self, sums: Ints, line: tuple[int, int]) -> Ints:
        factor, slope = line
        totals = np.ascontiguousarray(sums[:, 1:])
        if line == (1, 0):
            return totals
        scaled = wide.multiply_word(totals, np.full(len(sums), factor))[0]
        return wide.subtract(scaled, wide.multiply_word(wide.from_int64(sums[:, 0]), np.full(len(sums), slope))[0])

    def _order(self, line: tuple[int, int]) -> OrderedSums | None:
        """The keys in the order of their differences; None where those are too large."""
        if not self._has_room(*line):
            return None
        if line not in self._orders:
            keys = keys_at(self._entries, np.arange(len(self._entries)))
            order = OrderedSums(self._width + _DIFFERENCE, (COUNTED,))
            order.put(self._ordered(keys, self._differences(self._own(keys), line)), np.ones((len(keys), 1), np.int64))
            self._orders[line] = order
            self._made.add(line)
        return self._orders[line]

    # Judging

    def passes(self, keys: Ints, within: Within) -> Bools:
        groups = self._grouped.touched(self._entries, keys, has_moved=False)
        sums = _minus(self._totals(groups)[self._grouped.numbers(groups, keys)], self._own(keys))
        if self._limit is not None:
            _check(np.ascontiguousarray(sums[sums[:, 0] > 0, 1:]), self._limit)
        return self._judged(sums, within)

    def _judged(self, sums: Ints, within: Within) -> Bools:
        """Whether such counts and sums are let through."""
        has: Bools = np.ones(len(sums), dtype=np.bool_) if self._function == "count" else sums[:, 0] > 0
        if self._function == "avg" and self._digits is None and self._size > EXACT_FLOATS:
            numbers = zip(wide.to_ints(np.ascontiguousarray(sums[:, 1:])), sums[:, 0].tolist(), strict=True)
            low, high = within.bounds
            held = np.array([n > 0 and low <= rounded_average(total, n) <= high for total, n in numbers], np.bool_)
        else:
            low_line, high_line = self._lines(within)
            held = self._is_above(sums, low_line) & ~self._is_above(sums, high_line)
        passed: Bools = has & (held != within.is_outside)
        return passed

    def _is_above(self, sums: Ints, line: Line) -> Bools:
        if isinstance(line, bool):
            return np.full(len(sums), line)
        *slant, start = line
        if self._has_room(*slant):
            return wide.compare(self._differences(sums, (line[0], line[1])), _repeated(start, len(sums))) >= 0
        numbers = zip(wide.to_ints(np.ascontiguousarray(sums[:, 1:])), sums[:, 0].tolist(), strict=True)
        return np.array([line[0] * total - line[1] * n >= start for total, n in numbers], dtype=np.bool_)

    def stands_apart(self, keys: Ints) -> Bools:
        return self._entries.find(np.ascontiguousarray(keys)) > 0

    # Turns

    def turn(self, entries: tuple[Ints, Vector, Ints] | None, old: Within, new: Within) -> Turned:
        changed = np.zeros((0, self._width), dtype=np.int64) if entries is None else np.unique(entries[0], axis=0)
        groups = self._grouped.touched(self._entries, changed, has_moved=old != new)
        was, own, few = self._totals(groups), self._own(changed), self._are_few(groups)
        if entries is not None and len(changed):
            self._add(entries[0], changed, *entries[1:])
        now = self._totals(groups)
        found = self._between(groups, was, now, old, new)
        found.append(self._all_of(groups[few | self._are_few(groups)]))
        others = _without(np.concatenate(found), changed)
        keys, their = np.concatenate([changed, others]), self._own(others)
        at = self._grouped.numbers(groups, keys)
        before = self._judged(_minus(was[at], np.concatenate([own, their])), old)
        after = self._judged(_minus(now[at], np.concatenate([self._own(changed), their])), new)
        has_turned, signs = before != after, after.astype(np.int64) - before
        group_signs = self._judged(now, new).astype(np.int64) - self._judged(was, old)
        return Turned(keys[has_turned], signs[has_turned], groups, group_signs, changed)

    def overflowing(self, groups: Ints) -> Bools:
        if self._limit is None:
            return np.zeros(len(groups), dtype=np.bool_)
        return ~_fits(np.ascontiguousarray(self._totals(groups)[:, 1:]), self._limit)

    def _are_few(self, groups: Ints) -> Bools:
        """Which groups have one key at most, which sees nothing."""
        first, last = self._grouped.extents(self._entries, groups)
        return last - first <= 1

    def _all_of(self, groups: Ints) -> Ints:
        return keys_at(self._entries, _ranks(*self._grouped.extents(self._entries, groups))[1])

    def _between(self, groups: Ints, was: Ints, now: Ints, old: Within, new: Within) -> list[Ints]:
        """The keys whose differences are between where a line was and where it is; all where the line is another one."""
        found, at = [], self._grouped.words
        for before, after in zip(self._lines(old), self._lines(new), strict=True):
            if isinstance(before, bool) and before == after:
                continue
            if isinstance(before, bool) or isinstance(after, bool) or before[:2] != after[:2]:
                return [self._all_of(groups)]
            line = before[:2]
            order = self._order(line)
            if order is None:
                return [self._all_of(groups)]
            cuts = [
                wide.subtract(self._differences(sums, line), _repeated(start, len(sums)))
                for sums, start in ((was, before[2]), (now, after[2]))
            ]
            bounds = [order.rank(self._ordered(groups, c), after=True) for c in cuts]
            keys = keys_at(order, _ranks(np.minimum(*bounds), np.maximum(*bounds))[1])
            found.append(np.delete(keys, np.s_[at : at + _DIFFERENCE], axis=1))
        return found

    def commit(self) -> None:
        for line in [line for line in self._orders if line not in self._made and len(self._orders) > _DIFFERENCE]:
            del self._orders[line]  # lines have moved away
        self._undo.clear()
        self._made.clear()
        self._committed = self._size, self._rows

    def rollback(self) -> None:
        for undo in reversed(self._undo):
            undo()
        for line in self._made:
            self._orders.pop(line, None)
        self._undo.clear()
        self._made.clear()
        self._size, self._rows = self._committed

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes + sum(order.nbytes for order in self._orders.values())


def _ranks(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Pairs of the number of a stretch and a rank in it."""
    counts = np.maximum(last - first, 0)
    numbers = np.repeat(np.arange(len(first)), counts)
    return numbers, np.arange(len(numbers)) - (np.cumsum(counts) - counts)[numbers] + first[numbers]


def _minus(a: Ints, b: Ints) -> Ints:
    """The differences of counts and sums."""
    sums = wide.subtract(np.ascontiguousarray(a[:, 1:]), np.ascontiguousarray(b[:, 1:]))
    return np.column_stack([a[:, 0] - b[:, 0], sums])


def _repeated(number: int, count: int) -> Ints:
    return np.broadcast_to(wide.from_ints([number]), (count, 2)).copy()


def _fits(sums: Ints, limit: Bounds) -> Bools:
    low, high = (wide.compare(sums, _repeated(bound, len(sums))) for bound in limit)
    return (low >= 0) & (high <= 0)


def _check(sums: Ints, limit: Bounds) -> None:
    if not _fits(sums, limit).all():
        raise EvaluationError("a nested sum is beyond what its type can hold.", condition="ARITHMETIC_OVERFLOW")


def _without(keys: Ints, known: Ints) -> Ints:
    """The distinct keys that are not among those known, which are distinct."""
    every, counts = np.unique(np.concatenate([np.unique(keys, axis=0), known, known]), axis=0, return_counts=True)
    return np.ascontiguousarray(every[counts == 1])
