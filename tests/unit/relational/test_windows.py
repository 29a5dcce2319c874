from __future__ import annotations

import datetime

import pytest

from everview.errors import EvaluationError
from everview.relational.definitions.windows import evaluate_window
from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.nodes import Field, Frame, FrameUnit, Scan, SortKey, Window, WindowCall
from everview.relational.types import (
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT32,
    INT64,
    NAN,
    YEAR_MONTH_INTERVAL,
    DataType,
    Row,
    Value,
)

DAY = 86_400_000_000
K, V = Column(0, INT32), Column(1, INT32)
R = Scan("r", (Field("k", INT32), Field("v", INT32)))
UP_TO_HERE = Frame(FrameUnit.RANGE, None, Literal(0, INT32))


def _offset(value: int) -> Literal:
    return Literal(value, INT32)


def _frame(unit: FrameUnit, lower: int | None, upper: int | None) -> Frame:
    return Frame(unit, *(None if bound is None else _offset(bound) for bound in (lower, upper)))


def _values(
    rows: list[Row],
    function: str,
    *args: Expression,
    frame: Frame = UP_TO_HERE,
    order: tuple[SortKey, ...] = (SortKey(V),),
    partition: tuple[Expression, ...] = (),
    **options: object,
) -> list[Value]:
    """The function's values, in the order of the rows' values in the definition's output."""
    call = WindowCall(function, args, INT64, frame, **options)  # type: ignore[arg-type]
    return [row[-1] for row in evaluate_window(Window(R, partition, order, (call,), ("x",)), rows)]


ROWS: list[Row] = [(1, 10), (2, 20), (3, 20), (4, 30)]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("row_number", [1, 2, 3, 4]),
        ("rank", [1, 2, 2, 4]),
        ("dense_rank", [1, 2, 2, 3]),
        ("percent_rank", [0.0, 1 / 3, 1 / 3, 1.0]),
        ("cume_dist", [0.25, 0.75, 0.75, 1.0]),
    ],
)
def test_ranks(function: str, expected: list[Value]) -> None:
    """Peers share a rank; row numbers follow the whole row."""
    assert _values(ROWS[::-1], function) == expected


def test_single_row_has_percent_rank_zero() -> None:
    """Nothing is divided by zero."""
    assert _values([(1, 1)], "percent_rank") == [0.0]


@pytest.mark.parametrize(("buckets", "expected"), [(2, [1, 1, 2, 2]), (3, [1, 1, 2, 3]), (9, [1, 2, 3, 4])])
def test_ntile(buckets: int, expected: list[int]) -> None:
    """The first buckets are the larger ones."""
    assert _values(ROWS, "ntile", _offset(buckets)) == expected


def test_partitions_are_separate_and_rows_come_whole() -> None:
    """NULL is a partition like another, and every row appears once."""
    call = WindowCall("count", (), INT64, _frame(FrameUnit.ROWS, None, None))
    window = Window(R, (K,), (SortKey(V),), (call,), ("n",))
    rows: list[Row] = [(1, 1), (None, 2), (1, 3), (None, 2)]
    assert sorted(evaluate_window(window, rows), key=repr) == sorted(
        [(1, 1, 2), (1, 3, 2), (None, 2, 2), (None, 2, 2)], key=repr
    )
    assert evaluate_window(window, []) == []


@pytest.mark.parametrize(
    ("offset", "ignore_nulls", "expected"),
    [
        (1, False, [None, 3, 4, -1]),
        (-1, False, [-1, 1, None, 3]),
        (2, False, [3, 4, -1, -1]),
        (0, False, [1, None, 3, 4]),
        (1, True, [3, 3, 4, -1]),
        (-1, True, [-1, 1, 1, 3]),
        (-2, True, [-1, -1, -1, 1]),
    ],
)
def test_lead_and_lag(offset: int, ignore_nulls: bool, expected: list[Value]) -> None:
    """LAG is a negative LEAD; beyond the partition the default; IGNORE NULLS counts values only."""
    rows: list[Row] = [(1, 10), (None, 20), (3, 30), (4, 40)]
    found = _values(rows, "lead", K, _offset(offset), Literal(-1, INT32), ignore_nulls=ignore_nulls)
    assert found == expected


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (None, 0, [1, 3, 6, 10]),
        (-1, 0, [1, 3, 5, 7]),
        (-1, 1, [3, 6, 9, 7]),
        (0, None, [10, 9, 7, 4]),
        (1, 2, [5, 7, 4, None]),
        (-2, -1, [None, 1, 3, 5]),
        (2, 1, [None, None, None, None]),
    ],
)
def test_row_frames(lower: int | None, upper: int | None, expected: list[Value]) -> None:
    """Frames count rows and stop at the partition; the sum of an empty one is NULL."""
    assert _values(ROWS, "sum", K, frame=_frame(FrameUnit.ROWS, lower, upper)) == expected


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (None, 0, [1, 6, 6, 10]),
        (0, 0, [1, 5, 5, 4]),
        (-10, 0, [1, 6, 6, 9]),
        (-10, 10, [6, 10, 10, 9]),
        (10, 10, [5, 4, 4, None]),
        (0, None, [10, 9, 9, 4]),
    ],
)
def test_range_frames(lower: int | None, upper: int | None, expected: list[Value]) -> None:
    """Frames are by differences of the order value; the current row stands for its peers."""
    assert _values(ROWS, "sum", K, frame=_frame(FrameUnit.RANGE, lower, upper)) == expected


def test_descending_range_frames() -> None:
    """Preceding values of a descending order are larger ones."""
    order = (SortKey(V, descending=True, nulls_first=False),)
    found = _values(ROWS, "sum", K, frame=_frame(FrameUnit.RANGE, -10, 0), order=order)
    assert found == [4, 9, 9, 6]


@pytest.mark.parametrize(("nulls_first", "expected"), [(True, [2, 2, 1, 2, 1]), (False, [1, 2, 1, 2, 2])])
def test_nulls_are_peers_in_range_frames(nulls_first: bool, expected: list[int]) -> None:
    """A NULL's frame is the NULLs, and no value's offset reaches them."""
    rows: list[Row] = [(1, None), (2, None), (3, 1), (4, 2), (5, 9)]
    order = (SortKey(V, nulls_first=nulls_first),)
    assert _values(rows, "count", frame=_frame(FrameUnit.RANGE, -1, 0), order=order) == expected


def test_unbounded_ends_include_nulls() -> None:
    """From the start means from the first row, also where that is a NULL."""
    rows: list[Row] = [(1, None), (2, 1), (3, 2)]
    assert _values(rows, "count", frame=_frame(FrameUnit.RANGE, None, -1)) == [1, 1, 2]


def test_nan_is_a_peer_of_itself() -> None:
    """NaN plus an offset is NaN, so its frame is the NaNs."""
    floats = Scan("f", (Field("k", INT32), Field("x", FLOAT64)))
    frame = Frame(FrameUnit.RANGE, Literal(-1.0, FLOAT64), Literal(1.0, FLOAT64))
    call = WindowCall("count", (), INT64, frame)
    window = Window(floats, (), (SortKey(Column(1, FLOAT64)),), (call,), ("n",))
    rows: list[Row] = [(1, 0.0), (2, 0.5), (3, NAN), (4, NAN), (5, float("inf"))]
    assert [row[-1] for row in evaluate_window(window, rows)] == [2, 2, 1, 2, 2]


def test_range_overflow_is_an_error() -> None:
    """The bound of a frame is computed as Spark computes it, in ANSI mode."""
    with pytest.raises(EvaluationError):
        _values([(1, 2**31 - 1)], "count", frame=_frame(FrameUnit.RANGE, 0, 1))


def _days(text: str) -> int:
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("lower", "unit", "expected"),
    [
        (-1 * DAY, DAY_TIME_INTERVAL, [1, 1, 2, 1]),
        (-1, YEAR_MONTH_INTERVAL, [1, 2, 3, 3]),
        (-1, INT32, [1, 1, 2, 1]),
    ],
)
def test_range_over_dates(lower: int, unit: DataType, expected: list[int]) -> None:
    """Days and months before: from March 31st, a month back is February 29th, and one day back from March 1st, too."""
    dates = Scan("d", (Field("k", INT32), Field("day", DATE)))
    frame = Frame(FrameUnit.RANGE, Literal(lower, unit), Literal(0, INT32), "UTC")
    window = Window(dates, (), (SortKey(Column(1, DATE)),), (WindowCall("count", (), INT64, frame),), ("n",))
    rows: list[Row] = [(i, _days(t)) for i, t in enumerate(("2024-02-28", "2024-03-01", "2024-03-02", "2024-03-31"))]
    assert [row[-1] for row in evaluate_window(window, rows)] == expected


@pytest.mark.parametrize(
    ("function", "args", "ignore_nulls", "expected"),
    [
        ("first_value", (K,), False, [None, None, None]),
        ("first_value", (K,), True, [None, 2, 2]),
        ("last_value", (K,), False, [None, 2, None]),
        ("last_value", (K,), True, [None, 2, 2]),
        ("nth_value", (K, _offset(2)), False, [None, 2, 2]),
        ("nth_value", (K, _offset(1)), True, [None, 2, 2]),
        ("nth_value", (K, _offset(4)), False, [None, None, None]),
    ],
)
def test_positions_in_the_frame(
    function: str, args: tuple[Expression, ...], ignore_nulls: bool, expected: list[Value]
) -> None:
    """First, last and n-th of the frame, NULL where the frame is too short."""
    rows: list[Row] = [(None, 1), (2, 2), (None, 3)]
    assert _values(rows, function, *args, ignore_nulls=ignore_nulls) == expected


def test_filtered_window_aggregates() -> None:
    """Only rows on which the filter is true count; every row still has a value."""
    condition = Call(">", (K, _offset(1)), BOOLEAN)
    rows: list[Row] = [(1, 1), (2, 2), (None, 3), (3, 4)]
    assert _values(rows, "count", filter=condition) == [0, 1, 1, 2]
