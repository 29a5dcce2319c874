"""Ordered sums against sorted lists."""

from __future__ import annotations

import numpy as np
import pytest

from everview.backends.embedded.state.ordered_nodes import PRIORITY
from everview.backends.embedded.state.ordered_sums import COUNTED, EXACT, OrderedSums
from everview.backends.embedded.tree.layout import FLOATING
from everview.backends.embedded.vectors import Ints

Key = tuple[int, ...]
Payload = tuple[int, int, float]
OPERATIONS = 100_000


def _words(payloads: list[Payload]) -> Ints:
    """Payloads of a count, an exact sum and a float sum, as they lie in memory."""
    made = np.zeros((len(payloads), 6), dtype=np.int64)
    for row, (count, exact, value) in zip(made, payloads, strict=True):
        low = exact & (2**64 - 1)
        row[:3] = count, low - (2**64 if low >= 2**63 else 0), exact >> 64
        row[3] = np.float64(value).view(np.int64)
    return made


def _read(row: Ints) -> Payload:
    low, high = int(row[1]), int(row[2])
    return int(row[0]), (high << 64) + (low & (2**64 - 1)), float(row[3:4].view(np.float64)[0])


class Model:
    """A dictionary of payloads, and the map that should equal it."""

    def __init__(self) -> None:
        self.map = OrderedSums(2, (COUNTED, EXACT, FLOATING))
        self.held: dict[Key, Payload] = {}

    def put(self, keys: list[Key], payloads: list[Payload]) -> None:
        self.map.put(np.array(keys, dtype=np.int64).reshape(-1, 2), _words(payloads))
        for key, payload in zip(keys, payloads, strict=True):
            if payload[0]:
                self.held[key] = payload
            else:
                self.held.pop(key, None)

    def check(self, rng: np.random.Generator) -> None:
        keys = sorted(self.held)
        assert len(self.map) == len(keys)
        places = self.map.select(np.arange(len(keys)))
        assert [tuple(k) for k in self.map.keys_at(places).tolist()] == keys
        bounds = rng.integers(-60, 60, (8, 2))
        for words in (1, 2):
            cut = np.ascontiguousarray(bounds[:, :words])
            for after in (False, True):
                wanted = [
                    sum(k[:words] < tuple(b) or (after and k[:words] == tuple(b)) for k in keys) for b in cut.tolist()
                ]
                assert self.map.rank(cut, after=after).tolist() == wanted
        ends = np.sort(rng.integers(0, len(keys) + 1, (8, 2)), axis=1)
        for row, (first, last) in zip(
            self.map.between(ends[:, 0].copy(), ends[:, 1].copy()), ends.tolist(), strict=True
        ):
            inside = [self.held[k] for k in keys[first:last]]
            assert _read(row) == (sum(p[0] for p in inside), sum(p[1] for p in inside), sum(p[2] for p in inside))


def _change(rng: np.random.Generator, count: int) -> tuple[list[Key], list[Payload]]:
    keys = [(int(a), int(b)) for a, b in rng.integers(-50, 50, (count, 2))]
    return keys, [
        (0, 0, 0.0) if rng.random() < 0.45 else (1, int(rng.integers(-9, 9)) << 60, float(rng.integers(-99, 99)) / 8)
        for _ in keys
    ]


@pytest.mark.parametrize("size", [1, 50])
def test_a_hundred_thousand_changes_equal_those_of_a_dictionary(size: int) -> None:
    """Whatever is put and removed, ranks, places and the sums of ranges are those of the sorted entries."""
    rng, model = np.random.default_rng(size), Model()
    for step in range(OPERATIONS // size // (20 if size == 1 else 1)):
        model.put(*_change(rng, size))
        if step % 40 == 0:
            model.check(rng)


def test_what_is_put_back_leaves_no_trace() -> None:
    """After changes and their opposites all keys, payloads and sums are what they were, bit for bit, floats included."""
    rng = np.random.default_rng(7)
    sums = OrderedSums(1, (COUNTED, FLOATING))
    keys = rng.permutation(3000).reshape(-1, 1)
    payloads = np.zeros((3000, 4), dtype=np.int64)
    payloads[:, 0] = 1
    payloads[:, 1] = rng.normal(size=3000).view(np.int64)
    sums.put(keys, payloads)
    before = sums.between(np.arange(3000) // 2, np.arange(3000))
    touched = rng.permutation(4000)[:500].reshape(-1, 1)
    old = sums.payloads_at(sums.find(touched))
    new = old.copy()
    new[:, 0], new[:, 1] = rng.integers(0, 2, 500), rng.normal(size=500).view(np.int64)
    sums.put(touched, new)
    sums.put(touched, old)
    assert sums.between(np.arange(3000) // 2, np.arange(3000)).tobytes() == before.tobytes()


def test_the_order_of_changes_does_not_show() -> None:
    """Keys that are near each other, and complements, have priorities of their own: equal content is an equal tree."""
    rng = np.random.default_rng(2)
    keys = np.array([[a, b] for a in range(-9, 9) for b in range(-9, 9)], dtype=np.int64)
    words = []
    for _ in range(5):
        sums = OrderedSums(2, (COUNTED,))
        for key in rng.permutation(keys):
            sums.put(key.reshape(1, -1), np.ones((1, 1), dtype=np.int64))
        nodes = sums.nodes[sums.select(np.arange(len(sums)))]
        assert len(set(nodes[:, PRIORITY].tolist())) == len(keys)
        words.append(nodes[:, PRIORITY:].tobytes())
    assert len(set(words)) == 1


def test_built_at_once_is_built_one_by_one() -> None:
    """A map that is filled at once answers as one that was filled entry by entry."""
    rng = np.random.default_rng(3)
    keys = np.stack([rng.permutation(5000), rng.integers(0, 3, 5000)], axis=1)
    payloads = np.stack([np.ones(5000, dtype=np.int64), rng.integers(0, 99, 5000), np.zeros(5000, np.int64)], axis=1)
    whole, slow = OrderedSums(2, (COUNTED, EXACT)), OrderedSums(2, (COUNTED, EXACT))
    whole.put(keys, payloads)
    for start in range(0, 5000, 500):
        slow.put(np.ascontiguousarray(keys[start : start + 500]), np.ascontiguousarray(payloads[start : start + 500]))
    first, last = np.sort(rng.integers(0, 5001, (2, 100)), axis=0)
    assert np.array_equal(whole.between(first, last), slow.between(first, last))


def test_a_sum_that_leaves_its_words_is_noticed() -> None:
    """A total beyond 128 bits is told, so that nobody trusts the sums."""
    sums = OrderedSums(1, (COUNTED, EXACT))
    sums.put(np.array([[1], [2]]), np.array([[1, 0, 1 << 62], [1, 0, 1 << 62]]))
    assert sums.has_wrapped
