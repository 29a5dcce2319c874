"""What a change of a table of cells does to its matrix: sums of changes of low rank, of the values and of the counts of rows.

Cells in n rows and m columns are a change of rank min(n, m); a product of factors that keep i and j apart has rank 1; an update
U · Vᵀ has the rank it was given with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from everview.backends.embedded.factorized_batch import FactorBatch, FactorizedBatch, expand
from everview.backends.embedded.matrix.index_domain import IndexDomain
from everview.backends.embedded.matrix.stored_matrix import Floats, LowRank
from everview.backends.embedded.rank_batch import RankBatch
from everview.backends.embedded.vectors import Batch, DeferredBatch, Ints
from everview.errors import EvaluationError


@dataclass(frozen=True, eq=False)
class CellChange:
    """A change of the values of a matrix, and of how many rows its cells have; None where each has one row, old or new."""

    values: LowRank
    counts: LowRank | None


def cell_changes(batch: Batch, rows: IndexDomain, columns: IndexDomain) -> Iterator[CellChange]:
    """The changes that a batch of cells (i, j, v) is the sum of; the domains learn its indexes.

    Raises:
        EvaluationError: a value is not finite.
    """
    if isinstance(batch, RankBatch):
        yield _given_rank(batch, rows, columns)
    elif isinstance(batch, FactorizedBatch):
        for product in batch.products:
            yield from _product(product, rows, columns)
        if batch.rest is not None:
            yield from _cells(batch.rest, rows, columns)
    else:
        yield from _cells(batch.made if isinstance(batch, DeferredBatch) else batch, rows, columns)


def _given_rank(batch: RankBatch, rows: IndexDomain, columns: IndexDomain) -> CellChange:
    change = batch.change
    at, to = rows.positions(change.rows_changed), columns.positions(change.columns)
    counts = None if batch.is_keyed else LowRank(at, np.ones((len(at), 1)), np.ones((1, len(to))), to)
    return CellChange(LowRank(at, change.u, np.ascontiguousarray(change.v.T), to), counts)


def _product(product: Sequence[FactorBatch], rows: IndexDomain, columns: IndexDomain) -> Iterator[CellChange]:
    """A product is of rank 1 if i and j are in different factors; the other factors are sums that multiply it."""
    factors = [FactorBatch(f.columns, _without_nulls(f.batch)) for f in product]
    own = {c: f for f in factors for c in f.columns}
    if own[0] is own[1]:
        yield from _cells(expand(factors).batch, rows, columns)
        return
    value = counted = 1.0
    for factor in factors:
        if factor is not own[0] and factor is not own[1]:
            value, counted = value * float(_valued(factor).sum()), counted * float(factor.batch.weights.sum())
    (at, u, m), (to, v, n) = _summed(own[0], 0, rows), _summed(own[1], 1, columns)
    if len(at) and len(to):
        yield CellChange(
            LowRank(at, u[:, None], value * v[None, :], to), LowRank(at, m[:, None], counted * n[None, :], to)
        )


def _summed(factor: FactorBatch, index: int, domain: IndexDomain) -> tuple[Ints, Floats, Floats]:
    """For each value of an index in a factor, its position, the sum of the values there, and the number of rows."""
    found = domain.positions(factor.batch.columns[factor.columns.index(index)].values)
    at, codes = np.unique(found, return_inverse=True)
    weights = factor.batch.weights.astype(np.float64)
    return at, _binned(codes, _valued(factor), len(at)), _binned(codes, weights, len(at))


def _valued(factor: FactorBatch) -> Floats:
    weights = factor.batch.weights.astype(np.float64)
    return weights * _finite(factor.batch, factor.columns.index(2)) if 2 in factor.columns else weights


def _cells(batch: Batch, rows: IndexDomain, columns: IndexDomain) -> Iterator[CellChange]:
    kept = _without_nulls(batch)
    if not len(kept):
        return
    at, i = _codes(rows.positions(kept.columns[0].values), len(rows))
    to, j = _codes(columns.positions(kept.columns[1].values), len(columns))
    weights = kept.weights.astype(np.float64)
    cell, shape = i * len(to) + j, (len(at), len(to))
    values = _binned(cell, weights * _finite(kept, 2), shape[0] * shape[1]).reshape(shape)
    counts = _binned(cell, weights, shape[0] * shape[1]).reshape(shape)
    yield CellChange(_block(at, values, to), _block(at, counts, to))


def _binned(codes: Ints, weights: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(codes, weights, size), dtype=np.float64)


def _codes(positions: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct positions, ascending, and for each position which of them it is."""
    seen = np.zeros(size, dtype=np.bool_)
    seen[positions] = True
    distinct = np.flatnonzero(seen)
    place = np.cumsum(seen) - 1
    return distinct, place[positions]


def _block(at: Ints, cells: Floats, to: Ints) -> LowRank:
    """Cells as a product with an identity, on the side where it is smaller."""
    return LowRank(at, None, cells, to) if len(at) <= len(to) else LowRank(at, cells, None, to)


def _without_nulls(batch: Batch) -> Batch:
    masks = [c.nulls for c in batch.columns if c.nulls is not None]
    return batch.take(~np.logical_or.reduce(masks)) if masks else batch


def _finite(batch: Batch, column: int) -> Floats:
    values = np.asarray(batch.columns[column].values, dtype=np.float64)
    if not np.isfinite(values).all():
        wrong = float(values[~np.isfinite(values)][0])
        raise EvaluationError(
            f"a cell has the value {wrong}, and the product of matrices is kept in numbers that are finite.",
            condition="NON_FINITE_CELL",
            hint="create_matrix_chain(…, storage='sparse') takes such values.",
        )
    return values
