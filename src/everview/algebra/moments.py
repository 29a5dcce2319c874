"""Means and central moments of columns, from sums of their values and products.

    n · cov(x, y)  =  Σxy - Σx · Σy / n

The two terms nearly cancel where the means are large. So the sums are double-doubles (``algebra.floats``), the products in them
are exact, and the difference is taken in double-doubles, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from everview.algebra.floats import FLOATS
from everview.algebra.ring import Ints, Payloads

Floats: TypeAlias = npt.NDArray[np.float64]
FeatureProduct: TypeAlias = tuple[int, ...]
"""Which columns are multiplied, ascending, one of them perhaps twice."""

Corrected: TypeAlias = Callable[[FeatureProduct, Floats], None]
"""Replaces means (of one column) or central moments (of two) that sums in double-doubles cannot give."""

_ROUNDING = 2.0**-98


class CentralMoments:
    """The moments of n groups.

    Args:
        counts: The rows of each group, at least 1.
        sums: For each product of columns its sum in each group: [n, 2].
        corrected: What to do with moments before anybody sees them.
    """

    def __init__(
        self, counts: Ints, sums: Mapping[FeatureProduct, Payloads], corrected: Corrected | None = None
    ) -> None:
        self.counts = counts.astype(np.float64)
        self._sums = sums
        self._corrected = corrected
        self._central: dict[FeatureProduct, Floats] = {}

    def mean(self, column: int) -> Floats:
        """Σx / n."""
        mean = self._rounded(FLOATS.divide(self._sums[column,], self.counts))
        if self._corrected is not None:
            self._corrected((column,), mean)
        return mean

    def central(self, a: int, b: int) -> Floats:
        """Σ (x - mean x)(y - mean y) of two columns, or of one with itself.

        >>> x = np.array([[1e9 + 1.0, 0.0], [1e9 + 3.0, 0.0]])
        >>> square = FLOATS.multiply(x, x)
        >>> whole = {(0,): x.sum(axis=0, keepdims=True), (0, 0): FLOATS.add(square[:1], square[1:])}
        >>> CentralMoments(np.array([2]), whole).central(0, 0).tolist()
        [2.0]
        """
        known = self._central.get((a, b))
        if known is None:
            products = self._sums[a, b]
            of_means = FLOATS.divide(FLOATS.multiply(self._sums[a,], self._sums[b,]), self.counts)
            known = self._rounded(FLOATS.add(products, FLOATS.negate(of_means)))
            if a == b:  # what is left of equal values is rounding, in the last of 106 bits
                known = np.where(known <= np.abs(products[:, 0]) * _ROUNDING, 0.0, known)
            if self._corrected is not None:
                self._corrected((a, b), known)
            self._central[a, b] = known
        return known

    @staticmethod
    def _rounded(payloads: Payloads) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            rounded: Floats = FLOATS.values(payloads)
        return rounded
