"""The inner join, by look-up in indexes of both inputs.

With L and R the new contents:  δ(L ⋈ R) = δL ⋈ R + L ⋈ δR - δL ⋈ δR. The last term is the join of a change with an index of the
other change alone, by the same access path.

A conjunct of the condition that equates a column of each side is answered by the index, and so are comparisons that bound a
column (``range_condition``). The whole is checked on the pairs, of which a bounded number is made at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import chain

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions import compile_predicate
from everview.backends.embedded.operators.base import Arrangement, Operator, Searched, consolidated
from everview.backends.embedded.operators.ranges import RangeIndex, RangeProbe, Stretches
from everview.backends.embedded.operators.sums import add_counts
from everview.backends.embedded.state.accumulate import joined_weights
from everview.backends.embedded.vectors import Batch, Bools, Ints, KeyLayout, Vector, concatenate
from everview.relational.expressions import Expression
from everview.relational.nodes import Schema
from everview.relational.range_condition import RangeSearch, range_searches

FIRST_PROBES = 1024
"""Rows that look for their partners at once, as long as nothing is known of how many they have."""
PROBES_AT_ONCE = 1 << 13
"""Rows that are looked up at once in an order, where it is only asked whether they have partners."""
FIRST_PARTNERS = 4
"""Partners that are looked for at once, where it is only asked whether there are enough."""
PAIRS_AT_ONCE = 1 << 16
"""Pairs that are put together at once to be checked; about as many are looked for at once."""


class Side:
    """One input of a join as the other side sees it: an arrangement sliced by the join columns.

    With a ``search`` the rows of a slice are in the order of a column, and only those within the bounds are met. What these
    are, the columns of a probing row say (``width`` of them).
    """

    def __init__(
        self,
        operator: Operator,
        columns: tuple[int, ...],
        null_safe: tuple[bool, ...],
        search: RangeSearch | None = None,
        width: int = 0,
        dictionary: Dictionary | None = None,
        *,
        needs_distinct_rows: bool = False,
    ) -> None:
        self.operator = operator
        self.columns = columns
        self.null_safe = null_safe
        self.key_layout: KeyLayout = operator.layout.part(columns)
        self._rows: Searched | None = None
        """What is searched; None where that may become another."""
        if needs_distinct_rows:
            self._rows = operator.arranged()
        elif search is not None or operator.part is None:
            self._rows = operator.searched()
        self._texts = dictionary
        self._why_scan = " (no comparison bounds a column of it)" if width else ""
        self._probe: RangeProbe | None = None
        if search is not None:
            assert dictionary is not None, "what is compared is evaluated"
            self._probe = RangeProbe(search, width, dictionary)
            self.rows.range_index(columns, search.access, dictionary)
        elif columns:
            self.rows.index(columns)

    @property
    def rows(self) -> Searched:
        """What is searched."""
        return self.operator.sliced() if self._rows is None else self._rows

    @property
    def order(self) -> RangeIndex:
        """The ordered index."""
        assert self._probe is not None, "only what is ordered has an index"
        return self.rows.range_index(self.columns, self._probe.access, self._texts)

    @property
    def is_from(self) -> bool:
        """Whether partners are found from somewhere on up to the end of the order, and not from its beginning."""
        assert self._probe is not None
        return self._probe.is_from

    def of_change(self, change: Batch) -> Side:
        """The same over the rows of a change alone."""
        side = copy(self)
        side._rows = rows = Arrangement(self.operator.layout)
        rows.rows.reserve(len(change))
        rows.apply(change)
        return side

    def keyed_by(self, columns: tuple[int, ...], null_safe: tuple[bool, ...]) -> Side:
        """The same with keys of other columns, by which nothing is looked for in it."""
        side = copy(self)
        side.columns, side.null_safe = columns, null_safe
        side.key_layout = self.operator.layout.part(columns)
        return side

    @property
    def is_ordered(self) -> bool:
        """Whether comparisons bound what is found."""
        return self._probe is not None

    @property
    def has_one_bound(self) -> bool:
        """Whether one comparison does, and nothing else."""
        return self._probe is not None and self._probe.has_one_bound

    @property
    def access_path(self) -> str:
        """How rows of this side are found, for ``explain``."""
        fields = self.operator.fields
        names = ", ".join(fields[c].name for c in self.columns)
        if self._probe is None:
            return f"slice by {names}" if names else f"scan{self._why_scan}"
        access, bounds = self._probe.access, self._probe.bounds
        beside = "" if access.reach is None else f", as far as {fields[access.reach].name} reaches"
        return f"range{f' by {names}' if names else ''} in the order of {fields[access.column].name}, {bounds}{beside}"

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
        if self._probe is None and not self.columns:
            slots = self.rows.live_slots()
            return np.repeat(np.arange(count), len(slots)), np.tile(slots, count)
        if self._probe is not None:
            stretches, kept = self.stretches(probing, key_columns)
            rows, slots = stretches.take()
        else:
            keys, kept = self.probe_keys([probing.columns[c] for c in key_columns], count)
            rows, slots = self.rows.found(self.columns, keys)
        return (rows if kept is None else kept[rows]), slots

    def stretches(self, probing: Batch, key_columns: Sequence[int]) -> tuple[Stretches, Ints | None]:
        """Where the partners of probing rows are, in order, and which rows these are (None: all)."""
        assert self._probe is not None, "only what is ordered has stretches"
        keys, kept = self.probe_keys([probing.columns[c] for c in key_columns], len(probing))
        known = probing.columns if kept is None else [c.take(kept) for c in probing.columns]
        return self._probe.stretches(self.order, keys, known), kept

    def count(self, probing: Batch, key_columns: Sequence[int], enough: Ints, weigh: Weigh) -> Ints:
        """What partners of each row weigh together: of all of them, or of some where these weigh ``enough`` already."""
        counts = np.zeros(len(probing), dtype=np.int64)
        if self._probe is None:
            for rows, slots in self.matches_in_turns(probing, key_columns):
                _add_weights(counts, rows, slots, weigh)
            return counts
        for start in range(0, len(probing), PROBES_AT_ONCE):
            numbers = np.arange(start, min(start + PROBES_AT_ONCE, len(probing)))
            stretches, kept = self.stretches(probing.take(numbers), key_columns)
            self._count_some(stretches, numbers if kept is None else numbers[kept], counts, enough, weigh)
        return counts

    @staticmethod
    def _count_some(stretches: Stretches, numbers: Ints, counts: Ints, enough: Ints, weigh: Weigh) -> None:
        """Adds up what partners weigh, a few of each row, then more of the rows that have not enough."""
        most = FIRST_PARTNERS
        while len(numbers):
            rows, slots = stretches.take(np.full(len(numbers), most, dtype=np.int64))
            _add_weights(counts, numbers[rows], slots, weigh)
            left = stretches.has_more()
            left = left[counts[numbers[left]] < enough[numbers[left]]]
            stretches, numbers = stretches.of(left), numbers[left]
            most = max(most, min(4 * most, PAIRS_AT_ONCE // (len(left) + 1)))

    def probe_keys(self, columns: Sequence[Vector], count: int) -> tuple[Ints, Ints | None]:
        """The keys to look up, and the rows they belong to where some rows can have no partner (None: all rows)."""
        for column in columns:
            if column.nulls is not None:
                break
        else:
            return self.key_layout.pack(columns, count), None
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


Weigh = Callable[[Ints, Ints], Ints]
"""What partners weigh, given the numbers of their probing rows and their slots."""


def _add_weights(counts: Ints, rows: Ints, slots: Ints, weigh: Weigh) -> None:
    for at in range(0, len(rows), PAIRS_AT_ONCE):
        some = slice(at, at + PAIRS_AT_ONCE)
        add_counts(counts[:, None], 0, rows[some], weigh(rows[some], slots[some]))


Keys = tuple[tuple[int, int, bool], ...]
"""The equalities of a join: left column, right column, whether NULL equals NULL."""


def sides(
    left: Operator, right: Operator, keys: Keys, bounding: Expression | None, dictionary: Dictionary
) -> tuple[Side, Side]:
    """The two sides of a join with these equalities, in the order that a further condition bounds."""
    null_safe = tuple(k[2] for k in keys)
    widths = len(left.fields), len(right.fields)
    of_left, of_right = range_searches(bounding, *widths)
    return (
        Side(left, tuple(k[0] for k in keys), null_safe, of_left, widths[1], dictionary),
        Side(right, tuple(k[1] for k in keys), null_safe, of_right, widths[0], dictionary),
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
        *,
        keeps_slices: bool = False,
    ) -> None:
        super().__init__(fields, (left, right))
        self.left, self.right = sides(left, right, keys, None if keeps_slices else residual, dictionary)
        self._residual = None if residual is None else compile_predicate(residual, dictionary)

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        left, right = deltas
        if left is not None and len(left) and right is not None and len(right):
            terms = chain(self._with_right(left), self._with_left(right), self._between(left, right))
            # The three terms may hold a pair and take it back; an expression, here or above, may fail on what is not there.
            if self._residual is None or self._residual.can_fail:
                whole = self._checked(consolidated(self._joined(terms), self.layout))
            else:
                whole = consolidated(self._all_checked(terms), self.layout)
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

    def _between(self, left: Batch, right: Batch) -> Iterator[Batch]:
        """The pairs of two changes, to be taken away: what the larger of them meets in the other alone."""
        if len(left) < len(right):
            for taken, found in self._pairs(right, self.right, self.left.of_change(left)):
                yield Batch(found.columns + taken.columns, joined_weights(found.weights, -taken.weights))
            return
        for taken, found in self._pairs(left, self.left, self.right.of_change(right)):
            yield Batch(taken.columns + found.columns, joined_weights(taken.weights, -found.weights))

    def _all_checked(self, pairs: Iterator[Batch]) -> Batch:
        return self._joined(map(self._checked, pairs))

    def _joined(self, parts: Iterator[Batch]) -> Batch:
        kept = [some for some in parts if len(some)]
        return concatenate(kept) if kept else self.nothing()

    def _checked(self, pairs: Batch) -> Batch:
        if self._residual is None or not len(pairs):
            return pairs
        return pairs.take(self._residual(pairs.columns, len(pairs)))

    def searches(self) -> tuple[Searched, ...]:
        return (self.left.rows, self.right.rows)

    def python_parts(self) -> list[str]:
        names = tuple(f.name for f in self.fields)
        return [] if self._residual is None else list(self._residual.definitions(names))

    def describe(self) -> str:
        residual = "" if self._residual is None else ", then a filter"
        return (
            f"join: left change → right {self.right.access_path}; right change → left {self.left.access_path}{residual}"
        )
