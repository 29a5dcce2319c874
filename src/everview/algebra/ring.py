"""Rings: what a view keeps for each of its keys, and how it is added and multiplied (F-IVM, definition 1).

A view maps keys to *payloads*, elements of a ring (D, +, *, 0, 1): a union of views adds payloads, a join multiplies them, an
update adds the payload of the change, which for a deletion is the negative one. Nothing else of a query depends on the ring.

Layout: a ring has a ``width`` and a ``dtype`` of 64 bits, int64 or float64. The payloads of n keys are one C-contiguous matrix
[n, width]; every operation is over all n at once, takes no row-by-row step in Python, and returns a new matrix of that shape.
Zero is always the matrix of zero words: state that has just been allocated is zero without being told.

``Ring`` is the protocol and, at once, the ring that most are near to: addition, negation and multiples are those of the
vectors Z^width or R^width. A subclass gives ``width``, ``dtype``, ``ones`` and ``multiply``, and ``lift`` and ``values`` if
it is to be an SQL aggregate; one that redefines ``add`` gets sums by group from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

Payloads: TypeAlias = npt.NDArray[Any]
"""The payloads of n keys: [n, width]."""
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
ColumnValues: TypeAlias = npt.NDArray[Any]
"""The values of one variable in n rows."""

INT64 = np.dtype(np.int64)
FLOAT64 = np.dtype(np.float64)


class Addition(Enum):
    """How the payloads of a ring are added, and multiplied by integers, as far as others may do it without asking the ring."""

    WORDS = "word by word"
    PAIRS = "as double-doubles, two words each"
    """See ``algebra.floats``."""
    OWN = "by the ring's own operations"


class Ring:
    """A ring with payloads of one fixed layout."""

    width: int
    """Words of a payload."""
    dtype: np.dtype[Any] = FLOAT64
    """int64 or float64."""
    is_commutative: bool = True
    """Whether a * b = b * a; a view over a join multiplies its factors in any order."""
    name: ClassVar[str] = ""
    """What messages call it; the class's name if empty."""

    def zeros(self, count: int) -> Payloads:
        """0, ``count`` times."""
        return np.zeros((count, self.width), dtype=self.dtype)

    def ones(self, count: int) -> Payloads:
        """1, ``count`` times."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its 1 is")

    def add(self, a: Payloads, b: Payloads) -> Payloads:
        """The sum for each key."""
        return a + b

    def negate(self, a: Payloads) -> Payloads:
        """-a for each key: a + (-a) = 0."""
        return -a

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        """The product a * b for each key."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it multiplies")

    def is_zero(self, a: Payloads) -> Bools:
        """Which payloads are 0: bool[n]."""
        zero: Bools = ~(a != 0).any(axis=1)
        return zero

    def scale(self, a: Payloads, weights: Ints) -> Payloads:
        """``weights[i]`` times a[i]: the sum of that many, negative for a negative weight."""
        return a * weights[:, None]

    @property
    def addition(self) -> Addition:
        """How ``add`` and ``scale`` work; a class that redefines one of them has its own way unless it says otherwise here."""
        is_inherited = type(self).add is Ring.add and type(self).scale is Ring.scale
        return Addition.WORDS if is_inherited else Addition.OWN

    def sum_by(self, payloads: Payloads, group_of_row: Ints, groups: int) -> Payloads:
        """The sum of each group: [groups, width], 0 for a group without rows."""
        if type(self).add is not Ring.add:
            return self._reduce_by(payloads, group_of_row, groups)
        sums = self.zeros(groups)
        for word in range(self.width):
            np.add.at(sums[:, word], group_of_row, payloads[:, word])
        return sums

    def _reduce_by(self, payloads: Payloads, group_of_row: Ints, groups: int) -> Payloads:
        """Sums by ``add`` alone: neighbours within a group are added until each group has one payload left."""
        order = np.argsort(group_of_row, kind="stable")
        rows, group = payloads[order], group_of_row[order]
        while len(group) and (same := group[1:] == group[:-1]).any():
            # The first row of each pair stands at an even distance from the start of its group.
            starts = np.flatnonzero(np.concatenate([[True], ~same]))
            rank = np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group))))
            is_second = rank % 2 == 1
            second = np.flatnonzero(is_second)
            rows[second - 1] = self.add(np.ascontiguousarray(rows[second - 1]), np.ascontiguousarray(rows[second]))
            rows, group = rows[~is_second], group[~is_second]
        sums = self.zeros(groups)
        sums[group] = rows
        return sums

    def lift(self, position: int, column: ColumnValues) -> Payloads:
        """g(x): the values of the variable (or argument) at ``position`` as elements of the ring."""
        raise NotImplementedError(f"{type(self).__name__} does not lift values")

    def values(self, payloads: Payloads) -> Sequence[Any]:
        """What each payload is for the reader of a view: a number, or a tuple of the words where there are several."""
        if self.width == 1:
            alone: list[Any] = payloads[:, 0].tolist()
            return alone
        return [tuple(words) for words in payloads.tolist()]

    def __str__(self) -> str:
        return self.name or type(self).__name__
