"""The history of rows in a table, as slowly changing dimensions of type 2: a row for each version of a key, and its time.

    for each key k with the versions v1, v2, … in the order of a column c:   (vi, __START_AT = vi.c, __END_AT = vi+1.c)

__END_AT is NULL in the last one. A version that comes late is put between those that are there: the table is the same in
whatever order versions come, and however they are cut into batches. A second version of a key at the same c replaces the other.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.catalog import TableDefinition
from everview.errors import InvalidChange, UnsupportedOperation
from everview.relational.column_names import WEIGHT, find_column
from everview.session.changing.sequenced_rows import last_of_equals
from everview.session.sql.assignment import nullable

START: Final = "__START_AT"
END: Final = "__END_AT"


def given_columns(table: TableDefinition, sequence_by: str | None) -> TableDefinition:
    """The table as versions are given for it: without the columns that say when they held, keyed by the rest of the key.

    Raises:
        UnknownName: there is no column with the name.
        UnsupportedOperation: the table does not have what a history needs.
    """
    names = [f.name for f in table.fields]
    if sequence_by is None:
        raise UnsupportedOperation(
            f"the history of table '{table.name}' has no order.", hint="say sequence_by='column' for what comes later."
        )
    column = table.fields[find_column(f"table '{table.name}'", table.fields, sequence_by)]
    times = [f for f in table.fields if f.name in (START, END)]
    keys = tuple(k for k in table.primary_key if k != START)
    fits = len(times) == 2 and all(f.type == column.type for f in times) and table.fields[names.index(END)].nullable
    if not fits or not keys or START not in table.primary_key or END in table.primary_key:
        key = ", ".join((*keys, START) if keys else ("key", START))
        raise UnsupportedOperation(
            f"table '{table.name}' cannot hold a history in sequence by '{column.name}' of type {column.type}.",
            hint=f"it needs columns {START} and {END} of that type, {END} with NULLs, and PRIMARY KEY ({key}).",
        )
    return TableDefinition(table.name, tuple(f for f in table.fields if f not in times), keys)


def with_history(table: TableDefinition, rows: pa.Table, sequence_by: str, stored: pa.Table) -> pa.Table:
    """What the table loses and gets by versions, with weights.

    Args:
        table: The table.
        rows: The versions: its columns but those that say when they held.
        sequence_by: The column that says which is later.
        stored: The rows of the table.

    Raises:
        InvalidChange: it is NULL in a row.
    """
    when = rows.column(next(n for n in rows.column_names if n.lower() == sequence_by.lower()))
    if when.null_count:
        raise InvalidChange(f"column '{sequence_by}', which says what is later, is NULL in a row for '{table.name}'.")
    rows, stored = rows.cast(nullable(rows.schema)), stored.cast(nullable(stored.schema))
    keys = [k for k in table.primary_key if k != START]
    places = pa.array(np.arange(stored.num_rows))
    given = rows.select(keys).append_column("start", when).append_column("place", pa.array(np.arange(rows.num_rows)))
    held = stored.select(keys).append_column("start", stored.column(START)).append_column("place", places)
    touched = given.select(keys).group_by(keys, use_threads=False).aggregate([])
    held = held.cast(given.schema).join(touched, keys, join_type="left semi", use_threads=False)
    before = stored.take(held.column("place"))
    given = given.set_column(len(keys) + 1, "place", pc.add(given.column("place"), before.num_rows))
    held = held.set_column(len(keys) + 1, "place", pa.array(np.arange(before.num_rows)))
    names = [*keys, "start", "place"]
    both = pa.concat_tables([held.select(names), given.select(names)])
    order = both.sort_by([(n, "ascending") for n in names])
    order = order.filter(last_of_equals(order, [*keys, "start"]))
    is_last = last_of_equals(order, keys)
    following = order.column("start").take(
        pa.array(np.minimum(np.arange(1, len(is_last) + 1), max(len(is_last) - 1, 0)))
    )
    ends = pc.if_else(is_last, pa.scalar(None, when.type), following)
    plain = pa.concat_tables([before.select(rows.column_names).cast(rows.schema), rows])
    made = plain.take(order.column("place")).append_column(START, order.column("start")).append_column(END, ends)
    made = made.select(stored.column_names).cast(stored.schema)
    weights = pa.array(np.repeat([-1, 1], [before.num_rows, made.num_rows]))
    return pa.concat_tables([before, made]).append_column(WEIGHT, weights)
