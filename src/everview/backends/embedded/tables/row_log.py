"""Rows in order of arrival, in the Arrow batches in which they came; a row is known by its number.

A row has a weight, 1 unless told otherwise; 0 means that it is dead. Dead rows keep their numbers until ``compact`` takes them
out and renumbers the rest. Small batches are joined, some tens at a time, so that there are at most a few tens of them plus
one for every few hundred rows, and a row is copied at most once a level. Batches are immutable: what was given out stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from everview.backends.embedded.state.row_kernels import COLUMN_WORDS
from everview.backends.embedded.tables.batch_rows import places_of, rows_are_same
from everview.backends.embedded.vectors import Bools, Ints

LEVELS: Final = (32, 512, 16_384, 524_288)
_ALWAYS: Final = 2
"""How many of the levels every log has; the others are for logs in which rows are looked for, which many batches make slow."""

"""Batches of fewer rows than the last are small; those of the same level are joined, with lower ones that come after them."""

FAN_IN: Final = 32
"""How many small batches may stand at the end of the log."""

AFTER_COMPACTION: Final = 4096
"""The least number of rows in a batch where the log is rewritten anyway."""

FEW: Final = 6
"""Up to so many rows of one batch are fetched as slices; Arrow's take has a price of its own."""


class Mark(NamedTuple):
    """A state of a log to which it can be cut back, as long as nothing was joined since."""

    batches: int
    rows: int


class RowLog:
    """Batches of one schema, and the weights of their rows."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._starts: Ints = np.zeros(FAN_IN, dtype=np.int64)
        self._count = 0
        self._weights: Ints | None = None  # longer than the log, or None while every weight is 1
        self.dead = 0
        """The number of rows with weight 0."""
        self._is_searched = False
        self._tidy_until = 0
        """How many batches there may be before there can be too many of one level."""
        self._places: Ints = np.zeros(
            (0, len(schema), COLUMN_WORDS), dtype=np.int64
        )  # of the first batches, as many as …
        self._placed = 0  # … this number says

    def __len__(self) -> int:
        """The number of rows, dead ones too: the next row's number."""
        return self._count

    @property
    def data_bytes(self) -> int:
        """Memory of the Arrow data."""
        return sum(batch.nbytes for batch in self._batches)

    @property
    def index_bytes(self) -> int:
        """Memory of the weights and of what finds a row's batch."""
        return self._starts.nbytes + self._places.nbytes + (0 if self._weights is None else self._weights.nbytes)

    def words_in_use(self, _most: int) -> Iterator[Ints]:
        """No word here is a code: rows lie in Arrow."""
        return iter(())

    def mark(self) -> Mark:
        """The state now."""
        return Mark(len(self._batches), self._count)

    def append(self, rows: pa.Table | pa.RecordBatch, weights: Ints | None = None) -> int:
        """Adds rows and returns the number of the first; ``weights`` are not 0."""
        first = self._count
        for batch in [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches():
            if batch.num_rows:
                self._push(batch)
        if self._weights is None and weights is not None:
            self._weights = np.ones(self._count, dtype=np.int64)
        if self._weights is not None:
            self._weights = _with_room(self._weights, self._count)
            self._weights[first : self._count] = 1 if weights is None else weights
        return first

    def cut_back(self, mark: Mark) -> None:
        """Forgets the rows since a mark."""
        del self._batches[mark.batches :]
        self._count = mark.rows
        self._placed = min(self._placed, mark.batches)

    def bury(self, numbers: Ints) -> None:
        """Declares living rows of weight 1 dead."""
        if self._weights is None:
            self._weights = np.ones(self._count, dtype=np.int64)
        self._weights[numbers] = 0
        self.dead += len(numbers)

    def revive(self, numbers: Ints) -> None:
        """Undoes ``bury``."""
        assert self._weights is not None
        self._weights[numbers] = 1
        self.dead -= len(numbers)

    def tidy(self) -> None:
        """Joins batches at the end of the log if there are many of one level."""
        if len(self._batches) < self._tidy_until:
            return
        lower, room = 0, FAN_IN - 1  # batches that are joined may make one of the same level
        for limit in LEVELS if self._is_searched else LEVELS[:_ALWAYS]:
            run = own = 0
            for batch in reversed(self._batches):
                if batch.num_rows >= limit:
                    break
                run += 1
                own += batch.num_rows >= lower
            if own >= FAN_IN:
                self._join_last(run)
            else:
                room = min(room, FAN_IN - own)
            # Of large batches only a level's own count, so that each row is copied once a level, however the sizes mix.
            lower = limit if limit >= LEVELS[_ALWAYS - 1] else 0
        self._tidy_until = len(self._batches) + room

    def compact(self) -> Ints:
        """Takes out dead rows; returns the new number of each old one, which means nothing for dead ones."""
        assert self._weights is not None
        alive = self._weights[: self._count] != 0
        living = self._living(alive, range(len(self._schema)))
        kept = self._weights[: self._count][alive]
        self._batches, self._count, self.dead, self._placed, self._tidy_until = [], 0, 0, 0, 0
        for group in _groups(living, AFTER_COMPACTION):
            for batch in _in_one(group):
                self._push(batch)
        self._weights = None if bool((kept == 1).all()) else kept
        self._starts = self._starts[: max(FAN_IN, 2 * len(self._batches))].copy()
        return np.cumsum(alive) - 1

    def take(self, numbers: Ints) -> pa.Table:
        """The rows with these numbers, in this order."""
        if len(numbers) == 0:
            return self._schema.empty_table()
        homes = np.searchsorted(self._starts[: len(self._batches)], numbers, side="right") - 1
        if len(numbers) == 1:
            return pa.Table.from_batches([self._slice(int(homes[0]), int(numbers[0]), 1)])
        if not self._is_searched:
            self._is_searched, self._tidy_until = True, 0
        order = None
        if not bool((np.diff(numbers) >= 0).all()):
            order = np.argsort(numbers, kind="stable")
            numbers, homes = numbers[order], homes[order]
        rows = self._take_ascending(numbers, homes)
        if order is None:
            return rows
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        return rows.take(pa.array(places))

    def are(self, numbers: Ints, rows: pa.RecordBatch, positions: Ints, widths: Ints) -> bool:
        """Whether the rows with these numbers are the rows of a batch at these positions.

        Args:
            numbers: The rows here.
            rows: Rows of the same schema, none of whose columns is a list or struct.
            positions: Positions in it.
            widths: Those of the columns.
        """
        homes = np.searchsorted(self._starts[: len(self._batches)], numbers, side="right") - 1
        here = numbers - self._starts[homes]
        return bool(rows_are_same(widths, places_of(rows), positions, self._all_places(), homes, here).all())

    def _all_places(self) -> Ints:
        """Where all batches lie in memory."""
        count = len(self._batches)
        if self._placed < count:
            if count > len(self._places):
                longer = np.zeros((max(count, 2 * len(self._places)), *self._places.shape[1:]), dtype=np.int64)
                longer[: self._placed] = self._places[: self._placed]
                self._places = longer
            for at in range(self._placed, count):
                self._places[at] = places_of(self._batches[at])[0]
            self._placed = count
        return self._places

    def frozen(self) -> RowLog:
        """A log of its own with the same rows, which stays as it is: batches are shared, weights are copied."""
        copy = RowLog(self._schema)
        copy._batches = list(self._batches)
        copy._starts = self._starts[: len(self._batches)].copy()
        copy._count, copy.dead = self._count, self.dead
        copy._weights = None if self._weights is None else self._weights[: self._count].copy()
        return copy

    def content(self, columns: Sequence[int]) -> tuple[pa.Table, Ints]:
        """The living rows of some columns, with their weights; without a copy where no row is dead."""
        schema = pa.schema([self._schema.field(c) for c in columns])
        if self._weights is None:
            whole = pa.Table.from_batches(self._batches, self._schema).select(list(columns))
            return whole, np.ones(self._count, dtype=np.int64)
        weights = self._weights[: self._count]
        if not self.dead:
            return pa.Table.from_batches(self._batches, self._schema).select(list(columns)), weights.copy()
        alive = weights != 0
        return pa.Table.from_batches(self._living(alive, columns), schema), weights[alive]

    def _push(self, batch: pa.RecordBatch) -> None:
        at = len(self._batches)
        self._starts = _with_room(self._starts, at + 1)
        self._starts[at] = self._count
        self._batches.append(batch)
        self._count += batch.num_rows

    def _join_last(self, run: int) -> None:
        small = self._batches[-run:]
        self.cut_back(Mark(len(self._batches) - run, self._count - sum(b.num_rows for b in small)))
        for batch in _in_one(small):
            self._push(batch)

    def _living(self, alive: Bools, columns: Sequence[int]) -> list[pa.RecordBatch]:
        living = []
        for at, batch in enumerate(self._batches):
            start = int(self._starts[at])
            mask = alive[start : start + batch.num_rows]
            if mask.all():
                living.append(batch.select(list(columns)))
            elif mask.any():
                living.append(batch.select(list(columns)).take(pa.array(np.flatnonzero(mask))))
        return living

    def _slice(self, home: int, number: int, count: int) -> pa.RecordBatch:
        return self._batches[home].slice(number - int(self._starts[home]), count)

    def _take_ascending(self, numbers: Ints, homes: Ints) -> pa.Table:
        cuts = [0, *(np.flatnonzero(np.diff(homes)) + 1).tolist(), len(numbers)]
        parts = []
        for begin, end in itertools.pairwise(cuts):
            home, count = int(homes[begin]), end - begin
            first, last = int(numbers[begin]), int(numbers[end - 1])
            if last - first == count - 1 and bool((np.diff(numbers[begin:end]) == 1).all()):
                parts.append(self._slice(home, first, count))
            elif count <= FEW:
                parts += [self._slice(home, number, 1) for number in numbers[begin:end].tolist()]
            else:
                parts.append(self._batches[home].take(pa.array(numbers[begin:end] - self._starts[home])))
        return pa.Table.from_batches(_in_one(parts))


def _in_one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """One batch with all rows; more where a column has more text than an Arrow array can hold."""
    if len(batches) == 1:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _groups(batches: Sequence[pa.RecordBatch], least: int) -> list[list[pa.RecordBatch]]:
    """Neighbours together until they have enough rows."""
    groups: list[list[pa.RecordBatch]] = []
    size = least
    for batch in batches:
        if size >= least:
            groups.append([])
            size = 0
        groups[-1].append(batch)
        size += batch.num_rows
    return groups


def _with_room(array: Ints, count: int) -> Ints:
    """The same array, or a longer one that begins with it."""
    if count <= len(array):
        return array
    longer = np.empty(max(count, 2 * len(array)), dtype=np.int64)
    longer[: len(array)] = array
    return longer
