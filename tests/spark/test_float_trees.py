"""Sums of floats in view trees on the Spark backend: products of limbs, kept in Delta tables like other payloads."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JOIN = "FROM sale JOIN item USING (item) JOIN store USING (store)"
_QUERY = f"""SELECT city, SUM(price) AS p, SUM(price * weight) AS pw, SUM(weight * area) AS wa, AVG(area) AS a, COUNT(*) AS n,
SUM(2 * price * size) AS ps, SUM(CASE WHEN area > 1 THEN price END) AS some {_JOIN} GROUP BY city"""
_STRANGE = [math.nan, math.inf, -math.inf, 1e300, 5e-324, 1e-40]


def _open(spark: SparkSession, path: Path, **options: int) -> ev.Database:
    db = ev.connect(path, backend="spark", spark=spark, **options)
    db.create_table("sale", "item INT, store INT, price DOUBLE, size DOUBLE")
    db.create_table("item", "item INT, weight DOUBLE")
    db.create_table("store", "store INT, city STRING, area DOUBLE", primary_key="store")
    return db


def _sales(rng: np.random.Generator, count: int) -> list[tuple[int, int, float, float | None]]:
    sizes = rng.normal(size=count) * 10.0 ** rng.integers(-9, 12, count)
    return [
        (int(i), int(s), float(p), None if abs(z) < 1e-9 else float(z))
        for i, s, p, z in zip(
            rng.integers(0, 5, count), rng.integers(0, 4, count), rng.normal(size=count), sizes, strict=True
        )
    ]


def test_a_tree_of_floats_moves_with_all_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Also with floats that fit no limbs: their groups are computed anew as long as they are joined, and nothing is left."""
    rng = np.random.default_rng(3)
    with _open(spark, tmp_path / "db") as db:
        db.create_view("v", _QUERY, strategy="factorized")
        assert "of a tree" in db.view("v").explain()
        items = [(i, float(w)) for i, w in enumerate(rng.normal(size=5) * 1e3)]
        stores = [(s, f"city {s % 2}", float(a)) for s, a in enumerate(rng.random(4) * 1e6)]
        sales = _sales(rng, 80)
        db.apply({"sale": sales, "item": items, "store": stores})
        db.verify()
        before = sorted(db.view("v").rows())
        db.create_view("late", _QUERY, strategy="factorized")
        assert sorted(db.view("late").rows()) == before
        for number, strange in enumerate(_STRANGE):
            db.table(("sale", "item")[number % 2]).insert(
                [(1, 1, strange, None)] if number % 2 == 0 else [(2, strange)]
            )
            db.verify()
        db.table("store").upsert([(1, "city 0", 5.5), (2, "city 2", -math.inf)])
        db.create_view("with_strange_ones", _QUERY, strategy="factorized")
        db.verify()
        db.table("item").delete([(2, x) for x in _STRANGE[1::2]])
        db.table("sale").delete([(1, 1, x, None) for x in _STRANGE[::2]])
        db.table("store").upsert(stores)
        assert sorted(db.view("v").rows()) == before
        db.table("sale").delete(sales)
        assert db.view("v").rows() == []
        db.verify()


@pytest.mark.parametrize("executor_bytes", [2**30, pytest.param(0, marks=pytest.mark.slow)])
def test_a_covariance_is_columns_of_delta_tables(spark: SparkSession, tmp_path: Path, executor_bytes: int) -> None:
    """Of large tables, whose floats tasks cut, or Spark alone: it equals NumPy's after every batch, and after reopening."""
    rng = np.random.default_rng(4)
    features = ["price", "weight", "area"]
    held = _sales(rng, 300)
    weights, areas = rng.normal(size=5) * 1e4, rng.random(4) * 1e-5
    options = {"local_rows": 40, "executor_bytes": executor_bytes}
    with _open(spark, tmp_path / "db", **options) as db:
        db.apply({"item": list(enumerate(weights)), "store": [(s, "here", a) for s, a in enumerate(areas)]})
        db.table("sale").insert(spark.createDataFrame(held, "item INT, store INT, price DOUBLE, size DOUBLE"))
        cov = db.create_covariance("cov", f"SELECT * {_JOIN}", continuous=features, strategy="factorized")
        assert "of a tree" in cov.explain()
        more = _sales(rng, 30)
        db.table("sale").insert(more)
        db.table("sale").delete(held[:20])
        held = held[20:] + more
        weights[3] = 0.5
        db.table("item").delete([row for row in db.table("item").rows() if row[0] == 3])
        db.table("item").insert([(3, 0.5)])
        for again in (False, True):
            if again:
                db.close()
                db = ev.connect(tmp_path / "db", backend="spark", spark=spark, **options)  # noqa: PLW2901
            joined = np.array([(1.0, p, weights[i], areas[s]) for i, s, p, _ in held])
            np.testing.assert_allclose(db.view("cov").to_numpy(), joined.T @ joined, rtol=1e-11)
        db.verify()
        db.close()
