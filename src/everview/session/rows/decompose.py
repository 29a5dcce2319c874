"""Finds out whether the rows of a change are a product of relations over disjoint columns, and of which.

The finest such columns are unique. They are found in near-linear time: fix one value v of a column c, and decompose the rows
with c = v, which are fewer. Each factor of the whole that does not have c is a factor of that slice too, so it is enough to
test the slice's factors against all rows: columns G split off exactly if

    |π_G| · |π_rest| = |rows|        and the weights are a product: w(g, r) · w(g₀, r₀) = w(g, r₀) · w(g₀, r)

What splits off nowhere is the factor of c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.backends.base import Change
from everview.backends.factorized_rows import FactorizedChange, FactorRows
from everview.catalog import TableDefinition

Ints = npt.NDArray[np.int64]

_MOST_NUMBERS = 1 << 62
_LARGEST_COMPARED = 1 << 31
"""Weights above this are not multiplied with each other; rows that have some are no product for us."""


def decompose(table: TableDefinition, change: Change) -> Change:
    """The change as a product if it is one, with ``decomposed`` saying which columns belong together.

    A product of which at most one factor has more than one row saves nothing, and is left as rows.
    """
    names = tuple(f.name for f in table.fields)
    coded = _coded(change)
    if coded is None:
        return replace(change, decomposed=(names,))
    groups = _with_constants_together(coded, _factors(coded, list(range(len(names)))))
    found = tuple(tuple(names[c] for c in g) for g in groups)
    if sum(coded.count(g) > 1 for g in groups) < 2:
        return replace(change, decomposed=found)
    return FactorizedChange(table, [_product_rows(change, coded, groups)], found)


@dataclass(frozen=True, slots=True)
class _Coded:
    """Distinct rows with weights: of each column numbers, equal where its values are; ``rows`` are places in the change."""

    codes: tuple[Ints, ...]
    weights: Ints
    rows: Ints

    def __len__(self) -> int:
        return len(self.weights)

    def where(self, chosen: npt.NDArray[np.bool_]) -> _Coded:
        """Some of the rows."""
        return _Coded(tuple(c[chosen] for c in self.codes), self.weights[chosen], self.rows[chosen])

    def keys(self, columns: Sequence[int]) -> Ints:
        """A number for each row, equal where these columns are."""
        total, space = np.zeros(len(self), dtype=np.int64), 1
        for column in columns:
            size = int(self.codes[column].max()) + 1
            if space * size > _MOST_NUMBERS:
                total = np.unique(total, return_inverse=True)[1].astype(np.int64)
                space = int(total.max()) + 1
            total = total * size + self.codes[column]
            space *= size
        return total

    def count(self, columns: Sequence[int]) -> int:
        """How many distinct values the columns have together."""
        return len(np.unique(self.keys(columns)))


def _coded(change: Change) -> _Coded | None:
    """The rows, summed up; None where a column's values cannot be numbered."""
    codes = []
    for column in change.rows.columns:
        try:
            encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return None  # lists and structs
        chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
        if len(chunks) != 1:
            return None
        codes.append(chunks[0].indices.to_numpy(zero_copy_only=False).astype(np.int64))
    count = change.given.num_rows
    weights = np.ones(count, dtype=np.int64)
    if change.weights is not None:
        weights = np.asarray(change.weights.to_numpy(zero_copy_only=False), dtype=np.int64)
    whole = _Coded(tuple(codes), weights, np.arange(count, dtype=np.int64))
    if not count or int(np.abs(weights).max()) > _MOST_NUMBERS // count:
        return None
    _, first, numbers = np.unique(whole.keys(range(len(codes))), return_index=True, return_inverse=True)
    sums = np.zeros(len(first), dtype=np.int64)
    np.add.at(sums, numbers, weights)
    kept = sums != 0
    if not kept.any() or int(np.abs(sums).max()) > _LARGEST_COMPARED:
        return None
    at = first[kept].astype(np.int64)
    return _Coded(tuple(c[at] for c in codes), sums[kept], at)


def _factors(rows: _Coded, columns: list[int]) -> list[list[int]]:
    """The finest factors over the columns, which tell all rows apart."""
    sizes = {c: len(np.unique(rows.codes[c])) for c in columns}
    alone = [[c] for c in columns if sizes[c] == 1]
    left = [c for c in columns if sizes[c] > 1]
    if len(left) < 2:
        return alone + [[c] for c in left]
    pivot = max(left, key=lambda c: sizes[c])
    values, counts = np.unique(rows.codes[pivot], return_counts=True)
    slice_of = rows.where(rows.codes[pivot] == values[counts.argmin()])
    split = [g for g in _factors(slice_of, [c for c in left if c != pivot]) if _splits(rows, g, left)]
    taken = {c for g in split for c in g}
    return [*alone, *split, [c for c in left if c not in taken]]


def _splits(rows: _Coded, group: list[int], columns: list[int]) -> bool:
    """Whether the rows are the product of these columns and the others."""
    ours, theirs = rows.keys(group), rows.keys([c for c in columns if c not in group])
    left = np.unique(ours)
    if len(rows) % len(left):
        return False
    right = np.unique(theirs)
    if len(left) * len(right) != len(rows):
        return False
    weights = rows.weights
    if (weights == weights[0]).all():
        return True
    matrix = np.empty((len(left), len(right)), dtype=np.int64)
    matrix[np.searchsorted(left, ours), np.searchsorted(right, theirs)] = weights
    return bool((matrix * matrix[0, 0] == np.outer(matrix[:, 0], matrix[0, :])).all())


def _with_constants_together(rows: _Coded, groups: list[list[int]]) -> list[list[int]]:
    """Columns with one value are one factor of one row."""
    constants = sorted(c for g in groups if rows.count(g) == 1 for c in g)
    others = [sorted(g) for g in groups if rows.count(g) > 1]
    return sorted([*others, constants] if constants else others)


def _product_rows(change: Change, rows: _Coded, groups: list[list[int]]) -> tuple[FactorRows, ...]:
    """The factors: the values of each group where all others are as in the first row, weighted so that weights multiply."""
    factors = []
    left = rows
    for number, group in enumerate(groups):
        others = [c for g in groups[number + 1 :] for c in g]
        is_first = np.ones(len(left), dtype=np.bool_)
        for column in others:
            is_first &= left.codes[column] == left.codes[column][0]
        own = left.where(is_first)
        weights = own.weights
        if others:
            weights = weights // np.gcd.reduce(weights)
            rest = np.ones(len(left), dtype=np.bool_)
            for column in group:
                rest &= left.codes[column] == left.codes[column][0]
            kept = left.where(rest)
            left = replace(kept, weights=kept.weights // weights[0])
        table = change.rows.select(group).take(pa.array(own.rows)).combine_chunks()
        (batch,) = table.to_batches()
        factors.append(FactorRows(tuple(group), batch, None if (weights == 1).all() else weights))
    return tuple(factors)
