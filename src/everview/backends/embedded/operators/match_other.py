"""Semi-join and anti-join on equalities k and one inequality: ``l.k = r.k AND l.x <> r.x``.

A row (k, x) has a partner if k has a value other than x on the right: with D(k) the number of distinct values at k, and
[(k, x)] whether x is one of them, if D(k) - [(k, x)] > 0. So the right side is kept as the counts of (k, x), and D. Where k has
two values or more before and after a change, nothing turns; else the left rows at k are looked at, of which at most those of
one value do not turn. Rows with NULL as x have no partner, and are none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.join import Keys
from everview.backends.embedded.operators.match import MatchByKeyOperator
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Batch, Bools, Ints
from everview.relational.nodes import JoinKind, Schema


class MatchByOtherOperator(MatchByKeyOperator):
    """L ⋉ R or L ▷ R on equalities and a column that differs."""

    def __init__(
        self, fields: Schema, left: Operator, right: Operator, kind: JoinKind, keys: Keys, differing: tuple[int, int]
    ) -> None:
        super().__init__(fields, left, right, kind, keys)
        self._group_words = self.left.key_layout.width if keys else 0
        self._probed = self.left.keyed_by((*self.left.columns, differing[0]), (*self.left.null_safe, False))
        self._right_columns = (*self._right_columns, differing[1])
        self._pairs = WeightMap(self._probed.key_layout.width)
        """The right rows of each key and value; the counts are of the values of each key."""

    def _have_partners(self, keys: Ints) -> Bools:
        return self._others(keys) > 0

    def _others(self, keys: Ints) -> Ints:
        """How many other values the right side has."""
        return self._counts.weights_of(self._groups(keys)) - (self._pairs.find(keys) >= 0)

    def _groups(self, keys: Ints) -> Ints:
        if not self._group_words:
            return np.zeros((len(keys), 1), dtype=np.int64)
        return np.ascontiguousarray(keys[:, : self._group_words])

    def load(self, contents: Sequence[Batch]) -> Batch:
        left, right = contents
        self._changed_groups(*self._changed_values(right))
        return left.take(self._shown(left))

    def _changed_values(self, right: Batch) -> tuple[Ints, Ints]:
        """Counts right rows; returns the keys with the values that came (1) or went (-1)."""
        keys, kept = self._probed.probe_keys([right.columns[c] for c in self._right_columns], len(right))
        pairs = self._add(self._pairs, keys, right.weights if kept is None else right.weights[kept])
        signs = (pairs.new > 0).astype(np.int64) - (pairs.old > 0)
        has_changed = signs != 0
        return keys[pairs.rows[has_changed]], signs[has_changed]

    def _changed_groups(self, values: Ints, signs: Ints) -> tuple[Ints, Ints]:
        """Counts values; returns the keys that have, or had, one at most, and how many more they have now."""
        groups = self._groups(values)
        counts = self._add(self._counts, groups, signs)
        few = np.minimum(counts.old, counts.new) <= 1
        return groups[counts.rows[few]], (counts.new - counts.old)[few]

    def _turned(self, right: Batch) -> list[Batch]:
        values, signs = self._changed_values(right)
        groups, more = self._changed_groups(values, signs)
        if not len(groups):
            return []
        rows, slots = self._left_slots(groups)
        if not len(slots):
            return []
        return [self._those_that_turn(self.left.rows.at(slots), more[rows], values, signs)]

    def _those_that_turn(self, left: Batch, more: Ints, values: Ints, signs: Ints) -> Batch:
        """The left rows that got or lost their partners.

        Args:
            left: Rows whose key has another number of values now, or others.
            more: How many more values that are.
            values: The keys and values that came or went.
            signs: Which of them came (1) and which went (-1).
        """
        keys, kept = self._probed.probe_keys([left.columns[c] for c in self._probed.columns], len(left))
        if kept is not None:
            left, more = left.take(kept), more[kept]
        came = WeightMap(self._pairs.width, len(values))
        came.add_weights(values, signs)
        now = self._others(keys)
        before = now - more + came.weights_of(keys)
        turn = (now > 0).astype(np.int64) - (before > 0)
        turned = left.take(turn != 0)
        signs = turn[turn != 0]
        return Batch(turned.columns, turned.weights * (signs if self._wants_partner else -signs))

    def nbytes(self) -> dict[str, int]:
        return {"values per key": self._counts.nbytes, "counts per key and value": self._pairs.nbytes}

    def describe(self) -> str:
        names = [self.left.operator.fields[c].name for c in self._probed.columns]
        kind = "semi" if self._wants_partner else "anti"
        by = f" for each {', '.join(names[:-1])}" if names[:-1] else ""
        where = "where there are no others, before or after"
        return f"{kind} join: look-up of the number of other values of {names[-1]}{by}; slice of the left side {where}"
