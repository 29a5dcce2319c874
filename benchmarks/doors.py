"""What it costs to hand rows in, by the form they come in, beside what pyarrow needs to make a RecordBatch of them.

    everview bench doors [--quick]

One strict table (six columns, a primary key, rows kept) with one grouped view takes inserts of 1, 1,000 and 100,000 rows. Timed
is ``db.apply``, from what the user holds to the view being current. In turns with it pyarrow's own conversion of the same rows
to a RecordBatch of the table's schema is timed, which checks less. ``ratio_to_pyarrow`` is what a form costs, over 1.5 times
pyarrow's conversion plus what a RecordBatch costs: the promise is that it is at most 1. Every view is compared with sums over
the rows that went in. Spark DataFrames come in by ``toArrow``, and are not measured: that would measure Spark.

Then 100,000 new rows go through a view that projects them by a function of ours, by one that Spark's code computes, and by a
Python function, each beside Spark evaluating the same projection over the same rows from Arrow to Arrow.
"""

from __future__ import annotations

import datetime
import decimal
import gc
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from everview.cli.bench_results import Figure

COLUMNS = "id bigint, item string, price decimal(12,2), qty int, day date, share double"
QUERY = "SELECT item, SUM(price) AS total, COUNT(*) AS n FROM orders GROUP BY item"
ITEMS = 500
SIZES: Mapping[int, int] = {1: 2000, 1_000: 200, 100_000: 20}
QUICK_SIZES: Mapping[int, int] = {1: 300, 1_000: 12, 100_000: 1}
"""Rows in a transaction, and how many transactions are timed."""
ALLOWANCE = 1.5

Rows = Sequence[tuple[Any, ...]]


class Form(NamedTuple):
    """A way to hold rows: made from a batch of the table's schema, and how pyarrow alone makes such a batch of it."""

    name: str
    make: Callable[[pa.RecordBatch], Any]
    convert: Callable[[Any, pa.Schema], Any]


class Stream:
    """Exports Arrow batches by the C interface and in no other way, as polars and others do."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._table = pa.Table.from_batches([batch])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures every form at every size."""
    for size, transactions in (QUICK_SIZES if quick else SIZES).items():
        yield from measure(size, transactions)
    yield from measure_functions(1 if quick else 5)


FUNCTIONS: Mapping[str, str] = {
    "ours": "upper(item)",
    "Spark's code": "get_json_object(item, '$.n')",
    "Python function": "bench_length(item)",
}
FUNCTION_ROWS = 100_000


def measure_functions(transactions: int) -> Iterator[Figure]:
    """The figures for one projection a transaction, whose arguments are all new."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    spark.udf.register("bench_length", len, "int")
    for computed_by, function in FUNCTIONS.items():
        own, beside = [], []
        with ev.connect(spark=spark) as db:
            table = db.create_table("orders", "id bigint, item string")
            view = db.create_view("v", f"SELECT id, {function} AS value FROM orders")
            for number in range(transactions + 1):
                rows = _texts(FUNCTION_ROWS, number * FUNCTION_ROWS)
                start = time.perf_counter()
                table.insert(rows)
                made = time.perf_counter()
                answer = spark.createDataFrame(rows).selectExpr("id", f"{function} AS value").toArrow()
                own.append(made - start)
                beside.append(time.perf_counter() - made)
            newest = {row for row in view if row[0] >= transactions * FUNCTION_ROWS}
            assert newest == set(zip(*(c.to_pylist() for c in answer.columns), strict=True)), function
        params = {"function": function, "computed_by": computed_by, "rows": FUNCTION_ROWS}
        yield Figure("doors", "seconds", statistics.median(own[1:]), "s", params)
        yield Figure("doors", "seconds", statistics.median(beside[1:]), "s", {**params, "of": "Spark's projection"})


def _texts(count: int, start: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "item": [f'{{"n": {i}, "s": "some text"}}' for i in ids]})


def measure(size: int, transactions: int) -> Iterator[Figure]:
    """The figures for transactions of one size: first of RecordBatches, which the others are compared with."""
    batches = [made_batch(size, start=number * size) for number in range(transactions + 1)]
    as_batch = 0.0
    _timed(FORMS[0], batches)  # Who comes first pays for memory that is touched for the first time.
    for form in FORMS:
        own, alone = _timed(form, batches)
        as_batch = as_batch or own
        params = {"form": form.name, "rows": size}
        yield Figure("doors", "tuples_per_second", size / own, "rows/s", params)
        yield Figure("doors", "latency_p50", own, "s", params)
        yield Figure("doors", "seconds", alone, "s", {**params, "of": "pyarrow alone"})
        yield Figure("doors", "ratio_to_pyarrow", own / (ALLOWANCE * alone + as_batch), "", params)


def _timed(form: Form, batches: Sequence[pa.RecordBatch]) -> tuple[float, float]:
    """The median seconds of a transaction, and of pyarrow's conversion; the first of each is not counted."""
    own, alone = [], []
    with ev.connect() as db:
        schema = db.create_table("orders", COLUMNS, primary_key="id").schema
        view = db.create_view("by_item", QUERY)
        gc.collect()
        for batch in batches:
            given, again = form.make(batch), form.make(batch)
            began = time.perf_counter()
            form.convert(again, schema)
            converted = time.perf_counter()
            db.apply({"orders": given})
            own.append(time.perf_counter() - converted)
            alone.append(converted - began)
        _check(view, batches)
    return statistics.median(own[1:]), statistics.median(alone[1:])


def _check(view: ev.View, batches: Sequence[pa.RecordBatch]) -> None:
    expected = pa.Table.from_batches(batches).group_by("item").aggregate([("price", "sum"), ("item", "count")])
    theirs = Counter((r["item"], r["price_sum"], r["item_count"]) for r in expected.to_pylist())
    if Counter(view.rows()) != theirs:
        raise AssertionError("the view is not the sum of the rows that went in")


def made_batch(size: int, start: int) -> pa.RecordBatch:
    """Rows of the table with keys from ``start`` on, always the same."""
    random = np.random.default_rng(start)
    items, quantities = random.integers(0, ITEMS, size).tolist(), random.integers(1, 50, size).tolist()
    first = datetime.date(2024, 1, 1)
    columns: dict[str, Any] = {
        "id": list(range(start, start + size)),
        "item": [f"item number {i}" for i in items],
        "price": [decimal.Decimal(p).scaleb(-2) for p in random.integers(100, 10**6, size).tolist()],
        "qty": quantities,
        "day": [first + datetime.timedelta(days=q) for q in quantities],
        "share": random.random(size).tolist(),
    }
    schema = ev.connect(backend="reference").create_table("orders", COLUMNS, primary_key="id").schema
    arrays = [pa.array(values, schema.field(name).type) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def tuples(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """The rows as Python tuples."""
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _with_text(text: pa.DataType) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def relaid(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.cast(pa.schema([f.with_type(text) if f.type == pa.string() else f for f in batch.schema]))

    return relaid


def _encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [c.dictionary_encode() if c.type == pa.string() else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _cast(given: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return given.cast(schema)


def _from_frame(frame: pd.DataFrame, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pandas(frame, schema=schema, preserve_index=False)


def _from_tuples(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    columns = [[row[i] for row in rows] for i in range(len(schema))]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


FORMS = (
    Form("RecordBatch", lambda batch: batch, lambda batch, _: batch),
    Form("Table", lambda batch: pa.Table.from_batches([batch]), lambda t, _: t.combine_chunks().to_batches()),
    Form(
        "RecordBatchReader",
        lambda batch: pa.RecordBatchReader.from_batches(batch.schema, [batch]),
        lambda reader, _: reader.read_all().combine_chunks().to_batches(),
    ),
    Form("__arrow_c_stream__", Stream, lambda stream, _: pa.table(stream).combine_chunks().to_batches()),
    Form("string_view", _with_text(pa.string_view()), _cast),
    Form("large_string", _with_text(pa.large_string()), _cast),
    Form("dictionary", _encoded, _cast),
    Form("pandas", lambda batch: batch.to_pandas(), _from_frame),
    Form("pandas nullable", lambda batch: batch.to_pandas().convert_dtypes(), _from_frame),
    Form("pandas Arrow", lambda batch: batch.to_pandas(types_mapper=pd.ArrowDtype), _from_frame),
    Form("tuples", tuples, _from_tuples),
    Form(
        "dicts", lambda batch: batch.to_pylist(), lambda rows, schema: pa.RecordBatch.from_pylist(rows, schema=schema)
    ),
)
