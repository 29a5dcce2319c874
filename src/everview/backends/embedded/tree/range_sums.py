"""The sums of ranges of a view, for rows that know all its keys but one and what their predicates say of that one.

    Σ S[k, y]  over the y with  x < y,  for each row (k, x)

Each comparison cuts the entries of k, in the order of y, into those before a rank and those from it on. A comparison of y
itself with a value is a search for that value. Any other is tried on some entries, evenly spaced, then on some between the
two where it turns, and so on: log N steps to the base of how many are tried at once. The stretches between cuts on which
the predicates hold are summed in O(log N) each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate, compile_projection
from everview.backends.embedded.tree.block_layout import key_layout, words_per_key
from everview.backends.embedded.tree.layout import EXACT_RANGE
from everview.backends.embedded.tree.machine import range_error
from everview.backends.embedded.tree.pauses import RangePause
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.tree.view_order import ViewOrder
from everview.backends.embedded.vectors import Bools, Ints, Vector
from everview.planner.block import Block
from everview.relational.expressions import Call, Column, Expression, columns_of, remap_columns
from everview.relational.ordered_condition import Both, Cut, OrderedCondition, ordered_condition
from everview.trigger.tree_program import TreeProgram

TRIED_AT_ONCE = 32
"""Entries on which a comparison is tried at once, for each row."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class RangeSums:
    """Answers one pause, over one view."""

    def __init__(
        self, block: Block, program: TreeProgram, pause: RangePause, view: ViewMap, dictionary: Dictionary
    ) -> None:
        access = pause.access
        assert access.ordered is not None, "a range has an order"
        self.view = view
        keys = program.view(access.view).keys
        words = words_per_key(block, keys)
        bound = [k for k in keys if k != access.ordered]
        self._group = tuple(w for k in bound for w in words[k])
        self._variable = words[access.ordered]
        self._layout = key_layout(block, (access.ordered,))
        self._given = key_layout(block, pause.variables)
        given = words_per_key(block, pause.variables)
        self._group_given = [w for k in bound for w in given[k]]
        self._cuts: list[_CutSearch] = []
        place = {v: i for i, v in enumerate(pause.variables)}
        width = len(pause.variables)
        conditions = []
        for residual in access.residuals:
            moved = remap_columns(residual.condition, lambda c, r=residual: place.get(r.variables[c], width))  # type: ignore[misc]
            found = ordered_condition(moved, width)
            assert found is not None, "the predicate of a range cuts its order"
            conditions.append(found)
        self._condition = Both(tuple(conditions))
        self._collect(self._condition, width, dictionary)

    def _collect(self, condition: OrderedCondition, width: int, dictionary: Dictionary) -> None:
        if isinstance(condition, Cut):
            self._cuts.append(_CutSearch(condition, width, dictionary))
        else:
            for part in condition.parts:
                self._collect(part, width, dictionary)

    def sums(self, columns: list[Ints]) -> Ints:
        """A row of payload words for each row of the words of what is known."""
        order = self.view.order(self._group, self._variable, self._layout)
        keys = np.stack(columns, axis=1) if columns else np.zeros((0, 0), dtype=np.int64)
        count = len(keys)
        prefix = np.ascontiguousarray(keys[:, self._group_given])
        known = self._given.unpack(keys)
        first = order.sums.rank(np.concatenate([prefix, np.full((count, 1), -1, dtype=np.int64)], axis=1), after=True)
        last = np.full(count, len(order.sums), dtype=np.int64)
        if prefix.shape[1]:
            last = order.sums.rank(prefix, after=True)
        cuts = [cut.find(order, prefix, known, first, last) for cut in self._cuts]
        starts = np.sort(np.stack([first, *cuts], axis=0), axis=0)
        found = np.zeros((count, order.sums.payload_words), dtype=np.int64)
        for i, start in enumerate(starts):
            end = starts[i + 1] if i + 1 < len(starts) else last
            holds = _holds(self._condition, iter(zip(self._cuts, cuts, strict=True)), start)
            rows = np.flatnonzero(holds & (start < end))
            if len(rows):
                order.sums.add_between(start[rows], end[rows], rows, found)
        if order.sums.has_wrapped:
            raise range_error(EXACT_RANGE)
        return found


class _CutSearch:
    """Where a comparison turns."""

    def __init__(self, cut: Cut, width: int, dictionary: Dictionary) -> None:
        self.is_from = cut.is_from
        self._width = width
        assert isinstance(cut.condition, Call)
        direct = _direct(cut.condition, width)
        self._is_after = direct is not None and direct[0] in (">", "<=")
        self._value = None if direct is None else compile_projection((direct[1],), dictionary)
        self._holds = None if direct is not None else compile_predicate(cut.condition, dictionary)

    def find(self, order: ViewOrder, prefix: Ints, known: Sequence[Vector], first: Ints, last: Ints) -> Ints:
        """The rank at which the comparison turns, for each row; where it never holds, ``last`` or ``first``."""
        if self._value is None:
            return self._try(order, known, first, last)
        (value,) = self._value(known, len(first))
        bounds = np.concatenate([prefix, order.words(value)], axis=1)
        ranks = order.sums.rank(np.ascontiguousarray(bounds), after=self._is_after)
        if value.nulls is not None:
            ranks = np.where(value.nulls, last if self.is_from else first, ranks)
        return np.clip(ranks, first, np.maximum(first, last))

    def _try(self, order: ViewOrder, known: Sequence[Vector], first: Ints, last: Ints) -> Ints:
        assert self._holds is not None
        low, high = first.copy(), np.maximum(first, last)
        steps = np.arange(TRIED_AT_ONCE)
        while True:
            rows = np.flatnonzero(low < high)
            if not len(rows):
                return low
            ranks = low[rows, None] + (high - low)[rows, None] * steps // TRIED_AT_ONCE
            tried = order.values_at(ranks.reshape(-1))
            beside = np.repeat(rows, TRIED_AT_ONCE)
            holds = self._holds((*(v.take(beside) for v in known), tried), len(beside)).reshape(ranks.shape)
            behind = holds if self.is_from else ~holds
            before = TRIED_AT_ONCE - np.count_nonzero(behind, axis=1)  # of those tried, how many lie before the cut
            picked = np.arange(len(rows))
            is_none, is_all = before == 0, before == TRIED_AT_ONCE
            new_high = np.where(is_all, high[rows], ranks[picked, np.minimum(before, TRIED_AT_ONCE - 1)])
            new_low = np.where(is_none, low[rows], ranks[picked, np.maximum(before - 1, 0)] + 1)
            low[rows], high[rows] = new_low, new_high


def _direct(comparison: Call, column: int) -> tuple[str, Expression] | None:
    """The comparison as one of the column itself, on the left, with a value that does not depend on it."""
    a, b = comparison.args
    function = comparison.function
    if isinstance(b, Column) and b.index == column:
        a, b, function = b, a, _MIRRORED[function]
    if isinstance(a, Column) and a.index == column and column not in columns_of(b):
        return function, b
    return None


def _holds(condition: OrderedCondition, cuts: Iterator[tuple[_CutSearch, Ints]], start: Ints) -> Bools:
    """Whether the condition holds on the stretches that begin at these ranks; ``cuts`` are in the condition's order."""
    if isinstance(condition, Cut):
        search, ranks = next(cuts)
        return start >= ranks if search.is_from else start < ranks
    parts = [_holds(p, cuts, start) for p in condition.parts]
    combined: Bools = np.logical_and.reduce(parts) if isinstance(condition, Both) else np.logical_or.reduce(parts)
    return combined
