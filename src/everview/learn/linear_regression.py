"""Linear regression over a join, learned from its maintained covariance: no refit reads a row.

    minimize  Σ (y - b - xᵀw)² + l2 · ‖w‖²          (scikit-learn's Ridge, with alpha = l2)

The sums that this needs are a part of the covariance, so that any label and any features can be chosen at any time. What a fit
costs depends on the number of columns (continuous features and categories), never on the rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from everview.errors import UnsupportedOperation
from everview.learn.design import Design, DesignColumn, check_features, design_of
from everview.learn.estimator import (
    CollinearityWarning,
    ConvergenceWarning,
    Estimator,
    LearningWarning,
    MomentSource,
    moments_of_source,
)
from everview.learn.least_squares import Descent, Singular, descend, find_singular, solve, still_singular
from everview.learn.moments import FloatArray, Moments
from everview.learn.prediction import is_spark_frame, predict_rows, predict_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.session.subscriptions import Subscription

SOLVERS = ("auto", "gd", "direct")
DIRECT_COLUMNS = 256
"""Up to so many columns a direct solve takes milliseconds, and ``auto`` solves directly."""


class Followable(Protocol):
    """What tells of its changes: a view, or a covariance."""

    def subscribe(self, callback: Any) -> Subscription:
        """Calls back after every commit that moves it."""


class LinearRegression(Estimator):
    """A linear model that is refreshed from a covariance.

    Args:
        cov: The covariance to learn from.
        label: The continuous feature to predict.
        features: The features to predict it from; by default all others.
        group: Which group of the covariance the model is about, by column: ``{"region": "north"}``.
        l2: How much large coefficients cost; 0 is ordinary least squares.
        fit_intercept: Whether b is learned; otherwise it is 0.
        standardize: Whether l2, and the norm that is least where there are many answers, are about the coefficients of
            features divided by their standard deviation, instead of those of the features as they are.
        solver: ``gd`` is batch gradient descent, from the last parameters in ``refresh``; ``direct`` solves the equations;
            ``auto`` is direct up to 256 columns, else direct to begin with and gradient descent to refresh.
        tol: Gradient descent ends where the gradient is this part of what it is at zero.
        max_iter: The most steps of gradient descent; a ``ConvergenceWarning`` says that they were not enough.

    Attributes:
        coef_: A coefficient for each column, in the order of ``feature_names_out_``.
        intercept_: b.
        feature_names_out_: The columns: ``rooms`` of a continuous feature, ``city=Oslo`` of a category.
        n_iter_: Steps of gradient descent in the last fit; 0 for a direct solve.
        converged_: Whether the gradient became small enough.
        gradient_norm_: How small it is, as a part of the gradient at zero.
        solver_: ``gd`` or ``direct``, whichever was used.
        n_samples_: The rows of the join.
    """

    def __init__(
        self,
        cov: MomentSource,
        label: str,
        *,
        features: Sequence[str] | None = None,
        group: dict[str, Any] | None = None,
        l2: float = 1e-3,
        fit_intercept: bool = True,
        standardize: bool = False,
        solver: str = "auto",
        tol: float = 1e-10,
        max_iter: int = 10_000,
    ) -> None:
        self.cov = cov
        self.label = label
        self.features = features
        self.group = group
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, cov: MomentSource | None = None) -> Self:
        """Learns from nothing: gradient descent starts at zero."""
        if cov is not None:
            self.cov = cov
        return self._learn({})

    def refresh(self) -> Self:
        """Learns from the current sums, starting from the last parameters; the first time, like ``fit``."""
        return self._learn(self.coefficients_ if "coef_" in self.__dict__ else {})

    def follow(self, view: Followable | None = None) -> Subscription:
        """Refreshes after every commit that moves the view, by default the covariance; until the result is cancelled."""
        followed: Any = self.cov if view is None else view
        self.refresh()
        subscription: Subscription = followed.subscribe(lambda _change: self.refresh())
        return subscription

    def _learn(self, last: dict[str, float]) -> Self:
        self._check_parameters()
        moments = moments_of_source(self.cov, self.group)
        used = check_features(moments, self.label, self.features)
        design = design_of(moments, self.label, used)
        problem = design.centered() if self.fit_intercept else design
        metric = _metric(problem) if self.standardize else np.ones(len(design.columns))
        gram, cross = problem.gram / np.outer(metric, metric), problem.cross / metric
        singular = self._find_singular(design.columns, gram, problem.squares / metric**2, is_cold=not last)
        _warn_of(design, singular, moments)
        start = np.array([last.get(c.name, 0.0) for c in design.columns]) * metric
        found = self._solve(gram, cross, singular, start, is_cold=not last)
        self.coef_: FloatArray = found.weights / metric
        self._design, self._singular = design, singular
        self._columns: tuple[DesignColumn, ...] = design.columns
        self._used = used
        has_mean = self.fit_intercept and design.count > 0
        self.intercept_ = float(design.label_sum - design.sums @ self.coef_) / design.count if has_mean else 0.0
        self.n_iter_, self.gradient_norm_, self.converged_ = found.steps, found.gradient, found.converged
        self.n_samples_ = design.count
        if not found.converged:
            warnings.warn(
                f"gradient descent did not converge in {found.steps} steps: the gradient is {found.gradient:.1e} of what it is "
                f"at zero, and tol is {self.tol:.1e}. Hint: raise max_iter or l2, or use solver='direct'.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _find_singular(
        self, columns: tuple[DesignColumn, ...], gram: FloatArray, squares: FloatArray, *, is_cold: bool
    ) -> Singular:
        """Looks for constant and collinear features; where few steps of descent are wanted, first whether it is as before."""
        if not is_cold and self.solver_ == "gd" and columns == self._columns:
            same = still_singular(gram, squares, self._singular)
            if same is not None:
                return same
        return find_singular(gram, squares)

    def _check_parameters(self) -> None:
        if self.solver not in SOLVERS:
            raise UnsupportedOperation(f"there is no solver '{self.solver}'.", hint=f"it is one of {SOLVERS}.")
        if not self.l2 >= 0:
            raise UnsupportedOperation(f"l2 is {self.l2}.", hint="it is a number from 0.")

    def _solve(
        self, gram: FloatArray, cross: FloatArray, singular: Singular, start: FloatArray, *, is_cold: bool
    ) -> Descent:
        is_direct = self.solver == "direct" or (self.solver == "auto" and (is_cold or len(cross) <= DIRECT_COLUMNS))
        self.solver_ = "direct" if is_direct else "gd"
        if not is_direct:
            return descend(gram, cross, self.l2, singular, start, tolerance=self.tol, most_steps=self.max_iter)
        weights = solve(gram, cross, self.l2, singular)
        gradient = np.linalg.norm(gram @ weights + self.l2 * weights - cross) / (np.linalg.norm(cross) or 1.0)
        return Descent(weights, 0, float(gradient), True)

    @property
    def feature_names_out_(self) -> tuple[str, ...]:
        """The columns that the coefficients belong to."""
        self._check_fitted("coef_")
        return tuple(c.name for c in self._columns)

    @property
    def coefficients_(self) -> dict[str, float]:
        """The coefficients by name."""
        return dict(zip(self.feature_names_out_, self.coef_.tolist(), strict=True))

    def predict(self, data: Any) -> FloatArray | DataFrame:
        """The label of rows: an array, and for a Spark DataFrame the DataFrame with a column ``prediction``.

        A category that was not in the join when the model was refreshed adds nothing; see ``learn.prediction``.
        """
        self._check_fitted("coef_")
        if is_spark_frame(data):
            return predict_spark(self._columns, self.coef_, self.intercept_, self._used, data)
        return predict_rows(self._columns, self.coef_, self.intercept_, self._used, data)

    def score(self) -> float:
        """R² over the rows of the join at the last refresh, from its sums; NaN where there was no row."""
        self._check_fitted("coef_")
        return determination(self._design, self.coef_, self.intercept_)

    def __str__(self) -> str:
        if "coef_" not in self.__dict__:
            return repr(self)
        terms = [f"{value:+.6g} · {name}" for name, value in self.coefficients_.items()]
        return "\n  ".join([f"{self.label} ≈ {self.intercept_:.6g}", *terms])


def determination(design: Design, weights: FloatArray, intercept: float) -> float:
    """R² = 1 - Σ(y - ŷ)² / Σ(y - mean y)²; 1 where both are 0, and 0 where only the second is (as scikit-learn says)."""
    if not design.count:
        return float("nan")
    centered = design.centered()
    total = centered.label_square
    bias = (design.label_sum - design.sums @ weights) / design.count - intercept
    rest = total - 2 * centered.cross @ weights + weights @ centered.gram @ weights + design.count * bias**2
    noise = 64 * float(np.finfo(np.float64).eps) * centered.label_scale
    if total <= noise:
        return 1.0 if rest <= 2 * noise else 0.0
    return float(1 - rest / total)


def _metric(problem: Design) -> FloatArray:
    """The standard deviation of each column; 1 where it is 0."""
    deviations = np.sqrt(np.maximum(np.diag(problem.gram), 0) / max(problem.count, 1))
    return np.where(deviations > 0, deviations, 1.0)


def _warn_of(design: Design, singular: Singular, moments: Moments) -> None:
    """Warns of what makes the answer one of many, but for the indicators of a feature, which always sum up to 1."""
    if not design.count:
        warnings.warn("the join has no rows: all coefficients are 0.", LearningWarning, stacklevel=4)
        return
    constant = [
        c.name for c, is_it in zip(design.columns, singular.constant, strict=True) if is_it and not c.is_indicator
    ]
    if constant:
        warnings.warn(
            f"constant in all rows: {', '.join(constant)}; the coefficient is 0. Hint: leave out of features=[…].",
            CollinearityWarning,
            stacklevel=4,
        )
    expected = np.zeros((len(design.columns), len(moments.categorical)))
    for i, column in enumerate(design.columns):
        if column.is_indicator and not singular.constant[i]:
            expected[i, moments.categorical.index(column.feature)] = 1.0
    expected = expected[:, expected.any(axis=0)]
    if singular.null.shape[1] <= expected.shape[1]:
        return
    rest = singular.null
    if expected.shape[1]:
        basis = np.linalg.qr(expected)[0]
        rest = rest - basis @ (basis.T @ rest)
    involved = dict.fromkeys(
        c.feature for c, row in zip(design.columns, np.abs(rest).max(axis=1), strict=True) if row > 1e-6
    )
    warnings.warn(
        f"combinations of each other in all rows: {', '.join(involved)}; of the many best answers, that of least norm is "
        f"given. Hint: leave one out of features=[…].",
        CollinearityWarning,
        stacklevel=4,
    )
