"""The database's clock: ``now()`` in a view, temporal filters, retention."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import everview as ev
from everview.backends.embedded.operators.base import Arrangement, Searched
from everview.backends.embedded.operators.table_arrangement import TableColumns
from everview.backends.embedded.vectors import Batch, Ints

START = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def events(db: ev.Database) -> ev.Table:
    """A table of moments, some of them unknown."""
    return db.create_table("events", "id INT, k INT, at TIMESTAMP, d DATE, x INT")


VIEWS = {
    "recent": "SELECT id FROM events WHERE at > now() - INTERVAL 1 HOUR",
    "due": "SELECT id, x FROM events WHERE current_timestamp() >= at + INTERVAL 2 HOURS",
    "between_bounds": "SELECT k, sum(x) AS s FROM events WHERE at > now() - INTERVAL 3 HOURS AND at <= now() GROUP BY k",
    "today": "SELECT k, count(*) AS n FROM events WHERE d = current_date() GROUP BY k",
    "week": "SELECT k, sum(x) AS s FROM events WHERE d >= date_sub(current_date(), 7) GROUP BY k",
    "age": "SELECT id, datediff(current_date(), d) AS days FROM events",
    "either": "SELECT id FROM events WHERE at > now() OR k = 1",
    "joined": "SELECT a.id, b.x FROM events a JOIN events b ON a.k = b.k WHERE a.at > now() AND b.at <= now() + INTERVAL 1 DAY",
    "subquery": "SELECT id FROM events WHERE k IN (SELECT k FROM events WHERE at > now())",
    "local": "SELECT id, localtimestamp() AS l, unix_timestamp() AS u FROM events WHERE k = 2",
}


def _row(chance: random.Random, number: int) -> tuple[object, ...]:
    at = None if chance.random() < 0.1 else START + timedelta(minutes=chance.randint(-400, 1500))
    day = None if chance.random() < 0.1 else START.date() + timedelta(days=chance.randint(-9, 3))
    return number % 40, chance.choice((None, 1, 2, 3)), at, day, chance.randint(-5, 5)


def test_views_move_with_the_clock(db: ev.Database, events: ev.Table) -> None:
    """After changes and advances, forth and back, each view is what Spark computes for the clock's moment."""
    chance = random.Random(5)
    rows = [_row(chance, i) for i in range(30)]
    events.insert(rows)
    db.advance(START)
    for name, query in VIEWS.items():
        db.create_view(name, query)
    assert db.view("subquery").rows(), "rows of after the clock's moment, though not of after the present one"
    moment = START
    for number, step in enumerate((0, 20, 60, 61, 600, -300, 1440, 0)):
        moment += timedelta(minutes=step)
        gone = chance.sample(rows, 3)
        come = [_row(chance, i) for i in range(4)]
        with db.transaction() as tx:
            tx.delete("events", gone)
            tx.insert("events", come)
        for row in gone:
            rows.remove(row)
        rows += come
        db.advance(moment)
        assert db.now == moment
        if number in (1, 5, 7):  # Spark needs seconds for ten views
            db.verify()


def test_the_clock_stands_until_it_is_advanced(db: ev.Database, events: ev.Table) -> None:
    """Before the first advance it shows when the first view asked for the time, and reading does not move it."""
    assert db.now is None
    before = datetime.now(UTC)
    view = db.create_view("recent", "SELECT id, now() AS at FROM events")
    events.insert([(1, 1, None, None, 0)])
    shown = view.rows()
    assert before <= db.now <= datetime.now(UTC)
    assert shown == view.rows() == [(1, db.now)]
    commit = db.advance()
    assert db.now > before
    assert commit.changes["recent"].num_rows == 2
    assert "__clock" not in db.tables


def test_nobody_else_changes_the_clock(db: ev.Database) -> None:
    """Its name is taken, it takes no changes, and a moment has a time zone."""
    db.advance(START)
    with pytest.raises(ev.InvalidChange, match="advance"):
        db.apply({"__clock": [(START,)]})
    with pytest.raises(ev.InvalidQuery):
        db.create_table("__CLOCK", "a INT")
    with pytest.raises(ev.InvalidChange, match="time zone"):
        db.advance(datetime(2024, 1, 1))
    assert db.now == START


def test_a_failed_advance_leaves_the_clock(db: ev.Database, events: ev.Table) -> None:
    """An assertion may stop the clock, and then nothing has moved."""
    events.insert([(1, 1, START + timedelta(hours=1), None, 0)])
    db.advance(START)
    recent = db.create_view("recent", VIEWS["recent"])
    db.create_assertion("not_late", "SELECT id FROM events WHERE at < now()")
    with pytest.raises(ev.AssertionViolated):
        db.advance(START + timedelta(hours=9))
    assert db.now == START
    assert recent.rows() == [(1,)]
    db.verify()


def test_retention_deletes_what_the_clock_leaves_behind(db: ev.Database, events: ev.Table) -> None:
    """Rows go when the condition turns false; those for which it is NULL stay."""
    rows = [(i, 1, START + timedelta(hours=i), None, i) for i in range(5)] + [(9, 1, None, None, 9)]
    events.insert(rows)
    total = db.create_view("total", "SELECT sum(x) AS s FROM events")
    db.advance(START)
    db.retain("events", where="at >= now() - INTERVAL 1 HOUR")
    assert total.rows() == [(19,)]
    db.advance(START + timedelta(hours=3))
    assert sorted(r[0] for r in events.rows()) == [2, 3, 4, 9]
    db.retain("events", where="at >= now()")
    assert sorted(r[0] for r in events.rows()) == [3, 4, 9]
    db.advance(START + timedelta(hours=9))
    assert total.rows() == [(9,)]
    assert list(db.views) == ["total"]
    with pytest.raises(ev.InvalidChange, match="depend on the time"):
        db.retain("events", where="x > 0")
    db.verify()


def test_the_clock_of_a_database_on_disk(tmp_path: Path) -> None:
    """It is logged like any transaction: a database opened again shows the same time and the same rows."""
    with ev.connect(str(tmp_path / "db")) as db:
        db.create_table("events", "id INT, at TIMESTAMP").insert([(1, START), (2, START + timedelta(hours=5))])
        db.advance(START)
        db.create_view("recent", "SELECT id FROM events WHERE at > now() - INTERVAL 1 HOUR")
        db.retain("events", where="at > now() - INTERVAL 1 DAY")
        db.advance(START + timedelta(hours=2))
    with ev.connect(str(tmp_path / "db")) as db:
        assert db.now == START + timedelta(hours=2)
        assert db.view("recent").rows() == [(2,)]
        db.advance(START + timedelta(hours=25))
        assert db.view("recent").rows() == []
        assert db.table("events").rows() == [(2, START + timedelta(hours=5))]


HOUR = timedelta(hours=1)


def test_a_watermark_moves_the_clock_and_leaves_late_rows_out(db: ev.Database, events: ev.Table) -> None:
    """Late is what lies before the watermark of the transactions so far; clock and retention follow it, and never go back."""
    recent = db.create_view("recent", "SELECT id FROM events WHERE at > now() - INTERVAL 1 HOUR")
    db.advance(START - 100 * HOUR)
    db.watermark("events", "at", "10 minutes")
    db.retain("events", where="at > now() - INTERVAL 5 HOURS")
    first = events.insert([(1, 1, START, None, 1), (2, 1, START - 3 * HOUR, None, 1), (3, 1, None, None, 1)])
    assert first.caught == {}, "there was no watermark before"
    assert db.now == START - HOUR / 6
    assert recent.rows() == [(1,)]
    late = events.insert([(4, 1, START - HOUR / 5, None, 1), (5, 1, START - HOUR / 6, None, 1), (6, 1, None, None, 1)])
    assert late.caught["watermark of events"].column("id").to_pylist() == [4]
    assert "1 rows caught by watermark of events" in repr(late)
    assert sorted(r[0] for r in events.rows()) == [1, 2, 3, 5, 6]
    events.delete([(2, 1, START - 3 * HOUR, None, 1)])
    events.insert([(7, 1, START + 9 * HOUR, None, 1)])
    assert sorted(r[0] for r in events.rows()) == [3, 6, 7], "retention has followed"
    assert db.now == START + 9 * HOUR - HOUR / 6
    events.delete([(7, 1, START + 9 * HOUR, None, 1)])
    assert db.now == START + 9 * HOUR - HOUR / 6
    db.verify()
    db.drop("recent")
    db.drop("events")
    assert "events" not in db.tables


def test_the_clock_follows_the_slowest_watermark(db: ev.Database, events: ev.Table) -> None:
    """As with Spark's policy ``min``; before there are events it shows 1970."""
    other = db.create_table("other", "at TIMESTAMP")
    db.watermark("events", "AT", timedelta(minutes=30))
    db.watermark("other", "at", "0 seconds")
    assert db.now == datetime(1970, 1, 1, tzinfo=UTC)
    events.insert([(1, 1, START, None, 1)])
    assert db.now == datetime(1970, 1, 1, tzinfo=UTC)
    other.insert([(START + HOUR,)])
    assert db.now == START - HOUR / 2
    other.insert([(START - 9 * HOUR,), (START + HOUR,)])
    assert other.rows() == [(START + HOUR,)] * 2
    assert list(db.views) == []


def test_what_a_watermark_cannot_be(db: ev.Database, events: ev.Table) -> None:
    """A column that is no moment, a delay that is no interval, a table that is not there."""
    with pytest.raises(ev.InvalidQuery, match="the time of an event is a timestamp"):
        db.watermark("events", "x", "10 minutes")
    for delay in ("soon", "-5 minutes", "", timedelta(seconds=-1), 5, "1 day' + now() + '"):
        with pytest.raises(ev.InvalidQuery):
            db.watermark("events", "at", delay)  # type: ignore[arg-type]
    with pytest.raises(ev.UnknownName):
        db.watermark("event", "at", "10 minutes")
    with pytest.raises(ev.UnknownName):
        db.watermark("events", "att", "10 minutes")
    assert db.now is None


def test_the_watermark_of_a_database_on_disk(tmp_path: Path) -> None:
    """It is there again when the database is opened."""
    with ev.connect(str(tmp_path / "db")) as db:
        db.create_table("events", "id INT, at TIMESTAMP")
        db.watermark("events", "at", "1 hour")
        db.table("events").insert([(1, START)])
    with ev.connect(str(tmp_path / "db")) as db:
        assert db.now == START - HOUR
        commit = db.table("events").insert([(2, START - 2 * HOUR), (3, START + HOUR)])
        assert commit.caught["watermark of events"].num_rows == 1
        assert db.now == START


def test_advancing_the_clock_looks_at_what_expires(spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many rows in a temporal filter, those between the old bound and the new one are fetched, and no others."""
    rows = 100_000
    with ev.connect(spark=spark) as db:  # type: ignore[arg-type]
        db.create_table("events", "id INT, at TIMESTAMP")
        ids = pa.array(range(rows), pa.int32())
        at = pa.array([int(START.timestamp() * 1e6) + i * 1_000_000 for i in range(rows)], pa.timestamp("us", "UTC"))
        db.table("events").insert(pa.table({"id": ids, "at": at}))
        db.advance(START)
        recent = db.create_view("recent", "SELECT id FROM events WHERE at > now()")
        db.retain("events", where="at > now() - INTERVAL 1 HOUR")
        fetched: list[int] = []
        for searched in (Arrangement, TableColumns):
            original = searched.at

            def counted(self: Searched, slots: Ints, at: Callable[..., Batch] = original) -> Batch:
                fetched.append(len(slots))
                return at(self, slots)

            monkeypatch.setattr(searched, "at", counted)
        for second, expired in ((50, 50), (57, 7), (4000, 3943)):
            fetched.clear()
            commit = db.advance(START + timedelta(seconds=second))
            assert commit.changes["recent"].num_rows == expired
            assert sum(fetched) <= 4 * expired + 10
        assert db.table("events").to_arrow().num_rows == rows - 401
        monkeypatch.undo()
        assert recent.to_arrow().num_rows == rows - 4001
