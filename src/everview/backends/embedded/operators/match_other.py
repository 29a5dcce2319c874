"""Semi-join and anti-join on equalities k and one inequality: ``l.k = r.k AND l.x <> r.x``.

A row (k, x) has a partner if k has a value other than x on the right: with D(k) the number of distinct values at k, and
[(k, x)] whether x is one of them, if D(k) - [(k, x)] > 0. So the right side is kept as the counts of (k, x), and D. Where k has
two values or more before and after a change, nothing turns; else the left rows at k are looked at, of which at most those of
one value do not turn. Rows with NULL as x have no partner, and are none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.operators.base import Operator, Searched, consolidated
from everview.backends.embedded.operators.join import Keys
from everview.backends.embedded.operators.match import MatchByKeyOperator
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.state.weight_map import WeightMap, tell
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
        is_whole = self._right_columns == tuple(range(len(right.fields))) and self._probed.key_layout == right.layout
        self._kept = right.arranged() if is_whole and not any(right.layout.nullable) else None
        """The right side, where its rows are nothing but keys and values: others may search it, too."""
        self._pairs = self._kept.rows if self._kept is not None else WeightMap(self._probed.key_layout.width)
        """The right rows of each key and value; the counts are of the values of each key."""
        self._ahead: tuple[Ints, Ints] | None = None
        """What of a change the pairs have taken in already and the counts have not, where others keep the pairs."""

    def _have_partners(self, keys: Ints) -> Bools:
        return self._others(keys) > 0

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        right = deltas[1]
        if self._kept is not None and right is not None and len(right):
            self._ahead = self._changed_values(right)
        try:
            return super().push(deltas)
        finally:
            self._ahead = None

    def _others(self, keys: Ints) -> Ints:
        """How many other values the right side has, as of what its values are counted for."""
        is_there = (self._pairs.find(keys) >= 0).astype(np.int64)
        if self._ahead is not None:
            is_there -= self._came(keys, *self._ahead)
        return self._counts.weights_of(self._groups(keys)) - is_there

    def _came(self, keys: Ints, values: Ints, signs: Ints) -> Ints:
        """Of keys with values, which are among those that came (1) or went (-1)."""
        own = KeyMap(self._pairs.width, len(keys))
        slots, places = own.upsert(keys), own.find(values)
        came = np.zeros(own.capacity, dtype=np.int64)
        (met,) = (places >= 0).nonzero()
        came[places[met]] = signs[met]
        return came[slots]

    def _groups(self, keys: Ints) -> Ints:
        if not self._group_words:
            return np.zeros((len(keys), 1), dtype=np.int64)
        return np.ascontiguousarray(keys[:, : self._group_words])

    def load(self, contents: Sequence[Batch]) -> Batch:
        left, right = contents
        if self._kept is None:
            self._changed_groups(*self._changed_values(right))
        else:
            values = self._pairs.keys[self._pairs.live_slots()]
            self._changed_groups(values, np.ones(len(values), dtype=np.int64))
        return left.take(self._shown(left))

    def _changed_values(self, right: Batch) -> tuple[Ints, Ints]:
        """Counts right rows; returns the keys with the values that came (1) or went (-1)."""
        if self._kept is not None:
            last = self._kept.last
            if last is not None and last.delta is right:
                return tell(last.keys, last.changes)
            rows = consolidated(right, self._kept.layout)  # what has waited for a lazy view
            keys = self._kept.layout.pack(rows.columns, len(rows))
            now = self._pairs.weights_of(keys)
            signs = (now > 0).astype(np.int64) - (now > rows.weights)
            return keys[signs != 0], signs[signs != 0]
        keys, kept = self._probed.probe_keys([right.columns[c] for c in self._right_columns], len(right))
        return self._add(self._pairs, keys, right.weights if kept is None else right.weights[kept])

    def _changed_groups(self, values: Ints, signs: Ints) -> tuple[Ints, Ints]:
        """Counts values; returns the keys that have, or had, one at most, and how many more they have now."""
        return self._add(self._counts, self._groups(values), signs, most=1)

    def _turned(self, right: Batch) -> list[Batch]:
        values, signs = self._changed_values(right) if self._ahead is None else self._ahead
        self._ahead = None
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
        now = self._others(keys)
        before = now - more + self._came(keys, values, signs)
        turn = (now > 0).astype(np.int64) - (before > 0)
        turned = left.take(turn != 0)
        signs = turn[turn != 0]
        return Batch(turned.columns, turned.weights * (signs if self._wants_partner else -signs))

    def searches(self) -> tuple[Searched, ...]:
        return (self.left.rows,) if self._kept is None else (self.left.rows, self._kept)

    def nbytes(self) -> dict[str, int]:
        own = {} if self._kept is not None else {"counts per key and value": self._pairs.nbytes}
        return {"values per key": self._counts.nbytes, **own}

    def describe(self) -> str:
        names = [self.left.operator.fields[c].name for c in self._probed.columns]
        kind = "semi" if self._wants_partner else "anti"
        by = f" for each {', '.join(names[:-1])}" if names[:-1] else ""
        where = "where there are no others, before or after"
        return f"{kind} join: look-up of the number of other values of {names[-1]}{by}; slice of the left side {where}"
