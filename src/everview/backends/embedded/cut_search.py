"""Where a comparison turns, in the order of a column: a search in ordered state, for many rows at once.

A comparison of the column itself with a value is a search for that value. Any other is tried on some entries, evenly spaced,
then on some between the two where it turns, and so on: log N steps to the base of how many are tried at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate, compile_projection
from everview.backends.embedded.vectors import Ints, Vector
from everview.errors import EvaluationError
from everview.relational.expressions import columns_of
from everview.relational.ordered_condition import Cut
from everview.relational.range_condition import compared_directly

TRIED_AT_ONCE = 32
"""Entries on which a comparison is tried at once, for each row; more where there are few rows."""
TRIED_FOR_ALL = 128


class Ordered(Protocol):
    """Entries in groups, each in the order of one column."""

    def rank(self, bounds: Ints, *, after: bool = False) -> Ints:
        """How many entries are below each bound (``after``: not above it)."""

    def words(self, vector: Vector) -> Ints:
        """What stands for values of the column in a bound, behind the words of the group."""

    def values_at(self, ranks: Ints) -> Vector:
        """The column in the entries with these ranks."""


class CutSearch:
    """Where one comparison turns. It is over columns that are known of each row, and then, at ``column``, the ordered one."""

    def __init__(self, cut: Cut, column: int, dictionary: Dictionary) -> None:
        self.is_from = cut.is_from
        direct = compared_directly(cut.condition, column)
        self._is_after = direct is not None and direct[0] in (">", "<=")
        self._reads = columns_of(cut.condition)
        self._value = None if direct is None else compile_projection((direct[1],), dictionary)
        self._holds = None if direct is not None else compile_predicate(cut.condition, dictionary)

    @property
    def can_fail(self) -> bool:
        """Whether a search could raise EvaluationError; False is a promise."""
        step = self._value if self._holds is None else self._holds
        assert step is not None
        return step.can_fail

    def find(self, order: Ordered, prefix: Ints, known: Sequence[Vector], first: Ints, last: Ints) -> Ints:
        """The rank at which the comparison turns, for each row; where it never holds, ``last`` or ``first``."""
        if self._value is None:
            return self._try(order, known, first, last)
        (value,) = self._value(known, len(first))
        bounds = np.concatenate([prefix, order.words(value)], axis=1)
        ranks = order.rank(np.ascontiguousarray(bounds), after=self._is_after)
        if value.nulls is not None:
            ranks = np.where(value.nulls, last if self.is_from else first, ranks)
        return np.clip(ranks, first, np.maximum(first, last))

    def is_sure(self, order: Ordered, known: Sequence[Vector], first: Ints, last: Ints) -> Ints:
        """The rows that have entries between two ranks, and for which the comparison fails on none of them.

        Exact arithmetic that only grows, or falls, along the order fails at an end of it, if it does at all.
        """

        def evaluate(rows: Ints) -> None:
            taken = self._taken(known, rows)
            if self._value is not None:
                self._value(taken, len(rows))
                return
            assert self._holds is not None
            for end in (first[rows], last[rows] - 1):
                self._holds((*taken, order.values_at(end)), len(rows))

        return _sure(evaluate, np.flatnonzero(first < last))

    def fails_without(self, known: Sequence[Vector], nothing: Vector, count: int) -> Ints:
        """The rows for which the comparison may fail where the ordered column is NULL, given that as a vector of one."""

        def evaluate(rows: Ints) -> None:
            taken = self._taken(known, rows)
            if self._value is not None:
                self._value(taken, len(rows))
            else:
                assert self._holds is not None
                self._holds((*taken, nothing.take(np.zeros(len(rows), dtype=np.int64))), len(rows))

        rows = np.arange(count)
        return np.setdiff1d(rows, _sure(evaluate, rows))

    def _taken(self, known: Sequence[Vector], rows: Ints) -> list[Vector]:
        """Some rows of the columns that the comparison reads."""
        return [v.take(rows) if i in self._reads else v for i, v in enumerate(known)]

    def _try(self, order: Ordered, known: Sequence[Vector], first: Ints, last: Ints) -> Ints:
        assert self._holds is not None
        low, high = first.copy(), np.maximum(first, last)
        while True:
            rows = np.flatnonzero(low < high)
            if not len(rows):
                return low
            tries = max(TRIED_AT_ONCE, min(TRIED_FOR_ALL // len(rows), int((high - low).max())))
            ranks = low[rows, None] + (high - low)[rows, None] * np.arange(tries) // tries
            tried = order.values_at(ranks.reshape(-1))
            beside = np.repeat(rows, tries)
            holds = self._holds((*self._taken(known, beside), tried), len(beside)).reshape(ranks.shape)
            behind = holds if self.is_from else ~holds
            before = tries - np.count_nonzero(behind, axis=1)  # of those tried, how many lie before the cut
            picked = np.arange(len(rows))
            is_none, is_all = before == 0, before == tries
            new_high = np.where(is_all, high[rows], ranks[picked, np.minimum(before, tries - 1)])
            new_low = np.where(is_none, low[rows], ranks[picked, np.maximum(before - 1, 0)] + 1)
            low[rows], high[rows] = new_low, new_high


def _sure(evaluate: Callable[[Ints], None], rows: Ints) -> Ints:
    """The rows for which an evaluation does not fail; the others are found by halving."""
    try:
        evaluate(rows)
    except EvaluationError:
        if len(rows) == 1:
            return rows[:0]
        middle = len(rows) // 2
        return np.concatenate([_sure(evaluate, rows[:middle]), _sure(evaluate, rows[middle:])])
    return rows
