"""Elements of rings as parts of payloads: the kernels add, scale, log and undo them as the rings themselves do."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from everview.algebra.finite_algebra import FiniteAlgebra, Term, covariance_ring, terms_of
from everview.algebra.floats import FLOATS
from everview.algebra.integers import INTEGERS
from everview.algebra.ring import FLOAT64, Addition, Payloads, Ring
from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.tree.instruction import NONE, assembled
from everview.backends.embedded.tree.instructions import (
    FindEntries,
    Group,
    Multiply,
    MultiplyByTable,
    SumGroups,
    Upsert,
)
from everview.backends.embedded.tree.kernels.transactions import settle, undo
from everview.backends.embedded.tree.layout import (
    COUNTED,
    RING_FLOATS,
    RING_INTS,
    RING_PAIRS,
    ring_kind,
    words_of,
)
from everview.backends.embedded.tree.machine import RegisterMachine, Scratch
from everview.backends.embedded.tree.pauses import MaskPause
from everview.backends.embedded.tree.view_map import ViewMap
from everview.backends.embedded.vectors import Ints


class Plain(Ring):
    """Pairs of plain floats, multiplied one by one."""

    width = 2

    def ones(self, count: int) -> Payloads:
        return np.ones((count, 2))

    def multiply(self, a: Payloads, b: Payloads) -> Payloads:
        return a * b


RINGS: dict[str, tuple[Ring, int]] = {
    "integers": (covariance_ring(2, INTEGERS), RING_INTS),
    "plain floats": (Plain(), RING_FLOATS),
    "double-doubles": (FiniteAlgebra(FLOATS, 2, {(0, 0): {0: 1}, (0, 1): {1: 1}, (1, 0): {1: 1}}), RING_PAIRS),
}

KEYS, WEIGHTS, WORDS = 0, 1, 2
"""The given registers of frame 0; those of an element's words come last."""


class Parts:
    """A view of (count, element) by one key, fed by GROUP, SUM and UPSERT, then joined with itself by LOOKUP and MULTIPLY.

    With the terms of a table, the elements that were added are multiplied by those of the view, too.
    """

    def __init__(self, kind: int, terms: Iterable[Term] = ()) -> None:
        self.width = width = words_of(kind)
        self.view = ViewMap(1, [COUNTED, kind])
        self._views = np.array([self.view.address, 0], dtype=np.int64)
        given = WORDS + width
        numbers, key, count, element = given, given + 1, given + 2, given + 3
        slots = element + width
        rows, found, self._left, self._right = slots + 1, slots + 2, slots + 3, slots + 3 + width
        self._product = self._right + width
        last = self._product + width
        by_count = (kind, element, COUNTED, self.view.offsets[0])
        by_element = (COUNTED, count, kind, self.view.offsets[1])
        self._code = assembled(
            [
                Group(0, 1, numbers, NONE, (KEYS,), (key,)),
                SumGroups(0, 1, numbers, COUNTED, WEIGHTS, NONE, count, NONE),
                SumGroups(0, 1, numbers, kind, WORDS, WEIGHTS, element, NONE),
                Upsert(0, 1, slots, (key,), (count, element)),
                FindEntries(0, 1, 2, rows, found, (key,)),
                Multiply(2, rows, 0, found, *by_count, self._left),
                Multiply(2, rows, 0, found, *by_element, self._right),
                MultiplyByTable(
                    2,
                    rows,
                    0,
                    found,
                    kind,
                    element,
                    self.view.offsets[1],
                    self._product,
                    tuple(n for t in terms for n in t),
                ),
            ]
        )
        frames = [[*range(given), numbers], list(range(key, rows)), list(range(rows, last))]
        self._machine = RegisterMachine(
            self._code,
            frames,
            last,
            set(range(given)),
            (),
            [self.view],
            self._views,
            Scratch(),
            _no_mask,
        )
        self.scaled: tuple[Ints, Ints] = (np.zeros((0, width), dtype=np.int64), np.zeros((0, width), dtype=np.int64))

    def add(self, keys: Ints, weights: Ints, payloads: Payloads) -> None:
        """Adds weight · payload to the element of each key."""
        machine = self._machine
        words = np.ascontiguousarray(payloads.view(np.int64).T)
        arrays = [keys, weights, *words]
        machine._registers[: len(arrays)] = [address_of(a) for a in arrays]
        machine._rows[0] = len(keys)
        if len(keys) > machine._capacities[0]:
            machine._grow(0, len(keys))
        machine._run()
        left, right = (machine.registers(2, range(first, first + self.width)) for first in (self._left, self._right))
        self.product = np.stack(machine.registers(2, range(self._product, self._product + self.width)), axis=1).copy()
        self.scaled = np.stack(left, axis=1).copy(), np.stack(right, axis=1).copy()

    def held(self, ring: Ring) -> dict[int, list[float]]:
        """The elements by key."""
        entries = self.view.entries[self.view.live_slots()]
        elements = np.ascontiguousarray(entries[:, 2 : 2 + self.width]).view(ring.dtype)
        return dict(zip(entries[:, 0].tolist(), elements.tolist(), strict=True))

    def end(self, *, is_undone: bool) -> None:
        """Ends the transaction."""
        end = undo if is_undone else settle
        end(address_of(self._views), 1)


def _no_mask(_pause: MaskPause, _columns: list[Ints]) -> Ints:
    raise AssertionError("nothing pauses here")


def _payloads(ring: Ring, rng: np.random.Generator, rows: int) -> Payloads:
    """Whole numbers: whatever is added to them in whatever order, they do not round."""
    payloads = rng.integers(-(2**20), 2**20, (rows, ring.width)).astype(ring.dtype)
    if ring.addition is Addition.PAIRS:
        payloads[:, 1::2] = rng.integers(-100, 100, (rows, ring.width // 2)) * 2.0**-60
    return payloads


@pytest.mark.parametrize("name", RINGS)
def test_elements_are_added_as_the_ring_does(name: str) -> None:
    """Over many batches with weights of both signs, and transactions that are taken back, a map holds the ring's own sums."""
    ring, how = RINGS[name]
    parts = Parts(ring_kind(ring.width, how))
    rng = np.random.default_rng(7)
    sums = ring.zeros(10)
    parts.add(np.arange(10), np.full(10, 10**6), sums)  # rows enough for all keys to stay
    parts.end(is_undone=False)
    for step in range(40):
        rows = int(rng.integers(1, 200))
        keys, weights = rng.integers(0, 10, rows), rng.integers(-3, 4, rows)
        payloads = _payloads(ring, rng, rows)
        parts.add(keys, weights, payloads)
        is_undone = step % 3 == 2
        if not is_undone:
            sums = ring.add(sums, ring.sum_by(ring.scale(payloads, weights), keys, 10))
        parts.end(is_undone=is_undone)
        assert parts.held(ring) == dict(enumerate(sums.tolist())), step


@pytest.mark.parametrize("name", RINGS)
def test_elements_are_scaled_as_the_ring_does(name: str) -> None:
    """A product with a number of rows, from either side, is the ring's multiple."""
    ring, how = RINGS[name]
    parts = Parts(ring_kind(ring.width, how))
    rng = np.random.default_rng(8)
    payloads = _payloads(ring, rng, 5)
    weights = np.array([3, -2, 1, 5, 0])
    parts.add(np.arange(5), weights, payloads)
    expected = ring.scale(ring.scale(payloads, weights), weights).tolist()
    for scaled in parts.scaled:
        assert scaled.view(ring.dtype).tolist() == expected


def test_double_doubles_are_added_to_the_last_bit() -> None:
    """Row by row, numbers of any size come to the very words that the ring computes."""
    ring, how = RINGS["double-doubles"]
    parts = Parts(ring_kind(ring.width, how))
    rng = np.random.default_rng(9)
    total = ring.zeros(1)
    parts.add(np.zeros(1, dtype=np.int64), np.array([10**6]), total)
    for _ in range(300):
        values = rng.normal(0, 1, (1, 2)) * 10.0 ** rng.integers(-12, 12, (1, 2))
        payload = np.stack([values, values * rng.normal(0, 2.0**-54, (1, 2))], axis=2).reshape(1, 4)
        weight = rng.choice([-1, 1], 1)
        parts.add(np.zeros(1, dtype=np.int64), weight, payload)
        parts.end(is_undone=False)
        total = ring.add(total, ring.scale(payload, weight))
        assert parts.held(ring) == {0: total[0].tolist()}


COMPLEX = {(0, 0): {0: 1}, (0, 1): {1: 1}, (1, 0): {1: 1}, (1, 1): {0: -1}}
MATRICES = {(2 * i + j, 2 * j + k): {2 * i + k: 1} for i in (0, 1) for j in (0, 1) for k in (0, 1)}
TABLES: dict[str, tuple[Ring, int]] = {
    "integers": (INTEGERS, RING_INTS),
    "floats": (FLOATS, RING_PAIRS),
    "complex": (FiniteAlgebra(FLOATS, 2, COMPLEX), RING_PAIRS),
    "matrices": (FiniteAlgebra(INTEGERS, 4, MATRICES, unit={0: 1, 3: 1}), RING_INTS),
    "matrices of floats": (FiniteAlgebra(FLOATS, 4, MATRICES, unit={0: 1, 3: 1}), RING_PAIRS),
    "covariances": (covariance_ring(3), RING_PAIRS),
    "counts of squares": (covariance_ring(2, INTEGERS), RING_INTS),
}


@pytest.mark.parametrize("name", TABLES)
def test_elements_are_multiplied_as_the_ring_does(name: str) -> None:
    """By its table, to the last bit: what a batch adds, times what the view then holds; infinite numbers too."""
    ring, how = TABLES[name]
    terms = terms_of(ring)
    assert terms is not None
    parts = Parts(ring_kind(ring.width, how), terms)
    rng = np.random.default_rng(10)
    for step in range(30):
        keys = rng.permutation(40)[: int(rng.integers(1, 40))]
        payloads = _payloads(ring, rng, len(keys))
        if how == RING_PAIRS:
            payloads *= 10.0 ** rng.integers(-12, 12, (len(keys), 1))
            if step > 20:
                payloads[0, ::2] = [np.inf, -np.inf, np.nan, 1e298, -1e298][step % 5]
        parts.add(keys, np.ones(len(keys), dtype=np.int64), payloads)
        held = parts.held(ring)
        there = np.array([held[k] for k in keys.tolist()], dtype=ring.dtype)
        with np.errstate(all="ignore"):
            expected = ring.multiply(payloads, there)
        np.testing.assert_array_equal(parts.product.view(ring.dtype), expected)
        parts.end(is_undone=False)


def test_which_rings_multiply_by_a_table() -> None:
    """Those that say nothing of their own about it, over plain numbers."""

    class Own(FiniteAlgebra):
        def multiply(self, a: Payloads, b: Payloads) -> Payloads:
            return b

    class Odd(type(INTEGERS)):  # type: ignore[misc]
        def add(self, a: Payloads, b: Payloads) -> Payloads:
            return a ^ b

    assert terms_of(FLOATS) == terms_of(INTEGERS) == ((0, 0, 0, 1),)
    assert terms_of(Plain()) is None
    assert terms_of(Own(FLOATS, 2, COMPLEX)) is None
    assert terms_of(Odd()) is None
    assert terms_of(FiniteAlgebra(FiniteAlgebra(INTEGERS, 2, COMPLEX), 2, COMPLEX)) is None


@pytest.mark.parametrize("name", RINGS)
def test_an_entry_without_rows_goes(name: str) -> None:
    """Where the count is 0 a float may have left a residue, which goes with the entry; words of integers are 0 as well."""
    ring, how = RINGS[name]
    parts = Parts(ring_kind(ring.width, how))
    payloads = np.full((6, ring.width), 3, dtype=ring.dtype)
    if ring.dtype == FLOAT64:
        payloads[:, ::2] = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.3])[:, None]
    parts.add(np.zeros(6, dtype=np.int64), np.array([1, 1, 1, -1, -1, -1]), payloads)
    parts.end(is_undone=False)
    assert parts.held(ring) == {}


def test_how_rings_add() -> None:
    """What a ring says of its addition is what the kernels may do."""
    assert {name: ring.addition for name, (ring, _) in RINGS.items()} == {
        "integers": Addition.WORDS,
        "plain floats": Addition.WORDS,
        "double-doubles": Addition.PAIRS,
    }

    class Own(Plain):
        def add(self, a: Payloads, b: Payloads) -> Payloads:
            return np.maximum(a, b)

    assert Own().addition is Addition.OWN
