"""What a transaction does to a base table: its net change, strictly judged.

The rows that the changes can meet (those with their keys; without a key, those they delete) are looked up and put into an
embedded table of that moment, which then takes the changes: the same rules, in the same words, as on the embedded backend.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.tables.stored_table import StoredTable
from everview.backends.embedded.tables.transaction_rows import WeightedRows, consolidated
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.restrict import Restriction
from everview.backends.spark.segments import by_position, empty_rows, repeat_by_weight
from everview.backends.spark.stages import WEIGHT
from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema
from everview.relational.nodes import Schema
from everview.relational.types import Array, Struct


def table_change(
    table: TableDefinition, relation: StoredRelation | None, changes: Sequence[Change], restriction: Restriction
) -> pa.Table:
    """The weighted rows that the changes of one transaction, none of them empty, add up to.

    Raises:
        InvalidChange: the table cannot be in the state that they lead to.
    """
    met = StoredTable(table, Dictionary())
    if table.retain and relation is not None:
        there = _rows_met(table, relation, changes, restriction)
        if there.num_rows:
            met.prepare([Change(table.name, ChangeKind.WEIGHTED, there)])
            met.commit()
            # What was loaded here is not what the transaction brings.
            met.has_received_rows = False
    delta = met.prepare(changes)
    weights = pa.array(delta.weights, pa.int64())
    whole = by_position(delta.rows).append_column(WEIGHT.name, weights)
    return by_position(whole.filter(pc.not_equal(weights, 0)))


def _rows_met(
    table: TableDefinition, relation: StoredRelation, changes: Sequence[Change], restriction: Restriction
) -> pa.Table:
    if table.primary_key:
        by = table.key_positions
        keys = pa.concat_tables([_keys_of(c, by) for c in changes])
    else:
        by = tuple(i for i, f in enumerate(table.fields) if not isinstance(f.type, Array | Struct))
        deleted = [d for c in changes if (d := _deleted(c)).num_rows]
        if not deleted:
            return arrow_schema(table.fields).empty_table()
        if not by:
            by = (0,)
        keys = by_position(pa.concat_tables(deleted).select(list(by)))
    found = restriction.stored_rows(relation, by, keys)
    return content_rows(found, table.fields)


def _keys_of(change: Change, by: tuple[int, ...]) -> pa.Table:
    rows = change.rows
    return by_position(rows if change.kind is ChangeKind.DELETE_KEYS else rows.select(list(by)))


def _deleted(change: Change) -> pa.Table:
    rows = by_position(change.rows)
    if change.weights is None:
        return rows.slice(0, 0)
    return rows.filter(pc.less(change.weights, 0))


def content_rows(stored: pa.Table, fields: Schema) -> pa.Table:
    """The bag of a Z-set: weights summed up, each row as often as it is there."""
    rows, weights = net_rows(stored, fields)
    return repeat_by_weight(rows, pa.chunked_array([weights]))


def net_rows(stored: pa.Table, fields: Schema) -> tuple[pa.Table, pa.Array]:
    """The rows of a Z-set, each once, with its sum of weights, where that is not 0."""
    schema = arrow_schema(fields)
    rows = pa.Table.from_arrays(
        [c if c.type == f.type else c.cast(f.type) for c, f in zip(stored.columns[:-1], schema, strict=True)],
        schema=schema,
    )
    weights = np.array(stored.column(stored.num_columns - 1).to_numpy(), dtype=np.int64)
    if not fields or not len(weights):
        return rows, pa.array(weights)
    net = consolidated(WeightedRows(rows, weights), fields)
    return net.rows, pa.array(net.each_weight())


def no_rows(fields: Schema) -> pa.Table:
    """The empty Z-set."""
    return empty_rows((*fields, WEIGHT))
