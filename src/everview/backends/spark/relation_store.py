"""A stored relation: a Z-set as a Delta table of segments, whose content is the sum of the weights.

Small segments are kept at the driver once they have been read or written; large ones are for Spark. Contract: nothing here
decides what is committed; ``moved`` follows a record that is on disk, and is repeated on opening if it was interrupted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    RemoveAction,
    Transaction,
    create_table_with_add_actions,
)

from everview.backends.spark.commit_log import Move
from everview.backends.spark.lookup_copies import LookupCopies
from everview.backends.spark.outside_files import outside_segments
from everview.backends.spark.packed_rows import numbers_of
from everview.backends.spark.row_hashes import ROW_HASH
from everview.backends.spark.segments import (
    GROUP_ROWS,
    Segment,
    by_position,
    empty_rows,
    encode,
    gone_outside,
    read_segment,
    stored_schema,
    write_segment,
)
from everview.backends.spark.stages import WEIGHT
from everview.errors import CorruptDatabase, EverviewError, UnknownName, UnsupportedOperation
from everview.lake_source import open_lake_table
from everview.relational.nodes import Schema

APPLICATION: Final = "everview"
"""The application whose transactions the Delta logs record: the sequence numbers of our commit records."""


LOCAL_ROWS: Final = 200_000
"""Segments of at most so many rows are kept at the driver once they are read, unless it is told otherwise."""
KEPT_ROWS: Final = 200_000
"""Rows of a segment that stay in memory when it is written; a larger one is read again if the driver may have it at all."""
LOCAL_SEGMENTS: Final = 8
"""All segments at the driver have at most as many rows as so many of the largest: executors may write any number of files."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a relation, and by which of them the rows of its large segments are sorted."""

    fields: Schema
    cluster: tuple[int, ...] = ()
    follows: str | None = None
    """The user's Delta table whose files are the relation's: read, and never written."""


@dataclass(eq=False)
class StoredRelation:
    """One relation on disk.

    One that follows a Delta table has the segments of a version of it, and that version; its own folder is for far changes.

    Args:
        name: Its name in programs.
        folder: Where its Delta table is.
        layout: Its columns, without the weight.
        version: The version of its Delta log; -1 before the first commit.
        held: Its files at that version.
        copies: Where the driver can look rows of large segments up; None for a relation that only Spark reads.
        is_far: Whether all its rows are the executors', however few a segment has.
        gone: Why the files of a followed Delta table are not known any more.
    """

    name: str
    folder: Path
    layout: Layout
    version: int = -1
    held: list[Segment] = field(default_factory=list)
    copies: LookupCopies | None = None
    is_far: bool = False
    gone: EverviewError | None = None
    _kept: dict[Segment, pa.Table] = field(default_factory=dict)
    _lake: DeltaTable | None = None

    @property
    def segments(self) -> list[Segment]:
        """Its files at that version.

        Raises:
            UnsupportedOperation: it follows a Delta table, which does not have the version any more.
        """
        if self.gone is not None:
            raise self.gone
        return self.held

    @property
    def fields(self) -> Schema:
        """Its columns, without the weight."""
        return self.layout.fields

    @property
    def stored(self) -> Schema:
        """The columns in the files: its own and the weight."""
        return (*self.fields, WEIGHT)

    @property
    def searched(self) -> Schema:
        """The columns that look-ups may ask for: those in the files, and a hash of the whole row."""
        return (*self.stored, ROW_HASH)

    @property
    def row_count(self) -> int:
        """The number of weighted rows in all segments, before they are summed up."""
        return sum(s.rows for s in self.segments)

    def write(self, rows: pa.Table) -> Segment:
        """Writes weighted rows as a segment, which belongs to the relation once a commit adds it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if rows.num_rows > GROUP_ROWS:
            rows = clustered(rows, self.layout.cluster)
        segment = write_segment(self.folder, rows, self.stored)
        if segment.rows <= KEPT_ROWS:
            self._kept[segment] = by_position(rows)
        return segment

    def written(self, content: Sequence[Segment] | pa.Table) -> list[Segment]:
        """A whole content as segments: written now if it is at the driver."""
        if isinstance(content, pa.Table):
            return [self.write(content)] if content.num_rows else []
        return list(content)

    def drop_unused(self, segment: Segment) -> None:
        """Removes a segment that no commit has added; a user's file stays."""
        self._kept.pop(segment, None)
        if not segment.is_outside:
            (self.folder / segment.path).unlink(missing_ok=True)

    def over(self, segments: Sequence[Segment], *, is_far: bool = False) -> StoredRelation:
        """The same relation with other segments."""
        return StoredRelation(
            self.name,
            self.folder,
            self.layout,
            held=list(segments),
            copies=self.copies,
            is_far=is_far,
            _kept=self._kept,
        )

    def with_layout(self, layout: Layout) -> StoredRelation:
        """Other columns in the same folder, for rows that are needed only on the way."""
        return StoredRelation(self.name, self.folder, layout)

    def remote(self, limit: int) -> list[Segment]:
        """The segments that are too large for the driver, alone or together with smaller ones."""
        if self.is_far:
            return list(self.segments)
        room, near = LOCAL_SEGMENTS * limit, set[str]()
        for segment in sorted(self.segments, key=lambda s: (s.rows, s.path)):
            room -= segment.rows
            if segment.rows > limit or room < 0:
                break
            near.add(segment.path)
        return [s for s in self.segments if s.path not in near]

    def local(self, limit: int, columns: tuple[int, ...] | None = None) -> pa.Table:
        """The weighted rows of the other segments, of some columns and the weight."""
        chosen = [*(range(len(self.fields)) if columns is None else columns), len(self.fields)]
        remote = {s.path for s in self.remote(limit)}
        parts = [self.rows_of(s).select(chosen) for s in self.segments if s.path not in remote]
        if not parts:
            parts = [empty_rows(self.stored).select(chosen)]
        return pa.concat_tables([by_position(p) for p in parts])

    def found(
        self, limit: int, columns: tuple[int, ...], by: int, keys: pa.ChunkedArray
    ) -> tuple[pa.Table, list[Segment]]:
        """The weighted rows of large segments that have one of the keys in a column, and the segments left for Spark."""
        wanted = (*columns, len(self.fields))
        if self.copies is None:
            return empty_rows(tuple(self.searched[c] for c in wanted)), self.remote(limit)
        return self.copies.rows(self.folder, self.remote(limit), self.searched, wanted, by, keys)

    def rows_of(self, segment: Segment, *, keep: bool = True) -> pa.Table:
        """The weighted rows of a segment, columns named by position."""
        known = self._kept.get(segment)
        if known is None:
            known = read_segment(self.folder, segment, self.stored)
            if keep:
                self._kept[segment] = known
        return known

    def check_files(self) -> None:
        """Raises CorruptDatabase unless every segment is there with its size."""
        for segment in () if self.gone else self.segments:
            path = self.folder / segment.path
            if segment.is_outside:
                continue  # whether they are there is the user's business until they are needed
            if not path.exists():
                raise CorruptDatabase(
                    f"segment '{path}' of '{self.name}' is missing.", hint="restore it, or the database, from a copy."
                )
            if path.stat().st_size != segment.size:
                raise CorruptDatabase(
                    f"segment '{path}' has {path.stat().st_size} bytes where {segment.size} were written."
                )

    def check_outside(self) -> None:
        """Raises UnsupportedOperation unless the files of the Delta table that it follows are there."""
        for segment in self.segments if self.layout.follows else ():
            if not Path(segment.path).exists():
                raise gone_outside(Path(segment.path))

    def paths(self, segments: Sequence[Segment]) -> list[str]:
        """Where segments are."""
        return [str(self.folder / s.path) for s in segments]

    def commit(self, move: Move, sequence: int) -> None:
        """Adds a recorded move to the Delta log: its next version. The log of a followed Delta table has it already."""
        if self.layout.follows:
            self.version += 1
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = CommitProperties(app_transactions=[Transaction(APPLICATION, sequence)], max_commit_retries=0)
        now = int(time.time() * 1000)
        adds = [AddAction(s.path, s.size, {}, now, True, json.dumps({"numRecords": s.rows})) for s in move.add]
        if self.version < 0:
            schema = DeltaSchema.from_arrow(stored_schema(self.stored))
            create_table_with_add_actions(
                str(self.folder), schema, adds, mode="error", name=self.name, commit_properties=properties
            )
        else:
            removes = [RemoveAction(s.path, True, now, s.size) for s in move.remove]
            table = self._table()
            table.create_write_transaction([*adds, *removes], "append", table.schema(), commit_properties=properties)
            table.update_incremental()
        self.version += 1

    def moved(self, move: Move) -> None:
        """Takes a committed move into account."""
        gone = {s.path for s in move.remove}
        for segment in move.remove:
            self._kept.pop(segment, None)
            if self.copies is not None:
                self.copies.forget(self.folder / segment.path)
        if not self.gone:
            self.held = [s for s in self.segments if s.path not in gone] + list(move.add)

    def forget_copies(self) -> None:
        """Gives up the copies of its segments."""
        if self.copies is not None:
            for segment in self.held:
                self.copies.forget(self.folder / segment.path)

    def recover(self, version: int, move: Move | None, sequence: int) -> None:
        """Brings the Delta log to the version that the last record names, and reads its files.

        Raises:
            CorruptDatabase: the log is neither at that version nor just before it.
        """
        if self.layout.follows:
            self.stand_at(version)
            return
        found = self._version_on_disk()
        self.version = found
        if move is not None and found == version - 1:
            self.commit(move, sequence)
        elif found != version:
            raise CorruptDatabase(
                f"the Delta table '{self.folder}' is at version {found} where the last commit has {version}."
            )
        self.held = self.segments_at(version)

    def stand_at(self, version: int) -> None:
        """Takes the files of a version of the Delta table that it follows; without them, what needs them will say so."""
        self.version, self.gone = version, None
        try:
            self.held = self.segments_at(version)
        except (UnsupportedOperation, UnknownName) as error:
            self.gone = error

    def segments_at(self, version: int) -> list[Segment]:
        """The files of a version."""
        if self.layout.follows:
            return outside_segments(self.layout.follows, open_lake_table(self.layout.follows, version), self.fields)
        try:
            actions = pa.table(DeltaTable(str(self.folder), version=version).get_add_actions(flatten=True))
        except (DeltaError, TableNotFoundError, OSError) as error:
            raise CorruptDatabase(f"the Delta table '{self.folder}' has no version {version}: {error}.") from error
        columns = (actions.column(n).to_pylist() for n in ("path", "num_records", "size_bytes", "modification_time"))
        found = sorted(zip(*columns, strict=True), key=lambda a: (a[3], a[0]))
        return [Segment(path, rows, size) for path, rows, size, _ in found]

    def encoded(self, rows: pa.Table) -> pa.Table:
        """Weighted rows as they stand in files."""
        return encode(rows, self.stored)

    def _table(self) -> DeltaTable:
        if self._lake is None:
            self._lake = DeltaTable(str(self.folder))
        return self._lake

    def _version_on_disk(self) -> int:
        if not (self.folder / "_delta_log").is_dir():
            return -1
        try:
            self._lake = DeltaTable(str(self.folder))
        except (DeltaError, TableNotFoundError, OSError) as error:
            raise CorruptDatabase(f"the Delta table '{self.folder}' cannot be read: {error}.") from error
        return int(self._lake.version())


def clustered(rows: pa.Table, by: tuple[int, ...]) -> pa.Table:
    """The rows sorted by some columns, or as they are if they ascend in the first of them already."""
    names = [f"c{i}" for i in by if not pa.types.is_nested(rows.schema.types[i])]
    if not names:
        return rows
    named = by_position(rows)
    first = named.column(names[0])
    values = None if first.null_count else numbers_of(first.combine_chunks())
    if values is not None and bool((values[1:] >= values[:-1]).all()):
        return rows
    return named.sort_by([(n, "ascending") for n in names])
