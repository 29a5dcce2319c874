"""Aggregates over ordered values: what they are where Spark leaves it open, and that a failure leaves no trace."""

from __future__ import annotations

import random

import pytest

import everview as ev

QUERY = """
SELECT k, median(x) AS m, percentile(x, array(0.1, 0.9)) AS p, percentile_approx(x, 0.5) AS a, mode(s) AS mo,
       collect_list(s) AS l, collect_set(s) AS st,
       listagg(s, ',') AS t, max_by(s, x, 2) AS b, bit_xor(x) AS bx, skewness(x) AS sk
FROM t GROUP BY k
"""


@pytest.fixture
def table(db: ev.Database) -> ev.Table:
    """A table with NULLs and duplicates to come."""
    return db.create_table("t", "k INT, x INT, s STRING")


def test_open_answers_are_defined(db: ev.Database, table: ev.Table) -> None:
    """Lists ascend, sets are sorted, the least of the most frequent is the mode, ties of max_by go to the greater value."""
    view = db.create_view(
        "v",
        "SELECT collect_list(s) AS l, collect_set(s) AS st, mode(s) AS m, listagg(s, ',') AS t, max_by(s, x, 2) AS b FROM t",
    )
    table.insert([(1, 1, "b"), (1, 3, "a"), (1, 3, "c"), (1, 2, "b"), (1, 0, "a"), (1, 3, None), (1, None, "d")])
    assert view.rows() == [(["a", "a", "b", "b", "c", "d"], ["a", "b", "c", "d"], "a", "a,a,b,b,c,d", ["c", "a"])]
    report = db.verify()
    assert report.views[0].recomputed_from == "plan"


def _change(db: ev.Database, gone: list[tuple[object, ...]], come: list[tuple[object, ...]]) -> None:
    with db.transaction() as tx:
        tx.delete("t", gone)
        tx.insert("t", come)


def test_a_stream_with_failures(db: ev.Database, table: ev.Table) -> None:
    """After every change, and every transaction that an assertion has rejected, the view is what Spark computes."""
    chance = random.Random(3)
    view = db.create_view("v", QUERY)
    db.create_assertion("small", "SELECT k FROM t WHERE x > 90")
    rows: list[tuple[object, ...]] = []
    for step in range(12):
        come = [
            (
                chance.choice((None, 1, 2, step)),
                chance.choice((None, 1, 2, 2, chance.randint(-9, 9))),
                chance.choice((None, "a", "b", "é")),
            )
            for _ in range(6)
        ]
        gone = chance.sample(rows, min(len(rows), 4))
        before = sorted(map(repr, view.rows()))
        with pytest.raises(ev.AssertionViolated):
            _change(db, gone, [*come, (1, 99, "z")])
        assert sorted(map(repr, view.rows())) == before
        _change(db, gone, come)
        for row in gone:
            rows.remove(row)
        rows += come
    db.verify()
    table.delete(rows)
    assert view.rows() == []


def test_unknown_choices_are_refused_with_a_rewrite(db: ev.Database, table: ev.Table) -> None:
    """What depends on the order of arrival, and sketches, are refused by their name in SQL."""
    for call, words in (
        ("first(s)", "min_by"),
        ("any_value(s)", "min_by"),
        ("kll_sketch_agg_bigint(x)", "percentile"),
    ):
        with pytest.raises(ev.UnsupportedQuery, match=words):
            db.create_view("v", f"SELECT k, {call} AS v FROM t GROUP BY k")


def test_keys_leave_no_choice(db: ev.Database) -> None:
    """What the grouping columns determine may be asked for with first, last or any_value; else a key is asked for."""
    db.create_table("customer", "id INT, name STRING", primary_key="id").insert([(1, "ann"), (2, None)])
    orders = db.create_table("orders", "no INT, customer INT, price INT", primary_key="no")
    joined = "orders o JOIN customer c ON o.customer = c.id"
    view = db.create_view(
        "v",
        f"SELECT c.id, first(c.name) AS n, any_value(upper(c.name)) AS u, sum(o.price) AS s FROM {joined} GROUP BY c.id",
    )
    single = db.create_view("w", "SELECT no, last(price) AS p FROM orders GROUP BY no")
    orders.insert([(1, 1, 5), (2, 1, 6), (3, 2, 7)])
    orders.delete([(2, 1, 6)])
    assert sorted(view.rows()) == [(1, "ann", "ANN", 5), (2, None, None, 7)]
    assert sorted(single.rows()) == [(1, 5), (3, 7)]
    db.verify()
    with pytest.raises(ev.UnsupportedQuery, match="primary key"):
        db.create_view("x", f"SELECT c.id, first(o.price) AS p FROM {joined} GROUP BY c.id")
