"""Outer rows that a nested aggregate lets through, whatever correlates the two: what all such operators have in common.

With P the outer keys that pass, δ(O·P) = δO·P_old + O·δP. The first part is a look at each changed row; the second one
touches the rows of keys that have *turned*, which the operators of each kind of correlation find.

A COUNT of nothing is 0: outer rows may pass without an inner row. When the maintained value moves so that 0 becomes enough, or
is enough no more, all outer rows are looked at.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.operators.base import Operator, Searched, consolidated
from everview.backends.embedded.operators.maintained_value import MaintainedValue
from everview.backends.embedded.operators.nested_bounds import NOTHING, NestedBounds, Within
from everview.backends.embedded.operators.ranges import range_words
from everview.backends.embedded.vectors import Batch, Bools, Ints, Vector, concatenate
from everview.errors import EvaluationError
from everview.relational.nodes import Schema
from everview.trigger.program import NestedFilter

OUTER, INNER, VALUE = range(3)


class NestedRows(Operator):
    """The outer rows for which a condition on their nested value holds."""

    def __init__(
        self, fields: Schema, statement: NestedFilter, inputs: tuple[Operator, ...], dictionary: Dictionary
    ) -> None:
        super().__init__(fields, inputs)
        self._statement, self._dictionary = statement, dictionary
        self._value = None if statement.value is None else MaintainedValue(inputs[VALUE].types, dictionary)
        self._outer_groups = tuple(o for o, _ in statement.groups)
        self._bounds = NestedBounds(statement.condition, statement.call.type)
        self._is_count = statement.call.function == "count"
        is_fixed = statement.value is None and not statement.bounds
        self._within = self._bounds.within(()) if is_fixed else NOTHING
        self._before: Within | None = None
        self._pairs = FailingPairs(statement) if any(c.failing for c in statement.compared) else None
        self._rows: Searched = inputs[OUTER].searched()
        self._text = f"{statement.call.function} over {inputs[INNER].fields[statement.compared[0].inner].name}"

    @abstractmethod
    def _add(self, inner: Batch) -> None:
        """Takes inner rows into the nested values."""

    @abstractmethod
    def _clear(self) -> None:
        """Forgets the nested values."""

    @abstractmethod
    def _pass(self, outer: Batch, within: Within) -> Bools:
        """Which outer rows pass, by the nested values as they are now."""

    @abstractmethod
    def _turned(self, inner: Batch | None, old: Within, new: Within) -> Iterable[Batch]:
        """Takes inner rows in; the outer rows of keys that turn by that, or because bounds have moved."""

    def _take(self, outer: Batch, within: Within) -> None:
        """Takes outer rows in, where something of them is kept: they pass or not by the nested values as they are now."""

    def _order(self, outer: Batch | None, inner: Batch | None, pending: Batch | None) -> None:
        """Gives keys their places in the order, where there is one; ``pending`` has been stored, but not been taken in."""

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        outer, inner = deltas[OUTER], deltas[INNER]
        if self._pairs is not None:
            self._pairs.add(outer, inner, lambda: (self._rows.content(), self.inputs[INNER].content()))
        self._order(outer, inner, inner)
        old, new = self._within, self._moved(deltas)
        parts = []
        if outer is not None and len(outer):
            kept = self._pass(outer, old)
            if kept.any():
                parts.append(outer.take(kept))
            self._take(outer, old)
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

    def _all_anew(self, inner: Batch | None, old: Within, new: Within) -> Iterator[Batch]:
        """All outer rows that passed, and all that pass: a count of 0 has become enough, or is enough no more."""
        rows = self._rows.content()
        gone = rows.take(self._pass(rows, old))
        yield Batch(gone.columns, -gone.weights)
        if inner is not None and len(inner):
            self._add(inner)
        yield rows.take(self._pass(rows, new))

    def load(self, contents: Sequence[Batch]) -> Batch:
        if self._pairs is not None:
            self._pairs.clear()
            self._pairs.add(contents[OUTER], contents[INNER], lambda: (contents[OUTER], contents[INNER]))
        self._order(contents[OUTER], contents[INNER], None)
        self._clear()
        self._add(contents[INNER])
        if self._value is not None:
            self._within = self._bounds.within(self._value.row(contents[VALUE]))
        return self.recompute(contents)

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        return contents[OUTER].take(self._pass(contents[OUTER], self._within))

    def content(self) -> Batch:
        if self.arrangement is not None:
            return self.arrangement.content()
        rows = self._rows.content()
        self._order(rows, None, None)
        return self.recompute([rows])

    def _moved(self, deltas: Sequence[Batch | None]) -> Within:
        """What the nested value has to be now."""
        row = None if self._value is None else self._value.moved(deltas[VALUE])
        return self._within if row is None else self._bounds.within(row)

    def _lets_nothing(self, within: Within) -> bool:
        """Whether rows without an inner row pass."""
        low, high = within.bounds
        return self._is_count and (low <= 0 <= high) != within.is_outside

    def _counting(self, inner: Batch, keys: Ints, known: Bools) -> tuple[Ints, Vector, Ints]:
        """The keys, values and weights of those inner rows with a known key that have a value."""
        value, weights = inner.columns[self._statement.argument].take(known), inner.weights[known]
        if value.nulls is not None:
            counted = ~value.nulls
            keys, value, weights = keys[counted], value.take(counted), weights[counted]
        return np.ascontiguousarray(keys), value, weights

    def searches(self) -> tuple[Searched, ...]:
        return (self._rows,)

    def commit(self) -> None:
        self._before = None
        if self._pairs is not None:
            self._pairs.commit()

    def rollback(self) -> None:
        if self._pairs is not None:
            self._pairs.rollback()
        if self._before is not None:
            self._within, self._before = self._before, None


class FailingPairs:
    """How many outer and inner rows are compared, and how many of them have no key since computing it fails.

    Every outer row is compared with every inner row, whatever their groups are, for Spark compares first, and groups what is
    left. Those with NULL as the key, and inner rows without a group, are not, and neither are those beside no row at all. So
    there is an error if a row that fails is on one side, and any row on the other.

    Of two comparisons the second is made of the pairs for which the first one holds. Rows that fail in it are rare: as long as
    there are any, they are compared with the extreme of the other side.

    But if no outer row has a group, Spark finds that the join with the groups is empty, and compares nothing (adaptive
    execution does, its default). A count keeps outer rows without a group, too.
    """

    def __init__(self, statement: NestedFilter) -> None:
        first, *rest = statement.compared
        self._first = first
        self._second = next((c.failing for c in rest if c.failing is not None), None)
        self._groups = (), tuple(i for _, i in statement.groups)
        self._outer_groups = () if statement.call.function == "count" else tuple(o for o, _ in statement.groups)
        self.clear()

    def clear(self) -> None:
        """Forgets all rows."""
        self._counts: Ints = np.zeros((3, 2), dtype=np.int64)
        """Of outer and inner rows how many there are, how many fail, and how many fail in the second comparison."""
        self._joined = self._joined_committed = 0
        self._committed = self._counts.copy()

    def add(self, outer: Batch | None, inner: Batch | None, contents: Callable[[], tuple[Batch, Batch]]) -> None:
        """Takes in rows; ``contents`` has all of them, these included.

        Raises:
            EvaluationError: a pair cannot be compared.
        """
        for side, batch in enumerate((outer, inner)):
            if batch is not None:
                known, fails = self._failing(side, batch, self._first.failing)
                self._counts[0, side] += batch.weights[known].sum()
                self._counts[1, side] += batch.weights[fails].sum()
                if self._second is not None:
                    self._counts[2, side] += batch.weights[self._failing(side, batch, self._second)[1]].sum()
        if outer is not None:
            self._joined += int(outer.weights[known_keys(outer, self._outer_groups)[1]].sum())
        if not self._joined:
            return
        (outers, inners), (outer_fails, inner_fails), seconds = self._counts.tolist()
        if (outer_fails and inners) or (inner_fails and outers) or (any(seconds) and self._fails_second(contents())):
            raise EvaluationError("a key that is compared cannot be computed.", condition="ARITHMETIC_OVERFLOW")

    def _failing(self, side: int, batch: Batch, failing: tuple[int, int] | None) -> tuple[Bools, Bools]:
        """Which rows are compared, and which of them fail."""
        if failing is None:
            known = known_keys(batch, (*self._groups[side], (self._first.outer, self._first.inner)[side]))[1]
            return known, np.zeros(len(batch), dtype=np.bool_)
        ((*_, values), known) = known_keys(batch, (*self._groups[side], failing[side]))
        fails = known.copy()
        fails[known] = values.values.astype(np.bool_)
        return known, fails

    def _fails_second(self, contents: tuple[Batch, Batch]) -> bool:
        """Whether the first comparison holds of a pair of which the second one fails."""
        every, failing = [], []
        for side, batch in enumerate(contents):
            ((*_, keys), known) = known_keys(batch, (*self._groups[side], (self._first.outer, self._first.inner)[side]))
            words, (compared, fails) = range_words(keys), self._failing(side, batch, self._second)
            every.append(words[compared[known]])
            failing.append(words[fails[known]])
        return any(
            len(outer) and len(inner) and _may_hold(inner, self._first.comparison, outer)
            for outer, inner in ((failing[0], every[1]), (every[0], failing[1]))
        )

    def commit(self) -> None:
        """Makes the changes final."""
        self._committed, self._joined_committed = self._counts.copy(), self._joined

    def rollback(self) -> None:
        """Takes back the changes since the last commit."""
        self._counts, self._joined = self._committed.copy(), self._joined_committed


def _may_hold(inner: Ints, comparison: str, outer: Ints) -> bool:
    """Whether an inner word is in this order with an outer one."""
    low, high = (inner.min(), outer.max()) if comparison in ("<", "<=") else (outer.min(), inner.max())
    return bool(low < high or (low == high and comparison in ("<=", ">=")))


def known_keys(batch: Batch, columns: Sequence[int]) -> tuple[list[Vector], Bools]:
    """These columns of the rows in which none of them is NULL, and which rows those are."""
    vectors = [batch.columns[c] for c in columns]
    known = np.ones(len(batch), dtype=np.bool_)
    for vector in vectors:
        if vector.nulls is not None:
            known &= ~vector.nulls
    return [Vector(v.type, v.values[known]) for v in vectors], known
