"""Random expressions over all declared functions, and random rows for them.

Everything is drawn by one function, ``pick``, from finite lists, so that Hypothesis and a plain random generator can both
drive it. Values are mostly extremes: that is where kernels and the definition could differ.
"""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable, Sequence
from decimal import Decimal as Number
from functools import cache
from typing import Any

from everview.errors import UnsupportedQuery
from everview.relational.expressions import Call, Case, Cast, Column, Expression, Literal
from everview.relational.functions import bind_cast, function_named, is_function
from everview.relational.functions.floats import float32
from everview.relational.functions.rounding import rounded_type
from everview.relational.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NAN,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Struct,
    Value,
    integer_bounds,
)

Pick = Callable[[Sequence[Any]], Any]

INTEGERS = (INT8, INT16, INT32, INT64)
FLOATS = (FLOAT32, FLOAT64)
DECIMALS = (
    Decimal(1, 0), Decimal(5, 2), Decimal(10, 0), Decimal(15, 2), Decimal(18, 0), Decimal(18, 6), Decimal(18, 18),
    Decimal(19, 2), Decimal(20, 0), Decimal(32, 4), Decimal(38, 0), Decimal(38, 6), Decimal(38, 18), Decimal(38, 38),
)  # fmt: skip
TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
INTERVALS = (YEAR_MONTH_INTERVAL, DAY_TIME_INTERVAL)
ARRAYS = (Array(STRING), Array(INT32), Array(FLOAT64))
STRUCTS = (Struct(("a", "b"), (INT32, STRING)),)
SCALARS = (BOOLEAN, *INTEGERS, *FLOATS, *DECIMALS, STRING, BINARY, *TIMES, *INTERVALS)
TYPES = (*SCALARS, *ARRAYS, *STRUCTS)
ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata", "+03:00", "Europe/Paris")
_DAY = 86_400_000_000


@cache
def values_of(t: DataType) -> tuple[Value, ...]:
    """Some values of a type, mostly extreme ones; the same in every run."""
    rng = random.Random(repr(t))
    match t:
        case Decimal(precision, scale):
            limit = 10**precision
            raw = [0, 1, -1, 5, -5, 49, 50, 51, -50, 99, 100, 150, -150, 10**scale, -(10**scale), 5 * 10**scale // 2]
            raw += [2**63, -(2**63), 2**63 - 1, 2**53, 2**53 + 1, limit - 1, 1 - limit, limit // 2, limit // 3]
            raw += [
                rng.randrange(-(10 ** rng.randint(1, precision)), 10 ** rng.randint(1, precision)) for _ in range(20)
            ]
            return tuple(Number(v).scaleb(-scale, _WIDE) for v in raw if abs(v) < limit)
        case Array(element):
            pool = (None, *values_of(element))
            made = [tuple(rng.choice(pool) for _ in range(rng.randint(1, 3))) for _ in range(8)]
            return ((), *(tuple(0.0 if isinstance(v, float) and v == 0 else v for v in m) for m in made))
        case Struct(types=types):
            return tuple(tuple(rng.choice((None, *values_of(each))) for each in types) for _ in range(8))
        case _ if t in INTEGERS:
            low, high = integer_bounds(t)
            small = [rng.randint(low, high) >> rng.randint(0, 40) for _ in range(10)]
            return (
                0,
                1,
                -1,
                2,
                3,
                7,
                10,
                -10,
                31,
                60,
                100,
                low,
                low + 1,
                high,
                high - 1,
                low // 2,
                high // 2 + 1,
                *small,
            )
        case _ if t in FLOATS:
            return tuple(float32(v) if t == FLOAT32 else v for v in _FLOAT_VALUES)
        case _:
            return _VALUES[t]


_FLOAT_VALUES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1 / 3, 0.1, 1e10, -1e10, 1e300, -1e300, 1e-300, 5e-324, float("inf"),
    -float("inf"), NAN, 2.0**53, 2.0**63, -(2.0**63), 9.3e18, 2.0**31, -(2.0**31) - 1, 127.5, 128.0, 3.4e38, 12345.678,
)  # fmt: skip
_WIDE = decimal.Context(prec=100)
_VALUES: dict[DataType, tuple[Value, ...]] = {
    BOOLEAN: (True, False),
    STRING: (
        "", "a", "A", "b", "ab", "Ab c", "  padded ", "é", "日本", "12", "-7", " 3 ", "1.5", "1e3", "true", "no", "NaN",
        "2020-01-31", "2024-02-29 13:14:15.5", "a,b", "%_", "\\", "zz", "yyyy-MM", "MONTH", "UTC", "Monday", "%a%", "utf-8",
    ),
    BINARY: (b"", b"a", b"ab", b"\x00\xff", b"12", "é".encode()),
    DATE: (0, 1, -1, 59, 10957, 18321, 19782, 19783, -719162, 2932896, 2**31 - 1, -(2**31), 30, 31, 364, 365, 11016, 20000),
    TIMESTAMP: (
        0, 1, -1, _DAY, -_DAY, 1_700_000_000_123_456, 1_710_064_800_000_000, 1_710_064_799_999_999, 1_730_624_400_000_000,
        1_583_661_600_000_000, 2**62, -(2**62), 2**63 - 1, -(2**63), 253_402_300_799_999_999, -2_000_000_000_000_000,
    ),
    YEAR_MONTH_INTERVAL: (0, 1, -1, 12, -13, 100, 2**31 - 1, -(2**31), 5),
    DAY_TIME_INTERVAL: (0, 1, -1, _DAY, -_DAY, 3_600_000_000, 90_061_000_001, 2**63 - 1, -(2**63), 10**15, -61_000_000),
}  # fmt: skip
_VALUES[TIMESTAMP_NTZ] = _VALUES[TIMESTAMP]

Signature = tuple[str, tuple[DataType, ...]]


@cache
def signatures() -> tuple[Signature, ...]:
    """Functions with argument types that Catalyst could give them, as far as they are declared."""
    groups = (_of_numbers(), _of_all_types(), _of_times(), _of_intervals(), _of_text(), _of_arrays())
    return tuple(s for group in groups for s in group if is_function(s[0]))


def _each(names: str, *types: DataType) -> list[Signature]:
    return [(name, types) for name in names.split()]


def _of_numbers() -> list[Signature]:
    found: list[Signature] = []
    for t in (*INTEGERS, *FLOATS):
        found += _each("+ - * % pmod try_add try_subtract try_multiply try_mod", t, t)
    for a in DECIMALS:
        for b in DECIMALS:
            found += _each("+ - * / % pmod div try_add try_multiply try_divide try_subtract try_mod", a, b)
    found += _each("/ try_divide atan2 hypot power log", FLOAT64, FLOAT64) + _each("div", INT64, INT64)
    for t in (*INTEGERS, *FLOATS, *DECIMALS):
        found += _each("negative abs sign floor ceil round bround", t)
    for t in INTEGERS:
        found += _each("& | ^", t, t) + _each("~ bit_count", t) + _each("bit_get", t, INT32)
    for t in (INT32, INT64):
        found += _each("shiftleft shiftright shiftrightunsigned", t, INT32)
    for t in FLOATS:
        found += _each("isnan", t) + _each("nanvl", t, t)
    real = "sqrt cbrt exp expm1 sin cos tan cot sec csc asin acos atan sinh cosh tanh asinh acosh atanh degrees radians rint"
    return found + _each(f"{real} ln log10 log2 log1p", FLOAT64) + _each("factorial", INT32) + _each("pi e")


def _of_all_types() -> list[Signature]:
    found = 8 * (_each("and or", BOOLEAN, BOOLEAN) + _each("not", BOOLEAN))
    for t in TYPES:
        found += _each("= < <= > >= <=> least coalesce", t, t) + _each("in greatest coalesce", t, t, t)
        found += [*_each("isnull isnotnull try", t), ("in", (t,) * 12)]
    return found


def _of_times() -> list[Signature]:
    parts = (
        "year quarter month day dayofyear dayofweek weekday weekofyear yearofweek unix_date dayname monthname last_day"
    )
    found = _each(parts, DATE) + _each("date_from_unix_date", INT32) + _each("datediff subtract_dates", DATE, DATE)
    for t in (INT8, INT16, INT32):
        found += _each("date_add date_sub", DATE, t)
    found += _each("add_months", DATE, INT32) + _each("date_add_interval", DATE, YEAR_MONTH_INTERVAL)
    found += _each("trunc next_day", DATE, STRING) + _each("make_date try_make_date", INT32, INT32, INT32)
    for t in (TIMESTAMP, TIMESTAMP_NTZ):
        found += _each("hour minute second second_with_fraction", t) + _each("subtract_timestamps", t, t)
        found += [("timestamp_add_interval", (t, i)) for i in INTERVALS]
    found += _each("unix_seconds unix_millis unix_micros", TIMESTAMP)
    found += _each("timestamp_seconds timestamp_millis timestamp_micros", INT64) + _each("timestamp_seconds", FLOAT64)
    found += _each("date_trunc", STRING, TIMESTAMP) + _each("months_between", TIMESTAMP, TIMESTAMP)
    found += _each("date_format from_utc_timestamp to_utc_timestamp", TIMESTAMP, STRING)
    found += _each("from_unixtime", INT64, STRING) + _each("timestampadd", STRING, INT32, TIMESTAMP)
    found += _each("to_timestamp unix_timestamp try_to_timestamp", STRING, STRING)
    found += _each("timestampdiff", STRING, TIMESTAMP, TIMESTAMP)
    return [*found, ("make_timestamp", (*(INT32,) * 5, Decimal(16, 6)))]


def _of_intervals() -> list[Signature]:
    found: list[Signature] = []
    for t in INTERVALS:
        found += _each("+ -", t, t) + _each("negative abs sign", t)
        for n in (*INTEGERS, FLOAT64, Decimal(10, 0)):
            found += _each("multiply_interval divide_interval", t, n)
    found += _each("interval_years interval_months", YEAR_MONTH_INTERVAL) + _each("make_ym_interval", INT32, INT32)
    found += _each("interval_days interval_hours interval_minutes interval_seconds", DAY_TIME_INTERVAL)
    return found + _each("make_dt_interval", INT32, INT32, INT32, Decimal(18, 6))


def _of_text() -> list[Signature]:
    one = (
        "upper lower initcap trim ltrim rtrim btrim length char_length octet_length bit_length reverse ascii hex unhex"
    )
    two = "startswith endswith contains instr like levenshtein split_sql find_in_set trim concat rlike ilike split regexp_instr"
    found = _each(one, STRING) + _each(two, STRING, STRING)
    found += _each("md5 sha1 crc32 length octet_length hex reverse base64", BINARY) + _each("sha2", BINARY, INT32)
    found += _each("concat_ws concat replace translate regexp_replace like", STRING, STRING, STRING)
    found += _each("locate substring_index overlay", STRING, STRING, INT8) + _each(
        "regexp_extract", STRING, STRING, INT32
    )
    found += _each("substring", STRING, INT8, INT8) + _each("substring repeat left right", STRING, INT8)
    found += _each("lpad rpad", STRING, INT8, STRING) + _each("space", INT8) + _each("chr bin hex", INT64)
    return found


def _of_arrays() -> list[Signature]:
    found = (
        _each("array_join", Array(STRING), STRING)
        + _each("struct", INT32, STRING)
        + _each("getfield", STRUCTS[0], INT32)
    )
    for t in ARRAYS:
        found += _each("array", t.element, t.element) + _each("size array_max array_min sort_array array_distinct", t)
        found += _each("array_contains array_position", t, t.element)
        found += _each("element_at try_element_at get subscript", t, INT8)
    return found


_REGEX = ("a", "^a.*", "(b|c)+", "[0-9]+", "")
_FORMS = ("yyyy-MM-dd", "yyyy", "HH:mm")
_PATTERNED = {
    **dict.fromkeys(("rlike", "split", "regexp_instr", "regexp_replace", "regexp_extract"), _REGEX),
    **dict.fromkeys(("to_timestamp", "unix_timestamp", "date_format", "from_unixtime", "try_to_timestamp"), _FORMS),
    **dict.fromkeys(("like", "ilike"), ("a%", "%b%", "_", "A_ c", "%\\")),
    **dict.fromkeys(("to_utc_timestamp", "from_utc_timestamp"), ("UTC", "Asia/Tokyo", "nowhere")),
}


def result_type(name: str, args: tuple[DataType, ...]) -> DataType:
    """The type of a call."""
    if name in ("struct", "getfield"):
        return STRUCTS[0] if name == "struct" else INT32
    return function_named(name).result_type(args)


@cache
def producers(t: DataType) -> tuple[Signature, ...]:
    """The signatures with a result of the type.

    Not ``subtract_dates``: its definition does not check the range, and what is computed from its result has no vector.
    """
    return tuple(s for s in signatures() if s[0] != "subtract_dates" and result_type(*s) == t)


@cache
def _castable(target: DataType) -> tuple[DataType, ...]:
    found = []
    for source in SCALARS:
        try:
            bind_cast(Cast(Literal(None, source), target))
        except UnsupportedQuery:
            continue
        found.append(source)
    return tuple(found)


def expression(pick: Pick, t: DataType, depth: int) -> Expression:
    """A random expression of a type; column i has type ``TYPES[i]`` if i is below their number."""
    if depth == 0:
        return _leaf(pick, t)
    kind = pick(("call", "call", "call", "call", "case", "cast", "cast", "leaf"))
    if kind == "call" and producers(t):
        made = call(pick, pick(producers(t)), depth)
        return made if made.type == t else Cast(made, t)  # rounding has a type of its own
    if kind == "cast" and _castable(t):
        source = pick(_castable(t))
        return Cast(expression(pick, source, depth - 1), t, pick((False, True)), pick(ZONES))
    if kind == "case":
        branches = [(expression(pick, BOOLEAN, depth - 1), expression(pick, t, depth - 1)) for _ in range(pick((1, 2)))]
        return Case(tuple(branches), expression(pick, t, depth - 1))
    return _leaf(pick, t)


def call(pick: Pick, signature: Signature, depth: int) -> Expression:
    """A random call with this signature."""
    name, types = signature
    args = tuple(expression(pick, each, depth - 1) for each in types)
    if name in ("round", "bround", "floor", "ceil") and isinstance(types[0], Decimal):
        places = pick((-3, -1, 0, 1, 2, 7))
        return Call(name, (args[0], Literal(places, INT32)), rounded_type(types[0], places))
    if name in ("round", "bround") and types[0] not in DECIMALS:
        return Call(name, (args[0], Literal(pick((-1, 0, 1)), INT32)), types[0])
    if name in ("trunc", "date_trunc"):
        form = Literal(pick(("MONTH", "year", "WEEK", "quarter", "HOUR", "DAY", "SECOND", "nothing")), STRING)
        args = (args[0], form) if name == "trunc" else (form, args[1])
    if name in ("timestampadd", "timestampdiff"):
        args = (Literal(pick(("DAY", "MONTH", "HOUR", "MICROSECOND")), STRING), *args[1:])
    if name in _PATTERNED:
        pattern = Literal(pick(_PATTERNED[name]), STRING)
        args = (args[0], pattern, *args[2:])
    if name == "getfield":
        at = pick((0, 1))
        return Call(name, (args[0], Literal(at, INT32)), STRUCTS[0].types[at])
    if name == "in" and pick((True, False)):
        args = (args[0], *(_literal(pick, each) for each in types[1:]))
    return Call(name, args, result_type(name, types), pick(ZONES))


def _leaf(pick: Pick, t: DataType) -> Expression:
    if t in TYPES and pick((True, True, True, False)):
        return Column(TYPES.index(t) + pick((0, len(TYPES))), t)
    return _literal(pick, t)


def _literal(pick: Pick, t: DataType) -> Literal:
    return Literal(pick((None, *values_of(t)) if pick((True, False)) else values_of(t)), t)


def column_values(pick: Pick, t: DataType, count: int) -> list[Value]:
    """The values of a column, with NULLs in every other column."""
    pool = values_of(t)
    if pick((True, False)):
        pool = (None, *pool)
    return [pick(pool) for _ in range(count)]
