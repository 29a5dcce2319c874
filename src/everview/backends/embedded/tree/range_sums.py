"""The sums of ranges of a view, for rows that know all its keys but one and what their predicates say of that one.

    Σ S[k, y]  over the y with  x < y,  for each row (k, x)

Each comparison cuts the entries of k, in the order of y, into those before a rank and those from it on (``cut_search``). The
stretches between cuts on which the predicates hold are summed in O(log N) each.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from everview.backends.embedded.cut_search import CutSearch
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.tree.block_layout import key_layout, words_per_key
from everview.backends.embedded.tree.layout import EXACT_RANGE
from everview.backends.embedded.tree.machine import range_error
from everview.backends.embedded.tree.pauses import RangePause
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Bools, Ints
from everview.planner.block import Block
from everview.relational.expressions import remap_columns
from everview.relational.ordered_condition import Both, Cut, OrderedCondition, ordered_condition
from everview.trigger.tree_program import TreeProgram


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
        self._cuts: list[CutSearch] = []
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
            self._cuts.append(CutSearch(condition, width, dictionary))
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


def _holds(condition: OrderedCondition, cuts: Iterator[tuple[CutSearch, Ints]], start: Ints) -> Bools:
    """Whether the condition holds on the stretches that begin at these ranks; ``cuts`` are in the condition's order."""
    if isinstance(condition, Cut):
        search, ranks = next(cuts)
        return start >= ranks if search.is_from else start < ranks
    parts = [_holds(p, cuts, start) for p in condition.parts]
    combined: Bools = np.logical_and.reduce(parts) if isinstance(condition, Both) else np.logical_or.reduce(parts)
    return combined
