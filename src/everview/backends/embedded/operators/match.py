"""Semi-join and anti-join: the left rows that have a partner, or have none.

A left row l with weight w is in the output w·s(l) times, where s(l) says whether a right row matches it (or none does). With w
and s the new values:  δ(w·s) = w·δs + δw·s_old.

*By key.* Where the condition is only equalities, s depends on the key alone: the right side is kept as a count for each key,
and a change that does not create or empty a key costs one look-up.
*By others.* Where a column must differ besides, the number of its values decides (``match_other``).
*By extreme.* Where one comparison is all that there is besides, the extreme of the right side decides (``partner_extremes``).
*By pair.* Otherwise the left rows that match a changed right row are looked for. The change adds d to what their partners weigh
together, w; so each had some before if w > d, and has some now if w > 0. Every partner weighs 1 at least: where they are found
in order, no more than d + 1 of them are looked at, and those that fail the rest of the condition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate
from everview.backends.embedded.operators.base import Operator, Searched, consolidated
from everview.backends.embedded.operators.join import PAIRS_AT_ONCE, Keys, Side, sides
from everview.backends.embedded.operators.partner_extremes import Extremes, extremes, had_partner, turned
from everview.backends.embedded.operators.sums import add_counts
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Batch, Bools, Ints, concatenate
from everview.errors import EvaluationError
from everview.relational.expressions import Expression, conjuncts
from everview.relational.failing import can_fail
from everview.relational.nodes import JoinKind, Schema

_MANY = np.int64(np.iinfo(np.int64).max)


class MatchByKeyOperator(Operator):
    """L ⋉ R or L ▷ R on equalities alone."""

    def __init__(self, fields: Schema, left: Operator, right: Operator, kind: JoinKind, keys: Keys) -> None:
        super().__init__(fields, (left, right))
        self._wants_partner = kind is JoinKind.SEMI
        null_safe = tuple(k[2] for k in keys)
        self._right_columns = tuple(k[1] for k in keys)
        self.left = Side(left, tuple(k[0] for k in keys), null_safe)
        self._probed = self.left
        """The left side by all columns that decide."""
        self._counts = WeightMap(self.left.key_layout.width)
        self._applied: list[tuple[WeightMap, Ints, Ints]] = []

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        left, right = deltas
        parts = []
        if left is not None and len(left):
            kept = self._shown(left)
            if kept.any():
                parts.append(left.take(kept))
        if right is not None and len(right):
            parts.extend(self._turned(right))
        if not parts:
            return None
        whole = concatenate(parts)
        if len(parts) > 1 and left is not None:
            whole = consolidated(whole, self.layout)
        return whole if len(whole) else None

    def load(self, contents: Sequence[Batch]) -> Batch:
        left, right = contents
        self._count(right)
        return left.take(self._shown(left))

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return contents[0].take(self._shown(contents[0]))

    def content(self) -> Batch:
        if self.arrangement is not None:
            return self.arrangement.content()
        return self.recompute([self.left.rows.content()])

    def _shown(self, left: Batch) -> Bools:
        """Which rows are in the output, by the counts as they are now."""
        keys, kept = self._probed.probe_keys([left.columns[c] for c in self._probed.columns], len(left))
        partnered = self._have_partners(keys)
        if kept is not None:
            whole = np.zeros(len(left), dtype=np.bool_)
            whole[kept] = partnered
            partnered = whole
        return partnered if self._wants_partner else ~partnered

    def _have_partners(self, keys: Ints) -> Bools:
        return self._counts.find(keys) >= 0

    def _add(self, counts: WeightMap, keys: Ints, weights: Ints, most: int = 0) -> tuple[Ints, Ints]:
        told = counts.add_and_tell(keys, weights, most)
        self._applied.append((counts, keys, weights))
        return told

    def _count(self, right: Batch) -> tuple[Ints, Ints]:
        """Adds right rows to the counts; returns the keys that got their first or lost their last, and which (+1, -1)."""
        keys, kept = self.left.probe_keys([right.columns[c] for c in self._right_columns], len(right))
        return self._add(self._counts, keys, right.weights if kept is None else right.weights[kept])

    def _turned(self, right: Batch) -> list[Batch]:
        keys, turn = self._count(right)
        if not len(keys):
            return []
        rows, slots = self._left_slots(keys)
        if not len(slots):
            return []
        found = self.left.rows.at(slots)
        sign = turn[rows] if self._wants_partner else -turn[rows]
        return [Batch(found.columns, found.weights * sign)]

    def _left_slots(self, keys: Ints) -> tuple[Ints, Ints]:
        if not self.left.columns:
            slots = self.left.rows.live_slots()
            return np.zeros(len(slots), dtype=np.int64), slots
        return self.left.rows.found(self.left.columns, keys)

    def commit(self) -> None:
        self._applied.clear()

    def rollback(self) -> None:
        for counts, keys, weights in reversed(self._applied):
            counts.add_weights(keys, -weights)
        self._applied.clear()

    def nbytes(self) -> dict[str, int]:
        return {"counts per key": self._counts.nbytes}

    def searches(self) -> tuple[Searched, ...]:
        return (self.left.rows,)

    def describe(self) -> str:
        names = [self.left.operator.fields[c].name for c in self.left.columns]
        kind = "semi" if self._wants_partner else "anti"
        how = f"look-up of {', '.join(names)} in counts" if names else "look-up of one count"
        return f"{kind} join: {how}; slice of the left side where a key appears or vanishes"


class MatchByPairOperator(Operator):
    """L ⋉ R or L ▷ R on any condition; with SINGLE, L itself after checking that no left row has two partners."""

    survives_lack_of_memory = True

    def __init__(
        self,
        fields: Schema,
        left: Operator,
        right: Operator,
        kind: JoinKind,
        keys: Keys,
        residual: Expression | None,
        dictionary: Dictionary,
    ) -> None:
        super().__init__(fields, (left, right))
        self._kind = kind
        self.left, self.right = sides(left, right, keys, residual, dictionary)
        self._residual = None if residual is None else compile_predicate(residual, dictionary)
        self._is_by_extreme = (
            kind is not JoinKind.SINGLE
            and residual is not None
            and len(conjuncts(residual)) == 1
            and self.left.has_one_bound
            and self.right.has_one_bound
            and not can_fail(residual)
        )

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        left, right = deltas
        parts = []
        found = None
        if right is not None and len(right):
            if self._is_by_extreme:
                found = extremes(self.right, right)
                if len(found.groups):
                    gained = turned(self.left, self.right, found)
                    parts.append(gained if self._kind is JoinKind.SEMI else gained.negated())
            else:
                parts.extend(self._turned(right))
        if left is not None and len(left):
            kept = self._were_shown(left, right, found)
            if kept.any():
                parts.append(left.take(kept))
        if not parts:
            return None
        whole = consolidated(concatenate(parts), self.layout)
        return whole if len(whole) else None

    def _were_shown(self, left: Batch, right: Batch | None, found: Extremes | None) -> Bools:
        """Which left rows were, or would have been, in the output before the right side changed."""
        added = np.zeros(len(left), dtype=np.int64)
        if found is None and right is not None and len(right):
            added = self._partners(left, self.right.of_change(right))
        new = self._partners(left, self.right, added)
        self._require_single(left, new)
        if found is None:
            return self._shows(new - added)
        return self._shows(had_partner(left, self.left, self.right, found, new > 0).astype(np.int64))

    def load(self, contents: Sequence[Batch]) -> Batch:
        left = contents[0]
        partners = self._partners(left, self.right, np.zeros(len(left), dtype=np.int64))
        self._require_single(left, partners)
        return left.take(self._shows(partners))

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.load(contents)

    def content(self) -> Batch:
        if self.arrangement is not None:
            return self.arrangement.content()
        return self.load([self.left.rows.content()])

    def _shows(self, partners: Ints) -> Bools:
        match self._kind:
            case JoinKind.SEMI:
                return partners > 0
            case JoinKind.ANTI:
                return partners <= 0
            case _:
                return np.ones(len(partners), dtype=np.bool_)

    def _require_single(self, left: Batch, partners: Ints) -> None:
        if self._kind is JoinKind.SINGLE and ((partners > 1) & (left.weights > 0)).any():
            raise EvaluationError(
                "a scalar subquery returned more than one row.", condition="SCALAR_SUBQUERY_TOO_MANY_ROWS"
            )

    def _turned(self, right: Batch) -> list[Batch]:
        """The left rows, as they are now, whose answer the right delta changes."""
        affected, added = self._affected(right)
        if not len(affected):
            return []
        found = self.left.rows.at(affected)
        new = self._partners(found, self.right, added)
        self._require_single(found, new)
        turn = self._shows(new).astype(np.int64) - self._shows(new - added).astype(np.int64)
        has_turned = turn != 0
        return [Batch(tuple(c.take(has_turned) for c in found.columns), found.weights[has_turned] * turn[has_turned])]

    def _affected(self, right: Batch) -> tuple[Ints, Ints]:
        """The slots of the left rows that the right delta brings or takes partners, and how many."""
        slots: Ints = np.zeros(0, dtype=np.int64)
        added: Ints = slots
        for rows, found in self.left.matches_in_turns(right, self.right.columns):
            for at in range(0, len(rows), PAIRS_AT_ONCE):
                some = slice(at, at + PAIRS_AT_ONCE)
                weights = self._weights(self.left.rows.at(found[some]), right.take(rows[some]))
                slots, places = np.unique(np.concatenate([slots, found[some]]), return_inverse=True)
                sums = np.zeros(len(slots), dtype=np.int64)
                add_counts(sums[:, None], 0, places, np.concatenate([added, weights]))
                slots, added = slots[sums != 0], sums[sums != 0]
        return slots, added

    def _partners(self, left: Batch, side: Side, added: Ints | None = None) -> Ints:
        """How many rows of a side match each left row; where it is more than two beyond ``added``, perhaps not all."""

        def weigh(rows: Ints, slots: Ints) -> Ints:
            return self._weights(left.take(rows), side.rows.at(slots))

        enough = _MANY if added is None else np.maximum(added, 0) + 2
        return side.count(left, self.left.columns, np.broadcast_to(enough, len(left)), weigh)

    def _weights(self, left: Batch, partners: Batch) -> Ints:
        """The weights of partners, row by row, where the pair meets the condition."""
        if self._residual is None or not len(partners):
            return partners.weights
        return np.where(self._residual(left.columns + partners.columns, len(partners)), partners.weights, 0)

    def searches(self) -> tuple[Searched, ...]:
        return (self.left.rows, self.right.rows)

    def describe(self) -> str:
        left, right = self.left.access_path, self.right.access_path
        if self._is_by_extreme:
            how = f"the extreme of the right side decides; rows of the left side that turn: {left}"
            return f"{self._kind.value} join: left change → right {right}; right change → {how}"
        how = "counted until the answer is known" if self.right.is_ordered else "counted"
        return f"{self._kind.value} join: left change → right {right}; right change → left {left}; matches {how}"
