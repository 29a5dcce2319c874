"""Slices against dictionaries of sets."""

from __future__ import annotations

import numpy as np
import pytest

from everview.backends.embedded.state.slices import SliceIndex
from everview.backends.embedded.state.weight_map import WeightMap


@pytest.mark.parametrize(("width", "columns"), [(1, (0,)), (2, (1,)), (3, (2, 0)), (5, (1, 3, 4))])
def test_slices_follow_their_map(width: int, columns: tuple[int, ...]) -> None:
    """After every batch of insertions and deletions, and after renumbering, a slice has exactly the matching entries."""
    rng = np.random.default_rng(width)
    zset = WeightMap(width)
    index = SliceIndex(zset, columns)
    for step in range(90):
        keys = rng.integers(0, 6 if width > 1 else 300, (int(rng.integers(0, 200)), width))
        weights = rng.integers(-2, 3, len(keys))
        if step % 30 == 29:
            live = zset.live_slots()
            keys, weights = zset.keys[live].copy(), -zset.weights[live]
        changes = zset.add_weights(keys, weights)
        index.remove(changes.slots[(changes.old != 0) & (changes.new == 0)])
        index.add(changes.slots[(changes.old == 0) & (changes.new != 0)])
        if step % 20 == 10:
            zset.compact()
        if step % 20 == 15:
            zset.trim()
            index = SliceIndex(zset, columns)
            index.build()
        live = zset.keys[zset.live_slots()]
        subkeys = np.vstack([np.unique(live[:, columns], axis=0), np.full((1, len(columns)), -1)])
        subkeys = np.ascontiguousarray(np.vstack([subkeys, subkeys[:1]]))
        rows, slots = index.expand(subkeys)
        members: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for key in live.tolist():
            members.setdefault(tuple(key[c] for c in columns), []).append(tuple(key))
        expected = [(row, key) for row, sub in enumerate(subkeys.tolist()) for key in members.get(tuple(sub), ())]
        found = list(zip(rows.tolist(), map(tuple, zset.keys[slots].tolist()), strict=True))
        assert sorted(found) == sorted(expected)
        assert rows.tolist() == sorted(rows.tolist())
        assert index.count(subkeys).tolist() == np.bincount(rows, minlength=len(subkeys)).tolist()
        assert len(index) == len(subkeys) - 2 if len(live) else len(index) == 0
        assert index.slots_of(subkeys[0]).tolist() == slots[rows == 0].tolist()


def test_slices_give_memory_back() -> None:
    """An index whose slots are all gone is small again."""
    zset = WeightMap(2)
    index = SliceIndex(zset, (0,))
    keys = np.stack([np.arange(10_000), np.arange(10_000)], axis=1)
    ones = np.ones(10_000, dtype=np.int64)
    index.add(zset.add_weights(keys, ones).slots)
    largest = index.nbytes
    index.remove(zset.add_weights(keys, -ones).slots)
    zset.trim()
    index.add(zset.add_weights(keys[:1], ones[:1]).slots)
    assert index.nbytes < largest / 50


def test_wrong_slots_are_refused() -> None:
    """Adding a slot twice, or removing one that is not held, would corrupt the lists: it fails instead."""
    zset = WeightMap(1)
    index = SliceIndex(zset, (0,))
    slots = zset.upsert(np.array([[1]]))
    index.add(slots)
    with pytest.raises(AssertionError, match="already"):
        index.add(slots)
    index.remove(slots)
    with pytest.raises(AssertionError, match="not in the index"):
        index.remove(slots)
    index.add(slots)
    index.clear()
    assert index.count(np.array([[1]])).tolist() == [0]
