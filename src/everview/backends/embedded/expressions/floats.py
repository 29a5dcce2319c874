"""Floating-point arithmetic, and those real functions for which NumPy's result is the definition's to the last bit.

Sums, products, quotients, remainders and square roots are exactly rounded everywhere. Logarithms, powers and the trigonometric
functions are not: NumPy's differ from the C library's in the last digit, so they stay with the definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from everview.algebra.floats import two_product
from everview.backends.embedded.dictionary import Dictionary
from everview.backends.embedded.expressions.cells import Cells, any_of
from everview.backends.embedded.expressions.step import Builder, Compiled, Native
from everview.backends.embedded.vectors import AnyArray, Bools, Kind, kind_of
from everview.relational.expressions import Call
from everview.relational.types import FLOAT32, FLOAT64, DataType, is_floating


def rounded_to(t: DataType) -> Callable[[AnyArray], AnyArray]:
    """The function that rounds 64-bit floats into a floating type."""
    if t == FLOAT32:
        return lambda values: values.astype(np.float32).astype(np.float64)
    return lambda values: values


def ring_kernel(
    call: Call, args: tuple[Compiled, ...], operation: Callable[[AnyArray, AnyArray], AnyArray]
) -> Native | None:
    """``+``, ``-`` and ``*``."""
    if not all(is_floating(a.type) for a in args):
        return None
    if call.type != FLOAT32:
        return Native(lambda a, b: Cells(operation(a.values, b.values)))
    rounded = rounded_to(call.type)
    return Native(lambda a, b: Cells(rounded(operation(a.values, b.values))))


def _zeros(divisors: AnyArray) -> Bools | None:
    zero = divisors == 0
    return zero if any_of(zero) else None


def quotient_kernel(args: tuple[Compiled, ...]) -> Native | None:
    """``a / b``; by zero there is none."""
    if not all(is_floating(a.type) for a in args):
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        values = a.values / b.values
        return Cells(values, suspects=_zeros(b.values))

    return Native(kernel, can_fail=True)


def remainder_kernel(args: tuple[Compiled, ...]) -> Native | None:
    """``a % b`` with the sign of a; NaN for an infinite a."""
    if not all(is_floating(a.type) for a in args):
        return None

    def kernel(a: Cells, b: Cells) -> Cells:
        values = np.fmod(a.values, b.values)
        return Cells(values, suspects=_zeros(b.values))

    return Native(kernel, can_fail=True)


def sign(a: Cells) -> Cells:
    """-1, 0 or 1; -0.0 and NaN stay what they are."""
    values = a.values
    if values.dtype == np.float64:
        return Cells(np.where(values > 0, 1.0, np.where(values < 0, -1.0, values)))
    if values.ndim == 2:
        positive = (values[:, 1] > 0) | ((values[:, 1] == 0) & (values[:, 0] != 0))
        return Cells(positive.astype(np.float64) - (values[:, 1] < 0))
    return Cells(np.sign(values.astype(np.int64)).astype(np.float64))


def _real(operation: Callable[[AnyArray], Any]) -> Builder:
    def build(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
        if args[0].type != FLOAT64:
            return None
        return Native(lambda a: Cells(operation(a.values)))

    return build


def _sign(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native | None:
    return None if kind_of(args[0].type) is Kind.CODE else Native(sign)


def _product_error(call: Call, args: tuple[Compiled, ...], _dictionary: Dictionary) -> Native:
    def kernel(a: Cells, b: Cells) -> Cells:
        product, error = two_product(a.values, b.values)
        return Cells(np.where(np.isfinite(product), error, 0.0))

    return Native(kernel)


NATIVE: Final[dict[str, Builder]] = {
    "product_error": _product_error,
    "sqrt": _real(np.sqrt),
    "rint": _real(np.rint),
    "degrees": _real(lambda x: x * (180.0 / math.pi)),
    "radians": _real(lambda x: x / 180.0 * math.pi),
    "sign": _sign,
}
