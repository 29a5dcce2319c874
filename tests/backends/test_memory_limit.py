"""A database with a memory_limit rejects what would pass it, whole and in words, and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from everview.session.open_backend import _bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "grouped": "SELECT k, count(*) AS n, sum(x) AS x FROM r GROUP BY k",
    "listed": "SELECT r.k, s.x FROM r JOIN s ON r.k = s.k AND r.x < s.x",
    "lowest": "SELECT x % 10 AS g, min(k) AS k FROM r GROUP BY x % 10",
    "text": "SELECT concat('text number ', k) AS t, count(*) AS n FROM r GROUP BY 1",
}


def rows(start: int, count: int) -> pa.Table:
    """Rows with keys of their own."""
    numbers = np.arange(start, start + count)
    return pa.table({"k": numbers, "x": numbers * 3})


def contents(db: ev.Database) -> dict[str, list[Any]]:
    """The rows of all views."""
    return {name: sorted(db.view(name), key=repr) for name in VIEWS}


@pytest.mark.parametrize("limit", ["1MB", "3MB", "8MB"])
def test_what_passes_the_limit_is_rejected_whole(spark: SparkSession, limit: str) -> None:
    """Whoever needs too much, views are as before, the error says who, how much and the limit, and small changes still work."""
    with ev.connect(spark=spark, memory_limit=limit) as db, ev.connect(spark=spark) as free:
        for one in (db, free):
            one.create_table("r", "k bigint, x bigint")
            one.create_table("s", "k bigint, x bigint")
            for name, query in VIEWS.items():
                one.create_view(name, query)
            one.apply({"r": rows(0, 500), "s": rows(100, 500)})
        rejected = 0
        for step in range(4):
            size = 30_000 * (step + 1)
            change = {"r": rows(1000, size), "s": rows(2000, size)}
            message = rejection(db, change)
            if message is None:
                db.apply(deletes(size))
            else:
                rejected += 1
                assert "memory_limit" in message
                assert "view '" in message or "table '" in message
                assert "nothing has been changed" in message
            assert contents(db) == contents(free)
            for one in (db, free):
                one.table("r").insert([(step, -step)])
            assert contents(db) == contents(free)
            assert db.version == 1 + (step + 1) + 2 * (step + 1 - rejected)
        assert rejected


def rejection(db: ev.Database, change: dict[str, pa.Table]) -> str | None:
    """Why a transaction is rejected for memory; None if it is committed."""
    try:
        db.apply(change)
    except ev.OutOfMemory as error:
        return error.message
    return None


def deletes(size: int) -> dict[str, pa.Table]:
    """The rows that were inserted, to be deleted."""
    return {
        name: table.append_column("_weight", pa.array(np.full(size, -1)))
        for name, table in {"r": rows(1000, size), "s": rows(2000, size)}.items()
    }


def test_a_view_that_passes_the_limit_is_not_made(spark: SparkSession) -> None:
    """Neither is a lazy view brought up to date; both say so."""
    with ev.connect(spark=spark, memory_limit="3MB") as db:
        db.create_table("r", "k bigint, x bigint")
        db.table("r").insert(rows(0, 60_000))
        with pytest.raises(ev.OutOfMemory, match=r"view 'grouped' needs .* memory_limit of 2\.9 MiB"):
            db.create_view("grouped", "SELECT k, count(*) AS n, sum(x) AS x FROM r GROUP BY k")
        assert list(db.views) == []
        db.create_view("few", "SELECT k % 10 AS g, count(*) AS n FROM r GROUP BY k % 10")
        assert len(db.view("few").rows()) == 10


def test_room_that_is_given_back_can_be_used_again(spark: SparkSession) -> None:
    """What counts is what the state takes now, not what it ever took."""
    with ev.connect(spark=spark, memory_limit="6MB") as db:
        table = db.create_table("r", "k bigint, x bigint", primary_key="k")
        db.create_view("grouped", "SELECT k, count(*) AS n, sum(x) AS x FROM r GROUP BY k")
        for step in range(12):
            given = rows(step * 20_000, 20_000)
            table.insert(given)
            table.delete_keys(given.select(["k"]))
        assert db.view("grouped").rows() == []


def test_a_database_on_disk_opens_whatever_its_limit(tmp_path: Path) -> None:
    """A limit concerns what is added; what is there can be read, and made less."""
    with ev.connect(tmp_path / "db") as db:
        db.create_table("r", "k bigint, x bigint", primary_key="k").insert(rows(0, 50_000))
    with ev.connect(tmp_path / "db", memory_limit=100_000) as db:
        assert len(db.table("r").head(1)) == 1
        with pytest.raises(ev.OutOfMemory, match="table 'r' needs"):
            db.table("r").insert(rows(50_000, 1000))
    with ev.connect(tmp_path / "db") as db:
        assert len(db.table("r").rows()) == 50_000


def test_limits_can_be_written_in_words() -> None:
    """Numbers of bytes, and texts with units."""
    read = {
        given: _bytes({"memory_limit": given}, "memory_limit")
        for given in (7, "7", "7 b", "2kB", "1.5MB", "2GiB", "3g", " 1 TB ")
    }
    assert read == {
        7: 7, "7": 7, "7 b": 7, "2kB": 2000, "1.5MB": 1_500_000, "2GiB": 2 * 2**30, "3g": 3 * 2**30, " 1 TB ": 10**12,
    }  # fmt: skip
    for wrong in (0, -1, True, "", "much", "2XB", 1.5, "0"):
        with pytest.raises(ev.UnsupportedOperation, match="memory_limit"):
            ev.connect(memory_limit=wrong)
    with pytest.raises(ev.UnsupportedOperation, match="read_only"):
        ev.connect("nowhere", read_only=True, memory_limit=5)
