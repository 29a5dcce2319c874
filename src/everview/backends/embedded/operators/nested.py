"""Rows that a nested aggregate lets through.

    WHERE value > (SELECT SUM(v) FROM inner i WHERE i.y < outer.x AND i.g = outer.g)

The nested value is a step function of x: the sum (or the greatest) of what the inner rows have, along their order. It is
kept as running values (``nested_values``), so that an inner row that comes or goes shifts all values behind it in O(log
N). The outer rows that pass are those on some stretches of the order, between *turns*. With S the stretches, δ(O·S) =
δO·S_old + O·δS: only rows between turns that have moved are touched, found in an ordered index of the outer rows.

A COUNT of nothing is 0: then rows may pass before the first turn, too, and turns are those of the rows that do not pass.

The place of a text is its label in the dictionary's order. When labels are spread anew, which is rare, the running values are
added up anew from the inner rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from everview.backends.embedded.arrow_columns import vector_to_arrow
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator, Searched, consolidated
from everview.backends.embedded.operators.nested_averages import NestedAverages
from everview.backends.embedded.operators.nested_bounds import NOTHING, NestedBounds, Within
from everview.backends.embedded.operators.nested_values import (
    ExactSums,
    FloatSums,
    NestedExtremes,
    NestedValues,
    Order,
    Steps,
)
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.vectors import Batch, Bools, Ints, Vector, concatenate
from everview.relational.nodes import Schema
from everview.relational.range_condition import RangeAccess, is_text
from everview.relational.types import Row, is_floating
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
        self._is_falling = statement.comparison in (">", ">=")
        self._is_strict = statement.comparison in ("<", ">")
        outer, inner = inputs[OUTER], inputs[INNER]
        self._outer_groups = tuple(o for o, _ in statement.groups)
        self._layout = outer.layout.part(self._outer_groups)
        self._group_words = self._layout.width if statement.groups else 0
        self._bounds = NestedBounds(statement.condition, statement.call.type)
        self._values = self._made()
        self._is_count = statement.call.function == "count"
        self._within = NOTHING if statement.value is not None else self._bounds.within(())
        self._before: Within | None = None
        self._inner: Searched | None = None
        """The inner rows, where the order of texts may be labelled anew."""
        if is_text(inner.fields[statement.inner_column].type):
            self._inner = inner.searched()
        self._epoch = dictionary.order_epoch
        self._replaced: tuple[NestedValues, int] | None = None
        """The running values before they were added up anew, and the epoch of their labels, until the transaction ends."""
        self._texts = None if self._inner is None else dictionary
        self._rows: Searched = outer.searched()
        self._access = RangeAccess(statement.outer_column)
        self._rows.range_index(self._outer_groups, self._access, self._texts)
        self._text = f"{statement.call.function} over {inner.fields[statement.inner_column].name}"

    def _made(self) -> NestedValues:
        order, call = Order(self._group_words, is_strict=self._is_strict), self._statement.call
        if call.function == "avg":
            return NestedAverages(order, call.type)
        if call.function in ("max", "min"):
            return NestedExtremes(order, is_least=call.function == "min")
        if is_floating(call.type):
            return FloatSums(order)
        return ExactSums(order, self._bounds.limit, is_count=call.function == "count")

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        outer, inner = deltas[OUTER], deltas[INNER]
        self._label(outer, inner, inner)
        old, new = self._within, self._moved(deltas)
        parts = []
        if outer is not None and len(outer):
            kept = self._pass(outer, old)
            if kept.any():
                parts.append(outer.take(kept))
        if self._is_count and self._lets_nothing(old) != self._lets_nothing(new):
            parts += self._all_anew(inner, old, new)
        elif (inner is not None and len(inner)) or new != old:
            parts += self._turned(inner, old, new)
        self._before = old if self._before is None else self._before
        self._within = new
        parts = [p for p in parts if len(p)]
        if not parts:
            return None
        whole = consolidated(concatenate(parts), self.layout) if len(parts) > 1 else parts[0]
        return whole if len(whole) else None

    def _turned(self, inner: Batch | None, old: Within, new: Within) -> Iterator[Batch]:
        """The outer rows between turns that move."""
        entries = None if inner is None else self._entries(inner)
        groups = self._touched(None if entries is None else entries[0], is_moved=new != old)
        before = [self._turns(g, old) for g in groups]
        if entries is not None and len(entries[0]):
            self._values.add(*entries)
        for group, turned in zip(groups, before, strict=True):
            for stretch in _stretches(group, turned, self._turns(group, new)):
                found = self._moved_rows(stretch)
                yield Batch(found.columns, -found.weights) if self._lets_nothing(new) else found

    def _all_anew(self, inner: Batch | None, old: Within, new: Within) -> Iterator[Batch]:
        """All outer rows that passed, and all that pass: a count of 0 has become enough, or is enough no more."""
        rows = self._rows.content()
        gone = rows.take(self._pass(rows, old))
        yield Batch(gone.columns, -gone.weights)
        if inner is not None and len(inner):
            self._values.add(*self._entries(inner))
        yield rows.take(self._pass(rows, new))

    def _label(self, outer: Batch | None, inner: Batch | None, pending: Batch | None) -> None:
        """Gives all texts their labels; if that has moved others, adds up the running values without what is pending."""
        if self._inner is None:
            return
        for batch, column in ((outer, self._statement.outer_column), (inner, self._statement.inner_column)):
            if batch is not None:
                self._dictionary.order_keys(batch.columns[column].values)
        if self._epoch == self._dictionary.order_epoch:
            return
        if self._replaced is None:
            self._replaced = self._values, self._epoch
        self._epoch, self._values = self._dictionary.order_epoch, self._made()
        self._values.add(*self._entries(self._inner.content()))
        if pending is not None:
            self._values.add(*self._entries(Batch(pending.columns, -pending.weights)))
        self._values.commit()

    def load(self, contents: Sequence[Batch]) -> Batch:
        self._label(contents[OUTER], contents[INNER], None)
        self._values, self._replaced = self._made(), None
        self._values.add(*self._entries(contents[INNER]))
        if self._statement.value is not None:
            self._within = self._read(contents[VALUE])
        return self.recompute(contents)

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return contents[OUTER].take(self._pass(contents[OUTER], self._within))

    def content(self) -> Batch:
        if self.arrangement is not None:
            return self.arrangement.content()
        rows = self._rows.content()
        self._label(rows, None, None)
        return self.recompute([rows])

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
        return self._bounds.within(row)

    def _lets_nothing(self, within: Within) -> bool:
        """Whether rows without an inner row pass."""
        low, high = within.bounds
        return self._is_count and (low <= 0 <= high) != within.is_outside

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
        if self._inner is not None:
            words = self._dictionary.order_keys(words)
        place = (~words if self._is_falling else words).reshape(-1, 1)
        if not groups:
            return place, known
        return np.concatenate([self._layout.pack(kept[:-1], count), place], axis=1), known

    def _entries(self, inner: Batch) -> tuple[Ints, Vector, Ints]:
        """The keys, values and weights of inner rows that count."""
        statement = self._statement
        keys, known = self._keys(inner, [i for _, i in statement.groups], statement.inner_column)
        value, weights = inner.columns[statement.argument].take(known), inner.weights[known]
        if value.nulls is not None:
            counted = ~value.nulls
            keys, value, weights = keys[counted], value.take(counted), weights[counted]
        return np.ascontiguousarray(keys), value, weights

    def _pass(self, outer: Batch, within: Within) -> Bools:
        """Which outer rows pass, by the running values as they are now."""
        keys, known = self._keys(outer, self._outer_groups, self._statement.outer_column)
        passed: Bools = np.full(len(outer), self._lets_nothing(within))
        held = self._values.passes(keys, _opposite(within) if self._lets_nothing(within) else within)
        passed[known] = held != self._lets_nothing(within)
        return passed

    # Turns

    def _touched(self, keys: Ints | None, *, is_moved: bool) -> list[Ints]:
        """The groups whose turns may move: those of changed entries, or all where the maintained value has moved."""
        if not self._group_words:
            return [np.zeros(0, dtype=np.int64)]
        found = [] if keys is None else [keys[:, : self._group_words]]
        if is_moved:
            found.append(self._values.groups())
        return list(np.unique(np.concatenate(found), axis=0))

    def _turns(self, group: Ints, within: Within) -> Steps:
        """Where it turns whether rows of a group pass, as places in the order, ascending."""
        return self._values.turns(group, _opposite(within) if self._lets_nothing(within) else within)

    def _moved_rows(self, stretch: _Stretch) -> Batch:
        """The outer rows, as they are now, on a stretch."""
        low, high = stretch.start, stretch.end
        if self._is_falling:
            low, high = (None if high is None else ~high), (None if low is None else ~low)
        # Entries at the first turn count for rows behind it, and for those beside it unless the comparison is strict.
        includes_low = self._is_strict if self._is_falling else not self._is_strict
        index = self._rows.range_index(self._outer_groups, self._access, self._texts)
        if self._inner is not None:
            key = self.inputs[INNER].fields[self._statement.inner_column].type
            low, high = (None if p is None else self._dictionary.code_of_label(p, key) for p in (low, high))
        ends = (None if place is None else (place,) for place in (low, high))
        slots = index.between(stretch.group, *ends, includes_low=includes_low)
        found = self._rows.at(slots)
        return Batch(found.columns, found.weights * stretch.sign)

    def commit(self) -> None:
        self._values.commit()
        self._before = self._replaced = None

    def rollback(self) -> None:
        if self._replaced is not None:
            (self._values, self._epoch), self._replaced = self._replaced, None
        self._values.rollback()
        if self._before is not None:
            self._within, self._before = self._before, None

    def nbytes(self) -> dict[str, int]:
        return {"running values": self._values.nbytes}

    def searches(self) -> tuple[Searched, ...]:
        return (self._rows,) if self._inner is None else (self._rows, self._inner)

    def describe(self) -> str:
        how = "one way down for each turn; rows between turns that moved come or go"
        return f"nested aggregate: {self._text}, as running values in order: {how}"


def _opposite(within: Within) -> Within:
    return Within(within.bounds, not within.is_outside)


def _stretches(group: Ints, before: Steps, after: Steps) -> Iterator[_Stretch]:
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
