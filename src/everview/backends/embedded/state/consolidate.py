"""Consolidation: the weights of equal rows summed, zeros dropped, in one pass over a batch.

    δ = {row: Σ weight}                        for a batch δ of rows that may repeat

No state is kept but scratch memory, one table per thread, as large as the largest batch wanted of late.
"""

from __future__ import annotations

import threading

import numpy as np

from everview.backends.embedded.state import keymap_kernels as kernels
from everview.backends.embedded.vectors import Ints
from everview.relational.functions.failures import count_overflow

LARGEST_KEPT = 1 << 20
"""Entries of a scratch table that is kept for the next batch (8 MB); larger ones are given back."""


class _Scratch(threading.local):
    """A probe table for the batch at hand."""

    def __init__(self) -> None:
        self.table: Ints = np.empty(0, dtype=np.int64)

    def table_of(self, length: int) -> Ints:
        if len(self.table) < length <= LARGEST_KEPT:
            self.table = np.empty(length, dtype=np.int64)
        return self.table[:length] if length <= LARGEST_KEPT else np.empty(length, dtype=np.int64)


_scratch = _Scratch()


def consolidate(keys: Ints, weights: Ints) -> tuple[Ints, Ints]:
    """Sum the weights of equal rows.

    Args:
        keys: Key rows, C-contiguous.
        weights: Their weights.

    Returns:
        The position of each distinct row's first occurrence, ascending, and the sum of its weights; no sum is 0.

    Raises:
        EvaluationError: a sum of weights leaves 64 bits.

    Example:
        >>> rows = np.array([[5], [6], [5], [6]], dtype=np.int64)
        >>> first, sums = consolidate(rows, np.array([1, 1, 2, -1], dtype=np.int64))
        >>> first, sums
        (array([0]), array([3]))
    """
    n = len(keys)
    bits = max(2 * n - 1, 1).bit_length()
    table = _scratch.table_of(1 << bits)
    first, sums = np.empty((2, n), dtype=np.int64)
    kept = kernels.consolidate(table, keys, weights, first, sums)
    if kept == kernels.OUT_OF_RANGE:
        raise count_overflow()
    return first[:kept], sums[:kept]
