"""The database of a TPC-H query: its tables, the static ones loaded, its view, and a warm-up before anything is timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import everview as ev
from benchmarks.tpch_stream import is_static
from tests.corpus.data import TPCH_KEYS, Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM_UP_ROWS = 10_000


@contextmanager
def maintained(
    spark: SparkSession, query: Query, tables: Mapping[str, pa.Table], mode: str
) -> Iterator[tuple[ev.Database, ev.View]]:
    """A database with the query's tables, the static ones loaded, and its view; warm, so that no kernel loads later.

    Args:
        spark: The session that translates.
        query: The view, named after it.
        tables: What will be streamed.
        mode: ``strict`` keeps the tables and their primary keys, ``trusted`` keeps no rows (``retain=False``).
    """
    with ev.connect(spark=spark) as db:
        for name, table in tables.items():
            key = TPCH_KEYS[name]
            if is_static(name):
                db.create_table(name, table.schema, primary_key=key, static=True)
                db.apply({name: table})
            elif mode == "strict":
                db.create_table(name, table.schema, primary_key=key)
            else:
                db.create_table(name, table.schema, retain=False)
        view = db.create_view(query.name, query.sql)
        _warm_up(db, tables)
        yield db, view


def _warm_up(db: ev.Database, tables: Mapping[str, pa.Table]) -> None:
    """Inserts some rows of each table and deletes them again."""
    some = {name: table.slice(0, WARM_UP_ROWS) for name, table in tables.items() if not is_static(name)}
    for name, rows in some.items():
        db.apply({name: rows})
    for name, rows in some.items():
        weights = pa.array(np.full(len(rows), -1, dtype=np.int64))
        db.apply({name: rows.append_column("_weight", weights)})
