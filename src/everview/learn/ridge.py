"""The ridge path: one linear model for each of several penalties, from the same sums at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from everview.learn.estimator import Estimator, MomentSource, moments_of_source
from everview.learn.linear_regression import LinearRegression
from everview.learn.moments import FloatArray, Moments


class Ridge(Estimator):
    """Linear models for several ``l2``; the other parameters are those of ``LinearRegression``.

    Attributes:
        models_: A ``LinearRegression`` for each l2, in the order given, all of the same version of the data.
        coef_: Their coefficients, a row each.
        intercept_: Their intercepts.
        scores_: R² of each.
    """

    def __init__(
        self,
        cov: MomentSource,
        label: str,
        *,
        l2: Sequence[float] = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0),
        features: Sequence[str] | None = None,
        group: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        standardize: bool = False,
    ) -> None:
        self.cov = cov
        self.label = label
        self.l2 = l2
        self.features = features
        self.group = group
        self.fit_intercept = fit_intercept
        self.standardize = standardize

    def fit(self, cov: MomentSource | None = None) -> Self:
        """Learns all models from the current sums, which are read once."""
        if cov is not None:
            self.cov = cov
        given = _Given(moments_of_source(self.cov, self.group))
        chosen = {n: getattr(self, n) for n in ("features", "fit_intercept", "standardize")}
        self.models_ = tuple(
            LinearRegression(given, self.label, l2=l2, solver="direct", **chosen).fit() for l2 in self.l2
        )
        self.coef_: FloatArray = np.array([m.coef_ for m in self.models_])
        self.intercept_: FloatArray = np.array([m.intercept_ for m in self.models_])
        self.scores_: FloatArray = np.array([m.score() for m in self.models_])
        return self

    def refresh(self) -> Self:
        """The same as ``fit``: the models are solved for directly."""
        return self.fit()

    @property
    def feature_names_out_(self) -> tuple[str, ...]:
        """The columns that the coefficients belong to."""
        self._check_fitted("models_")
        return self.models_[0].feature_names_out_


class _Given:
    """Moments that were read already."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments

    def moments(self, **_group: Any) -> Moments:
        return self._moments
