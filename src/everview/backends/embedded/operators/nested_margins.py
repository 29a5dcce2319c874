"""Rows that a nested sum, count or average lets through, kept as margins of the outer keys.

    WHERE o.v > (SELECT SUM(v) FROM inner i WHERE i.t BETWEEN o.t - 5 AND o.t + 5 AND i.g = o.g)

The *margin* of an outer key is its nested value less what that is compared with. An inner row counts for a stretch of the outer
keys, or for all but a stretch (``<>``), so that a change adds something to a range of margins, in O(log N); a maintained value
that moves adds the same to all. The keys whose margins get to the other side of 0 are found in O(log N) each (``margins``).

What an outer key starts with is the sum of the stretch of the inner rows that count for it (``margin_sums``). Where margins
cannot be kept on, since the bound of an average has moved, or floats have another unit, are not finite, or are too far apart
for 128 bits, all keys are judged anew, in O(N).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from everview.backends.embedded.arrow_columns import vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.margin_sums import KeptFrom, MarginSums, RankRanges, Slant
from everview.backends.embedded.operators.nested_bounds import NOTHING, Within
from everview.backends.embedded.operators.nested_rows import OUTER, NestedRows, known_keys
from everview.backends.embedded.operators.nested_values import BEYOND
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.state import wide
from everview.backends.embedded.state.margins import Margins, rank_by
from everview.backends.embedded.state.ordered_nodes import ABOVE, EMPTY
from everview.backends.embedded.state.ordered_sums import OrderedSums
from everview.backends.embedded.vectors import Batch, Bools, Ints, Vector
from everview.relational.nodes import Schema
from everview.relational.ordered_condition import MIRRORED, Cut, Either, ordered_condition
from everview.trigger.program import NestedFilter


class NestedMarginsOperator(NestedRows):
    """Where inner rows count for stretches of the outer keys that begin and end anywhere, or keys have bounds of their own."""

    def __init__(
        self, fields: Schema, statement: NestedFilter, inputs: tuple[Operator, ...], dictionary: Dictionary
    ) -> None:
        super().__init__(fields, statement, inputs, dictionary)
        layout = inputs[OUTER].layout
        self._compared = tuple(c.outer for c in statement.compared)
        self._is_other = statement.compared[0].comparison == "<>"
        self._rest = tuple(dict.fromkeys((*self._compared, *statement.bounds)))
        self._found_by = (*self._outer_groups, *self._rest)
        self._group_layout, self._key_layout, self._rest_layout, self._bounds_layout = (
            layout.part(columns) for columns in (self._outer_groups, self._compared, self._rest, statement.bounds)
        )
        self._groups = self._group_layout.width if statement.groups else 0
        self._places = 0 if self._is_other else len(self._compared)
        self._inner_width = self._groups + (self._key_layout.width if self._is_other else self._places)
        cuts = ordered_condition(statement.condition, 0)
        self._is_outside = isinstance(cuts, Either)
        self._sides = ((0,) if cuts.is_from else (1,)) if isinstance(cuts, Cut) else (0, 1)
        """Which bounds decide: the least value that passes (0), the first one above all that do (1)."""
        self._clear()
        self._rows.index(self._found_by)

    def _clear(self) -> None:
        statement = self._statement
        self._sums = MarginSums(self._inner_width, statement.call, self._bounds.limit, has_own=bool(statement.bounds))
        self._margins = self._no_margins()
        self._kept: KeptFrom | None = None
        """What the margins are kept from; None while they are not, and marks alone are right."""
        self._replaced: tuple[tuple[Margins, ...], KeptFrom | None] | None = None

    def _no_margins(self) -> tuple[Margins, ...]:
        width = self._groups + self._places + self._rest_layout.width
        return tuple(Margins(width) for _ in self._sides)

    # Keys: the words of the group, the places in the order, then all that outer rows are found by

    def _outer_keys(self, outer: Batch) -> tuple[Ints, Bools]:
        kept, known = known_keys(outer, (*self._outer_groups, *self._compared))
        rest = self._rest_layout.pack([outer.columns[c].take(known) for c in self._rest], int(known.sum()))
        return self._key(kept, rest if self._is_other else None, rest), known

    def _entries(self, inner: Batch) -> tuple[Ints, Vector, Ints]:
        """The keys, values and weights of inner rows that count."""
        statement = self._statement
        kept, known = known_keys(inner, [*(i for _, i in statement.groups), *(c.inner for c in statement.compared)])
        packed = None
        if self._is_other:
            packed = self._key_layout.pack(kept[len(statement.groups) :], int(known.sum()))
        return self._counting(inner, self._key(kept, packed, packed), known)

    def _key(self, kept: Sequence[Vector], packed: Ints | None, behind: Ints | None) -> Ints:
        """Keys of known values: those of groups, then those compared, which are places in the order unless they are packed."""
        groups = len(self._outer_groups)
        parts = [self._group_layout.pack(kept[:groups], len(kept[0]))] if groups else []
        if packed is None:
            parts += [range_words(v).reshape(-1, 1) for v in kept[groups:]]
        if behind is not None:
            parts.append(behind)
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def _counting_for(self, keys: Ints) -> Callable[[OrderedSums], RankRanges]:
        """Which inner entries count for outer keys."""
        return lambda entries: self._ranges(entries, keys, are_inner=True)

    def _ranges(self, entries: OrderedSums, keys: Ints, *, are_inner: bool) -> RankRanges:
        """The inner entries that count for outer keys, or the outer ones for which inner keys count."""
        at = self._groups
        first, last = np.zeros(len(keys), dtype=np.int64), np.full(len(keys), len(entries), dtype=np.int64)
        if at:
            group = np.ascontiguousarray(keys[:, :at])
            first, last = entries.rank(group), entries.rank(group, after=True)
        if self._is_other:
            key = np.ascontiguousarray(keys[:, : self._inner_width])
            return [(first, last, 1), (entries.rank(key), entries.rank(key, after=True), -1)]
        for i, compared in enumerate(self._statement.compared):
            comparison = compared.comparison if are_inner else MIRRORED[compared.comparison]
            bounds = np.concatenate([keys[:, :at], keys[:, at + i : at + i + 1]], axis=1)
            if comparison in ("<", "<="):
                last = np.minimum(last, rank_by(entries, bounds, at + i, after=comparison == "<="))
            else:
                first = np.maximum(first, rank_by(entries, bounds, at + i, after=comparison == ">"))
        return [(first, np.maximum(first, last), 1)]

    # Bounds

    def _limits(self, within: Within, own: Sequence[Vector]) -> list[list[int]]:
        """For each side that decides the bounds: one for all, or one for each row of the columns that it depends on."""
        if not self._statement.bounds:
            both = [self._both(within)]
        else:
            words = self._bounds_layout.pack(own, len(own[0]))
            _, first, numbers = np.unique(words, axis=0, return_index=True, return_inverse=True)
            lists = [vector_to_arrow(v.take(first), self._dictionary).to_pylist() for v in own]
            distinct = [self._both(self._bounds.within(row)) for row in zip(*lists, strict=True)]
            both = [distinct[i] for i in numbers.reshape(-1).tolist()]
        return [[pair[side] for pair in both] for side in self._sides]

    def _both(self, within: Within) -> tuple[int, int]:
        """From which values on rows pass, and from which on no more; or do not pass, if all others do."""
        if within == NOTHING:
            return (-BEYOND, BEYOND) if self._is_outside else (BEYOND, -BEYOND)
        if self._is_outside and not within.is_outside:
            return BEYOND, BEYOND  # all pass
        return within.bounds[0], within.bounds[1] + 1

    def _shared(self, within: Within) -> list[int]:
        """The bounds that all keys have, one for each side that decides."""
        return [0 for _ in self._sides] if self._statement.bounds else [b for (b,) in self._limits(within, ())]

    def _judged(self, keys: Ints, within: Within) -> tuple[list[Ints], Ints, list[Ints]]:
        """Of each side the marks of keys; then counts, and of each side margins."""
        rest = np.ascontiguousarray(keys[:, self._groups + self._places :])
        own = self._rest_layout.pick(rest, [self._rest.index(c) for c in self._statement.bounds])
        kept = self._sums.kept_from(self._shared(within))
        return self._sums.judged(self._counting_for(keys), self._limits(within, own), kept)

    def _let(self, marks: Sequence[Ints]) -> Bools:
        """Which keys pass, by their marks."""
        low = marks[0] == ABOVE if self._sides[0] == 0 else np.ones(len(marks[0]), dtype=np.bool_)
        high = marks[-1] == ABOVE if self._sides[-1] == 1 else np.zeros(len(marks[0]), dtype=np.bool_)
        let: Bools = (marks[0] != EMPTY) & ((low & ~high) != self._is_outside)
        return let

    def _pass(self, outer: Batch, within: Within) -> Bools:
        keys, known = self._outer_keys(outer)
        passed: Bools = np.zeros(len(outer), dtype=np.bool_)
        if self._is_count:  # what is compared with nothing counts nothing
            limits = self._limits(within, [outer.columns[c] for c in self._statement.bounds])
            passed[:] = self._let([np.where(np.array([b <= 0 for b in side]), ABOVE, ABOVE - 1) for side in limits])
        passed[known] = self._let(self._judged(keys, within)[0])
        return passed

    # Changes

    def _add(self, inner: Batch) -> None:
        self._sums.add(*self._entries(inner))

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        pushed = super().push(deltas)
        self._require_range()
        return pushed

    def load(self, contents: Sequence[Batch]) -> Batch:
        loaded = super().load(contents)
        self._take(contents[OUTER], self._within)
        self._kept = self._sums.kept_from(self._shared(self._within))
        self._require_range()
        return loaded

    def _require_range(self) -> None:
        self._sums.require_range(lambda entries: self._ranges(entries, self._margins[0].all_keys(), are_inner=True))

    def _take(self, outer: Batch, within: Within) -> None:
        keys, known = self._outer_keys(outer)
        distinct, numbers = np.unique(keys, axis=0, return_inverse=True)
        rows = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(rows, numbers.reshape(-1), outer.weights[known])
        self._put(np.ascontiguousarray(distinct[rows != 0]), rows[rows != 0], within)

    def _put(self, keys: Ints, rows: Ints, within: Within) -> list[Ints]:
        """Adds rows to keys, as they are judged now; their marks."""
        marks, counts, amounts = self._judged(keys, within)
        for margins, mark, amount in zip(self._margins, marks, amounts, strict=True):
            margins.put(keys, rows, mark, counts, amount)
        return marks

    def _turned(self, inner: Batch | None, old: Within, new: Within) -> Iterator[Batch]:
        entries = None if inner is None else self._entries(inner)
        if entries is not None and len(entries[0]):
            self._sums.add(*entries)
        kept = self._sums.kept_from(self._shared(new))
        if kept is None or kept != self._kept:
            keys, before, after = self._anew(new, kept)
        else:
            keys, before, after = self._shifted(entries, new, kept[0])
        has_turned = before != after
        if has_turned.any():
            at = self._groups
            keys, signs = keys[has_turned], np.where(after, 1, -1)[has_turned]
            words = np.ascontiguousarray(np.delete(keys, np.s_[at : at + self._places], axis=1))
            numbers, slots = self._rows.index(self._found_by).expand(words)
            found = self._rows.at(slots)
            yield Batch(found.columns, found.weights * signs[numbers])

    def _shifted(
        self, entries: tuple[Ints, Vector, Ints] | None, new: Within, slants: tuple[Slant, ...]
    ) -> tuple[Ints, Bools, Bools]:
        """Adds inner rows to the margins: the keys of which some turn, and which of them passed, and pass."""
        found = []
        for margins, bound, slant in zip(self._margins, self._shared(new), slants, strict=True):
            if entries is not None and len(entries[0]):
                self._shift(margins, entries, slant)
            start = 0 if self._statement.bounds else self._sums.start(bound)
            found.append(margins.turned(int(self._is_count), start))
        if len(found) == 1:
            ((keys, before, after),) = found
            return keys, self._let([before]), self._let([after])
        keys = np.unique(np.concatenate([k for k, _, _ in found]), axis=0)
        now = [margins.marks(keys) for margins in self._margins]
        was = [marks.copy() for marks in now]
        for marks, (turned, before, _) in zip(was, found, strict=True):
            both = np.unique(np.concatenate([keys, turned]), axis=0, return_inverse=True)[1].reshape(-1)
            marks[both[len(keys) :]] = before
        return keys, self._let(was), self._let(now)

    def _shift(self, margins: Margins, entries: tuple[Ints, Vector, Ints], slant: Slant) -> None:
        keys, values, weights = entries
        counts, amounts = self._sums.amounts(values, weights, slant)
        for first, last, sign in self._ranges(margins.entries, keys, are_inner=False):
            margins.shift(first, last, sign * counts, amounts if sign > 0 else wide.negate(amounts))

    def _anew(self, new: Within, kept: KeptFrom | None) -> tuple[Ints, Bools, Bools]:
        """Judges all keys: which they are, and which of them passed, and pass."""
        old = self._margins
        if self._replaced is None:
            self._replaced = old, self._kept
        keys = old[0].all_keys()
        before = self._let([margins.marks(keys) for margins in old])
        self._margins, self._kept = self._no_margins(), kept
        return keys, before, self._let(self._put(keys, old[0].held(keys), new))

    def _all_anew(self, inner: Batch | None, old: Within, new: Within) -> Iterator[Batch]:
        yield from super()._all_anew(inner, old, new)
        self._anew(new, self._sums.kept_from(self._shared(new)))

    def commit(self) -> None:
        super().commit()
        self._sums.commit()
        for margins in self._margins:
            margins.commit()
        self._replaced = None

    def rollback(self) -> None:
        super().rollback()
        if self._replaced is not None:
            (self._margins, self._kept), self._replaced = self._replaced, None
        self._sums.rollback()
        for margins in self._margins:
            margins.rollback()

    def nbytes(self) -> dict[str, int]:
        return {"sums": self._sums.nbytes, "margins": sum(m.nbytes for m in self._margins)}

    def describe(self) -> str:
        how = "a changed row shifts those of a stretch of keys; rows of keys that get to the other side of 0 come or go"
        return f"nested aggregate: {self._text}, as margins of the outer keys, in order: {how}"
