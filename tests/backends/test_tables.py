from __future__ import annotations

import datetime
import decimal
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")

EVERY_TYPE = (
    "b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double, n decimal(38,10), s string, "
    "x binary, day date, ts timestamp, ntz timestamp_ntz, dt interval day to second, a array<int>, "
    "st struct<p: int, q: array<date>>"
)
ROW: tuple[Any, ...] = (
    True,
    -128,
    -32768,
    2**31 - 1,
    -(2**63),
    0.5,
    0.1,
    decimal.Decimal("-1234567890123456789012345678.0123456789"),
    "naïve ✓",
    b"\x00\xff",
    datetime.date(1582, 10, 15),
    datetime.datetime(2024, 2, 29, 12, 30, 0, 1, tzinfo=datetime.UTC),
    datetime.datetime(1900, 1, 1),
    datetime.timedelta(days=-1, microseconds=1),
    [1, None, 3],
    {"p": None, "q": [datetime.date(2000, 1, 1), None]},
)


def test_every_type_comes_back_as_it_went_in(plain_db: ev.Database) -> None:
    """A table holds every type of the interface without loss, and NULL in each."""
    table = plain_db.create_table("t", EVERY_TYPE)
    nulls = (None,) * len(ROW)
    table.insert([ROW, nulls])
    assert sorted(table.rows(), key=str) == sorted([ROW, nulls], key=str)
    table.delete(table.to_arrow())
    assert table.rows() == []


def test_spark_sees_the_same_rows(db: ev.Database) -> None:
    """Every type survives the way to Spark and back."""
    table = db.create_table("t", EVERY_TYPE)
    table.insert([ROW])
    frame = table.to_spark()
    table.delete(frame)
    assert len(table) == 0


def test_schema_as_text_struct_type_and_arrow(plain_db: ev.Database) -> None:
    """The three ways to write a schema make the same table."""
    from pyspark.sql import types as spark_types

    struct = spark_types.StructType().add("id", "long", False).add("name", "string")
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.large_string())])
    first = plain_db.create_table("one", "id bigint NOT NULL COMMENT 'the key', name: string")
    assert first.schema == plain_db.create_table("two", struct).schema == plain_db.create_table("three", arrow).schema


def test_a_table_can_be_read_in_every_way(db: ev.Database) -> None:
    """Tables have the readers that views have."""
    table = db.create_table("T", "a int, b string")
    table.insert([(1, "x"), (1, "x"), (2, None)])
    rows = [(1, "x"), (1, "x"), (2, None)]
    assert table.rows() == rows
    assert list(table) == rows
    assert len(table) == 3
    assert table.to_arrow().to_pylist() == [{"a": 1, "b": "x"}] * 2 + [{"a": 2, "b": None}]
    assert table.to_pandas()["a"].tolist() == [1, 1, 2]
    assert sorted(tuple(r) for r in table.to_spark().collect()) == sorted(rows, key=str)
    assert table.lookup(A=1) == rows[:2]
    assert table.lookup(b=None) == rows[2:]
    assert table.lookup(a=2, b="x") == []


def test_names_ignore_case(plain_db: ev.Database) -> None:
    """Names are found in any case and shown as they were given."""
    plain_db.create_table("Orders", "Id int", primary_key="ID")
    assert plain_db.table("oRDERS").name == "Orders"
    assert plain_db.table("orders").primary_key == ("Id",)
    plain_db.apply({"ORDERS": [{"iD": 1}]})
    assert list(plain_db.tables) == ["Orders"]


def test_repr_helps(plain_db: ev.Database) -> None:
    """What is printed in a notebook says what it is."""
    table = plain_db.create_table("t", "id int, x array<int>", primary_key=["id"], static=True)
    loose = plain_db.create_table("u", "x double", retain=False)
    assert repr(table) == "<Table t (id int not null, x array<int>) primary key (id) static>"
    assert repr(loose) == "<Table u (x double) retain=False>"
    assert repr(plain_db).endswith("version 0, 2 tables, 0 views>")


def test_negative_zero_and_nan_are_one_value(plain_db: ev.Database) -> None:
    """A Z-set identifies what Spark's grouping identifies: -0.0 with 0.0, and all NaNs."""
    table = plain_db.create_table("t", "x double, y array<float>")
    table.insert([(-0.0, [NAN]), (NAN, [-0.0])])
    assert math.copysign(1, table.lookup(x=0.0)[0][0]) == 1
    table.delete(pa.table({"x": [0.0, -NAN], "y": pa.array([[NAN], [0.0]], pa.list_(pa.float32()))}))
    assert table.rows() == []


def test_a_duplicate_name(orders: ev.Table, plain_db: ev.Database) -> None:
    """Names are taken in whatever case."""
    with pytest.raises(ev.AlreadyExists) as caught:
        plain_db.create_table("ORDERS", "a int")
    assert str(caught.value) == "there is already a table 'orders'. Hint: choose another name or drop it."


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        (" a", "it has blanks at its ends"),
        ("a\nb", "it has characters that cannot be printed"),
        ("a\x00", "it has characters that cannot be printed"),
        ("\udc80", "it has characters that cannot be printed"),
        ("a" * 129, "it has more than 128 characters"),
        ("__Clock", "everview has names like it for itself"),
        (7, "it is no text"),
    ],
)
def test_a_bad_name(plain_db: ev.Database, name: Any, why: str) -> None:
    """A name that nobody could write or read is refused at once."""
    with pytest.raises(ev.InvalidQuery) as caught:
        plain_db.create_table(name, "a int")
    hint = "best are letters, digits and underscores, as in orders_2024; others are written `like this` in SQL."
    assert str(caught.value) == f"{name!r} is not a name for a table or view: {why}. Hint: {hint}"


def test_unknown_table(orders: ev.Table, plain_db: ev.Database) -> None:
    """A misspelt table is found."""
    with pytest.raises(ev.UnknownName) as caught:
        plain_db.table("order")
    assert str(caught.value) == "there is no table 'order'. Hint: did you mean 'orders'?"
    with pytest.raises(ev.UnknownName) as caught:
        plain_db.apply({"ordrs": [(1,)]})
    assert str(caught.value) == "there is no table 'ordrs'. Hint: did you mean 'orders'?"


def test_lookup_of_an_unknown_column(orders: ev.Table) -> None:
    """A misspelt column is found."""
    with pytest.raises(ev.UnknownName) as caught:
        orders.lookup(pric=3)
    assert str(caught.value) == "column 'pric' is not in table 'orders'. Hint: did you mean 'price'?"


def test_lookup_by_a_wrong_type(orders: ev.Table) -> None:
    """Looking for a string among numbers is a mistake, not an empty answer."""
    with pytest.raises(ev.InvalidQuery) as caught:
        orders.lookup(id="1")
    assert str(caught.value) == "column 'id' of table 'orders' is bigint and cannot take '1' of type str."


def test_a_dropped_table_is_gone(orders: ev.Table, plain_db: ev.Database) -> None:
    """A handle outlives its table only to say so; the name is free again."""
    plain_db.drop("ORDERS")
    for call in (orders.rows, lambda: orders.insert([])):
        with pytest.raises(ev.UnknownName) as caught:
            call()
        assert str(caught.value) == "table 'orders' was dropped."
    with pytest.raises(ev.UnknownName, match="there is no table or view 'orders'"):
        plain_db.drop("orders")
    plain_db.create_table("orders", "x int")
    with pytest.raises(ev.UnknownName):
        orders.rows()


def test_a_static_table_is_loaded_once(plain_db: ev.Database) -> None:
    """The planner may rely on a static table: the second transaction with rows for it is rejected."""
    table = plain_db.create_table("nation", "id int, name string", static=True)
    table.insert([])
    table.insert([(1, "x"), (2, "y")])
    for change in (table.insert, table.delete):
        with pytest.raises(ev.InvalidChange) as caught:
            change([(1, "x")])
        assert str(caught.value) == (
            "table 'nation' is static and has been loaded; it takes no further changes. "
            "Hint: create it without static=True if it changes."
        )
    assert len(table) == 2


def test_a_table_without_retention(db: ev.Database) -> None:
    """With retain=False views are kept fresh, and what would need the rows is an error that says so."""
    table = db.create_table("log", "id int, x int", primary_key="id", retain=False)
    total = db.create_view("total", "SELECT sum(x) AS s FROM log")
    table.insert([(1, 10), (2, 20)])
    table.delete([(1, 10)])
    assert total.rows() == [(20,)]
    unreadable = (
        "table 'log' keeps no rows (retain=False), so it cannot be read. "
        "Hint: read the views over it, or create it with retain=True."
    )
    for call in (table.rows, lambda: list(table), lambda: table.lookup(id=2), lambda: db.sql("SELECT * FROM log")):
        with pytest.raises(ev.UnsupportedOperation) as caught:
            call()
        assert str(caught.value) == unreadable
    with pytest.raises(ev.UnsupportedOperation) as caught:
        db.create_view("late", "SELECT x FROM log")
    assert str(caught.value) == (
        "view 'late' reads table 'log', which keeps no rows (retain=False) and has received some. "
        "Hint: create the view before the rows arrive, or the table with retain=True."
    )
    with pytest.raises(ev.UnsupportedOperation) as caught:
        table.upsert([(2, 5)])
    assert str(caught.value) == (
        "table 'log' keeps no rows (retain=False), so upsert cannot find the old ones. "
        "Hint: give the old rows to delete and the new ones to insert."
    )
    with pytest.raises(ev.UnsupportedOperation) as caught:
        db.verify("total")
    assert str(caught.value) == "view 'total' cannot be verified: table 'log' keeps no rows (retain=False)."
    with pytest.raises(ev.UnsupportedOperation, match="keeps no rows"):
        db.verify("log")
    assert db.verify().skipped == {"total": "table 'log' keeps no rows (retain=False)"}
    db.create_view("above", "SELECT s + 1 AS t FROM total")
    assert db.view("above").rows() == [(21,)]


def test_spark_table_is_empty_and_typed(db: ev.Database, spark: SparkSession) -> None:
    """The stand-in for a table has its schema and no rows."""
    db.create_table("t", "a int NOT NULL, b array<string>")
    frame = db.spark_table("T")
    assert frame.schema.simpleString() == "struct<a:int,b:array<string>>"
    assert frame.count() == 0
    with pytest.raises(ev.UnknownName):
        db.spark_table("nothing")
