"""How much features say about each other: mutual information of all pairs, from maintained counts.

    I(X, Y) = Σ p(x, y) · log( p(x, y) / (p(x) · p(y)) )     in nats, over the pairs of categories that occur

With counts c(x, y), c(x), c(y) and n this is Σ c(x, y) / n · log( n · c(x, y) / (c(x) · c(y)) ), in time linear in the pairs
that occur (section 8.2 of F-IVM). The diagonal is the entropy of a feature. Continuous features take part when they are
declared with bins: ``create_covariance(…, bins=…)``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from everview.errors import UnknownName, UnsupportedOperation, did_you_mean
from everview.learn.estimator import Estimator, MomentSource, moments_of_source
from everview.learn.moments import FloatArray, Moments
from everview.learn.plots import plot_matrix


class MutualInformation(Estimator):
    """The mutual information of all pairs of categorical features of a covariance.

    Unlike a regression it is computed at once, so that it can be read and a tree made of it; ``refresh`` computes it anew.

    Args:
        cov: The covariance.
        group: Which group of it, by column.

    Attributes:
        features: The names of the features.
        matrix: I(X, Y) in nats, features in the order of ``features``; the diagonal has their entropies.
        n_samples_: The rows of the join.
    """

    def __init__(self, cov: MomentSource, *, group: dict[str, Any] | None = None) -> None:
        self.cov = cov
        self.group = group
        self.refresh()

    def refresh(self) -> Self:
        """Computes the matrix from the current counts."""
        moments = moments_of_source(self.cov, self.group)
        if not moments.categorical:
            raise UnsupportedOperation(
                "mutual information is about categories, and the covariance has only continuous features.",
                hint="list features in categorical=[…] of create_covariance, or continuous ones in bins={…}.",
            )
        self.features: tuple[str, ...] = moments.categorical
        self.matrix: FloatArray = information_matrix(moments)
        self.n_samples_ = moments.count
        return self

    def of(self, a: str, b: str) -> float:
        """I(a, b)."""
        return float(self.matrix[self._at(a), self._at(b)])

    def rank(self, label: str) -> list[tuple[str, float]]:
        """The other features by what they say about the label, most first; equal ones in their order."""
        at = self._at(label)
        others = [i for i in range(len(self.features)) if i != at]
        ranked = sorted(others, key=lambda i: (-self.matrix[at, i], i))
        return [(self.features[i], float(self.matrix[at, i])) for i in ranked]

    def plot(self, ax: Any = None) -> Any:
        """Draws the matrix; needs ``everview[plot]``."""
        return plot_matrix(self.features, self.matrix, "mutual information (nats)", ax)

    def _at(self, feature: str) -> int:
        if feature not in self.features:
            hint = did_you_mean(feature, self.features)
            raise UnknownName(f"'{feature}' is not a categorical feature of the covariance.", hint=hint)
        return self.features.index(feature)

    def __str__(self) -> str:
        width = max(8, *(len(f) for f in self.features))
        head = " ".join(["".ljust(width), *(f.rjust(width) for f in self.features)])
        rows = [
            " ".join([f.ljust(width), *(f"{v:.4f}".rjust(width) for v in row)])
            for f, row in zip(self.features, self.matrix, strict=True)
        ]
        return "\n".join([head, *rows])


def information_matrix(moments: Moments) -> FloatArray:
    """I(X, Y) of all pairs of categorical features, entropies in the diagonal; zeros for a join without rows."""
    place = {f: i for i, f in enumerate(moments.categorical)}
    matrix = np.zeros((len(place), len(place)))
    n = moments.count
    if not n:
        return matrix
    for f, counted in moments.categories.items():
        p = counted.counts / n
        matrix[place[f], place[f]] = max(0.0, float(-(p * np.log(p)).sum()))
    for (a, b), pairs in moments.pairs.items():
        left, right = moments.categories[a].counts[pairs.left], moments.categories[b].counts[pairs.right]
        information = float((pairs.counts / n * np.log(n * pairs.counts / (left * right))).sum())
        matrix[place[a], place[b]] = matrix[place[b], place[a]] = max(0.0, information)
    return matrix
