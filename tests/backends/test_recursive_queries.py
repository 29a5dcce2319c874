"""WITH RECURSIVE: a graph that grows and shrinks, and recursions that do not end."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import everview as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLOSURE = """
WITH RECURSIVE reach(a, b, d) AS (
  SELECT src, dst, 1 FROM edge
  UNION ALL
  SELECT r.a, e.dst, r.d + 1 FROM reach r JOIN edge e ON e.src = r.b WHERE r.d < 5)
"""


@pytest.fixture(params=["reference", "embedded"])
def backend(request: pytest.FixtureRequest) -> str:
    """The backends that have recursive queries; that Spark refuses them is tested below."""
    return str(request.param)


@pytest.fixture
def edge(db: ev.Database) -> ev.Table:
    """The edges of a graph."""
    return db.create_table("edge", "src INT, dst INT")


def _shortest(edges: list[tuple[int, int]], most: int) -> dict[tuple[int, int], tuple[int, int]]:
    """For each pair the fewest steps, and the number of walks, of at most so many steps."""
    walks = dict.fromkeys(edges, 0)
    for pair in edges:
        walks[pair] += 1
    found: dict[tuple[int, int], tuple[int, int]] = {}
    current = walks
    for steps in range(1, most + 1):
        for pair, count in current.items():
            least, total = found.get(pair, (steps, 0))
            found[pair] = (least, total + count)
        following: dict[tuple[int, int], int] = {}
        for (a, b), count in current.items():
            for (c, d), more in walks.items():
                if b == c:
                    following[a, d] = following.get((a, d), 0) + count * more
        current = following
    return found


def test_a_graph_that_grows_and_shrinks(db: ev.Database, edge: ev.Table) -> None:
    """Closure, shortest paths and numbers of walks are right after every edge that comes or goes, circles and all."""
    chance = random.Random(11)
    closure = db.create_view("closure", CLOSURE + "SELECT DISTINCT a, b FROM reach")
    shortest = db.create_view(
        "shortest", CLOSURE + "SELECT a, b, min(d) AS d, count(*) AS walks FROM reach GROUP BY a, b"
    )
    edges: list[tuple[int, int]] = []
    for step in range(40):
        if edges and (step >= 25 or chance.random() < 0.3):
            gone = chance.choice(edges)
            edges.remove(gone)
            edge.delete([gone])
        else:
            come = [(chance.randint(1, 6), chance.randint(1, 6)) for _ in range(chance.randint(1, 2))]
            edges += come
            edge.insert(come)
        expected = _shortest(edges, 5)
        assert sorted(closure.rows()) == sorted(expected)
        assert sorted(shortest.rows()) == sorted((*pair, *value) for pair, value in expected.items())
    db.verify("shortest")


def test_a_recursion_that_does_not_end(db: ev.Database, edge: ev.Table) -> None:
    """A circle is an error, which rejects the transaction or suspends the view, and leaves all rounds as they were."""
    endless = """
    WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION ALL SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b)
    """
    strict = db.create_view("strict", endless + "SELECT a, b FROM r", on_error="reject")
    edge.insert([(1, 2), (2, 3), (3, 4)])
    before = sorted(strict.rows())
    with pytest.raises(ev.EverviewError, match="100 rounds"):
        edge.insert([(4, 1)])
    assert sorted(strict.rows()) == before
    edge.insert([(4, 5)])
    assert len(strict.rows()) == 10
    edge.delete([(2, 3)])
    assert sorted(strict.rows()) == [(1, 2), (3, 4), (3, 5), (4, 5)]
    db.verify("strict")


def test_levels_are_counted_as_spark_counts_them(db: ev.Database, edge: ev.Table) -> None:
    """The step is computed as often as MAX RECURSION LEVEL says, the last time without rows."""
    query = (
        "WITH RECURSIVE r(n) MAX RECURSION LEVEL {} AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 7) "
        "SELECT n FROM r"
    )
    assert len(db.create_view("seven", query.format(7)).rows()) == 7
    with pytest.raises(ev.EverviewError, match="6 rounds"):
        db.create_view("six", query.format(6), on_error="reject")


@pytest.mark.slow
def test_spark_refuses_by_name(spark: SparkSession) -> None:
    """The Spark backend says which part of the query it cannot maintain."""
    with ev.connect(backend="spark", spark=spark) as db:
        db.create_table("edge", "src INT, dst INT")
        with pytest.raises(ev.UnsupportedQuery, match="recursive"):
            db.create_view("v", CLOSURE + "SELECT a, b FROM reach")
