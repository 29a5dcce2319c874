"""What a commit and a view say of the work that was done: which views were brought up to date, and in how many seconds."""

from __future__ import annotations

import pytest

import everview as ev


def test_refreshed_names_every_view_over_what_changed(db: ev.Database) -> None:
    """Also a top-k whose rows stay the same, and a view over it, which had nothing to do; no lazy view, no assertion."""
    table = db.create_table("t", "x int")
    db.create_table("other", "x int")
    db.create_view("top", "SELECT x FROM t ORDER BY x DESC LIMIT 2")
    db.create_view("above", "SELECT sum(x) AS s FROM top")
    db.create_view("elsewhere", "SELECT x FROM other")
    db.create_assertion("positive", "SELECT x FROM t WHERE x < 0")
    table.insert([(8,), (9,)])
    commit = table.insert([(1,), (2,)])
    assert dict(commit.changes) == {}
    assert list(commit.refreshed) == ["top", "above"]
    assert str(commit.refreshed["above"]) == "incremental (nothing that it reads has changed)"
    assert commit.refreshed["top"].reason != commit.refreshed["above"].reason
    assert [db.view(name).stats()["updates"] for name in ("top", "above", "elsewhere")] == [2, 1, 0]
    assert db.apply({"t": []}).refreshed == {}
    assert list(db.apply({"t": [(1,)], "other": [(1,)]}).refreshed) == ["top", "above", "elsewhere"]
    assert table.insert([(20,)]).refreshed["above"].reason != "nothing that it reads has changed"


def test_lazy_views_are_not_refreshed_by_a_commit(spark: object) -> None:
    """They are brought up to date when they are read, and their seconds grow then."""
    with ev.connect(spark=spark) as db:  # type: ignore[arg-type]
        table = db.create_table("t", "x int")
        view = db.create_view("later", "SELECT sum(x) AS s FROM t", lazy=True)
        db.create_view("now", "SELECT count(*) AS n FROM t")
        assert list(table.insert([(1,), (2,)]).refreshed) == ["now"]
        assert view.rows() == [(3,)]
        assert view.stats()["updates"] == 1
        assert view.stats()["seconds"] > 0


def test_seconds_are_the_views_own(db: ev.Database) -> None:
    """A view that a commit does not reach has none, and together they are no more than the commits took."""
    table = db.create_table("t", "k int, x int")
    db.create_table("other", "x int")
    names = {
        "sums": "SELECT k, sum(x) AS s FROM t GROUP BY k",
        "above": "SELECT count(*) AS n FROM sums WHERE s > 5",
        "squares": "SELECT a.k, count(*) AS n FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
        "alias": "SELECT k, s FROM sums",
        "elsewhere": "SELECT x FROM other",
    }
    views = {name: db.create_view(name, query) for name, query in names.items()}
    assert {v.stats()["seconds"] for v in views.values()} == {0.0}
    commits = [table.insert([(i % 7, i) for i in range(200)]), table.delete([(i % 7, i) for i in range(50)])]
    seconds = {name: view.stats()["seconds"] for name, view in views.items()}
    assert seconds["elsewhere"] == 0.0
    assert min(seconds[name] for name in ("sums", "above", "squares")) > 0
    assert sum(seconds.values()) <= sum(c.seconds for c in commits)
    assert [views[name].stats()["seconds"] for name in seconds] == list(seconds.values())  # asking adds nothing


def test_seconds_of_what_views_share_are_shared(spark: object) -> None:
    """Equal views have equal parts of one operator's time; one that comes later has none of the time before it."""
    with ev.connect(spark=spark) as db:  # type: ignore[arg-type]
        table = db.create_table("t", "k int, x int")
        query = "SELECT k, sum(x) AS s FROM t GROUP BY k"
        first, second = db.create_view("first", query), db.create_view("second", query)
        table.insert([(i % 7, i) for i in range(200)])
        before = first.stats()["seconds"]
        assert before == second.stats()["seconds"] > 0
        third = db.create_view("third", query)
        assert third.stats()["seconds"] == 0.0
        table.insert([(i % 7, i) for i in range(200)])
        late = third.stats()["seconds"]
        assert late > 0
        assert first.stats()["seconds"] - before == pytest.approx(late)
        db.drop("second")
        db.drop("third")
        kept = first.stats()["seconds"]
        table.insert([(i % 7, i) for i in range(200)])
        assert first.stats()["seconds"] > kept


def test_state_is_named_by_structure(spark: object) -> None:
    """Bytes are told by operator, kind and structure, with the numbers that explain prints, and not in sentences."""
    with ev.connect(spark=spark) as db:  # type: ignore[arg-type]
        table = db.create_table("t", "k int, x int")
        queries = {
            "extremes": "SELECT k, min(x) AS low FROM t GROUP BY k",
            "squares": "SELECT count(*) AS n FROM t a JOIN t b ON a.k = b.k",
            "top": "SELECT a.x FROM t a LEFT JOIN t b ON a.k = b.x ORDER BY a.x LIMIT 3",
            "bands": "SELECT a.x FROM t a JOIN t b ON a.x < b.x",
        }
        views = {name: db.create_view(name, query) for name, query in queries.items()}
        table.insert([(i % 3, i) for i in range(10)])
        told = {name: view.stats()["bytes"] for name, view in views.items()}
        for name, sizes in told.items():
            for structure in sizes:
                number, kind, _ = structure.split(".", maxsplit=2)
                assert f"{number} " in views[name].explain(), structure
                assert kind.isidentifier(), structure
                assert not any(c.isspace() for c in structure), structure
        assert told["extremes"]["#1.aggregate.groups"] > 0
        assert sum(told["squares"].values()) > 0
