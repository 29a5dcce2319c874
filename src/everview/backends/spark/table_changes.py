"""What a transaction does to a base table: its net change, strictly judged.

The rows that the changes can meet (those with their keys; without a key, those they delete) are looked up and put into an
embedded table of that moment, which then takes the changes: the same rules, in the same words, as on the embedded backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.state.keymap import KeyMap
from everview.backends.embedded.tables.stored_table import StoredTable
from everview.backends.embedded.tables.transaction_rows import WeightedRows, consolidated, row_words
from everview.backends.embedded.vectors import Ints
from everview.backends.spark.key_lookups import Lookups, most_distinct
from everview.backends.spark.relation_store import StoredRelation
from everview.backends.spark.restrict import Restriction
from everview.backends.spark.row_hashes import ROW_HASH, found_in, have_hashes, row_hashes
from everview.backends.spark.segments import by_position, empty_rows, encode, repeat_by_weight
from everview.backends.spark.stages import WEIGHT
from everview.catalog import TableDefinition
from everview.relational.arrow import arrow_schema
from everview.relational.column_names import WEIGHT as WEIGHT_NAME
from everview.relational.nodes import Schema
from everview.relational.types import Array, Struct

_SORTED = 10_000
"""Deltas of at most so many rows are given out in order, so that the same change looks the same."""


def table_change(
    table: TableDefinition, relation: StoredRelation | None, changes: Sequence[Change], restriction: Restriction
) -> Lookups[pa.Table]:
    """The weighted rows that the changes of one transaction, none of them empty, add up to; look-ups lead to them.

    Raises:
        InvalidChange: the table cannot be in the state that they lead to.
    """
    met = StoredTable(table, Dictionary())
    if table.retain and relation is not None:
        there = yield from _rows_met(table, relation, changes, restriction)
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
) -> Lookups[pa.Table]:
    if table.primary_key:
        by = table.key_positions
        keys = pa.concat_tables([_keys_of(c, by) for c in changes])
        if all(_only_inserts(c) for c in changes):
            # Such keys are new, or the transaction is rejected: only then, to say so, are whole rows needed.
            keys = yield from _keys_there(table, relation, keys, restriction)
            if not keys.num_rows:
                return arrow_schema(table.fields).empty_table()
        elif _is_judged_by_hash(table, relation, changes, keys, restriction):
            return (yield from _rows_by_hash(table, relation, changes, keys, restriction))
    else:
        by = tuple(i for i, f in enumerate(table.fields) if not isinstance(f.type, Array | Struct))
        deleted = [d for c in changes if (d := _deleted(c)).num_rows]
        if not deleted:
            return arrow_schema(table.fields).empty_table()
        if not by:
            by = (0,)
        keys = by_position(pa.concat_tables(deleted).select(list(by)))
        if _is_judged_by_hash(table, relation, changes, keys, restriction):
            return (yield from _rows_by_hash(table, relation, changes, keys, restriction))
    return rows_with_keys((yield from restriction.ask_rows(relation, by, keys)), table.fields, by, keys)


def _is_judged_by_hash(
    table: TableDefinition,
    relation: StoredRelation,
    changes: Sequence[Change],
    keys: pa.Table,
    restriction: Restriction,
) -> bool:
    """Whether old rows have to be known only as far as the changes name them, and reading them whole takes long."""
    is_named = all(c.kind is ChangeKind.WEIGHTED for c in changes) and most_distinct(keys) is not None
    return is_named and restriction.judges_by_hash(relation) and have_hashes(table.fields)


def _rows_by_hash(
    table: TableDefinition,
    relation: StoredRelation,
    changes: Sequence[Change],
    keys: pa.Table,
    restriction: Restriction,
) -> Lookups[pa.Table]:
    """The rows met: a stored row whose hash is that of a deleted one is taken to be that row, and not read.

    Of a key whose row is another than the one deleted, or that is inserted and there, the row is read. Without a key, rows are
    found by the column of the deleted ones that tells most of them apart.
    """
    deleted = by_position(pa.concat_tables([by_position(_deleted(c)) for c in changes]))
    searched = most_distinct(deleted)
    assert searched is not None, "such rows are not judged by hash"
    by = table.key_positions if table.primary_key else (searched,)
    wanted = keys if table.primary_key else deleted.select(list(by))
    found = yield from restriction.ask_hashes(relation, by, wanted)
    fields = (*(table.fields[b] for b in by), ROW_HASH)
    hashes = row_hashes(encode(deleted, table.fields))
    if not table.primary_key:
        known = pc.is_in(found.column(len(by)), value_set=hashes)
        there = content_rows(found.filter(known), fields)
    else:
        there = rows_with_keys(found, fields, tuple(range(len(by))), wanted)
    places = found_in(there.column(len(by)), hashes)
    same = _typed_rows(deleted.take(places.drop_null()), table.fields)
    others = by_position(there.filter(places.is_null()).select(list(range(len(by)))))
    if not others.num_rows:
        return same
    exact = rows_with_keys((yield from restriction.ask_rows(relation, by, others)), table.fields, by, others)
    return pa.concat_tables([same, exact])


def _only_inserts(change: Change) -> bool:
    is_weighted = change.kind is ChangeKind.WEIGHTED
    return is_weighted and (change.weights is None or not pc.any(pc.less(change.weights, 0)).as_py())


def _keys_there(
    table: TableDefinition, relation: StoredRelation, keys: pa.Table, restriction: Restriction
) -> Lookups[pa.Table]:
    """Those of the keys that the table has, from its key columns alone."""
    by = table.key_positions
    found = yield from restriction.ask_rows(relation, by, keys, by)
    return by_position(rows_with_keys(found, table.key_fields, tuple(range(len(by))), keys))


def rows_with_keys(stored: pa.Table, fields: Schema, by: tuple[int, ...], keys: pa.Table) -> pa.Table:
    """The bag of a table's rows whose columns ``by`` are together one of the keys.

    Args:
        stored: The weighted rows that have a key, all of them, and perhaps others.
        fields: Their columns, without the weight.
        by: The columns that the keys are values of.
        keys: As they may repeat.
    """
    slots = _key_slots(stored, fields, by, keys)
    weights = np.array(stored.column(len(fields)).to_numpy(), dtype=np.int64)
    is_met = slots >= 0
    met = slots[is_met]
    # No row is there less than 0 times: where the weights of a key cancel out, there is none, and where it has one, that is it.
    counts, sums = (np.bincount(met, w) for w in (None, weights[is_met]))
    is_there = is_met.copy()
    is_there[is_met] = sums[met] != 0
    is_alone = is_there.copy()
    is_alone[is_there] = counts[slots[is_there]] == 1
    alone = _typed(stored.filter(pa.array(is_alone)), fields)
    others = stored.filter(pa.array(is_there & ~is_alone))
    found = repeat_by_weight(alone, pa.chunked_array([pa.array(weights[is_alone])]))
    return pa.concat_tables([found, content_rows(others, fields)]) if others.num_rows else found


def _key_slots(stored: pa.Table, fields: Schema, by: tuple[int, ...], keys: pa.Table) -> Ints:
    """Numbers for the rows: equal ones for those with the same key, -1 for those with none."""
    own = tuple(replace(fields[place], nullable=True) for place in by)
    types = arrow_schema(own).types
    both = [
        pa.chunked_array([*stored.column(place).cast(t).chunks, *keys.column(i).cast(t).chunks], t)
        for i, (place, t) in enumerate(zip(by, types, strict=True))
    ]
    words = row_words(pa.table(both, names=[f"c{i}" for i in range(len(by))]), own)
    known = KeyMap(words.shape[1])
    known.upsert(words[stored.num_rows :])
    return known.find(words[: stored.num_rows])


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
    there = pc.greater(weights, 0)
    return repeat_by_weight(rows.filter(there), pa.chunked_array([weights.filter(there)]))


def net_rows(stored: pa.Table, fields: Schema) -> tuple[pa.Table, pa.Array]:
    """The rows of a Z-set, each once, with its sum of weights, where that is not 0."""
    rows = _typed(stored, fields)
    weights = np.array(stored.column(stored.num_columns - 1).to_numpy(), dtype=np.int64)
    if not fields or not len(weights):
        return rows, pa.array(weights)
    net = consolidated(WeightedRows(rows, weights), fields)
    return net.rows, pa.array(net.each_weight())


def _typed(stored: pa.Table, fields: Schema) -> pa.Table:
    """The columns of weighted rows, under their names and in their types."""
    return _typed_rows(stored.select(range(stored.num_columns - 1)), fields)


def _typed_rows(rows: pa.Table, fields: Schema) -> pa.Table:
    schema = arrow_schema(fields)
    columns = zip(rows.columns, schema, strict=True)
    return pa.Table.from_arrays([c if c.type == f.type else c.cast(f.type) for c, f in columns], schema=schema)


def no_rows(fields: Schema) -> pa.Table:
    """The empty Z-set."""
    return empty_rows((*fields, WEIGHT))


def delta_table(rows: pa.Table, fields: Schema) -> pa.Table:
    """The strongly minimal delta as users see it."""
    net, weights = net_rows(rows, fields)
    whole = net.append_column(pa.field(WEIGHT_NAME, pa.int64(), nullable=False), weights)
    if whole.num_rows > _SORTED or not all(_is_sortable(t) for t in whole.schema.types):
        return whole
    names = [f"c{i}" for i in range(whole.num_columns)]
    order = pc.sort_indices(pa.Table.from_arrays(whole.columns, names=names), [(n, "ascending") for n in names])
    return whole.take(order)


def _is_sortable(arrow: pa.DataType) -> bool:
    return not (pa.types.is_nested(arrow) or pa.types.is_interval(arrow) or pa.types.is_null(arrow))
