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
from everview.catalog import ViewOptions
from everview.relational.expressions import Column
from everview.relational.nodes import Aggregate, AggregateCall
from everview.relational.types import FLOAT64, INT32, INT64
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
        db.apply({"events": pa.Table.from_batches([batch, batch.slice(1), batch.slice(0, 0)])})
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
            assert list(db.views) == ["by_customer", "by_city"]
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


def test_a_table_that_keeps_no_rows(folder: Path) -> None:
    """Views over it come back, with rows that nothing else keeps."""

    def make(db: ev.Database) -> None:
        db.create_table("passing", "k INT, v DOUBLE", retain=False)
        calls = (AggregateCall("count", (), INT64), AggregateCall("sum", (Column(1, FLOAT64),), FLOAT64))
        plan = Aggregate(db._core.catalog.table("passing").scan, (Column(0, INT32),), calls, ("k", "n", "s"))
        add_view(db, "sums", plan)

    with ev.connect(folder, checkpoint_bytes=10_000) as db:
        make(db)
        for number in range(20):
            db.table("passing").insert([(number % 3, 1.5)])
        db.checkpoint()
        before = contents_of(db, "sums")
    with ev.connect(folder) as db:
        assert contents_of(db, "sums") == before
        db.table("passing").delete([(0, 1.5)])
        assert sum(row[1] for row in db.view("sums").rows()) == 19


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
