"""Sums of floats on the Spark backend: they move with changes, whatever comes and goes, and are Spark's own sums."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUERY = """SELECT r.k, SUM(x) AS sx, AVG(x * y) AS xy, SUM(f) AS sf, SUM(x) FILTER (WHERE y > 1) AS some, COUNT(*) AS n
FROM r JOIN s ON r.k = s.k GROUP BY r.k"""
_STRANGE = [
    (0, 1e300, 1.0),
    (1, math.nan, 2.0),
    (2, 5e-324, 1.0),
    (3, 1e-40, None),
    (4, math.inf, 0.5),
    (4, -math.inf, 3.5),
]


def test_floats_of_all_sizes_come_and_go(spark: SparkSession) -> None:
    """Also those that do not fit limbs: their groups are computed anew as long as they are there, and leave no trace."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=60) * 10.0 ** rng.integers(-12, 16, 60)
    rows = [(int(k), float(x), float(np.float32(x))) for k, x in zip(rng.integers(0, 5, 60), values, strict=True)]
    with ev.connect(backend="spark", spark=spark) as db:
        r = db.create_table("r", "k INT, x DOUBLE, f FLOAT")
        s = db.create_table("s", "k INT, y DOUBLE")
        by_group = db.create_view("by_group", _QUERY)
        db.create_view("whole", "SELECT SUM(x) AS sx, AVG(y) AS y FROM r JOIN s ON r.k = s.k")
        assert "grouped" in by_group.explain()
        db.verify()
        db.apply({"r": rows, "s": [(k, k + 0.1) for k in range(5)]})
        before = sorted(by_group.rows())
        db.verify()
        late = db.create_view("late", _QUERY)
        r.insert([*_STRANGE, (9, 1e-60, 1.0), (None, 2.0, 2.0)])
        s.insert([(9, 3.0), (9, None)])
        db.create_view("filled_with_strange_ones", _QUERY)
        db.verify()
        r.insert([(k, 0.1, None) for k in range(5)])
        db.verify()
        r.delete([*_STRANGE, (9, 1e-60, 1.0), *((k, 0.1, None) for k in range(5))])
        db.verify()
        assert sorted(by_group.rows()) == before == sorted(late.rows())
        r.delete(rows)
        assert by_group.rows() == []
        db.verify()


@pytest.mark.parametrize("group_by", [[], ["city"]])
def test_a_covariance_of_doubles_moves_with_its_changes(spark: SparkSession, group_by: list[str]) -> None:
    """It equals NumPy's after each batch, and is 0 again when all have gone."""
    rng = np.random.default_rng(2)
    sales = [
        (int(i), float(x), float(y)) for i, x, y in zip(rng.integers(0, 4, 200), *rng.random((2, 200)), strict=True)
    ]
    items = [(i, f"city {i % 2}", float(rng.normal() * 1e5)) for i in range(4)]
    with ev.connect(backend="spark", spark=spark) as db:
        sale = db.create_table("sale", "item INT, price DOUBLE, size DOUBLE")
        db.create_table("item", "item INT, city STRING, growth DOUBLE").insert(items)
        join = "SELECT * FROM sale JOIN item USING (item)"
        cov = db.create_covariance("cov", join, continuous=["price", "size", "growth"], group_by=group_by)
        assert "payloads of the touched groups" in cov.explain()
        held: list[tuple[int, float, float]] = []
        for start in range(0, 200, 50):
            held += sales[start : start + 50]
            sale.insert(sales[start : start + 50])
            if start:
                sale.delete(held[:20])
                del held[:20]
            joined = [(1.0, x, y, items[i][2], items[i][1]) for i, x, y in held]
            for city in {row[4] for row in joined} if group_by else {None}:
                matrix = np.array([row[:4] for row in joined if city in (None, row[4])])
                found = cov.to_numpy(**({"city": city} if group_by else {}))
                np.testing.assert_allclose(found, matrix.T @ matrix, rtol=1e-12)
        sale.delete(held)
        if not group_by:
            assert not cov.to_numpy().any()


@pytest.mark.parametrize("executor_bytes", [2**30, pytest.param(0, marks=pytest.mark.slow)])
def test_views_over_large_tables_are_summed_in_tasks(spark: SparkSession, tmp_path: Path, executor_bytes: int) -> None:
    """By Python, or with ``executor_bytes=0`` by Spark alone: with keys of many types, NULLs, duplicates and strange floats."""
    rng = np.random.default_rng(6)
    day = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
    rows = [
        (i % 3 or None, "ab"[i % 2], day + dt.timedelta(days=i % 2), Decimal(i % 2), float(x), float(x) * 1e-9)
        for i, x in enumerate(rng.normal(size=300))
    ]
    strange = [(1, "a", day, Decimal(0), x, None) for x in (math.nan, 1e300, 5e-324)]
    with ev.connect(tmp_path / "db", backend="spark", spark=spark, local_rows=20, executor_bytes=executor_bytes) as db:
        r = db.create_table("r", "k INT, s STRING, t TIMESTAMP, d DECIMAL(5, 1), x DOUBLE, y DOUBLE")
        r.insert(
            spark.createDataFrame(
                [*rows, *rows[:50]], "k INT, s STRING, t TIMESTAMP, d DECIMAL(5, 1), x DOUBLE, y DOUBLE"
            )
        )
        sums = "SUM(x) AS sx, AVG(x * y) AS xy, SUM(y) FILTER (WHERE x > 0) AS sy, COUNT(y) AS n"
        by = db.create_view(
            "by", f"SELECT k, s, t, d, DATE(t) - DATE '2024-01-01' AS i, {sums} FROM r GROUP BY k, s, t, d"
        )
        db.create_view("whole", f"SELECT {sums} FROM r")
        db.create_view("nested", f"SELECT struct(k, s) AS z, {sums} FROM r GROUP BY struct(k, s)")
        db.verify()
        before = sorted(map(repr, by.rows()))
        r.insert(strange)
        db.create_view("made_with_strange_ones", f"SELECT k, {sums} FROM r GROUP BY k")
        db.verify()
        r.delete([*strange, rows[0]])
        r.insert([rows[0]])
        db.verify()
        assert sorted(map(repr, by.rows())) == before
