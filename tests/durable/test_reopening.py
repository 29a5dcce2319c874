"""Opening a database again: everything that was said of its tables and views, every row, every position of a source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import everview as ev
from everview.algebra.floats import FloatRing
from everview.algebra.registry import forget
from everview.catalog import ViewDefinition, ViewOptions
from everview.relational.expressions import Call, Column
from everview.relational.nodes import Aggregate, AggregateCall, Distinct, Join, JoinKind, Project
from everview.relational.types import BOOLEAN, FLOAT64, INT32, INT64
from everview.session.durable.recovery import manifest_in_force
from everview.session.feeds.lake_feed import read_content
from everview.storage.definitions import definition_to_json
from tests.durable.shop import add_view, check, contents, make_shop, prepared, transaction


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_everything_is_there_again(folder: Path, with_checkpoint: bool) -> None:
    """Rows, views, version and definitions are those of before, from a checkpoint, a log, or both."""
    with ev.connect(folder) as db:
        make_shop(db)
        for number in range(6):
            db.apply(transaction(number))
        if with_checkpoint:
            db.checkpoint()
        for number in range(6, 9):
            db.apply(transaction(number))
        before, version = contents(db), db.version
        said = [definition_to_json(d) for d in db._core.catalog.definitions]
    with ev.connect(folder) as db:
        assert (contents(db), db.version) == (before, version)
        assert [definition_to_json(d) for d in db._core.catalog.definitions] == said
        db.apply(transaction(9))
        check(db)


def test_options_and_flags_come_back(folder: Path) -> None:
    """Keys, constraints, static and retain flags, and every option of a view."""
    options = {
        "lazily": ViewOptions(lazy=True),
        "first": ViewOptions(strategy="first_order", refresh="incremental_strict"),
        "listed": ViewOptions(representation="listing"),
    }
    with ev.connect(folder) as db:
        db.create_table("p", "a INT NOT NULL, b STRING", primary_key="a", unique=["b"])
        db.create_table("c", "x INT, y INT", foreign_keys={"y": "p"})
        db.create_table("gone", "x INT", retain=False)
        db.create_table("fixed", "x INT", static=True)
        db.apply({"fixed": [(1,)]})
        counted = db._core.catalog.table("c").scan
        for name, chosen in options.items():
            add_view(db, name, Aggregate(counted, (), (AggregateCall("count", (), INT64),), ("n",)), chosen)
        db.checkpoint()
    with ev.connect(folder) as db:
        assert db.table("p").primary_key == ("a",)
        assert "retain=False" in repr(db.table("gone"))
        assert {n: db._core.catalog.view(n).options for n in options} == options
        with pytest.raises(ev.InvalidChange, match="static"):
            db.table("fixed").insert([(2,)])
        with pytest.raises(ev.InvalidChange):
            db.table("c").insert([(1, 7)])
        db.table("p").insert([(7, "x")])
        db.table("c").insert([(1, 7)])
        with pytest.raises(ev.InvalidChange):
            db.table("p").insert([(8, "x")])
        assert db.view("lazily").rows() == [(1,)]


def test_changes_of_every_kind_are_replayed(folder: Path) -> None:
    """Upserts, deletes by key, weights, products, tables of several batches, and nothing at all."""
    with ev.connect(folder) as db:
        make_shop(db)
        db.create_table("pairs", "a INT, b INT")
        db.table("orders").upsert([(1, 2, 3.0, "x"), (2, 3, 60.0, None)])
        db.table("orders").upsert([(1, 5, 70.0, "y")])
        db.table("orders").delete_keys([2])
        db.table("pairs").insert(ev.Product({"a": [1, 2]}, {"b": [3, 4, 5]}))
        batch = pa.record_batch({"kind": ["a", None], "size": [1, None]})
        several = pa.Table.from_batches([batch, batch.slice(1), batch.slice(0, 0)])
        db.apply({"events": several, "signals": several.append_column("note", pa.nulls(3, pa.string()))})
        db.apply({"events": []})
        db.apply({})
        before, version = contents(db), db.version
    with ev.connect(folder) as db:
        assert (contents(db), db.version) == (before, version)
        check(db)


def test_a_rejected_transaction_leaves_no_trace_on_disk(folder: Path) -> None:
    """What was rejected in memory is not in the log either."""
    with ev.connect(folder) as db:
        make_shop(db)
        with pytest.raises(ev.InvalidChange):
            db.apply({"orders": [{**transaction(0)["orders"][0], "_weight": -1}]})
        version = db.version
    with ev.connect(folder) as db:
        assert (db.version, db.table("orders").rows()) == (version, [])


def test_positions_of_sources_survive(folder: Path) -> None:
    """A batch that was committed before the restart is not applied again, from the log and from a checkpoint."""
    with ev.connect(folder) as db:
        db.create_table("t", "a INT")
        db.apply({"t": [(1,)]}, source=("queue", 4))
    with ev.connect(folder) as db:
        assert db.last_batch("queue") == 4
        assert db.apply({"t": [(1,)]}, source=("queue", 4)).is_repeat
        db.apply({"t": [(2,)]}, source=("queue", 5))
        db.checkpoint()
    with ev.connect(folder) as db:
        assert db.apply({"t": [(2,)]}, source=("queue", 5)).is_repeat
        assert sorted(db.table("t").rows()) == [(1,), (2,)]


def test_changes_since_the_checkpoint_can_be_asked_for(folder: Path) -> None:
    """After opening, a view has its deltas back to the checkpoint, with their times; older ones are refused by name."""
    prepared(folder, 3)
    with ev.connect(folder) as db:
        db.checkpoint()
        kept = db.version
        db.apply(transaction(3))
        expected = db.view("by_kind").changes(since=kept)
    with ev.connect(folder) as db:
        found = db.view("by_kind").changes(since=kept)
        assert [(d.version, d.committed_at) for d in found] == [(d.version, d.committed_at) for d in expected]
        assert [d.delta for d in found] == [d.delta for d in expected]
        with pytest.raises(ev.UnsupportedOperation):
            db.view("by_kind").changes(since=kept - 1)


def test_drops_and_new_definitions_are_replayed(folder: Path) -> None:
    """What was dropped stays away, and a name can be used again with other columns."""
    with ev.connect(folder) as db:
        make_shop(db)
        db.drop("large")
        db.drop("by_kind")
        db.drop("events")
        db.create_table("events", "other INT")
        db.table("events").insert([(5,)])
    for _ in range(2):
        with ev.connect(folder) as db:
            assert list(db.views) == ["by_customer", "by_city", "by_signal", "signals_by_city"]
            assert db.table("events").rows() == [(5,)]
            db.checkpoint()


def test_checkpoints_come_by_themselves(folder: Path) -> None:
    """The log does not grow without end: it is cut behind a checkpoint, and opening sees the same."""
    prepared(folder, 60, checkpoint_bytes=50_000)
    with ev.connect(folder) as db:
        assert db._core.backend._recovered.checkpoint_number > 0  # type: ignore[attr-defined]
        assert db.version == 61
        check(db)
    assert len(list((folder / "checkpoints").iterdir())) == 1


def make_passing(db: ev.Database) -> None:
    """A table that keeps no rows, with a sum, a count without columns, and a listing over it; nobody reads column ``x``."""
    db.create_table("passing", "x STRING, k INT, v DOUBLE", retain=False)
    scan, count = db._core.catalog.table("passing").scan, AggregateCall("count", (), INT64)
    calls = (count, AggregateCall("sum", (Column(2, FLOAT64),), FLOAT64))
    add_view(db, "sums", Aggregate(scan, (Column(1, INT32),), calls, ("k", "n", "s")))
    add_view(db, "keys", Distinct(Project(scan, (Column(1, INT32),), ("k",))))


def log_length(db: ev.Database) -> int:
    """Bytes of the records that opening would replay."""
    return db._core.backend._log.bytes_behind(0)  # type: ignore[attr-defined, no-any-return]


def test_a_table_that_keeps_no_rows(folder: Path) -> None:
    """A checkpoint has what has passed, summed up in the columns that are read; the log is cut, and views come back."""
    with ev.connect(folder) as db:
        make_passing(db)
        for number in range(60):
            db.table("passing").insert([(f"unread {number}", number % 3, 1.5), ("gone", 7, None)])
            db.table("passing").delete([("gone", 7, None)])
        db.checkpoint()
        assert log_length(db) == 0
        (file,) = [f for f in manifest_in_force(db._core.backend._log).tables if f.table == "passing"]  # type: ignore[attr-defined]
        assert file.rows == 3  # (0, 1.5), (1, 1.5) and (2, 1.5), each twenty times
        before, version = (contents_of(db, "sums"), contents_of(db, "keys")), db.version
    for again in range(3):  # from the checkpoint, from one made of that, and from one with a log behind it
        with ev.connect(folder) as db:
            assert (contents_of(db, "sums"), contents_of(db, "keys")) == before
            assert db.version == version + 2 * again
            with pytest.raises(ev.UnsupportedOperation, match="retain=False"):
                db.table("passing").rows()
            with pytest.raises(ev.UnsupportedOperation, match="has received some"):
                add_view(db, "late", db._core.catalog.table("passing").scan)
            db.table("passing").delete([("whatever", 0, 1.5)] * 20)
            assert contents_of(db, "keys") == [(1,), (2,)]
            if again == 0:
                db.checkpoint()
            db.table("passing").insert([(None, 0, 1.5)] * 20)


def test_rows_that_spark_calls_equal_cancel_in_a_checkpoint(folder: Path) -> None:
    """NaN with NaN, 0.0 with -0.0, NULL with NULL: nothing is left of them; and more deletes than inserts are kept, too."""
    rows = [("x", None, float("nan")), ("x", 1, 0.0), (None, 2, None), ("x", 5, 2.0)]
    with ev.connect(folder) as db:
        make_passing(db)
        db.table("passing").insert(rows)
        db.table("passing").delete([("y", None, float("nan")), ("y", 1, -0.0), ("y", 2, None)])
        db.checkpoint()
        (file,) = [f for f in manifest_in_force(db._core.backend._log).tables if f.table == "passing"]  # type: ignore[attr-defined]
        assert file.rows == 1
    with ev.connect(folder) as db:
        assert contents_of(db, "sums") == [(5, 1, 2.0)]
        db.table("passing").delete([("y", 5, 2.0)] * 2)  # trusted, though one was never there
        db.checkpoint()
    with ev.connect(folder) as db:
        db.table("passing").insert([("y", 5, 2.0)] * 2)
        assert contents_of(db, "sums") == [(5, 1, 2.0)]
        assert contents_of(db, "keys") == [(5,)]


def test_only_a_count_of_what_is_not_kept(folder: Path) -> None:
    """Where no column is read, a checkpoint has one number; where nobody reads the table, nothing."""
    with ev.connect(folder) as db:
        db.create_table("passing", "k INT", retain=False)
        db.create_table("unread", "k INT", retain=False)
        count = Aggregate(db._core.catalog.table("passing").scan, (), (AggregateCall("count", (), INT64),), ("n",))
        add_view(db, "counted", count)
        db.apply({"passing": [(1,), (2,), (2,)], "unread": [(5,)]})
        db.checkpoint()
        db.apply({"passing": [(4,)], "unread": [(5,)]})
    for _ in range(2):
        with ev.connect(folder) as db:
            assert db.view("counted").rows() == [(4,)]
            db.checkpoint()
            assert log_length(db) == 0
            files = {f.table: f.rows for f in manifest_in_force(db._core.backend._log).tables}  # type: ignore[attr-defined]
            assert files == {"passing": 1, "unread": 0}


def test_a_table_that_keeps_no_rows_is_made_anew(folder: Path) -> None:
    """What had passed before it was dropped, or renamed, is not counted for its successor."""
    with ev.connect(folder) as db:
        make_passing(db)
        db.table("passing").insert([("a", 1, 1.0)])
        db.checkpoint()
        db.table("passing").insert([("b", 2, 2.0)])
        for name in ("sums", "keys", "passing"):
            db.drop(name)
        make_passing(db)
        db.table("passing").insert([("c", 3, 3.0)])
        db.checkpoint()
    with ev.connect(folder) as db:
        assert contents_of(db, "sums") == [(3, 1, 3.0)]
        assert contents_of(db, "keys") == [(3,)]


def test_an_assertion_over_what_is_not_kept(folder: Path) -> None:
    """It holds when the database is opened, for it sees what has passed; and it goes on holding."""
    with ev.connect(folder) as db:
        db.create_table("known", "k INT", retain=False)
        db.create_table("used", "k INT")
        known, used = (db._core.catalog.table(t).scan for t in ("known", "used"))
        unknown = Join(used, known, JoinKind.ANTI, Call("=", (Column(0, INT32), Column(1, INT32)), BOOLEAN))
        core = db._core
        with core.locked():
            assertion = ViewDefinition("all_known", unknown, None, "UTC", ViewOptions(), is_assertion=True)
            core.backend.create_view(assertion)
            core.catalog.add(assertion)
        db.apply({"known": [(1,), (2,)], "used": [(1,)]})
        db.checkpoint()
    with ev.connect(folder) as db:
        with pytest.raises(ev.AssertionViolated):
            db.table("used").insert([(3,)])
        with pytest.raises(ev.AssertionViolated):
            db.table("known").delete([(1,)])
        db.table("used").insert([(2,)])


def test_products_that_are_too_large_for_a_checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is kept for them, until their table is dropped; smaller ones are written as rows."""
    with ev.connect(folder) as db:
        make_passing(db)
        db.table("passing").insert(ev.Product({"x": ["a", "b"]}, {"k": [1, 2], "v": [0.5, 0.25]}))
        db.checkpoint()
        assert log_length(db) == 0
        monkeypatch.setattr("everview.session.durable.logged_changes.LARGEST_EXPANDED", 3)
        db.table("passing").insert(ev.Product({"x": ["a", "b"]}, {"k": [1, 2], "v": [0.5, 0.25]}))
        db.checkpoint()
        assert log_length(db) > 0
        before = contents_of(db, "sums")
    with ev.connect(folder) as db:
        assert contents_of(db, "sums") == before == [(1, 4, 2.0), (2, 4, 1.0)]
        db.checkpoint()
        assert log_length(db) > 0
        for name in ("sums", "keys", "passing"):
            db.drop(name)
        db.checkpoint()
        assert log_length(db) == 0


def contents_of(db: ev.Database, view: str) -> list[tuple[Any, ...]]:
    """The rows of a view, sorted."""
    return sorted(db.view(view).rows())


def test_a_ring_must_be_registered_before_opening(folder: Path) -> None:
    """Without it, opening says which ring is missing, and lets the database go."""
    ev.register_ring("durable_sum", FloatRing(), returns="double")
    try:
        with ev.connect(folder) as db:
            make_shop(db)
            call = AggregateCall("durable_sum", (Column(2, FLOAT64),), FLOAT64, is_ring=True)
            add_view(db, "own", Aggregate(db._core.catalog.table("orders").scan, (), (call,), ("s",)))
        forget("durable_sum")
        with pytest.raises(ev.UnknownName, match="durable_sum"):
            ev.connect(folder)
    finally:
        forget("durable_sum")


def test_publications_survive(folder: Path) -> None:
    """A published view follows on after a restart, with what was missed; one that was ended stays ended."""
    place, ended = str(folder / "published"), str(folder / "ended")
    with ev.connect(folder / "shop") as db:
        make_shop(db)
        db.view("by_kind").publish(place)
        db.view("by_kind").publish(ended).cancel()
        db.apply(transaction(0))
        db.checkpoint()
    with ev.connect(folder / "shop") as db:
        assert [(p.uri, p.is_active) for p in db._core.publications] == [(place, True)]
        db.apply(transaction(1))
        with pytest.raises(ev.DependencyError):
            db.drop("by_kind")
        shown = read_content(DeltaTable(place))
        assert sorted(zip(*(c.to_pylist() for c in shown.columns), strict=True)) == contents_of(db, "by_kind")
        db.view("by_kind").unpublish()
    with ev.connect(folder / "shop") as db:
        assert db._core.publications == []


def test_a_publication_with_secrets_is_not_written_down(folder: Path) -> None:
    """Its storage options are nowhere in the folder, and a warning says that it has ended."""
    with ev.connect(folder / "shop") as db:
        make_shop(db)
        db.view("by_kind").publish(str(folder / "published"), storage_options={"secret": "hush-hush"})
    assert not any(b"hush-hush" in p.read_bytes() for p in (folder / "shop").rglob("*") if p.is_file())
    with pytest.warns(RuntimeWarning, match="storage options are not kept"), ev.connect(folder / "shop") as db:
        assert db._core.publications == []


def test_names_stay_inside_the_folder(folder: Path) -> None:
    """No file is named after a table, a column or a view."""
    path = folder / "shop"
    with ev.connect(path) as db:
        db.create_table("orders", pa.schema([("../../evil", pa.int64()), ("a/b", pa.string())]))
        db.table("orders").insert([(1, "x")])
        db.checkpoint()
    assert sorted(p.name for p in folder.iterdir()) == ["shop"]
    with ev.connect(path) as db:
        assert db.table("orders").rows() == [(1, "x")]


def test_opening_starts_no_jvm(folder: Path) -> None:
    """No module of Spark is even imported."""
    prepared(folder, 3)
    code = (
        "import sys, everview as ev\n"
        "with ev.connect(sys.argv[1]) as db: print(db.version, len(db.view('by_kind').rows()))\n"
        "assert not [m for m in sys.modules if m.startswith(('pyspark', 'py4j'))]"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("4 "), done.stderr


def test_options_that_make_no_sense(folder: Path) -> None:
    """They are refused by name, and no folder is made."""
    path = folder / "shop"
    for options, told in (
        ({"durability": "comit"}, "did you mean 'commit'"),
        ({"read_only": 1}, "is not True or False"),
        ({"read_only": True}, "no database"),
        ({"read_only": True, "durability": "none"}, "read_only"),
    ):
        with pytest.raises(ev.UnsupportedOperation, match=told):
            ev.connect(path, **options)
    with pytest.raises(ev.UnsupportedOperation, match="in memory"):
        ev.connect(durability="none")
    assert not path.exists()
