"""The TPC-H change streams: which batches arrive in which order, prepared in memory before anything is timed.

Inserts go round robin over the tables a query reads, in one of two settings. ``mixed``, as DBToaster was measured: row by row,
a transaction being the next B rows, so that it changes several tables. ``one_table``, as F-IVM was: a batch of B rows of one
table, then one of the next, until all are exhausted. Nation and region are static and loaded first. The second phase changes a
fifth of all rows at random: half of them are deleted, half updated, that is the old row deleted and one with the same key
inserted, its other values permuted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.steps import AnyStep, Step, batches_of, in_turn, mixed, round_robin
from tests.corpus.data import TPCH_KEYS

STATIC = ("region", "nation")
CHANGED_SHARE = 0.2
SEED = 7
MIXED, ONE_TABLE = "mixed", "one_table"
SETTINGS = (MIXED, ONE_TABLE)
"""What a transaction holds: rows of all tables, or of one."""

UPDATED_COLUMNS: dict[str, tuple[str, ...]] = {
    "supplier": ("s_nationkey", "s_acctbal"),
    "customer": ("c_mktsegment", "c_acctbal", "c_phone"),
    "part": ("p_brand", "p_size", "p_container"),
    "partsupp": ("ps_availqty", "ps_supplycost"),
    "orders": ("o_orderdate", "o_totalprice", "o_orderpriority"),
    "lineitem": ("l_quantity", "l_extendedprice", "l_discount", "l_shipdate"),
}
"""The columns an update changes: those that queries filter, group or sum by."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The second phase: its transactions, and the tables after them."""

    steps: list[Step]
    tables: dict[str, pa.Table]


def tables_read(sql: str) -> tuple[str, ...]:
    """The TPC-H tables that a query names outside of strings.

    >>> tables_read("select 1 from orders, lineitem l where exists (select * from Nation where n_name <> 'part')")
    ('nation', 'orders', 'lineitem')
    """
    words = set(re.findall(r"\w+", re.sub(r"'[^']*'", "", sql.lower())))
    return tuple(name for name in TPCH_KEYS if name in words)


def is_static(table: str) -> bool:
    """Whether a table is loaded first and never changes."""
    return table in STATIC


def insert_steps(tables: Mapping[str, pa.Table], size: int) -> list[Step]:
    """All rows of the tables that are not static, as inserts in batches of ``size`` rows of one table, round robin."""
    return round_robin({name: table for name, table in tables.items() if not is_static(name)}, size)


def insert_stream(tables: Mapping[str, pa.Table], size: int, setting: str) -> Sequence[AnyStep]:
    """The inserts in one of the ``SETTINGS``, in transactions of ``size`` rows."""
    if setting == ONE_TABLE:
        return insert_steps(tables, size)
    return mixed({name: table for name, table in tables.items() if not is_static(name)}, size)


def split_tail(tables: Mapping[str, pa.Table], rows: int) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """The tables without their last rows, and those last rows: about ``rows`` in all, from each table in proportion."""
    total = sum(len(t) for name, t in tables.items() if not is_static(name))
    head: dict[str, pa.Table] = {}
    tail: dict[str, pa.Table] = {}
    for name, table in tables.items():
        count = 0 if is_static(name) else min(len(table), max(1, round(rows * len(table) / total)))
        head[name] = table.slice(0, len(table) - count)
        if count:
            tail[name] = table.slice(len(table) - count)
    return head, tail


def mixed_steps(tables: Mapping[str, pa.Table]) -> list[Step]:
    """Single-row inserts of all rows of the tables, in random order over the tables."""
    rows = [list(batches_of(name, table, 1)) for name, table in tables.items()]
    owners = np.repeat(np.arange(len(rows)), [len(steps) for steps in rows])
    np.random.default_rng(SEED).shuffle(owners)
    queues = [iter(steps) for steps in rows]
    return [next(queues[owner]) for owner in owners]


def change_steps(tables: Mapping[str, pa.Table], size: int) -> Changed:
    """Deletes and updates of a fifth of the rows, in batches of about ``size`` weighted rows of one table, round robin."""
    rng = np.random.default_rng(SEED)
    queues: list[list[Step]] = []
    after = dict(tables)
    for name, table in tables.items():
        if is_static(name):
            continue
        chosen = rng.permutation(len(table))[: round(len(table) * CHANGED_SHARE)]
        deleted, updated = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
        gone, old = table.take(pa.array(deleted)), table.take(pa.array(updated))
        new = _permuted(old, UPDATED_COLUMNS[name], rng)
        each = max(1, size // 3)  # an update is two weighted rows, so a batch has three rows for each pair
        queues.append(
            [
                Step(name, _weighted([(part, sign) for part, sign in parts if len(part)]))
                for at in range(0, len(updated), each)
                if (parts := [(gone.slice(at, each), -1), (old.slice(at, each), -1), (new.slice(at, each), 1)])
            ]
        )
        kept = np.ones(len(table), dtype=np.bool_)
        kept[chosen] = False
        after[name] = pa.concat_tables([table.filter(pa.array(kept)), new])
    return Changed(in_turn(queues), after)


def _permuted(rows: pa.Table, columns: Sequence[str], rng: np.random.Generator) -> pa.Table:
    """The rows with the values of these columns exchanged among them, so that all values stay plausible."""
    for name in columns:
        at = rows.schema.get_field_index(name)
        shuffled = rows.column(at).take(pa.array(rng.permutation(len(rows))))
        rows = rows.set_column(at, rows.schema.field(at), shuffled)
    return rows


def _weighted(parts: list[tuple[pa.Table, int]]) -> pa.RecordBatch:
    rows = pa.concat_tables([part for part, _ in parts])
    weights = np.concatenate([np.full(len(part), sign, dtype=np.int64) for part, sign in parts])
    (batch,) = rows.append_column("_weight", pa.array(weights)).combine_chunks().to_batches()
    return batch
