"""Changes for the tests of stored tables, made from internal rows; what tables hold, as bags of such rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from everview.algebra.zset import ZSet
from everview.backends.base import Change, ChangeKind
from everview.backends.embedded.tables import StoredTable, TableDelta
from everview.catalog import TableDefinition
from everview.relational.arrow import rows_from_arrow, rows_to_arrow
from everview.relational.types import Row


def weighted(table: TableDefinition, rows: Sequence[Row], weights: Sequence[int] | None = None) -> Change:
    """Rows with weights."""
    given = None if weights is None else pa.array(weights, pa.int64())
    return Change(table.name, ChangeKind.WEIGHTED, rows_to_arrow(rows, table.fields), given)


def insert(table: TableDefinition, *rows: Row) -> Change:
    """Each row once more."""
    return weighted(table, rows)


def delete(table: TableDefinition, *rows: Row) -> Change:
    """Each row once less."""
    return weighted(table, rows, [-1] * len(rows))


def upsert(table: TableDefinition, *rows: Row) -> Change:
    """Each row instead of the one with its key."""
    return Change(table.name, ChangeKind.UPSERT, rows_to_arrow(rows, table.fields))


def delete_keys(table: TableDefinition, *keys: Row) -> Change:
    """No row with these keys."""
    return Change(table.name, ChangeKind.DELETE_KEYS, rows_to_arrow(keys, table.key_fields))


def apply(stored: StoredTable, *changes: Change) -> TableDelta:
    """One transaction."""
    delta = stored.prepare(changes)
    stored.commit()
    return delta


def content(stored: StoredTable) -> ZSet[Row]:
    """The rows of a table with their weights."""
    fields = stored.definition.fields
    rows, weights = stored.content(range(len(fields)))
    total: Counter[Row] = Counter()
    for row, weight in zip(rows_from_arrow(rows, fields), weights.tolist(), strict=True):
        assert weight > 0
        total[row] += weight
    return dict(total)


def effect(delta: TableDelta, table: TableDefinition) -> ZSet[Row]:
    """The delta as a Z-set; checks that it is consolidated where it says so."""
    rows = rows_from_arrow(delta.rows, table.fields)
    assert len(delta.weights) == len(rows)
    assert delta.has_deletes == any(delta.weights < 0)
    total: Counter[Row] = Counter()
    for row, weight in zip(rows, delta.weights.tolist(), strict=True):
        assert not (delta.has_deletes and row in total)
        assert weight != 0
        total[row] += weight
    return dict(total)
