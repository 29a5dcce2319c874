"""What a covariance knows of its features: the sums from which models are learned, and no rows.

Of a join with continuous features x₁ … x_k and categorical features c₁ … c_l these are (section 8.1 of F-IVM)

    COUNT(*),  SUM(xᵢ),  SUM(xᵢ · xⱼ)                                  numbers
    COUNT(*) and SUM(xᵢ) GROUP BY cₚ                                   one entry a category
    COUNT(*) GROUP BY cₚ, c_q                                          one entry a pair of categories that occurs

Categories and pairs that do not occur in the join have no entry; one-hot vectors are never made. Rows in which a continuous
feature is NULL take no part in any of the sums: otherwise the matrix would mix different sets of rows. NULL is a category like
any other, with the value None. This is the interface between what maintains the sums and the models that read them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from everview.algebra.floats import FLOATS, two_product, two_sum
from everview.algebra.ring import Payloads

FloatArray: TypeAlias = npt.NDArray[np.float64]
CodeArray: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CategoryCounts:
    """The categories of one feature, c of them, and what is summed in each.

    Attributes:
        values: The categories; the code of one is its position here.
        counts: COUNT(*) of each: (c,). None of them is 0.
        sums: SUM(xᵢ) of each continuous feature in each: (c, k).
    """

    values: list[Hashable]
    counts: FloatArray
    sums: FloatArray


@dataclass(frozen=True, eq=False)
class PairCounts:
    """COUNT(*) of pairs of categories, one entry a pair that occurs: three arrays of equal length.

    Attributes:
        left: Codes of the first feature's categories.
        right: Codes of the second feature's categories.
        counts: How many rows have both. None of them is 0.
    """

    left: CodeArray
    right: CodeArray
    counts: FloatArray


@dataclass(frozen=True, eq=False)
class Moments:
    """What is known of one group of a join, or of all of it.

    Attributes:
        continuous: The k continuous features.
        categorical: The categorical features.
        count: COUNT(*).
        sums: SUM(xᵢ): (k,).
        products: SUM(xᵢ · xⱼ): (k, k), symmetric.
        categories: For each categorical feature its categories.
        pairs: For each pair of categorical features, in the order of ``categorical``, the pairs of categories.
        centred: SUM((xᵢ - mean) · (xⱼ - mean)) where more digits of it are known than sums and products have: (k, k).
    """

    continuous: tuple[str, ...]
    categorical: tuple[str, ...]
    count: float
    sums: FloatArray
    products: FloatArray
    categories: dict[str, CategoryCounts]
    pairs: dict[tuple[str, str], PairCounts]
    centred: FloatArray | None = None

    def __post_init__(self) -> None:
        k = len(self.continuous)
        assert self.sums.shape == (k,)
        assert self.products.shape == (k, k)
        assert self.categories.keys() == set(self.categorical)
        for counted in self.categories.values():
            assert counted.counts.shape == (len(counted.values),)
            assert counted.sums.shape == (len(counted.values), k)
        names = self.categorical
        assert self.pairs.keys() == {(a, b) for i, a in enumerate(names) for b in names[i + 1 :]}

    def centred_products(self) -> FloatArray:
        """SUM((xᵢ - mean) · (xⱼ - mean)): (k, k); 0 without rows."""
        if self.centred is not None:
            return self.centred
        return self.products - np.outer(self.sums, self.sums) / max(self.count, 1.0)


def centred_of_pairs(count: float, sums: Payloads, products: Payloads) -> FloatArray:
    """SUM((xᵢ - mean) · (xⱼ - mean)) of sums that are double-doubles: of k features and, row by row, the pairs of these.

    >>> years = np.array([2000.0, 2001.0]) + 1e12
    >>> exact = sum(int(y) ** 2 for y in years)
    >>> square = np.array([[float(exact), float(exact - int(float(exact)))]])
    >>> centred_of_pairs(2, np.array([[years.sum(), 0.0]]), square)
    array([[0.5]])
    """
    k = len(sums)
    i, j = upper_half(k)
    mean = FLOATS.divide(sums, count)
    product, error = two_product(sums[i, 0], mean[j, 0])
    error += sums[i, 0] * mean[j, 1] + sums[i, 1] * mean[j, 0]
    left, lost = two_sum(products[:, 0], -product)
    centred = np.empty((k, k))
    centred[i, j] = centred[j, i] = left + (lost + (products[:, 1] - error))
    return centred


@lru_cache(maxsize=16)
def upper_half(count: int) -> tuple[CodeArray, CodeArray]:
    """Rows and columns of the cells of a square matrix from the diagonal on: the order of products."""
    i, j = np.triu_indices(count)
    return i, j
