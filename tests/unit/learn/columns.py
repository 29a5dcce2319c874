"""Moments made from whole columns with NumPy: what a maintained covariance must be equal to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import numpy as np

from everview.learn.moments import CategoryCounts, Moments, PairCounts


def moments_of(
    continuous: Mapping[str, Sequence[float]], categorical: Mapping[str, Sequence[Hashable]] | None = None
) -> Moments:
    """The moments of a joined table that is given as columns without NULLs among the continuous ones."""
    categorical = categorical or {}
    rows = len(next(iter([*continuous.values(), *categorical.values()]), ()))
    x = np.array([list(v) for v in continuous.values()], dtype=np.float64).reshape(len(continuous), rows).T
    codes: dict[str, np.ndarray] = {}
    categories: dict[str, CategoryCounts] = {}
    for name, values in categorical.items():
        found = list(dict.fromkeys(values))
        codes[name] = np.array([found.index(v) for v in values], dtype=np.int64)
        hot = np.eye(len(found))[codes[name]]
        categories[name] = CategoryCounts(found, hot.sum(axis=0), hot.T @ x)
    pairs = {}
    for a, b in combinations(categorical, 2):
        both, counts = np.unique(np.stack([codes[a], codes[b]]), axis=1, return_counts=True)
        pairs[a, b] = PairCounts(both[0], both[1], counts.astype(np.float64))
    return Moments(tuple(continuous), tuple(categorical), float(rows), x.sum(axis=0), x.T @ x, categories, pairs)


class Columns:
    """A covariance over columns that a test changes: what a model reads."""

    def __init__(
        self, continuous: Mapping[str, Sequence[float]], categorical: Mapping[str, Sequence[Hashable]] | None = None
    ) -> None:
        self.continuous = {k: list(v) for k, v in continuous.items()}
        self.categorical = {k: list(v) for k, v in (categorical or {}).items()}

    def moments(self, **_group: object) -> Moments:
        """The moments of the columns as they are now."""
        return moments_of(self.continuous, self.categorical)

    def one_hot(self, features: Sequence[str]) -> np.ndarray:
        """X as scikit-learn takes it: indicators of the categories that occur, in order."""
        parts: list[np.ndarray] = []
        for f in features:
            if f in self.continuous:
                parts.append(np.array(self.continuous[f], dtype=np.float64)[:, None])
            else:
                values = self.categorical[f]
                found = sorted(set(values), key=lambda v: (v is None, v))
                parts.append(np.array([[float(v == c) for c in found] for v in values]))
        return np.concatenate(parts, axis=1)
