"""The engines that ``benchmarks/rivals.py`` compares with: each takes a stream and says how long a current answer takes.

They keep tables and run the query again, at evenly spaced transactions; a change of the tables is timed with its query.
"""

from __future__ import annotations

import datetime
import decimal
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.answers import Rows
from benchmarks.steps import AnyStep
from tests.corpus.data import TPCH_KEYS

SAMPLES, QUICK_SAMPLES = 20, 4
WEIGHT = "_weight"
_JOINED = ("o_custkey", "l_partkey", "l_suppkey", "c_nationkey", "s_nationkey")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Measured:
    """The rows of a transaction, the mean seconds until its answer was there, the last answer, and what to tell besides."""

    rows: float
    seconds: float
    answer: Rows
    told: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """What one query is fed with: tables that are loaded first, transactions, and the tables after them."""

    static: dict[str, pa.Table]
    schemas: dict[str, pa.Schema]
    steps: Sequence[AnyStep]
    after: dict[str, pa.Table]


class Recomputing(Protocol):
    """An engine that keeps tables and runs a query over them."""

    def create(self, table: str, schema: pa.Schema) -> None:
        """Makes an empty table."""

    def insert(self, table: str, rows: pa.Table) -> None:
        """Adds rows."""

    def delete(self, table: str, keys: pa.Table) -> None:
        """Removes the rows with these keys."""

    def answer(self, sql: str) -> Rows:
        """The query's rows."""


def recompute(engine: Recomputing, sql: str, stream: Stream, quick: bool) -> Measured:
    """Feeds all steps, and times some of them together with the query."""
    for name, schema in stream.schemas.items():
        engine.create(name, schema)
    for name, rows in stream.static.items():
        engine.insert(name, rows)
    steps = stream.steps
    chosen = set(np.linspace(0, len(steps) - 1, QUICK_SAMPLES if quick else SAMPLES).astype(int).tolist())
    seconds, rows, answer = 0.0, 0, []
    for number, step in enumerate(steps):
        started = time.perf_counter()
        for name, batch in step.changes.items():
            given = pa.Table.from_batches([batch])
            if WEIGHT in given.column_names:
                engine.delete(name, given.select(list(TPCH_KEYS[name])))
            else:
                engine.insert(name, given)
        if number in chosen:
            answer = engine.answer(sql)
            seconds += time.perf_counter() - started
            rows += step.rows
    return Measured(rows / len(chosen), seconds / len(chosen), answer, {"sampled_batches": len(chosen)})


class DuckDB:
    """DuckDB in memory, with both cores and no keys, which would make it slower."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()

    def create(self, table: str, schema: pa.Schema) -> None:
        """Makes an empty table."""
        self._with(schema.empty_table(), f"CREATE TABLE {table} AS SELECT * FROM given")

    def insert(self, table: str, rows: pa.Table) -> None:
        """Adds rows."""
        self._with(rows, f"INSERT INTO {table} SELECT * FROM given")

    def delete(self, table: str, keys: pa.Table) -> None:
        """Removes the rows with these keys."""
        same = " AND ".join(f"{table}.{key} = given.{key}" for key in keys.column_names)
        self._with(keys, f"DELETE FROM {table} USING given WHERE {same}")

    def answer(self, sql: str) -> Rows:
        """The query's rows."""
        return self._connection.execute(sql).fetchall()

    def _with(self, given: pa.Table, statement: str) -> None:
        self._connection.register("given", given)
        self._connection.execute(statement)
        self._connection.unregister("given")


class SQLite:
    """SQLite in memory, with the primary keys and indexes; decimals are floats there, and dates text."""

    def __init__(self) -> None:
        sqlite3.register_adapter(decimal.Decimal, float)
        sqlite3.register_adapter(datetime.date, datetime.date.isoformat)
        self._connection = sqlite3.connect(":memory:")

    def create(self, table: str, schema: pa.Schema) -> None:
        """Makes an empty table and its indexes."""
        listed = ", ".join(schema.names)
        self._connection.execute(f"CREATE TABLE {table} ({listed}, PRIMARY KEY ({', '.join(TPCH_KEYS[table])}))")
        for column in set(schema.names) & set(_JOINED):
            self._connection.execute(f"CREATE INDEX {table}_{column} ON {table} ({column})")

    def insert(self, table: str, rows: pa.Table) -> None:
        """Adds rows."""
        places = ", ".join("?" * rows.num_columns)
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", values)

    def delete(self, table: str, keys: pa.Table) -> None:
        """Removes the rows with these keys."""
        same = " AND ".join(f"{key} = ?" for key in keys.column_names)
        values = zip(*(column.to_pylist() for column in keys.columns), strict=True)
        self._connection.executemany(f"DELETE FROM {table} WHERE {same}", values)

    def answer(self, sql: str) -> Rows:
        """The query's rows, with their dates as such."""
        return [tuple(map(_with_dates, row)) for row in self._connection.execute(sql)]


def _with_dates(value: Any) -> Any:
    is_date = isinstance(value, str) and _DATE.fullmatch(value)
    return datetime.date.fromisoformat(value) if is_date else value


ENGINES: dict[str, Callable[[], Recomputing]] = {"duckdb": DuckDB, "sqlite": SQLite}
