"""What a transaction does to a base table where executors have its rows: the same rules as ``table_changes``, judged by Spark.

The change of a table is the sum of its parts: staged rows as they are, and for an upsert or a delete by key also the rows that
are taken out, which one more job writes. Whether the table can be in the state that this leads to is one query, for a row or
key for which it cannot:

    Σ weight of a row  <  0          it is deleted where it is not
    Σ weight of a key  >  1          two rows would have it

Only what one such answer names is brought to the driver, where ``table_changes`` says in its own words what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from everview.backends.base import Change, ChangeKind
from everview.backends.spark.far_rows import Rows
from everview.backends.spark.relation_store import Layout, StoredRelation
from everview.backends.spark.restrict import Restriction
from everview.backends.spark.segments import Segment
from everview.backends.spark.spark_engine import SparkEngine
from everview.backends.spark.staged_frames import StagedChange
from everview.backends.spark.stages import WEIGHT
from everview.backends.spark.table_changes import table_change
from everview.catalog import TableDefinition
from everview.errors import InternalError
from everview.relational.arrow import arrow_schema
from everview.relational.nodes import Schema


@dataclass
class FarTableChange:
    """One table's change under way.

    Args:
        table: The table.
        relation: Its rows; nothing is known of them where it does not retain any.
        engine: Spark.
        written: Gets the far rows that are written on the way.
    """

    table: TableDefinition
    relation: StoredRelation
    engine: SparkEngine
    written: list[StoredRelation]
    _parts: list[Segment] = field(default_factory=list)
    _has_deletes: bool = False

    def net(self, changes: Sequence[Change], restriction: Restriction) -> Rows:
        """The weighted rows that the changes add up to, far.

        Raises:
            InvalidChange: the table cannot be in the state that they lead to.
        """
        for change in changes:
            given = self._far(change)
            if change.kind is not ChangeKind.WEIGHTED:
                self._take_out(change, given, changes, restriction)
            if change.kind is not ChangeKind.DELETE_KEYS:
                self._parts += given.segments
        if self.table.retain:
            self._check(changes, restriction)
        return self.relation.over(self._parts, is_far=True)

    def _far(self, change: Change) -> StoredRelation:
        if isinstance(change, StagedChange):
            self._has_deletes |= change.has_deletes
            return change.staged
        weights = (
            change.weights if change.weights is not None else pa.repeat(pa.scalar(1, pa.int64()), change.row_count)
        )
        rows = change.rows.append_column(WEIGHT.name, weights)
        self._has_deletes |= change.weights is not None
        place = self.relation
        if change.kind is ChangeKind.DELETE_KEYS:
            place = place.with_layout(Layout(self.table.key_fields))
        far = place.over([place.write(rows)], is_far=True)
        self.written.append(far)
        return far

    def _take_out(
        self, change: Change, given: StoredRelation, changes: Sequence[Change], restriction: Restriction
    ) -> None:
        """Adds the rows that an upsert, or a delete by key, takes out of the table as the changes so far have left it."""
        by = self.table.key_positions
        own = tuple(range(len(by))) if change.kind is ChangeKind.DELETE_KEYS else by
        keys = self.engine.view_of_segments(given, given.segments)
        listed = ", ".join(f"c{c} AS k{i}" for i, c in enumerate(own))
        self._reject(
            f"SELECT {listed} FROM {keys} GROUP BY {_names(own)} HAVING count(*) > 1", by, changes, restriction
        )
        there = self._now()
        every = _names(range(len(self.table.fields)))
        on = " AND ".join(f"t.c{b} = k.c{o}" for b, o in zip(by, own, strict=True))
        weight = f"c{len(self.table.fields)}"
        text = (
            f"SELECT {every}, -sum({weight}) AS {weight} FROM {there} t LEFT SEMI JOIN {keys} k ON {on} "
            f"GROUP BY {every} HAVING sum({weight}) <> 0"
        )
        out = self.relation.over(self.engine.write(self.engine.sql(text, "UTC"), self.relation), is_far=True)
        self.written.append(out)
        self._parts += out.segments
        self._has_deletes = True
        if change.kind is ChangeKind.DELETE_KEYS and out.row_count != given.row_count:
            gone = self.engine.view_of_segments(out, out.segments)
            on = " AND ".join(f"k.c{o} = t.c{b}" for b, o in zip(by, own, strict=True))
            text = ", ".join(f"k.c{c} AS k{i}" for i, c in enumerate(own))
            self._reject(f"SELECT {text} FROM {keys} k LEFT ANTI JOIN {gone} t ON {on}", by, changes, restriction)

    def _now(self) -> str:
        """A view of the table's weighted rows with the changes so far."""
        whole = [*self.relation.segments, *self._parts]
        return self.engine.view_of_segments(self.relation, whole)

    def _check(self, changes: Sequence[Change], restriction: Restriction) -> None:
        fields, by = self.table.fields, self.table.key_positions if self.table.primary_key else ()
        weight = f"c{len(fields)}"
        if self._has_deletes:
            every = tuple(range(len(fields)))
            added = self.engine.view_of_segments(self.relation, self._parts)
            touched = by or every
            on = " AND ".join(f"t.c{c} <=> d.c{c}" for c in touched)
            deleted = f"(SELECT DISTINCT {_names(touched)} FROM {added} WHERE {weight} < 0)"
            found = (
                f"SELECT {', '.join(f'c{c} AS k{i}' for i, c in enumerate(touched))} FROM {self._now()} t "
                f"LEFT SEMI JOIN {deleted} d ON {on} GROUP BY {_names(every)} HAVING sum({weight}) < 0"
            )
            self._reject(found, touched, changes, restriction)
        if by:
            listed = ", ".join(f"c{c} AS k{i}" for i, c in enumerate(by))
            found = f"SELECT {listed} FROM {self._now()} GROUP BY {_names(by)} HAVING sum({weight}) > 1"
            self._reject(found, by, changes, restriction)

    def _reject(self, found: str, by: tuple[int, ...], changes: Sequence[Change], restriction: Restriction) -> None:
        """Raises what is wrong if a query, of values k0, k1, … of some columns, has an answer."""
        fields = tuple(self.table.fields[c] for c in by)
        listed = ", ".join(f"k{i} AS c{i}" for i in range(len(by)))
        wrong = self.engine.collect(self.engine.sql(f"SELECT {listed} FROM ({found}) LIMIT 1", "UTC"), fields)
        if not wrong.num_rows:
            return
        view = self.engine.view_of_rows(wrong, fields)
        try:
            few = [self._with_values(c, by, view) for c in changes]
        finally:
            self.engine.drop([view])
        restriction.answer([table_change(self.table, self.relation, [c for c in few if c.row_count], restriction)])
        raise InternalError(
            f"a change of table '{self.table.name}' was found wrong by Spark and right by the driver", attach="the rows"
        )

    def _with_values(self, change: Change, by: tuple[int, ...], view: str) -> Change:
        """The rows of a change that have the values of a view in some columns; of its keys, those that have them."""
        by_key = change.kind is ChangeKind.DELETE_KEYS
        fields: Schema = self.table.key_fields if by_key else self.table.fields
        given = self._far(change)
        rows = self.engine.view_of_segments(given, given.segments)
        own = tuple(range(len(by))) if by_key else by
        on = " AND ".join(f"t.c{o} <=> w.c{i}" for i, o in enumerate(own))
        text = f"SELECT t.* FROM {rows} t LEFT SEMI JOIN {view} w ON {on}"
        found = self.engine.collect(self.engine.sql(text, "UTC"), (*fields, WEIGHT))
        *columns, weights = found.columns
        schema = arrow_schema(fields)
        typed = pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        is_weighted = change.kind is ChangeKind.WEIGHTED
        return Change(change.table, change.kind, typed, weights.combine_chunks() if is_weighted else None)


def _names(columns: Sequence[int] | range) -> str:
    return ", ".join(f"c{c}" for c in columns)
