"""LIMIT without ORDER BY under a declared order: the same first rows as Spark's, whatever comes and goes."""

from __future__ import annotations

import random

import pytest

import everview as ev

QUERIES = {
    "rows": ("SELECT * FROM t LIMIT 4", "primary key"),
    "hidden key": ("SELECT x FROM t WHERE x > 1 LIMIT 3 OFFSET 1", "primary key"),
    "columns": ("SELECT s AS text, b, a FROM t LIMIT 5", ["text", "b", "a"]),
    "groups": ("SELECT s, count(*) AS n FROM t GROUP BY s LIMIT 2", "s"),
    "in from": ("SELECT sum(x) AS v, count(*) AS n FROM (SELECT * FROM t LIMIT 4) q", "primary key"),
    "in a common table": (
        "WITH q AS (SELECT a, b FROM t LIMIT 3) SELECT x.a, y.a AS c FROM q x JOIN q y ON x.a = y.b",
        "primary key",
    ),
    "distinct": ("SELECT DISTINCT x, s FROM t OFFSET 2", ["s", "x"]),
    "pipe": ("FROM t |> WHERE x IS NOT NULL |> LIMIT 2 |> SELECT x", "primary key"),
    "join": ("SELECT t.a, t.b, u.a AS c, u.b AS d FROM t JOIN t AS u ON t.x = u.b LIMIT 3", ["c", "a", "b", "d"]),
}


@pytest.fixture
def table(db: ev.Database) -> ev.Table:
    """A table whose primary key is not in the order of its columns."""
    return db.create_table("t", "a INT, b INT, x INT, s STRING, PRIMARY KEY (b, a)")


def test_a_stream_of_changes(db: ev.Database, table: ev.Table) -> None:
    """Also where the first rows are deleted, and where nothing is left."""
    for name, (query, order) in QUERIES.items():
        db.create_view(name, query, order_by=order)
    chance = random.Random(3)

    def row() -> tuple[object, ...]:
        return chance.randrange(9), chance.randrange(9), chance.choice((None, *range(5))), chance.choice((None, *"abc"))

    table.upsert(list({r[:2]: r for r in (row() for _ in range(25))}.values()))
    rows = db.view("rows")
    for _ in range(2):
        first = sorted(rows.rows(), key=lambda r: (r[1], r[0]))
        assert first == sorted(table.rows(), key=lambda r: (r[1], r[0]))[:4]
        with db.transaction() as tx:
            tx.delete("t", first)
            tx.upsert("t", [row()])
    db.verify()
    assert "ORDER BY `b`, `a`" in (rows.query or "")
    table.truncate()
    assert rows.rows() == []


def test_the_order_is_kept_by_replacing_and_recomputing(db: ev.Database, table: ev.Table) -> None:
    """replace_view takes it too; a view that is recomputed has the same rows."""
    table.insert([(1, 2, 3, "a"), (2, 1, 4, "b"), (3, 3, 5, None)])
    view = db.create_view("v", "SELECT a FROM t LIMIT 2", order_by="primary key")
    full = db.create_view("f", "SELECT a FROM t LIMIT 2", order_by="primary key", strategy="recompute")
    assert sorted(view.rows()) == sorted(full.rows()) == [(1,), (2,)]
    db.replace_view("v", "SELECT a FROM t LIMIT 1", order_by=["a", "b"])
    assert db.view("v").rows() == [(1,)]
    table.delete([(2, 1, 4, "b")])
    assert sorted(full.rows()) == [(1,), (3,)]


@pytest.mark.parametrize(
    ("query", "order", "words"),
    [
        ("SELECT a FROM t LIMIT 2", None, "order_by='primary key'"),
        ("SELECT a, x FROM t LIMIT 2", "x", r"ORDER BY `x` leaves open.*two rows may be equal in it"),
        ("SELECT a, b, x FROM t LIMIT 2", ["x", "a"], r"add the columns of a key: \(a, b\)"),
        ("SELECT a FROM t", "primary key", "the query has none"),
        ("SELECT a FROM t ORDER BY a LIMIT 3", "primary key", "the query has none"),
        ("SELECT a FROM t WHERE a IN (SELECT b FROM t LIMIT 3)", "primary key", "the query has none"),
        ("SELECT k FROM plain LIMIT 3", "primary key", "table 'plain' has no primary key"),
        ("SELECT a FROM t JOIN plain ON a = k LIMIT 3", "primary key", "reads plain, t.*list the columns"),
        ("SELECT s, count(*) FROM t GROUP BY s LIMIT 3", "primary key", "b"),
        ("SELECT a FROM t LIMIT 2", ["nope"], "nope"),
        ("SELECT a FROM t LIMIT 2", [], "no order"),
        ("SELECT a FROM t LIMIT 2", [1], "no order"),
    ],
)
def test_what_is_no_order_is_refused(
    db: ev.Database, table: ev.Table, query: str, order: list[str] | str | None, words: str
) -> None:
    """In words that say what to declare instead."""
    db.create_table("plain", "k INT")
    with pytest.raises(ev.EverviewError, match=words):
        db.create_view("v", query, order_by=order)
    assert "v" not in db.views


def test_a_frame_says_its_order_itself(db: ev.Database, table: ev.Table) -> None:
    """There is no text to put an ORDER BY in."""
    with pytest.raises(ev.UnsupportedOperation, match="orderBy"):
        db.create_view("v", db.spark_table("t").limit(3), order_by="primary key")
