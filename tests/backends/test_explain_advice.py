"""What ``explain`` says first: what a changed row costs in words and numbers, advice that was tried, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module", params=["embedded", "spark"])
def shop(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[ev.Database]:
    """Customers whose id is unique and not declared so, and some orders of each, on both engines."""
    with ev.connect(spark=spark, backend=request.param) as database:
        database.create_table("customer", "id int not null, name string")
        database.create_table("orders", "id int, cid int, price double")
        database.create_view("named", "SELECT o.id, c.name FROM orders o JOIN customer c ON o.cid = c.id")
        database.create_view("ranked", "SELECT id, rank() OVER (ORDER BY price) AS r FROM orders")
        database.create_view("counted", "SELECT cid, count(*) AS n FROM orders GROUP BY cid", strategy="recompute")
        database.create_view("over", "SELECT name, count(*) AS n FROM named GROUP BY name")
        database.apply({"customer": [(i, f"c{i % 3}") for i in range(10)]})
        database.apply({"orders": [(i, i % 10 if i < 36 else 0, 1.0) for i in range(40)]})
        yield database


def test_the_cost_of_each_table_is_said_first_and_once(shop: ev.Database) -> None:
    """In words, with the numbers of the rows that are there, the same on both engines."""
    text = shop.view("named").explain()
    assert text.splitlines()[1:3] == [
        "a changed row of orders costs O(matches): it meets all rows of customer with the same id: 1 on average, 1 at most",
        "a changed row of customer costs O(matches): it meets all rows of orders with the same cid: 4 on average, 8 at most",
    ]
    assert text.count("O(matches)") == 3, "and once more in the advice"


def test_a_key_is_advised_that_the_planner_makes_use_of(shop: ev.Database) -> None:
    """``cid`` of orders is not unique, and ``id`` of orders is joined with nothing: only one declaration helps."""
    advice = shop.view("named").explain().split("advice, each tried by planning the view again:\n")[1].splitlines()
    assert advice[0] == "  declare customer (id) as PRIMARY KEY: orders O(matches) → O(1)"
    assert not advice[1].startswith("  declare")


def test_advice_comes_true(shop: ev.Database) -> None:
    """With the key declared, the cost is the one that was promised, and there is nothing to advise."""
    shop.create_table("keyed", "id int not null, name string", primary_key="id")
    view = shop.create_view("after", "SELECT o.id, c.name FROM orders o JOIN keyed c ON o.cid = c.id")
    shop.table("keyed").insert([(i, "x") for i in range(10)])
    text = view.explain()
    shop.drop("after")
    shop.drop("keyed")
    assert "a changed row of orders costs O(1): one look-up (keyed by id)\n" in text
    assert (
        "a changed row of keyed costs O(matches): it meets all rows of orders with the same cid: 4 on average" in text
    )
    assert "advice" not in text


def test_what_is_computed_anew_is_advised_against(shop: ev.Database) -> None:
    """A window without PARTITION BY, and a query that need not be computed anew."""
    ranked, counted = shop.view("ranked").explain(), shop.view("counted").explain()
    assert "a changed row of orders costs O(N): all rows of orders are computed anew\n" in ranked
    assert (
        "advice, which only you can try:\n"
        "  rank(…) is computed anew over all rows after every change: with PARTITION BY, O(N) → O(partition)\n"
        in ranked
    )
    assert "  leave out strategy='recompute' or refresh='full': orders O(N) → O(1)\n" in counted


def test_the_views_below_are_counted_in(shop: ev.Database) -> None:
    """What a changed order meets in the view that another view reads."""
    text = shop.view("over").explain()
    assert (
        "a changed row of orders costs O(matches): it meets all rows of customer with the same id: 1 on average" in text
    )


def test_analyze_measures_rows_and_time(shop: ev.Database) -> None:
    """What came in and went out since the view was made, and EXPLAIN ANALYZE says the same."""
    view = shop.view("named")
    text = view.explain("analyze")
    assert "50 rows in; 40 rows out; fan-out 0.8; " in text
    assert shop.sql("EXPLAIN ANALYZE named") == text
    with pytest.raises(ev.UnsupportedOperation, match="EXPLAIN ANALYZE measures a view"):
        shop.sql("EXPLAIN ANALYZE SELECT 1")


def test_a_table_that_never_changed_may_be_static(spark: SparkSession) -> None:
    """Where that lets the planner do better for those that do change; and not where it does not."""
    with ev.connect(spark=spark) as db:
        for name in ("r", "s", "t"):
            db.create_table(name, "a int, b int")
        view = db.create_view("v", "SELECT count(*) AS n FROM s, t, r WHERE s.a = t.a AND t.b = r.b")
        listed = db.create_view("w", "SELECT r.a, s.b AS c FROM r, s WHERE r.b = s.b")
        db.apply({name: [(i, i % 3) for i in range(6)] for name in ("r", "s", "t")})
        assert "static" not in view.explain(), "no other table has changed more often"
        for i in range(12):
            db.apply({"r": [(i, i % 3)]})
        assert "  create s with static=True: r O(matches) → O(1)\n" in view.explain()
        assert "static" not in listed.explain(), "nothing is gained"


def test_changes_that_nobody_reads_are_counted_apart(spark: SparkSession) -> None:
    """A view tree does not compute the change of its result unless somebody reads it."""
    with ev.connect(spark=spark) as db:
        table = db.create_table("t", "k int, x int")
        view = db.create_view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k")
        commit = table.insert([(i % 3, i) for i in range(9)])
        assert "9 rows in; 0 rows out, and 1 changes that nobody has read;" in view.explain("analyze")
        assert commit.changes["v"].num_rows == 3
        assert "9 rows in; 3 rows out; fan-out 0.333;" in view.explain("analyze")
