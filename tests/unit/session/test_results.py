"""What people see of rows, and how other libraries take them."""

from __future__ import annotations

import pickle
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import everview as ev
from everview.session.database_lock import DatabaseLock
from everview.session.results import Changes, Result


def _no_spark(_rows: pa.Table) -> object:
    raise AssertionError("Spark is not asked")


@pytest.fixture
def table() -> ev.Table:
    """A table with a NULL and a row that is there twice; no query is asked, so no Spark starts."""
    made = ev.connect().create_table("t", "a int, s string")
    made.insert([(1, "x"), (2, None), (2, None), (3, "<b>")])
    return made


def test_other_libraries_take_rows_with_their_names(table: ev.Table) -> None:
    """By Arrow's C interface: pyarrow and DuckDB read a handle as if it were a table."""
    assert pa.table(table).sort_by("a").to_pydict() == {"a": [1, 2, 2, 3], "s": ["x", None, None, "<b>"]}
    t = table
    assert duckdb.sql("SELECT s, count(*) FROM t GROUP BY s ORDER BY s").fetchall() == [("<b>", 1), ("x", 1), (None, 2)]
    assert t is table


def test_pandas_keeps_names(table: ev.Table) -> None:
    """A handle's rows are tuples that know their names; they go back in as they came, and are pickled as plain tuples."""
    assert pd.DataFrame(table).sort_values("a").to_dict("list") == {"a": [1, 2, 2, 3], "s": ["x", None, None, "<b>"]}
    answer = Result(pa.table({"count(1)": [7]}), _no_spark)  # type: ignore[arg-type]
    assert list(pd.DataFrame(answer).columns) == ["count(1)"]
    rows = list(table)
    table.insert(rows)
    assert len(table) == 2 * len(rows)
    copied = pickle.loads(pickle.dumps(rows))
    assert copied == rows
    assert {type(row) for row in copied} == {tuple}


def test_the_first_rows(table: ev.Table, capsys: pytest.CaptureFixture[str]) -> None:
    """``head`` gives as many as asked, ``show`` prints them and says how many there are."""
    assert len(table.head(3)) == 3
    assert set(table.head(100)) == {(1, "x"), (2, None), (3, "<b>")}
    assert table.head(0) == []
    table.show(2)
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split() == ["a", "|", "s"]
    assert printed.endswith("(4 rows, the first 2 shown)\n")


def test_a_notebook_shows_text_and_no_markup(table: ev.Table) -> None:
    """What stands in the rows is escaped."""
    html = table._repr_html_()
    assert "<td>&lt;b&gt;</td>" in html
    assert "<td>NULL</td>" in html
    assert "(4 rows)" in html


def test_a_result() -> None:
    """The answer of a SELECT has the same ways out."""
    result = Result(pa.table({"n": pa.array([7], pa.int32())}), _no_spark)  # type: ignore[arg-type]
    assert pa.table(result) == result.to_arrow()
    assert result.head() == [(7,)]
    assert "<td>7</td>" in result._repr_html_()


@pytest.mark.parametrize("n", [-1, "5", None, 2.5])
def test_numbers_of_rows_that_are_none(n: Any) -> None:
    """Of all that can be shown, and before anything is."""
    with ev.connect() as db:
        table = db.create_table("t", "a int")
        for show in (table.head, table.show, Changes([], (), "weights", DatabaseLock(), _no_spark).head):
            with pytest.raises(ev.UnsupportedOperation, match="is no number of rows"):
                show(n)
