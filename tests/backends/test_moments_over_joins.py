"""Variances, covariances and regressions over joins are view trees: one changed row costs look-ups, not the join's size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def db(spark: SparkSession) -> ev.Database:
    """A chain of three tables with measures at both ends."""
    db = ev.connect(spark=spark)
    db.create_table("sale", "id INT NOT NULL, item INT, amount DOUBLE", primary_key=["id"])
    db.create_table("item", "id INT NOT NULL, maker INT", primary_key=["id"])
    db.create_table("maker", "id INT NOT NULL, score DOUBLE", primary_key=["id"])
    return db


QUERY = """SELECT COVAR_SAMP(s.amount, m.score) AS cov, CORR(s.amount, m.score) AS corr, VAR_POP(s.amount) AS var,
                  REGR_SLOPE(s.amount, m.score) AS slope
           FROM sale s JOIN item i ON s.item = i.id JOIN maker m ON i.maker = m.id"""


def test_a_covariance_over_three_tables_is_a_tree(db: ev.Database) -> None:
    """A changed maker meets one entry a key, however many sales it has."""
    view = db.create_view("cov", QUERY)
    assert "view tree" in view.explain()
    assert "a changed row of maker costs O(1): " in view.explain()

    db.apply({"maker": [(i, float(i)) for i in range(4)], "item": [(i, i % 4) for i in range(8)]})
    db.apply({"sale": [(i, i % 8, i / 8) for i in range(400)]})
    db.verify("cov")
    db.table("maker").upsert([(2, -3.5)])
    db.verify("cov")
    db.table("sale").delete([(i, i % 8, i / 8) for i in range(0, 400, 3)])
    db.verify("cov")


def test_what_comes_and_goes_leaves_no_trace(db: ev.Database) -> None:
    """Large means do not swallow small variances, also after deletes of values a million times as large."""
    view = db.create_view("cov", QUERY)
    db.apply({"maker": [(0, 1e9), (1, 1e9 + 1)], "item": [(0, 0), (1, 1)]})
    db.apply({"sale": [(0, 0, 1e9), (1, 1, 1e9 + 2)]})
    before = view.rows()
    assert before == [(pytest.approx(1.0, rel=1e-12), pytest.approx(1.0), pytest.approx(1.0), pytest.approx(2.0))]
    large = [(i, i % 2, 1e14 * i) for i in range(2, 50)]
    db.table("sale").insert(large)
    db.table("sale").delete(large)
    assert view.rows() == [tuple(pytest.approx(v, rel=1e-9) for v in before[0])]
