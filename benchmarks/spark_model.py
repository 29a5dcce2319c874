"""A regression over a large join on Spark, refreshed after a thousandth of its rows has changed, beside recomputing its sums.

    everview bench spark_model [--quick]
    EVERVIEW_MODEL_ROWS=60000000 EVERVIEW_MODEL_STRATEGY=factorized everview bench spark_model

Sales, with two features of type DOUBLE, are joined with items and stores, with one each. After ``create_covariance`` a
transaction replaces a thousandth of the sales, and a ``LinearRegression`` is refreshed; then the area of one store changes,
which a fiftieth of the sales meet. *recompute* is one Spark query for the same sums over the stored tables. Kernels are
compiled before, with a database of few rows. Metrics: ``seconds``, whose parameters say of what, with its ``jobs``, and
``ratio_to_recompute`` with the ``largest_error``, relative, of the maintained sums to the recomputed ones.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# `everview bench` loads this file by its path, from wherever it is called.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import everview as ev
from benchmarks.spark_counters import Counters
from benchmarks.spark_session import spark_session
from everview.cli.bench_results import Figure
from everview.learn import LinearRegression
from everview.session.covariance import Covariance
from everview.session.relations import Table

ROWS, QUICK_ROWS = 6_000_000, 50_000
ITEMS, STORES, ROUNDS = 4_000, 50, 3
FEATURES = ("units", "price", "weight", "area")
JOIN = "SELECT * FROM sale JOIN item USING (item) JOIN store USING (store)"


def run(*, quick: bool) -> Iterator[Figure]:
    """Measures one size."""
    rows = int(os.environ.get("EVERVIEW_MODEL_ROWS", QUICK_ROWS if quick else ROWS))
    rng = np.random.default_rng(8)
    params = {"rows": rows, "changed": rows // 1_000, "features": len(FEATURES)}
    with spark_session() as spark, tempfile.TemporaryDirectory() as folder:
        counters = Counters(spark)
        with ev.connect(f"{folder}/few", backend="spark", spark=spark) as db:  # compiles the kernels
            few = _sales(rng, 0, 2_000)
            _tables(db, rng).insert(few)
            model = ev.learn.LinearRegression(_covariance(db), label="units")
            db.table("sale").upsert(few.slice(0, 20))
            model.refresh()
        sales = _sales(rng, 0, rows)
        source = f"{folder}/sales"
        _write(source, sales)
        with ev.connect(f"{folder}/db", backend="spark", spark=spark) as db:
            sale = _tables(db, rng)
            with _timed() as loading:
                sale.insert(spark.read.parquet(source))
            yield Figure("model", "seconds", loading(), "s", {**params, "what": "loading the sales"})
            with _timed() as creating:
                cov = _covariance(db)
            yield Figure("model", "seconds", creating(), "s", {**params, "what": "creating the view"})
            model = ev.learn.LinearRegression(cov, label="units")
            model.refresh()
            spent = yield from _changes(db, sales, model, rng, counters, params)
            names = ("1.0D", *FEATURES)
            cells = ", ".join(f"SUM({a} * {b})" for i, a in enumerate(names) for b in names[i:])
            for name in ("sale", "item", "store"):
                db.table(name).to_spark().createOrReplaceTempView(f"plain_{name}")
            plain = JOIN.replace("FROM sale", "FROM plain_sale").replace("JOIN item", "JOIN plain_item")
            query = f"SELECT {cells} FROM ({plain.replace('JOIN store', 'JOIN plain_store')})"
            anew = []
            for which in ("the first time", "the second time"):
                with _timed() as recomputing:
                    (found,) = spark.sql(query).collect()
                anew.append(recomputing())
                yield Figure("model", "seconds", anew[-1], "s", {**params, "what": f"recompute, {which}"})
            ours = cov.to_numpy()[np.triu_indices(len(names))]
            error = float(np.max(np.abs(ours / np.array(found, dtype=np.float64) - 1)))
            yield Figure("model", "ratio_to_recompute", min(anew) / min(spent), "x", {**params, "largest_error": error})


def _tables(db: ev.Database, rng: np.random.Generator) -> Table:
    """Items, stores, and the table of sales, which is empty."""
    db.create_table("item", "item INT, weight DOUBLE").insert(
        pa.table({"item": pa.array(range(ITEMS), pa.int32()), "weight": rng.random(ITEMS) * 40})
    )
    db.create_table("store", "store INT, area DOUBLE").insert(
        pa.table({"store": pa.array(range(STORES), pa.int32()), "area": rng.random(STORES) * 900})
    )
    return db.create_table("sale", "id BIGINT, item INT, store INT, units DOUBLE, price DOUBLE", primary_key="id")


def _changes(
    db: ev.Database,
    sales: pa.Table,
    model: LinearRegression,
    rng: np.random.Generator,
    counters: Counters,
    params: dict[str, int],
) -> Generator[Figure, None, list[float]]:
    """Changes a thousandth of the sales several times, then one store each; returns the seconds of the first ones."""
    spent = []
    for number in range(ROUNDS):
        some = sales.take(rng.choice(len(sales), len(sales) // 1_000, replace=False))
        changed = some.set_column(4, "price", pa.array(rng.random(len(some)) * 100))
        with counters.counted() as counted, _timed() as changing:
            db.table("sale").upsert(changed)
            model.refresh()
        spent.append(changing())
        told = {**params, "round": number, "what": "a change, and the model refreshed", "jobs": counted.jobs}
        yield Figure("model", "seconds", spent[-1], "s", told)
    for number, (store, area) in enumerate(db.table("store").rows()[:ROUNDS]):
        with counters.counted() as counted, _timed() as changing:
            with db.transaction() as tx:
                tx.delete("store", [(store, area)])
                tx.insert("store", [(store, area + 1)])
            model.refresh()
        told = {**params, "round": number, "what": "one store, and the model refreshed", "jobs": counted.jobs}
        yield Figure("model", "seconds", changing(), "s", told)
    return spent


def _covariance(db: ev.Database) -> Covariance:
    strategy = os.environ.get("EVERVIEW_MODEL_STRATEGY", "auto")
    return db.create_covariance("cov", JOIN, continuous=FEATURES, strategy=strategy)


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    """Gives a function that says afterwards how many seconds have passed inside."""
    spent = 0.0
    started = time.perf_counter()
    yield lambda: spent
    spent = time.perf_counter() - started


def _sales(rng: np.random.Generator, first: int, rows: int) -> pa.Table:
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "item": rng.integers(0, ITEMS, rows).astype(np.int32),
            "store": rng.integers(0, STORES, rows).astype(np.int32),
            "units": rng.random(rows) * 20,
            "price": rng.random(rows) * 100,
        }
    )


def _write(folder: str, rows: pa.Table) -> None:
    Path(folder).mkdir()
    pq.write_table(rows, f"{folder}/part-0.parquet")
