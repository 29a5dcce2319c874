"""How a commit brought its views up to date, and the option that decides it."""

from __future__ import annotations

import pytest

import everview as ev


def test_a_commit_says_how_views_were_refreshed(db: ev.Database, backend: str) -> None:
    """Every view that the transaction touched is named, with how and why; assertions are not views."""
    table = db.create_table("t", "x int")
    db.create_table("other", "x int")
    db.create_view("v", "SELECT sum(x) AS s FROM t")
    db.create_view("w", "SELECT s + 1 AS s FROM v", refresh="incremental")
    db.create_view("u", "SELECT x FROM other")
    db.create_assertion("a", "SELECT x FROM t WHERE x < 0")
    commit = table.insert([(1,)])
    how, reason = {
        "embedded": ("incremental", "every operator of the view takes in deltas"),
        "spark": ("incremental", "every operator of the view takes in deltas"),
        "reference": ("full", "the reference backend recomputes every view"),
    }[backend]
    assert {name: (r.how, r.reason) for name, r in commit.refreshed.items()} == {"v": (how, reason), "w": (how, reason)}
    assert str(commit.refreshed["v"]) == f"{how} ({reason})"
    assert commit.refreshed.keys() == {"v", "w"}
    assert db.apply({"other": [(1,)]}).refreshed.keys() == {"u"}
    assert commit.refreshed.keys() == {"v", "w"}
    assert db.apply({}).refreshed == {}


def test_strictly_incremental(db: ev.Database, backend: str) -> None:
    """A backend that only recomputes refuses a view that must never be."""
    db.create_table("t", "x int")
    if backend == "reference":
        with pytest.raises(ev.UnsupportedOperation, match="recomputes every view, which refresh='incremental_strict'"):
            db.create_view("v", "SELECT x FROM t", refresh="incremental_strict")
        return
    view = db.create_view("v", "SELECT x FROM t", refresh="incremental_strict")
    assert db.apply({"t": [(1,)]}).refreshed["v"].how == "incremental"
    assert view.rows() == [(1,)]


def test_full_refresh(db: ev.Database) -> None:
    """A view that is computed anew has the same rows and deltas, and says how it came to them."""
    table = db.create_table("t", "k string, x int")
    view = db.create_view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k", refresh="full")
    table.insert([("a", 1), ("b", 2)])
    commit = table.delete([("b", 2)])
    assert commit.refreshed["v"].how == "full"
    assert commit.changes["v"].to_pylist() == [{"k": "b", "s": 2, "_weight": -1}]
    assert view.rows() == [("a", 1)]
    assert "anew" in view.explain() or "recompute" in view.explain()


def test_refresh_by_cost(db: ev.Database) -> None:
    """Whatever is chosen, the commit says what and why, and the rows are right."""
    table = db.create_table("t", "x int")
    view = db.create_view("v", "SELECT count(*) AS n FROM t", refresh="auto")
    for commit in (table.insert([(i,) for i in range(100)]), table.delete([(i,) for i in range(99)])):
        assert commit.refreshed["v"].how in ("incremental", "full")
        assert commit.refreshed["v"].reason
    assert view.rows() == [(1,)]
