"""Every scalar function against Spark itself, over a table of edge values of every type, in two time zones."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from everview.errors import UnsupportedQuery
from tests.spark.differential import (
    TABLE,
    Raised,
    is_same,
    our_expressions,
    our_results,
    spark_error,
    spark_results,
    table_rows,
)

_ERRORS_CHECKED = 2
"""Rows per expression for which we ask Spark for the error as well."""

_COLUMNS: dict[str, tuple[str, list[str]]] = {
    "b": ("boolean", ["true", "false"]),
    "i8": ("tinyint", ["0", "1", "-1", "127", "-128", "7", "-7"]),
    "i16": ("smallint", ["0", "3", "-3", "32767", "-32768", "100"]),
    "i": ("int", ["0", "1", "-1", "2147483647", "-2147483648", "12", "-25", "365", "4", "2"]),
    "l": (
        "bigint",
        ["0", "5", "-5", "9223372036854775807", "-9223372036854775808", "1000000007", "86400", "1700000000"],
    ),
    "f": (
        "float",
        [
            "0.0",
            "-0.0",
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "0.1",
            "-2.5",
            "3.4028235e38",
            "1.4e-45",
            "16777217",
            "1.15",
        ],
    ),
    "d": (
        "double",
        [
            "0.0",
            "-0.0",
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "0.1",
            "-2.5",
            "2.5",
            "1e20",
            "-1e20",
            "4.9e-324",
            "1.7976931348623157e308",
            "1.005",
            "123456.789",
            "1e-5",
            "9.223372036854775807e18",
            "0.5",
            "1e7",
        ],
    ),
    "dec": ("decimal(10,2)", ["0", "1.25", "-1.25", "99999999.99", "-99999999.99", "0.05", "12345.67", "3"]),
    "big": (
        "decimal(38,10)",
        [
            "0",
            "1",
            "'9999999999999999999999999999.9999999999'",
            "'-9999999999999999999999999999.9999999999'",
            "0.0000000001",
            "12345.6789",
            "-7.5",
        ],
    ),
    "whole": ("decimal(38,0)", ["0", "'99999999999999999999999999999999999999'", "-3", "7", "'12345678901234567890'"]),
    "frac": ("decimal(38,38)", ["0", "0.1", "'0.99999999999999999999999999999999999999'", "-0.25"]),
    "s": (
        "string",
        [
            "''",
            "'abc'",
            "'ABC def'",
            "'  pad  '",
            "'héllo wörld'",
            "'日本語テキスト'",
            "'😀x'",
            "'a,b,,c'",
            "'12'",
            "'-7'",
            "'3.5'",
            "'1e3'",
            "'true'",
            "'2024-02-29'",
            "'2024-03-10 02:30:00'",
            "'line\\nbreak'",
            "'a%b_c\\\\d'",
            "'NaN'",
            "'2147483648'",
            "'ß'",
            "'www.apache.org'",
            "'foo123bar45'",
        ],
    ),
    "s2": ("string", ["''", "'b'", "'a%'", "'%'", "'_b_'", "' '", "'o'", "','", "'テ'", "'x'", "'.'", "'abc'"]),
    "bin": ("binary", ["''", "'abc'", "'é'", "X'00ff10'", "X'80'"]),
    "dt": (
        "date",
        [
            "'1970-01-01'",
            "'2024-02-29'",
            "'0001-01-01'",
            "'9999-12-31'",
            "'1969-12-31'",
            "'2024-03-10'",
            "'2023-12-31'",
            "'2000-01-31'",
            "'1582-10-10'",
            "'2024-11-03'",
            "'2021-01-03'",
        ],
    ),
    "ts": (
        "timestamp",
        [
            "'1970-01-01 00:00:00 UTC'",
            "'2024-03-10 06:59:59.999999 UTC'",
            "'2024-03-10 07:00:00 UTC'",
            "'2024-11-03 05:30:00 UTC'",
            "'2024-11-03 06:30:00 UTC'",
            "'0001-01-02 00:00:00 UTC'",
            "'9999-12-30 23:59:59.999999 UTC'",
            "'1883-11-18 12:00:00 UTC'",
            "'2024-02-29 12:34:56.789 UTC'",
            "'1969-12-31 23:59:59.5 UTC'",
            "'2000-01-31 10:00:00 UTC'",
        ],
    ),
    "tn": (
        "timestamp_ntz",
        [
            "'1970-01-01 00:00:00'",
            "'2024-03-10 02:30:00'",
            "'2024-11-03 01:30:00'",
            "'0001-01-02 03:04:05.678901'",
            "'9999-12-30 23:59:59.999999'",
            "'2024-02-29 12:34:56.7'",
            "'1969-12-31 23:59:59.5'",
        ],
    ),
    "ym": ("interval year to month", ["'0-0'", "'1-2'", "'-1-2'", "'0-1'", "'178956970-7'", "'-0-5'"]),
    "ds": (
        "interval day to second",
        [
            "'0 00:00:00'",
            "'1 02:03:04.5'",
            "'-1 02:03:04.5'",
            "'0 00:00:00.000001'",
            "'106751991 04:00:54.775807'",
            "'0 23:59:59.999999'",
            "'30 00:00:00'",
        ],
    ),
    "a": ("array<int>", ["array()", "array(1,2,3)", "array(1,null,3)", "array(null)", "array(12)"]),
    "ad": ("array<double>", ["array(double('nan'),1)", "array(-0d,1d)", "array(0d,1d)", "array(null,1d)"]),
    "st": ("struct<x:int,y:string>", ["struct(1,'a')", "struct(null,'b')", "struct(2,null)", "struct(1,'A')"]),
}
_ROWS = 47  # prime to the lengths above, so that columns meet in many combinations


def _literal(text: str, sql_type: str) -> str:
    return f"CAST({text} AS {sql_type})"


def _table_sql() -> str:
    columns = {name: cycle([*values, "NULL"]) for name, (_, values) in _COLUMNS.items()}
    rows = []
    for number in range(_ROWS):
        cells = [_literal(next(columns[name]), sql_type) for name, (sql_type, _) in _COLUMNS.items()]
        rows.append(f"({number}, {', '.join(cells)})")
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t(id, {', '.join(_COLUMNS)})"


def _expressions() -> dict[str, list[str]]:
    """The expressions of ``scalar_functions.sql`` by section: one a line, sections start with ``--``."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in (Path(__file__).parent / "scalar_functions.sql").read_text().splitlines():
        text = line.strip()
        if text.startswith("--"):
            current = sections.setdefault(text.removeprefix("--").strip(), [])
        elif text:
            current.append(text)
    return sections


_SECTIONS = _expressions()
_OF_TIME = (
    "dates",
    "timestamps",
    "datetime conversions",
    "intervals",
    *(s for s in _SECTIONS if s.startswith("casts")),
)
"""The sections that a time zone can matter to; the quick run tries the others in UTC only."""
_UTC, _ELSEWHERE = "UTC", "America/New_York"


def _cases() -> list[object]:
    assert set(_OF_TIME) < set(_SECTIONS)
    elsewhere = [
        pytest.param(_ELSEWHERE, section, marks=() if section in _OF_TIME else pytest.mark.slow)
        for section in _SECTIONS
    ]
    return [*(pytest.param(_UTC, section) for section in _SECTIONS), *elsewhere]


@pytest.fixture(scope="module")
def edges(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    """A session in one of the time zones, with the table of edge values.

    Compiled as a user's would be: interpreted, Spark casts decimals beyond all timestamps to others.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", request.param)
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    session.sql(_table_sql()).localCheckpoint().createOrReplaceTempView(TABLE)
    return session


@pytest.mark.parametrize(("edges", "section"), _cases(), indirect=["edges"])
def test_section_equals_spark(edges: SparkSession, section: str) -> None:
    """Every expression of the section has Spark's type, and for each row Spark's value or Spark's error."""
    texts = _SECTIONS[section]
    rows = table_rows(edges)
    ours = our_expressions(edges, texts)
    results = [our_results(e, rows) for e in ours]
    raised = [[i for i, r in enumerate(each) if isinstance(r, Raised)] for each in results]
    theirs = spark_results(edges, texts, raised)
    schema = edges.sql(f"SELECT {', '.join(f'{t} AS c{i}' for i, t in enumerate(texts))} FROM {TABLE}").schema
    problems = []
    for text, expression, mine, other, bad, field in zip(texts, ours, results, theirs, raised, schema, strict=True):
        if _type_text(str(expression.type)) != _type_text(field.dataType.simpleString()):
            problems.append(f"{text}: type {expression.type}, Spark {field.dataType.simpleString()}")
        for i, (a, b) in enumerate(zip(mine, other, strict=True)):
            if i not in bad and not is_same(a, b, expression.type, section == "transcendental"):
                problems.append(f"{text}: row {i} gives {a!r}, Spark {b!r}  {_arguments(text, rows[i])}")
        for i in bad[:_ERRORS_CHECKED]:
            condition = spark_error(edges, text, i)
            expected = mine[i].condition
            if condition is None or condition not in ("", expected):
                problems.append(f"{text}: row {i} raises {expected}, Spark {condition}  {_arguments(text, rows[i])}")
    assert not problems, "\n".join(problems)


def _type_text(name: str) -> str:
    if name.startswith("interval"):
        return "year-month" if "month" in name or "year" in name else "day-time"
    return name


def _arguments(text: str, row: tuple[object, ...]) -> dict[str, object]:
    return {name: row[i] for i, name in enumerate(_COLUMNS, 1) if name in text}


@pytest.mark.parametrize("edges", [_UTC], indirect=True)
@pytest.mark.parametrize(
    "text",
    ["s rlike '[a-z&&[^b]]'", "regexp_replace(s, '\\\\p{L}', 'x')", "to_timestamp(s, 'yyyy-MM-dd e')", "rand()"],
)
def test_untranslatable_expression_is_refused(edges: SparkSession, text: str) -> None:
    """What we cannot compute refuses the query when it is translated or bound, not at some row."""
    with pytest.raises(UnsupportedQuery):
        our_results(our_expressions(edges, [text])[0], [])
