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
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

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
    """

    continuous: tuple[str, ...]
    categorical: tuple[str, ...]
    count: float
    sums: FloatArray
    products: FloatArray
    categories: dict[str, CategoryCounts]
    pairs: dict[tuple[str, str], PairCounts]

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
