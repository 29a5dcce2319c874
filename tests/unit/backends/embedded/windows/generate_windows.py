"""Hypothesis strategies: rows of many types, windows over them, changes of them."""

from __future__ import annotations

from decimal import Decimal as Number

from hypothesis import strategies as st

from everview.relational.expressions import Call, Column, Expression, Literal
from everview.relational.functions import function_named
from everview.relational.nodes import Field, Frame, FrameUnit, Relation, SortKey, Window, WindowCall
from everview.relational.schema import columns, is_nullable
from everview.relational.types import (
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT64,
    INT32,
    INT64,
    INTERVALS,
    NAN,
    STRING,
    TIMESTAMP,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
    Row,
    Value,
    is_integral,
)

NARROW, WIDE = Decimal(10, 2), Decimal(38, 4)
FIELDS = (
    Field("g", INT32),
    Field("i", INT64),
    Field("d", NARROW),
    Field("w", WIDE),
    Field("f", FLOAT64),
    Field("e", FLOAT64),
    Field("s", STRING),
    Field("t", DATE),
    Field("at", TIMESTAMP),
    Field("iv", DAY_TIME_INTERVAL),
    Field("n", INT32, False),
)
_HOUR = 3_600_000_000
_AUTUMN = 1_730_606_400_000_000  # 2024-11-03 04:00 UTC: New York turns its clocks back two hours later
_ORDINARY: dict[DataType, list[Value]] = {
    INT32: [-1, 0, 1, 2],
    INT64: [-3, 0, 1, 2, 7],
    NARROW: [Number("-0.50"), Number("0.00"), Number("1.25"), Number("99999999.99")],
    WIDE: [Number("-1.0000"), Number("0.0001"), Number("12345678901234567890.5000")],
    FLOAT64: [-2.5, -0.0, 0.0, 0.1, 0.2, 0.3, 1e16, -1e16, 3.0],
    STRING: ["", "a", "b", "ä"],
    DATE: [18_000, 18_001, 18_030, 18_059, 18_061, 18_092],
    TIMESTAMP: [_AUTUMN - 24 * _HOUR + k * _HOUR // 2 for k in (0, 1, 2, 3, 4, 48, 49, 50, 51, 52, 53, 54)],
    DAY_TIME_INTERVAL: [-5, 0, 3, _HOUR],
}
_EXTREME: dict[DataType, list[Value]] = {
    INT64: [2**63 - 1, -(2**63), 2**62],
    WIDE: [Number("9" * 34 + ".9999"), Number("-" + "9" * 34 + ".9999")],
    FLOAT64: [NAN, float("inf"), float("-inf"), 1e300, -1e300, 1e150, 1e-300, 1.7e308],
}


def _values(field: Field, *, extreme: bool) -> st.SearchStrategy[Value]:
    pool = _ORDINARY[field.type] + (_EXTREME.get(field.type, []) if extreme else [])
    chosen = st.sampled_from(pool)
    return st.one_of(st.none(), chosen, chosen, chosen) if field.nullable else chosen


@st.composite
def bags(draw: st.DrawFn, max_size: int = 14) -> list[Row]:
    """Rows with NULLs, ties and duplicates; in some bags with values at the ends of their types."""
    extreme = draw(st.sampled_from([False, False, True]))
    row = st.tuples(*(_values(f, extreme=extreme) for f in FIELDS))
    least = draw(st.sampled_from([0, max_size // 2, max_size]))  # partitions of one or two rows prove little
    distinct = draw(st.lists(row, min_size=least, max_size=max_size))
    again = draw(st.lists(st.sampled_from(distinct), max_size=5)) if distinct else []
    return distinct + again


def _call(name: str, *args: Expression) -> Expression:
    return Call(name, args, function_named(name).result_type(tuple(a.type for a in args)))


_OFFSETS: dict[DataType, list[tuple[DataType, list[Value]]]] = {
    INT64: [(INT64, [-3, -1, 0, 1, 5])],
    INT32: [(INT32, [-1, 1, 2])],
    NARROW: [(NARROW, [Number("-1.25"), Number("0.50")]), (Decimal(5, 3), [Number("-0.001"), Number("1.750")])],
    WIDE: [(WIDE, [Number("-1.0000"), Number("2.0000")])],
    FLOAT64: [(FLOAT64, [-2.5, 0.1, 0.0, 3.0])],
    DATE: [(INT32, [-30, -1, 1, 31]), (YEAR_MONTH_INTERVAL, [-1, 1])],
    TIMESTAMP: [(DAY_TIME_INTERVAL, [-24 * _HOUR, -_HOUR, _HOUR, 24 * _HOUR])],
    DAY_TIME_INTERVAL: [(DAY_TIME_INTERVAL, [-5, 3])],
}


@st.composite
def frames(draw: st.DrawFn, order: tuple[SortKey, ...]) -> Frame:
    """A frame that the order allows; it may be empty for some rows, or for all."""
    if draw(st.booleans()):
        bound = st.one_of(st.none(), st.integers(-3, 3).map(lambda k: Literal(k, INT32)))
        return Frame(FrameUnit.ROWS, draw(bound), draw(bound))
    zone = None
    bound = st.sampled_from([None, Literal(0, INT32)])
    if len(order) == 1 and order[0].expression.type in _OFFSETS:
        data_type, values = draw(st.sampled_from(_OFFSETS[order[0].expression.type]))
        bound = st.one_of(bound, st.sampled_from(values).map(lambda v: Literal(v, data_type)))
        zone = "America/New_York" if data_type == DAY_TIME_INTERVAL else None
    return Frame(FrameUnit.RANGE, draw(bound), draw(bound), zone)


def _sum_type(t: DataType) -> DataType:
    if isinstance(t, Decimal):
        return Decimal(min(t.precision + 10, 38), t.scale)
    return t if t in INTERVALS else INT64 if is_integral(t) else FLOAT64


def _average_type(t: DataType) -> DataType:
    if isinstance(t, Decimal):
        return Decimal(min(t.precision + 4, 38), min(t.scale + 4, 38))
    return t if t in INTERVALS else FLOAT64


_RANKS = {"row_number": INT32, "rank": INT32, "dense_rank": INT32, "percent_rank": FLOAT64, "cume_dist": FLOAT64}
_MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr")
_NAMES = (*_RANKS, "ntile", "lead", "first_value", "last_value", "nth_value", "count", "sum", "avg", "try_sum", "try_avg",
          "min", "max", "min_by", "max_by", *_MOMENTS)  # fmt: skip


@st.composite
def calls(draw: st.DrawFn, every: tuple[Column, ...], order: tuple[SortKey, ...]) -> WindowCall:
    """A window function of any kind."""
    name, frame = draw(st.sampled_from(_NAMES)), draw(frames(order))
    if name in _RANKS:
        return WindowCall(name, (), _RANKS[name], frame)
    if name == "ntile":
        return WindowCall(name, (Literal(draw(st.integers(1, 5)), INT32),), INT32, frame)
    value = draw(st.one_of(st.sampled_from(every), st.just(_reciprocal(every))))
    if name == "lead":
        defaults = [Literal(None, value.type), value, *(c for c in every if c.type == value.type)]
        args = (value, Literal(draw(st.integers(-3, 3)), INT32), draw(st.sampled_from(defaults)))
        return WindowCall(name, args, value.type, frame, draw(st.booleans()))
    if name in ("first_value", "last_value", "nth_value"):
        places = (Literal(draw(st.integers(1, 3)), INT32),) if name == "nth_value" else ()
        return WindowCall(name, (value, *places), value.type, frame, draw(st.booleans()))
    condition = draw(st.sampled_from([None, _is_not_zero(every), _call("isnotnull", every[4])]))
    if name == "count":
        args = tuple(draw(st.lists(st.sampled_from(every), max_size=2)))
        return WindowCall(name, args, INT64, frame, filter=condition)
    if name in _MOMENTS:
        args = every[4:6] if name.startswith("co") else every[4:5]
        return WindowCall(name, args, FLOAT64, frame, filter=condition)
    if name in ("min", "max", "min_by", "max_by"):
        by = (draw(st.sampled_from(every)),) if name.endswith("_by") else ()
        return WindowCall(name, (value, *by), value.type, frame, filter=condition)
    summed = [*(c for c in every if c.type not in (STRING, DATE, TIMESTAMP)), _reciprocal(every)]
    value = draw(st.sampled_from(summed))
    data_type = _average_type(value.type) if name.endswith("avg") else _sum_type(value.type)
    return WindowCall(name, (value,), data_type, frame, filter=condition)


def _reciprocal(every: tuple[Column, ...]) -> Expression:
    """1 % n, which fails where n = 0."""
    return _call("%", Literal(1, INT32), every[-1])


def _is_not_zero(every: tuple[Column, ...]) -> Expression:
    equal = _call("=", every[-1], Literal(0, INT32))
    return Call("not", (equal,), BOOLEAN)


@st.composite
def windows(draw: st.DrawFn, child: Relation) -> Window:
    """A window with one to four functions."""
    every = columns(child)
    partition = tuple(draw(st.lists(st.sampled_from([every[k] for k in (0, 0, 6, 4)]), max_size=2, unique=True)))
    keys = st.builds(SortKey, st.sampled_from(every), st.booleans(), st.booleans())
    order = tuple(draw(st.lists(keys, max_size=draw(st.sampled_from([1, 1, 3])))))
    functions = tuple(draw(st.lists(calls(every, order), min_size=1, max_size=4)))
    assert all(is_nullable(c) or c.index == 10 for c in every)
    return Window(child, partition, order, functions, tuple(f"v{k}" for k in range(len(functions))))
