"""Bytes that are no UTF-8 never become a text that is looked at: Spark's strings hold any bytes, ours and Arrow's do not."""

from __future__ import annotations

import pytest

import everview as ev

NOT_UTF8 = [b"\xff", b"a\xc3", b"\xe2\x28\xa1"]

TEXTS = [
    "CAST(b AS STRING)",
    "TRY_CAST(b AS STRING)",
    "length(CAST(b AS STRING))",
    "CAST(b AS STRING) = 'abc'",
    "encode(string(unhex(hex(b))), 'utf-8')",
    "concat(b, 'x')",
    "substring(CAST(b AS STRING), 1, 1)",
    "CAST(array(b) AS STRING)",
    "CAST(struct(b) AS STRING)",
    "CAST(array(b) AS ARRAY<STRING>)[0]",
    "coalesce(CAST(b AS STRING), 'none')",
    "aggregate(array(b), '', (s, e) -> s || CAST(e AS STRING))",
]

SAID_WHAT_BECOMES_OF_THEM = [
    "make_valid_utf8(CAST(b AS STRING))",
    "length(make_valid_utf8(CAST(b AS STRING)))",
    "try_validate_utf8(CAST(b AS STRING))",
    "is_valid_utf8(CAST(b AS STRING))",
    "mask(CAST(b AS STRING))",
    "length(b)",
    "hex(b)",
    "base64(b)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_view_that_would_have_to_hold_such_a_text_is_suspended(db: ev.Database, text: str) -> None:
    """It says which bytes and what to write instead, and answers again when they are gone."""
    table = db.create_table("t", "b BINARY")
    view = db.create_view("v", f"SELECT {text} AS s, count(*) AS n FROM t GROUP BY 1")
    table.insert([(b"abc",), (b"abc",), ("zażółć".encode(),), (b"",), (None,)])
    db.verify("v")
    for bad in NOT_UTF8:
        table.insert([(bad,)])
        with pytest.raises(ev.ViewSuspended, match=r"not UTF-8.*make_valid_utf8|INVALID_UTF8"):
            view.rows()
        table.delete([(bad,)])
        db.verify("v")


@pytest.mark.parametrize("text", SAID_WHAT_BECOMES_OF_THEM)
def test_what_the_message_says_to_write_instead_is_right(db: ev.Database, text: str) -> None:
    """Also where two different values look the same."""
    table = db.create_table("t", "b BINARY")
    db.create_view("v", f"SELECT {text} AS s, count(*) AS n FROM t GROUP BY 1")
    table.insert([(b,) for b in [*NOT_UTF8, b"\xfe", b"abc", None]])
    db.verify("v")
    table.delete([(NOT_UTF8[0],), (b"abc",)])
    db.verify("v")


def test_a_view_that_spark_answers_as_a_whole(db: ev.Database) -> None:
    """Views over it would look at the text."""
    table = db.create_table("t", "b BINARY")
    query = "SELECT sort_array(collect_list(CAST(b AS STRING)) RESPECT NULLS)[0] AS s FROM t"
    view = db.create_view("v", query, strategy="recompute")
    table.insert([(b"abc",)])
    db.verify("v")
    table.insert([(b"\x01\xff",)])
    with pytest.raises(ev.ViewSuspended, match="UTF"):
        view.rows()
