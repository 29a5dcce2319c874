"""How a product of moments is put together: what the words of its shape do is the product of the covariance ring."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.embedded.tree.moments_shape import ProductShape, product_shape


def moments(rows: np.ndarray, degree: int) -> np.ndarray:
    """Sums of columns, and of products from the diagonal on."""
    squares = (rows.T @ rows)[np.triu_indices(rows.shape[1])] if degree == 2 else np.zeros(0)
    return np.concatenate((rows.sum(axis=0), squares))


def multiplied(shape: ProductShape, factors: list[np.ndarray], counts: np.ndarray, size: int) -> np.ndarray:
    """Does what the machine does."""
    n = shape.factors
    without = [[np.prod(np.delete(counts, [k, i])) for i in range(n)] for k in range(n)]
    sums, scaled, product = np.zeros(shape.sums), np.zeros(shape.scaled + 1), np.full(size, np.nan)
    for pair, k, first, length, place in shape.scalings:
        scaled[place : place + length] = without[pair // n][pair % n] * factors[k][first : first + length]
    for k, place in enumerate(shape.owns):
        sums[place : place + len(factors[k])] = without[k][k] * factors[k]
    for k, feature, place, length, to in shape.crossings:
        sums[to : to + length] = factors[k][feature] * scaled[place : place + length]
    for source, place, length in shape.moves:
        product[place : place + length] = sums[source : source + length]
    return product


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 2), st.integers(0, 2**31))
def test_shapes_are_products(owners: list[int], degree: int, seed: int) -> None:
    """For any order of features, and factors with none, the parts of a product are those of the rows joined."""
    rng, factors = np.random.default_rng(seed), 4
    tables = [rng.integers(-4, 5, (rng.integers(1, 4), owners.count(k))).astype(float) for k in range(factors)]
    index = np.indices([len(t) for t in tables]).reshape(factors, -1)
    seen, columns = [0] * factors, []
    for k in owners:
        columns.append(tables[k][index[k], seen[k]])
        seen[k] += 1
    wanted = moments(np.column_stack(columns), degree)
    shape = product_shape(owners, factors, degree)
    counts = np.array([len(t) for t in tables], dtype=float)
    found = multiplied(shape, [moments(t, degree) for t in tables], counts, len(wanted))
    np.testing.assert_array_equal(found, wanted)
