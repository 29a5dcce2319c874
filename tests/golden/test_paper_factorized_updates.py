"""Section 6 of the F-IVM paper and its matrices of section 8.4: updates that are products, and what they add to each view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from tests.golden.paper_engine import (
    COUNT_SQL,
    MATRIX_SCHEMAS,
    MATRIX_SQL,
    along,
    as_view,
    contents,
    matrices,
    moved,
    relations,
    tree_of,
    weighted,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_example_11(spark: SparkSession) -> None:
    """R of n·m rows is found to be a product; with a row of m - 1 more it is n + m + 3 values, one product minus another."""
    n, m = 40, 30
    with relations(spark, {"R": ("A", "B")}, types=dict.fromkeys("AB", "INT")) as db:
        rows = pa.table({"A": np.repeat(np.arange(n), m), "B": np.tile(np.arange(m), n)})
        commit = db.apply({"R": rows}, decompose=True)
        assert commit.decomposed == {"R": (("A",), ("B",))}
        more = pa.table({"A": np.full(m - 1, n), "B": np.arange(m - 1)})
        assert db.apply({"R": more}, decompose=True).decomposed == {"R": (("A",), ("B",))}
        whole = ev.Product({"A": np.arange(n + 1)}, {"B": np.arange(m)}) - ev.Product({"A": [n]}, {"B": [m - 1]})
        db.create_view("q", "SELECT A, COUNT(*) AS n FROM R GROUP BY A")
        db.apply({"R": -whole})
        assert db.view("q").rows() == []


def test_example_12_factorized(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """δS = δS_A ⊗ δS_C ⊗ δS_E: a million rows, whose delta is a product of three sums over a hundred values each."""
    along(monkeypatch, "A - C")
    n = 100
    with relations(spark, types=dict.fromkeys("ABCDE", "INT"), static="R T", retain=False) as db:
        values = np.arange(n, dtype=np.int32)
        db.apply({"R": pa.table({"A": values // 2, "B": values}), "T": pa.table({"C": values // 4, "D": values})})
        db.create_view("q", COUNT_SQL)
        assert set(contents(db)) == {"V@A_RST", "R", "T"}
        state = tree_of(db).state
        before = state.work
        db.apply({"S": ev.Product({"A": values}, {"C": values}, {"E": values})})
        assert contents(db)["V@A_RST"] == {(): n * n * n}  # 50 keys of R with 2 rows, 25 of T with 4, 100 values of E
        assert state.work - before < 20 * n, "a hundred times three rows and what they meet, not a million"


def test_example_42(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single value of A2 changes a column of the view at X2, and all of the root."""
    along(monkeypatch, "X1 - X5 - X3 - {X2, X4}")
    p = 3
    with relations(spark, MATRIX_SCHEMAS, types={f"X{i}": "INT" for i in range(1, 6)}) as db:
        db.create_view("q", MATRIX_SQL)
        a = matrices(p)
        db.apply({name: weighted(MATRIX_SCHEMAS[name], as_view(m)) for name, m in a.items()})
        before = contents(db)
        db.apply({"A2": weighted(MATRIX_SCHEMAS["A2"], {(1, 2): 4})})
        a34 = a["A3"] @ a["A4"]
        assert moved(before, contents(db)) == {
            "A2": {(1, 2): 4},
            "V@X2_A1A2": {(i, 2): int(4 * a["A1"][i, 1]) for i in range(p)},
            "V@X1_A1A2A3A4": as_view(4 * np.outer(a["A1"][:, 1], a34[2])),
        }


@pytest.mark.parametrize("name", ["A1", "A2", "A3", "A4"])
def test_example_42_factorized(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """δA2 = u ⊗ v as a product: δ of the view at X2 is u2 ⊗ v with u2 = A1 u, that of the root u2 ⊗ (v A3 A4); so for all."""
    along(monkeypatch, "X1 - X5 - X3 - {X2, X4}")
    p = 3
    with relations(spark, MATRIX_SCHEMAS, types={f"X{i}": "INT" for i in range(1, 6)}) as db:
        db.create_view("q", MATRIX_SQL)
        a = matrices(p)
        db.apply({n: weighted(MATRIX_SCHEMAS[n], as_view(m)) for n, m in a.items()})
        before = contents(db)
        u, v = np.array([1, 2, 3]), np.array([4, 1, 2])
        rows, columns = MATRIX_SCHEMAS[name]
        indices = np.arange(p, dtype=np.int32)
        db.apply({name: ev.Product({rows: indices, "_weight": u}, {columns: indices, "_weight": v})})
        deltas = moved(before, contents(db))
        d = {n: np.outer(u, v) if n == name else m for n, m in a.items()}
        below = "V@X2_A1A2" if name in ("A1", "A2") else "V@X4_A3A4"
        one, other = ("A1", "A2") if name in ("A1", "A2") else ("A3", "A4")
        assert deltas == {
            name: as_view(np.outer(u, v)),
            below: as_view(d[one] @ d[other]),
            "V@X1_A1A2A3A4": as_view(d["A1"] @ d["A2"] @ d["A3"] @ d["A4"]),
        }
        if name == "A2":
            assert deltas[below] == as_view(np.outer(a["A1"] @ u, v))


EXAMPLE_11 = 40, 30
