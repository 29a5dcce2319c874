"""Views as Delta tables: what a Delta reader reads is the view, and its change data feed sums to it."""

from __future__ import annotations

import random
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import everview as ev
from everview.session.feeds.publishing import COMPACT_EVERY


def plain(value: Any) -> Any:
    """A value that can be counted: lists as tuples, NaN as a word."""
    if isinstance(value, list):
        return tuple(plain(v) for v in value)
    return "NaN" if isinstance(value, float) and value != value else value  # noqa: PLR0124 -- only NaN differs from itself


def bag(rows: Any) -> Counter[Any]:
    """Rows with their multiplicities."""
    return Counter(tuple(plain(v) for v in row) for row in rows)


def published(uri: Path | str) -> Counter[Any]:
    """What deltalake reads."""
    table = DeltaTable(uri).to_pyarrow_table()
    return bag(zip(*(c.to_pylist() for c in table.columns), strict=True))


def fed(uri: Path | str) -> Counter[Any]:
    """What the change data feed sums to."""
    total: Counter[Any] = Counter()
    for change in pa.table(DeltaTable(uri).load_cdf(0)).to_pylist():
        kind = change.pop("_change_type")
        row = [v for name, v in change.items() if not name.startswith("_commit")]
        total[next(iter(bag([row])))] += {"insert": 1, "delete": -1}[kind]
    assert min(total.values(), default=0) >= 0
    return +total


def test_a_published_view_follows(db: ev.Database, tmp_path: Path) -> None:
    """After every commit the Delta table is the view; commits that do not move the view do not show there."""
    table = db.create_table("t", "k string, x int")
    table.insert([("a", 1), ("b", 2)])
    view = db.create_view("sums", "SELECT k AS `Key`, sum(x) AS s FROM t GROUP BY k HAVING sum(x) < 10")
    uri = tmp_path / "sums"
    publication = view.publish(uri)
    assert published(uri) == fed(uri) == bag([("a", 1), ("b", 2)])
    table.insert([("a", 1), (None, 4)])
    table.insert([("z", 10)])
    table.delete([("b", 2)])
    table.insert([("c", 1)])
    table.delete([("c", 1)])
    assert published(uri) == fed(uri) == bag(view.rows()) == bag([("a", 2), (None, 4)])
    assert (publication.version, publication.view, publication.is_active) == (6, "sums", True)
    delta = DeltaTable(uri)
    assert delta.version() == 4
    assert delta.transaction_version("everview/view/sums") == 6
    assert delta.schema().to_arrow().names == ["Key", "s"]
    dataset = delta.to_pyarrow_dataset()
    assert duckdb.sql('SELECT sum(s) FROM dataset WHERE "Key" IS NOT NULL').fetchall() == [(2,)]
    assert dataset.count_rows() == 2
    assert repr(publication) == f"<Publication of view 'sums' to {uri}, at version 6>"


def test_bags_of_all_kinds_of_values(db: ev.Database, tmp_path: Path) -> None:
    """Duplicates keep their number, and NULL, NaN, lists and odd strings are deleted by value."""
    columns = "k int, s string, f double, xs array<int>, d decimal(10,2), at timestamp, day date"
    db.create_table("t", columns)
    views = {
        tmp_path / "nested": db.create_view("nested", "SELECT s, f, xs, at FROM t WHERE k IS NULL OR k < 9"),
        tmp_path / "simple": db.create_view("simple", "SELECT k, s, f, d, day FROM t"),
        tmp_path / "floats": db.create_view("floats", "SELECT f FROM t"),
    }
    for uri, view in views.items():
        view.publish(uri)
    rng = random.Random(7)
    moment = pa.scalar(1_700_000_000_123_456, pa.timestamp("us", tz="UTC")).as_py()

    def row() -> tuple[Any, ...]:
        return (
            rng.choice([None, *range(10)]),
            rng.choice([None, "", "a", "it's", '"q"']),
            rng.choice([None, 0.5, -0.0, float("nan")]),
            rng.choice([None, [], [1, None]]),
            rng.choice([None, Decimal("1.50")]),
            rng.choice([None, moment]),
            rng.choice([None, moment.date()]),
        )

    there: list[tuple[Any, ...]] = []
    for _ in range(12):
        new = [row() for _ in range(rng.choice([0, 2, 30]))]
        gone = [there.pop(rng.randrange(len(there))) for _ in range(min(len(there), rng.choice([0, 1, 10])))]
        with db.transaction() as tx:
            tx.insert("t", new)
            tx.delete("t", gone)
        there += new
        for uri, view in views.items():
            assert published(uri) == bag(view.rows())
    for uri, view in views.items():
        assert fed(uri) == bag(view.rows())
        assert max(published(uri).values()) > 1


def test_publishing_again_writes_what_differs(db: ev.Database, tmp_path: Path) -> None:
    """After unpublish the Delta table stays; publishing there again catches up in one commit, or in none."""
    table = db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t")
    uri = str(tmp_path / "v")
    table.insert([(1,), (1,), (2,)])
    first = view.publish(uri)
    with pytest.raises(ev.AlreadyExists, match="a view is being published at"):
        view.publish(uri)
    view.unpublish(uri)
    assert not first.is_active
    assert repr(first).endswith("ended at version 1>")
    assert DeltaTable(uri).version() == 0
    table.delete([(1,)])
    table.insert([(3,)])
    assert published(uri) == bag([(1,), (1,), (2,)])
    view.publish(uri)
    assert published(uri) == fed(uri) == bag([(1,), (2,), (3,)])
    view.unpublish()
    view.publish(uri)
    assert DeltaTable(uri).version() == 1
    view.unpublish()
    with pytest.raises(ev.UnknownName, match="view 'v' is not published at"):
        view.unpublish(uri)
    with pytest.raises(ev.UnknownName, match="view 'v' is not published"):
        view.unpublish()


def test_a_new_database_takes_a_publication_over(db: ev.Database, tmp_path: Path) -> None:
    """A program that lost its database and loads it again publishes to the same place, with another schema too."""
    uri = tmp_path / "v"
    db.create_table("t", "x int")
    db.apply({"t": [(1,), (2,)]})
    db.apply({})
    first = db.create_view("v", "SELECT x FROM t")
    first.publish(uri)
    with pytest.raises(ev.DependencyError) as caught:
        db.drop("V")
    assert str(caught.value) == (
        f"view 'v' cannot be dropped: it is published at {uri}. "
        "Hint: end that first, with view.unpublish(); the Delta table stays as it is."
    )
    assert first.rows() == [(1,), (2,)]
    first.unpublish()
    db.drop("v")
    table = db.create_table("u", "x int")
    table.insert([(2,), (3,)])
    view = db.create_view("v", "SELECT x FROM u")
    view.publish(uri)
    assert published(uri) == fed(uri) == bag([(2,), (3,)])
    table.insert([(4,)])
    assert published(uri) == bag([(2,), (3,), (4,)])
    view.unpublish()
    db.drop("v")
    table.insert([(5,)])
    assert published(uri) == bag([(2,), (3,), (4,)])
    db.create_view("v", "SELECT x, x + 1 AS y FROM u").publish(uri)
    assert published(uri) == bag([(2, 3), (3, 4), (4, 5), (5, 6)])


def test_a_foreign_delta_table_is_not_touched(db: ev.Database, tmp_path: Path) -> None:
    """A table that is no publication of this view is not overwritten."""
    uri = tmp_path / "precious"
    write_deltalake(uri, pa.table({"x": pa.array([1], pa.int32())}))
    db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t")
    with pytest.raises(ev.AlreadyExists, match="that is not a publication of view 'v'"):
        view.publish(uri)
    db.apply({"t": [(2,)]})
    assert published(uri) == bag([(1,)])
    other = db.create_view("w", "SELECT x FROM t")
    view.publish(tmp_path / "v")
    with pytest.raises(ev.AlreadyExists):
        other.publish(tmp_path / "v")


def test_a_failed_write_is_made_up_for(db: ev.Database, tmp_path: Path) -> None:
    """The commit stands and says what failed; the next one brings the Delta table up to date."""
    table = db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t")
    uri = tmp_path / "v"
    publication = view.publish(uri)
    table.insert([(1,), (2,)])
    (uri / "_delta_log").rename(uri / "hidden")
    write_deltalake(uri, pa.table({"z": [1]}))
    with pytest.raises(ExceptionGroup) as caught:
        table.delete([(2,)])
    (error,) = caught.value.exceptions
    assert isinstance(error, ev.AlreadyExists)
    assert error.__notes__[0].startswith(f"the Delta table {uri} of view 'v' shows version 1;")
    assert (table.rows(), publication.version, publication.is_active) == ([(1,)], 1, True)
    for entry in (uri / "_delta_log").iterdir():
        entry.unlink()
    (uri / "_delta_log").rmdir()
    (uri / "hidden").rename(uri / "_delta_log")
    table.insert([(3,)])
    assert published(uri) == fed(uri) == bag([(1,), (3,)])
    assert publication.version == 3


def test_a_delta_table_that_others_changed(db: ev.Database, tmp_path: Path) -> None:
    """What somebody else did to the Delta table is undone by the next change of the view that meets it."""
    table = db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t")
    uri = tmp_path / "v"
    view.publish(uri)
    table.insert([(1,), (2,), (3,)])
    DeltaTable(uri).delete("x = 2")
    table.delete([(2,)])
    assert published(uri) == bag([(1,), (3,)])


def test_small_files_are_joined(db: ev.Database, tmp_path: Path) -> None:
    """A view that grows row by row does not become a thousand files, and the feed does not see it."""
    table = db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t")
    uri = tmp_path / "v"
    view.publish(uri)
    for x in range(COMPACT_EVERY + 3):
        table.insert([(x,)])
    assert len(DeltaTable(uri).file_uris()) < 10
    assert published(uri) == fed(uri) == bag(view.rows())


def test_a_view_that_delta_cannot_hold(db: ev.Database, tmp_path: Path) -> None:
    """A type that Delta does not have is refused, and the view is not published."""
    table = db.create_table("t", "i interval day to second")
    view = db.create_view("v", "SELECT i FROM t")
    with pytest.raises(ev.UnsupportedOperation, match="column 'i' of view 'v' is interval day to second, which a"):
        view.publish(tmp_path / "v")
    table.insert([(None,)])
    assert not (tmp_path / "v").exists()


def test_commits_from_several_threads(db: ev.Database, tmp_path: Path) -> None:
    """Publication keeps the order of commits when several threads make them."""
    db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t")
    uri = tmp_path / "v"
    view.publish(uri)
    threads = [threading.Thread(target=lambda n=n: db.apply({"t": [(n,), (n,)]})) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert published(uri) == bag(view.rows()) == Counter({(n,): 2 for n in range(8)})


def test_a_place_that_cannot_be_opened(db: ev.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the scheme or the path, nothing is made in its stead, and the view is free again."""
    monkeypatch.chdir(tmp_path)
    db.create_table("t", "x int")
    view = db.create_view("v", "SELECT x FROM t")
    with pytest.raises(
        ev.UnsupportedOperation, match=r"at 'foo://b/x': 'foo' is not a scheme that the deltalake package"
    ):
        view.publish("foo://b/x")
    (tmp_path / "file").touch()
    with pytest.raises(ev.UnsupportedOperation, match=r"view 'v' cannot be published at '.*/file/x': "):
        view.publish(tmp_path / "file" / "x")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    db.drop("v")


def test_a_file_uri(db: ev.Database, tmp_path: Path) -> None:
    """It is the path that it says."""
    db.create_table("t", "x int").insert([(1,)])
    db.create_view("v", "SELECT x FROM t").publish((tmp_path / "v").as_uri())
    assert published(tmp_path / "v") == bag([(1,)])
