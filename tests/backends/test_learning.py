"""Models over maintained covariances, against scikit-learn on the joined table after every batch of inserts and deletes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from sklearn.metrics import mutual_info_score

import everview as ev
from everview.learn import ChowLiuTree, GroupedRegression, LearningWarning, LinearRegression, MutualInformation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOIN = "SELECT * FROM house JOIN area USING (postcode)"
FEATURES = ("size", "schools", "kind", "heat")
Rows = list[tuple[Any, ...]]


def open_database(spark: SparkSession) -> ev.Database:
    """Two empty tables."""
    db = ev.connect(spark=spark)
    db.create_table("house", "postcode INT, size DOUBLE, price DOUBLE, heat STRING")
    db.create_table("area", "postcode INT, schools INT, kind STRING, region STRING")
    return db


def some_houses(random: np.random.Generator, count: int) -> Rows:
    """Houses, some of them with NULLs."""
    made: Rows = []
    for _ in range(count):
        size = float(random.uniform(20, 200))
        price = None if random.random() < 0.1 else 3 * size + float(random.normal(0, 5))
        heat = str(random.choice(["gas", "wood"])) if random.random() < 0.9 else None
        made.append((int(random.integers(0, 6)), size if random.random() < 0.9 else None, price, heat))
    return made


AREAS: Rows = [
    (0, 1, "centre", "north"), (1, 4, "suburb", "north"), (2, 2, "centre", "south"), (2, 3, "suburb", "south"),
    (3, 5, "village", "south"),
]  # fmt: skip


def joined(houses: Rows, areas: Rows) -> pd.DataFrame:
    """The join without rows that lack a number: what a covariance is about."""
    left = pd.DataFrame(houses, columns=["postcode", "size", "price", "heat"]).astype({"heat": object})
    right = pd.DataFrame(areas, columns=["postcode", "schools", "kind", "region"])
    return left.merge(right, on="postcode").dropna(subset=["size", "price", "schools"])


def one_hot(frame: pd.DataFrame) -> np.ndarray:
    """X in the order of FEATURES, NULL as the last category."""
    parts = [frame[["size", "schools"]].to_numpy(dtype=float)]
    for name in ("kind", "heat"):
        values = [None if pd.isna(v) else v for v in frame[name]]
        found = sorted(set(values), key=lambda v: (v is None, v or ""))
        parts.append(np.array([[float(v == c) for c in found] for v in values]))
    return np.concatenate(parts, axis=1)


def test_models_after_every_batch(spark: SparkSession) -> None:
    """Coefficients, R², mutual information and tree edges are those of the joined table, as rows and categories come and go."""
    random = np.random.default_rng(5)
    with open_database(spark) as db:
        cov = db.create_covariance(
            "cov", JOIN, continuous=["price", "size", "schools"], categorical=["kind", "heat", "region"]
        )
        auto = LinearRegression(cov, "price", features=FEATURES, l2=0.1)
        descended = LinearRegression(cov, "price", features=FEATURES, l2=0.1, solver="gd", tol=1e-13)
        with pytest.warns(LearningWarning, match="no rows"):
            auto.refresh()
        mi = MutualInformation(cov)
        tree = ChowLiuTree(mi)
        areas, houses = list(AREAS), some_houses(random, 120)
        db.apply({"area": areas, "house": houses})
        for step in range(4):
            frame = joined(houses, areas)
            x, y = one_hot(frame), frame["price"].to_numpy()
            reference = linear_model.Ridge(alpha=0.1, solver="svd").fit(x, y)
            for model in (auto, descended):
                model.refresh()
                np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(model.score(), reference.score(x, y), rtol=1e-9)
            np.testing.assert_allclose(auto.predict(frame), reference.predict(x), rtol=1e-9)
            tree.refresh()
            for a in mi.features:
                for b in mi.features:
                    expected = mutual_info_score(*(frame[n].fillna("none") for n in (a, b)))
                    assert mi.of(a, b) == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert len(tree.edges) == 2
            gone, houses = houses[:30], [*houses[30:], *some_houses(random, 25)]
            db.apply({"house": weighted(gone, houses[-25:])})
            if step == 1:  # the only village goes, and with it a category
                areas.remove(AREAS[-1])
                db.table("area").delete([AREAS[-1]])


def weighted(gone: Rows, new: Rows) -> list[dict[str, Any]]:
    """Deletes and inserts as one change."""
    names = ("postcode", "size", "price", "heat")
    return [{**dict(zip(names, r, strict=True)), "_weight": w} for rows, w in ((gone, -1), (new, 1)) for r in rows]


def test_all_rows_go(spark: SparkSession) -> None:
    """What was inserted and deleted leaves no trace: no category, no rows."""
    random = np.random.default_rng(6)
    with open_database(spark) as db:
        cov = db.create_covariance("cov", JOIN, continuous=["price", "size"], categorical=["kind", "heat"])
        db.table("area").insert(AREAS)
        houses = some_houses(random, 50)
        db.table("house").insert(houses)
        model = LinearRegression(cov, "price").refresh()
        db.table("house").delete(houses)
        with pytest.warns(LearningWarning, match="no rows"):
            model.refresh()
        assert model.coefficients_ == {"size": 0.0}
        assert not MutualInformation(cov).matrix.any()


def test_a_model_for_each_group(spark: SparkSession) -> None:
    """A covariance by region has a model for each, which come and go with their groups."""
    random = np.random.default_rng(7)
    with open_database(spark) as db:
        cov = db.create_covariance("cov", JOIN, continuous=["price", "size"], group_by=["region"])
        houses = some_houses(random, 80)
        db.apply({"area": AREAS, "house": houses})
        models = GroupedRegression(cov, "price", l2=0.0).refresh()
        assert sorted(models) == [("north",), ("south",)]
        frame = joined(houses, AREAS).query("region == 'north'")
        reference = linear_model.LinearRegression().fit(frame[["size"]].to_numpy(), frame["price"])
        np.testing.assert_allclose(models["north"].coef_, reference.coef_, rtol=1e-9)
        single = LinearRegression(cov, "price", group={"region": "south"}, l2=0.0).fit()
        np.testing.assert_allclose(single.coef_, models["south"].coef_)
        db.table("area").delete([r for r in AREAS if r[3] == "north"])
        assert list(models.refresh()) == [("south",)]
        with pytest.raises(ev.UnknownName, match="no group"):
            models["north"]


def test_a_model_follows(spark: SparkSession) -> None:
    """A model that follows is fresh after every commit, also after one that only moves a row between categories."""
    random = np.random.default_rng(8)
    with open_database(spark) as db:
        cov = db.create_covariance("cov", JOIN, continuous=["price", "size"], categorical=["heat"])
        db.apply({"area": AREAS, "house": some_houses(random, 60)})
        model = LinearRegression(cov, "price")
        subscription = model.follow()
        row = (0, 100.0, 300.0, "gas")
        db.table("house").insert([row])
        assert model.n_samples_ == cov.moments().count
        before = model.coefficients_
        db.apply({"house": weighted([row], [(*row[:3], "coal")])})
        assert "heat=coal" in model.coefficients_
        assert "heat=coal" not in before
        assert subscription.is_active
        subscription.cancel()
        db.table("house").insert([row])
        assert model.n_samples_ == cov.moments().count - 1
        assert not subscription.is_active


def test_bins(spark: SparkSession) -> None:
    """A continuous feature that is declared with bins is a category of equal widths, whose bins do not move."""
    random = np.random.default_rng(9)
    with open_database(spark) as db:
        houses = some_houses(random, 90)
        db.apply({"area": AREAS, "house": houses})
        cov = db.create_covariance(
            "cov", JOIN, continuous=["price", "schools"], categorical=["kind"], bins={"price": 8, "size": (50, 150, 4)}
        )
        db.table("house").insert([(0, 500.0, 1e6, "gas"), (0, -3.0, -1e6, "gas")])
        houses += [(0, 500.0, 1e6, "gas"), (0, -3.0, -1e6, "gas")]
        sizes = cov.moments().categories["size_bin"]
        assert set(sizes.values) <= {0, 1, 2, 3, None}
        frame = pd.DataFrame(houses, columns=["postcode", "size", "price", "heat"])
        area = pd.DataFrame(AREAS, columns=["postcode", "schools", "kind", "region"])
        frame = frame.merge(area, on="postcode").dropna(subset=["price"])
        edges = np.clip(np.floor((frame["size"] - 50) / 25), 0, 3)
        prices = np.clip(np.floor((frame["price"] - _low(houses)) / _width(houses)), 0, 7)
        expected = mutual_info_score(edges.fillna(-1), prices)
        assert MutualInformation(cov).of("size_bin", "price_bin") == pytest.approx(expected, rel=1e-9)
        db.create_table("empty", "x DOUBLE")
        with pytest.raises(ev.InvalidQuery, match="no values yet"):
            db.create_covariance("none", "SELECT * FROM empty", bins={"x": 3})
        with pytest.raises(ev.InvalidQuery, match="low below high"):
            db.create_covariance("none", JOIN, bins={"size": (5, 5, 3)})
        for text in (3, (0, 10, 3)):  # a view that cannot cast it would be suspended by the first row
            with pytest.raises(ev.InvalidQuery, match="'heat' is string, and only numbers are cut"):
                db.create_covariance("none", JOIN, bins={"heat": text})
        with pytest.raises(ev.UnknownName, match="'sice'"):
            db.create_covariance("none", JOIN, bins={"sice": 3})


def _joined_prices(houses: Rows) -> pd.Series:
    area = pd.DataFrame(AREAS, columns=["postcode", "schools", "kind", "region"])
    frame = pd.DataFrame(houses[:-2], columns=["postcode", "size", "price", "heat"])
    return frame.merge(area, on="postcode")["price"]


def _low(houses: Rows) -> float:
    return float(_joined_prices(houses).min())


def _width(houses: Rows) -> float:
    prices = _joined_prices(houses)
    return float(prices.max() - prices.min()) / 8


def test_predictions_of_spark(spark: SparkSession) -> None:
    """A Spark DataFrame gets a column with the same predictions; an unseen category adds nothing, a NULL number is NULL."""
    random = np.random.default_rng(10)
    with open_database(spark) as db:
        cov = db.create_covariance("cov", JOIN, continuous=["price", "size"], categorical=["heat"])
        db.apply({"area": AREAS, "house": some_houses(random, 60)})
        model = LinearRegression(cov, "price").fit()
        rows = [(10.0, "gas"), (20.0, None), (30.0, "solar"), (None, "wood")]
        frame = spark.createDataFrame(rows, "size DOUBLE, heat STRING")
        found: Any = model.predict(frame)
        given = {"size": [r[0] for r in rows], "heat": [r[1] for r in rows]}
        np.testing.assert_allclose(
            [np.nan if r.prediction is None else r.prediction for r in found.collect()], model.predict(given)
        )


def test_the_example_of_house_prices(spark: SparkSession, tmp_path: Path) -> None:
    """examples/house_prices.py follows the prices of its stream, and draws them."""
    code = (Path(__file__).parents[2] / "examples" / "house_prices.py").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "house_prices"}
    exec(compile(code, "house_prices.py", "exec"), names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = names["main"](batches=16, rows=60, plot=str(tmp_path / "prices.png"))
    assert seen[3] == pytest.approx(3_000, rel=0.05)
    assert seen[-1] == pytest.approx(4_500, rel=0.05)
    assert (tmp_path / "prices.png").stat().st_size > 0
