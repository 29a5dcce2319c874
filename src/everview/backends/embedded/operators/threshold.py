"""Rows on one side of a maintained value: only those between its old and its new place come or go when it moves.

    GROUP BY part HAVING SUM(cost) > (SELECT 0.0001 * SUM(cost) FROM …)

The rows are kept in the order of the compared column. With S the stretch of the order on which the comparison holds, δ(O·S) =
δO·S_old + O·δS, and δS lies between two places of the order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import NO_SLOTS, Operator, Searched, consolidated
from everview.backends.embedded.operators.maintained_value import MaintainedValue
from everview.backends.embedded.operators.nested_bounds import NOTHING, NestedBounds, Within
from everview.backends.embedded.order_words import plain_order_words
from everview.backends.embedded.vectors import Batch, Bools, Ints, Kind, concatenate, kind_of
from everview.relational.nodes import Schema
from everview.relational.range_condition import RangeAccess
from everview.relational.types import DataType
from everview.trigger.program import ThresholdFilter

ROWS, VALUE = range(2)
_ALL, _LEAST = (1 << 64) - 1, -(1 << 63)


class ThresholdOperator(Operator):
    """The rows whose column satisfies a condition on a maintained value."""

    survives_lack_of_memory = True

    def __init__(
        self, fields: Schema, statement: ThresholdFilter, inputs: tuple[Operator, ...], dictionary: Dictionary
    ) -> None:
        super().__init__(fields, inputs)
        self._column = statement.column
        self._type = self.types[self._column]
        self._value = MaintainedValue(inputs[VALUE].types, dictionary)
        self._bounds = NestedBounds(statement.condition, self._type)
        self._within = self._before = NOTHING
        self._access = RangeAccess(self._column)
        self._rows: Searched = inputs[ROWS].searched()
        self._rows.range_index((), self._access)

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        rows, value = deltas
        old, row = self._within, self._value.moved(value)
        new = old if row is None else self._bounds.within(row)
        parts = []
        if rows is not None and len(rows):
            passed = self._pass(rows, old)
            if passed.any():
                parts.append(rows.take(passed))
        if new != old:
            parts += [found for stretch in _moved(old, new) if len(found := self._between(*stretch))]
            self._within = new
        if not parts:
            return None
        whole = consolidated(concatenate(parts), self.layout) if len(parts) > 1 else parts[0]
        return whole if len(whole) else None

    def load(self, contents: Sequence[Batch]) -> Batch:
        self._within = self._before = self._bounds.within(self._value.row(contents[VALUE]))
        return self.recompute(contents)

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return contents[ROWS].take(self._pass(contents[ROWS], self._within))

    def content(self) -> Batch:
        if self.arrangement is not None:
            return self.arrangement.content()
        return self.recompute([self._rows.content()])

    def _pass(self, batch: Batch, within: Within) -> Bools:
        vector = batch.columns[self._column]
        words = plain_order_words(vector)
        least, greatest = self._bounds.limit
        low, high = within.bounds
        passed: Bools = np.ones(len(batch), dtype=np.bool_)
        if low > least:
            start = _words_of(low, self._type)
            passed = np.zeros_like(passed) if start is None else _is_before(start, words)
        if high < greatest:
            end = _words_of(high, self._type)
            passed = passed if end is None else passed & ~_is_before(end, words, strictly=True)
        if within.is_outside:
            passed = ~passed
        return passed if vector.nulls is None else passed & ~vector.nulls

    def _between(self, low: int | None, high: int | None, sign: int) -> Batch:
        """The rows, as they are now, from one place of the order to before another, that come (1) or go (-1)."""
        start, end = (None if bound is None else _words_of(bound, self._type) for bound in (low, high))
        if low is not None and start is None:
            return self.nothing()
        slots = self._rows.range_index((), self._access).between(NO_SLOTS, start, end, includes_low=True)
        if not len(slots):
            return self.nothing()
        found = self._rows.at(slots)
        return Batch(found.columns, found.weights * sign)

    def commit(self) -> None:
        self._before = self._within

    def rollback(self) -> None:
        self._within = self._before

    def searches(self) -> tuple[Searched, ...]:
        return (self._rows,)

    def describe(self) -> str:
        name = self.fields[self._column].name
        return (
            f"threshold: rows in the order of {name}; those between the old and the new place of the value come or go"
        )


def _is_before(place: tuple[int, ...], words: Sequence[Ints], *, strictly: bool = False) -> Bools:
    """Whether a place of the order is before each value, or at it unless ``strictly``."""
    last: Bools = words[-1] > place[-1] if strictly else words[-1] >= place[-1]
    return last if len(place) == 1 else (words[0] > place[0]) | ((words[0] == place[0]) & last)


def _words_of(number: int, data_type: DataType) -> tuple[int, ...] | None:
    """The words of a place in the order of a type, whose values are numbers; None behind all values."""
    is_wide = kind_of(data_type) is Kind.WIDE
    limit = 1 << 127 if is_wide else 1 << 63
    if number >= limit:
        return None
    number = max(number, -limit)
    return (number >> 64, (number & _ALL) + _LEAST) if is_wide else (number,)


def _moved(old: Within, new: Within) -> list[tuple[int | None, int | None, int]]:
    """The stretches on which a comparison holds before and not after (-1), or after and not before (1)."""
    places = sorted({place for within in (old, new) for place in _turns(within)})
    found = []
    for start, end in zip([None, *places], [*places, None], strict=True):
        at = min(places, default=0) - 1 if start is None else start
        held, holds = (_holds(within, at) for within in (old, new))
        if held != holds:
            found.append((start, end, 1 if holds else -1))
    return found


def _turns(within: Within) -> tuple[int, ...]:
    low, high = within.bounds
    return (low, high + 1) if low <= high else ()


def _holds(within: Within, place: int) -> bool:
    low, high = within.bounds
    return (low <= place <= high) != within.is_outside
