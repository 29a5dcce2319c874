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

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator, Searched
from everview.backends.embedded.operators.nested_averages import NestedAverages
from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.nested_floats import FloatSums
from everview.backends.embedded.operators.nested_rows import INNER, OUTER, NestedRows, known_keys
from everview.backends.embedded.operators.nested_values import (
    ExactSums,
    NestedExtremes,
    NestedValues,
    Order,
    Steps,
)
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.vectors import Batch, Bools, Ints, Vector
from everview.relational.nodes import Schema
from everview.relational.range_condition import RangeAccess, is_text
from everview.relational.types import is_floating
from everview.trigger.program import NestedFilter


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Outer rows of one group between two turns, that come (1) or go (-1); None where there is no turn on that side."""

    group: Ints
    start: int | None
    end: int | None
    sign: int


class NestedFilterOperator(NestedRows):
    """Where the correlation compares in order."""

    def __init__(
        self, fields: Schema, statement: NestedFilter, inputs: tuple[Operator, ...], dictionary: Dictionary
    ) -> None:
        super().__init__(fields, statement, inputs, dictionary)
        (self._by,) = statement.compared
        self._is_falling = self._by.comparison in (">", ">=")
        self._is_strict = self._by.comparison in ("<", ">")
        outer, inner = inputs[OUTER], inputs[INNER]
        self._layout = outer.layout.part(self._outer_groups)
        self._group_words = self._layout.width if statement.groups else 0
        self._values = self._made()
        self._inner: Searched | None = None
        """The inner rows, where the order of texts may be labelled anew."""
        if is_text(inner.fields[self._by.inner].type):
            self._inner = inner.searched()
        self._epoch = dictionary.order_epoch
        self._replaced: tuple[NestedValues, int] | None = None
        """The running values before they were added up anew, and the epoch of their labels, until the transaction ends."""
        self._texts = None if self._inner is None else dictionary
        self._access = RangeAccess(self._by.outer)
        self._rows.range_index(self._outer_groups, self._access, self._texts)

    def _made(self) -> NestedValues:
        order, call = Order(self._group_words, is_strict=self._is_strict), self._statement.call
        if call.function == "avg":
            return NestedAverages(order, call.type)
        if call.function in ("max", "min"):
            return NestedExtremes(order, is_least=call.function == "min")
        if is_floating(call.type):
            return FloatSums(order)
        return ExactSums(order, self._bounds.limit, is_count=call.function == "count")

    def _add(self, inner: Batch) -> None:
        self._values.add(*self._entries(inner))

    def _clear(self) -> None:
        self._values, self._replaced = self._made(), None

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

    def _order(self, outer: Batch | None, inner: Batch | None, pending: Batch | None) -> None:
        """Gives all texts their labels; if that has moved others, adds up the running values without what is pending."""
        if self._inner is None:
            return
        for batch, column in ((outer, self._by.outer), (inner, self._by.inner)):
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

    # Keys: the words of the group, then the place in the order

    def _keys(self, batch: Batch, groups: Sequence[int], column: int) -> tuple[Ints, Bools]:
        """The keys of the rows of which no part is NULL, and which rows these are."""
        kept, known = known_keys(batch, (*groups, column))
        words = range_words(kept[-1])
        if self._inner is not None:
            words = self._dictionary.order_keys(words)
        place = (~words if self._is_falling else words).reshape(-1, 1)
        if not groups:
            return place, known
        return np.concatenate([self._layout.pack(kept[:-1], len(place)), place], axis=1), known

    def _entries(self, inner: Batch) -> tuple[Ints, Vector, Ints]:
        """The keys, values and weights of inner rows that count."""
        statement = self._statement
        keys, known = self._keys(inner, [i for _, i in statement.groups], self._by.inner)
        return self._counting(inner, keys, known)

    def _pass(self, outer: Batch, within: Within) -> Bools:
        """Which outer rows pass, by the running values as they are now."""
        keys, known = self._keys(outer, self._outer_groups, self._by.outer)
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
            key = self.inputs[INNER].fields[self._by.inner].type
            low, high = (None if p is None else self._dictionary.code_of_label(p, key) for p in (low, high))
        ends = (None if place is None else (place,) for place in (low, high))
        slots = index.between(stretch.group, *ends, includes_low=includes_low)
        found = self._rows.at(slots)
        return Batch(found.columns, found.weights * stretch.sign)

    def commit(self) -> None:
        super().commit()
        self._values.commit()
        self._replaced = None

    def rollback(self) -> None:
        super().rollback()
        if self._replaced is not None:
            (self._values, self._epoch), self._replaced = self._replaced, None
        self._values.rollback()

    def nbytes(self) -> dict[str, int]:
        return {"running values": self._values.nbytes}

    def searches(self) -> tuple[Searched, ...]:
        return super().searches() if self._inner is None else (*super().searches(), self._inner)

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
