"""What every operator of the maintained DAG is, and the indexed copy of its output that others may ask it to keep.

A transaction visits the operators in topological order. Each gets the deltas of all its inputs at once and returns the delta
of its output. Arrangements of an operator's output take its delta before any consumer runs, so a consumer always sees its
inputs' *new* contents; the old ones are the new ones minus the delta, and delta rules are written accordingly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from everview.backends.embedded.operators.ranges import RangeIndex
from everview.backends.embedded.state.accumulate import total_weight
from everview.backends.embedded.state.consolidate import consolidate
from everview.backends.embedded.state.ordered import Texts
from everview.backends.embedded.state.slices import SliceIndex
from everview.backends.embedded.state.weight_map import WeightChanges, WeightMap
from everview.backends.embedded.vectors import Batch, Ints, KeyLayout, RowCount, Vector, empty_batch
from everview.relational.nodes import Schema
from everview.relational.range_condition import RangeAccess

if TYPE_CHECKING:
    from everview.backends.embedded.operators.table_part import TablePart

PIECE = 4096
"""Rows that are handed out at a time."""
NO_SLOTS: Ints = np.zeros(0, dtype=np.int64)


class Searched(ABC):
    """An operator's output as others search it: some columns of an arrangement, in which rows may repeat."""

    @property
    @abstractmethod
    def whole(self) -> Arrangement:
        """The arrangement."""

    @abstractmethod
    def index(self, columns: Sequence[int]) -> SliceIndex:
        """The secondary index by these columns, built on first use and kept from then on."""

    @abstractmethod
    def range_index(self, columns: Sequence[int], access: RangeAccess, texts: Texts | None = None) -> RangeIndex:
        """The ordered index by these columns and then by the one of the access, built on first use.

        Where that is a text, ``texts`` are those that codes stand for.
        """

    @abstractmethod
    def at(self, slots: Ints) -> Batch:
        """The rows in these slots, with their weights."""

    @property
    def reader(self) -> Searched:
        """What keeps its columns in a table's arrangement, if it is searched there."""
        return self

    def found(self, columns: Sequence[int], keys: Ints) -> tuple[Ints, Ints]:
        """Pairs of a row of ``keys`` and the slot of a row that has this key in these columns."""
        return self.index(columns).expand(keys)

    def live_slots(self) -> Ints:
        """The slots of all rows."""
        return self.whole.rows.live_slots()

    def content(self) -> Batch:
        """All rows."""
        return self.at(self.live_slots())


class LastChange(NamedTuple):
    """A change of an arrangement, its rows as keys, and what adding them did."""

    delta: Batch
    keys: Ints
    changes: WeightChanges


class Arrangement(Searched):
    """The rows of an operator's output with their weights, hashed by the whole row and sliced by any of its columns."""

    def __init__(self, layout: KeyLayout) -> None:
        self.layout = layout
        self.rows = WeightMap(layout.width)
        self._slices: dict[tuple[int, ...], SliceIndex] = {}
        self._ranges: dict[tuple[tuple[int, ...], RangeAccess], RangeIndex] = {}
        self._applied: list[tuple[Ints, Ints]] = []
        self._is_torn = False
        """Whether an index could not take in what the rows have taken in, for lack of memory."""
        self.last: LastChange | None = None
        """What was added last, in the transaction at hand."""
        self.is_asked_by_users = False
        """Whether look-ups use it, which will come again."""
        self.is_held = False
        """Whether somebody keeps it who would not see another in its place."""

    def apply(self, delta: Batch) -> None:
        """Adds a change; ``rollback`` takes it back."""
        keys = self.layout.pack(delta.columns, len(delta))
        changes = self.rows.add_weights(keys, delta.weights)
        self._applied.append((keys, delta.weights))
        self.last = LastChange(delta, keys, changes)
        self._is_torn = True
        self._tell_indexes(changes)
        self._is_torn = False

    def _tell_indexes(self, changes: WeightChanges) -> None:
        if not self._slices and not self._ranges:
            return
        created, removed = changes.slots, NO_SLOTS
        if np.count_nonzero(changes.old) or np.count_nonzero(changes.new) < len(created):
            was, is_there = changes.old != 0, changes.new != 0
            created, removed = changes.slots[is_there & ~was], changes.slots[was & ~is_there]
        indexes: list[SliceIndex | RangeIndex] = [*self._slices.values(), *self._ranges.values()]
        for index in indexes:
            # Removal first: a slot that one row leaves may be the slot that another takes.
            if len(removed):
                index.remove(removed)
            if len(created):
                index.add(created)

    def commit(self) -> None:
        """Makes the changes since the last commit final."""
        self._applied.clear()
        self.last = None
        self.rows.forget_if_empty()

    def rollback(self) -> None:
        """Takes back the changes since the last commit."""
        for keys, weights in reversed(self._applied):
            changes = self.rows.add_weights(keys, -weights)
            if not self._is_torn:
                self._tell_indexes(changes)
        if self._is_torn:
            indexes: list[SliceIndex | RangeIndex] = [*self._slices.values(), *self._ranges.values()]
            for index in indexes:
                index.clear()
                index.add(self.rows.live_slots())
        self._is_torn = False
        self._applied.clear()
        self.last = None

    def index(self, columns: Sequence[int]) -> SliceIndex:
        """The secondary index by these columns, built on first use and kept from then on."""
        key = tuple(columns)
        if key not in self._slices:
            index = SliceIndex(self.rows, self.layout.words(key))
            index.build()
            self._slices[key] = index
        return self._slices[key]

    def range_index(self, columns: Sequence[int], access: RangeAccess, texts: Texts | None = None) -> RangeIndex:
        """The ordered index by these columns and then by the one of the access, built on first use."""
        key = (tuple(columns), access)
        if key not in self._ranges:
            self._ranges[key] = RangeIndex(self.rows, self.layout, columns, access, texts)
        return self._ranges[key]

    @property
    def slice_keys(self) -> tuple[tuple[int, ...], ...]:
        """The columns of its secondary indexes."""
        return tuple(self._slices)

    @property
    def ranges(self) -> Mapping[tuple[tuple[int, ...], RangeAccess], RangeIndex]:
        """Its ordered indexes."""
        return self._ranges

    @property
    def whole(self) -> Arrangement:
        """What is searched: all of it."""
        return self

    def at(self, slots: Ints) -> Batch:
        """The rows in these slots, with their weights."""
        entries = self.rows.entries_at(slots)
        return Batch(self.layout.unpack(entries), entries[:, -1].copy())

    def nbytes(self) -> dict[str, int]:
        """Bytes of the rows and of each index."""
        sizes = {"rows": self.rows.nbytes}
        for columns, index in self._slices.items():
            sizes[f"index{listed_columns(columns)}"] = index.nbytes
        for (columns, access), ordered in self._ranges.items():
            sizes[f"order{listed_columns((*columns, *access.columns))}"] = ordered.nbytes
        return sizes


def listed_columns(columns: Sequence[int]) -> str:
    """Columns of an index, or words of a key, as ``stats`` names them.

    >>> listed_columns((0, 2))
    '[0,2]'
    """
    return f"[{','.join(map(str, columns))}]"


class Operator:
    """A node of the DAG: stateless unless a subclass says otherwise."""

    survives_lack_of_memory: bool = False
    """Whether ``rollback`` helps where ``push`` has failed at any allocation; otherwise the operator is made anew."""

    def __init__(self, fields: Schema, inputs: tuple[Operator, ...]) -> None:
        self.fields = fields
        self.types = tuple(f.type for f in fields)
        self.layout = KeyLayout(self.types, tuple(f.nullable for f in fields))
        self.inputs = inputs
        self.arrangement: Arrangement | None = None
        self.part: TablePart | None = None
        """The rows of a table that the output is, if it is such and no table itself."""
        self.in_table: Searched | None = None
        """These, where they are found in the table's arrangement."""
        self.seconds = 0.0
        """What transactions have taken in it, as far as that is not on the account of a view yet."""
        self.spent = 0.0
        """The rest of that time."""
        self.out = RowCount()
        """Of the deltas that it has put out since it was made."""
        self._in_before = sum(i.out.rows for i in inputs)
        self.why_no_tree: str | None = None
        """Why a view tree does not do this operator's work, where one could have been expected to."""

    @property
    def rows_in(self) -> int:
        """How many rows its inputs have put out since it was made."""
        return sum(i.out.rows for i in self.inputs) - self._in_before

    def push(self, deltas: Sequence[Batch | None]) -> Batch | None:
        """The delta of the output for the deltas of the inputs (None: unchanged); rows may repeat in it."""
        raise NotImplementedError

    def load(self, contents: Sequence[Batch]) -> Batch:
        """Takes in the whole contents of the inputs, once, and returns the content of the output."""
        return self.push(contents) or self.nothing()

    def content(self) -> Batch:
        """The current output."""
        if self.arrangement is not None:
            return self.arrangement.content()
        return self.recompute([i.content() for i in self.inputs])

    def iterate(self) -> Iterator[Batch]:
        """The current output, piece by piece."""
        content = self.content()
        for start in range(0, len(content), PIECE):
            yield content.take(np.arange(start, min(start + PIECE, len(content))))

    def count(self) -> int:
        """The number of rows, each as often as it is there."""
        return total_weight(self.content().weights)

    def lookup(self, columns: Sequence[int], values: Sequence[Vector]) -> Batch:
        """The rows in which these columns have these values, one of each, by a secondary index that is kept from then on."""
        arrangement = self.arranged()
        arrangement.is_asked_by_users = True
        slots = arrangement.index(columns).expand(self.layout.part(columns).pack(values, 1))[1]
        return arrangement.at(np.ascontiguousarray(slots))

    def recompute(self, contents: Sequence[Batch]) -> Batch:
        """The output for the whole contents of the inputs; operators with state answer from it instead."""
        return self.push(contents) or self.nothing()

    def commit(self) -> None:
        """The transaction has succeeded."""

    def rollback(self) -> None:
        """The transaction has failed: the state is to be as it was before ``push``."""

    def forget_codes(self) -> None:
        """Forgets what is found by the position of a code: codes of the dictionary may mean other values from now on."""

    def nbytes(self) -> dict[str, int]:
        """Bytes of state by structure, without the arrangement."""
        return {}

    def describe(self) -> str:
        """One line for ``explain``."""
        raise NotImplementedError

    def searches(self) -> tuple[Searched, ...]:
        """What the operator looks rows up in, of its inputs."""
        return ()

    def python_parts(self) -> list[str]:
        """The sub-expressions that run their definition per distinct value instead of machine code."""
        return []

    def arranged(self) -> Arrangement:
        """The arrangement of this operator's output, for those who keep it: it stays where it is."""
        kept = self.arrange()
        kept.is_held = True
        return kept

    def arrange(self) -> Arrangement:
        """The same for those who ask again each time; made and filled on first use, shared by all who ask."""
        if self.arrangement is None:
            content = self.content()
            self.arrangement = Arrangement(self.layout)
            self.arrangement.apply(content)
            self.arrangement.commit()
        return self.arrangement

    def searched(self) -> Searched:
        """The output for those who look rows up in it and do not mind if rows repeat."""
        return self.arranged()

    def sliced(self) -> Searched:
        """The same for those who look rows up by equal columns and in no order; when a view has come, it may be another."""
        if self.in_table is None and self.part is not None and self.arrangement is None:
            self.part.scan.source.arrange_part(self, self.part)
        return self.arrange() if self.in_table is None else self.in_table

    @property
    def keeps_output(self) -> bool:
        """Whether its output is kept."""
        return self.arrangement is not None

    def nothing(self) -> Batch:
        """The empty output."""
        return empty_batch(self.types)


def consolidated(batch: Batch, layout: KeyLayout) -> Batch:
    """The batch with each row once and no weight 0."""
    first, sums = consolidate(layout.pack(batch.columns, len(batch)), batch.weights)
    if len(first) == len(batch):
        return Batch(batch.columns, sums)
    return Batch(tuple(c.take(first) for c in batch.columns), sums)
