"""The laws of every ring that everview has, on generated elements."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.algebra.finite_algebra import FiniteAlgebra, MonomialRing, covariance_ring
from everview.algebra.floats import FLOATS
from everview.algebra.integers import INTEGERS
from everview.algebra.laws import broken_law, shape_problem
from everview.algebra.ring import Payloads, Ring

COMPLEX_TABLE = {(0, 0): {0: 1}, (0, 1): {1: 1}, (1, 0): {1: 1}, (1, 1): {0: -1}}
MATRIX_TABLE = {(2 * i + j, 2 * j + k): {2 * i + k: 1} for i in range(2) for j in range(2) for k in range(2)}

RINGS: dict[str, Ring] = {
    "integers": INTEGERS,
    "floats": FLOATS,
    "gauss": FiniteAlgebra(INTEGERS, 2, COMPLEX_TABLE),
    "complex": FiniteAlgebra(FLOATS, 2, COMPLEX_TABLE),
    "matrices": FiniteAlgebra(INTEGERS, 4, MATRIX_TABLE, unit={0: 1, 3: 1}),
    "covariance": covariance_ring(2, INTEGERS),
    "cubes": MonomialRing(INTEGERS, [(0, 0, 0), (0, 1)]),
}

words = st.integers(-(2**63), 2**63 - 1)
dyadic = st.integers(-(2**20), 2**20).map(lambda n: n / 1024)  # sums and products of three fit 106 bits: no rounding


def element(ring: Ring, draw: Any) -> Payloads:
    """One payload of a ring, from its components' own elements."""
    if isinstance(ring, FiniteAlgebra):
        return ring.assemble({i: element(ring.base, draw) for i in range(ring.dimension)}, 1)
    if ring is FLOATS:
        return np.array([[draw(dyadic), 0.0]])
    return np.array([[draw(words) for _ in range(ring.width)]], dtype=np.int64)


@st.composite
def elements(draw: Any, ring: Ring) -> Payloads:
    """Three payloads of a ring."""
    return np.concatenate([element(ring, draw) for _ in range(3)])


@pytest.mark.parametrize("name", RINGS)
@given(data=st.data())
def test_the_laws_hold(name: str, data: st.DataObject) -> None:
    """Definition 1, commutativity where it is claimed, multiples and sums: on arbitrary elements, to the last bit."""
    ring = RINGS[name]
    assert broken_law(ring, data.draw(elements(ring))) is None


@pytest.mark.parametrize("name", RINGS)
@given(data=st.data())
def test_equal_means_equal_words(name: str, data: st.DataObject) -> None:
    """The two sides of distributivity are the same words, not only near: nothing rounds on these elements."""
    ring = RINGS[name]
    a, b, c = (p.reshape(1, -1) for p in data.draw(elements(ring)))
    left = ring.multiply(a, ring.add(b, c))
    right = ring.add(ring.multiply(a, b), ring.multiply(a, c))
    assert ring.is_zero(ring.add(left, ring.negate(right))).tolist() == [True]


@pytest.mark.parametrize("name", RINGS)
@given(data=st.data())
def test_sum_by_is_addition_one_by_one(name: str, data: st.DataObject) -> None:
    """The sum of a group is what adding its rows in order gives; a group without rows is 0."""
    ring = RINGS[name]
    rows = data.draw(elements(ring))[data.draw(st.lists(st.integers(0, 2), max_size=9))]
    groups = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))), dtype=np.int64)
    sums = ring.sum_by(rows, groups, 5)
    expected = ring.zeros(5)
    for row, group in zip(rows, groups, strict=True):
        expected[group] = ring.add(expected[group : group + 1], row[None, :])[0]
    assert shape_problem(ring, sums, 5) is None
    assert ring.is_zero(ring.add(sums, ring.negate(expected))).all()


@pytest.mark.parametrize("name", ["integers", "floats", "gauss", "complex", "covariance"])
@given(data=st.data())
def test_sums_can_be_pushed_below_a_join(name: str, data: st.DataObject) -> None:
    """Σ over a join = join of the sums: what view trees rest on, with the protocol's own operations on both sides."""
    ring = RINGS[name]
    pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(-9, 9), st.integers(-2, 2)), min_size=1, max_size=6)
    r, s = (np.array(data.draw(pairs), dtype=np.int64) for _ in range(2))
    lift = [ring.scale(ring.lift(i, side[:, 1]), side[:, 2]) for i, side in enumerate((r, s))]
    below = ring.multiply(*(ring.sum_by(p, side[:, 0], 3) for p, side in zip(lift, (r, s), strict=True)))
    left, right = np.nonzero(r[:, None, 0] == s[None, :, 0])
    above = ring.sum_by(ring.multiply(lift[0][left], lift[1][right]), r[left, 0], 3)
    assert ring.is_zero(ring.add(below, ring.negate(above))).all()


def test_only_matrices_do_not_commute() -> None:
    """An algebra finds out from its table whether it commutes."""
    assert [name for name, ring in RINGS.items() if not ring.is_commutative] == ["matrices"]


@given(st.lists(st.tuples(words, words), min_size=1, max_size=20))
def test_integers_are_exact_where_the_result_fits(pairs: list[tuple[int, int]]) -> None:
    """A sum of products is the true one modulo 2^64, whatever overflows on the way."""
    a, b = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    products = INTEGERS.multiply(INTEGERS.lift(0, a), INTEGERS.lift(1, b))
    (total,) = INTEGERS.sum_by(products, np.zeros(len(pairs), dtype=np.int64), 1).ravel().tolist()
    assert (total - sum(x * y for x, y in pairs)) % 2**64 == 0


@given(
    st.lists(st.floats(-1e9, 1e9), max_size=20),
    st.lists(st.floats(-1e9, 1e9), max_size=20),
    st.randoms(use_true_random=False),
)
def test_floats_forget(kept: list[float], passing: list[float], random: Any) -> None:
    """Values that came and went, in any order, leave the very floats that a sum without them has."""
    changes = [(v, 1) for v in [*kept, *passing]] + [(v, -1) for v in passing]
    random.shuffle(changes)
    values, weights = (np.array(c) for c in zip(*changes, strict=True)) if changes else (np.zeros(0), np.zeros(0))
    rows = FLOATS.scale(FLOATS.lift(0, values.astype(float)), weights.astype(np.int64))
    total = FLOATS.sum_by(rows, np.zeros(len(rows), dtype=np.int64), 1)
    exact = float(sum((Fraction(v) for v in kept), Fraction()))
    assert float(FLOATS.values(total)[0]) == pytest.approx(exact, rel=1e-15, abs=1e-18)
    if not kept:
        assert abs(total).max() < 1e-18


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_plain_floats_would_not(values: list[float]) -> None:
    """One by one in and out again through `add` alone leaves an exact zero where everything fits 106 bits."""
    scaled = [round(v * 1024) / 1024 for v in values]
    total = FLOATS.zeros(1)
    for v in [*scaled, *(-v for v in scaled)]:
        total = FLOATS.add(total, FLOATS.lift(0, np.array([v])))
    assert FLOATS.is_zero(total).tolist() == [True]


@given(st.floats(-1e100, 1e100), words)
def test_multiples_of_floats_by_whole_words(value: float, weight: int) -> None:
    """A weight of 64 bits counts to the last one."""
    scaled = FLOATS.scale(FLOATS.lift(0, np.array([value])), np.array([weight], dtype=np.int64))
    exact = Fraction(value) * weight
    assert abs(Fraction(scaled[0, 0]) + Fraction(scaled[0, 1]) - exact) <= abs(exact) / 2**100 + Fraction(1, 2**1000)


def test_float_products_keep_their_error() -> None:
    """(1 + 2^-30)² has 61 bits, which one float has not."""
    x = FLOATS.lift(0, np.array([1 + 2.0**-30]))
    high, low = FLOATS.multiply(x, x)[0]
    assert Fraction(high) + Fraction(low) == Fraction(1 + 2.0**-30) ** 2


def test_floats_that_overflow_stay_infinite() -> None:
    """What R cannot hold is infinite, not NaN by accident."""
    huge = FLOATS.lift(0, np.array([1e300, np.inf]))
    assert FLOATS.values(FLOATS.multiply(huge, huge)).tolist() == [np.inf, np.inf]
    assert FLOATS.values(FLOATS.add(huge, huge)).tolist() == [2e300, np.inf]


@given(st.lists(st.tuples(*[st.integers(-50, 50)] * 3), min_size=1, max_size=10))
def test_covariance_ring_is_definition_32(rows: list[tuple[int, int, int]]) -> None:
    """Σ Π lift gives the count, the sums and the sums of products; the product is the paper's formula."""
    ring = covariance_ring(3, INTEGERS)
    columns = np.array(rows, dtype=np.int64)
    product = ring.lift(0, columns[:, 0])
    for j in (1, 2):
        product = ring.multiply(product, ring.lift(j, columns[:, j]))
    ((count, *rest),) = ring.values(ring.sum_by(product, np.zeros(len(rows), dtype=np.int64), 1))
    assert count == len(rows)
    assert rest[:3] == columns.sum(axis=0).tolist()
    assert rest[3:] == [sum(r[i] * r[j] for r in rows) for i in range(3) for j in range(i, 3)]


@given(st.data())
def test_covariance_product_is_the_papers(data: st.DataObject) -> None:
    """(c, s, Q) * (c', s', Q') = (cc', c's + cs', c'Q + cQ' + ss'ᵀ + s'sᵀ), also on elements that no lift makes."""
    ring = covariance_ring(2, INTEGERS)

    def triple(payload: Payloads) -> tuple[int, Any, Any]:
        c, s0, s1, q00, q01, q11 = payload[0].tolist()
        return c, np.array([s0, s1]), np.array([[q00, q01], [q01, q11]])

    small = st.lists(st.integers(-9, 9), min_size=6, max_size=6)
    a, b = (np.array([data.draw(small)], dtype=np.int64) for _ in range(2))
    (c, s, q), (d, t, r) = triple(a), triple(b)
    product = triple(ring.multiply(a, b))
    assert product[0] == c * d
    assert product[1].tolist() == (d * s + c * t).tolist()
    assert product[2].tolist() == (d * q + c * r + np.outer(s, t) + np.outer(t, s)).tolist()


@pytest.mark.parametrize(
    ("table", "unit", "message"),
    [
        ({(0, 0): {0: 1}, (0, 1): {1: 1}}, None, "does not leave basis element 1"),
        ({(0, 0): {0: 1}, (0, 5): {1: 1}}, None, "names the basis elements"),
        (
            {
                (0, 0): {0: 1},
                (0, 1): {1: 1},
                (1, 0): {1: 1},
                (0, 2): {2: 1},
                (2, 0): {2: 1},
                (1, 1): {2: 1},
                (1, 2): {1: 1},
            },
            None,
            "not associative",
        ),
    ],
)
def test_tables_that_are_no_algebra(table: Any, unit: Any, message: str) -> None:
    """A multiplication table without a unit, out of range or not associative is refused."""
    with pytest.raises(ValueError, match=message):
        FiniteAlgebra(INTEGERS, 3 if "assoc" in message else 2, table, unit)


def test_coefficients_must_commute() -> None:
    """An algebra over a ring that does not commute would not be one."""
    with pytest.raises(ValueError, match="commute"):
        FiniteAlgebra(RINGS["matrices"], 2, COMPLEX_TABLE)
