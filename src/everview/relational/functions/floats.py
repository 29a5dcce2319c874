"""Floating-point results as Spark keeps them: one NaN, and 32 bits where the type says so."""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import c_float

from everview.relational.types import NAN, DataType, Float32


def float32(value: float) -> float:
    """The nearest number of 32 bits; beyond their range, infinity.

    >>> float32(0.1), float32(1e39)
    (0.10000000149011612, inf)
    """
    return NAN if math.isnan(value) else c_float(value).value


def float64(value: float) -> float:
    """The number itself, or the one ``NAN``."""
    return NAN if math.isnan(value) else value


def float_of(t: DataType) -> Callable[[float], float]:
    """The normaliser of a floating type: every result of that type goes through it."""
    return float32 if isinstance(t, Float32) else float64


def divide(a: float, b: float) -> float:
    """IEEE division: infinities and NaN instead of Python's error."""
    if b:
        return float64(a / b)
    if a == 0 or math.isnan(a):
        return NAN
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def remainder(a: float, b: float) -> float:
    """Java's ``%`` of doubles: the sign is the dividend's."""
    return NAN if math.isinf(a) or b == 0 else float64(math.fmod(a, b))
