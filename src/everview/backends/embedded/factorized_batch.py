"""A change as a sum of products of smaller batches over disjoint columns; operators that do not know it see its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from everview.backends.embedded.state.accumulate import joined_weights
from everview.backends.embedded.vectors import Batch, DeferredBatch, Vector, concatenate, words_held
from everview.backends.factorized_rows import positions_in_product


@dataclass(frozen=True, slots=True)
class FactorBatch:
    """Rows over some columns of a batch: ``columns`` are their positions there."""

    columns: tuple[int, ...]
    batch: Batch

    def __len__(self) -> int:
        return len(self.batch)


FactorProduct: TypeAlias = tuple[FactorBatch, ...]


class FactorizedBatch(DeferredBatch):
    """The sum of some products and a batch of plain rows, of at least one product."""

    __slots__ = ("products", "rest")

    products: tuple[FactorProduct, ...]
    rest: Batch | None

    def __init__(self, products: Sequence[FactorProduct], rest: Batch | None) -> None:
        factors = [factor.batch for product in products for factor in product]
        super().__init__(self._expand, sum(map(words_held, factors if rest is None else [*factors, rest])))
        object.__setattr__(self, "products", tuple(products))
        object.__setattr__(self, "rest", rest)

    def __len__(self) -> int:
        size = sum(math.prod(len(f) for f in product) for product in self.products)
        return size + (0 if self.rest is None else len(self.rest))

    def _expand(self) -> Batch:
        parts = [expand(product).batch for product in self.products]
        return concatenate(parts if self.rest is None else [*parts, self.rest])


def expand(product: Sequence[FactorBatch]) -> FactorBatch:
    """The product as one factor, its columns in ascending order."""
    if len(product) == 1:
        return product[0]
    positions = positions_in_product([len(f) for f in product])
    weights = np.ones(len(positions[0]), dtype=np.int64)
    vectors: dict[int, Vector] = {}
    for factor, at in zip(product, positions, strict=True):
        weights = joined_weights(weights, factor.batch.weights[at])
        for column, vector in zip(factor.columns, factor.batch.columns, strict=True):
            vectors[column] = vector.take(at)
    columns = tuple(sorted(vectors))
    return FactorBatch(columns, Batch(tuple(vectors[c] for c in columns), weights))
