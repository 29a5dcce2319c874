"""The design matrix of a regression, as far as moments give it: XᵀX, Xᵀy and yᵀy, never X.

A continuous feature is one column, a categorical feature one indicator column for each category that occurs (one-hot, all
categories, in order). Every entry of XᵀX is then one of the maintained sums: the product of two indicators counts the rows that
have both, the product of an indicator and a number sums that number in the category.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from everview.errors import UnknownName, UnsupportedOperation, did_you_mean
from everview.learn.moments import CodeArray, FloatArray, Moments

_KEPT = 2.0**-34
"""What double-doubles may lose of Σx², in roundings of a double; sums by category lose as many digits as the mean has more."""


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
        numbers: Which columns are continuous features.
        deviations: Of these and the label, the sums of the products of what is left when the mean is taken off.
        is_exact: Whether the deviations are known to more digits than the difference of sums has.
        squares: The scale of what roundings have left in the diagonal of XᵀX: Σx² of each column, where that is all.
        label_scale: The same of yᵀy.
    """

    columns: tuple[DesignColumn, ...]
    count: float
    sums: FloatArray
    gram: FloatArray
    label_sum: float
    cross: FloatArray
    label_square: float
    numbers: CodeArray
    deviations: FloatArray
    is_exact: bool
    squares: FloatArray
    label_scale: float

    def centered(self) -> Design:
        """The same with the mean of each column, and of the label, taken off: what is left when the intercept is solved for."""
        if not self.count:
            return self
        n, sums, at = self.count, self.sums, self.numbers
        gram, cross = self.gram - np.outer(sums, sums) / n, self.cross - sums * (self.label_sum / n)
        gram[np.ix_(at, at)], cross[at] = self.deviations[:-1, :-1], self.deviations[:-1, -1]
        squares, scale = self.squares.copy(), self.label_scale
        if self.is_exact:
            raw = np.append(squares[at], scale)
            left = np.sqrt(raw * np.maximum(np.diag(self.deviations), 0)) + raw * _KEPT
            squares[at], scale = left[:-1], float(left[-1])
        return replace(
            self,
            sums=np.zeros_like(sums),
            gram=gram,
            label_sum=0.0,
            cross=cross,
            label_square=float(self.deviations[-1, -1]),
            squares=squares,
            label_scale=scale,
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
        return tuple(
            f for f in dict.fromkeys(known) if f != label
        )  # what is both continuous and categorical is a number
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
    deviations = moments.centred_products()[np.ix_([*held, y], [*held, y])]
    return Design(
        tuple(columns),
        moments.count,
        sums,
        gram,
        float(moments.sums[y]),
        cross,
        square,
        np.array(numbers, dtype=np.int64),
        deviations,
        moments.centred is not None,
        np.diag(gram).copy(),
        square,
    )


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
