"""Linear regression from moments, against scikit-learn on the columns themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn import linear_model

import everview as ev
from everview.learn import CollinearityWarning, ConvergenceWarning, LearningWarning, LinearRegression, Ridge
from tests.unit.learn.columns import Columns


def houses(rows: int = 60, seed: int = 7) -> Columns:
    """Prices that depend on rooms, area and city."""
    random = np.random.default_rng(seed)
    rooms, area = random.integers(1, 9, rows), random.uniform(20, 200, rows)
    city = random.choice(["Oslo", "Rome", "Bonn"], rows)
    heat = random.choice(["gas", "wood"], rows)
    price = 20 * rooms + 3 * area + np.where(city == "Oslo", 90.0, 0.0) + random.normal(0, 5, rows) + 400
    return Columns(
        {"price": price.tolist(), "rooms": rooms.tolist(), "area": area.tolist()},
        {"city": city.tolist(), "heat": heat.tolist()},
    )


FEATURES = ("rooms", "area", "city", "heat")


@pytest.mark.parametrize("solver", ["auto", "direct", "gd"])
@pytest.mark.parametrize("l2", [1e-3, 2.0])
def test_ridge_is_scikit_learns(solver: str, l2: float) -> None:
    """Coefficients, intercept, predictions and R² are those of scikit-learn's Ridge on one-hot columns."""
    columns = houses()
    model = LinearRegression(columns, "price", features=FEATURES, l2=l2, solver=solver, tol=1e-13).refresh()
    x, y = columns.one_hot(FEATURES), np.array(columns.continuous["price"])
    reference = linear_model.Ridge(alpha=l2, solver="svd").fit(x, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-9)
    np.testing.assert_allclose(model.score(), reference.score(x, y), rtol=1e-9)
    frame = pd.DataFrame({**columns.continuous, **columns.categorical})
    np.testing.assert_allclose(model.predict(frame), reference.predict(x), rtol=1e-9)
    assert model.feature_names_out_ == (
        "rooms", "area", "city=Bonn", "city=Oslo", "city=Rome", "heat=gas", "heat=wood",
    )  # fmt: skip
    assert model.converged_


@pytest.mark.parametrize("solver", ["direct", "gd"])
def test_without_penalty_the_answer_is_that_of_least_norm(solver: str) -> None:
    """With l2=0 indicators that sum up to 1 leave many answers; the one given is that of scikit-learn's least squares."""
    columns = houses()
    model = LinearRegression(columns, "price", features=FEATURES, l2=0, solver=solver, tol=1e-13).fit()
    reference = linear_model.LinearRegression().fit(columns.one_hot(FEATURES), columns.continuous["price"])
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-9)


def test_without_intercept() -> None:
    """fit_intercept=False fits a plane through the origin."""
    columns = houses()
    model = LinearRegression(columns, "price", features=("rooms", "area"), l2=0, fit_intercept=False).fit()
    x = columns.one_hot(("rooms", "area"))
    reference = linear_model.LinearRegression(fit_intercept=False).fit(x, columns.continuous["price"])
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9)
    assert model.intercept_ == 0
    np.testing.assert_allclose(model.score(), reference.score(x, columns.continuous["price"]), rtol=1e-9)


def test_standardized_penalty() -> None:
    """standardize=True penalizes the coefficients of features in units of their standard deviation."""
    columns = houses()
    model = LinearRegression(columns, "price", features=("rooms", "area"), l2=5.0, standardize=True).fit()
    x = columns.one_hot(("rooms", "area"))
    reference = linear_model.Ridge(alpha=5.0).fit((x - x.mean(axis=0)) / x.std(axis=0), columns.continuous["price"])
    np.testing.assert_allclose(model.coef_, reference.coef_ / x.std(axis=0), rtol=1e-9)


def test_collinear_features_warn_and_get_the_least_norm() -> None:
    """A feature that is a multiple of another is named in a warning, and the answer is that of least norm."""
    columns = houses()
    columns.continuous["area2"] = [2 * a for a in columns.continuous["area"]]
    features = ("rooms", "area", "area2", "city")
    for l2 in (0.0, 1e-3):
        with pytest.warns(CollinearityWarning, match="area, area2;"):
            model = LinearRegression(columns, "price", features=features, l2=l2).fit()
        reference = linear_model.Ridge(alpha=l2, solver="svd") if l2 else linear_model.LinearRegression()
        reference.fit(columns.one_hot(features), columns.continuous["price"])
        np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-9)


def test_a_constant_feature_warns_and_gets_nothing() -> None:
    """A feature with one value in all rows has the coefficient 0, and a warning says so."""
    columns = houses()
    columns.continuous["year"] = [1e6 + 0.1] * 60
    for solver in ("direct", "gd"):
        with pytest.warns(CollinearityWarning, match="constant in all rows: year"):
            model = LinearRegression(columns, "price", features=("rooms", "year"), l2=0, solver=solver).fit()
        reference = linear_model.LinearRegression().fit(columns.one_hot(("rooms",)), columns.continuous["price"])
        np.testing.assert_allclose(model.coef_, [reference.coef_[0], 0], rtol=1e-9)


def test_no_rows() -> None:
    """An empty join gives zeros with a warning, and no R²."""
    empty = Columns({"price": [], "rooms": []}, {"city": []})
    with pytest.warns(LearningWarning, match="no rows"):
        model = LinearRegression(empty, "price").fit()
    assert model.coefficients_ == {"rooms": 0.0}
    assert (model.intercept_, model.n_samples_) == (0.0, 0)
    assert np.isnan(model.score())
    assert model.predict({"rooms": [1, 2], "city": ["a", "b"]}).tolist() == [0, 0]


def test_warm_start_takes_fewer_steps() -> None:
    """A refresh after a small change starts from the last parameters and needs fewer steps than a fit from nothing."""
    columns = houses(rows=500)
    model = LinearRegression(columns, "price", features=FEATURES, solver="gd", tol=1e-8).fit()
    columns.continuous["price"][0] += 0.1
    warm = model.refresh().n_iter_
    assert warm < model.fit().n_iter_


def test_too_few_steps_warn() -> None:
    """A descent that ends early says how far it came, and what to do."""
    model = LinearRegression(houses(), "price", solver="gd", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 steps"):
        model.fit()
    assert not model.converged_
    assert model.gradient_norm_ > model.tol


@given(st.data())
def test_after_every_change_the_model_is_scikit_learns(data: st.DataObject) -> None:
    """Rows come and go, categories with them; after each change a refresh equals scikit-learn on all rows."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    columns = houses(rows=40, seed=3)
    solver = data.draw(st.sampled_from(["auto", "gd"]))
    model = LinearRegression(columns, "price", features=FEATURES, l2=0.5, solver=solver, tol=1e-13)
    for _ in range(3):
        keep = np.flatnonzero(random.random(len(columns.continuous["price"])) < 0.9)
        more = houses(rows=5, seed=int(random.integers(1000)))
        if data.draw(st.booleans()):
            more.categorical["city"] = [data.draw(st.sampled_from(["Kyiv", "Oslo"]))] * 5
        for own, new in ((columns.continuous, more.continuous), (columns.categorical, more.categorical)):
            for name in own:
                own[name] = [own[name][i] for i in keep] + new[name]  # type: ignore[index,operator]
        model.refresh()
        reference = linear_model.Ridge(alpha=0.5, solver="svd")
        reference.fit(columns.one_hot(FEATURES), columns.continuous["price"])
        np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-9)


def test_predictions_for_what_was_not_seen() -> None:
    """An unseen category adds nothing, NULL in a number gives NaN, and Arrow, dicts and lists are taken too."""
    model = LinearRegression(houses(), "price", features=("rooms", "city")).fit()
    base, slope = model.intercept_, model.coefficients_["rooms"]
    rows = {"rooms": [2.0, 3.0, None], "city": ["Paris", None, "Oslo"]}
    expected = [base + 2 * slope, base + 3 * slope, np.nan]
    np.testing.assert_allclose(model.predict(pa.table(rows)), expected)
    np.testing.assert_allclose(model.predict(rows), expected)
    np.testing.assert_allclose(model.predict([{"rooms": 2, "city": "Paris"}]), expected[:1])
    with pytest.raises(ev.UnknownName, match="no column 'city'"):
        model.predict({"rooms": [1]})


def test_what_predictions_take_as_numbers() -> None:
    """Integers of more than 53 bits are rounded, as doubles are everywhere; text that is no number is refused by its column."""
    model = LinearRegression(Columns({"y": [1.0, 2.0, 3.0], "x": [0.0, 1.0, 2.0]}), "y", l2=0.0).fit()
    np.testing.assert_allclose(model.predict({"x": [2**53 + 1, 1]}), [2.0**53 + 1, 2.0])
    with pytest.raises(ev.UnsupportedOperation, match="column 'x' is string"):
        model.predict({"x": ["many"]})


def test_a_feature_that_is_also_a_category_is_a_number() -> None:
    """It is one column of a model that is not told its features."""
    columns = {"y": [1.0, 2.0, 4.0], "x": [0.0, 1.0, 2.0]}
    model = LinearRegression(Columns(columns, {"x": [0.0, 1.0, 2.0], "c": ["a", "a", "b"]}), "y").fit()
    assert model.feature_names_out_ == ("x", "c=a", "c=b")


def test_null_is_a_category() -> None:
    """Rows without a category get the coefficient of NULL, if there was one."""
    columns = houses()
    columns.categorical["heat"][:9] = [None] * 9
    model = LinearRegression(columns, "price", features=("heat",)).fit()
    assert "heat=None" in model.coefficients_
    assert model.predict({"heat": [None]})[0] == pytest.approx(model.intercept_ + model.coefficients_["heat=None"])


def test_parameters_and_clones() -> None:
    """scikit-learn's clone makes an unfitted model with equal parameters over the same covariance."""
    model = LinearRegression(houses(), "price", l2=2.0).fit()
    copy = sklearn.clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(ev.UnsupportedOperation, match="not learned anything"):
        copy.score()
    assert copy.set_params(l2=1.0).l2 == 1.0
    with pytest.raises(ev.UnknownName, match="did you mean 'solver'"):
        copy.set_params(solvr="gd")
    assert repr(model) == "LinearRegression(label='price', l2=2.0)"


def test_wrong_labels_and_features() -> None:
    """Unknown names, a categorical label and a label among the features are refused by name."""
    columns = houses()
    with pytest.raises(ev.UnknownName, match="did you mean 'rooms'"):
        LinearRegression(columns, "price", features=("room",)).fit()
    with pytest.raises(ev.UnsupportedOperation, match="'city' is categorical"):
        LinearRegression(columns, "city").fit()
    with pytest.raises(ev.UnsupportedOperation, match="among the features"):
        LinearRegression(columns, "price", features=("price",)).fit()
    with pytest.raises(ev.UnsupportedOperation, match="no solver 'newton'"):
        LinearRegression(columns, "price", solver="newton").fit()


def test_the_ridge_path() -> None:
    """Several penalties at once give the models that each alone would give."""
    columns = houses()
    path = Ridge(columns, "price", l2=[0.1, 10.0, 1000.0], features=("rooms", "city")).fit()
    for i, l2 in enumerate(path.l2):
        alone = LinearRegression(columns, "price", features=("rooms", "city"), l2=l2).fit()
        np.testing.assert_allclose(path.coef_[i], alone.coef_, rtol=1e-12)
    assert list(path.scores_) == sorted(path.scores_, reverse=True)
    assert path.feature_names_out_[0] == "rooms"
