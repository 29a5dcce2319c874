"""The deltas of a view as its commits left them: in the segments that each added and removed.

    delta(version)  =  Σ rows of the segments added  -  Σ rows of the segments removed        (summed up, zeros dropped)

They are read when they are looked at: one by one at the driver, or all together as a DataFrame over the files, which brings
nothing to the driver. Which versions they are is settled when they are asked for, and later commits do not add to them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, overload

import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import VersionedDelta
from everview.backends.spark.commit_log import Move, Record
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.segments import Segment, by_position, empty_rows
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.table_changes import delta_table
from everview.backends.spark.term_plans import consolidated, weighted
from everview.relational.column_names import WEIGHT
from everview.relational.nodes import Field, Scan
from everview.relational.quoting import quote
from everview.relational.types import INT64, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMMIT: Final = (Field("_commit_version", INT64), Field("_commit_timestamp", TIMESTAMP))
"""What the rows of a delta have besides in a DataFrame of many: the commit they belong to."""


class ReadDeltas(Mapping[str, pa.Table]):
    """The deltas of one transaction by view: how many rows each has, and what makes it when it is looked at first."""

    def __init__(self, made: Mapping[str, tuple[int, Callable[[], pa.Table]]]) -> None:
        self._made = made
        self._known: dict[str, pa.Table] = {}

    def __getitem__(self, view: str) -> pa.Table:
        if view not in self._known:
            self._known[view] = self._made[view][1]()
        return self._known[view]

    def row_count(self, view: str) -> int:
        """The number of rows, not one of them read."""
        return self._made[view][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class StoredDeltas(Sequence[VersionedDelta]):
    """The non-empty deltas of one view, oldest first.

    Args:
        relation: The view on disk.
        records: The commits, oldest first.
        engine: For DataFrames.
        check: Raises if the files are not kept any more.
    """

    def __init__(
        self, relation: StoredRelation, records: Sequence[Record], engine: SparkEngine, check: Callable[[], None]
    ) -> None:
        self._relation = relation
        self._records = [r for r in records if relation.name in r.moves]
        self._engine = engine
        self._check = check
        self._read: list[VersionedDelta] | None = None

    @overload
    def __getitem__(self, index: int) -> VersionedDelta: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[VersionedDelta]: ...
    def __getitem__(self, index: int | slice) -> VersionedDelta | Sequence[VersionedDelta]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> list[VersionedDelta]:
        if self._read is None:
            self._check()
            found = []
            for record in self._records:
                delta = delta_table(
                    moved_rows(self._relation, record.moves[self._relation.name]), self._relation.fields
                )
                if delta.num_rows:
                    at = datetime.datetime.fromisoformat(record.committed_at)
                    found.append(VersionedDelta(record.version, delta, at))
            self._read = found
        return self._read

    def to_spark(self, format: str) -> DataFrame:  # noqa: A002 -- as in View.changes
        """All rows, with their weights or as a change feed, and the commits that they belong to."""
        self._check()
        fields = self._relation.fields
        plan = consolidated(Scan("t", weighted((*fields, *COMMIT))))
        names = [f.name for f in fields]
        positions = [f"c{i}" for i in range(len(fields) + 3)]
        summed = self._engine.for_user(self._rows(), plan, positions)
        *own, version, at, weight = positions
        commit = [f"{c} AS {f.name}" for c, f in zip((version, at), COMMIT, strict=True)]
        shown = [f"{c} AS {quote(n)}" for c, n in zip(own, names, strict=True)]
        if format == "weights":
            return summed.selectExpr(*shown, f"{weight} AS {WEIGHT}", *commit)
        kind = f"explode(array_repeat(if({weight} > 0, 'insert', 'delete'), CAST(abs({weight}) AS INT)))"
        return summed.selectExpr(*shown, f"{kind} AS _change_type", *commit)

    def _rows(self) -> DataFrame:
        """The rows of all segments, each with its commit, columns named by position and the weight last.

        A segment that one commit added and a later one removed stands for rows of both.
        """
        session = self._engine.user_session
        commits = []
        files: set[Segment] = set()
        for record in self._records:
            move = record.moves[self._relation.name]
            at = datetime.datetime.fromisoformat(record.committed_at)
            for segments, sign in ((move.add, 1), (move.remove, -1)):
                commits += [(s.path.rpartition("/")[2], record.version, at, sign) for s in segments]
                files.update(segments)
        count = len(self._relation.fields)
        file_name = "_metadata.file_name AS file"
        read = self._engine.frame_of_segments(self._relation, sorted(files, key=lambda s: s.path), session, file_name)
        if not files:
            return read.selectExpr(*_placed(count, "0L", "CAST(NULL AS TIMESTAMP)", f"c{count}"))
        by_file = session.createDataFrame(commits, "file string, version bigint, at timestamp, sign bigint")
        rows = read.join(by_file.hint("broadcast"), "file")
        return rows.selectExpr(*_placed(count, "version", "at", f"c{count} * sign"))


def _placed(count: int, version: str, at: str, weight: str) -> list[str]:
    made = [*(f"c{i}" for i in range(count)), version, at, weight]
    return [f"{text} AS c{i}" for i, text in enumerate(made)]


def moved_rows(relation: StoredRelation, move: Move) -> pa.Table:
    """What a commit did to a relation: the rows it added, less those it removed."""
    added = [relation.rows_of(s, keep=False) for s in move.add]
    removed = [_negated(relation.rows_of(s, keep=False)) for s in move.remove]
    parts = [*added, *removed]
    return pa.concat_tables(parts) if parts else empty_rows(relation.stored)


def _negated(rows: pa.Table) -> pa.Table:
    last = rows.num_columns - 1
    return by_position(rows.set_column(last, "w", pc.negate(rows.column(last))))
