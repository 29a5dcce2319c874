"""What ``explain`` says of a view is what runs: its class, its cost, and how its result is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> Iterator[ev.Database]:
    """Two tables to join, on the embedded backend, which is the one that has view trees."""
    with ev.connect(spark=spark) as database:
        database.create_table("a", "k int, x int")
        database.create_table("b", "k int, y int")
        yield database


def _tree(view: ev.View) -> dict[str, Any]:
    trees = [o["view_tree"] for o in json.loads(view.explain("json"))["operators"] if "view_tree" in o]
    assert len(trees) == 1
    return dict(trees[0])


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("a.x < b.y", "free-connex acyclic"),
        ("a.x <> b.y", "free-connex acyclic"),
        ("a.k = b.k AND a.x < b.y", "cyclic"),
    ],
)
def test_a_predicate_over_several_relations_is_part_of_the_class(shop: ev.Database, condition: str, name: str) -> None:
    """A count whose update is not O(1) is not called q-hierarchical, and the text says what the class is worth."""
    view = shop.create_view("counted", f"SELECT count(*) AS n FROM a JOIN b ON {condition}")
    text, tree = view.explain(), _tree(view)
    shop.drop("counted")
    assert tree["class"] == tree["class_under_dependencies"] == name
    assert tree["predicates_over_several_relations"] == [["x", "y"]]
    assert {u["bound"] for u in tree["updates"].values()} == {"O(log N)"}
    expected = (
        f"query: {name}, counting the predicate over x, y as an edge: no relation, so the class promises no bound\n"
    )
    assert expected in text


def test_a_dependency_makes_no_relation_of_a_predicate(shop: ev.Database) -> None:
    """There is one average; when it changes, the rows between the old and the new one are found in their order."""
    view = shop.create_view("above", "SELECT count(*) AS n FROM a WHERE x > (SELECT avg(y) FROM b)")
    text = view.explain()
    shop.drop("above")
    assert (
        "query over the output aggregate: free-connex acyclic, counting the predicate over avg(y), x as an edge" in text
    )
    for table in "ab":
        assert f"a changed row of {table} costs O(log N): " in text


def test_the_class_of_a_part_says_what_it_is_a_part_of(shop: ev.Database) -> None:
    """The aggregate over an outer join is a tree over its output; the query as a whole has no class."""
    view = shop.create_view("lonely", "SELECT a.k, count(b.y) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k")
    text = view.explain()
    shop.drop("lonely")
    assert "query over the output unionall: q-hierarchical\n" in text
    for table in "ab":
        assert f"a changed row of {table} costs O(matches): " in text


LISTED = {
    "SELECT DISTINCT k FROM a": "DISTINCT",
    "SELECT k FROM (SELECT DISTINCT k FROM a) WHERE k > 1": "DISTINCT",
    "SELECT k, count(*) AS n FROM (SELECT DISTINCT k, x FROM a) GROUP BY k": "DISTINCT",
    "SELECT k, x FROM a UNION ALL SELECT k, y FROM b": "UNION ALL, which outer joins are too,",
    "SELECT x, y FROM a LEFT JOIN b ON a.k = b.k": "UNION ALL, which outer joins are too,",
    "SELECT k, x FROM a EXCEPT ALL SELECT k, y FROM b": "EXCEPT",
    "SELECT k, x FROM a INTERSECT ALL SELECT k, y FROM b": "INTERSECT",
    "SELECT x, rank() OVER (ORDER BY x) AS r FROM a": "a window function",
    "SELECT a.k, x, y FROM a JOIN b ON a.k = b.k ORDER BY x LIMIT 3": "ORDER BY with LIMIT",
    "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k HAVING count(*) > 1": "its inner aggregate",
    "SELECT k, x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)": "a join that is not inner",
    "SELECT k, explode(array(x, k)) AS e FROM a": "explode",
    "SELECT * FROM VALUES (1), (2) AS t(x)": "VALUES",
    "WITH RECURSIVE r(n) AS (SELECT k FROM a UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r": "WITH RECURSIVE",
}


@pytest.mark.parametrize("query", LISTED)
def test_what_would_be_listed_is_not_called_factorized(shop: ev.Database, query: str) -> None:
    """A result that is the output of one operator is a listing, so it is refused under the other name."""
    with pytest.raises(ev.UnsupportedQuery) as caught:
        shop.create_view("v", query, representation="factorized")
    assert str(caught.value) == (
        "representation='factorized' cannot hold view 'v': it is no join of tables, nor an aggregate over one: "
        f"the output of {LISTED[query]} is listed. Hint: leave it out: the rows are then listed."
    )
    assert "v" not in shop.views


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, x, y FROM a JOIN b ON a.k = b.k",
        "SELECT a.k, x, y FROM a JOIN (SELECT DISTINCT k, y FROM b) d ON a.k = d.k",
        "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        "SELECT DISTINCT a.k, x, y FROM a JOIN b ON a.k = b.k",
        "SELECT k, x FROM a WHERE x > 1",
    ],
)
def test_joins_are_factorized(shop: ev.Database, query: str) -> None:
    """Also over the output of other operators, and one table, which is its own factorization."""
    view = shop.create_view("v", query, representation="factorized")
    tree = _tree(view)
    shop.drop("v")
    assert tree["kind"] == "factorized"
