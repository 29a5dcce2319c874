"""What new users get wrong, and what they are told: an error of ours that says what was wrong, and a hint where one is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import everview as ev

MISTAKES: dict[str, tuple[Callable[[ev.Database], Any], type[ev.EverviewError], str]] = {
    "a place that is no path": (
        lambda _: ev.connect(5),  # type: ignore[arg-type]
        ev.UnsupportedOperation,
        "the place of a database is of type int. Hint: give the path of a folder, or nothing for a database in memory.",
    ),
    "no columns": (
        lambda db: db.create_table("a", " "),
        ev.InvalidQuery,
        "the schema is empty. Hint: name a column and its type, as in 'id bigint, name string'.",
    ),
    "foreign keys in a list": (
        lambda db: db.create_table("a", "x int", foreign_keys=[("x", "t")]),  # type: ignore[arg-type]
        ev.InvalidQuery,
        "the foreign keys of table 'a' are of type list. Hint: give a dict from columns to tables, "
        "as in {'customer': 'customers'}.",
    ),
    "a table as a view": (
        lambda db: db.view("t"),
        ev.UnknownName,
        "'t' is a table, not a view. Hint: db.table() gives it.",
    ),
    "a mode": (
        lambda db: db.view("v").explain("txt"),
        ev.UnsupportedOperation,
        "the embedded backend cannot explain in mode 'txt'. Hint: it has text, json, svg, triggers, code and analyze.",
    ),
    "a version": (
        lambda db: db.view("v").changes(since="yesterday"),  # type: ignore[arg-type]
        ev.UnsupportedOperation,
        "changes since 'yesterday': that is no version. Hint: a version is a number, as db.version gives it.",
    ),
    "a subscriber": (
        lambda db: db.view("v").subscribe(None),  # type: ignore[arg-type]
        ev.UnsupportedOperation,
        "a subscriber of type NoneType cannot be called. Hint: give a function of one argument, which has .version and .delta.",
    ),
    "no text": (
        lambda db: db.sql(None),  # type: ignore[arg-type]
        ev.InvalidQuery,
        "db.sql runs text, and this is of type NoneType.",
    ),
    "a function": (
        lambda db: db.create_view("w", "SELECT summ(x) AS s FROM t"),
        ev.InvalidQuery,
        "there is no function 'summ'. Hint: did you mean 'sum'?",
    ),
    "a function of nobody": (
        lambda db: db.create_view("w", "SELECT zzzz_qqqq(x) AS s FROM t"),
        ev.InvalidQuery,
        "there is no function 'zzzz_qqqq'. Hint: functions of your own are found if they are registered in the session: "
        "connect(spark=…).",
    ),
    "no GROUP BY": (
        lambda db: db.create_view("w", "SELECT k, sum(x) AS s FROM t"),
        ev.InvalidQuery,
        "the query has an aggregate beside columns, and no GROUP BY. Hint: add GROUP BY with these columns, or aggregate them "
        "too, with any_value(…) say.",
    ),
    "a parameter": (
        lambda db: db.sql("SELECT * FROM t WHERE k = :key"),
        ev.InvalidQuery,
        "the query has a parameter 'key', and no value for it was given. Hint: give it to db.sql as args: {'key': …}, "
        "or a list for markers '?'.",
    ),
}


@pytest.fixture(scope="module")
def shop(spark: object) -> ev.Database:
    """A table and a view."""
    db = ev.connect(spark=spark)  # type: ignore[arg-type]
    db.create_table("t", "k int, x int")
    db.create_view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k")
    return db


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told(shop: ev.Database, mistake: str) -> None:
    """In one line, and nothing has happened."""
    make, kind, text = MISTAKES[mistake]
    with pytest.raises(kind) as caught:
        make(shop)
    assert str(caught.value) == text
    assert (list(shop.tables), list(shop.views), shop.version) == (["t"], ["v"], 0)


def test_a_file_is_no_database(tmp_path: Path) -> None:
    """A path that is taken by a file is told as such."""
    place = tmp_path / "notes.txt"
    place.write_text("")
    with pytest.raises(ev.StorageFailed, match="is a file, and a database is a folder"):
        ev.connect(place)
