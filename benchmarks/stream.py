"""How long a micro-batch of Structured Streaming takes to reach the views: 1,000, 10,000 and 100,000 rows a batch.

    everview bench stream [--quick]        or        python benchmarks/stream.py [--quick]

``db.stream`` reads a folder of Parquet files, one file a micro-batch, into the fact table of ``growth.py`` with its two
views. Timed is the whole trigger as Spark reports it: finding the file, its offsets in the checkpoint, reading it, the Arrow
transfer into this process, the transaction, the commit of the batch. Three parts add up to it: ``transaction`` is what
the views took, ``read_and_transfer`` the rest of the sink (Spark's job and Arrow), ``bookkeeping`` all else of the trigger.
``ratio_to_apply`` is the trigger's mean time over that of ``db.apply`` with the same batches already in memory. The first
batches, in which both engines warm up, are left out. The views are checked against DuckDB at the end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.answers import duckdb_answer, first_difference
from benchmarks.growth import VIEWS, facts, items
from benchmarks.spark_session import spark_session
from benchmarks.steps import Step
from benchmarks.stream_triggers import Triggers
from benchmarks.timing import feed
from everview.cli.bench_results import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = {1_000: 60, 10_000: 40, 100_000: 20}
QUICK_BATCHES = {1_000: 8, 10_000: 6, 100_000: 4}
WARM_UP, QUICK_WARM_UP = 5, 2
"""Batches at the start of each stream that are not counted."""


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures each batch size with a database of its own, and prints the parts at the end."""
    warm_up = QUICK_WARM_UP if quick else WARM_UP
    table = Table(title="A micro-batch from file to views, milliseconds", title_justify="left")
    for heading in ("rows", "p50", "p99", "bookkeeping", "read and transfer", "transaction", "rows/s"):
        table.add_column(heading, justify="right")
    with spark_session() as spark, tempfile.TemporaryDirectory() as folder:
        for batch, count in (QUICK_BATCHES if quick else BATCHES).items():
            given = [facts(batch, first=i * batch) for i in range(count + warm_up)]
            with _database(spark) as db:
                timed = _stream(spark, db, given, Path(folder) / str(batch), warm_up)
                answer = "right" if _is_right(db, given) else "WRONG"
            with _database(spark) as db:
                in_memory = feed(db, [Step("facts", part.to_batches()[0]) for part in given]).seconds[warm_up:]
            params: dict[str, Any] = {"batch": batch, "batches": count, "answer": answer}
            rate = batch / float(timed.whole.mean())
            p50, p99 = (float(np.percentile(timed.whole, percent)) for percent in (50, 99))
            yield Figure("stream", "tuples_per_second", rate, "1/s", params)
            yield Figure("stream", "latency_p50", p50, "s", params)
            yield Figure("stream", "latency_p99", p99, "s", params)
            for part, seconds in timed.parts().items():
                yield Figure("stream", "seconds", seconds, "s", {**params, "part": part})
            ratio = float(timed.whole.mean() / in_memory.mean())
            yield Figure("stream", "ratio_to_apply", ratio, "x", params)
            cells = [p50, p99, *timed.parts().values()]
            table.add_row(f"{batch:,}", *(f"{seconds * 1e3:.1f}" for seconds in cells), f"{rate:,.0f}")
    Console().print(table)


def _database(spark: SparkSession) -> ev.Database:
    db = ev.connect(spark=spark)
    db.create_table("facts", facts(1).schema, primary_key="id")
    db.create_table("items", items().schema, primary_key="item")
    db.apply({"items": items()})
    for name, sql in VIEWS.items():
        db.create_view(name, sql)
    return db


def _stream(spark: SparkSession, db: ev.Database, given: list[pa.Table], folder: Path, warm_up: int) -> Triggers:
    source = folder / "in"
    source.mkdir(parents=True)
    files = spark.readStream.schema(db.spark_table("facts").schema).option("maxFilesPerTrigger", 1)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", len(given) + 10)
    spent: list[float] = []
    commit_batch = db._core.run

    def timed(*arguments: Any) -> ev.Commit:
        commit = commit_batch(*arguments)
        spent.append(commit.seconds)
        return commit

    setattr(db, "_run", timed)  # what a stream commits its batches by  # noqa: B010 -- mypy minds the assignment
    query = db.stream("facts", files.parquet(str(source)), checkpoint=folder / "checkpoint", processingTime="0 seconds")
    try:
        for number, rows in enumerate(given):
            hidden = source / f".{number}"
            pq.write_table(rows, hidden)
            hidden.rename(source / f"{number:05}.parquet")
            query.processAllAvailable()
    finally:
        query.stop()
    reports = [p for p in query.recentProgress if p["numInputRows"]][warm_up:]
    assert len(reports) == len(given) - warm_up, "every batch is reported"
    whole, sink = (np.array([p["durationMs"][key] for p in reports]) / 1e3 for key in ("triggerExecution", "addBatch"))
    return Triggers(whole, sink, sum(spent[warm_up:]) / len(reports))


def _is_right(db: ev.Database, given: list[pa.Table]) -> bool:
    tables = {"facts": pa.concat_tables(given), "items": items()}
    differences = {
        name: first_difference(db.view(name).rows(), duckdb_answer(sql, tables)) for name, sql in VIEWS.items()
    }
    for name, difference in differences.items():
        if difference is not None:
            Console(stderr=True).print(f"[bold red]WRONG ANSWER[/] {name}: {difference}")
    return all(difference is None for difference in differences.values())


def main() -> int:
    """The suite; ends with 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(description="How long does a micro-batch take to reach the views?")
    parser.add_argument("--quick", action="store_true")
    results = list(run(quick=parser.parse_args().quick))
    return 1 if any(r.params["answer"] == "WRONG" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
