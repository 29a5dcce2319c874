"""Look-ups in large segments that run in tasks: each answers those of its segments, from a copy on its executor's own disk.

All look-ups of a round, whatever relations they are in, are one Spark job. A task gets some segments and what is asked of each,
which is as much as the change; it gives back the rows found. It keeps copies of the columns that it searches
(``LookupCopies``, shared by the Python workers of an executor; where tasks run beside the driver they lie in the database's
folder, for later processes). Of a segment that has none it reads the row groups that may have a key. Copies are made from the
second look-up in a relation on, by whichever executor is asked, and made again where they are lost.

Contract: nothing of a segment but the rows asked for comes to the driver. everview is installed where executors run.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.spark.arrow_conditions import passing
from everview.backends.spark.lookup_copies import LookupCopies, name_of_copy
from everview.backends.spark.row_hashes import ROW_HASH, without_hash
from everview.backends.spark.segment_bounds import groups_with
from everview.backends.spark.segment_copies import hashes_of
from everview.backends.spark.segments import (
    Segment,
    SegmentFile,
    decode,
    empty_rows,
    encode,
)
from everview.errors import CorruptDatabase, UnsupportedOperation
from everview.relational.expressions import Expression
from everview.relational.nodes import Schema

if TYPE_CHECKING:
    from everview.backends.spark.relation_store import StoredRelation
    from everview.backends.spark.spark_engine import SparkEngine

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_FAILED: Final = -1
"""Stands before an error where a task gives back the rows of a look-up."""
_READ: Final = -2
"""Before the number of bytes that it has read."""
_copies: dict[tuple[str, int], LookupCopies] = {}
"""Of this Python worker: the copies that its executor has, by folder and budget."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted of some segments of a relation: the rows that have one of the keys in a column.

    ``columns`` and ``by`` are positions in ``fields``, what is in the files; ``conditions`` are over the wanted columns.
    """

    place: str
    segments: tuple[Segment, ...]
    fields: Schema
    columns: tuple[int, ...]
    by: int
    keys: pa.ChunkedArray
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """One segment's share of a job: the numbers of what is asked, and whether a copy may be made."""

    segment: Segment
    numbers: tuple[int, ...]
    may_copy: bool


class TaskLookups:
    """The look-ups of one database in tasks.

    Args:
        engine: Spark.
        budget: How much disk the copies of an executor may take; 0 for no look-ups in tasks.
        kept: A folder of this machine in which they outlive the application, where its tasks run beside this process.
    """

    def __init__(self, engine: SparkEngine, budget: int, kept: Path | None = None) -> None:
        self._engine = engine
        self._budget = budget
        self._kept = kept
        self._times: Counter[str] = Counter()
        self.bytes_read = 0
        """By tasks: of copies the memory pages that were touched, of segments the columns that were copied or searched."""

    @property
    def are_on(self) -> bool:
        """Whether tasks look rows up; else Spark joins do."""
        return self._budget > 0

    @property
    def folder(self) -> Path:
        """Where the copies of tasks beside this process are."""
        return copies_folder(self._engine.application) if self._kept is None else self._kept / running_since()

    def forget_others(self, relations: Iterable[StoredRelation]) -> None:
        """Removes kept copies, but for those of what these hold; all from before the system started, which may be torn."""
        if self._kept is None or not self._kept.exists():
            return
        names = {name_of_copy(r.folder.absolute() / s.path, s) for r in relations for s in r.held}
        for place in self._kept.iterdir():
            unused = [place] if place.name != running_since() else [c for c in place.iterdir() if c.name not in names]
            for folder in unused:
                shutil.rmtree(folder, ignore_errors=True)

    def warm_up(self) -> None:
        """Lets the executors' Python workers import what look-ups need, which takes a second each."""
        if self.are_on:
            self._engine.warm_up(_present)

    def rows(self, asked: Sequence[Asked]) -> list[pa.Table]:
        """The rows of each, in one job; none if by the bounds of the segments there are no such rows."""
        parts: dict[tuple[str, Segment], list[int]] = {}
        for number, one in enumerate(asked):
            for segment in one.segments:
                if groups_with(Path(one.place) / segment.path, segment, one.fields, one.by, one.keys):
                    parts.setdefault((one.place, segment), []).append(number)
        self._times.update({place for place, _ in parts})
        shares = [_Part(s, tuple(numbers), self._times[place] > 1) for (place, s), numbers in parts.items()]
        shares.sort(key=lambda p: -p.segment.rows)
        folder = str(self.folder) if self._engine.is_local else None
        found = self._engine.in_tasks(partial(_answered, tuple(asked), self._budget, folder), shares) if shares else []
        answers: list[list[pa.Table]] = [[] for _ in asked]
        for number, rows in found:
            if number == _FAILED:
                raise pickle.loads(rows)
            if number == _READ:
                self.bytes_read += int.from_bytes(rows)
                continue
            answers[number].append(pa.ipc.open_stream(rows).read_all())
        return [
            pa.concat_tables([empty_rows(tuple(one.fields[c] for c in one.columns)), *parts])
            for one, parts in zip(asked, answers, strict=True)
        ]


def copies_folder(application: str) -> Path:
    """Where the executors of an application keep their copies: on a disk of their own, which Spark empties in the end."""
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    return Path(local) / f"everview-copies-{application}"


def running_since() -> str:
    """A name for the time since the operating system started: files written since then are whole in its cache or on disk."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:  # it does not say, so nothing is kept beyond this process
        return f"process-{os.getpid()}"


def _present(numbers: Iterable[int]) -> Iterable[int]:
    """What runs in a task to warm up: it comes from this module, which a worker imports for it."""
    return numbers


def _answered(
    asked: Sequence[Asked], budget: int, folder: str | None, application: str, parts: Iterable[_Part]
) -> Iterator[tuple[int, bytes]]:
    """What runs in a task: for each look-up the rows that its segments have, as a stream of Arrow."""
    place = (folder or str(copies_folder(application)), budget)
    if place not in _copies:
        _copies[place] = LookupCopies(Path(place[0]), budget, is_shared=True)
    copies, read = _copies[place], 0
    before = copies.bytes_read
    for part in parts:
        for number in part.numbers:
            try:
                rows, unmapped = _found(asked[number], part, copies)
            except (CorruptDatabase, UnsupportedOperation) as error:  # else the driver gets text of a Java error
                yield _FAILED, pickle.dumps(error)
                return
            read += unmapped
            if rows.num_rows:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, rows.schema) as writer:
                    writer.write_table(rows)
                yield number, sink.getvalue().to_pybytes()
    yield _READ, (copies.bytes_read - before + read).to_bytes(8)


def _found(one: Asked, part: _Part, copies: LookupCopies) -> tuple[pa.Table, int]:
    """The rows, and the bytes read where there was no copy."""
    folder, read = Path(one.place), 0
    rows, left = copies.rows(folder, [part.segment], one.fields, one.columns, one.by, one.keys, may_copy=part.may_copy)
    if left:
        rows, read = _read(folder, part.segment, one)
    return passing(rows, one.conditions), read


def _read(folder: Path, segment: Segment, one: Asked) -> tuple[pa.Table, int]:
    """The rows of a segment that has no copy, and the bytes read."""
    path = folder / segment.path
    wanted = tuple(one.fields[c] for c in one.columns)
    keys = encode(pa.table([one.keys], names=["k"]), (one.fields[one.by],)).column(0)
    found, size = [], 0
    with SegmentFile(path, segment, without_hash(one.fields)) as file:
        there = file.schema.names
        names = [there[c] if c < len(there) else ROW_HASH.name for c in one.columns]
        read = there if ROW_HASH.name in names else list(dict.fromkeys(names))
        asked = keys.combine_chunks().cast(file.schema.field(there[one.by]).type)
        for group in groups_with(path, segment, one.fields, one.by, one.keys):
            met = pc.is_in(file.read(group, [there[one.by]]).column(0), value_set=asked)
            size += file.bytes_of([there[one.by]], group)
            if pc.any(met).as_py():
                rows = file.read(group, read).filter(met)
                size += file.bytes_of(read, group)
                found.append([hashes_of(rows) if n == ROW_HASH.name else rows.column(n) for n in names])
    if not found:
        return empty_rows(wanted), size
    arrays = [pa.chunked_array([c for part in parts for c in part.chunks]) for parts in zip(*found, strict=True)]
    return decode(pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(names))]), wanted), size
