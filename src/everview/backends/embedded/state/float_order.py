"""Floats as integers of the same order, so that ordered indexes compare integers only.

Spark's order: -0.0 equals 0.0, NaN equals NaN and is above infinity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from everview.backends.embedded.vectors import Ints, canonical_floats

MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)


def float_order(values: npt.NDArray[np.float64]) -> Ints:
    """Integers in the order of the floats; equal floats become equal integers.

    The bits of a positive float are ordered as integers already; of a negative one, the magnitude bits are flipped.

    Example:
        >>> float_order(np.array([-1.5, -0.0, 0.0, 2.0])).argsort(stable=True)
        array([0, 1, 2, 3])
    """
    bits = canonical_floats(values).view(np.int64)
    return bits ^ ((bits >> 63) & MAGNITUDE)


def float_from_order(order: Ints) -> npt.NDArray[np.float64]:
    """The floats of these integers; the inverse of ``float_order`` but for -0.0, which has become 0.0."""
    return (order ^ ((order >> 63) & MAGNITUDE)).view(np.float64)
