"""Changing what exists: tables made from rows, views replaced, late rows, truncation."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int32()), "s": ["a", None, "c"]})
LISTED = [(1, "a"), (2, None), (3, "c")]


@pytest.mark.parametrize(
    "form", ["table", "batch", "large", "dictionary", "pandas", "parquet", "csv", "delta", "folder"]
)
def test_a_table_from_rows(plain_db: ev.Database, tmp_path: Path, form: str) -> None:
    """Schema and rows come together, from frames and from files."""
    source: Any = ROWS
    match form:
        case "batch":
            source = ROWS.to_batches()[0]
        case "large":
            source = ROWS.cast(pa.schema([("k", pa.int32()), ("s", pa.large_string())]))
        case "dictionary":
            source = ROWS.set_column(1, "s", ROWS.column(1).dictionary_encode())
        case "pandas":
            source = pd.DataFrame({"k": [1, 2, 3], "s": ["a", None, "c"]})
        case "parquet":
            source = tmp_path / "rows.parquet"
            pyarrow.parquet.write_table(ROWS, source)
        case "folder":
            source = str(tmp_path / "many")
            pyarrow.parquet.write_to_dataset(ROWS, source)
        case "csv":
            source = str(tmp_path / "rows.csv")
            pyarrow.csv.write_csv(ROWS, source)
        case "delta":
            source = str(tmp_path / "lake")
            deltalake.write_deltalake(source, ROWS)
    table = plain_db.create_table("t", source, primary_key="k")
    expected = LISTED
    assert sorted(table.rows()) == expected
    assert table.primary_key == ("k",)
    table.insert([(4, "d")])


def test_what_is_null_in_a_csv_file(plain_db: ev.Database, tmp_path: Path) -> None:
    """What Spark reads as NULL: a field with nothing in it, and neither empty quotes nor a word."""
    path = tmp_path / "rows.csv"
    path.write_text('k,s,x\n1,,1.5\n2,"",\n3,NA,2\n4,null,3\n')
    table = plain_db.create_table("t", path)
    assert sorted(table.rows()) == [(1, None, 1.5), (2, "", None), (3, "NA", 2.0), (4, "null", 3.0)]


def test_a_table_that_cannot_take_its_rows_is_not_made(plain_db: ev.Database, tmp_path: Path) -> None:
    """Neither with a key twice, nor from a file that is not there."""
    with pytest.raises(ev.InvalidChange):
        plain_db.create_table("t", pa.table({"k": [1, 1]}), primary_key="k")
    with pytest.raises(ev.InvalidQuery, match="there is no file"):
        plain_db.create_table("t", str(tmp_path / "absent.parquet"))
    (tmp_path / "notes.txt").write_text("k")
    with pytest.raises(ev.UnsupportedOperation, match="no file that a table can be made from"):
        plain_db.create_table("t", tmp_path / "notes.txt")
    assert not plain_db.tables


def test_a_table_from_a_query_and_a_spark_frame(db: ev.Database, spark: SparkSession) -> None:
    """CREATE TABLE … AS, and a DataFrame; TRUNCATE empties a table."""
    db.create_table("t", spark.createDataFrame([(1, 2.5), (2, None)], "k int, x double"))
    db.sql("CREATE TABLE u AS SELECT k + 1 AS k, x FROM t WHERE x IS NOT NULL")
    assert db.table("u").rows() == [(2, 2.5)]
    view = db.create_view("v", "SELECT count(*) AS n FROM t")
    db.sql("TRUNCATE TABLE t")
    assert (db.table("t").rows(), view.rows()) == ([], [(0,)])
    db.table("u").truncate()
    assert not db.table("u").rows()


ROW = st.tuples(st.integers(1, 3), st.integers(0, 40), st.text("ab", max_size=2))


@given(st.lists(st.lists(ROW, max_size=6), max_size=4))
def test_late_rows_do_not_overwrite(batches: list[list[tuple[int, int, str]]]) -> None:
    """Whatever the batches, the row of a key with the greatest sequence stays; of equals the last."""
    with ev.connect() as db:
        table = db.create_table("t", "k int, at int, s string", primary_key="k")
        latest: dict[int, tuple[int, int, str]] = {}
        for batch in batches:
            table.upsert(batch, sequence_by="at")
            for row in batch:
                if row[0] not in latest or row[1] >= latest[row[0]][1]:
                    latest[row[0]] = row
            assert sorted(table.rows()) == sorted(latest.values())


def test_what_cannot_be_put_in_sequence(plain_db: ev.Database) -> None:
    """A column that is not there, the key itself, and a NULL."""
    table = plain_db.create_table("t", "k int, at int", primary_key="k")
    with pytest.raises(ev.UnknownName):
        table.upsert([(1, 2)], sequence_by="when")
    with pytest.raises(ev.UnsupportedOperation, match="cannot be put in sequence by 'k'"):
        table.upsert([(1, 2)], sequence_by="k")
    with pytest.raises(ev.InvalidChange, match="is NULL in a row"):
        table.upsert([(1, None)], sequence_by="at")
    assert not table.rows()


VERSIONS = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.sampled_from("ab") | st.none()), max_size=6), max_size=6
)


@given(VERSIONS)
def test_every_version_is_kept_with_its_time(batches: list[list[tuple[int, int, str | None]]]) -> None:
    """As type 2 of slowly changing dimensions: in whatever order versions come, each holds until the next of its key."""
    with ev.connect() as db:
        table = db.create_table(
            "t", "k int, at int, s string, __START_AT int, __END_AT int", primary_key=("k", "__START_AT")
        )
        known: dict[tuple[int, int], str | None] = {}
        for batch in batches:
            table.upsert(batch, sequence_by="at", stored_as_scd_type=2)
            known |= {(k, at): s for k, at, s in batch}
            later = {(k, at): min((a for o, a in known if o == k and a > at), default=None) for k, at in known}
            assert sorted(table.rows(), key=repr) == sorted(
                [(k, at, s, at, later[k, at]) for (k, at), s in known.items()], key=repr
            )


def test_a_history_is_read_as_of_a_time(db: ev.Database) -> None:
    """What held at a time is a view like others; texts are keys as well, and late versions move it."""
    table = db.create_table(
        "people",
        "name string, city string, at date, __START_AT date, __END_AT date",
        primary_key=("name", "__START_AT"),
    )
    db.create_view("now", "SELECT name, city FROM people WHERE __END_AT IS NULL")
    db.create_view(
        "in_may",
        "SELECT name, city FROM people WHERE __START_AT <= DATE'2024-05-01' AND coalesce(__END_AT > DATE'2024-05-01', true)",
    )
    day = datetime.date
    table.upsert(
        [("ann", "Rome", day(2024, 1, 1)), ("ann", "Oslo", day(2024, 6, 1))], sequence_by="at", stored_as_scd_type=2
    )
    table.upsert([{"city": "Bern", "name": "ann", "at": day(2024, 4, 1)}], sequence_by="AT", stored_as_scd_type=2)
    assert (db.view("now").rows(), db.view("in_may").rows()) == ([("ann", "Oslo")], [("ann", "Bern")])
    assert len(table.rows()) == 3


def test_what_cannot_hold_a_history(plain_db: ev.Database) -> None:
    """A table without the columns, or with others; rows without a time; another type of history."""
    plain = plain_db.create_table("plain", "k int, at int", primary_key="k")
    typed = plain_db.create_table(
        "typed", "k int, at int, __START_AT string, __END_AT string", primary_key=("k", "__START_AT")
    )
    good = plain_db.create_table("good", "k int, at int, __START_AT int, __END_AT int", primary_key=("k", "__START_AT"))
    for table in (plain, typed):
        with pytest.raises(
            ev.UnsupportedOperation, match=r"needs columns __START_AT and __END_AT .* PRIMARY KEY \(k, __START_AT\)"
        ):
            table.upsert([(1, 2)], sequence_by="at", stored_as_scd_type=2)
    with pytest.raises(ev.UnsupportedOperation, match="sequence_by"):
        good.upsert([(1, 2)], stored_as_scd_type=2)
    with pytest.raises(ev.InvalidChange, match="is NULL in a row"):
        good.upsert([(1, None)], sequence_by="at", stored_as_scd_type=2)
    with pytest.raises(ev.UnsupportedOperation, match="type 3"):
        good.upsert([(1, 2)], sequence_by="at", stored_as_scd_type=3)
    assert not good.rows()


@pytest.fixture
def chain(db: ev.Database) -> ev.Table:
    """A view, and two over it."""
    table = db.create_table("t", "k int, x int")
    db.create_view("base", "SELECT k, x FROM t WHERE x > 0")
    db.create_view("sums", "SELECT k, sum(x) AS s FROM base GROUP BY k")
    db.create_view("top", "SELECT max(s) AS m FROM sums")
    table.insert([(1, 5), (1, -2), (2, 3)])
    return table


def test_replacing_a_view_keeps_those_over_it(db: ev.Database, chain: ev.Table) -> None:
    """They read the new rows, in other columns and another order too; handles and subscriptions stay."""
    sums, top, told = db.view("sums"), db.view("top"), list[int]()
    sums.subscribe(lambda change: told.append(change.version))
    replaced = db.replace_view("base", "SELECT 7 AS more, x, k FROM t")
    assert sorted(replaced.rows()) == [(7, -2, 1), (7, 3, 2), (7, 5, 1)]
    assert (sorted(sums.rows()), top.rows()) == ([(1, 3), (2, 3)], [(3,)])
    chain.insert([(2, 4)])
    assert (sorted(sums.rows()), top.rows(), told) == ([(1, 3), (2, 7)], [(7,)], [2])
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW base AS SELECT k, x FROM t WHERE k = 1")
    assert (sums.rows(), top.rows()) == ([(1, 3)], [(3,)])
    db.replace_view("base", "SELECT k, x, 1 AS y FROM t WHERE k = 1")
    db.replace_view("base", "SELECT x, k FROM t WHERE k = 1")  # nothing has read the column that is gone
    assert (sums.rows(), top.rows()) == ([(1, 3)], [(3,)])
    db.sql("CREATE OR REPLACE VIEW another AS SELECT k FROM base")
    assert db.view("another").rows() == [(1,), (1,)]
    db.verify()


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        ("SELECT k FROM t", ev.DependencyError, "its column 'x' int would not be there"),
        ("SELECT k, cast(x AS bigint) AS x FROM t", ev.DependencyError, "its column 'x' int would be bigint"),
        ("SELECT k, s AS x FROM sums", ev.InvalidQuery, "would read 'sums', which is itself or reads it"),
        ("SELECT nothing FROM t", ev.UnknownName, "nothing"),
    ],
)
def test_what_cannot_replace_a_view(
    db: ev.Database, chain: ev.Table, query: str, error: type[ev.EverviewError], says: str
) -> None:
    """A clear error, and nothing has changed."""
    with pytest.raises(error, match=says):
        db.replace_view("base", query)
    assert sorted(db.view("base").rows()) == [(1, 5), (2, 3)]
    assert db.view("top").rows() == [(5,)]
    chain.insert([(2, 4)])
    assert db.view("top").rows() == [(7,)]


def test_an_assertion_over_the_view_is_checked(db: ev.Database, chain: ev.Table) -> None:
    """A query whose rows it does not hold on does not replace the view."""
    db.create_assertion("positive", "SELECT * FROM base WHERE x < 0")
    with pytest.raises(ev.AssertionViolated):
        db.replace_view("base", "SELECT k, x FROM t")
    assert db.view("top").rows() == [(5,)]
    with pytest.raises(ev.AssertionViolated):
        db.replace_view("base", "SELECT k, -x AS x FROM t WHERE x > 0")
    chain.insert([(2, 4)])
    assert db.view("top").rows() == [(7,)]
