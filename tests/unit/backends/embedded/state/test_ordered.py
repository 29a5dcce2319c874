"""Ordered indexes against sorted lists."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.state.float_order import float_from_order, float_order
from everview.backends.embedded.state.ordered import OrderedIndex
from everview.backends.embedded.vectors import Ints

Key = tuple[int, ...]


class Model:
    """A sorted list of keys with weights and slots, and the index that should equal it."""

    def __init__(self, width: int) -> None:
        self.index = OrderedIndex(width)
        self.entries: dict[Key, tuple[int, int]] = {}

    def add(self, keys: Ints, weights: Ints, slots: Ints) -> None:
        self.index.add(keys, weights, slots)
        for row, weight, slot in zip(keys.tolist(), weights.tolist(), slots.tolist(), strict=True):
            old, kept = self.entries.get(tuple(row), (0, slot))
            self.entries[tuple(row)] = (old + weight, kept)
            if old + weight == 0:
                del self.entries[tuple(row)]

    def remove(self, keys: Ints) -> None:
        self.index.remove(keys)
        for row in keys.tolist():
            self.entries.pop(tuple(row), None)

    def keys_at(self, places: Ints) -> list[Key | None]:
        return [tuple(self.index.keys_at(np.array(p)).tolist()) if p >= 0 else None for p in places.tolist()]

    def check(self, rng: np.random.Generator) -> None:
        index, keys = self.index, sorted(self.entries)
        places = index.all()
        assert len(index) == len(keys)
        assert self.keys_at(places) == keys
        stored = zip(index.weights_at(places).tolist(), index.slots_at(places).tolist(), strict=True)
        assert list(stored) == [self.entries[key] for key in keys]
        sums = [0, *accumulate(self.entries[key][0] for key in keys)]
        for words in range(1, index.width + 1):
            prefixes = [key[:words] for key in keys]
            bounds = rng.integers(-12, 12, (12, words))
            if keys:
                bounds = np.vstack([bounds, [prefixes[i] for i in rng.integers(0, len(keys), 8)]])
            self.check_bounds(bounds, keys, prefixes, sums)
            self.check_ranges(bounds, rng.permutation(bounds), keys, prefixes)
        ranks = rng.integers(-2, len(keys) + 2, 10)
        assert self.keys_at(index.at(ranks)) == [keys[r] if 0 <= r < len(keys) else None for r in ranks]
        if all(weight > 0 for weight, _ in self.entries.values()):
            ranks = rng.integers(-2, sums[-1] + 2, 10)
            expected = [keys[bisect_right(sums, r) - 1] if 0 <= r < sums[-1] else None for r in ranks]
            assert self.keys_at(index.select(ranks)) == expected

    def check_bounds(self, bounds: Ints, keys: list[Key], prefixes: list[Key], sums: list[int]) -> None:
        index = self.index
        low = [bisect_left(prefixes, tuple(b)) for b in bounds.tolist()]
        high = [bisect_right(prefixes, tuple(b)) for b in bounds.tolist()]
        assert index.rank(bounds).tolist() == low
        assert index.rank(bounds, after=True).tolist() == high
        assert index.prefix_sum(bounds).tolist() == [sums[r] for r in low]
        assert index.prefix_sum(bounds, after=True).tolist() == [sums[r] for r in high]
        pairs = list(zip(low, high, strict=True))
        assert self.keys_at(index.first(bounds)) == [keys[a] if a < b else None for a, b in pairs]
        assert self.keys_at(index.last(bounds)) == [keys[b - 1] if a < b else None for a, b in pairs]
        assert self.keys_at(index.seek(bounds)) == [keys[a] if a < len(keys) else None for a in low]
        if bounds.shape[1] == index.width:
            assert self.keys_at(index.find(bounds)) == [
                k if k in self.entries else None for k in map(tuple, bounds.tolist())
            ]

    def check_ranges(self, low: Ints, high: Ints, keys: list[Key], prefixes: list[Key]) -> None:
        for low_open in (False, True):
            for high_open in (False, True):
                first = self.index.rank(low, after=low_open)
                counts = np.maximum(self.index.rank(high, after=not high_open) - first, 0)
                rows, places = self.index.from_ranks(first, counts)
                expected = []
                for i in range(len(low)):
                    start = (bisect_right if low_open else bisect_left)(prefixes, tuple(low[i].tolist()))
                    end = (bisect_left if high_open else bisect_right)(prefixes, tuple(high[i].tolist()))
                    expected += [(i, key) for key in keys[start:end]]
                assert list(zip(rows.tolist(), self.keys_at(places), strict=True)) == expected


@settings(max_examples=30, deadline=None)
@given(width=st.integers(1, 5), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_index_equals_sorted_list(width: int, seed: int, data: st.DataObject) -> None:
    """Whatever is added and removed, every search answers as a sorted list would."""
    rng = np.random.default_rng(seed)
    model = Model(width)
    for kind in data.draw(st.lists(st.sampled_from(["few", "many", "sorted", "remove", "remove most"]), max_size=6)):
        if kind.startswith("remove"):
            places = rng.permutation(model.index.all())
            model.remove(
                np.ascontiguousarray(model.index.keys_at(places[: len(places) // 2 if kind == "remove" else -1]))
            )
        else:
            count = 10 if kind == "few" else 600
            keys = rng.integers(-10, 10 if kind == "few" else 400, (count, width))
            if kind == "sorted":
                keys = np.ascontiguousarray(keys[np.lexsort(keys.T[::-1])])
            model.add(keys, rng.integers(-1, 4, count), rng.integers(0, 100, count))
        model.check(rng)


@pytest.mark.slow
def test_a_hundred_thousand_operations() -> None:
    """The same after 1e5 operations, one by one and many; changes that are taken back leave the entries as they were."""
    rng, model, done = np.random.default_rng(11), Model(2), 0
    while done < 100_000:
        count = int(rng.choice([1, 1, 5, 200]))
        keys = rng.integers(-12, 12, (count, 2))
        keys = keys[np.unique(keys, axis=0, return_index=True)[1]]
        weights = rng.integers(-1, 2, len(keys))
        before = model.index.entries_at(model.index.all())
        model.index.add(keys, weights)
        model.index.add(keys[::-1].copy(), -weights[::-1])
        assert np.array_equal(model.index.entries_at(model.index.all()), before)
        model.add(keys, weights, np.zeros(len(keys), dtype=np.int64))
        done += count
        if rng.random() < 0.05:
            model.check(rng)


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_trees_of_several_levels(order: str) -> None:
    """Splits and deletions through several levels of inner nodes keep order, ranks and sums, and memory comes back."""
    rng = np.random.default_rng(5)
    index = OrderedIndex(1)
    n = 60_000
    keys = np.arange(n) * 3
    arranged = (
        {"ascending": keys, "descending": keys[::-1], "shuffled": rng.permutation(keys)}[order].reshape(-1, 1).copy()
    )
    for batch in np.array_split(arranged, 7):
        index.add(batch, batch[:, 0] + 1)
    assert index.keys_at(index.all())[:, 0].tolist() == keys.tolist()
    bounds = rng.integers(-5, 3 * n + 5, (500, 1))
    sums = np.concatenate([[0], np.cumsum(keys + 1)])
    assert index.rank(bounds).tolist() == np.searchsorted(keys, bounds[:, 0]).tolist()
    assert index.prefix_sum(bounds).tolist() == sums[np.searchsorted(keys, bounds[:, 0])].tolist()
    largest = index.nbytes
    for batch in np.array_split(rng.permutation(keys[1:]).reshape(-1, 1), 11):
        index.add(batch, -batch[:, 0] - 1)
        left = index.keys_at(index.all())[:, 0]
        assert index.rank(bounds).tolist() == np.searchsorted(left, bounds[:, 0]).tolist()
    assert index.keys_at(index.last(np.array([[0]]))).tolist() == [[0]]
    assert index.nbytes < largest / 20
    index.remove(np.array([[0]]))
    assert len(index) == 0
    assert index.first(np.array([[0]])).tolist() == index.last(np.array([[0]])).tolist() == [-1]
    assert index.all().tolist() == []


def test_empty_index_and_empty_batches() -> None:
    """Nothing in, nothing out."""
    index = OrderedIndex(2)
    none = np.zeros((0, 2), dtype=np.int64)
    index.add(none, np.zeros(0, dtype=np.int64))
    index.remove(none)
    index.remove(np.array([[1, 2]]))
    assert index.first(none).tolist() == []
    assert index.from_ranks(index.rank(np.array([[1]])), np.array([0]))[1].tolist() == []
    assert index.select(np.array([0])).tolist() == [-1]


@given(st.lists(st.floats(), min_size=1))
def test_float_order_is_sparks_order(values: list[float]) -> None:
    """Integers compare as the floats do, with -0.0 = 0.0 and NaN above infinity, and come back."""
    array = np.array(values)
    order = float_order(array)
    for a, x in zip(values, order.tolist(), strict=True):
        for b, y in zip(values, order.tolist(), strict=True):
            below = a < b or (math.isnan(b) and not math.isnan(a))
            assert (x < y) == below
    assert np.array_equal(float_from_order(order), array, equal_nan=True)


class Words:
    """Texts by code, as a pool of strings has them."""

    def __init__(self, words: list[bytes]) -> None:
        self.heap = np.frombuffer(b"".join(words), dtype=np.uint8).copy()
        bounds = np.cumsum([0, *map(len, words)])
        self.spans = np.concatenate([[0, 0], np.stack([bounds[:-1], bounds[1:]], axis=1).reshape(-1)])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12)), max_size=120), st.sampled_from([1, -1]))
def test_texts_sort_by_their_bytes(rows: list[tuple[int, int]], direction: int) -> None:
    """Words that are codes are compared by what they stand for, up or down, after the words before them."""
    words = [b"b", b"", b"a", b"ab", b"\xff", b"a\0", b"abcdefghij", b"abcdefghik", b"B", b"aa", b"zz", b"z"]
    index = OrderedIndex(3, (0, direction), Words(words))
    keys = np.array([[group, code, 0] for group, code in rows], dtype=np.int64).reshape(-1, 3)
    index.add(keys, np.ones(len(keys), dtype=np.int64))
    distinct = {(group, words[code - 1]): code for group, code in rows}
    upward = sorted(distinct, key=lambda entry: entry[1], reverse=direction < 0)
    expected = [[group, distinct[group, text], 0] for group, text in sorted(upward, key=lambda entry: entry[0])]
    assert index.keys_at(index.all()).tolist() == expected
    assert (index.find(keys) >= 0).all()
    index.remove(keys)
    assert len(index) == 0
