"""What tables accept and what they reject, with the exact words."""

from __future__ import annotations

import datetime
import decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDE = (
    "id bigint NOT NULL, x int, d double, f float, n decimal(6,2), s string, day date, ts timestamp, ntz timestamp_ntz"
)


@pytest.fixture
def table(plain_db: ev.Database) -> ev.Table:
    """A table without a key and with a column of most types."""
    return plain_db.create_table("t", WIDE)


NO_TEXT = pa.array([b"a", b"\xff", None]).view(pa.string())
"""Bytes that Arrow takes for a string without a look."""


def row(**values: Any) -> dict[str, Any]:
    """A row of NULLs but for these values."""
    return {"id": 1, **dict.fromkeys(["x", "d", "f", "n", "s", "day", "ts", "ntz"]), **values}


def test_every_container(db: ev.Database, spark: SparkSession) -> None:
    """The same rows arrive from every container, matched by name, or by position for tuples."""
    from pyspark.sql import Row

    table = db.create_table("t", "a int, b string")
    arrow = pa.table({"B": ["x", None], "a": pa.array([1, 2], pa.int32())})
    forms: list[Any] = [
        [(1, "x"), (2, None)],
        [[1, "x"], [2, None]],
        iter([(1, "x"), (2, None)]),
        [{"b": "x", "A": 1}, {"a": 2, "B": None}],
        [Row(b="x", a=1), Row(b=None, a=2)],
        arrow,
        arrow.to_batches()[0],
        pd.DataFrame({"b": ["x", None], "a": [1, 2]}),
        spark.createDataFrame([("x", 1), (None, 2)], "b string, a int"),
        arrow.to_reader(),
    ]
    for form in forms:
        table.insert(form)
    assert sorted(table.rows(), key=str) == sorted([(1, "x"), (2, None)] * len(forms), key=str)


def test_encodings_of_strings(table: ev.Table) -> None:
    """How Arrow lays out a column does not matter."""
    plain = pa.array(["x", None, "y"])
    layouts = [
        plain.dictionary_encode(),
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        pc.run_end_encode(plain),
        pa.chunked_array([["x", None], ["y"], []], pa.string()),
    ]
    for strings in layouts:
        columns = {name: pa.nulls(3) for name in table.columns}
        table.insert(pa.table({**columns, "id": [1, 2, 3], "s": strings}))
    assert [r[5] for r in table.rows() if r[0] == 1] == ["x"] * 5
    assert [r[5] for r in table.rows() if r[0] == 3] == ["y"] * 5


def test_lossless_conversions(table: ev.Table) -> None:
    """A column takes every type whose values it holds exactly."""
    utc = datetime.UTC
    table.insert(
        pa.table(
            {
                "id": pa.array([7], pa.uint64()),
                "x": pa.array([3], pa.int64()),
                "d": pa.array([2**53], pa.int64()),
                "f": pa.array([0.5], pa.float64()),
                "n": pa.array([12], pa.int8()),
                "s": pa.array(["x"], pa.large_string()),
                "day": pa.array([datetime.date(2024, 1, 1)], pa.date64()),
                "ts": pa.array([1_000], pa.timestamp("ns", tz="Europe/Paris")),
                "ntz": pa.array([1], pa.timestamp("s")),
            }
        )
    )
    table.insert([row(x=np.int64(3), d=3, n=decimal.Decimal("1.2000"), f=0.1)])
    assert table.lookup(id=7) == [
        (
            7,
            3,
            2.0**53,
            0.5,
            decimal.Decimal("12.00"),
            "x",
            datetime.date(2024, 1, 1),
            datetime.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=utc),
            datetime.datetime(1970, 1, 1, 0, 0, 1),
        )
    ]
    assert table.lookup(id=1)[0][3] == float(np.float32(0.1))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("x", "1", "int and cannot take '1' of type str (row 1)."),
        ("x", 1.0, "int and cannot take 1.0 of type float (row 1). Hint: convert it with int() first."),
        ("x", True, "int and cannot take true of type bool (row 1)."),
        ("x", 2**31, "int and cannot hold 2147483648 (row 1)."),
        ("d", 2**53 + 1, "double and cannot hold 9007199254740993 (row 1)."),
        (
            "d",
            decimal.Decimal(1),
            "double and cannot take 1 of type Decimal (row 1). Hint: convert it with float() first.",
        ),
        ("f", 1e39, "float and cannot hold 1e+39 (row 1)."),
        ("n", 10_000, "decimal(6,2) and cannot hold 10000 (row 1)."),
        ("n", decimal.Decimal("0.001"), "decimal(6,2) and cannot hold 0.001 (row 1)."),
        ("n", decimal.Decimal("NaN"), "decimal(6,2) and cannot hold NaN (row 1)."),
        (
            "n",
            0.5,
            "decimal(6,2) and cannot take 0.5 of type float (row 1). "
            "Hint: give a decimal.Decimal, for example Decimal(str(x)).",
        ),
        ("s", 1, "string and cannot take 1 of type int (row 1)."),
        ("s", "\ud800", "string and cannot hold '\\ud800', which is not valid Unicode (row 1)."),
        (
            "day",
            datetime.datetime(2024, 1, 1, 12),
            "date and cannot take 2024-01-01 12:00:00 of type datetime (row 1). Hint: take its date() first.",
        ),
        ("day", "2024-01-01", "date and cannot take '2024-01-01' of type str (row 1). Hint: give a datetime.date."),
        (
            "ntz",
            datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
            "timestamp_ntz and cannot take 2024-01-01 00:00:00+00:00, which has a time zone (row 1). Hint: remove it, "
            "for example value.replace(tzinfo=None), or declare the column timestamp.",
        ),
    ],
)
def test_python_values_that_do_not_fit(table: ev.Table, column: str, value: Any, message: str) -> None:
    """A value that a column cannot hold exactly rejects the change, and names table, column, value and row."""
    with pytest.raises(ev.InvalidChange) as caught:
        table.insert([row(), row(**{column: value})])
    assert str(caught.value) == f"column '{column}' of table 't' is {message}"
    assert table.rows() == []


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("x", pa.array([1, 2**31, -(2**40)]), "int and cannot hold 2147483648 (rows 1, 2)."),
        ("id", pa.array([1, 2, 2**63], pa.uint64()), "bigint and cannot hold 9223372036854775808 (row 2)."),
        (
            "x",
            pa.array([1.0, 2.0, None]),
            "int and cannot take values of Arrow type double. "
            "Hint: convert the column to integers first; in pandas, Int64 keeps missing values.",
        ),
        ("x", pa.array(["1"] * 3), "int and cannot take values of Arrow type string. Hint: parse the column first."),
        ("s", pa.array([1, 2, 3]), "string and cannot take values of Arrow type int64."),
        ("d", pa.array([1, 2**53 + 1, 2]), "double and cannot hold 9007199254740993 (row 1)."),
        ("f", pa.array([0.1, 0.5, float("nan")]), "float and cannot hold 0.1 (row 0)."),
        ("n", pa.array([1, 2, 10_000]), "decimal(6,2) and cannot hold 10000 (row 2)."),
        (
            "n",
            pa.array([decimal.Decimal("1.000"), decimal.Decimal("1.001"), decimal.Decimal(99999)]),
            "decimal(6,2) and cannot hold 1.001 (rows 1, 2).",
        ),
        (
            "day",
            pa.array([0, 1, 2], pa.timestamp("us")),
            "date and cannot hold 1970-01-01 00:00:00.000001 (rows 1, 2). Hint: a date column takes times at midnight",
        ),
        (
            "day",
            pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
            "date and cannot take values of Arrow type timestamp[us, tz=UTC]. Hint: convert the column to dates first.",
        ),
        ("ntz", pa.array([0, 1000, 1001], pa.timestamp("ns")), "timestamp_ntz and cannot hold"),
        *(
            (name, pa.array([0, 2**62, 0], kind), f"{name_of} and cannot hold {2**62} as {kind} (row 1).")
            for name, name_of, kind in (
                ("ts", "timestamp", pa.timestamp("s", "UTC")),
                ("day", "date", pa.timestamp("s")),
                ("day", "date", pa.date64()),
            )
        ),
        *(
            (
                "s",
                values,
                "string and cannot hold b'\\xff', which is not UTF-8 (row 1). Hint: a binary column takes any bytes.",
            )
            for values in (
                NO_TEXT,
                NO_TEXT.cast(pa.large_string()),
                pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), NO_TEXT),
            )
        ),
        (
            "s",
            pa.DictionaryArray.from_arrays(pa.array([0, 7, 1]), pa.array(["a", "b"]), safe=False),
            "string and cannot take these values of Arrow type dictionary<values=string, indices=int64, ordered=0>: Index 7",
        ),
    ],
)
def test_arrow_columns_that_do_not_fit(table: ev.Table, column: str, values: pa.Array, message: str) -> None:
    """The same for whole columns, which are checked without a loop over their rows."""
    columns = {name: pa.nulls(3) for name in table.columns}
    with pytest.raises(ev.InvalidChange) as caught:
        table.insert(pa.table({**columns, "id": pa.array([1, 2, 3]), column: values}))
    assert str(caught.value).startswith(f"column '{column}' of table 't' is {message}")


def test_text_that_is_none(plain_db: ev.Database) -> None:
    """In whatever way it comes in, and inside arrays too; of a table that keeps no rows only where a view reads it."""
    table = plain_db.create_table("one", "s string")
    for many in (1, 500):
        with pytest.raises(ev.InvalidChange, match=r"b'.xff', which is not UTF-8"):
            table.insert(pa.table({"s": pa.concat_arrays([NO_TEXT] * many)}))
        table.insert(pa.table({"s": ["é"] * many}))
    inside = plain_db.create_table("inside", "a array<string>")
    with pytest.raises(ev.InvalidChange, match="array<string> and cannot hold text that is not UTF-8"):
        inside.insert(pa.table({"a": pa.ListArray.from_arrays([0, 3], NO_TEXT)}))
    with pytest.raises(ev.InvalidChange, match="not UTF-8"):
        plain_db.create_table("made", pa.table({"s": NO_TEXT}))
    assert list(plain_db.tables) == ["one", "inside"]


def test_text_that_is_none_passes_where_nothing_reads_it(spark: SparkSession) -> None:
    """A table that keeps no rows is looked at in the columns that views read, in tests of their text too."""
    with ev.connect(spark=spark) as db:
        table = db.create_table("t", "s string, tested string, unread string", retain=False)
        view = db.create_view("v", "SELECT s, count(*) AS n FROM t WHERE tested LIKE 'a%' GROUP BY s")
        good = pa.array(["a", "b", None])
        for column in ("s", "tested"):
            with pytest.raises(ev.InvalidChange, match=f"column '{column}' .* not UTF-8"):
                table.insert(pa.table({"s": good, "tested": good, "unread": NO_TEXT, column: NO_TEXT}))
        table.insert(pa.table({"s": good, "tested": good, "unread": NO_TEXT}))
        assert view.rows() == [("a", 1)]


def test_times_without_a_zone_are_the_sessions(db: ev.Database, spark: SparkSession) -> None:
    """A time without a zone is a local time of the session in every form, as Spark reads it, also where clocks change."""
    local = [
        datetime.datetime(2024, 1, 1, 12),
        datetime.datetime(2024, 3, 31, 2, 30),  # skipped in Paris
        datetime.datetime(2024, 10, 27, 2, 30),  # twice in Paris
        datetime.datetime(2024, 7, 1, 0, 0, 0, 1),
        None,
    ]
    kept = spark.conf.get("spark.sql.session.timeZone")
    for number, zone in enumerate(["Europe/Paris", "America/St_Johns", "+02:30", "PST", "UTC"]):
        table = db.create_table(f"t{number}", "ts timestamp, a array<timestamp>")
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            texts = ", ".join("(NULL)" if t is None else f"(TIMESTAMP_NTZ '{t}')" for t in local)
            expected = [
                r[0] for r in spark.sql(f"SELECT unix_micros(CAST(x AS TIMESTAMP)) FROM VALUES {texts} v(x)").collect()
            ]
            naive = pa.array(local, pa.timestamp("us"))
            forms: list[Any] = [
                [(t, [t]) for t in local],
                [{"ts": t, "a": [t]} for t in local],
                [(local[0], [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), t]) for t in local],
                pd.DataFrame({"ts": pd.to_datetime(local), "a": [[t] for t in local]}),
                pa.table({"ts": naive, "a": [[t] for t in local]}),
                pa.table({"ts": naive.cast(pa.timestamp("s"), safe=False).cast(pa.timestamp("ns")), "a": pa.nulls(5)}),
            ]
            for form in forms:
                table.insert(form)
        finally:
            spark.conf.set("spark.sql.session.timeZone", kept)
        rows = table.rows()
        got = [None if t is None else _micros(t) for t, _ in rows]
        inside = [None if a is None or a[-1] is None else _micros(a[-1]) for _, a in rows]
        whole_seconds = [None if t is None else t // 1_000_000 * 1_000_000 for t in expected]
        as_set = [*expected * 2, *[expected[0]] * 5, *expected * 2, *whole_seconds]
        assert sorted(got, key=str) == sorted(as_set, key=str), zone
        assert sorted(inside, key=str) == sorted([*expected * 5, *[None] * 5], key=str), zone


def _micros(instant: datetime.datetime) -> int:
    return (instant - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)


def test_times_at_midnight_are_dates(table: ev.Table) -> None:
    """A frame of pandas has dates only as times: those at midnight fit a date column."""
    table.insert(
        pd.DataFrame({**row(), "id": [1, 2], "day": pd.to_datetime(["2024-01-01", None])}).astype({"x": "Int32"})
    )
    table.insert([row(day=datetime.datetime(2024, 1, 1))])
    days = [table.columns.index("day"), table.columns.index("id")]
    assert sorted((r[days[0]], r[days[1]]) for r in table.rows() if r[days[0]]) == [(datetime.date(2024, 1, 1), 1)] * 2
    assert len(table.rows()) == 3


def test_values_inside_arrays_and_structs(plain_db: ev.Database) -> None:
    """Nested values obey the same law, and the row that has the wrong one is named."""
    table = plain_db.create_table("t", "a array<tinyint>, s struct<p: int, q: string>")
    table.insert(
        pa.table(
            {
                "a": pa.chunked_array([pa.array([[1, 2], None], pa.large_list(pa.int64())), [[], [None, 4]]]),
                "s": [{"Q": "x", "P": 1}, None, {"Q": None, "P": None}, {"Q": "y", "P": 2}],
            }
        )
    )
    assert table.rows() == [
        ([1, 2], {"p": 1, "q": "x"}),
        (None, None),
        ([], {"p": None, "q": None}),
        ([None, 4], {"p": 2, "q": "y"}),
    ]
    with pytest.raises(ev.InvalidChange) as caught:
        table.insert(pa.table({"a": [[1], [2, 300], [400]], "s": pa.nulls(3)}))
    assert str(caught.value) == "column 'a' of table 't' is array<tinyint> and cannot hold 300 (rows 1, 2)."
    with pytest.raises(ev.InvalidChange) as caught:
        table.insert([([1], {"p": 1, "r": 2})])
    assert str(caught.value) == (
        "column 's' of table 't' is struct<p:int,q:string> and cannot take {p: 1, r: 2} (row 0). Hint: its fields are p, q."
    )


def test_a_missing_column(orders: ev.Table) -> None:
    """Columns are never filled in silently."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert([{"id": 3, "price": 1}])
    assert str(caught.value) == "column 'customer' of table 'orders' is missing from the rows."
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert(pa.table({"id": [3]}))
    assert str(caught.value) == "columns 'customer', 'price' of table 'orders' are missing from the rows."


def test_an_extra_column(orders: ev.Table) -> None:
    """A column the table does not have is an error, with a hint for a near miss."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert([{"id": 3, "customer": "c", "pric": 1}])
    assert str(caught.value) == "column 'pric' is not in table 'orders'. Hint: did you mean 'price'?"


def test_columns_named_twice(orders: ev.Table) -> None:
    """Two columns that differ in case only are one name."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert(pa.table({"id": [1], "ID": [1], "customer": ["x"], "price": [1]}))
    assert str(caught.value) == "the rows for table 'orders' have two columns named 'ID'."


def test_tuples_of_the_wrong_length(orders: ev.Table) -> None:
    """A tuple has the table's columns and nothing more, not even a weight."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert([(3, "c", 1), (4, "d", 1, 1)])
    assert str(caught.value) == (
        "row 1 for table 'orders' has 4 values, but there should be 3: id, customer, price. "
        "Hint: weights go into a column of their own."
    )


def test_rows_that_are_no_rows(orders: ev.Table) -> None:
    """Neither a single row nor a mixture passes for a list of rows."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert({"id": 1})
    assert str(caught.value) == (
        "the rows for table 'orders' are of type dict. "
        "Hint: give a list of tuples or dicts, or an Arrow, pandas or PySpark table."
    )
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert((3, "c", 1))
    expected = "row 0 for table 'orders' is 3 of type int. Hint: give a list of tuples, or a list of dicts."
    assert str(caught.value) == expected
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert([{"id": 3, "customer": "c", "price": 1}, {"id": 3, "price": 1}])
    assert str(caught.value) == "row 1 for table 'orders' has no column 'customer', which other rows have."


def test_null_in_a_column_that_has_none(plain_db: ev.Database) -> None:
    """NOT NULL holds for every container."""
    table = plain_db.create_table("t", "a int NOT NULL")
    for rows in (
        [(1,), (None,), (None,)],
        pa.table({"a": [1, None, None]}),
        pd.DataFrame({"a": [1, None, None]}, dtype="Int64"),
    ):
        with pytest.raises(ev.InvalidChange) as caught:
            table.insert(rows)
        assert str(caught.value) == "column 'a' of table 't' is NOT NULL, but has NULL in rows 1, 2."


def test_a_null_key(orders: ev.Table) -> None:
    """A primary key is never NULL."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.upsert([(None, "x", 1)])
    assert str(caught.value) == "column 'id' of table 'orders' is in the primary key, but has NULL in row 0."


def test_weights(plain_db: ev.Database) -> None:
    """A weight adds a row that many times, or takes it away; the parts of a batch are summed."""
    table = plain_db.create_table("t", "a int")
    plain_db.apply({"t": pa.table({"a": [1, 2, 1, 3], "_WEIGHT": pa.array([3, 1, -1, 2], pa.int16())})})
    assert sorted(table.rows()) == [(1,), (1,), (2,), (3,), (3,)]
    plain_db.apply({"t": [{"a": 3, "_weight": -2}, {"a": 9, "_weight": 1}, {"a": 9, "_weight": -1}]})
    assert sorted(table.rows()) == [(1,), (1,), (2,)]
    table.delete([{"a": 1, "_weight": 2}])
    assert table.rows() == [(2,)]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (pa.array([1, 0]), "0 in row 1, which changes nothing. Hint: leave such rows out."),
        (pa.array([1.0, 1.5]), "1.5 in row 1, which is not an integer. Hint: _weight is a column of integers."),
        (pa.array([1.0, 1.0]), "1.0 in row 0, which is not an integer. Hint: _weight is a column of integers."),
        (pa.array([1, None]), "NULL in row 1, which is not an integer."),
        (pa.array(["1", "2"]), "'1' in row 0, which is not an integer. Hint: _weight is a column of integers."),
        ([1, 0], "0 in row 1, which changes nothing. Hint: leave such rows out."),
        ([1, 0.5], "0.5 in row 1, which is not an integer."),
        ([1, None], "NULL in row 1, which is not an integer."),
        ([1, True], "true in row 1, which is not an integer."),
    ],
)
def test_weights_that_are_none(plain_db: ev.Database, weights: Any, message: str) -> None:
    """A weight is an integer other than 0."""
    plain_db.create_table("t", "a int")
    is_list = isinstance(weights, list)
    rows = [{"a": 1, "_weight": w} for w in weights] if is_list else pa.table({"a": [1, 1], "_weight": weights})
    with pytest.raises(ev.InvalidChange) as caught:
        plain_db.apply({"t": rows})
    assert str(caught.value) == f"the _weight column for table 't' has {message}"


def test_negative_weights_are_for_apply(orders: ev.Table) -> None:
    """Insert inserts and delete deletes; weights of either sign go to apply."""
    with pytest.raises(ev.InvalidChange) as caught:
        orders.insert([{"id": 1, "customer": "ann", "price": 5, "_weight": -1}])
    assert str(caught.value) == (
        "the _weight column for table 'orders' has -1 in row 0, which insert does not take. Hint: use db.apply()."
    )
    with pytest.raises(ev.InvalidChange) as caught:
        orders.upsert([{"id": 1, "customer": "ann", "price": 5, "_weight": 1}])
    assert str(caught.value) == (
        "the rows for upsert on table 'orders' have a column _weight. Hint: such rows go to db.apply()."
    )


def test_change_types(plain_db: ev.Database) -> None:
    """Rows of Delta's change feed are taken as they are, commit columns and all."""
    table = plain_db.create_table("t", "k int, v string", primary_key="k")
    feed = pa.table(
        {
            "k": [1, 2, 2, 2, 1],
            "v": ["a", "b", "b", "c", "a"],
            "_change_type": ["insert", "insert", "update_preimage", "update_postimage", "delete"],
            "_commit_version": [1, 1, 2, 2, 3],
            "_commit_timestamp": pa.nulls(5),
        }
    )
    plain_db.apply({"t": feed})
    assert table.rows() == [(2, "c")]
    plain_db.apply({"t": [{"k": 2, "v": "c", "_change_type": "delete"}]})
    assert table.rows() == []
    plain_db.apply({"t": feed.slice(0, 0)})


def test_unknown_change_types(plain_db: ev.Database) -> None:
    """A change type is one of four words."""
    plain_db.create_table("t", "a int")
    with pytest.raises(ev.InvalidChange) as caught:
        plain_db.apply({"t": [{"a": 1, "_change_type": "insert"}, {"a": 1, "_change_type": "inserts"}]})
    assert (
        str(caught.value)
        == "the _change_type column for table 't' has 'inserts' in row 1. Hint: did you mean 'insert'?"
    )
    with pytest.raises(ev.InvalidChange) as caught:
        plain_db.apply({"t": pa.table({"a": [1], "_change_type": [None]})})
    assert str(caught.value) == (
        "the _change_type column for table 't' has NULL in row 0. "
        "Hint: it is one of insert, update_postimage, delete, update_preimage."
    )


def test_weight_and_change_type_together(plain_db: ev.Database) -> None:
    """A row is said once what it is."""
    plain_db.create_table("t", "a int")
    with pytest.raises(ev.InvalidChange) as caught:
        plain_db.apply({"t": [{"a": 1, "_change_type": "insert", "_weight": 1}]})
    assert str(caught.value) == "the rows for table 't' have both _weight and _change_type. Hint: give one."


def test_changes_must_be_a_mapping(plain_db: ev.Database) -> None:
    """Apply takes tables by name."""
    with pytest.raises(ev.InvalidChange) as caught:
        plain_db.apply([("t", [])])  # type: ignore[arg-type]
    assert str(caught.value) == "changes are of type list. Hint: give a dict from table names to rows."


class _Batch:
    """A batch of another library, which exports it and no stream."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_array__(requested_schema)


def test_batches_of_other_libraries(plain_db: ev.Database) -> None:
    """They come by Arrow's C interface; a column is no table, and the error says so."""
    batch = pa.record_batch({"a": pa.array([1], pa.int32())})
    table = plain_db.create_table("t", _Batch(batch))
    table.insert(_Batch(batch))
    assert table.rows() == [(1,), (1,)]
    for column in (_Batch(pa.array([1])), pa.chunked_array([[1]]), pa.array([1])):
        with pytest.raises(ev.InvalidChange, match="which is no table"):
            table.insert(column)
        with pytest.raises(ev.InvalidChange, match="which is no table"):
            plain_db.create_table("u", column)


def test_objects_of_pandas_that_have_no_type(plain_db: ev.Database) -> None:
    """The error names the row, as for a list; values that only pyarrow refuses together are taken."""
    table = plain_db.create_table("t", "s string, n decimal(5,2)")
    with pytest.raises(ev.InvalidChange, match=r"column 's' of table 't' .* cannot take 5 of type int \(row 1\)"):
        table.insert(pd.DataFrame({"s": ["x", 5, None], "n": [1, 2, 3]}))
    mixed = [decimal.Decimal("1.5"), 2, float("nan")]
    table.insert(pd.DataFrame({"s": ["x", pd.NA, None], "n": pd.Series(mixed, dtype=object)}))
    assert sorted(table.rows(), key=str) == [("x", decimal.Decimal("1.50")), (None, decimal.Decimal(2)), (None, None)]
    with pytest.raises(ev.InvalidChange, match=r"Sparse\[float64, nan\], cannot be read"):
        table.insert(pd.DataFrame({"s": ["x"], "n": pd.arrays.SparseArray([1.0])}))
    with pytest.raises(ev.InvalidQuery, match="no types that pyarrow finds"):
        plain_db.create_table("u", pd.DataFrame({"s": ["x", 5]}))


def test_later_changes_to_a_pandas_frame_do_not_matter(plain_db: ev.Database) -> None:
    """Rows are taken when they are given, even inside a transaction that commits later."""
    table = plain_db.create_table("t", "a bigint, b double")
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, None]})
    with plain_db.transaction() as tx:
        tx.insert("t", frame)
        frame.loc[:, "a"] = 9
    assert table.rows() == [(1, 0.5), (2, None)]
