"""``db.create_covariance`` on every backend: the matrix of the joined rows, by group and category, whatever comes and goes."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import everview as ev
from everview.backends.base import KeepsNumbers
from everview.learn import LinearRegression
from everview.session.covariance import Covariance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOIN = "SELECT * FROM house JOIN town USING (place)"
HOUSES = [
    (1, 100.5, 3, "brick"),
    (1, 80.0, 2, "wood"),
    (2, 55.25, 1, None),
    (2, None, 4, "wood"),
    (3, 70.0, 2, "brick"),
]
TOWNS = [(1, 2.5, "north"), (2, -1.0, "south"), (2, 0.5, "north")]


@pytest.fixture
def houses(db: ev.Database) -> ev.Database:
    """Two tables, with some rows."""
    db.create_table("house", "place INT, price DOUBLE, rooms INT, walls STRING")
    db.create_table("town", "place INT, growth DOUBLE, side STRING")
    db.apply({"house": HOUSES, "town": TOWNS})
    return db


def joined(houses: list[Any], towns: list[Any], side: str | None = None) -> list[tuple[Any, ...]]:
    """(price, rooms, growth, walls, side) of the joined rows that count."""
    rows = [(p, float(r), g, w, s) for a, p, r, w in houses for b, g, s in towns if a == b and p is not None]
    return [row for row in rows if side is None or row[4] == side]


def check(covariance: Covariance, rows: list[tuple[Any, ...]], **group: Any) -> None:
    """All sums against those of the rows."""
    moments = covariance.moments(**group)
    matrix = np.array([[1.0, *row[:3]] for row in rows]).reshape(len(rows), 4)
    np.testing.assert_allclose(covariance.to_numpy(**group), matrix.T @ matrix, rtol=1e-9)
    assert moments.count == len(rows)
    walls = moments.categories["walls"]
    for value, count, sums in zip(walls.values, walls.counts, walls.sums, strict=True):
        own = [row for row in rows if row[3] == value]
        assert len(own) == count
        np.testing.assert_allclose(sums, np.array(own, dtype=object)[:, :3].astype(float).sum(axis=0), rtol=1e-9)
    assert set(walls.values) == {row[3] for row in rows}
    if ("walls", "side") in moments.pairs:
        pairs, sides = moments.pairs["walls", "side"], moments.categories["side"].values
        found = {(walls.values[a], sides[b]): n for a, b, n in zip(pairs.left, pairs.right, pairs.counts, strict=True)}
        assert found == {p: sum(row[3:] == p for row in rows) for p in {row[3:] for row in rows}}


def test_a_covariance_follows_its_tables(houses: ev.Database) -> None:
    """Inserts, deletes, a category that disappears, and a join that becomes empty."""
    roles: dict[str, Any] = {"continuous": ["price", "rooms", "growth"], "categorical": ["walls", "side"]}
    covariance = houses.create_covariance("cov", JOIN, **roles)
    check(covariance, joined(HOUSES, TOWNS))
    np.testing.assert_array_equal(covariance.to_spark_matrix().toArray(), covariance.to_numpy())
    more = [(3, 1.0, "east")]
    houses.table("town").insert(more)
    check(covariance, joined(HOUSES, TOWNS + more))
    houses.table("house").delete([HOUSES[2]])
    left = [h for h in HOUSES if h is not HOUSES[2]]
    check(covariance, joined(left, TOWNS + more))
    houses.table("town").delete(TOWNS + more)
    check(covariance, [])
    assert np.isnan(covariance.covariance()).all()


def test_groups_have_a_matrix_each(houses: ev.Database) -> None:
    """One of them for each value of the column; one that has no rows is 0."""
    covariance = houses.create_covariance(
        "cov", JOIN, continuous=["price", "rooms", "growth"], categorical=["walls"], group_by=["side"]
    )
    assert sorted(g["side"] for g in covariance.groups()) == ["north", "south"]
    for side in ("north", "south", "west"):
        check(covariance, joined(HOUSES, TOWNS, side), side=side)
    with pytest.raises(ev.InvalidQuery, match="grouped by side"):
        covariance.moments()


def test_a_covariance_is_a_view(houses: ev.Database) -> None:
    """It is listed, found by name, explained, verified and dropped, and its parts come and go with it."""
    covariance = houses.create_covariance("cov", JOIN, continuous=["price", "growth"], categorical=["walls", "side"])
    assert list(houses.views) == ["cov"]
    assert isinstance(houses.view("COV"), Covariance)
    assert covariance.columns[:3] == ("count", "sum_price", "sum_growth")
    assert "cov__c0_c1" in covariance.explain()
    assert covariance.stats()["rows"] == 1
    assert "cov__c1" in str(houses.verify())
    with pytest.raises(ev.DependencyError, match="part of the covariance 'cov'"):
        houses.drop("cov__c0")
    houses.drop("cov")
    assert not houses.views
    houses.create_covariance("cov", JOIN, continuous=["price"])


def test_wrong_features_are_refused_by_name(houses: ev.Database) -> None:
    """And nothing is left of what was made before."""
    with pytest.raises(ev.InvalidQuery, match="'walls' is string"):
        houses.create_covariance("cov", JOIN, continuous=["walls"])
    with pytest.raises(ev.UnknownName, match="column 'pric'"):
        houses.create_covariance("cov", JOIN, continuous=["pric"])
    with pytest.raises(ev.InvalidQuery, match="stands twice"):
        houses.create_covariance("cov", JOIN, continuous=["price", "price"])
    with pytest.raises(ev.InvalidQuery, match="no features"):
        houses.create_covariance("cov", JOIN)
    assert not houses.views


@pytest.mark.parametrize("strategy", ["auto", "factorized"])
def test_features_that_are_integers_or_decimals_are_maintained(db: ev.Database, strategy: str) -> None:
    """Also on Spark: what is exact needs no limbs, and its sums are payloads of trees and groups as they are."""
    db.create_table("sale", "item INT, price DECIMAL(9, 2), rooms SMALLINT, walls STRING")
    db.create_table("item", "item INT, maker INT")
    db.create_table("maker", "maker INT, growth INT, big BOOLEAN")
    join = "SELECT * FROM sale JOIN item USING (item) JOIN maker USING (maker)"
    names = ["price", "rooms", "growth", "big"]
    covariance = db.create_covariance("cov", join, continuous=names, categorical=["walls"], strategy=strategy)
    if db._core.backend.name == "spark":
        assert "computed anew" not in covariance.explain()
        assert ("of a tree" in covariance.explain()) == (strategy == "factorized")
    items, makers = [(k, k % 3) for k in range(6)], [(0, 3, True), (1, -7, False), (2, None, True), (1, 5, None)]
    sales = [(k % 7, Decimal(k * k) / 100, k % 5, "ab"[k % 2]) for k in range(40)] + [
        (1, None, 2, "a"),
        (1, 5, 2, None),
    ]

    def check_all(sales: list[Any]) -> None:
        rows = [
            (float(p), float(r), float(g), float(b), w)
            for i, p, r, w in sales
            for j, m in items
            for n, g, b in makers
            if i == j and m == n and None not in (p, g, b)
        ]
        matrix = np.array([[1.0, *row[:4]] for row in rows]).reshape(len(rows), 5)
        np.testing.assert_allclose(covariance.to_numpy(), matrix.T @ matrix, rtol=1e-12)
        walls = covariance.moments().categories["walls"]
        for value, sums in zip(walls.values, walls.sums, strict=True):
            np.testing.assert_allclose(sums, matrix[[row[4] == value for row in rows], 1:].sum(axis=0), rtol=1e-12)
        assert set(walls.values) == {row[4] for row in rows}

    check_all([])
    db.apply({"sale": sales, "item": items, "maker": makers})
    check_all(sales)
    db.table("sale").delete(sales[:35])
    check_all(sales[35:])
    db.table("sale").delete(sales[35:])
    check_all([])


def test_the_sums_are_read_as_they_are_kept(spark: SparkSession) -> None:
    """The engine hands out the numbers of the view's row, NULLs aside; where rows stand in for the tree, it has none."""
    with ev.connect(spark=spark) as db:
        db.create_table("house", "place INT, price DOUBLE, rooms INT, walls STRING")
        db.create_table("town", "place INT, growth DOUBLE, side STRING")
        covariance = db.create_covariance("cov", JOIN, continuous=["price", "rooms", "growth"])
        backend = db._core.backend
        assert isinstance(backend, KeepsNumbers)

        def row() -> list[float]:
            return [0.0 if v is None else float(v) for v in covariance.rows()[0]]

        assert covariance.to_numpy().tolist() == np.zeros((4, 4)).tolist()
        db.apply({"house": HOUSES, "town": TOWNS})
        kept = backend.numbers("cov", {})
        assert kept is not None
        assert kept.sum(axis=2).tolist() == [row()]
        db.table("house").insert([(1, float("inf"), 1, "wood")])
        assert backend.numbers("cov", {}) is None
        assert covariance.moments().sums[0] == float("inf")
        db.table("house").delete([HOUSES[0], (1, float("inf"), 1, "wood")])
        assert covariance.moments().count == row()[0]
        np.testing.assert_array_equal(covariance.moments().sums, row()[1:4])
        db.create_view("plain", "SELECT COUNT(*) AS n, MAX(price) AS m FROM house")
        assert backend.numbers("plain", {}) is None


def test_every_kind_of_number_is_a_moment(spark: SparkSession) -> None:
    """Booleans, too: nothing about them can fail, and so nothing is kept beside the sums."""
    with ev.connect(spark=spark) as db:
        db.create_table("house", "place INT, price DOUBLE, rooms INT, garden BOOLEAN, fee DECIMAL(9, 2)")
        db.create_table("town", "place INT, growth FLOAT")
        covariance = db.create_covariance("cov", JOIN, continuous=["price", "rooms", "garden", "fee", "growth"])
        assert "view house[place]: #, moments(" in covariance.explain("triggers")
        db.apply({"house": [(1, 2.5, 3, True, Decimal("1.25")), (1, 1.0, 2, False, Decimal(4))], "town": [(1, 0.5)]})
        rows = np.array([[1, 2.5, 3, 1, 1.25, 0.5], [1, 1.0, 2, 0, 4, 0.5]])
        np.testing.assert_array_equal(covariance.to_numpy(), rows.T @ rows)


def test_large_means_keep_their_digits(spark: SparkSession) -> None:
    """A time in microseconds beside small numbers: NumPy, which takes the mean off all joined rows first, agrees to 1e-9."""
    rng = np.random.default_rng(3)
    at = 1.7e15 + rng.integers(0, 10**9, 300)
    price = 1e6 + at / 1e8 + rng.normal(size=300)
    walls = rng.choice(["brick", "wood"], 300)
    with ev.connect(spark=spark) as db:
        db.create_table("house", "place INT, at DOUBLE, price DOUBLE, walls STRING", retain=False)
        db.create_table("town", "place INT, growth DOUBLE", retain=False)
        covariance = db.create_covariance("cov", JOIN, continuous=["at", "price", "growth"], categorical=["walls"])
        houses = [(1, *row) for row in zip(at.tolist(), price.tolist(), walls.tolist(), strict=True)]
        db.apply({"house": houses, "town": [(1, 5.0), (1, 7.0)]})
        x = np.repeat(np.column_stack([at, price]), 2, axis=0)
        growth = np.tile([5.0, 7.0], 300)
        joined = np.column_stack([x, growth])
        cov = np.cov(joined.T)
        scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
        np.testing.assert_allclose(covariance.covariance() / scale, cov / scale, rtol=1e-9, atol=1e-9)
        model = LinearRegression(covariance, "price", features=["at", "growth"], l2=0.0).fit()
        centred = joined - joined.mean(axis=0)
        wanted = np.linalg.lstsq(centred[:, [0, 2]], centred[:, 1], rcond=None)[0]
        np.testing.assert_allclose(model.coef_[0], wanted[0], rtol=1e-9)
        rest = centred[:, 1] - centred[:, [0, 2]] @ wanted
        np.testing.assert_allclose(model.score(), 1 - rest @ rest / (centred[:, 1] @ centred[:, 1]), rtol=1e-9)


def test_large_means_keep_their_digits_in_groups(spark: SparkSession) -> None:
    """Each group's matrix is that of its rows, by keys of several words and NULLs; a group that is not there has zeros."""
    rng = np.random.default_rng(4)
    with ev.connect(spark=spark) as db:
        db.create_table("house", "place INT, at DOUBLE, price DOUBLE, walls STRING")
        covariance = db.create_covariance(
            "cov", "SELECT * FROM house", continuous=["at", "price"], group_by=["walls", "place"]
        )
        rows = {}
        for wall, place in (("brick", 1), ("brick", 2), (None, 2), ("wood", None)):
            at = 1.7e15 + rng.integers(0, 10**9, 50)
            rows[wall, place] = np.column_stack([at, at / 1e8 + rng.normal(size=50)])
            db.apply({"house": [(place, *x, wall) for x in rows[wall, place].tolist()]})
        for (wall, place), own in rows.items():
            wanted = np.cov(own.T)
            scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
            ours = covariance.covariance(walls=wall, place=place)
            np.testing.assert_allclose(ours / scale, wanted / scale, rtol=1e-9)
            whole = np.column_stack([np.ones(50), own])
            np.testing.assert_allclose(covariance.to_numpy(PLACE=place, walls=wall), whole.T @ whole, rtol=1e-12)
        assert not covariance.to_numpy(walls="never", place=1).any()
