"""Aggregates over ordered values: what they are where Spark leaves it open, and that a failure leaves no trace."""

from __future__ import annotations

import random

import pytest

import everview as ev

QUERY = """
SELECT k, median(x) AS m, percentile(x, array(0.1, 0.9)) AS p, percentile_approx(x, 0.5) AS a, mode(s) AS mo,
       collect_list(s) AS l, collect_set(s) AS st, listagg(s, ',') AS t, max_by(s, x, 2) AS b, bit_xor(x) AS bx, skewness(x) AS sk
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
        ("approx_count_distinct(s)", "count\\(DISTINCT"),
        ("histogram_numeric(x, 3)", "width_bucket"),
    ):
        with pytest.raises(ev.UnsupportedQuery, match=words):
            db.create_view("v", f"SELECT k, {call} AS v FROM t GROUP BY k")
