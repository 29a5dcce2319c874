"""Aggregates in registered rings over joins: lifted and summed at the leaves of a view tree, and multiplied through it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import everview as ev
from everview.algebra.finite_algebra import covariance_ring
from everview.algebra.integers import INTEGERS
from everview.algebra.registry import forget
from everview.algebra.ring import ColumnValues, Ints, Payloads
from tests.backends.user_rings import register_all

TABLES = {
    "r": "a INT, b INT, x DOUBLE, w STRING",
    "s": "a INT, c INT, y DOUBLE, p DECIMAL(30,2)",
    "t": "c INT, d INT, z DOUBLE",
    "u": "a INT, e INT, v DOUBLE",
}

COFACTORS = covariance_ring(3)
WHOLE_COFACTORS = covariance_ring(3, INTEGERS)

R_S = "FROM r JOIN s ON r.a = s.a"
PATH = f"{R_S} JOIN t ON s.c = t.c"
STAR = f"{PATH} JOIN u ON r.a = u.a"

QUERIES = {
    "complex_over_two": f"SELECT complex_sum(x, y) AS z {R_S}",
    "polynomials_over_two": f"SELECT r.a, totals(b, c) AS z, COUNT(*) AS n {R_S} GROUP BY r.a",
    "polynomials_over_three": f"SELECT s.c, totals(b, r.a, d) AS z, SUM(d) AS v {PATH} GROUP BY s.c",
    "covariance_over_three": f"SELECT t.d, cofactors(x, y, z) AS m {PATH} GROUP BY t.d",
    "integers_over_four": f"SELECT whole_cofactors(b, s.c, d) AS m, COUNT(*) AS n, SUM(e) AS v {STAR}",
    "several_rings": f"""
        SELECT r.a, complex_sum(x, v) AS f, totals(b, e) AS g, totals(d, b) AS h, cofactors(x, y, z) AS m, phasor(x, p) AS q,
               SUM(x * y) AS s, AVG(d) AS mean, COUNT(z) AS n, COUNT(*) AS all
        {STAR} GROUP BY r.a""",
    "one_argument": f"SELECT t.d, complex_sum(y) AS z {PATH} GROUP BY t.d",
    "arguments_of_one_table": f"SELECT r.a, complex_sum(x, y, x, 2) AS z, totals(1, b, b) AS p {R_S} GROUP BY r.a",
    "does_not_commute": f"SELECT t.d, walks(w) AS z {PATH} GROUP BY t.d",
    "filtered": f"SELECT totals(b, d) AS z {PATH} WHERE r.x > 0 AND t.d < 3",
    "expressions": f"SELECT complex_sum(CASE WHEN b > 0 THEN x END, coalesce(y, 0.5D)) AS z {R_S}",
    "residual": f"SELECT r.a, complex_sum(x, y) AS z, totals(b, c) AS p {R_S} AND r.b < s.c GROUP BY r.a",
    "self_join": "SELECT one.b, complex_sum(one.x, two.x) AS z FROM r one JOIN r two ON one.a = two.a GROUP BY one.b",
    "null_safe": "SELECT r.a, totals(b, c) AS z FROM r JOIN s ON r.a <=> s.a GROUP BY r.a",
    "cross": "SELECT complex_sum(x, z) AS z, totals(b, d) AS p FROM r CROSS JOIN t",
    "cycle": "SELECT cofactors(x, y, z) AS m FROM r JOIN s ON r.a = s.a JOIN t ON s.c = t.c AND t.d = r.b",
    "cycle_of_one_table": """
        SELECT totals(one.b, two.b, three.a) AS z, cofactors(one.x, two.x, three.x) AS m, complex_sum(two.x, one.x) AS c
        FROM r one JOIN r two ON one.b = two.a JOIN r three ON two.b = three.a AND three.b = one.a""",
    "one_table": "SELECT a, complex_sum(x, b) AS z, cofactors(x, b) AS m FROM r GROUP BY a",
    "having": f"SELECT r.a {R_S} GROUP BY r.a HAVING totals(b, c)[1] > 0",
}


PARTED = ("cycle", "cycle_of_one_table", "filtered")
"""Queries that heavy and light parts maintain as well."""
VERIFIED = ("several_rings", "does_not_commute")
"""Queries whose answers Spark, too, computes."""


@pytest.fixture(autouse=True)
def _rings() -> None:
    register_all()
    ev.register_ring("cofactors", COFACTORS, returns="array<double>")
    ev.register_ring("whole_cofactors", WHOLE_COFACTORS, returns="array<bigint>")


def _value(rng: random.Random, kind: str) -> Any:
    if rng.random() < 0.15:
        return None
    match kind.split("(", maxsplit=1)[0]:
        case "INT":
            return rng.randrange(0, 4)
        case "DOUBLE":
            return rng.randrange(-8, 8) / 4
        case "DECIMAL":
            return Decimal(rng.randrange(-400, 900)).scaleb(-2)
        case _:
            return rng.choice(["l", "r", "lr", "rrl", ""])


def _steps(seed: int, steps: int) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Transactions over one or several tables; deletes are of rows that are there, and at the end of all."""
    rng = random.Random(seed)
    held: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for _ in range(steps):
        step = {}
        for name in rng.sample(list(TABLES), rng.randrange(1, 4)):
            columns = [column.split(" ") for column in TABLES[name].split(", ")]
            new = [{c: _value(rng, kind) for c, kind in columns} for _ in range(rng.randrange(0, 6))]
            held[name] += new
            gone = [held[name].pop(rng.randrange(len(held[name]))) for _ in range(rng.randrange(0, 4)) if held[name]]
            step[name] = [{**row, "_weight": 1} for row in new] + [{**row, "_weight": -1} for row in gone]
        yield {name: rows for name, rows in step.items() if rows}
    yield {name: [{**row, "_weight": -1} for row in rows] for name, rows in held.items() if rows}


def _open(spark: SparkSession, **options: Any) -> ev.Database:
    db = ev.connect(spark=spark, **options)
    for name, ddl in TABLES.items():
        db.create_table(name, ddl)
    return db


def _given(changes: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Rows with NULL in the columns that they do not name."""
    names = {name: [column.split(" ")[0] for column in TABLES[name].split(", ")] for name in changes}
    return {
        name: [{**dict.fromkeys(names[name]), "_weight": 1, **row} for row in rows] for name, rows in changes.items()
    }


def _plain(value: Any) -> Any:
    """A value with floats rounded, as the cosines of phasors are not exact, and without the sign of zero."""
    if isinstance(value, float):
        return round(value, 9) + 0.0
    if isinstance(value, dict):
        return tuple((k, _plain(v)) for k, v in value.items())
    return tuple(_plain(v) for v in value) if isinstance(value, list | tuple) else value


def _bag(view: ev.View) -> list[Any]:
    return sorted((_plain(row) for row in view.rows()), key=repr)


@pytest.mark.parametrize("query", QUERIES)
def test_trees_agree_with_the_reference(spark: SparkSession, query: str) -> None:
    """A tree maintains the query, under every strategy, and holds the reference's answer after every transaction."""
    reference = _open(spark, backend="reference")
    reference.create_view("v", QUERIES[query])
    db = _open(spark)
    views = [db.create_view(s, QUERIES[query], strategy=s) for s in ("auto", "factorized", "first_order")]
    assert all("view tree of" in view.explain() for view in views)
    if query in PARTED:
        views.append(db.create_view("skew", QUERIES[query], strategy="skew", epsilon=0.4))
        assert "maintained by heavy and light parts" in views[-1].explain()
    seed = sum(query.encode())
    for number, step in enumerate(_steps(seed, 14)):
        reference.apply(step)
        db.apply(step)
        expected = _bag(reference.view("v"))
        for view in views:
            assert _bag(view) == expected, (view.name, number)
        if number == 9:
            late = db.create_view("late", QUERIES[query])
            assert _bag(late) == expected
            views.append(late)
        if number == 9 and query in VERIFIED:
            db.verify()
    assert not any(len(reference.table(name).rows()) for name in TABLES)


def test_payloads_are_summed_before_the_join(spark: SparkSession) -> None:
    """Leaves are keyed by the variables of the join alone: the arguments of the ring are in their payloads."""
    with _open(spark) as db:
        view = db.create_view("v", f"SELECT cofactors(x, y, z) AS m, totals(b, d) AS p {PATH}")
        text = view.explain()
        assert all(leaf in text for leaf in ("r[a]", "s[a, c]", "t[c]"))
        triggers = view.explain(mode="triggers")
        assert "δr[a] := Σ #, cofactors(x), [isnotnull(x)], totals(b), [isnotnull(b)]" in triggers
        assert "δt[c] := Σ #, cofactors(·, ·, z), [isnotnull(z)], totals(·, d), [isnotnull(d)]" in triggers
        code = view.explain(mode="code")
        assert "by_table" in code  # both rings multiply by a table, and Python by no rows
        assert "Python computes" not in code


def test_many_rows_of_one_key(spark: SparkSession) -> None:
    """Batches larger than what the machine takes at once, over few keys: the count of the join is no part of the cost."""
    rows = 5000
    with _open(spark) as db:
        view = db.create_view("v", f"SELECT whole_cofactors(b, s.c, d) AS m {PATH}")
        for name, key, value in (("r", "a", "b"), ("t", "c", "d")):
            db.apply(_given({name: [{key: i % 2, value: i % 5} for i in range(rows)]}))
        db.apply(_given({"s": [{"a": i % 2, "c": i % 2} for i in range(rows)]}))
        ((found,),) = view.rows()
        # Each of the two keys has rows/2 rows in every table: (rows/2)³ combinations, that is 3 · 10^10 rows in all.
        half = rows // 2
        assert found[0] == 2 * half**3
        assert found[1] == half**2 * sum(i % 5 for i in range(rows))
        db.apply(_given({"s": [{"a": 1, "c": 1, "_weight": -1}] * half}))
        assert next(iter(view.rows()))[0][0] == half**3


def test_a_transaction_that_fails_is_taken_back(spark: SparkSession) -> None:
    """Both a broken assertion and a lift that fails leave leaves, inner views and results as they were."""
    with _open(spark) as db:
        query = f"SELECT r.a, totals(b, d) AS p, complex_sum(x, y) AS q, walks(w) AS z {PATH} GROUP BY r.a"
        db.create_view("v", query, on_error="reject")
        db.create_assertion("few", "SELECT a FROM r GROUP BY a HAVING COUNT(*) > 3")
        db.apply(
            _given({"r": [{"a": 1, "b": 2, "x": 0.5, "w": "l"}], "s": [{"a": 1, "c": 1, "y": 2.0}, {"a": 2, "c": 1}]})
        )
        db.apply(_given({"t": [{"c": 1, "d": 1}]}))
        before = _bag(db.view("v"))
        with pytest.raises(ev.AssertionViolated):
            db.apply(_given({"t": [{"c": 1, "d": 0}], "r": [{"a": 1, "b": 1, "x": 9.0, "w": "r"}] * 3}))
        with pytest.raises(ev.EvaluationError, match="ring 'walks': lifting argument 1 failed: KeyError: 'u'"):
            db.apply(_given({"t": [{"c": 1, "d": 0}], "r": [{"a": 2, "b": 1, "x": 9.0, "w": "up"}]}))
        assert _bag(db.view("v")) == before
        db.apply(_given({"r": [{"a": 2, "b": 0, "x": 0.25, "w": "lr"}]}))
        db.verify()


def test_static_tables(spark: SparkSession) -> None:
    """Tables that are loaded before the view and never change are joined once."""
    with ev.connect(spark=spark) as db:
        for name, ddl in TABLES.items():
            db.create_table(name, ddl, static=name in ("s", "t"))
        loaded = {
            "s": [{"a": i % 3, "c": i % 2, "y": i / 4} for i in range(7)],
            "t": [{"c": 1, "z": 0.5}, {"c": 0, "z": 2.0}],
        }
        db.apply(_given(loaded))
        view = db.create_view("v", f"SELECT r.a, cofactors(x, y, z) AS m {PATH} GROUP BY r.a")
        db.apply(_given({"r": [{"a": 1, "x": 1.5}, {"a": 2, "x": -1.0}, {"a": 7, "x": 1.0}]}))
        assert len(list(view.rows())) == 2
        db.verify()
        db.apply(_given({"r": [{"a": 1, "x": 1.5, "_weight": -1}, {"a": 0, "x": 3.0}]}))
        db.verify()


def test_factorized_changes(spark: SparkSession) -> None:
    """A change that is a product reaches a ring's view, too."""
    with _open(spark) as db:
        view = db.create_view("v", f"SELECT totals(b, c) AS z {R_S}")
        db.apply(_given({"s": [{"a": 1, "c": 1}, {"a": 2, "c": 0}]}))
        product = ev.Product({"a": [1, 2]}, {"b": [0, 1, 2]}, {"x": [None]}, {"w": ["l"]})
        db.apply({"r": product})
        assert _bag(view) == [((1, 2, 2, 1),)]
        db.verify()


class Clock(ev.Ring):
    """Numbers modulo 12: a sum is no sum of words."""

    width = 1
    dtype = np.dtype(np.int64)

    def ones(self, count: int) -> Payloads:
        return np.ones((count, 1), dtype=np.int64)

    def add(self, a: Payloads, b: Payloads) -> Payloads:
        return (a + b) % 12

    def negate(self, a: Payloads) -> Payloads:
        return -a % 12

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        return a * b % 12

    def scale(self, a: Payloads, weights: Ints) -> Payloads:
        return a * weights[:, None] % 12

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        return np.ascontiguousarray(column.astype(np.int64)).reshape(-1, 1) % 12


def test_rings_with_an_addition_of_their_own_are_summed_after_the_join(spark: SparkSession) -> None:
    """No tree adds modulo 12; the aggregate is maintained over the rows of the join, and explain says why."""
    ev.register_ring("oclock", Clock(), returns="bigint")
    try:
        with _open(spark) as db:
            view = db.create_view("v", f"SELECT oclock(b, c) AS z {R_S}")
            db.apply(_given({"r": [{"a": 1, "b": 7}, {"a": 1, "b": 3}], "s": [{"a": 1, "c": 5}]}))
            assert list(view.rows()) == [(2,)]
            assert "the ring of oclock adds in its own way" in view.explain()
    finally:
        forget("oclock")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (f"SELECT complex_sum(x * y) AS z {R_S}", "an argument of complex_sum reads several tables"),
        (f"SELECT totals(b + 1, c) AS z {R_S}", "summed row by row, for now"),
    ],
)
def test_what_no_leaf_can_lift_is_summed_after_the_join(spark: SparkSession, query: str, reason: str) -> None:
    """An argument over two tables, or one that overflows for a row without a partner, needs the joined rows."""
    with _open(spark) as db:
        view = db.create_view("v", query)
        db.apply(
            _given({"r": [{"a": 1, "b": 0, "x": 1.5}, {"a": 9, "b": 2**31 - 1}], "s": [{"a": 1, "c": 1, "y": 2.0}]})
        )
        assert reason in view.explain()
        db.verify()


class Brittle(ev.Ring):
    """Integers with a multiplication that does not like 13."""

    width = 1
    dtype = np.dtype(np.int64)

    def ones(self, count: int) -> Payloads:
        return np.ones((count, 1), dtype=np.int64)

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        if (a == 13).any():
            raise ValueError("13")
        return a * b

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        return np.ascontiguousarray(column.astype(np.int64)).reshape(-1, 1)


def test_a_multiplication_that_fails_rejects_the_change(spark: SparkSession) -> None:
    """A multiplication that fails where the tree multiplies rejects the transaction, with the ring's name."""
    ev.register_ring("brittle", Brittle(), returns="bigint")
    try:
        with _open(spark) as db:
            view = db.create_view("v", f"SELECT brittle(b, c) AS z {R_S}", on_error="reject")
            db.apply(_given({"s": [{"a": 1, "c": 13}, {"a": 1, "c": 2}], "r": [{"a": 1, "b": 2}]}))
            assert "view tree of" in view.explain()
            with pytest.raises(ev.EvaluationError, match="ring 'brittle': multiplying failed: ValueError: 13"):
                db.apply(_given({"r": [{"a": 1, "b": 13}]}))
            assert list(view.rows()) == [(30,)]
    finally:
        forget("brittle")
