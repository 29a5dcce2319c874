"""One arrangement of a table for all scans of it that are searched, whatever columns they read.

It holds the columns that some of them read. Where two rows of the table agree in the columns of one scan, that scan meets both:
its rows may repeat, which delta rules allow. So only scans take part in whose columns rows hardly repeat. That is so if they
have the primary key, or if at least half of the rows that the table has are distinct in them. Another scan would meet more rows
than it has, and keeps an arrangement of its own.

A scan that needs more columns makes the arrangement anew from the table; when a scan goes, it is made narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from everview.backends.embedded.operators.base import Arrangement, Searched
from everview.backends.embedded.operators.ranges import RangeIndex
from everview.backends.embedded.state.ordered import Texts
from everview.backends.embedded.state.slices import SliceIndex
from everview.backends.embedded.vectors import Batch, Ints, KeyLayout
from everview.relational.nodes import Schema
from everview.relational.range_condition import RangeAccess


class TableArrangement:
    """The rows of a table, in all columns that its readers want.

    Args:
        fields: All columns of the table.
        content: The table's content in some columns.
    """

    def __init__(self, fields: Callable[[], Schema], content: Callable[[Sequence[int]], Batch]) -> None:
        self._fields = fields
        self._content = content
        self.columns: tuple[int, ...] = ()
        self.readers: dict[tuple[int, ...], TableColumns] = {}
        self.whole = Arrangement(self._layout(()))
        self._taken = 0

    def _layout(self, columns: Sequence[int]) -> KeyLayout:
        chosen = [self._fields()[c] for c in columns]
        return KeyLayout(tuple(f.type for f in chosen), tuple(f.nullable for f in chosen))

    def reader(self, columns: tuple[int, ...], own: Arrangement | None = None) -> TableColumns:
        """The arrangement as a scan of these columns sees it, which then has them; ``own`` is what that scan has made."""
        if columns not in self.readers:
            if not self.readers:  # nobody has kept it up to date
                self.columns, self.whole = (), Arrangement(self._layout(()))
            wanted = tuple(dict.fromkeys((*self.columns, *columns)))
            if not self.readers and own is not None:
                self.columns, self.whole = columns, own
            elif wanted != self.columns or not self.readers:
                self._hold(wanted, self._content(wanted))
            self.readers[columns] = TableColumns(self, columns)
        return self.readers[columns]

    def release(self, columns: Collection[tuple[int, ...]]) -> None:
        """Keeps what scans of these columns read, and nothing else."""
        self.readers = {c: r for c, r in self.readers.items() if c in columns}
        wanted = tuple(c for c in self.columns if any(c in r for r in self.readers))
        if not self.readers:
            self.columns, self.whole = (), Arrangement(self._layout(()))
        elif wanted != self.columns:
            slots = self.whole.rows.live_slots()
            entries = self.whole.rows.entries_at(slots)
            kept = self.whole.layout.pick(entries, self.places(wanted))
            with suppress(MemoryError):  # it stays wider than need be
                self._hold(wanted, Batch(kept, entries[:, -1].copy()))

    def _hold(self, columns: tuple[int, ...], content: Batch) -> None:
        """Goes on with these columns, and with the indexes of those before."""
        made = Arrangement(self._layout(columns))
        made.apply(content)
        made.commit()
        place = {c: i for i, c in enumerate(columns)}
        for key in self.whole.slice_keys:
            if all(self.columns[c] in place for c in key):
                made.index([place[self.columns[c]] for c in key])
        for (key, access), index in self.whole.ranges.items():
            if all(self.columns[c] in place for c in (*key, *access.columns)):
                there = access.moved({c: place[self.columns[c]] for c in access.columns})
                made.range_index([place[self.columns[c]] for c in key], there, index.texts)
        self.columns, self.whole = columns, made

    def places(self, columns: Sequence[int]) -> list[int]:
        """Where columns of the table are in the arrangement."""
        return [self.columns.index(c) for c in columns]

    def take(self, number: int, delta: Callable[[Sequence[int]], Batch]) -> None:
        """Adds a change of the table, of which all its scans tell; changes are numbered."""
        if self._taken != number:
            self._taken = number
            self.whole.apply(delta(self.columns))

    def commit(self) -> None:
        """Makes the change final; to say so again does nothing."""
        self.whole.commit()

    def rollback(self) -> None:
        """Takes the change back; to say so again does nothing."""
        self.whole.rollback()
        self._taken = 0


class TableColumns(Searched):
    """Some columns of a table's arrangement."""

    def __init__(self, table: TableArrangement, columns: tuple[int, ...]) -> None:
        self._table = table
        self._columns = columns
        self._placed: tuple[tuple[int, ...], list[int]] = ((), [])
        """The arrangement's columns when the places were last asked for, and the places."""

    def _places(self) -> list[int]:
        held, places = self._placed
        if held is not self._table.columns:
            places = self._table.places(self._columns)
            self._placed = self._table.columns, places
        return places

    @property
    def whole(self) -> Arrangement:
        """What is searched."""
        return self._table.whole

    def index(self, columns: Sequence[int]) -> SliceIndex:
        """The secondary index by these columns."""
        places = self._places()
        return self.whole.index([places[c] for c in columns])

    def range_index(self, columns: Sequence[int], access: RangeAccess, texts: Texts | None = None) -> RangeIndex:
        """The ordered index by these columns and then by the one of the access."""
        places = self._places()
        return self.whole.range_index([places[c] for c in columns], access.moved(places), texts)

    def at(self, slots: Ints) -> Batch:
        """The rows in these slots, with their weights."""
        whole = self.whole
        entries = whole.rows.entries_at(slots)
        return Batch(whole.layout.pick(entries, self._places()), entries[:, -1].copy())
