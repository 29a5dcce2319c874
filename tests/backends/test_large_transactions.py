"""Transactions of very many rows run piece by piece, and nobody can tell but by the memory that they take."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import everview as ev
from everview.backends.embedded import large_transactions
from everview.backends.embedded.backend import EmbeddedBackend
from everview.backends.embedded.large_transactions import Advancing
from everview.backends.factorized_rows import FactorizedChange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "grouped": "SELECT s, count(*) AS n, sum(x) AS x, min(x) AS low, count(DISTINCT k) AS d FROM r GROUP BY s",
    "joined": "SELECT r.s, count(*) AS n, sum(q.x) AS x FROM r JOIN q ON r.k = q.k GROUP BY r.s",
    "listed": "SELECT r.id, q.id AS i FROM r JOIN q ON r.k = q.k AND r.x < q.x",
    "selves": "SELECT a.s, count(*) AS n FROM r a JOIN r b ON a.k = b.k GROUP BY a.s",
    "outer_joined": "SELECT r.id, q.s FROM r LEFT JOIN q ON r.id = q.id",
    "unmatched": "SELECT s FROM r WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.k = r.k)",
    "different": "SELECT k FROM r EXCEPT ALL SELECT k FROM q",
    "ranked": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY x, id) AS n FROM r",
    "top": "SELECT id, x FROM q ORDER BY x DESC, id LIMIT 5",
    "above": "SELECT sum(n) AS n FROM grouped",
    "divided": "SELECT k, sum(100 div (x + 1)) AS d FROM q GROUP BY k",
}
LAZY = ("selves", "different")


def rows(start: int, count: int, seed: int) -> pa.Table:
    """Rows with ids of their own, and keys that come again."""
    rng = random.Random(seed)
    made = [(start + i, rng.randrange(6), rng.choice(["a", "b", None]), rng.randrange(40)) for i in range(count)]
    columns = [pa.array(list(column)) for column in zip(*made, strict=True)]
    return pa.table(columns, names=["id", "k", "s", "x"])


def weighted(table: pa.Table, weight: int) -> pa.Table:
    """The rows as changes."""
    return table.append_column("_weight", pa.array([weight] * table.num_rows))


def joined(*parts: pa.Table) -> pa.Table:
    """All rows."""
    return pa.concat_tables(parts)


def make(db: ev.Database) -> None:
    """The tables and views."""
    db.create_table("r", "id bigint, k bigint, s string, x bigint", primary_key="id")
    db.create_table("q", "id bigint, k bigint, s string, x bigint")
    for name, query in VIEWS.items():
        db.create_view(name, query, lazy=name in LAZY)
    db.create_assertion("small", "SELECT id FROM r WHERE x > (SELECT max(x) + 1000 FROM q)")


def engine_of(db: ev.Database, piece_rows: int) -> EmbeddedBackend:
    """Its engine, which takes in so many rows at a time."""
    engine = db._core.backend
    assert isinstance(engine, EmbeddedBackend)
    engine.piece_rows = piece_rows
    return engine


def contents(db: ev.Database) -> dict[str, Any]:
    """The rows of all tables, and of views as far as they have an answer."""
    found: dict[str, Any] = {t: sorted(db.table(t), key=repr) for t in "rq"}
    for name in VIEWS:
        view = db.view(name)
        found[name] = "suspended" if view.suspension else sorted(view.rows(), key=repr)
    return found


def told(commit: Any) -> dict[str, list[Any]]:
    """The deltas of views that are not lazy."""
    return {n: sorted(d.to_pylist(), key=repr) for n, d in commit.changes.items() if n not in LAZY}


def test_pieces_are_as_good_as_the_whole(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inserts, deletes and both, duplicates, failing views and assertions: views and deltas are the reference's."""
    whole: list[bool] = []
    run = large_transactions.InPieces.run
    monkeypatch.setattr(large_transactions.InPieces, "run", lambda *given: (whole.append(run(*given)), whole[-1])[1])
    first, second = rows(0, 60, 1), rows(100, 40, 2)
    fails = rows(300, 20, 5).set_column(3, "x", pa.array([-1] * 20))
    steps: list[tuple[dict[str, pa.Table], bool]] = [
        ({"q": second, "r": first}, True),
        ({"r": weighted(first.slice(0, 30), -1), "q": joined(weighted(rows(200, 30, 3), 1), weighted(second, -1))}, True),
        ({"r": joined(weighted(rows(500, 9, 6), -1), weighted(rows(500, 9, 6), 1), weighted(rows(70, 8, 7), 1))}, False),
        ({"q": fails}, False),
        ({"q": weighted(fails, -1)}, True),
        ({"q": weighted(rows(200, 30, 3), -1), "r": weighted(first.slice(30), -1)}, True),
    ]  # fmt: skip
    rejected = [
        {"r": joined(rows(600, 20, 8), rows(600, 1, 8))},
        {"r": rows(700, 20, 9).set_column(3, "x", pa.array([*range(19), 9999]))},
        {"q": weighted(rows(800, 20, 9), -1)},
    ]
    with ev.connect(spark=spark) as db, ev.connect(backend="reference", spark=spark) as reference:
        for one in (db, reference):
            make(one)
        engine_of(db, 7)
        for number, (change, in_pieces) in enumerate(steps):
            ours, theirs = db.apply(change), reference.apply(change)
            assert (told(ours), ours.version, set(ours.suspended)) == (
                told(theirs),
                theirs.version,
                set(theirs.suspended),
            )
            assert contents(db) == contents(reference), number
            assert whole.pop() is in_pieces, number
            if number == 0:
                for wrong in rejected:
                    for one in (db, reference):
                        with pytest.raises((ev.InvalidChange, ev.AssertionViolated)):
                            one.apply(wrong)
                    assert contents(db) == contents(reference)
        for name in ("grouped", "ranked", "listed"):
            both = [
                one.view(name).changes(since=0).to_arrow().drop_columns("_commit_timestamp") for one in (db, reference)
            ]
            assert sorted(map(repr, both[0].to_pylist())) == sorted(map(repr, both[1].to_pylist()))


def test_changes_by_key_run_in_pieces(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upserts and deletes by key, also what is undone of them; a key that is named twice, or is absent, is rejected."""
    whole: list[bool] = []
    run = large_transactions.InPieces.run
    monkeypatch.setattr(large_transactions.InPieces, "run", lambda *given: (whole.append(run(*given)), whole[-1])[1])
    with ev.connect(spark=spark) as db, ev.connect(backend="reference", spark=spark) as reference:
        both = (db, reference)
        for one in both:
            make(one)
            one.apply({"r": rows(0, 60, 1), "q": rows(100, 40, 2)})
        engine = engine_of(db, 7)
        ours, theirs = (one.table("r").upsert(rows(30, 60, 3)) for one in both)
        assert (told(ours), whole) == (told(theirs), [True])
        assert contents(db) == contents(reference)
        ours, theirs = (one.table("r").delete_keys(list(range(20, 50))) for one in both)
        assert (told(ours), whole) == (told(theirs), [True, True])
        assert contents(db) == contents(reference)
        before = contents(db), db.version
        with pytest.raises(ev.InvalidChange, match="twice"):
            db.table("r").upsert(joined(rows(0, 20, 4), rows(0, 1, 4)))
        with pytest.raises(ev.InvalidChange, match="9999"):
            db.table("r").delete_keys([*range(10), 9999])
        with pytest.raises(ev.AssertionViolated):
            db.table("r").upsert(rows(0, 20, 5).set_column(3, "x", pa.array([*range(19), 9999])))
        assert whole == [True, True, False, True]

        def refuses(*_given: object) -> Any:
            raise ev.StorageFailed("no room")

        journal, engine.journal = engine.journal, refuses
        for change in (
            lambda: db.table("r").upsert(rows(10, 30, 6)),
            lambda: db.table("r").delete_keys(list(range(18))),
        ):
            with pytest.raises(ev.StorageFailed):
                change()
        engine.journal = journal
        assert (contents(db), db.version) == before
        for one in both:
            one.table("r").upsert(rows(5, 30, 7))
        assert contents(db) == contents(reference)


def test_what_is_not_logged_is_undone(spark: SparkSession) -> None:
    """A log that refuses, or a limit that is passed after some pieces, leaves everything as it was."""
    with ev.connect(spark=spark) as db:
        make(db)
        engine = engine_of(db, 10)
        db.apply({"r": rows(0, 50, 1), "q": rows(100, 50, 2)})
        before = contents(db), db.version

        def refuses(*_given: object) -> Any:
            raise ev.StorageFailed("no room")

        journal, engine.journal = engine.journal, refuses
        with pytest.raises(ev.StorageFailed):
            db.apply({"r": rows(200, 50, 3)})
        engine.journal = journal
        assert (contents(db), db.version) == before
        engine.piece_rows = 2000
        engine.limit_memory(1_000_000)
        with pytest.raises(ev.OutOfMemory, match="memory_limit"):
            db.apply({"r": rows(1000, 20_000, 4)})
        assert (contents(db), db.version) == before
        db.table("r").insert(rows(300, 3, 5))
        assert db.version == before[1] + 1


@pytest.mark.parametrize("options", [{}, {"memory_limit": "1GB"}])
def test_products_are_not_expanded(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    """Nobody makes the rows of a product to count them."""
    with ev.connect(spark=spark, **options) as db:
        db.create_table("t", "a bigint, b bigint", retain=False)
        db.create_view("v", "SELECT a, sum(b) AS b FROM t GROUP BY a")
        monkeypatch.setattr(FactorizedChange, "given", property(lambda _: pytest.fail("its rows were made")))
        db.apply({"t": ev.Product(pa.table({"a": [1, 2]}), pa.table({"b": [3, 4, 5]}))})
        assert sorted(db.view("v").rows()) == [(1, 12), (2, 12)]


def test_progress_is_shown() -> None:
    """It hears of every piece of a large transaction, and of nothing else."""
    seen: list[int] = []

    class Shown:
        def advance(self, amount: int) -> None:
            seen.append(amount)

    def progress(total: int) -> AbstractContextManager[Advancing]:
        seen.append(total)
        return nullcontext(Shown())

    with ev.connect() as db:
        engine_of(db, 40).progress = progress
        table = db.create_table("t", "id bigint, k bigint, s string, x bigint")
        table.insert(rows(0, 40, 1))
        table.insert(rows(0, 100, 1))
    assert seen == [100, 40, 40, 20]


def test_recursive_views_hold_up_their_own_tables_only(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a recursive view, or one that is computed anew, reads runs whole; other tables of the database run in pieces."""
    tried: list[str] = []
    run = large_transactions.InPieces.run

    def noted(self: large_transactions.InPieces, pieces: list[Any], progress: large_transactions.Progress) -> bool:
        tried.append(pieces[0].table)
        return run(self, pieces, progress)

    monkeypatch.setattr(large_transactions.InPieces, "run", noted)
    with ev.connect(spark=spark) as db:
        engine_of(db, piece_rows=3)
        for name in ("e", "f", "r"):
            db.create_table(name, "a bigint, b bigint")
        reached = db.create_view(
            "reached",
            "WITH RECURSIVE p(a, b, n) AS (SELECT a, b, 1 FROM e UNION ALL SELECT p.a, e.b, n + 1 FROM p JOIN e ON p.b = e.a"
            " WHERE n < 3) SELECT * FROM p",
        )
        anew = db.create_view("anew", "SELECT count(*) AS n FROM f", strategy="recompute")
        counted = db.create_view("counted", "SELECT a, count(*) AS n FROM r GROUP BY a")
        ring = [(i, (i + 1) % 7) for i in range(7)]
        for name in ("e", "f", "r"):
            db.table(name).insert(ring)
        assert sorted(reached.rows()) == sorted((a, (a + n) % 7, n) for a in range(7) for n in (1, 2, 3))
        assert anew.rows() == [(7,)]
        assert sorted(counted.rows()) == [(a, 1) for a in range(7)]
        assert tried == ["r"]


def test_static_tables_are_loaded_in_pieces(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """One transaction, with views that are there or come later; what fails leaves the table to be loaded; then it is fixed."""
    ran: list[bool] = []
    run = large_transactions.InPieces.run
    monkeypatch.setattr(large_transactions.InPieces, "run", lambda *given: (ran.append(run(*given)), ran[-1])[1])
    query = "SELECT q.s, count(*) AS n, sum(q.x) AS x FROM r JOIN q ON r.k = q.k GROUP BY q.s"
    dimension, facts = rows(0, 40, 1), rows(100, 40, 2)
    with ev.connect(spark=spark) as db, ev.connect(backend="reference", spark=spark) as reference:
        for one in (db, reference):
            one.create_table("r", "id bigint, k bigint, s string, x bigint")
            one.create_table("q", "id bigint, k bigint, s string, x bigint", primary_key="id", static=True)
            one.create_view("before", query)
        engine_of(db, 7)
        for one in (db, reference):
            with pytest.raises(ev.InvalidChange, match="more than one row with the same primary key"):
                one.apply({"q": joined(dimension, dimension.slice(3, 1))})
            assert one.apply({"q": dimension, "r": facts}).version == 1
            one.create_view("after", query)
            with pytest.raises(ev.InvalidChange, match="static"):
                one.table("q").insert(rows(900, 20, 3))
            one.table("r").insert(rows(200, 30, 4))
        assert ran == [False, True, True]
        for name in ("before", "after"):
            assert sorted(db.view(name), key=repr) == sorted(reference.view(name), key=repr)
            assert len(db.view(name)) > 1
