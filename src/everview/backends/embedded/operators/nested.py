"""Rows that a nested aggregate lets through.

    WHERE value > (SELECT SUM(v) FROM inner i WHERE i.y < outer.x AND i.g = outer.g)

The nested value is a step function of x: the sum (or the greatest) of what the inner rows have, along their order. It is
kept as running values (``running_values``), so that an inner row that comes or goes shifts all values behind it in O(log
N). The outer rows that pass are those on some stretches of the order, between *turns*. With S the stretches, δ(O·S) =
δO·S_old + O·δS: only rows between turns that have moved are touched, found in an ordered index of the outer rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from everview.backends.embedded.arrow_columns import vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Cost, Operator, Searched, consolidated
from everview.backends.embedded.operators.nested_bounds import NOTHING, NestedBounds, Within
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.state import wide_kernels
from everview.backends.embedded.state.running_values import ANY, RunningExtremes, RunningSums
from everview.backends.embedded.vectors import Batch, Bools, Ints, Kind, Vector, concatenate, kind_of
from everview.errors import EvaluationError
from everview.relational.nodes import Schema
from everview.relational.range_condition import RangeAccess
from everview.relational.types import Row
from everview.trigger.program import NestedFilter

OUTER, INNER, VALUE = range(3)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Outer rows of one group between two turns, that come (1) or go (-1); None where there is no turn on that side."""

    group: Ints
    start: int | None
    end: int | None
    sign: int


class NestedFilterOperator(Operator):
    """The outer rows for which a condition on their nested value holds."""

    def __init__(
        self, fields: Schema, statement: NestedFilter, inputs: tuple[Operator, ...], dictionary: Dictionary
    ) -> None:
        super().__init__(fields, inputs)
        self._statement, self._dictionary = statement, dictionary
        self._is_sum = statement.call.function == "sum"
        self._is_falling = statement.comparison in (">", ">=")
        self._is_strict = statement.comparison in ("<", ">")
        outer, inner = inputs[OUTER], inputs[INNER]
        self._outer_groups = tuple(o for o, _ in statement.groups)
        self._layout = outer.layout.part(self._outer_groups)
        self._group_words = self._layout.width if statement.groups else 0
        self._running: RunningSums | RunningExtremes = (
            RunningSums(self._group_words + 1) if self._is_sum else RunningExtremes(self._group_words + 2)
        )
        self._bounds = NestedBounds(statement.condition, statement.call.type)
        self._within = NOTHING if statement.value is not None else self._mirrored(self._bounds.within(()))
        self._before: Within | None = None
        self._applied: list[tuple[Ints, Ints]] = []
        self._rows: Searched = outer.searched()
        self._access = RangeAccess(statement.outer_column)
        self._rows.range_index(self._outer_groups, self._access)
        self._text = f"{statement.call.function} over {inner.fields[statement.inner_column].name}"

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        outer, inner = deltas[OUTER], deltas[INNER]
        old, new = self._within, self._moved(deltas)
        parts = []
        if outer is not None and len(outer):
            kept = self._pass(outer, old)
            if kept.any():
                parts.append(outer.take(kept))
        keys, payloads = self._entries(inner) if inner is not None and len(inner) else (None, None)
        if (keys is not None and len(keys)) or new != old:
            groups = self._touched(keys, is_moved=new != old)
            turned_old = [self._turns(g, old) for g in groups]
            if keys is not None and payloads is not None:
                self._running.add(keys, payloads)
                self._applied.append((keys, payloads))
                self._require_range(groups)
            turned_new = [self._turns(g, new) for g in groups]
            for group, before, after in zip(groups, turned_old, turned_new, strict=True):
                parts.extend(self._moved_rows(s) for s in _stretches(group, before, after))
        self._before = old if self._before is None else self._before
        self._within = new
        parts = [p for p in parts if len(p)]
        if not parts:
            return None
        whole = consolidated(concatenate(parts), self.layout) if len(parts) > 1 else parts[0]
        return whole if len(whole) else None

    def load(self, contents: Sequence[Batch]) -> Batch:
        keys, payloads = self._entries(contents[INNER])
        self._running.add(keys, payloads)
        self._require_range(self._touched(keys, is_moved=False))
        if self._statement.value is not None:
            self._within = self._read(contents[VALUE])
        return self.recompute(contents)

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return contents[OUTER].take(self._pass(contents[OUTER], self._within))

    def content(self) -> Batch:
        if self.arrangement is not None:
            return self.arrangement.content()
        return self.recompute([self._rows.content()])

    def _moved(self, deltas: Sequence[Batch | None]) -> Within:
        """What the nested value has to be now."""
        moved = deltas[VALUE] if self._statement.value is not None else None
        if moved is None or not len(moved):
            return self._within
        come = moved.take(moved.weights > 0)
        return self._read(come) if len(come) else self._within

    def _read(self, value: Batch) -> Within:
        """The bounds for the one row of the maintained value."""
        if not len(value):
            return NOTHING
        row: Row = tuple(vector_to_arrow(c.take(np.array([0])), self._dictionary).to_pylist()[0] for c in value.columns)
        return self._mirrored(self._bounds.within(row))

    def _mirrored(self, within: Within) -> Within:
        """The same bounds for what the entries hold: a least value is the greatest of complements."""
        if self._statement.call.function != "min":
            return within
        low, high = within.bounds
        return Within((~high, ~low), within.is_outside)

    def _require_range(self, groups: list[Ints]) -> None:
        """A sum that its type cannot hold is an error, as it is for Spark, whether an outer row asks for it or not."""
        if not isinstance(self._running, RunningSums):
            return
        low, high = self._bounds.limit
        least, greatest = self._running.extent()
        if low <= least and greatest <= high:
            return
        limit = Within(self._bounds.limit)
        if any(self._turns(g, limit) != self._turns(g, Within(ANY)) for g in groups):
            raise EvaluationError("a nested sum is beyond what its type can hold.", condition="ARITHMETIC_OVERFLOW")

    # Keys: the words of the group, then the place in the order

    def _keys(self, batch: Batch, groups: Sequence[int], column: int) -> tuple[Ints, Bools]:
        """The keys of the rows of which no part is NULL, and which rows these are."""
        vectors = [batch.columns[c] for c in (*groups, column)]
        known = np.ones(len(batch), dtype=np.bool_)
        for vector in vectors:
            if vector.nulls is not None:
                known &= ~vector.nulls
        kept = [Vector(v.type, v.values[known]) for v in vectors]
        count = int(np.count_nonzero(known))
        words = range_words(kept[-1])
        place = (~words if self._is_falling else words).reshape(-1, 1)
        if not groups:
            return place, known
        return np.concatenate([self._layout.pack(kept[:-1], count), place], axis=1), known

    def _entries(self, inner: Batch) -> tuple[Ints, Ints]:
        """What inner rows add to the running values."""
        statement = self._statement
        keys, known = self._keys(inner, [i for _, i in statement.groups], statement.inner_column)
        value, weights = inner.columns[statement.argument].take(known), inner.weights[known]
        if value.nulls is not None:
            counted = ~value.nulls
            keys, value, weights = keys[counted], value.take(counted), weights[counted]
        if not self._is_sum:
            words = value.values if statement.call.function == "max" else ~value.values
            return np.concatenate([keys, words.reshape(-1, 1)], axis=1), weights.reshape(-1, 1).copy()
        payloads = np.empty((len(keys), 3), dtype=np.int64)
        payloads[:, 0] = weights
        payloads[:, 1:] = _multiplied(value, weights)
        return np.ascontiguousarray(keys), payloads

    def _ranks(self, keys: Ints) -> tuple[Ints, Ints]:
        """The ranks of the inner entries that each outer key sums up: from the first of its group on."""
        first = np.zeros(len(keys), dtype=np.int64)
        if self._group_words:
            first = self._running.rank(np.ascontiguousarray(keys[:, : self._group_words]))
        return first, self._running.rank(np.ascontiguousarray(keys), after=not self._is_strict)

    def _pass(self, outer: Batch, within: Within) -> Bools:
        """Which outer rows pass, by the running values as they are now."""
        keys, known = self._keys(outer, self._outer_groups, self._statement.outer_column)
        first, last = self._ranks(keys)
        held = self._running.is_within(first, last, within.bounds)
        if within.is_outside:
            held = self._running.is_within(first, last, ANY) & ~held
        passed = np.zeros(len(outer), dtype=np.bool_)
        passed[known] = held
        return passed

    # Turns

    def _touched(self, keys: Ints | None, *, is_moved: bool) -> list[Ints]:
        """The groups whose turns may move: those of changed entries, or all where the maintained value has moved."""
        if not self._group_words:
            return [np.zeros(0, dtype=np.int64)]
        found = [] if keys is None else [keys[:, : self._group_words]]
        if is_moved:
            places = self._running.select(np.arange(len(self._running)))
            found.append(self._running.keys_at(places)[:, : self._group_words])
        return list(np.unique(np.concatenate(found), axis=0))

    def _turns(self, group: Ints, within: Within) -> list[int]:
        """Where it turns whether rows of a group pass, as places in the order, ascending."""
        first, last = 0, len(self._running)
        if len(group):
            prefix = group.reshape(1, -1)
            first, last = (int(self._running.rank(prefix, after=a)[0]) for a in (False, True))
        ranks = self._running.turns(first, last, within.bounds)
        if within.is_outside:
            ranks = np.setxor1d(ranks, self._running.turns(first, last, ANY))
        words: list[int] = self._running.keys_at(self._running.select(ranks))[:, self._group_words].tolist()
        return _odd_ones(words)

    def _moved_rows(self, stretch: _Stretch) -> Batch:
        """The outer rows, as they are now, on a stretch."""
        low, high = stretch.start, stretch.end
        if self._is_falling:
            low, high = (None if high is None else ~high), (None if low is None else ~low)
        # Entries at the first turn count for rows behind it, and for those beside it unless the comparison is strict.
        includes_low = self._is_strict if self._is_falling else not self._is_strict
        index = self._rows.range_index(self._outer_groups, self._access)
        slots = index.between(stretch.group, low, high, includes_low=includes_low)
        found = self._rows.at(slots)
        return Batch(found.columns, found.weights * stretch.sign)

    def commit(self) -> None:
        self._applied.clear()
        self._before = None

    def rollback(self) -> None:
        for keys, payloads in reversed(self._applied):
            self._running.add(keys, self._negated(payloads))
        self._applied.clear()
        if self._before is not None:
            self._within, self._before = self._before, None

    def _negated(self, payloads: Ints) -> Ints:
        negated = -payloads
        if self._is_sum:
            wide_kernels.negate(
                np.ascontiguousarray(payloads[:, 1:]), opposite := np.empty_like(payloads[:, 1:].copy())
            )
            negated[:, 1:] = opposite
        return negated

    def nbytes(self) -> dict[str, int]:
        return {"running values": self._running.nbytes}

    def searches(self) -> tuple[Searched, ...]:
        return (self._rows,)

    def update_cost(self, side: int) -> Cost:
        return Cost.LINEAR if side == VALUE and self._group_words else Cost.TURNING

    def describe(self) -> str:
        how = "one way down for each turn; rows between turns that moved come or go"
        return f"nested aggregate: {self._text}, as running values in order: {how}"


def _multiplied(value: Vector, weights: Ints) -> Ints:
    """The values as often as their weights say, as numbers of 128 bits."""
    wide = value.values
    if kind_of(value.type) is not Kind.WIDE:
        wide = np.stack([value.values, value.values >> 63], axis=1)
    wide = np.ascontiguousarray(wide)
    out, fits = np.empty_like(wide), np.ones(len(wide), dtype=np.bool_)
    wide_kernels.multiply_word(wide, np.ascontiguousarray(weights), out, fits)
    assert fits.all(), "a value and its multiplicity are far below 128 bits"
    return out


def _odd_ones(words: list[int]) -> list[int]:
    """Places with an odd number of turns: entries at one place count together, and two turns at it are none."""
    turned: set[int] = set()
    for word in words:
        turned ^= {word}
    return sorted(turned)


def _stretches(group: Ints, before: list[int], after: list[int]) -> Iterator[_Stretch]:
    """Between turns, whether rows pass is the same for all of them, before and after; where the two differ, they come or go."""
    passed = passes = False
    turned, turns = set(before), set(after)
    places = sorted(turned | turns)
    for i, place in enumerate(places):
        passed ^= place in turned
        passes ^= place in turns
        if passed != passes:
            end = places[i + 1] if i + 1 < len(places) else None
            yield _Stretch(group, place, end, 1 if passes else -1)
