"""The small hand-made tables of `general/` and `queryplan/`.

They are dense in what breaks view maintenance: NULLs in keys and values, duplicate rows, dangling references,
groups of one row, empty strings, negative numbers and the extremes of every type. Doubles are multiples of 1/8, so
that sums of them are exact in any order. Three conventions keep every query free of ANSI errors, on subsets of the
rows too:

- in `typed`, rows with k <= 16 are tame; those above hold extremes, which overflow when added, negated or narrowed;
- `special` is the only table with NaN and infinities, and its column z the only one with negative zero;
- `nothing` has no rows.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_TIMESTAMP_NTZ = pa.timestamp("us")
_NAN = float("nan")
_INF = float("inf")

_SCHEMAS: dict[str, pa.Schema] = {
    "emp": pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("name", pa.string()),
            ("dept_id", pa.int32()),
            ("manager_id", pa.int32()),
            ("salary", pa.decimal128(10, 2)),
            ("bonus", pa.float64()),
            ("hired", pa.date32()),
            ("active", pa.bool_()),
            ("grade", pa.int8()),
            ("level", pa.int16()),
        ]
    ),
    "dept": pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("name", pa.string()),
            ("city", pa.string()),
            ("budget", pa.decimal128(38, 6)),
            ("parent_id", pa.int32()),
            ("opened", pa.date32()),
        ]
    ),
    "sale": pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("emp_id", pa.int32()),
            ("product", pa.string()),
            ("region", pa.string()),
            ("qty", pa.int32()),
            ("price", pa.decimal128(12, 2)),
            ("discount", pa.float64()),
            ("sold_on", pa.date32()),
            ("sold_at", _TIMESTAMP),
            ("note", pa.string()),
        ]
    ),
    "event": pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("user_id", pa.int32()),
            ("at", _TIMESTAMP),
            ("day", pa.date32()),
            ("kind", pa.string()),
            ("amount", pa.decimal128(9, 2)),
            ("score", pa.float64()),
        ]
    ),
    "t1": pa.schema([("a", pa.int32()), ("b", pa.int32()), ("c", pa.string())]),
    "t2": pa.schema([("a", pa.int32()), ("b", pa.int32()), ("d", pa.string())]),
    "t3": pa.schema([("b", pa.int32()), ("e", pa.int64())]),
    "typed": pa.schema(
        [
            pa.field("k", pa.int32(), nullable=False),
            ("flag", pa.bool_()),
            ("i8", pa.int8()),
            ("i16", pa.int16()),
            ("i32", pa.int32()),
            ("i64", pa.int64()),
            ("f32", pa.float32()),
            ("f64", pa.float64()),
            ("dec", pa.decimal128(38, 10)),
            ("money", pa.decimal128(18, 2)),
            ("s", pa.string()),
            ("bin", pa.binary()),
            ("d", pa.date32()),
            ("ts", _TIMESTAMP),
            ("ntz", _TIMESTAMP_NTZ),
        ]
    ),
    "special": pa.schema(
        [
            pa.field("k", pa.int32(), nullable=False),
            ("g", pa.string()),
            ("x", pa.float64()),
            ("y", pa.float32()),
            ("z", pa.float64()),
        ]
    ),
    "doc": pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("title", pa.string()),
            ("body", pa.string()),
            ("tags", pa.string()),
        ]
    ),
    "nothing": pa.schema([("k", pa.int32()), ("v", pa.int64()), ("s", pa.string()), ("d", pa.decimal128(10, 2))]),
    "r": pa.schema([("a", pa.int64()), ("b", pa.int64())]),
}

_DEPT: list[Row] = [
    # id, name, city, budget, parent_id, opened
    (1, "board", "Bern", "1000000.500000", None, "1999-12-31"),
    (2, "sales", "Bern", "250000.000000", 1, "2000-02-29"),
    (3, "research", "Oslo", "99999999999999999999999999.123456", 1, "2001-01-01"),
    (4, "support", "Rome", "0.000001", 2, "2010-06-15"),
    (5, "legal", None, "-1500.250000", 1, "2012-03-31"),
    (6, "empty", "Rome", "0.000000", 3, "2020-02-29"),
    (7, "", "Oslo", None, 3, None),
    (8, None, "Lima", "42.000000", None, "2020-12-31"),
    (9, "sales", "Lima", "250000.000000", 2, "2005-05-05"),
    (10, "depot", "", "7.700000", 99, "2005-05-05"),
    (11, "annex", "Lima", None, 9, "1970-01-01"),
    (12, "attic", "Bern", "12.345678", 11, "1969-12-31"),
]

_EMP: list[Row] = [
    # id, name, dept_id, manager_id, salary, bonus, hired, active, grade, level
    (1, "Ada", 1, None, "9000.00", 100.5, "2000-01-15", True, 9, 900),
    (2, "Bob", 2, 1, "5000.00", 20.25, "2001-03-01", True, 5, 510),
    (3, "Cyd", 2, 2, "4000.00", None, "2004-02-29", True, 4, 400),
    (4, "Dan", 2, 2, "4000.00", 12.5, "2004-02-29", False, 4, 405),
    (5, "Eve", 3, 1, "7000.50", 55.0, "2008-07-31", True, 7, 700),
    (6, "Fay", 3, 5, "6500.25", 40.125, "2010-12-31", None, 6, 600),
    (7, "Gus", 3, 5, "6500.25", 0.0, "2011-01-01", True, 6, 610),
    (8, "Hal", 4, 2, "3000.00", -5.5, "2015-08-20", False, 3, 300),
    (9, "Ida", 4, 8, None, 7.75, "2016-02-29", True, 3, None),
    (10, "Jon", 5, 1, "8000.00", 80.0, "2012-05-05", True, 8, 800),
    (11, "Kim", None, 10, "2500.00", 3.5, "2018-09-09", True, 2, 200),
    (12, "Lea", None, None, "2600.00", None, None, None, None, None),
    (13, "ada", 9, 2, "1000.00", 1.0, "2019-11-30", True, 1, 100),
    (14, "", 9, 13, "1000.00", 2.0, "2019-12-01", False, 1, 110),
    (15, None, 9, 13, "0.01", 4.0, "2020-02-28", True, 0, 0),
    (16, "Max", 42, 5, "4200.00", 42.0, "2020-03-01", True, 4, 420),
    (17, "Ned", 11, 99, "-100.00", -1.0, "2021-06-30", False, -1, -10),
    (18, "Oli", 11, 17, "3333.33", 3.125, "2021-07-01", True, 3, 333),
    (19, "Pat", 1, 1, "9000.00", 99.0, "2000-01-15", True, 9, 901),
    (20, "Quy", 3, 6, None, None, "2022-02-28", None, 5, 500),
    (21, "Rex", 10, 19, "5555.55", 5.5, "1999-12-31", True, 5, 555),
    (22, "Sue", 10, 19, "5555.55", 6.5, "2023-10-29", False, 5, 556),
    (23, "Tom", 2, 3, "99999999.99", 1024.0, "1970-01-01", True, 127, 32767),
    (24, "Una", 5, 10, "1.00", -1024.0, "2024-02-29", True, -128, -32768),
]

_PRODUCTS = ("apple", "pear", "Apple", "fig", None, "plum", "")
_REGIONS = ("north", "south", "east", None, "west")
_NOTES = ("ok", "10% off", "a_b", None, "", "late;late", "O'Hara", "tab\tbed")


def _sales() -> list[Row]:
    start = datetime(2023, 11, 28, 6, 30, tzinfo=UTC)
    rows: list[Row] = []
    for i in range(40):
        at = start + timedelta(days=i * 11 % 97, hours=i * 5, minutes=i * 17, microseconds=i * 250_001)
        rows.append(
            (
                1000 + i,
                None if i % 13 == 5 else i * 7 % 26,
                _PRODUCTS[i * 3 % 7],
                _REGIONS[i * 8 // 5 % 5],
                None if i % 11 == 3 else i * 5 % 9 - 2,
                None if i % 17 == 8 else f"{i * 37 % 19 * 5 + 1}.{i * 13 % 100:02d}",
                None if i % 7 == 6 else i % 5 * 0.125,
                None if i % 19 == 4 else at.date().isoformat(),
                None if i % 19 == 4 else at,
                _NOTES[i * 5 % 8],
            )
        )
    return rows


def _events() -> list[Row]:
    start = datetime(2024, 2, 26, tzinfo=UTC)
    kinds = ("view", "click", "buy", "view", None)
    rows: list[Row] = []
    for i in range(36):
        at = start + timedelta(hours=i * 7 % 37 * 5, minutes=i * 11 % 60, seconds=i)
        rows.append(
            (
                i + 1,
                None if i % 12 == 7 else (1, 2, 3, 1, 4, 2, 1)[i % 7],
                at,
                at.date().isoformat(),
                kinds[i * 2 % 5],
                None if i % 10 == 9 else f"{i * 23 % 31 - 6}.{i * 25 % 100:02d}",
                None if i % 8 == 2 else (i * 5 % 16 - 4) * 0.25,
            )
        )
    return rows


_T1: list[Row] = [
    (1, 10, "x"), (1, 10, "x"), (1, 20, "y"), (2, 10, "x"), (2, None, "z"), (3, 30, None), (3, 30, "w"),
    (4, -5, ""), (None, 10, "x"), (None, None, None), (None, None, None), (5, 50, "v"), (5, 40, "v"), (6, 60, "u"),
    (7, 0, "X"), (7, 7, "y"), (8, 80, "t"), (8, 10, "x"), (9, None, "s"), (0, 0, "zero"), (-1, -1, "neg"),
    (2, 20, "y"), (3, 20, "y"), (1, 10, "y"),
]  # fmt: skip
_T2: list[Row] = [
    (1, 10, "p"), (1, 10, "p"), (1, 30, "q"), (2, 20, "q"), (2, None, "p"), (4, -5, "r"), (4, 5, None),
    (None, 10, "p"), (None, None, "n"), (6, 60, "u"), (6, 61, "u"), (7, 7, "x"), (10, 100, "far"), (11, None, None),
    (5, 50, "v"), (5, 50, "v"), (0, 0, "zero"), (-2, -2, "neg"), (3, 30, "w"), (2, 10, "x"), (12, 1, ""), (9, 9, "s"),
]  # fmt: skip
_T3: list[Row] = [
    (10, 1), (10, 1), (20, 2), (30, None), (None, 4), (None, None), (60, 1 << 40), (61, -(1 << 40)), (7, 7), (0, 0),
    (100, 10), (-5, 5), (50, 50), (40, 3), (1, 1), (9, None), (80, 8), (-1, -1), (-2, 2), (5, 6),
]  # fmt: skip
_R: list[Row] = [
    (1, 10), (1, 20), (1, 10), (2, 60), (2, -30), (3, 5), (3, 5), (4, 0), (5, None), (None, 0), (None, None), (2, 0),
    (6, -7), (6, 7), (7, 1), (7, -1), (8, 2), (8, -2), (4, 0), (9, None),
]  # fmt: skip

_TYPED: list[Row] = [
    # k, flag, i8, i16, i32, i64, f32, f64, dec, money, s, bin, d, ts, ntz
    (1, True, 1, 10, 100, 1000, 0.5, 0.25, "1.5", "10.00",
     "12", b"ab", "2024-01-31", "2024-01-31T10:20:30", "2024-01-31T10:20:30"),
    (2, False, -1, -10, -100, -1000, -0.5, -0.25, "-1.5", "-10.00",
     "-7", b"", "2024-02-29", "2024-02-29T23:59:59.999999", "2024-02-29T00:00:00"),
    (3, None, 2, None, 7, None, None, 2.5, "0.0000000001", "0.05",
     " 5 ", b"\x00\xff", "2023-12-31", "2023-12-31T23:00:00", None),
    (4, True, None, 5, None, 5, 1.5, None, None, "0.15", "abc", None, None, None, "1999-12-31T23:59:59"),
    (5, False, 3, 3, 3, 3, 3.0, 3.0, "3", "3.00",
     "3", b"3", "2000-02-29", "2000-02-29T12:00:00", "2000-02-29T12:00:00"),
    (6, None, None, None, None, None, None, None, None, None, None, None, None, None, None),
    (7, True, 0, 0, 0, 0, 0.0, 0.0, "0", "0.00",
     "", b"\x00", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01T00:00:00"),
    (8, True, 7, 70, 700, 7000, 7.75, 7.75, "7.7777777777", "7.77",
     "true", b"yes", "2020-12-31", "2020-12-31T01:02:03.004005", "2020-12-31T01:02:03.004005"),
    (9, False, -7, -70, -700, -7000, -7.75, -7.75, "-7.7777777777", "-7.77",
     "false", b"no", "2021-01-01", "2021-01-01T00:00:00", "2021-01-01T00:00:00"),
    (10, True, 2, 25, 250, 2500, 2.5, 2.5, "2.5", "2.50",
     "2.5", b"2.5", "1969-12-31", "1969-12-31T23:59:59.5", "1969-12-31T23:59:59.5"),
    (11, False, 3, 35, 350, 3500, 3.5, 3.5, "3.5", "3.50",
     "2024-03-10", b"ab", "2024-03-10", "2024-03-10T07:08:09", "2024-03-10T07:08:09"),
    (12, None, 1, 10, 100, 1000, 0.5, 0.25, "1.5", "10.00",
     "12", b"ab", "2024-01-31", "2024-01-31T10:20:30", "2024-01-31T10:20:30"),
    (13, True, 100, 1000, 100000, 10000000000, 1024.125, 1048576.5, "12345678901234567890.0123456789", "123456789.12",
     "1e3", b"\xde\xad\xbe\xef", "2016-02-29", "2016-02-29T16:17:18.190000", "2016-02-29T16:17:18.190000"),
    (14, True, -100, -1000, -100000, -10000000000, -1024.125, -1048576.5,
     "-12345678901234567890.0123456789", "-123456789.12",
     "Grüße 🙂", "Grüße".encode(), "1900-03-01", "1950-06-15T05:05:05", "1950-06-15T05:05:05"),
    (15, False, 9, 99, 999, 9999, 9.875, 9.875, "9.9999999999", "9.99",
     "a,b,,c", b"a", "2024-12-30", "2024-12-30T18:45:00", "2024-12-30T18:45:00"),
    (16, None, 9, None, 999, 9999, None, 9.875, "9.9999999999", None,
     "A", b"A", None, "2024-06-30T12:30:00", "2024-07-01T00:00:00.000001"),
    (17, True, 127, 32767, 2147483647, 9223372036854775807, 3.0, 1e300,
     "9999999999999999999999999999.9999999999", "9999999999999999.99",
     "max", b"\xff" * 8, "9999-12-31", "2199-12-31T23:59:59.999999", "2199-12-31T23:59:59.999999"),
    (18, False, -128, -32768, -2147483648, -9223372036854775808, -3.0, -1e300,
     "-9999999999999999999999999999.9999999999", "-9999999999999999.99",
     "min", b"\x00" * 8, "0001-01-01", "1900-01-01T00:00:00", "1900-01-01T00:00:00"),
    (19, True, 127, 32767, 2147483647, 9223372036854775807, 1.0, 1e-300, "0.0000000001", "0.01",
     "max", b"\xff" * 8, "9999-12-31", "2199-12-31T23:59:59.999999", "2199-12-31T23:59:59.999999"),
    (20, None, -128, -32768, -2147483648, -9223372036854775808, -1.0, -1e-300, "-0.0000000001", "-0.01",
     "MIN", b"", "0001-01-01", "1900-01-01T00:00:00", "1900-01-01T00:00:00"),
]  # fmt: skip

_SPECIAL: list[Row] = [
    # k, g, x, y, z
    (1, "a", 1.0, 1.5, 0.0), (2, "a", _NAN, 2.5, -0.0), (3, "a", None, None, 0.0), (4, "a", 4.0, _NAN, 1.0),
    (5, "b", _INF, 0.5, -0.0), (6, "b", 6.5, _INF, -0.0), (7, "b", 1.0, -1.5, None), (8, "c", -_INF, -_INF, -1.0),
    (9, "c", _NAN, _NAN, 0.0), (10, "c", -2.25, None, -0.0), (11, "d", None, None, None), (12, "d", None, None, None),
    (13, None, _NAN, 1.5, 2.0), (14, None, 2.5, 2.5, 0.0), (15, "e", 8.0, 0.25, 3.0), (16, "e", -8.0, 0.25, -3.0),
    (17, "e", 0.5, 0.75, 0.125), (18, "f", 3.0, 3.0, -0.0), (19, "", _NAN, _NAN, _NAN), (20, "", _NAN, _NAN, _NAN),
]  # fmt: skip

_DOC: list[Row] = [
    # id, title, body, tags
    (1, "The Quick Brown Fox", "jumps over the lazy dog", "red,green,blue"),
    (2, "the quick brown fox", "jumps over the lazy dog", "red"),
    (3, "  padded  ", "  both sides  ", "red,,red"),
    (4, "", "", ""),
    (5, None, "no title", "green"),
    (6, "no body", None, None),
    (7, None, None, None),
    (8, "100%", "50% of 100% is 50", "a_b,a%b"),
    (9, "snake_case", "under_score and per%cent", "a_b"),
    (10, "back\\slash", "c:\\temp\\new", "x,y"),
    (11, "Ünïcödé", "naïve café", "é,ü"),
    (12, "日本語", "東京タワー", "日,本"),
    (13, "emoji 🙂", "🙂🙃🙂", "🙂"),
    (14, "aaa", "aaaaaa", "a,a,a"),
    (15, "abcabc", "abc.abc.abc", "abc"),
    (16, "UPPER", "lower", "Red,red,RED"),
    (17, "it's", 'say "hi"', "q"),
    (18, "2024-05-06", "12:34", "2024,05,06"),
    (19, "x", "-12.50", ","),
    (20, "line\nbreak", "tab\tbed", "one two,three"),
    (21, "aaa", "aaaaaa", "a,a,a"),
]  # fmt: skip


def _value(value: Any, kind: pa.DataType) -> Any:
    """Turns the literal forms used above (text for decimals, dates and timestamps) into what pyarrow takes."""
    if not isinstance(value, str):
        return value
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value).replace(tzinfo=UTC if kind.tz else None)
    return value


def _table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    columns = [
        pa.array([_value(row[i], field.type) for row in rows], type=field.type) for i, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def schemas() -> dict[str, pa.Schema]:
    """The schema of each small table; a tz-less timestamp is Spark's TIMESTAMP_NTZ, one in UTC is TIMESTAMP.

    >>> schemas()["r"].names
    ['a', 'b']
    """
    return dict(_SCHEMAS)


def small_tables() -> dict[str, pa.Table]:
    """The small tables by name; the same rows in the same order at every call.

    >>> small_tables()["nothing"].num_rows
    0
    """
    rows: dict[str, list[Row]] = {
        "emp": _EMP,
        "dept": _DEPT,
        "sale": _sales(),
        "event": _events(),
        "t1": _T1,
        "t2": _T2,
        "t3": _T3,
        "typed": _TYPED,
        "special": _SPECIAL,
        "doc": _DOC,
        "nothing": [],
        "r": _R,
    }
    return {name: _table(schema, rows[name]) for name, schema in _SCHEMAS.items()}
