"""Joins on inequalities on the embedded backend: what is met, and what ``explain`` says of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from benchmarks.answers import duckdb_answer, first_difference
from everview.backends.embedded.operators.join import JoinOperator
from everview.backends.embedded.operators.match import MatchByPairOperator
from everview.backends.embedded.vectors import Batch, Ints

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 2_000

FEW = {
    "SELECT r.id, s.id AS o FROM r JOIN s ON s.a BETWEEN r.a - 2 AND r.a + 2": "O(log N + matches)",
    "SELECT r.id, s.id AS o FROM r FULL JOIN s ON s.a BETWEEN r.a - 2 AND r.a + 2": "O(log N + matches)",
    "SELECT r.id, s.id AS o FROM r JOIN s ON r.k = s.k AND s.a BETWEEN r.a - 2 AND r.a + 2": "O(log N + matches)",
    "SELECT r.id, s.id AS o FROM r JOIN s ON r.a < s.b AND s.a < r.b": "O(log N * matches)",
    "SELECT r.id, s.id AS o FROM r LEFT JOIN s ON r.a < s.b AND s.a < r.b": "O(log N * matches)",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a BETWEEN r.a - 2 AND r.a + 2)": "O(log N + matches)",
    "SELECT id FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE r.a < s.b AND s.a < r.b)": "O(log N * matches)",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a > r.a)": "O(log N + rows that turn)",
    "SELECT id FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.a >= r.b)": "O(log N + rows that turn)",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.a <> r.a)": "O(log N + rows that turn)",
    "SELECT id FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a <> r.a)": "O(log N + rows that turn)",
    "SELECT r.id, s.id AS o, t.id AS u FROM r, s, r t WHERE s.a BETWEEN r.a AND r.b AND t.id = r.id": "O(log N * matches)",
}
SCANNED = (
    "SELECT r.id, s.id AS o FROM r JOIN s ON r.a * s.a > 5",
    "SELECT r.id, s.id AS o FROM r LEFT JOIN s ON r.a + r.b > s.a",
    "SELECT r.id, s.id AS o FROM r JOIN s ON r.a > s.a OR r.b < s.b",
)


def _rows(seed: int, count: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 10 * ROWS, count)
    ids = np.arange(count) + seed * 10**6
    return pa.table({"id": ids, "k": rng.integers(0, 3, count), "a": a, "b": a + rng.integers(1, 8, count)})


@pytest.fixture(scope="module")
def db(spark: SparkSession) -> Iterator[ev.Database]:
    """Two tables in which a row has few partners."""
    with ev.connect(spark=spark) as database:
        for seed, name in enumerate("rs"):
            database.create_table(name, _rows(0, 0).schema)
            database.apply({name: _rows(seed)})
        yield database


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs are put together, of which each join checks its condition."""
    counts: list[int] = []
    checked, weights = JoinOperator._checked, MatchByPairOperator._weights

    def count_checked(self: JoinOperator, pairs: Batch) -> Batch:
        counts.append(len(pairs))
        return checked(self, pairs)

    def count_weights(self: MatchByPairOperator, left: Batch, partners: Batch) -> Ints:
        counts.append(len(partners))
        return weights(self, left, partners)

    monkeypatch.setattr(JoinOperator, "_checked", count_checked)
    monkeypatch.setattr(MatchByPairOperator, "_weights", count_weights)
    return counts


@pytest.mark.parametrize("sql", FEW)
def test_few_pairs_are_made_of_many_rows(db: ev.Database, met: list[int], sql: str) -> None:
    """When the view is created, when a row changes, and when both tables do: a few for each row, never the cross product."""
    view = db.create_view("v", sql)
    assert sum(met) <= 15 * ROWS
    for change in ({"r": _rows(5, 1)}, {"s": _rows(6, 1)}):
        met.clear()
        db.apply(change)
        assert sum(met) <= 100
        assert f"a changed row of s costs {FEW[sql]}: " in view.explain()
    met.clear()
    db.apply({"r": _rows(7), "s": _rows(8)})
    assert sum(met) <= 60 * ROWS
    theirs = duckdb_answer(sql, {t: db.table(t).to_arrow() for t in ("r", "s")})
    assert first_difference(view.rows(), theirs) is None
    gone = {t: _rows(n).append_column("_weight", pa.array([-1] * ROWS)) for t, n in (("r", 7), ("s", 8))}
    db.apply(gone)
    db.apply({t: _rows(n, 1).append_column("_weight", pa.array([-1])) for t, n in (("r", 5), ("s", 6))})
    db.drop("v")


OTHERS = {
    "some": ("EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x <> a.x)", lambda k, x, b: _others(k, x, b) > 0),
    "none": ("NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x <> a.x)", lambda k, x, b: not _others(k, x, b)),
    "safe": (
        "NOT EXISTS (SELECT 1 FROM b WHERE b.k <=> a.k AND NOT (b.x = a.x))",
        lambda k, x, b: not any(j == k and None not in (x, y) and x != y for j, y in b),
    ),
    "any": (
        "EXISTS (SELECT 1 FROM b WHERE b.x <> a.x)",
        lambda k, x, b: any(None not in (x, y) and x != y for _, y in b),
    ),
}


def _others(k: int | None, x: str | None, rows: Counter[tuple[int | None, str | None]]) -> int:
    return sum(None not in (k, x, y) and j == k and y != x for j, y in rows)


def test_rows_with_other_partners_follow_a_stream(spark: SparkSession) -> None:
    """Whether another value is there follows from the numbers of values, after failed transactions, too."""
    choose, database = random.Random(4), ev.connect(spark=spark)
    for table in "ab":
        database.create_table(table, "k int, x string")
    views = {n: database.create_view(n, f"SELECT k, x FROM a WHERE {c}") for n, (c, _) in OTHERS.items()}
    assert all("number of other values of x" in str(v.explain("json")) for v in views.values())
    database.create_assertion("few", "SELECT k, COUNT(*) AS n FROM b GROUP BY k HAVING COUNT(*) > 3")
    live: dict[str, Counter[tuple[int | None, str | None]]] = {"a": Counter(), "b": Counter()}
    rejected = 0
    for step in range(300):
        after = {t: Counter(rows) for t, rows in live.items()}
        changes: dict[str, list[dict[str, object]]] = {}
        for _ in range(choose.choice([1, 1, 2, 5])):
            table = choose.choice("ab")
            rows, weight = after[table], choose.choice([1, -1])
            row = choose.choice([None, 1, 2]), choose.choice([None, "p", "q", "r"])
            if weight < 0:
                if not rows:
                    continue
                row = choose.choice(sorted(rows.elements(), key=repr))
            rows[row] += weight
            after[table] = +rows
            changes.setdefault(table, []).append({"k": row[0], "x": row[1], "_weight": weight})
        try:
            database.apply(changes)
            live = after
        except ev.AssertionViolated:
            rejected += 1
        for name, (condition, holds) in OTHERS.items():
            wanted = Counter({r: n for r, n in live["a"].items() if holds(*r, live["b"])})
            assert Counter(views[name].rows()) == wanted, f"step {step}: {condition}: {live}"
    assert rejected > 20


@pytest.mark.parametrize("sql", SCANNED)
def test_what_no_order_answers_is_called_a_scan(db: ev.Database, sql: str) -> None:
    """And ``explain`` says why."""
    text = db.create_view("v", sql).explain()
    db.drop("v")
    assert "scan (no comparison bounds a column of it)" in text
    assert "costs O(N): it meets all rows of " in text
