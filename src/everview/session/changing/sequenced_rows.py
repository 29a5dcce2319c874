"""Rows that come out of order: of those with one primary key, the one with the greatest value of a column counts.

    upsert(rows, sequence_by=c):  for each key k,  r(k) := the row with key k and the greatest c, the last of equals;
                                  it replaces the stored row s(k) unless s(k).c > r(k).c

So the table is the same in whatever order the rows come, and however they are cut into batches, as long as no two rows of a key
have the same c. A deleted key leaves nothing behind: an older row that comes after the delete is inserted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.backends.base import Change, ChangeKind
from everview.catalog import TableDefinition
from everview.errors import InvalidChange, UnsupportedOperation
from everview.relational.column_names import find_column

_PLACE, _HELD = "place", "held"


def latest_rows(table: TableDefinition, change: Change, sequence_by: str, stored: pa.Table) -> Change:
    """The upsert with each key once, and without the rows that are older than what is stored.

    Args:
        table: The table.
        change: An upsert, in which keys may repeat.
        sequence_by: The column that says which is later.
        stored: The rows of the table.

    Raises:
        UnknownName: there is no such column.
        UnsupportedOperation: it cannot be ordered, or belongs to the key.
        InvalidChange: it is NULL in a row.
    """
    assert change.kind is ChangeKind.UPSERT, change.kind
    at = find_column(f"table '{table.name}'", table.fields, sequence_by)
    column = table.fields[at]
    if at in table.key_positions or pa.types.is_nested(change.schema.field(at).type):
        raise UnsupportedOperation(
            f"rows for table '{table.name}' cannot be put in sequence by '{column.name}' of type {column.type}.",
            hint="name a column beside the primary key that grows with time: a version, or a timestamp.",
        )
    rows = change.rows
    if rows.column(at).null_count:
        raise InvalidChange(
            f"column '{column.name}' of table '{table.name}', which says what is latest, is NULL in a row."
        )
    keys = [f"k{i}" for i in range(len(table.key_positions))]
    given = pa.table([*(rows.column(i) for i in table.key_positions), rows.column(at)], names=[*keys, "sequence"])
    given = given.append_column(_PLACE, pa.array(np.arange(rows.num_rows)))
    order = given.sort_by([*((k, "ascending") for k in keys), ("sequence", "ascending"), (_PLACE, "ascending")])
    latest = order.filter(last_of_equals(order, keys))
    held = pa.table([*(stored.column(i) for i in table.key_positions), stored.column(at)], names=[*keys, _HELD])
    both = latest.join(
        held.cast(pa.schema([*(latest.schema.field(k) for k in keys), held.schema.field(_HELD)])),
        keys,
        use_threads=False,
    )
    is_newer = pc.fill_null(pc.less_equal(both.column(_HELD), both.column("sequence")), True)
    kept = both.filter(is_newer).column(_PLACE).to_numpy()
    return Change(change.table, ChangeKind.UPSERT, rows.take(pa.array(np.sort(kept))))


def last_of_equals(order: pa.Table, keys: list[str]) -> pa.Array:
    """Whether a row is the last with its keys, of rows in the order of these."""
    count = order.num_rows
    last = np.ones(count, dtype=np.bool_)
    if count > 1:
        differs = np.zeros(count - 1, dtype=np.bool_)
        for key in keys:
            column = order.column(key)
            differs |= pc.not_equal(column.slice(0, count - 1), column.slice(1)).to_numpy(zero_copy_only=False)
        last[:-1] = differs
    return pa.array(last)
