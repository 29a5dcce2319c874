"""The law for joins on inequalities without aggregates: every kind of join, bands, intervals and keys beside them.

Queries are drawn from a small grammar. After every transaction, most of which change both tables, each view equals the one that
the reference recomputes; in between, transactions fail. Values are NULL, equal, NaN, infinite and at the ends of their types.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

import everview as ev

Row = dict[str, Any]

FIELDS = "k int, a int, b bigint, x double, y double, m decimal(9,2), w decimal(30,4), d date, t timestamp, c string"
TIMES = ((2024, 1, 1, 12), (2024, 1, 1, 12, 30), (2024, 3, 31, 1), (2024, 3, 31, 2), (2025, 1, 1))
VALUES: dict[str, tuple[Any, ...]] = {
    "k": (None, 1, 2),
    "a": (None, 0, 1, 2, 3, 5, 8, -4, 2**31 - 3, -(2**31) + 3),
    "b": (None, 0, 1, 3, 4, 6, 9, 2**63 - 1, -(2**63)),
    "x": (None, 0.0, -0.0, 1.5, 2.5, -3.0, float("nan"), float("inf"), float("-inf"), 1e308),
    "y": (None, 0.5, 2.0, 4.0, float("nan"), float("inf")),
    "m": (None, Decimal("1.50"), Decimal("-2.25"), Decimal("0.10"), Decimal("9999999.99")),
    "w": (None, Decimal("1.5"), Decimal("-2.25"), Decimal("12345678901234567890.5"), Decimal(12345678901234567891)),
    "d": (None, date(2024, 1, 1), date(2024, 1, 31), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)),
    "t": (None, *(datetime(*at, tzinfo=UTC) for at in TIMES)),
    "c": (None, "", "a", "ab", "b", "é", "zz"),
}
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
BANDS = (
    "s.a BETWEEN r.a - 2 AND r.a + 2",
    "s.b BETWEEN r.a - 1 AND r.a + 1",
    "s.b >= r.a AND s.b < r.b",
    "r.a < s.b AND s.a < r.b",
    "r.x <= s.y AND s.x < r.y",
    "s.x BETWEEN r.x - 1 AND r.x + 1",
    "s.m BETWEEN r.m - 1 AND r.m * 2",
    "s.w > r.w AND s.w <= r.w + 2",
    "s.d BETWEEN date_sub(r.d, 30) AND date_add(r.d, 30)",
    "s.d >= r.d AND s.d < add_months(r.d, 1)",
    "s.t BETWEEN r.t - INTERVAL 40 MINUTES AND r.t",
    "s.t > r.t - INTERVAL 1 DAY AND s.t <= r.t",
    "s.c > r.c AND s.c <= concat(r.c, 'b')",
    "r.a + s.a BETWEEN 3 AND 6",
    "r.a + s.a = 5",
    "s.a * 2 > r.a AND s.a < r.a * 2",
    "r.a < s.a AND r.x < s.x AND r.m < s.m",
    "r.b < s.b AND r.b + s.a > 4",
    "CAST(s.a AS double) BETWEEN r.x AND r.y",
    "s.a BETWEEN -r.a AND r.a AND r.c <> s.c",
)
COMPARED = ("a", "b", "x", "m", "w", "d", "t", "c")


def comparison(choose: random.Random) -> str:
    """One comparison of two columns."""
    column = choose.choice(COMPARED)
    return f"s.{column} {choose.choice(['<', '<=', '>', '>='])} r.{column}"


def condition(choose: random.Random) -> str:
    """What rows are joined on: a band or a comparison, equalities beside it, and something that no index answers."""
    parts = [choose.choice([*BANDS, comparison(choose)])]
    parts += choose.sample(["r.k = s.k", "r.k <=> s.k", "r.c = s.c"], choose.choice([0, 0, 1]))
    parts += choose.sample(["r.a <> s.b", "r.x * s.x > 1", comparison(choose)], choose.choice([0, 0, 0, 1]))
    choose.shuffle(parts)
    return " AND ".join(parts)


def generated(choose: random.Random) -> str:
    """A query with such a join."""
    on = condition(choose)
    form = choose.choice([*KINDS, *KINDS, "EXISTS", "NOT EXISTS", "IN", "self", "three"])
    match form:
        case "EXISTS" | "NOT EXISTS":
            return f"SELECT * FROM r WHERE {form} (SELECT 1 FROM s WHERE {on})"
        case "IN":
            return f"SELECT * FROM r WHERE r.k {choose.choice(['IN', 'NOT IN'])} (SELECT s.k FROM s WHERE {on})"
        case "self":
            return f"SELECT r.a, r.b, s.x, s.c FROM r JOIN r s ON {on}"
        case "three":
            return f"SELECT r.a, s.b, q.c FROM r JOIN s ON {on} JOIN s q ON q.k = s.k AND q.a <= r.a"
        case _:
            shown = "r.*" if "SEMI" in form or "ANTI" in form else "r.a, r.b, r.x, r.c, s.a AS e, s.b AS f, s.t, s.w"
            return f"SELECT {shown} FROM r {form} s ON {on}"


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_inequality_joins_follow_a_stream(spark: SparkSession, seed: int) -> None:
    """Whatever both tables bring at once, a join on inequalities is what recomputation gives."""
    choose = random.Random(seed)
    _follow(spark, [generated(choose) for _ in range(14)], choose, steps=14)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 18))
def test_many_inequality_joins_follow_longer_streams(spark: SparkSession, seed: int) -> None:
    """The same for more queries and longer streams; at the end Spark itself is asked."""
    choose = random.Random(seed)
    _follow(spark, [generated(choose) for _ in range(30)], choose, steps=60).verify()


def _follow(spark: SparkSession, queries: list[str], choose: random.Random, steps: int) -> ev.Database:
    ours, reference = ev.connect(spark=spark), ev.connect(backend="reference", spark=spark)
    live: dict[str, list[Row]] = {"r": [], "s": []}
    first = _changes(choose, live)
    for database in (ours, reference):
        for table in live:
            database.create_table(table, FIELDS)
        database.apply(first)
    views = {}
    for i, sql in enumerate(queries):
        for database in (ours, reference):
            database.create_view(f"v{i}", sql)
        views[f"v{i}"] = sql
    for step in range(steps):
        if choose.random() < 0.2:
            with pytest.raises(ev.InvalidChange):
                ours.apply({"s": [{**dict.fromkeys(VALUES), "k": 77, "_weight": -1}]})
        changes = _changes(choose, live)
        ours.apply(changes)
        reference.apply(changes)
        for name, sql in views.items():
            found, wanted = _answer(ours, name), _answer(reference, name)
            assert found == wanted, f"step {step} of {sql}: {changes}"
    return ours


def _answer(database: ev.Database, view: str) -> Counter[str] | None:
    """The rows of a view; None where an expression has no value for some of them."""
    try:
        return Counter(map(repr, database.view(view).rows()))
    except ev.ViewSuspended:
        return None


def _changes(choose: random.Random, live: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Rows that come and go, in both tables more often than not."""
    changes: dict[str, list[Row]] = {}
    for table in choose.choice([("r", "s"), ("r", "s"), ("r",), ("s",)]):
        rows = live.get(table, [])
        changed = changes.setdefault(table, [])
        for _ in range(choose.choice([1, 2, 9])):
            if rows and choose.random() < 0.45:
                changed.append({**rows.pop(choose.randrange(len(rows))), "_weight": -1})
            else:
                row = {name: choose.choice(values) for name, values in VALUES.items()}
                rows.append(row)
                changed.append({**row, "_weight": 1})
    return changes
