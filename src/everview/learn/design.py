"""The design matrix of a regression, as far as moments give it: XᵀX, Xᵀy and yᵀy, never X.

A continuous feature is one column, a categorical feature one indicator column for each category that occurs (one-hot, all
categories, in order). Every entry of XᵀX is then one of the maintained sums: the product of two indicators counts the rows that
have both, the product of an indicator and a number sums that number in the category.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from everview.errors import UnknownName, UnsupportedOperation, did_you_mean
from everview.learn.moments import CodeArray, FloatArray, Moments


@dataclass(frozen=True)
class DesignColumn:
    """One column of X: a continuous feature, or the indicator of one category."""

    feature: str
    category: Hashable = None
    is_indicator: bool = False

    @property
    def name(self) -> str:
        """As ``coef_`` names it: ``rooms``, ``city=Oslo``."""
        return f"{self.feature}={self.category}" if self.is_indicator else self.feature


@dataclass(frozen=True, eq=False)
class Design:
    """The sums that a least-squares problem consists of.

    Attributes:
        columns: The k columns of X.
        count: How many rows X has.
        sums: 1ᵀX: (k,).
        gram: XᵀX: (k, k).
        label_sum: 1ᵀy.
        cross: Xᵀy: (k,).
        label_square: yᵀy.
    """

    columns: tuple[DesignColumn, ...]
    count: float
    sums: FloatArray
    gram: FloatArray
    label_sum: float
    cross: FloatArray
    label_square: float

    def centered(self) -> Design:
        """The same with the mean of each column, and of the label, taken off: what is left when the intercept is solved for."""
        if not self.count:
            return self
        n, sums = self.count, self.sums
        return Design(
            self.columns,
            n,
            np.zeros_like(sums),
            self.gram - np.outer(sums, sums) / n,
            0.0,
            self.cross - sums * (self.label_sum / n),
            self.label_square - self.label_sum**2 / n,
        )


def check_features(moments: Moments, label: str, features: Sequence[str] | None) -> tuple[str, ...]:
    """The features of a model, by default all but the label.

    Raises:
        UnknownName: the covariance has no such feature.
        UnsupportedOperation: the label is categorical, or one of the features.
    """
    known = (*moments.continuous, *moments.categorical)
    for name in (label, *(features or ())):
        if name not in known:
            raise UnknownName(f"'{name}' is not a feature of the covariance.", hint=did_you_mean(name, known))
    if label not in moments.continuous:
        raise UnsupportedOperation(
            f"the label '{label}' is categorical; a linear regression predicts a number.",
            hint="list it in continuous=[…] of create_covariance.",
        )
    if features is None:
        return tuple(f for f in known if f != label)
    if label in features:
        raise UnsupportedOperation(f"the label '{label}' is among the features.", hint="leave it out of features=[…].")
    if len(set(features)) < len(features):
        raise UnsupportedOperation(f"a feature is listed twice: {list(features)}.")
    return tuple(features)


def design_of(moments: Moments, label: str, features: Sequence[str]) -> Design:
    """X and y of these features; ``check_features`` has let them pass."""
    place = {f: i for i, f in enumerate(moments.continuous)}
    orders = {f: _sorted_codes(moments.categories[f].values) for f in features if f not in place}
    blocks, columns = [], []
    for f in features:
        if f in place:
            columns.append(DesignColumn(f))
        else:
            values = moments.categories[f].values
            columns += [DesignColumn(f, values[code], True) for code in orders[f]]
        blocks.append((f, len(columns)))
    gram, sums, cross = _empty(len(columns))
    y = place[label]
    numbers = [i for i, column in enumerate(columns) if not column.is_indicator]
    held = [place[columns[i].feature] for i in numbers]
    gram[np.ix_(numbers, numbers)] = moments.products[np.ix_(held, held)]
    start = 0
    for at, (f, end) in enumerate(blocks):
        if f in place:
            sums[start], cross[start] = moments.sums[place[f]], moments.products[place[f], y]
        else:
            counted = moments.categories[f]
            sums[start:end], cross[start:end] = counted.counts[orders[f]], counted.sums[orders[f], y]
        left = 0
        for other, right in blocks[: at + 1]:
            if f not in place or other not in place:
                gram[left:right, start:end] = _block(moments, place, orders, other, f)
                gram[start:end, left:right] = gram[left:right, start:end].T
            left = right
        start = end
    square = float(moments.products[y, y])
    return Design(tuple(columns), moments.count, sums, gram, float(moments.sums[y]), cross, square)


def _empty(k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    return np.zeros((k, k)), np.zeros(k), np.zeros(k)


def _block(moments: Moments, place: dict[str, int], orders: dict[str, CodeArray], a: str, b: str) -> FloatArray:
    """The part of XᵀX with the columns of ``a`` as rows and those of ``b`` as columns; one of them is categorical."""
    if a in place:
        return np.asarray(moments.categories[b].sums[orders[b], place[a]]).reshape(1, -1)
    if b in place:
        return np.asarray(moments.categories[a].sums[orders[a], place[b]]).reshape(-1, 1)
    if a == b:
        return np.diag(moments.categories[a].counts[orders[a]])
    is_stored = (a, b) in moments.pairs
    pairs = moments.pairs[(a, b) if is_stored else (b, a)]
    left, right = (pairs.left, pairs.right) if is_stored else (pairs.right, pairs.left)
    block = np.zeros((len(orders[a]), len(orders[b])))
    block[_inverse(orders[a])[left], _inverse(orders[b])[right]] = pairs.counts
    return block


def _inverse(order: CodeArray) -> CodeArray:
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def _sorted_codes(values: Sequence[Hashable]) -> CodeArray:
    """The codes of categories in the order of their values, NULL last: the same columns whatever came first.

    >>> _sorted_codes(["b", None, "a"]).tolist()
    [2, 0, 1]
    """

    def order(code: int) -> tuple[bool, str, object]:
        value = values[code]
        number = isinstance(value, int | float)
        return (value is None, "" if number else type(value).__name__, 0 if value is None else value)

    return np.array(sorted(range(len(values)), key=order), dtype=np.int64)
