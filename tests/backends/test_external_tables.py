"""Tables that follow a Delta table, on every backend: ``db.refresh()`` takes in its versions, and nobody else changes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import everview as ev


def rows(*given: tuple[int, str]) -> pa.Table:
    """Rows of (k, s)."""
    return pa.table({"k": pa.array([k for k, _ in given], pa.int32()), "s": [s for _, s in given]})


@pytest.fixture(params=["change feed", "files"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A Delta table with three rows, two of them the same."""
    path = str(tmp_path / "source")
    feed = {"configuration": {"delta.enableChangeDataFeed": "true"}} if request.param == "change feed" else {}
    write_deltalake(path, rows((1, "a"), (2, "b"), (2, "b")), **feed)
    return path


def content(uri: str) -> list[tuple[Any, ...]]:
    """What the Delta table has."""
    return sorted((r["k"], r["s"]) for r in DeltaTable(uri).to_pyarrow_table().to_pylist())


def test_a_table_follows_its_delta_table(plain_db: ev.Database, uri: str) -> None:
    """It has the rows from the start, and after a refresh those of the newest version; each version is a transaction."""
    table = plain_db.create_table("t", source=uri, follow=True)
    assert sorted(table.rows()) == content(uri)
    first = plain_db.version
    delta = DeltaTable(uri)
    write_deltalake(delta, rows((1, "c"), (4, "d")), mode="append")
    delta.update(predicate="k = 2", updates={"s": "'z'"})
    assert sorted(table.rows()) == [(1, "a"), (2, "b"), (2, "b")]
    assert plain_db.refresh() == first + 2
    assert sorted(table.rows()) == content(uri)
    delta.delete("k = 2")
    delta.optimize.compact()
    write_deltalake(delta, rows((7, "q")), mode="overwrite")
    assert [c.version for c in table.feed.poll()] == [first + 3, first + 4, first + 5]
    assert sorted(table.rows()) == content(uri) == [(7, "q")]
    with pytest.raises(ev.UnsupportedOperation, match="table 't' takes no changes: it follows the Delta table"):
        table.insert([(1, "x")])
    with pytest.raises(ev.UnsupportedOperation, match="cannot follow another Delta table"):
        plain_db.follow_delta("t", uri)
    write_deltalake(uri, rows((8, "r")).append_column("more", pa.array([1])), mode="append", schema_mode="merge")
    with pytest.raises(ev.UnsupportedOperation, match="nothing became more long"):
        plain_db.refresh()
    assert sorted(table.rows()) == [(7, "q")]
    plain_db.drop("t")
    assert sorted(plain_db.create_table("T", source=uri, follow=True).columns) == ["k", "more", "s"]


def test_a_durable_database_goes_on_where_it_was(backend: str, uri: str, tmp_path: Path) -> None:
    """The definition and the version taken are on disk, on every backend that has one."""
    if backend == "reference":  # it lives in memory
        with pytest.raises(ev.UnsupportedOperation):
            ev.connect(tmp_path / "db", backend=backend)
        return
    with ev.connect(tmp_path / "db", backend=backend) as db:
        db.create_table("t", source=uri, follow=True)
        write_deltalake(uri, rows((5, "e")), mode="append")
        db.refresh()
        DeltaTable(uri).delete("k = 1")
    with ev.connect(tmp_path / "db", backend=backend) as db:
        table, version = db.table("t"), db.version
        assert table.feed.version == 1
        assert sorted(table.rows()) == [(1, "a"), (2, "b"), (2, "b"), (5, "e")]
        assert (db.refresh(), db.refresh()) == (version + 1, version + 1)
        assert sorted(table.rows()) == content(uri)
