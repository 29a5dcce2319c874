"""pyarrow's conversion of Python values is used only where it says what the exact code says."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everview as ev
from everview.catalog import TableDefinition
from everview.relational.arrow import canonical_floats, column_to_arrow
from everview.relational.nodes import Field
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)
from everview.session.rows.change_shape import from_python
from everview.session.rows.convert_values import Unfit, converter_to, or_null
from everview.session.rows.quick_columns import quick_column

TYPES: list[DataType] = [
    *(BINARY, BOOLEAN, DATE, DAY_TIME_INTERVAL, FLOAT32, FLOAT64, INT8, INT32, INT64, STRING, TIMESTAMP, TIMESTAMP_NTZ),
    *(Decimal(5, 2), Decimal(18, 0), Decimal(38, 10)),
]

_zones = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=5))])
_numbers = (
    st.integers(-300, 300)
    | st.sampled_from([2**31, -(2**31), 2**53 + 1, 2**63, -(2**63), 2**70, 2**24 + 1])
    | st.floats()
    | st.sampled_from([0.0, -0.0, 1.0, 1e300, -3.5e38, float("nan"), float("inf")])
    | st.decimals(-2000, 2000, places=3)
    | st.decimals(allow_nan=True, allow_infinity=True)
    | st.sampled_from([decimal.Decimal(t) for t in ("1000.0", "999.99", "-0", "0E+5", "1E+2", "1.10", "NaN", "sNaN")])
    | st.booleans()
    | st.sampled_from([np.int8(3), np.int64(4), np.float64(0.1), np.float32(0.1), np.bool_(True), np.uint64(2**63)])
)
_others = (
    st.text(max_size=3)
    | st.sampled_from(["\ud800", "é", "1"])
    | st.binary(max_size=3)
    | st.dates()
    | st.datetimes(timezones=_zones)
    | st.timedeltas()
    | st.sampled_from([pd.Timestamp(1), pd.Timestamp("2024-01-01", tz="UTC"), pd.Timedelta(1), datetime.timedelta.max])
)
_alike = st.one_of(
    *(
        st.lists(st.none() | some, max_size=4)
        for some in (_numbers, st.integers(-9, 9), st.floats(), st.decimals(-9, 9, places=2), _others, st.datetimes())
    )
)


@given(_alike | st.lists(st.none() | _numbers | _others, max_size=3), st.sampled_from(TYPES), st.booleans())
def test_quick_is_exact_or_nothing(values: list[Any], data_type: DataType, nullable: bool) -> None:
    """What pyarrow converts is bit for bit what the exact code makes of the values, which then takes them all."""
    quick = quick_column(data_type, nullable)
    assert quick is not None
    made = quick.convert(values)
    if made is None:
        return
    convert = or_null(converter_to(data_type), nullable=nullable)
    try:
        exact = column_to_arrow([convert(v) for v in values], data_type)
    except Unfit as unfit:
        raise AssertionError(f"pyarrow takes {values} as {made}: {unfit.why}") from unfit
    canonical = canonical_floats(pa.chunked_array([made]), data_type).combine_chunks()
    assert (made.type, repr(made.to_pylist())) == (exact.type, repr(exact.to_pylist()))
    assert repr(canonical.to_pylist()) == repr(made.to_pylist())


_FIELDS = tuple(Field(f"c{i}", t, i % 2 == 0) for i, t in enumerate(TYPES))


@given(st.data())
def test_a_few_rows_at_once_are_the_same_rows(data: st.DataObject) -> None:
    """What is converted row by row is bit for bit what the columns give, one by one; and nothing if they give nothing."""
    chosen = data.draw(st.lists(st.sampled_from(_FIELDS), min_size=1, max_size=4, unique=True))
    values = [st.none() | _numbers | _others | st.floats() | st.datetimes()] * len(chosen)
    rows = data.draw(st.lists(st.tuples(*values), min_size=1, max_size=3))
    if data.draw(st.booleans()):
        rows = [dict(zip([f.name for f in chosen], row, strict=True)) for row in rows]  # type: ignore[misc]
    definition = TableDefinition("t", tuple(chosen))
    few = from_python(definition, rows)
    one_by_one = from_python(definition, rows * 9)  # too many for the short way
    if few is None:
        assert one_by_one is None
    else:
        assert one_by_one is not None
        assert few.schema.equals(one_by_one.schema)
        few.validate(full=True)
        assert repr(few.to_pylist()) == repr(one_by_one.slice(0, len(rows)).to_pylist())


def test_a_row_needs_exactly_the_columns() -> None:
    """A dict with another name, a tuple of another length or a list are left to the code that knows what to say."""
    definition = TableDefinition("t", (Field("a", INT64, True), Field("b", FLOAT64, True)))
    assert from_python(definition, [{"a": 1, "b": 0.0}, {"a": None, "b": 2}]) is not None
    for wrong in ([{"a": 1, "c": 1.0}], [{"a": 1}], [(1,)], [(1, 1.0, 2)], [[1, 1.0]], [(1, 1.0), {"a": 1, "b": 1.0}]):
        assert from_python(definition, wrong) is None


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_usual_values_take_the_quick_way(data_type: DataType) -> None:
    """The values that programs mostly give are converted by pyarrow, NULL included."""
    usual: dict[DataType, Any] = {
        BINARY: b"x",
        BOOLEAN: True,
        DATE: datetime.date(2024, 1, 1),
        DAY_TIME_INTERVAL: datetime.timedelta(1),
        FLOAT32: 0.5,
        FLOAT64: 0.1,
        INT8: 1,
        INT32: 1,
        INT64: 2**40,
        STRING: "x",
        TIMESTAMP: datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        TIMESTAMP_NTZ: datetime.datetime(2024, 1, 1),
    }
    quick = quick_column(data_type, nullable=True)
    assert quick is not None
    assert quick.convert([usual.get(data_type, decimal.Decimal(1)), None]) is not None
    strict = quick_column(data_type, nullable=False)
    assert strict is not None
    assert strict.convert([usual.get(data_type, decimal.Decimal(1)), None]) is None


@pytest.fixture
def table() -> ev.Table:
    """A table with a column of each kind that pandas treats in its own way."""
    columns = "id bigint, x int, s string, d double, n decimal(6,2), b boolean, day date, ts timestamp_ntz"
    return ev.connect(backend="reference").create_table("t", columns)


def _frame(**columns: Any) -> pd.DataFrame:
    usual: dict[str, Any] = {"id": [1, 2], "x": [1, 2], "s": ["a", None], "d": [0.5, 1.5], "n": [None, None]}
    usual |= {"b": [True, False], "day": [None, None], "ts": pd.to_datetime(["2024-01-01", None])}
    return pd.DataFrame(usual | columns)


def test_a_pandas_integer_column_with_nan(table: ev.Table) -> None:
    """Whole numbers of a float column, and NaN, are integers and NULL; the row of any other number is named."""
    table.insert(_frame(id=[1.0, 2.0], x=[3.0, np.nan]))
    assert [r[:2] for r in sorted(table.rows())] == [(1, 3), (2, None)]
    for wrong, shown in ((2.5, "2.5"), (np.inf, "inf"), (2.0**60, "1.152921504606847e+18"), (2.0**40, "1099511627776")):
        with pytest.raises(ev.InvalidChange) as caught:
            table.insert(_frame(x=[np.nan, wrong]))
        assert str(caught.value).startswith(f"column 'x' of table 't' is int and cannot hold {shown} (row 1).")
    assert len(table.rows()) == 2


def test_kinds_of_pandas_columns(table: ev.Table) -> None:
    """Objects, nullable types, Arrow types and categories of pandas bring the same rows."""
    day, number = datetime.date(2024, 1, 2), decimal.Decimal("1.50")
    plain = _frame(day=[day, np.nan], n=[number, None], b=[True, None], s=["a", np.nan], x=[7, None])
    frames = [
        plain,
        plain.convert_dtypes(),
        plain.astype({"s": "category", "x": "Int64", "b": "boolean"}),
        pa.Table.from_pandas(plain).to_pandas(types_mapper=pd.ArrowDtype),
        plain.assign(s=pd.Series(["a", pd.NA], dtype=object), b=pd.Series([True, pd.NA], dtype=object)),
    ]
    for frame in frames:
        table.insert(frame)
    first = (1, 7, "a", 0.5, number, True, day, datetime.datetime(2024, 1, 1))
    second = (2, None, None, 1.5, None, None, None, None)
    assert sorted(table.rows(), key=lambda r: r[0]) == [first] * len(frames) + [second] * len(frames)


def test_a_frame_that_changes_later(table: ev.Table) -> None:
    """Rows that were taken from a frame are not those that it has afterwards."""
    frame = _frame().astype({"x": "int32"})
    nullable = frame.astype({"id": "Int64", "x": "Int32"})
    table.insert(frame)
    table.insert(nullable)
    before = table.rows()
    for changed in (frame, nullable):
        changed.loc[:, "id"] = 77
        changed.loc[:, "x"] = 77
        changed.loc[:, "d"] = 7.7
    assert table.rows() == before


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("s", ["a", 1], "string and cannot take 1 of type int (row 1)"),
        ("s", [b"a", b"b"], "string and cannot take values of Arrow type binary"),
        ("n", [1.5, None], "decimal(6,2) and cannot take values of Arrow type double"),
        ("n", [decimal.Decimal("0.001"), None], "decimal(6,2) and cannot hold 0.001 (row 0)"),
        ("b", [1, 0], "boolean and cannot take values of Arrow type int64"),
        ("day", pd.to_datetime(["2024-01-01 12:00", None]), "date and cannot hold 2024-01-01 12:00:00 (row 0)"),
        ("x", ["1", "2"], "int and cannot take values of Arrow type string"),
        ("x", [True, False], "int and cannot take values of Arrow type bool"),
    ],
)
def test_pandas_columns_that_do_not_fit(table: ev.Table, column: str, values: Any, message: str) -> None:
    """A frame is as strict a door as any other."""
    with pytest.raises(ev.InvalidChange) as caught:
        table.insert(_frame(**{column: values}))
    assert message in str(caught.value)
    assert f"'{column}'" in str(caught.value)
    assert table.rows() == []


def test_dicts_in_any_order_with_weights(table: ev.Table) -> None:
    """Dicts name their columns, in any order and case, and may bring weights."""
    names = table.columns
    row = dict(zip(names, (1, 2, "a", 0.5, decimal.Decimal(1), True, None, None), strict=True))
    turned = {name.upper(): row[name] for name in reversed(names)}
    with ev.connect(backend="reference") as db:
        again = db.create_table("t", table.schema)
        db.apply({"t": [{**row, "_weight": 2}, {**row, "_weight": -1}]})
        again.insert([row, dict(reversed(row.items()))])
        again.insert([turned])
        db.apply({"t": [{**turned, "_change_type": "delete"}]})
        assert len(again.rows()) == 3
