"""128-bit integers against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.backends.embedded.state import wide

edges = st.sampled_from([0, 1, 2**63, 2**63 - 1, 2**64, 2**64 - 1, 2**127 - 1, 10**18, 10**38, 5 * 10**17, 2**32])
wides = st.one_of(edges, edges.map(lambda x: -x), st.integers(-(2**127), 2**127 - 1), st.integers(-(2**70), 2**70))
word = st.one_of(
    st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 10**18]), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)
)
pairs = st.lists(st.tuples(wides, wides), max_size=30)
mixed = st.lists(st.tuples(wides, word), max_size=30)


def wrapped(value: int, bits: int = 128) -> int:
    """A value as two's complement of so many bits would show it."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def half_up(a: int, b: int) -> int:
    """The quotient a / b, half away from zero."""
    quotient, rest = divmod(abs(a), abs(b))
    return (quotient + (2 * rest >= abs(b))) * (1 if (a < 0) == (b < 0) else -1)


def fits(value: int) -> bool:
    """Whether a value has 128 bits."""
    return wrapped(value) == value


def words_of(values: list[int]) -> np.ndarray:
    """A column of words."""
    return np.array(values, dtype=np.int64)


@given(pairs)
def test_sums_differences_and_order(rows: list[tuple[int, int]]) -> None:
    """Sums and differences wrap around at 128 bits; order is that of the integers."""
    a, b = wide.from_ints(x for x, _ in rows), wide.from_ints(y for _, y in rows)
    assert wide.to_ints(a) == [x for x, _ in rows]
    assert wide.to_ints(wide.add(a, b)) == [wrapped(x + y) for x, y in rows]
    assert wide.to_ints(wide.subtract(a, b)) == [wrapped(x - y) for x, y in rows]
    assert wide.to_ints(wide.negate(a)) == [wrapped(-x) for x, _ in rows]
    assert wide.compare(a, b).tolist() == [(x > y) - (x < y) for x, y in rows]


@given(mixed)
def test_products_and_quotients(rows: list[tuple[int, int]]) -> None:
    """Products are exact and tell when they do not fit; quotients round half away from zero."""
    values, factors = wide.from_ints(x for x, _ in rows), words_of([y for _, y in rows])
    product, ok = wide.multiply_word(values, factors)
    assert ok.tolist() == [fits(x * y) for x, y in rows]
    assert wide.to_ints(product[ok]) == [x * y for x, y in rows if fits(x * y)]
    low = words_of([wrapped(x, 64) for x, _ in rows])
    assert wide.to_ints(wide.multiply(low, factors)) == [wrapped(x, 64) * y for x, y in rows]
    divisors = np.where(factors == 0, 3, factors)
    expected = [wrapped(half_up(x, d)) for (x, _), d in zip(rows, divisors.tolist(), strict=True)]
    assert wide.to_ints(wide.divide_word(values, divisors)) == expected


@given(st.lists(wides, max_size=30), st.integers(-39, 39))
def test_scaling_by_powers_of_ten(rows: list[int], digits: int) -> None:
    """A change of scale is exact upward and HALF_UP downward, in one or several steps."""
    scaled, ok = wide.scale(wide.from_ints(rows), digits)
    expected = [x * 10**digits if digits >= 0 else half_up(x, 10**-digits) for x in rows]
    assert ok.tolist() == [fits(x) for x in expected]
    assert wide.to_ints(scaled[ok]) == [x for x in expected if fits(x)]


@given(st.lists(wides, max_size=30))
def test_conversions(rows: list[int]) -> None:
    """Words, floats (to the nearest) and decimal digits."""
    values = wide.from_ints(rows)
    assert wide.to_float64(values).tolist() == [float(x) for x in rows]
    low, ok = wide.to_int64(values)
    assert ok.tolist() == [wrapped(x, 64) == x for x in rows]
    assert wide.to_ints(wide.from_int64(low)) == [wrapped(x, 64) for x in rows]
    for precision in (1, 18, 19, 38):
        assert wide.fits_precision(values, precision).tolist() == [abs(x) < 10**precision for x in rows]


@pytest.mark.parametrize("words", [2, 3])
@given(rows=st.lists(st.tuples(st.integers(0, 3), wides, word), max_size=30))
def test_wide_sums_per_slot_are_exact(words: int, rows: list[tuple[int, int, int]]) -> None:
    """Accumulators are sums modulo their width, so what is added and subtracted leaves no trace."""
    slots, weights = words_of([s for s, _, _ in rows]), words_of([w for _, _, w in rows])
    wide_values = wide.from_ints(x for _, x, _ in rows)
    for values, exact in (
        (wide_values, [x for _, x, _ in rows]),
        (wide_values[:, 0].copy(), [wrapped(x, 64) for _, x, _ in rows]),
    ):
        payload = np.zeros((4, 5), dtype=np.int64)
        wide.scatter_add_wide(payload, slots, values, weights, column=1, words=words)
        sums = [0] * 4
        for (slot, _, weight), value in zip(rows, exact, strict=True):
            sums[slot] += value * weight
        assert wide.to_ints(payload[:, 1 : 1 + words]) == [wrapped(total, 64 * words) for total in sums]
        if words == 3 and all(wrapped(total, 192) == total for total in sums):
            value, ok = wide.narrow(payload[:, 1:4])
            assert ok.tolist() == [fits(total) for total in sums]
            assert wide.to_ints(value[ok]) == [total for total in sums if fits(total)]
        wide.scatter_add_wide(payload, slots, values, np.negative(weights), column=1, words=words)
        if np.iinfo(np.int64).min not in weights:
            assert not payload.any()
