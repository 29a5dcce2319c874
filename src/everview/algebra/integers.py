"""Z: multiplicities, counts, sums and products of integers, in one word each.

Words wrap around at 2^64, so this is the ring Z/2^64, and Z → Z/2^64 is a homomorphism: a sum of products computed modulo
2^64, in any order and with any intermediate results, is the true one modulo 2^64. Hence the answer is exact wherever the
*true result* fits 64 bits, however far intermediate results overflow; detecting that a final result does not fit is up to
who needs it.
"""

from __future__ import annotations

import numpy as np

from everview.algebra.ring import INT64, ColumnValues, Payloads, Ring


class IntegerRing(Ring):
    """Z/2^64 as two's complement words.

    >>> INTEGERS.multiply(INTEGERS.lift(0, np.array([2, -3])), INTEGERS.lift(1, np.array([5, 7]))).tolist()
    [[10], [-21]]
    """

    width = 1
    dtype = INT64
    name = "Z"

    def ones(self, count: int) -> Payloads:
        """1."""
        return np.ones((count, 1), dtype=np.int64)

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        """The product of the words."""
        return a * b

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        """The integers themselves."""
        return np.ascontiguousarray(column.astype(np.int64, copy=False)).reshape(-1, 1)


INTEGERS = IntegerRing()
