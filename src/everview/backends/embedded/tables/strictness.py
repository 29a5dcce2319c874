"""Why a transaction is rejected, told in plain Python.

Kernels notice *that* something is wrong; this finds out what, on the rows concerned only, and says it in the words that all
backends share. It judges as the reference backend does: first deletes of what is not there, then keys. Rows are named in
the order in which the table has them, rows new to it last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from everview.backends.embedded.tables.transaction_rows import WeightedRows
from everview.backends.rejections import absent_rows, duplicate_keys, repeated_keys
from everview.catalog import TableDefinition
from everview.errors import InvalidChange
from everview.relational.arrow import rows_from_arrow
from everview.relational.types import Row


def keyed_violation(table: TableDefinition, stored: pa.Table, delta: WeightedRows) -> InvalidChange | None:
    """What is wrong with a change of a keyed table, if anything.

    Args:
        table: The table.
        stored: Its rows that have a key in common with the change, in their order.
        delta: The change, consolidated or not.
    """
    weights: Counter[Row] = Counter(rows_from_arrow(stored, table.fields))
    for row, weight in zip(rows_from_arrow(delta.rows, table.fields), delta.each_weight().tolist(), strict=True):
        weights[row] += weight
    missing = {row: -weight for row, weight in weights.items() if weight < 0}
    if missing:
        return absent_rows(table, missing)
    key = table.key_positions
    by_key: dict[Row, list[Row]] = {}
    for row, weight in weights.items():
        by_key.setdefault(tuple(row[i] for i in key), []).extend([row] * min(weight, 2))
    several = [row for same in by_key.values() if len(same) > 1 for row in same]
    return duplicate_keys(table, several) if several else None


def missing_rows(table: TableDefinition, rows: pa.Table, too_often: Sequence[int]) -> InvalidChange:
    """Distinct rows that are deleted more often than the table has them, and by how much."""
    return absent_rows(table, dict(zip(rows_from_arrow(rows, table.fields), too_often, strict=True)))


def repetition(table: TableDefinition, kind: str, given: pa.Table | pa.RecordBatch) -> InvalidChange:
    """The rows of an upsert, or the keys of a delete by key, that share a key."""
    by_key = kind == "delete_keys"
    fields = table.key_fields if by_key else table.fields
    rows = rows_from_arrow(given, fields)
    keys = rows if by_key else [tuple(row[i] for i in table.key_positions) for row in rows]
    counts = Counter(keys)
    return repeated_keys(table, kind, [row for row, key in zip(rows, keys, strict=True) if counts[key] > 1], fields)
