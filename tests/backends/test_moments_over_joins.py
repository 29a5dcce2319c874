"""Variances, covariances and regressions over joins are view trees: one changed row costs look-ups, not the join's size."""

from __future__ import annotations

import re
from math import isnan
from random import Random
from typing import TYPE_CHECKING

import pytest

import everview as ev
from everview.backends.embedded.tree.tree_operator import TreeOperator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def db(spark: SparkSession) -> ev.Database:
    """A chain of three tables with measures at both ends."""
    db = ev.connect(spark=spark)
    db.create_table("sale", "id INT NOT NULL, item INT, amount DOUBLE", primary_key=["id"])
    db.create_table("item", "id INT NOT NULL, maker INT", primary_key=["id"])
    db.create_table("maker", "id INT NOT NULL, score DOUBLE", primary_key=["id"])
    return db


QUERY = """SELECT COVAR_SAMP(s.amount, m.score) AS cov, CORR(s.amount, m.score) AS corr, VAR_POP(s.amount) AS var,
                  REGR_SLOPE(s.amount, m.score) AS slope
           FROM sale s JOIN item i ON s.item = i.id JOIN maker m ON i.maker = m.id"""


def test_a_covariance_over_three_tables_is_a_tree(db: ev.Database) -> None:
    """A changed maker meets one entry a key, however many sales it has."""
    view = db.create_view("cov", QUERY)
    assert "view tree" in view.explain()
    assert "a changed row of maker costs O(1): " in view.explain()

    db.apply({"maker": [(i, float(i)) for i in range(4)], "item": [(i, i % 4) for i in range(8)]})
    db.apply({"sale": [(i, i % 8, i / 8) for i in range(400)]})
    db.verify("cov")
    db.table("maker").upsert([(2, -3.5)])
    db.verify("cov")
    db.table("sale").delete([(i, i % 8, i / 8) for i in range(0, 400, 3)])
    db.verify("cov")


def test_a_changed_row_costs_look_ups_whatever_is_there(db: ev.Database) -> None:
    """Ten times the sales and items, in a view that is made on them: a maker, two joins away, meets no more rows."""
    db.apply({"maker": [(i, float(i)) for i in range(4)]})
    rows: list[dict[str, int]] = []  # that triggers have touched
    for name, count in (("few", 300), ("many", 3000)):
        start = len(db.table("item"))
        db.apply({"item": [(i, i % 4) for i in range(start, count)]})
        db.apply({"sale": [(i, i % count, i / 8) for i in range(10 * start, 10 * count)]})
        view = db.create_view(name, QUERY)
        for table in ("sale", "item", "maker"):
            assert f"a changed row of {table} costs O(1): " in view.explain()
        rows.append({})
        for table, row in {"maker": (2, count / 7), "item": (count - 2, 1), "sale": (count + 7, 2, 400.0)}.items():
            before = tree_of(db, name).state.work
            db.table(table).upsert([row])
            rows[-1][table] = tree_of(db, name).state.work - before
        db.verify(name)
        db.drop(name)
    assert rows[0] == rows[1]
    assert max(rows[0].values()) <= 30


def test_what_comes_and_goes_leaves_no_trace(db: ev.Database) -> None:
    """Large means do not swallow small variances, also after deletes of values a million times as large."""
    view = db.create_view("cov", QUERY)
    db.apply({"maker": [(0, 1e9), (1, 1e9 + 1)], "item": [(0, 0), (1, 1)]})
    db.apply({"sale": [(0, 0, 1e9), (1, 1, 1e9 + 2)]})
    before = view.rows()
    assert before == [(pytest.approx(1.0, rel=1e-12), pytest.approx(1.0), pytest.approx(1.0), pytest.approx(2.0))]
    large = [(i, i % 2, 1e14 * i) for i in range(2, 50)]
    db.table("sale").insert(large)
    db.table("sale").delete(large)
    assert view.rows() == [tuple(pytest.approx(v, rel=1e-9) for v in before[0])]


ALL = """COUNT(*) AS n, VAR_SAMP({x}) AS a, STDDEV_POP({x}) AS b, VAR_POP({y}) AS c, COVAR_SAMP({x}, {y}) AS d,
         COVAR_POP({y}, {x}) AS e, CORR({x}, {y}) AS f, REGR_SLOPE({y}, {x}) AS g, REGR_INTERCEPT({y}, {x}) AS h,
         REGR_R2({x}, {y}) AS i, REGR_SXX({y}, {x}) AS j, REGR_SYY({y}, {x}) AS k, REGR_SXY({x}, {y}) AS l,
         REGR_COUNT({x}, {y}) AS m, REGR_AVGX({y}, {x}) AS o, AVG({x}) AS p, SUM({x} * {y}) AS q, SUM({y} * {x}) AS r,
         STDDEV({y}) AS s"""


def tree_of(db: ev.Database, view: str) -> TreeOperator:
    """The tree of a view; ``state.work`` is how many entries its triggers have read or made."""
    root = db._core.backend._graph.roots[view]  # type: ignore[attr-defined]
    while not isinstance(root, TreeOperator):
        (root,) = root.inputs
    return root


def words(db: ev.Database, view: str) -> int:
    """How many words a group's payload has."""
    root = tree_of(db, view)
    result = root.state.maps[root.program.result]
    return int(result.stride - result.key_words)


@pytest.fixture
def shop(spark: SparkSession) -> ev.Database:
    """An embedded database with its tables."""
    return make_shop(ev.connect(spark=spark))


def make_shop(db: ev.Database) -> ev.Database:
    """Two tables whose measures are always there, and one whose measures may be NULL."""
    db.create_table("sale", "item INT, x DOUBLE NOT NULL, y DOUBLE NOT NULL")
    db.create_table("item", "item INT, z DOUBLE NOT NULL")
    db.create_table("loose", "item INT, x DOUBLE, y DOUBLE, z DOUBLE")
    return db


@pytest.mark.parametrize(
    ("x", "y", "source"),
    [
        ("s.x", "s.y", "sale s JOIN item i USING (item)"),
        ("s.x", "i.z", "sale s JOIN item i USING (item)"),
        ("s.x", "s.y", "loose s JOIN item i USING (item) WHERE s.x IS NOT NULL AND s.y IS NOT NULL"),
    ],
    ids=["of one table", "of two tables", "NULLs filtered out"],
)
def test_all_aggregates_of_two_features_share_one_payload(shop: ev.Database, x: str, y: str, source: str) -> None:
    """The number of rows, two sums and three products, each once: a double-double each, and a mark for each feature."""
    view = shop.create_view("v", f"SELECT {ALL.format(x=x, y=y)} FROM {source}")
    assert "moments(" in view.explain("triggers")
    assert words(shop, "v") == 1 + 2 * (2 + 3) + 2


def test_aggregates_of_several_pairs_share_one_payload(shop: ev.Database) -> None:
    """A matrix of three features, also where some of its cells are asked for by nobody."""
    query = "SELECT {} FROM sale s JOIN item i USING (item)"
    shop.create_view("v", query.format("COVAR_SAMP(s.x, s.y) a, CORR(s.y, i.z) b, REGR_R2(s.x, i.z) c, AVG(i.z) d"))
    assert words(shop, "v") == 1 + 2 * (3 + 6) + 3
    shop.create_view("w", query.format("VAR_SAMP(s.x * s.y) a, AVG(s.x * s.y) b, COVAR_POP(s.x * s.y, i.z) c"))
    assert words(shop, "w") == 1 + 2 * (2 + 3) + 2


def test_pairs_with_nulls_count_their_own_rows(spark: SparkSession) -> None:
    """A row with a NULL is left out of the pairs it is in, and of no other: sums over other rows are other sums."""
    pairs = (("s.x", "s.y"), ("s.y", "s.z"), ("s.x", "i.z"), ("s.z * 2", "i.z"))
    texts = [re.sub(r" AS (\w)", rf" AS \g<1>{i}", ALL.format(x=x, y=y)) for i, (x, y) in enumerate(pairs)]
    source = "FROM loose s JOIN item i USING (item)"
    queries = [f"SELECT {text} {source}" for text in (*texts, ", ".join(texts))]
    queries.append(f"SELECT item, {texts[0]} {source} GROUP BY item")
    queries.append(f"SELECT CORR(s.x, s.y) FILTER (WHERE s.z > 0) a, VAR_SAMP(s.x) b {source}")
    ours, theirs = (ev.connect(backend=backend, spark=spark) for backend in ("embedded", "reference"))
    for db in (ours, theirs):
        make_shop(db)
        for number, query in enumerate(queries):
            db.create_view(f"v{number}", query)
        db.table("item").insert([(k % 3, float(k)) for k in range(5)])
    assert words(ours, "v0") == 4 + 2 * (4 + 10) + 4  # x, y, x where there is y, y where there is x
    random, held = Random(3), list[tuple[object, ...]]()
    values = [None, None, 0.0, 1.5, -2.25, 1e3, 1e-3, 7.0]
    for _ in range(8):
        new = [(random.randrange(4), *(random.choice(values) for _ in range(3))) for _ in range(random.randrange(9))]
        gone = random.sample(held, len(held) // 2)
        for row in gone:
            held.remove(row)
        held += new
        for db in (ours, theirs):
            with db.transaction() as changes:
                changes.insert("loose", new)
                changes.delete("loose", gone)
        for number in range(len(queries)):
            found, wanted = (sorted(db.view(f"v{number}").rows(), key=repr) for db in (ours, theirs))
            assert found == [tuple(v if v is None else pytest.approx(v, abs=1e-9) for v in row) for row in wanted]
    assert len(held) > 3


def test_large_numbers_that_have_gone_leave_no_trace_in_a_shared_payload(shop: ev.Database) -> None:
    """What is left of equal values is no variance, and no correlation, however large the values were that have gone."""
    view = shop.create_view("v", "SELECT CORR(x, y) a, VAR_POP(x) b, VAR_POP(y) c FROM sale s JOIN item USING (item)")
    shop.table("item").insert([(0, 1.0)])
    shop.table("sale").insert([(0, 0.1, 1.0), (0, 0.1, 2.0)])
    large = [(0, 1e17 / 3 * k, 1e16 / 7 * k * k) for k in range(1, 40)]
    shop.table("sale").insert(large)
    shop.table("sale").delete(large)
    assert view.rows() == [(None, 0.0, pytest.approx(0.25, rel=1e-12))]
    shop.table("sale").insert([(0, float("nan"), 1.0)])
    shop.verify("v")
    shop.table("sale").delete([(0, float("nan"), 1.0)])
    shop.verify("v")


def test_moments_are_read_from_a_factorized_result(shop: ev.Database) -> None:
    """Where numbers are multiplied when a row is read, they are kept one by one."""
    query = f"SELECT item, {ALL.format(x='s.x', y='s.y')} FROM sale s JOIN item i USING (item) GROUP BY item"
    shop.create_view("v", query, representation="factorized")
    shop.create_view("w", "SELECT item, SUM(x), SUM(y), SUM(x * x), SUM(x * y), SUM(y * y) FROM sale GROUP BY item")
    rows = [(k % 3, k / 4, k * k / 2) for k in range(12)]
    shop.apply({"sale": rows, "item": [(k % 3, float(k * k + 1)) for k in range(9)]})
    shop.verify()


def test_tables_without_rows_count_what_is_not_finite(spark: SparkSession) -> None:
    """Nothing could stand in for moments there, so sums of single tables are kept one by one, each with its NaNs."""
    db = ev.connect(spark=spark)
    db.create_table("sale", "item INT, x DOUBLE NOT NULL, y DOUBLE NOT NULL", retain=False)
    db.create_table("item", "item INT, z DOUBLE NOT NULL", retain=False)
    source = "FROM sale s JOIN item i USING (item)"
    view = db.create_view("v", f"SELECT VAR_POP(s.x) a, CORR(s.x, s.y) b, VAR_POP(i.z) c {source}")
    db.apply({"sale": [(0, 1.0, 2.0), (0, 3.0, 4.0)], "item": [(0, 1.0), (0, 5.0)]})
    assert view.rows() == [(1.0, pytest.approx(1.0), 4.0)]
    db.table("sale").insert([(0, float("nan"), 1.0)])
    ((a, b, c),) = view.rows()
    assert (isnan(a), isnan(b), c) == (True, True, 4.0)
    db.apply({"sale": [{"item": 0, "x": float("nan"), "y": 1.0, "_weight": -1}]})
    assert view.rows() == [(1.0, pytest.approx(1.0), 4.0)]
