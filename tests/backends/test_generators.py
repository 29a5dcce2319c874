"""Generators that need Spark's own code: JSON_TUPLE, and the positions of a map's entries."""

from __future__ import annotations

import pytest

import everview as ev

ROWS = [
    (1, '{"a": 1.10, "b": "x", "a.b": null}', {"p": 1, "q": None}),
    (1, '{"a": 1.10, "b": "x", "a.b": null}', {"p": 1, "q": None}),
    (2, None, None),
    (3, "no json", {}),
    (4, '{"a": 1, "a": 2, "b": {"c": [1, "żółw"]}} trailing', {"p": 4}),
    (5, '{"a": 1, "b": ', {"r": 5}),
    (6, '[{"a": 1}]', {"r": 6}),
    (None, '{"b": true, "a": null}', {"": 0}),
]
JSON_TUPLES = [
    "SELECT k, json_tuple(j, 'a', 'b') FROM t",
    "SELECT k, json_tuple(j, 'a.b') AS c FROM t",
    "SELECT k, p, q FROM t LATERAL VIEW OUTER json_tuple(j, 'a', 'b') x AS p, q",
    "SELECT t.k, p FROM t, LATERAL json_tuple(t.j, 'a') AS x(p)",
    "SELECT upper(q) AS u, count(*) AS n FROM t LATERAL VIEW json_tuple(trim(j), 'a', substring(j, 12, 1)) x AS p, q "
    "GROUP BY 1",
]


def _follows(db: ev.Database, query: str) -> None:
    """The law: equal to Spark's answer after every batch."""
    table = db.create_table("t", "k int, j string, m map<string, int>")
    db.create_view("v", query)
    for first in range(0, len(ROWS), 3):
        table.insert(ROWS[first : first + 3])
        db.verify("v")
    for first in (0, 1):
        table.delete(ROWS[first::2])
        db.verify("v")


@pytest.mark.parametrize("query", JSON_TUPLES)
def test_json_tuple_follows_its_table(db: ev.Database, backend: str, query: str) -> None:
    """NULLs, duplicate fields, broken text and what stands after an object are what Spark's generator makes of them."""
    if backend == "spark":
        db.create_table("t", "k int, j string")
        with pytest.raises(ev.UnsupportedQuery, match="json_tuple is not supported on the spark backend"):
            db.create_view("v", query)
    else:
        _follows(db, query)


@pytest.mark.parametrize("generator", ["posexplode", "posexplode_outer"])
def test_the_entries_of_a_map_have_positions(db: ev.Database, generator: str) -> None:
    """A map gives position, key and value; an empty one a row of NULLs where it is outer."""
    _follows(db, f"SELECT k, {generator}(m) FROM t")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT k, x FROM t, LATERAL unnest(array(t.k)) AS x(x)", "unnest"),
        ("SELECT k, v.pos FROM t, LATERAL variant_explode(try_parse_json(t.j)) v", "variant_explode"),
    ],
)
def test_a_generator_that_is_refused_is_named_as_in_sql(db: ev.Database, query: str, name: str) -> None:
    """The refusal says what to write instead."""
    db.create_table("t", "k int, j string")
    with pytest.raises(ev.UnsupportedQuery, match=rf"the generator {name} is not supported.*explode"):
        db.create_view("v", query)
