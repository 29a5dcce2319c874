"""Sums of products of INT and BIGINT columns of several tables are view trees, as long as no product can overflow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import everview as ev
from everview.backends.embedded import row_by_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_ROWS = "summed row by row, for now"


@pytest.fixture
def db(spark: SparkSession) -> ev.Database:
    """Two tables with integers of both widths."""
    db = ev.connect(spark=spark)
    db.create_table("a", "k INT, x BIGINT, i INT")
    db.create_table("b", "k INT, y BIGINT, j INT")
    return db


@pytest.mark.parametrize(
    "argument", ["a.x * b.y", "a.i * b.j", "a.x + 1", "a.i + b.j", "a.x * b.y - a.i", "-a.x", "a.x * (b.y + 1)"]
)
def test_arithmetic_of_integers_over_a_join_is_a_tree(db: ev.Database, argument: str) -> None:
    """One changed row costs look-ups; the answer is Spark's after inserts, deletes and NULLs."""
    view = db.create_view(
        "v", f"SELECT a.k, SUM({argument}) AS s, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k"
    )
    assert "view tree of [k]" in view.explain()
    assert "watched" in view.explain()
    rows = [(i % 3, 7 * i - 20, i % 5) for i in range(20)]
    db.apply({"a": [*rows, (1, None, None)], "b": [*rows, (None, 3, 3)]})
    db.verify("v")
    db.table("a").delete(rows[::3])
    db.table("b").insert([(0, -5, None), (2, 10**6, -(10**6))])
    db.verify("v")
    assert BY_ROWS not in view.explain()


def test_large_values_are_summed_row_by_row_and_come_back(db: ev.Database) -> None:
    """2^40 · 2^40 overflows, but the two do not meet: Spark has an answer, and so have we, and say how."""
    view = db.create_view("v", "SELECT SUM(a.x * b.y) AS s FROM a JOIN b ON a.k = b.k")
    db.apply({"a": [(1, 3, 0)], "b": [(1, 5, 0)]})
    assert view.rows() == [(15,)]
    large = {"a": [(2, 2**40, 0)], "b": [(3, 2**40, 0)]}
    db.apply(large)
    assert view.rows() == [(15,)]
    assert BY_ROWS in view.explain()
    db.verify("v")
    db.table("a").delete(large["a"])
    db.table("b").delete(large["b"])
    db.apply({"a": [(1, i, 0) for i in range(20)]})
    assert view.rows() == [(15 + 5 * sum(range(20)),)]
    assert BY_ROWS not in view.explain()
    db.verify("v")


def test_a_product_that_overflows_is_spark_s_error(db: ev.Database) -> None:
    """The transaction is rejected, nothing has changed, and the tree goes on."""
    view = db.create_view("v", "SELECT SUM(a.x * b.y) AS s FROM a JOIN b ON a.k = b.k", on_error="reject")
    db.apply({"a": [(1, 3, 0)], "b": [(1, 5, 0)]})
    with pytest.raises(ev.EvaluationError, match="overflow"):
        db.apply({"a": [(2, 2**40, 0)], "b": [(2, 2**40, 0)]})
    assert view.rows() == [(15,)]
    assert BY_ROWS not in view.explain()
    db.apply({"a": [(1, 4, 0)]})
    assert view.rows() == [(35,)]
    db.verify("v")


def test_existing_rows_and_static_tables_are_watched(db: ev.Database) -> None:
    """A view over rows that are there, one of its tables static and large, starts row by row."""
    db.create_table("c", "k INT, z BIGINT", static=True)
    db.apply({"c": [(1, 2**62)], "a": [(1, 1, 1)]})
    view = db.create_view("v", "SELECT SUM(a.x * c.z) AS s FROM a JOIN c ON a.k = c.k", on_error="reject")
    assert view.rows() == [(2**62,)]
    with pytest.raises(ev.EvaluationError, match="overflow"):
        db.apply({"a": [(1, 2, 1)]})
    db.apply({"a": [(2, 2**62, 1)]})
    assert view.rows() == [(2**62,)]
    db.verify("v")


def test_without_rows_to_stand_in_there_is_no_tree(spark: SparkSession) -> None:
    """A table that keeps no rows cannot be summed row by row later, so its products are joined from the start."""
    db = ev.connect(spark=spark)
    db.create_table("a", "k INT, x BIGINT", retain=False)
    db.create_table("b", "k INT, y BIGINT")
    view = db.create_view("v", "SELECT SUM(a.x * b.y) AS s FROM a JOIN b ON a.k = b.k")
    assert "can fail" in view.explain()
    db.apply({"a": [(1, 3)], "b": [(1, 5)]})
    assert view.rows() == [(15,)]


def test_a_product_change_is_watched(db: ev.Database) -> None:
    """Changes given as products of relations bring their largest values, too."""
    view = db.create_view("v", "SELECT SUM(a.x * b.y) AS s FROM a JOIN b ON a.k = b.k")
    db.apply({"b": [(1, 2, 0), (9, 2**40, 0)]})
    db.apply({"a": ev.Product({"k": [1, 2]}, {"x": [3, 2**40]}, {"i": [0]})})
    assert view.rows() == [(6 + 2**41,)]
    assert BY_ROWS in view.explain()
    db.verify("v")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e308, 0.25])
def test_floats_that_only_decide_are_not_bounded(spark: SparkSession, value: float) -> None:
    """A watched number read a DOUBLE in its CASE, whose NaN has no magnitude: the transaction ended in a ValueError."""
    with ev.connect(spark=spark) as db:
        db.create_table("a", "k INT, x DOUBLE, g BIGINT")
        db.create_table("b", "k INT, s STRING, g BIGINT")
        view = db.create_view(
            "v",
            "SELECT a.k, SUM((CASE WHEN a.x > 0 THEN a.g ELSE 0 END) * (CASE WHEN b.s = 'n' THEN b.g ELSE 1 END)) AS s "
            "FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        )
        assert "watched" in view.explain()
        db.apply({"a": [(1, value, 3), (1, None, 4)], "b": [(1, "n", 5), (1, "m", 7), (1, None, None)]})
        db.verify("v")
        assert BY_ROWS not in view.explain()
        db.table("a").delete([(1, value, 3)])
        db.verify("v")


@pytest.mark.parametrize("most_rows", [2, 20_000_000])
def test_conditions_that_overflow_under_a_sum(
    db: ev.Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    """A condition of a join that may overflow suspends the view where Spark fails, also where rows are counted first."""
    monkeypatch.setattr(row_by_row, "MOST_ROWS", most_rows)
    queries = {
        "all_pairs": "SELECT COUNT(*) AS n, SUM(s.a) AS t FROM r JOIN s ON s.a * 2 > r.a",
        "by_key": "SELECT COUNT(*) AS n, SUM(s.a) AS t FROM r JOIN s ON r.k = s.k AND s.a * 2 > r.a",
        "of_doubles": "SELECT COUNT(*) AS n, SUM(r.x) AS t FROM r JOIN s ON r.k = s.k AND s.a * 2 > r.a",
        "grouped": "SELECT r.k, COUNT(*) AS n FROM r JOIN s ON r.k = s.k AND s.a + r.a > 5 GROUP BY r.k",
    }
    steps: list[dict[str, list[tuple[Any, ...]]]] = [
        {"r": [(1, 5, 1.0, 1), (1, 2, math.nan, 1)], "s": [(1, 3, 1), (1, 2**62 + 5, 1)]},
        {"s": [(1, 2**62 + 5, -1)]},
        {"r": [(1, 2**63 - 1, 1.0, 1)], "s": [(1, 3, 1)]},
        {"r": [(1, 2**63 - 1, 1.0, -1)]},
    ]
    with ev.connect(backend="reference", spark=spark) as reference:
        for database in (db, reference):
            database.create_table("r", "k INT, a BIGINT, x DOUBLE")
            database.create_table("s", "k INT, a BIGINT")
            for name, query in queries.items():
                database.create_view(name, query)
        suspended = 0
        for step in steps:
            for database in (db, reference):
                database.apply({t: _weighted(database.table(t), rows) for t, rows in step.items()})
            for name in queries:
                assert _answer(db.view(name)) == _answer(reference.view(name)), (name, step)
                suspended += _answer(db.view(name)) == "suspended"
        assert suspended == 4


def _weighted(table: ev.Table, rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip((*table.columns, "_weight"), row, strict=True)) for row in rows]


def _answer(view: ev.View) -> str:
    try:
        return repr(sorted(view.rows(), key=repr))
    except ev.ViewSuspended:
        return "suspended"
