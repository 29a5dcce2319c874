"""Following a Delta table: by its change data feed where it has one, by its files elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import everview as ev

COLUMNS = pa.schema([("k", pa.int32()), ("s", pa.string()), ("xs", pa.list_(pa.int64()))])


def rows(*given: tuple[Any, ...]) -> pa.Table:
    """Rows of (k, s), with a list made of k."""
    return pa.Table.from_pylist([{"k": k, "s": s, "xs": [k, None]} for k, s in given], COLUMNS)


def content(uri: str) -> list[tuple[Any, ...]]:
    """What deltalake reads now."""
    return sorted((r["k"], r["s"]) for r in DeltaTable(uri).to_pyarrow_table().to_pylist())


def taken(table: ev.Table) -> list[tuple[Any, ...]]:
    """What has arrived."""
    assert all(xs == [k, None] for k, _, xs in table.rows())
    return sorted((k, s) for k, s, _ in table.rows())


@pytest.fixture(params=["change feed", "files", "partitioned files"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A Delta table with three rows, two of them the same."""
    path = str(tmp_path / "source")
    options: dict[str, Any] = {"configuration": {"delta.enableChangeDataFeed": "true"}}
    if request.param != "change feed":
        options = {"partition_by": ["k"]} if request.param == "partitioned files" else {}
    write_deltalake(path, rows((1, "a"), (2, "b"), (2, "b")), **options)
    return path


@pytest.fixture
def table(plain_db: ev.Database) -> ev.Table:
    """The table to feed."""
    return plain_db.create_table("t", "k int, s string, xs array<bigint>")


def test_every_operation_arrives(plain_db: ev.Database, table: ev.Table, uri: str) -> None:
    """Appends, updates, deletes, merges, compaction and overwriting: after each, the table has what the Delta table has."""
    feed = plain_db.follow_delta("t", uri)
    assert feed.version is None
    assert [c.version for c in feed.poll()] == [1]
    assert taken(table) == content(uri) == [(1, "a"), (2, "b"), (2, "b")]
    delta = DeltaTable(uri)
    operations = [
        lambda: write_deltalake(delta, rows((1, "c"), (4, "d")), mode="append"),
        lambda: delta.update(predicate="k = 2", updates={"s": "'z'"}),
        lambda: delta.delete("s = 'a'"),
        lambda: (
            delta.merge(rows((1, "m"), (9, "n")), "s.k = t.k", source_alias="s", target_alias="t")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        ),
        lambda: write_deltalake(delta, rows((1, "p"), (1, "p")), mode="append"),
        delta.optimize.compact,
        lambda: write_deltalake(delta, rows((1, "p"), (7, "q")), mode="overwrite"),
    ]
    for operation in operations:
        operation()
        assert len(feed.poll()) == 1
        assert taken(table) == content(uri)
    assert taken(table) == [(1, "p"), (7, "q")]
    assert (feed.version, feed.poll()) == (delta.version(), [])
    with pytest.raises(ev.DependencyError) as caught:
        plain_db.drop("T")
    assert str(caught.value) == (
        f"table 't' cannot be dropped: it follows the Delta table {uri}. "
        "Hint: end that first, with the cancel() of the feed that db.follow_delta gave."
    )
    feed.cancel()
    assert (feed.is_active, repr(feed).endswith(", cancelled>")) == (False, True)
    with pytest.raises(ev.UnsupportedOperation, match="was cancelled"):
        feed.poll()
    plain_db.drop("t")
    anew = plain_db.create_table("t", COLUMNS)
    plain_db.follow_delta("t", uri).poll()
    assert taken(anew) == [(1, "p"), (7, "q")]


def test_versions_are_taken_one_by_one(plain_db: ev.Database, table: ev.Table, uri: str) -> None:
    """From a given version on, each version is a transaction, and following anew goes on after the last one taken."""
    for k in range(3, 6):
        write_deltalake(uri, rows((k, "x")), mode="append")
    feed = plain_db.follow_delta("t", uri, starting_version=2)
    assert len(feed.poll(limit=1)) == 1
    assert taken(table) == [(4, "x")]
    again = plain_db.follow_delta("T", uri, starting_version=0)
    assert again.version == 2
    assert repr(again) == f"<LakeFeed of table 't' from {uri}, version 2>"
    assert [c.version for c in again.poll()] == [2]
    assert (taken(table), feed.poll()) == ([(4, "x"), (5, "x")], [])
    other = plain_db.create_table("other", table.schema)
    assert len(plain_db.follow_delta("other", uri, starting_version=0).poll()) == 4
    assert taken(other) == content(uri)


def test_a_change_feed_that_begins_later(plain_db: ev.Database, table: ev.Table, tmp_path: Path) -> None:
    """Versions from before the feed was enabled are read from their files."""
    uri = str(tmp_path / "late")
    write_deltalake(uri, rows((1, "a"), (2, "b")))
    delta = DeltaTable(uri)
    delta.delete("k = 1")
    delta.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    delta.update(predicate="k = 2", updates={"s": "'c'"})
    feed = plain_db.follow_delta("t", uri, starting_version=0)
    seen = []
    while feed.poll(limit=1):
        seen.append(taken(table))
    assert seen == [[(1, "a"), (2, "b")], [(2, "b")], [(2, "b")], [(2, "c")]]


def test_a_version_that_does_not_fit(plain_db: ev.Database, uri: str) -> None:
    """The versions before it are taken, it and those after are not, and the error says which it is."""
    keyed = plain_db.create_table("t", COLUMNS, primary_key="k")
    feed = plain_db.follow_delta("t", uri, starting_version=1)
    for k in (5, 5, 6):
        write_deltalake(uri, rows((k, "x")), mode="append")
    with pytest.raises(ev.InvalidChange, match="more than one row with the same primary key") as caught:
        feed.poll()
    assert caught.value.__notes__ == [f"in version 2 of the Delta table {uri}, followed by table 't'"]
    assert (taken(keyed), feed.version, plain_db.version) == ([(5, "x")], 1, 1)
    keyed.delete_keys([5])
    assert len(feed.poll()) == 2
    assert taken(keyed) == [(5, "x"), (6, "x")]


def test_what_cannot_be_followed(plain_db: ev.Database, table: ev.Table, uri: str, tmp_path: Path) -> None:
    """Missing tables, wrong columns and impossible versions are refused before anything is read."""
    with pytest.raises(ev.UnknownName, match="there is no Delta table at"):
        plain_db.follow_delta("t", tmp_path / "nothing")
    with pytest.raises(ev.UnknownName, match="there is no table 'u'"):
        plain_db.follow_delta("u", uri)
    with pytest.raises(ev.UnsupportedOperation, match=r"starting_version=7 is no version .* Hint: its newest is 0"):
        plain_db.follow_delta("t", uri, starting_version=7)
    plain_db.create_table("narrow", "k int, s string")
    with pytest.raises(ev.InvalidChange, match="column 'xs' is not in table 'narrow'"):
        plain_db.follow_delta("narrow", uri)
    assert (plain_db.version, table.rows()) == (0, [])


def test_a_delta_table_replaced_by_another(plain_db: ev.Database, table: ev.Table, tmp_path: Path) -> None:
    """The versions of another table at the same place are not taken for the next ones of this."""
    uri = tmp_path / "source"
    write_deltalake(uri, rows((1, "a")))
    feed = plain_db.follow_delta("t", uri)
    feed.poll()
    uri.rename(tmp_path / "old")
    write_deltalake(uri, rows((2, "b")))
    write_deltalake(uri, rows((3, "c")), mode="append")
    with pytest.raises(ev.UnsupportedOperation, match="has been replaced by another"):
        feed.poll()
    assert taken(table) == [(1, "a")]


def test_files_that_are_gone(plain_db: ev.Database, table: ev.Table, tmp_path: Path) -> None:
    """A version whose old files were vacuumed cannot be read any more, and says so."""
    uri = str(tmp_path / "source")
    write_deltalake(uri, rows((1, "a"), (2, "b")))
    feed = plain_db.follow_delta("t", uri)
    feed.poll()
    delta = DeltaTable(uri)
    delta.delete("k = 1")
    delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(ev.UnsupportedOperation, match=r"version 1 of the Delta table .* cannot be read"):
        feed.poll()
    assert taken(table) == [(1, "a"), (2, "b")]


def test_a_feed_that_nobody_holds_is_not_in_the_way(plain_db: ev.Database, table: ev.Table, uri: str) -> None:
    """It can never be polled again, so its table can be dropped."""
    plain_db.follow_delta("t", uri).poll()
    assert taken(table)
    plain_db.drop("t")
    assert plain_db.tables == {}


def test_a_scheme_that_nobody_knows(plain_db: ev.Database, table: ev.Table) -> None:
    """The error names the scheme."""
    with pytest.raises(ev.UnsupportedOperation, match=r"'foo' is not a scheme that the deltalake package knows"):
        plain_db.follow_delta(table.name, "foo://bucket/x")
