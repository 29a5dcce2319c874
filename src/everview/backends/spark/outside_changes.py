"""External tables: a version of a user's Delta table becomes a transaction, and its rows stay where they are.

The change of a version is read from the change data feed, if there is one and the change is small; else it is the difference of
the files (``outside_files``), computed at the driver or, if they are large, by executors. A version that only rewrites files
says so itself (``dataChange``), by the number of rows too, and is not read at all. The transaction swaps the relation's files
for those of the version, with no row of the table written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from everview.backends import rejections
from everview.backends.base import Change, ChangeKind, source_of_table
from everview.backends.spark.commit_log import Move
from everview.backends.spark.far_rows import Rows, brought_near
from everview.backends.spark.outside_files import check_columns, outside_segments
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.segments import Segment, by_position
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.stages import WEIGHT
from everview.backends.spark.table_changes import net_rows
from everview.backends.spark.term_plans import consolidated, weighted
from everview.catalog import TableDefinition
from everview.errors import InvalidChange
from everview.lake_source import check_read_in_place, check_same_columns, has_change_feed, open_lake_table, unreadable
from everview.relational.arrow import arrow_schema, rows_from_arrow
from everview.relational.column_names import WEIGHT as WEIGHT_NAME
from everview.relational.nodes import Scan

Read = Callable[[pa.Table], Change]
"""Checks rows against their table, as the session does with all changes."""


class OutsideChange(Change):
    """What a version does to an external table: how its files move, and the rows, at the driver or in the files.

    Args:
        table: The table.
        move: The files that come and go.
        near: The rows, if they are at the driver.
        far: The files that have them otherwise, those that go with a negative weight.
    """

    __slots__ = ("far", "move")

    def __init__(
        self, table: TableDefinition, move: Move, near: Change | None = None, far: StoredRelation | None = None
    ) -> None:
        self.table = table.name
        self.kind = ChangeKind.WEIGHTED
        self.decomposed = None
        self.given = arrow_schema(table.fields).empty_table() if near is None else near.given
        self.weights = None if near is None else near.weights
        self.move = move
        self.far = far

    @property
    def row_count(self) -> int:
        """The number of rows, before they are summed up."""
        return int(self.given.num_rows) if self.far is None else self.far.row_count

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def stand_at_newest(table: TableDefinition, relation: StoredRelation, engine: SparkEngine) -> dict[str, int]:
    """Lets a new table, if it is external, have the rows that its Delta table has now; returns the version, by source.

    Raises:
        UnsupportedOperation: they cannot be read in place.
        InvalidChange: the primary key is NULL somewhere, or not unique.
    """
    if table.follows is None:
        return {}
    uri = table.follows.uri
    lake = open_lake_table(uri)
    check_read_in_place(uri, lake)
    check_columns(uri, lake, table.fields)
    relation.held, relation.version = outside_segments(uri, lake, table.fields), lake.version()
    check_keys(table, relation, engine, relation.segments)
    return {source_of_table(f"delta:{table.follows.id}", table.name): relation.version}


def outside_change(
    table: TableDefinition, relation: StoredRelation, version: int, read: Read, limit: int
) -> OutsideChange:
    """The change that a version brings, which is the one after that at which the table stands.

    Args:
        table: The table.
        relation: Its rows.
        version: Which version of the Delta table.
        read: Checks the rows.
        limit: Up to so many rows are brought to the driver.

    Raises:
        UnsupportedOperation: it cannot be read (any more), or has other columns.
        InvalidChange: rows do not fit.
    """
    uri = relation.layout.follows
    assert uri is not None
    assert version == relation.version + 1, "versions are taken one by one"
    lake = open_lake_table(uri, version)
    check_read_in_place(uri, lake)
    check_same_columns(uri, open_lake_table(uri, relation.version), lake, table.name)
    now = outside_segments(uri, lake, table.fields)
    before, after = {s.path for s in relation.segments}, {s.path for s in now}
    move = Move(
        tuple(s for s in now if s.path not in before), tuple(s for s in relation.segments if s.path not in after)
    )
    if not (move.add or move.remove) or _is_rewritten(uri, version, move):
        return OutsideChange(table, move)
    rows = _from_feed(uri, lake, limit) if has_change_feed(lake) else None
    signed = [*move.add, *(s.weighing(-1) for s in move.remove)]
    if rows is None:
        if sum(s.rows for s in signed) > limit:
            return OutsideChange(table, move, far=relation.over(signed, is_far=True))
        rows = _from_files(table, relation, signed)
    return OutsideChange(table, move, read(rows))


def net_change(
    change: OutsideChange,
    table: TableDefinition,
    relation: StoredRelation,
    engine: SparkEngine,
    limit: int,
    written: list[StoredRelation],
) -> Rows:
    """The weighted rows of a version without those that cancel out; ``written`` gets what executors write.

    Deletes are as true as the Delta table is. Only its keys are checked, which it does not have.

    Raises:
        InvalidChange: a primary key would be NULL or not unique.
    """
    if change.far is None:
        weights = (
            change.weights if change.weights is not None else pa.repeat(pa.scalar(1, pa.int64()), change.row_count)
        )
        rows, sums = net_rows(change.rows.append_column(WEIGHT.name, weights), table.fields)
        return by_position(by_position(rows).append_column(WEIGHT.name, sums))
    check_keys(table, relation, engine, [*relation.segments, *change.far.segments])
    if not change.move.remove:
        return change.far
    view = engine.view_of_segments(change.far, change.far.segments)
    plan = consolidated(Scan("t", weighted(table.fields)))
    far = relation.over(engine.write(engine.run(plan, {"t": view}, "UTC"), relation), is_far=True)
    written.append(far)
    return brought_near(far, limit)


def check_keys(
    table: TableDefinition, relation: StoredRelation, engine: SparkEngine, segments: Sequence[Segment]
) -> None:
    """Raises unless the primary key of a table tells the rows of some segments apart, added up.

    Raises:
        InvalidChange: with rows that have the same key, or one with a NULL in it.
    """
    if not table.primary_key or not segments:
        return
    keys, weight = [f"c{i}" for i in table.key_positions], f"c{len(table.fields)}"
    view = engine.view_of_segments(relation, segments)
    has_null = " OR ".join(f"{k} IS NULL" for k in keys)
    wrong = (
        f"SELECT {', '.join(keys)} FROM {view} GROUP BY {', '.join(keys)} "
        f"HAVING sum({weight}) > 1 OR (({has_null}) AND sum({weight}) > 0) LIMIT 1"
    )
    on = " AND ".join(f"t.{k} <=> w.{k}" for k in keys)
    text = f"SELECT t.* FROM {view} t LEFT SEMI JOIN ({wrong}) w ON {on}"
    found, weights = net_rows(engine.collect(engine.sql(text, "UTC"), relation.stored), _nullable(table))
    rows = rows_from_arrow(found.filter(pc.greater(weights, 0)), _nullable(table))
    if not rows:
        return
    if any(None in (row[i] for i in table.key_positions) for row in rows):
        raise InvalidChange(
            f"the primary key ({', '.join(table.primary_key)}) of table '{table.name}' is NULL in a row of the Delta table "
            f"{relation.layout.follows}."
        )
    raise rejections.duplicate_keys(table, rows)


def _nullable(table: TableDefinition) -> Any:
    return tuple(type(f)(f.name, f.type, True) for f in table.fields)


def _is_rewritten(uri: str, version: int, move: Move) -> bool:
    """Whether a version only lays the same rows out anew, as OPTIMIZE does: it says so of every file, and the numbers agree."""
    if sum(s.rows for s in move.add) != sum(s.rows for s in move.remove):
        return False
    log = Path(uri) / "_delta_log" / f"{version:020d}.json"
    try:
        actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    except FileNotFoundError:  # cleaned up since: the difference of the files tells as well
        return False
    files = [a[kind] for a in actions for kind in ("add", "remove") if kind in a]
    return not any(file.get("dataChange", True) for file in files)


def _from_feed(uri: str, lake: DeltaTable, limit: int) -> pa.Table | None:
    """The rows of a version's change feed; None if they are more than ``limit``."""
    version = lake.version()
    parts: list[pa.RecordBatch] = []
    try:
        reader = pa.RecordBatchReader.from_stream(lake.load_cdf(version, version))
        for batch in reader:
            parts.append(batch)
            if sum(p.num_rows for p in parts) > limit:
                return None
        return pa.Table.from_batches(parts, reader.schema)
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise unreadable(uri, version, error) from error


def _from_files(table: TableDefinition, relation: StoredRelation, signed: Sequence[Segment]) -> pa.Table:
    """The rows of files with their weights."""
    whole = pa.concat_tables([relation.rows_of(s, keep=False) for s in signed])
    names = [*(f.name for f in table.fields), WEIGHT_NAME]
    return pa.Table.from_arrays(whole.columns, names=names)
