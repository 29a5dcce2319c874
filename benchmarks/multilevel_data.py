"""What the suite ``multilevel`` feeds: the changes of a query's tables row by row, from TPC-H or the order book."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from benchmarks.tpch_stream import tables_read
from tests.corpus.data import BOOK_SCHEMA, TPCH_KEYS, finance_stream, tpch_tables

SEED = 11


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured: the TPC-H scale, events of the order book, refreshes and seconds for each depth of each query."""

    scale: float
    events: int
    refreshes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row that comes (weight 1) or goes (weight -1)."""

    table: str
    row: tuple[Any, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class Stream:
    """The changes of a query's tables, in order; the first half is there before the view is."""

    schemas: Mapping[str, pa.Schema]
    keys: Mapping[str, tuple[str, ...]]
    changes: Sequence[RowChange]

    def after(self, count: int) -> dict[str, pa.Table]:
        """The tables after so many changes."""
        held: dict[str, dict[tuple[Any, ...], int]] = {name: {} for name in self.schemas}
        for change in self.changes[:count]:
            rows = held[change.table]
            rows[change.row] = rows.get(change.row, 0) + change.weight
        return {
            name: _table([row for row, n in rows.items() for _ in range(n)], self.schemas[name])
            for name, rows in held.items()
        }


def stream_of(sql: str, extent: Extent) -> Stream:
    """The stream of a query: inserts of all TPC-H tables that it reads in random order, or the events of the books."""
    read = tables_read(sql)
    if not read:
        events = [RowChange(e.table, e.row, e.weight) for e in islice(finance_stream("standard"), extent.events)]
        return Stream({"bids": BOOK_SCHEMA, "asks": BOOK_SCHEMA}, {}, events)
    whole = tpch_tables(extent.scale)
    most = 3 * extent.events
    rows = [
        RowChange(name, row, 1)
        for name in read
        for row in zip(*(column.to_pylist() for column in whole[name].slice(0, most).columns), strict=True)
    ]
    random.Random(SEED).shuffle(rows)
    return Stream({name: whole[name].schema for name in read}, {name: TPCH_KEYS[name] for name in read}, rows)


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def weighted_row(change: RowChange, schema: pa.Schema) -> pa.Table:
    """The change as a table of one row."""
    return _table([change.row], schema).append_column("_weight", pa.array([change.weight], pa.int64()))
