"""What durability costs: the same batches into everview with each `durability`, into SQLite and into DuckDB, in one run.

    everview bench durability [--quick]

One table of five columns with a primary key; everview also keeps a sum and a count by 1,000 groups current, the others keep the
table only. A batch is one transaction, from Arrow in memory to the commit; SQLite gets tuples, made beforehand, since it reads
no Arrow. SQLite runs in WAL mode with ``synchronous=FULL``, DuckDB as it comes, both in files on the same disk. The systems
take turns batch by batch, so that whatever else the disk is doing hits all alike. ``ratio_to_sqlite`` and
``ratio_to_duckdb`` are rows a second over theirs. Then: the time to open a database of ten million rows, from a checkpoint, and
from the log alone; the answer is compared with the one before it was closed.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.spark_session import spark_session
from everview.cli.bench_results import Figure

SIZES = {1: 300, 1_000: 100, 100_000: 12}
QUICK_SIZES = {1: 60, 1_000: 25, 100_000: 4}
"""Rows in a batch, and how many batches are timed."""
OPEN_ROWS, QUICK_OPEN_ROWS = 10_000_000, 1_000_000
LOAD_BATCH = 100_000
GROUPS = 1_000
SEED = 18
VIEW = "SELECT grp, SUM(amount) AS total, COUNT(*) AS n FROM facts GROUP BY grp"

Insert = Callable[[pa.RecordBatch], None]


def facts(rows: int, first: int) -> pa.RecordBatch:
    """Rows with ascending keys and random everything else, some of it text."""
    rng = np.random.default_rng(SEED + first)
    words = pa.array([f"word {i}" for i in range(500)])
    return pa.record_batch(
        {
            "id": pa.array(np.arange(first, first + rows)),
            "grp": pa.array(rng.integers(0, GROUPS, rows)),
            "amount": pa.array(rng.integers(0, 10_000, rows)),
            "price": pa.array(rng.random(rows)),
            "word": words.take(pa.array(rng.integers(0, 500, rows))),
        }
    )


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures commits, then opening."""
    with spark_session() as spark, tempfile.TemporaryDirectory(dir=_disk()) as scratch:
        for size, count in (QUICK_SIZES if quick else SIZES).items():
            yield from _commits(Path(scratch) / f"by {size}", spark, size, count)
        yield from _openings(Path(scratch), spark, QUICK_OPEN_ROWS if quick else OPEN_ROWS)


def _disk() -> str | None:
    """Where to write: the home directory is on a disk, while the directory for temporary files may be in memory."""
    home = Path.home()
    return str(home) if shutil.disk_usage(home).free > 8e9 else None


def _made(db: ev.Database) -> ev.Database:
    db.create_table("facts", facts(0, 0).schema, primary_key="id")
    db.create_view("by_group", VIEW)
    return db


def _commits(folder: Path, spark: object, size: int, count: int) -> Iterator[Figure]:
    """All systems, batch by batch in turns."""
    folder.mkdir()
    with ExitStack() as open_until_done:
        systems: dict[str, Insert] = {}
        databases = {"memory": open_until_done.enter_context(ev.connect(spark=spark))}
        for durability in ("commit", "batch", "none"):
            databases[durability] = open_until_done.enter_context(
                ev.connect(folder / durability, spark=spark, durability=durability)
            )
        for name, db in databases.items():
            _made(db)
            systems[f"everview {name}"] = lambda batch, db=db: db.apply({"facts": batch})
        systems["sqlite"] = _sqlite(folder / "sqlite.db", open_until_done)
        systems["duckdb"] = _duckdb(folder / "duck.db", open_until_done)
        seconds: dict[str, list[float]] = {name: [] for name in systems}
        warm = 3
        for i in range(count + warm):
            batch = facts(size, i * size)
            rows = list(zip(*(c.to_pylist() for c in batch.columns), strict=True))
            for name, insert in systems.items():
                given = rows if name == "sqlite" else batch
                started = time.perf_counter()
                insert(given)
                seconds[name].append(time.perf_counter() - started)
        held = {name: db.table("facts").to_arrow().num_rows for name, db in databases.items()}
        assert set(held.values()) == {size * (count + warm)}, held
    rates = {name: size * count / sum(taken[warm:]) for name, taken in seconds.items()}
    for name, taken in seconds.items():
        params = {"batch": size, "batches": count}
        yield Figure(name, "tuples_per_second", rates[name], "1/s", params)
        yield Figure(name, "latency_p50", float(np.percentile(taken[warm:], 50)), "s", params)
        yield Figure(name, "latency_p99", float(np.percentile(taken[warm:], 99)), "s", params)
        if name.startswith("everview"):
            yield Figure(name, "ratio_to_sqlite", rates[name] / rates["sqlite"], "", params)
            yield Figure(name, "ratio_to_duckdb", rates[name] / rates["duckdb"], "", params)


def _sqlite(path: Path, open_until_done: ExitStack) -> Insert:
    connection = sqlite3.connect(path, isolation_level=None)
    open_until_done.callback(connection.close)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE facts (id INTEGER PRIMARY KEY, grp INTEGER, amount INTEGER, price REAL, word TEXT)"
    )

    def insert(rows: object) -> None:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?)", rows)  # type: ignore[arg-type]
        connection.execute("COMMIT")

    return insert


def _duckdb(path: Path, open_until_done: ExitStack) -> Insert:
    connection = duckdb.connect(str(path))
    open_until_done.callback(connection.close)
    connection.execute(
        "CREATE TABLE facts (id BIGINT PRIMARY KEY, grp BIGINT, amount BIGINT, price DOUBLE, word VARCHAR)"
    )

    def insert(batch: pa.RecordBatch) -> None:
        given = pa.Table.from_batches([batch])
        connection.register("given", given)
        connection.execute("INSERT INTO facts SELECT * FROM given")
        connection.unregister("given")

    return insert


def _openings(folder: Path, spark: object, rows: int) -> Iterator[Figure]:
    """Opening a large database: from a checkpoint, and from its log alone."""
    for case, options in (("checkpoint", {}), ("log", {"checkpoint_bytes": 2**40})):
        path = folder / case
        with _made(ev.connect(path, spark=spark, durability="none", **options)) as db:
            for first in range(0, rows, LOAD_BATCH):
                db.apply({"facts": facts(LOAD_BATCH, first)})
            if case == "checkpoint":
                started = time.perf_counter()
                db.checkpoint()
                yield Figure("write checkpoint", "seconds", time.perf_counter() - started, "s", {"rows": rows})
            expected = sorted(db.view("by_group").rows())
        size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
        started = time.perf_counter()
        with ev.connect(path, spark=spark) as db:
            seconds = time.perf_counter() - started
            assert sorted(db.view("by_group").rows()) == expected
            assert db.version == rows // LOAD_BATCH
        shutil.rmtree(path)
        yield Figure(f"open from {case}", "seconds", seconds, "s", {"rows": rows, "bytes": size})
