"""Rows that a nested MAX or MIN over all other keys lets through.

    WHERE value > (SELECT MAX(v) FROM inner i WHERE i.y <> outer.x AND i.g = outer.g)

No order of the outer rows is needed. Keys that turn are found by ``other_extremes``, and their outer rows by a hash of the key.
Nearly every key sees the same value: when that turns, the outer rows of the group are looked at, and most of them come or go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator
from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.nested_rows import OUTER, NestedRows, known_keys
from everview.backends.embedded.operators.other_extremes import KeyGroups, OtherExtremes, Turned
from everview.backends.embedded.vectors import Batch, Bools, Ints
from everview.relational.nodes import Schema
from everview.trigger.program import NestedFilter


class NestedOthersOperator(NestedRows):
    """Where the correlation is by ``<>``."""

    def __init__(
        self, fields: Schema, statement: NestedFilter, inputs: tuple[Operator, ...], dictionary: Dictionary
    ) -> None:
        super().__init__(fields, statement, inputs, dictionary)
        (by,) = statement.compared
        self._outer_key = (*self._outer_groups, by.outer)
        self._inner_key = (*(i for _, i in statement.groups), by.inner)
        self._layout = inputs[OUTER].layout.part(self._outer_key)
        groups = inputs[OUTER].layout.part(self._outer_groups).width if statement.groups else 0
        self._grouped = KeyGroups(groups)
        self._values = self._made()
        self._rows.index(self._outer_key)

    def _made(self) -> OtherExtremes:
        return OtherExtremes(self._grouped, self._layout.width, is_least=self._statement.call.function == "min")

    def _keys(self, batch: Batch, columns: Sequence[int]) -> tuple[Ints, Bools]:
        """The keys of the rows of which no part is NULL, and which rows these are."""
        kept, known = known_keys(batch, columns)
        return self._layout.pack(kept, int(np.count_nonzero(known))), known

    def _add(self, inner: Batch) -> None:
        self._values.add(*self._counting(inner, *self._keys(inner, self._inner_key)))

    def _clear(self) -> None:
        self._values = self._made()

    def _pass(self, outer: Batch, within: Within) -> Bools:
        keys, known = self._keys(outer, self._outer_key)
        passed: Bools = np.full(len(outer), self._lets_nothing(within))
        passed[known] = self._values.passes(keys, within)
        return passed

    def _turned(self, inner: Batch | None, old: Within, new: Within) -> Iterator[Batch]:
        entries = None if inner is None else self._counting(inner, *self._keys(inner, self._inner_key))
        turned = self._values.turn(entries, old, new)
        if len(turned.keys):
            numbers, slots = self._rows.index(self._outer_key).expand(turned.keys)
            yield self._at(slots, turned.signs[numbers])
        has_turned = turned.group_signs != 0
        if has_turned.any():
            yield from self._whole_groups(turned, has_turned)

    def _whole_groups(self, turned: Turned, has_turned: Bools) -> Iterator[Batch]:
        """The outer rows of groups that turn, without those of keys that have been judged."""
        signs = turned.group_signs[has_turned]
        numbers, slots = self._group_rows(turned.groups[has_turned])
        rows = self._rows.at(slots)
        keys, known = self._keys(rows, self._outer_key)
        both, counts = np.unique(np.concatenate([turned.judged, keys]), axis=0, return_inverse=True)
        is_judged: Bools = np.zeros(len(both), dtype=np.bool_)
        numbered = counts.reshape(-1)
        is_judged[numbered[: len(turned.judged)]] = True
        kept = np.flatnonzero(known)[~is_judged[numbered[len(turned.judged) :]]]
        yield self._at(slots[kept], signs[numbers[kept]])

    def _group_rows(self, groups: Ints) -> tuple[Ints, Ints]:
        """Pairs of the number of a group and the slot of an outer row in it."""
        if self._grouped.words:
            return self._rows.index(self._outer_groups).expand(np.ascontiguousarray(groups))
        slots = self._rows.live_slots()
        return np.zeros(len(slots), dtype=np.int64), slots

    def _at(self, slots: Ints, signs: Ints) -> Batch:
        found = self._rows.at(slots)
        return Batch(found.columns, found.weights * signs)

    def commit(self) -> None:
        super().commit()
        self._values.commit()

    def rollback(self) -> None:
        super().rollback()
        self._values.rollback()

    def nbytes(self) -> dict[str, int]:
        return {"values of all others": self._values.nbytes}

    def describe(self) -> str:
        how = "when the best value moves, rows come or go; the key that has it sees the second best one"
        return f"nested aggregate: {self._text}, as the whole without each key, in order: {how}"
