"""Random SQL text into ``create_view``: fragments of the grammar put together, then mutilated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Nothing in here makes much of little, as sequence() and repeat() do: Spark computes constants when it resolves a query.
_atoms = st.sampled_from(
    [
        *("k", "x", "s", "d", "t.k", "u.k", "*", "t.*", "NULL", "1", "0", "-1", "2.5", "1e3", "'a'", "''", "TRUE"),
        *("DATE'2024-01-01'", "TIMESTAMP'2024-01-01 00:00:00'", "INTERVAL 1 DAY", "X'00'", "`k`", "nothing", '"a"'),
        *("count(*)", "sum(x)", "avg(d)", "min(s)", "max(k)", "count(DISTINCT s)", "collect_list(x)", "first(x)"),
        *("row_number() OVER (ORDER BY k)", "sum(x) OVER (PARTITION BY s ORDER BY k)", "rank() OVER w", "rand()"),
        *("now()", "uuid()", "current_date", "(SELECT max(k) FROM u)", "(SELECT k FROM u)", "array(1, 2)", "map(1, 2)"),
        *("struct(k, s)", "explode(array(k, 1))", "upper(s)", "length(s)", "cast(s AS INT)", "x / 0", "abs(x)"),
        *(
            "CASE WHEN k > 1 THEN x END",
            "nullif(k, 1)",
            "coalesce(x, k, 0)",
            "substr(s, 1, 1)",
            "s LIKE 'a%'",
            "?",
            ":p",
        ),
    ]
)
_operators = st.sampled_from(
    ["+", "-", "*", "/", "%", "=", "<>", "<", ">=", "AND", "OR", "||", "IS NOT DISTINCT FROM", "IN"]
)
_joins = st.sampled_from(
    [
        *(
            "t",
            "u",
            "t, u",
            "t JOIN u ON t.k = u.k",
            "t LEFT JOIN u USING (k)",
            "t FULL JOIN u ON t.k = u.k AND t.x < 3",
        ),
        *("t CROSS JOIN u", "t NATURAL JOIN u", "t LEFT SEMI JOIN u ON t.k = u.k", "t LEFT ANTI JOIN u ON t.k < u.k"),
        *(
            "t a JOIN t b ON a.k = b.k",
            "missing",
            "(SELECT * FROM t)",
            "(VALUES (1), (2)) AS v(k)",
            "t TABLESAMPLE (1 ROWS)",
        ),
        *("t LATERAL VIEW explode(array(x, k)) e AS y", "t, LATERAL (SELECT count(*) c FROM u WHERE u.k = t.k)"),
        *("t PIVOT (sum(x) FOR s IN ('a', 'b'))", "range(3)", "default.t", "parquet.`/nowhere`", "t VERSION AS OF 1"),
    ]
)
_tails = st.sampled_from(
    [
        *(
            "",
            "",
            "",
            "GROUP BY s",
            "GROUP BY ALL",
            "GROUP BY s HAVING count(*) > 1",
            "GROUP BY CUBE (s, k)",
            "GROUP BY 1",
        ),
        *("ORDER BY k LIMIT 2", "LIMIT 0", "ORDER BY 1", "LIMIT 1 OFFSET 1", "WINDOW w AS (ORDER BY k)", "SORT BY k"),
        *("GROUP BY GROUPING SETS ((s), ())", "QUALIFY 1 = 1", "; SELECT 1", "-- end", "/* open"),
    ]
)
_letters = st.sampled_from(
    ["'", '"', "`", "(", ")", ",", ";", "\\", "\0", "é", "😀", "--", "/*", " ", "%", "\n", "0", "."]
)


@st.composite
def queries(draw: DrawFn) -> str:
    """A query, most of the time nearly right."""
    select = ", ".join(_expression(draw) for _ in range(draw(st.integers(1, 3))))
    where = f"WHERE {_expression(draw)}" if draw(st.booleans()) else ""
    text = f"SELECT {draw(st.sampled_from(['', 'DISTINCT ']))}{select} FROM {draw(_joins)} {where} {draw(_tails)}"
    if draw(st.integers(0, 3)) == 0:
        combined = draw(st.sampled_from(["UNION ALL", "UNION", "EXCEPT ALL", "INTERSECT", "MINUS"]))
        text = f"{text} {combined} {text}"
    if draw(st.integers(0, 5)) == 0:
        text = f"WITH c AS ({text}) SELECT * FROM c"
    return text


def _expression(draw: DrawFn) -> str:
    left = draw(_atoms)
    return f"{left} {draw(_operators)} {draw(_atoms)}" if draw(st.integers(0, 2)) == 0 else left


@st.composite
def mutilated(draw: DrawFn) -> str:
    """A query with words left out, doubled or exchanged, and letters put in."""
    words = draw(queries()).split(" ")
    for _ in range(draw(st.integers(0, 3))):
        place, other = (draw(st.integers(0, len(words) - 1)) for _ in range(2))
        match draw(st.sampled_from(["drop", "double", "exchange", "letter"])):
            case "drop":
                words[place] = ""
            case "double":
                words[place] = f"{words[place]} {words[place]}"
            case "exchange":
                words[place], words[other] = words[other], words[place]
            case _:
                words[place] = f"{words[place]}{draw(_letters)}"
    return " ".join(words)


@pytest.fixture(scope="module")
def db(spark: SparkSession) -> Iterator[ev.Database]:
    """Two tables and a view that must stay right; nothing is kept, so that every text is translated."""
    with ev.connect(spark=spark, translation_cache=False) as database:
        database.create_table("t", "k int, x bigint, s string, d double").insert(
            [(1, 2, "a", 0.5), (2, None, None, None)]
        )
        database.create_table("u", "k int, y string").insert([(1, "p"), (1, "q")])
        database.create_view("sure", "SELECT s, count(*) AS n FROM t GROUP BY s")
        yield database


@given(queries() | mutilated())
def test_any_text_is_a_view_or_a_documented_error(db: ev.Database, text: str) -> None:
    """The text makes a view that can be read and maintained, or raises an EverviewError that is not a mistake of ours."""
    try:
        view = db.create_view("v", text)
    except ev.InternalError:
        raise
    except ev.EverviewError:
        assert list(db.views) == ["sure"]
    else:
        _use(db, view)
        db.drop("v")
    assert sorted(db.view("sure").rows(), key=str) == [("a", 1), (None, 1)]
    assert list(db.tables) == ["t", "u"]


def _use(db: ev.Database, view: ev.View) -> None:
    """Reads the view and changes what is below it, there and back; a view that fails alone says so when it is read."""
    before = _rows(view)
    for call in (db.table("t").insert, db.table("t").delete):
        call([(7, 0, "z", 1.0)])
        _rows(view)
    assert _rows(view) == before


def _rows(view: ev.View) -> list[str]:
    try:
        return sorted(map(repr, view.rows()))
    except ev.ViewSuspended:
        return ["suspended"]
