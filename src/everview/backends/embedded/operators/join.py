"""The inner join, by look-up in indexes of both inputs.

With L and R the new contents:  δ(L ⋈ R) = δL ⋈ R + L ⋈ δR - δL ⋈ δR.

A conjunct of the condition that equates a column of each side is answered by the index; the rest is checked on the pairs,
of which a bounded number is made at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate
from everview.backends.embedded.operators.base import Cost, Operator, Searched, consolidated
from everview.backends.embedded.state.accumulate import joined_weights
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.vectors import Batch, Bools, Ints, KeyLayout, Vector, concatenate
from everview.relational.expressions import Expression
from everview.relational.nodes import Schema
from everview.relational.range_condition import RangeAccess, range_accesses

FIRST_PROBES = 1024
"""Rows that look for their partners at once, as long as nothing is known of how many they have."""
PAIRS_AT_ONCE = 1 << 16
"""Pairs that are put together at once to be checked; about as many are looked for at once."""


class Side:
    """One input of a join as the other side sees it: an arrangement sliced by the join columns.

    With a range ``access`` the rows of a slice are in the order of a column, and only those within the bounds are met.
    """

    def __init__(
        self,
        operator: Operator,
        columns: tuple[int, ...],
        null_safe: tuple[bool, ...],
        access: RangeAccess | None = None,
        *,
        needs_distinct_rows: bool = False,
    ) -> None:
        self.operator = operator
        self.columns = columns
        self.null_safe = null_safe
        self.key_layout: KeyLayout = operator.layout.part(columns)
        self.rows: Searched = operator.arranged() if needs_distinct_rows else operator.searched()
        self._access = access
        if access is not None:
            self.rows.range_index(columns, access)
        elif columns:
            self.rows.index(columns)

    @property
    def cost(self) -> Cost:
        """What it costs to find the partners of one row."""
        return Cost.MATCHES if self.columns or self._access is not None else Cost.LINEAR

    @property
    def access_path(self) -> str:
        """How rows of this side are found, for ``explain``."""
        names = ", ".join(self.operator.fields[c].name for c in self.columns)
        if self._access is not None:
            return f"range of an ordered index{f' by {names}' if names else ''}"
        return f"slice by {names}" if names else "scan"

    def matches_in_turns(self, probing: Batch, key_columns: Sequence[int]) -> Iterator[tuple[Ints, Ints]]:
        """The same as ``matches``, for some of the probing rows after others, so that there are not too many pairs at once."""
        count, size = len(probing), FIRST_PROBES
        if count <= size:
            yield self.matches(probing, key_columns)
            return
        start = 0
        while start < count:
            positions = np.arange(start, min(start + size, count))
            rows, slots = self.matches(probing.take(positions), key_columns)
            yield rows + start, slots
            start += size
            size = max(1, min(2 * size, size * PAIRS_AT_ONCE // (len(rows) + 1)))

    def matches(self, probing: Batch, key_columns: Sequence[int]) -> tuple[Ints, Ints]:
        """Pairs of a probing row and a slot of this side; the batch's key columns are at the given positions."""
        count = len(probing)
        columns = [probing.columns[c] for c in key_columns]
        if self._access is None and not self.columns:
            slots = self.rows.live_slots()
            return np.repeat(np.arange(count), len(slots)), np.tile(slots, count)
        keys, kept = self.probe_keys(columns, count)
        if self._access is not None:
            return self.rows.range_index(self.columns, self._access).matches(keys, probing.columns, kept)
        rows, slots = self.rows.index(self.columns).expand(keys)
        return (rows if kept is None else kept[rows]), slots

    def probe_keys(self, columns: Sequence[Vector], count: int) -> tuple[Ints, Ints | None]:
        """The keys to look up, and the rows they belong to where some rows can have no partner (None: all rows)."""
        mask = self._can_match(columns)
        if mask is None or mask.all():
            return self.key_layout.pack(_null_free(columns, self.key_layout), count), None
        kept = np.flatnonzero(mask)
        taken = [c.take(kept) for c in columns]
        return self.key_layout.pack(_null_free(taken, self.key_layout), len(kept)), kept

    def _can_match(self, columns: Sequence[Vector]) -> Bools | None:
        """A NULL equals nothing under ``=``, and under ``<=>`` only another NULL, which this side must be able to hold."""
        mask: Bools | None = None
        for column, safe, nullable in zip(columns, self.null_safe, self.key_layout.nullable, strict=True):
            if column.nulls is not None and not (safe and nullable):
                mask = ~column.nulls if mask is None else mask & ~column.nulls
        return mask


def _null_free(columns: Sequence[Vector], layout: KeyLayout) -> list[Vector]:
    """Masks without any NULL left are dropped where the layout has no place for NULLs."""
    return [
        Vector(c.type, c.values) if c.nulls is not None and not nullable else c
        for c, nullable in zip(columns, layout.nullable, strict=True)
    ]


Keys = tuple[tuple[int, int, bool], ...]
"""The equalities of a join: left column, right column, whether NULL equals NULL."""


def sides(left: Operator, right: Operator, keys: Keys, residual: Expression | None) -> tuple[Side, Side]:
    """The two sides of a join with these equalities and this further condition."""
    null_safe = tuple(k[2] for k in keys)
    left_access, right_access = range_accesses(residual, len(left.fields))
    return (
        Side(left, tuple(k[0] for k in keys), null_safe, left_access),
        Side(right, tuple(k[1] for k in keys), null_safe, right_access),
    )


class JoinOperator(Operator):
    """L ⋈ R on equal columns and a residual condition."""

    survives_lack_of_memory = True

    def __init__(
        self,
        fields: Schema,
        left: Operator,
        right: Operator,
        keys: Keys,
        residual: Expression | None,
        dictionary: Dictionary,
    ) -> None:
        super().__init__(fields, (left, right))
        self.left, self.right = sides(left, right, keys, residual)
        self._residual = None if residual is None else compile_predicate(residual, dictionary)

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        left, right = deltas
        if left is not None and len(left) and right is not None and len(right):
            parts = [*self._with_right(left), *self._with_left(right), self._between(left, right).negated()]
            # The three terms may hold a pair and take it back; above, an expression may fail on what is not there.
            whole = self._checked(consolidated(concatenate(parts), self.layout))
        elif left is not None and len(left):
            whole = self._all_checked(self._with_right(left))
        elif right is not None and len(right):
            whole = self._all_checked(self._with_left(right))
        else:
            return None
        return whole if len(whole) else None

    def load(self, contents: Sequence[Batch]) -> Batch:
        # The arrangements hold the contents already: joining one side with the other's arrangement is the whole join.
        return self._all_checked(self._with_right(contents[0]))

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return self.load(contents)

    def content(self) -> Batch:
        if self.arrangement is not None:
            return self.arrangement.content()
        return self.load([self.left.rows.content()])

    def _with_right(self, left: Batch) -> Iterator[Batch]:
        for taken, found in self._pairs(left, self.left, self.right):
            yield Batch(taken.columns + found.columns, joined_weights(taken.weights, found.weights))

    def _with_left(self, right: Batch) -> Iterator[Batch]:
        for taken, found in self._pairs(right, self.right, self.left):
            yield Batch(found.columns + taken.columns, joined_weights(found.weights, taken.weights))

    @staticmethod
    def _pairs(delta: Batch, own: Side, other: Side) -> Iterator[tuple[Batch, Batch]]:
        """The rows of a change and their partners, some at a time."""
        for rows, slots in other.matches_in_turns(delta, own.columns):
            for at in range(0, len(rows), PAIRS_AT_ONCE):
                some = slice(at, at + PAIRS_AT_ONCE)
                yield delta.take(rows[some]), other.rows.at(slots[some])

    def _between(self, left: Batch, right: Batch) -> Batch:
        rows, partners = pairs_between(
            [left.columns[c] for c in self.left.columns], len(left),
            [right.columns[c] for c in self.right.columns], len(right),
            self.right,
        )  # fmt: skip
        a, b = left.take(rows), right.take(partners)
        return Batch(a.columns + b.columns, joined_weights(a.weights, b.weights))

    def _all_checked(self, pairs: Iterator[Batch]) -> Batch:
        kept = [checked for some in pairs if len(checked := self._checked(some))]
        return concatenate(kept) if kept else self.nothing()

    def _checked(self, pairs: Batch) -> Batch:
        if self._residual is None or not len(pairs):
            return pairs
        return pairs.take(self._residual(pairs.columns, len(pairs)))

    def searches(self) -> tuple[Searched, ...]:
        return (self.left.rows, self.right.rows)

    def update_cost(self, side: int) -> Cost:
        return self.right.cost if side == 0 else self.left.cost

    def python_parts(self) -> list[str]:
        names = tuple(f.name for f in self.fields)
        return [] if self._residual is None else list(self._residual.definitions(names))

    def describe(self) -> str:
        residual = "" if self._residual is None else ", then a filter"
        return (
            f"join: left change → right {self.right.access_path}; right change → left {self.left.access_path}{residual}"
        )


def pairs_between(
    left: Sequence[Vector], left_count: int, right: Sequence[Vector], right_count: int, side: Side
) -> tuple[Ints, Ints]:
    """The pairs of rows of two batches with equal keys: positions in the left and in the right batch."""
    if not side.columns:
        return np.repeat(np.arange(left_count), right_count), np.tile(np.arange(right_count), left_count)
    left_keys, left_kept = side.probe_keys(left, left_count)
    right_keys, right_kept = side.probe_keys(right, right_count)
    groups = KeyMap(left_keys.shape[1])
    right_groups = groups.upsert(right_keys)
    left_groups = groups.find(left_keys)
    order = np.argsort(right_groups, kind="stable")
    starts = np.searchsorted(right_groups[order], left_groups, side="left")
    ends = np.searchsorted(right_groups[order], left_groups, side="right")
    counts = np.where(left_groups >= 0, ends - starts, 0)
    rows = np.repeat(np.arange(len(left_keys)), counts)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    partners = order[np.repeat(starts, counts) + offsets]
    return (
        rows if left_kept is None else left_kept[rows],
        partners if right_kept is None else right_kept[partners],
    )
