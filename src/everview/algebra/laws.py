"""The laws of a ring, tried on given elements: what registration and tests ask of a ring.

Trying proves nothing, and finds what is usually wrong: a wrong unit, a product that is not distributive, a matrix of the wrong
shape. Elements compare equal if their difference is zero, or as near to it as rounding makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from everview.algebra.ring import FLOAT64, INT64, Bools, Payloads, Ring

ROUNDING = 1e-9
"""How far apart, relative to the largest word, the two sides of a law may be where a ring rounds."""


def shape_problem(ring: Ring, payloads: object, count: int) -> str | None:
    """What is wrong with a matrix that should hold ``count`` payloads; None if nothing is."""
    if not isinstance(payloads, np.ndarray):
        return f"a {type(payloads).__name__} and not a NumPy array"
    if payloads.dtype != ring.dtype:
        return f"an array of {payloads.dtype} where the ring has {np.dtype(ring.dtype)}"
    if payloads.shape != (count, ring.width):
        return f"an array of shape {payloads.shape} where {(count, ring.width)} was expected"
    return None


def layout_problem(ring: Ring) -> str | None:
    """What is wrong with a ring's declared layout; None if nothing is."""
    if not isinstance(getattr(ring, "width", None), int) or isinstance(ring.width, bool) or ring.width < 1:
        return f"its width is {getattr(ring, 'width', None)!r}, and must be a positive number of words"
    if np.dtype(ring.dtype) not in (INT64, FLOAT64):
        return f"its dtype is {np.dtype(ring.dtype)}, and must be int64 or float64"
    return None


def broken_law(ring: Ring, samples: Payloads | None = None) -> str | None:
    """The first law that does not hold among 0, 1, -1, 1 + 1 and the samples; None if all do.

    >>> from everview.algebra.integers import INTEGERS
    >>> broken_law(INTEGERS, np.array([[7], [-3]])) is None
    True
    """
    problem = layout_problem(ring) or _misshapen(ring)
    if problem is not None:
        return problem
    one = ring.ones(1)
    elements = np.concatenate([ring.zeros(1), one, ring.negate(one), ring.add(one, one)])
    if samples is not None:
        problem = shape_problem(ring, samples, len(samples))
        if problem is not None:
            return f"the samples are {problem}"
        elements = np.concatenate([elements, samples])
    for text, left, right in _laws(ring, elements):
        differing = np.flatnonzero(~_are_equal(ring, left, right))
        if len(differing):
            return f"{text} does not hold: {left[differing[0]].tolist()} is not {right[differing[0]].tolist()}"
    return None


def _misshapen(ring: Ring) -> str | None:
    ones, weights = ring.ones(2), np.array([3, -1])
    made: list[tuple[str, Callable[[], Payloads], int]] = [
        ("zeros(2)", lambda: ring.zeros(2), 2),
        ("ones(2)", lambda: ones, 2),
        ("add", lambda: ring.add(ones, ones), 2),
        ("negate", lambda: ring.negate(ones), 2),
        ("multiply", lambda: ring.multiply(ones, ones), 2),
        ("scale", lambda: ring.scale(ones, weights), 2),
        ("sum_by", lambda: ring.sum_by(ones, np.array([2, 0]), 3), 3),
    ]
    for name, make, count in made:  # one after the other: a wrong unit is not to be multiplied
        problem = shape_problem(ring, make(), count)
        if problem is not None:
            return f"{name} returns {problem}"
    if ring.zeros(2).any():
        return "its zero is not the payload of zero words"
    zeros = ring.is_zero(np.concatenate([ring.zeros(1), ring.ones(1)]))
    if zeros.dtype != np.bool_ or zeros.shape != (2,):
        return f"is_zero returns an array of {zeros.dtype}{zeros.shape} and not bool(n,)"
    return None if zeros.tolist() == [True, False] else "is_zero does not tell 0 from 1"


def _laws(ring: Ring, elements: Payloads) -> Iterator[tuple[str, Payloads, Payloads]]:
    """Each law as its text and its two sides, a row for each choice of elements."""
    add, times, count = ring.add, ring.multiply, len(elements)
    a, b, c = (elements[i.ravel()] for i in np.meshgrid(*[np.arange(count)] * 3, indexing="ij"))
    zero, one, weight = ring.zeros(len(a)), ring.ones(len(a)), np.ones(len(a), dtype=np.int64)
    yield "0 + a = a", add(zero, a), a
    yield "a + b = b + a", add(a, b), add(b, a)
    yield "(a + b) + c = a + (b + c)", add(add(a, b), c), add(a, add(b, c))
    yield "a + (-a) = 0", add(a, ring.negate(a)), zero
    yield "1 * a = a", times(one, a), a
    yield "a * 1 = a", times(a, one), a
    yield "0 * a = 0", times(zero, a), zero
    yield "(a * b) * c = a * (b * c)", times(times(a, b), c), times(a, times(b, c))
    yield "a * (b + c) = a * b + a * c", times(a, add(b, c)), add(times(a, b), times(a, c))
    yield "(a + b) * c = a * c + b * c", times(add(a, b), c), add(times(a, c), times(b, c))
    yield "3a = a + a + a", ring.scale(a, 3 * weight), add(add(a, a), a)
    yield "-2a = -(a + a)", ring.scale(a, -2 * weight), ring.negate(add(a, a))
    rows, groups = np.concatenate([a, b, c]), np.tile(np.arange(len(a)), 3)
    yield "sum_by gives (a + b) + c", ring.sum_by(rows, groups, len(a)), add(add(a, b), c)
    if ring.is_commutative:
        yield "a * b = b * a (the ring says that it is commutative)", times(a, b), times(b, a)


def _are_equal(ring: Ring, a: Payloads, b: Payloads) -> Bools:
    equal: Bools = np.logical_or(ring.is_zero(ring.add(a, ring.negate(b))), (a == b).all(axis=1))
    if ring.dtype == INT64:
        return equal
    largest = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))
    near: Bools = np.abs(a - b).max(axis=1) <= ROUNDING * largest
    return np.logical_or(equal, near)
