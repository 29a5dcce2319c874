"""Hash maps against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from everview.backends.embedded.state.consolidate import consolidate
from everview.backends.embedded.state.keymap import SMALLEST, KeyMap
from everview.backends.embedded.state.keymap_kernels import BITS, LONG, LONGEST, MODE
from everview.backends.embedded.state.memory import address_of
from everview.backends.embedded.state.probing import hash_entry
from everview.backends.embedded.state.slot_array import SlotArray
from everview.backends.embedded.state.weight_map import WeightMap
from everview.backends.embedded.vectors import Ints

Key = tuple[int, ...]

words = st.one_of(
    st.integers(0, 9),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 40).map(lambda x: x << 32),
    st.integers(0, 40).map(lambda x: x * 65536),
)
seeds = st.integers(0, 2**32 - 1)


def matrix(keys: list[Key], width: int) -> Ints:
    """Key tuples as a matrix."""
    return np.array(keys, dtype=np.int64).reshape(len(keys), width)


def tuples(keys: Ints) -> list[Key]:
    """The rows of a matrix as tuples."""
    return [tuple(row) for row in keys.tolist()]


class MapMachine(RuleBasedStateMachine):
    """A KeyMap with a payload against a dictionary from key to slot and payload."""

    @initialize(width=st.integers(1, 5))
    def start(self, width: int) -> None:
        self.map = KeyMap(width, inline=1)
        self.payload = SlotArray(self.map, np.float64, 2)
        self.model: dict[Key, int] = {}
        self.marks: dict[Key, float] = {}

    def note(self, keys: list[Key], slots: Ints) -> None:
        for key, slot in zip(keys, slots.tolist(), strict=True):
            assert self.model.setdefault(key, slot) == slot
            self.marks.setdefault(key, 0.0)

    @rule(data=st.data())
    def upsert(self, data: st.DataObject) -> None:
        key = st.tuples(*[words] * self.map.width)
        keys = data.draw(st.lists(key, max_size=20))
        known = set(self.model)
        slots, created = self.map.upsert_new(matrix(keys, self.map.width))
        for position, (k, is_new) in enumerate(zip(keys, created.tolist(), strict=True)):
            assert is_new == (k not in known and k not in keys[:position])
        self.note(keys, slots)
        self.map.inline[slots, 0] = 7

    @rule(seed=seeds, count=st.sampled_from([1, 100, 700]), stride=st.sampled_from([1, 8, 1 << 20, 1 << 44]))
    def upsert_many(self, seed: int, count: int, stride: int) -> None:
        rng = np.random.default_rng(seed)
        keys = rng.integers(0, count, (count, self.map.width)) * stride
        self.note(tuples(keys), self.map.upsert(keys))

    @rule(data=st.data(), number=st.integers(0, 9))
    def insert(self, data: st.DataObject, number: int) -> None:
        key = st.tuples(*[words] * self.map.width)
        keys = data.draw(st.lists(key, max_size=20))
        new = next((i for i, k in enumerate(keys) if k in self.model or k in keys[:i]), len(keys))
        slots = self.map.insert(matrix(keys, self.map.width), number)
        assert len(slots) == new
        assert self.map.inline[slots, 0].tolist() == list(range(number, number + new))
        self.note(keys[:new], slots)

    @rule(seed=seeds, share=st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    def remove(self, seed: int, share: float) -> None:
        keys = list(self.model)
        chosen = [keys[i] for i in np.random.default_rng(seed).permutation(len(keys))[: int(len(keys) * share)]]
        self.map.remove(np.array([self.model.pop(k) for k in chosen], dtype=np.int64))
        for key in chosen:
            del self.marks[key]

    @rule(value=st.floats(0, 9))
    def pay(self, value: float) -> None:
        for key, slot in self.model.items():
            self.payload.data[slot] += value
            self.marks[key] += value

    @rule()
    def compact(self) -> None:
        old = self.map.compact().tolist()
        renumbered = {slot: new for new, slot in enumerate(old)}
        self.model = {key: renumbered[slot] for key, slot in self.model.items()}

    @rule()
    def trim(self) -> None:
        self.map.trim()

    @rule()
    def copy(self) -> None:
        twin = self.map.copy()
        if self.model:
            self.map.remove(self.map.live_slots())
        assert sorted(twin.live_slots().tolist()) == sorted(self.model.values())
        self.map = twin
        self.payload = SlotArray(twin, np.float64, 2)
        self.marks = dict.fromkeys(self.model, 0.0)

    @rule()
    def clear(self) -> None:
        self.map.clear()
        self.model.clear()
        self.marks.clear()

    @rule(extra=st.integers(0, 1000))
    def reserve(self, extra: int) -> None:
        self.map.reserve(extra)
        assert self.map.capacity >= len(self.map) + extra

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "map"):
            return
        assert len(self.map) == len(self.model)
        assert self.map.live_slots().tolist() == sorted(self.model.values())
        keys = list(self.model)
        slots = self.map.find(matrix(keys, self.map.width))
        assert slots.tolist() == list(self.model.values())
        assert tuples(self.map.keys[slots]) == keys
        assert self.map.find(matrix([(-77,) * self.map.width], self.map.width)).tolist() == [-1]
        assert self.payload.data[slots, 1].tolist() == list(self.marks.values())
        assert np.count_nonzero(self.payload.data[:, 0]) == sum(mark != 0 for mark in self.marks.values())


TestMap = MapMachine.TestCase
TestMap.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_add_weights_is_addition_of_zsets(width: int) -> None:
    """Old and new weights are reported once per distinct row, in order, and zeros vanish, through growth and shrinking."""
    rng = np.random.default_rng(width)
    zset, model = WeightMap(width), dict[Key, int]()
    payload = SlotArray(zset, np.int64)
    for step in range(150):
        count, domain = int(rng.integers(0, 300)), int(rng.choice([2, 10, 60]))
        keys = rng.integers(0, domain, (count, width)) * int(rng.choice([1, 65536, 1 << 40]))
        weights = rng.integers(-2, 3, count)
        if step % 40 == 39:
            live = zset.live_slots()
            keys, weights = zset.keys[live].copy(), -zset.weights[live]
        before: dict[Key, int] = {}
        for key, weight in zip(tuples(keys), weights.tolist(), strict=True):
            before.setdefault(key, model.get(key, 0))
            model[key] = model.get(key, 0) + weight
        changes = zset.add_weights(keys, weights)
        assert tuples(keys[changes.rows]) == tuples(zset.keys[changes.slots]) == list(before)
        assert changes.old.tolist() == list(before.values())
        assert changes.new.tolist() == [model[key] for key in before]
        model = {key: weight for key, weight in model.items() if weight}
        payload.data[changes.slots[changes.new != 0]] = 1
        live = zset.live_slots()
        assert dict(zip(tuples(zset.keys[live]), zset.weights[live].tolist(), strict=True)) == model
        assert int(payload.data.sum()) == len(model) == len(zset)
        assert zset.weights_of(keys).tolist() == [model.get(key, 0) for key in tuples(keys)]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), width=st.integers(1, 4))
def test_consolidate_sums_equal_rows(data: st.DataObject, width: int) -> None:
    """Equal rows are summed, zero sums dropped, first occurrences kept in order."""
    rows = data.draw(st.lists(st.tuples(st.tuples(*[words] * width), st.integers(-2, 2)), max_size=60))
    model: dict[Key, int] = {}
    for key, weight in rows:
        model[key] = model.get(key, 0) + weight
    keys = matrix([key for key, _ in rows], width)
    first, sums = consolidate(keys, np.array([weight for _, weight in rows], dtype=np.int64))
    expected = {key: weight for key, weight in model.items() if weight}
    assert list(zip(tuples(keys[first]), sums.tolist(), strict=True)) == list(expected.items())


PATTERNS = {
    "dense": np.arange(30_000),
    "negative": -np.arange(30_000),
    "stride 65536": np.arange(30_000) * 65536,
    "stride 100000": np.arange(30_000) * 100_000,
    "stride 2^40": np.arange(30_000) << 40,
    "grid": (np.arange(30_000) // 700 << 20) | (np.arange(30_000) % 700),
    "floats": np.arange(30_000).astype(np.float64).view(np.int64),
    # The multiplicative inverse of the hash's factor: its multiples are neighbours in the table, all in one run.
    "against the hash": np.arange(30_000) * np.array(pow(-7046029254386353131, -1, 2**64), np.uint64).astype(np.int64),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("width", [1, 2])
def test_no_pattern_of_keys_makes_long_probes(name: str, width: int) -> None:
    """Keys that cluster at their own places move the map to the hash, so probes stay short whatever the pattern."""
    keys = np.zeros((30_000, width), dtype=np.int64)
    keys[:, -1] = PATTERNS[name]
    keymap = KeyMap(width)
    keymap.upsert(keys)
    occupied = np.flatnonzero(keymap._table)
    slots = (keymap._table[occupied].astype(np.int64) & keymap._meta[BITS]) - 1
    entries, stride, mode = address_of(keymap.store), keymap.store.strides[0], keymap._meta[MODE]
    hashes = np.array([hash_entry(entries + slot * stride, 0, width, mode) for slot in slots])
    distance = (occupied - hashes) % len(keymap._table)
    assert len(occupied) == 30_000
    assert distance.max() <= min(64, keymap._meta[LONGEST])
    assert distance.mean() <= 1
    if name == "dense" and width == 1:
        assert mode == 0
    first, _ = consolidate(keys, np.ones(30_000, dtype=np.int64))
    assert len(first) == 30_000


@pytest.mark.parametrize("width", [1, 2])
def test_without_memory_for_another_hash_the_old_one_stays(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Where keys lie too far from their places, and there is no memory to place them anew, all are found as before."""
    keys = np.zeros((30_000, width), dtype=np.int64)
    keys[:, 0] = PATTERNS["against the hash" if width == 1 else "stride 2^40"]
    keys[:, -1] += np.arange(30_000) << 20
    keymap, set_table, failures = KeyMap(width), KeyMap._set_table, 0

    def set_or_fail(own: KeyMap, length: int, capacity: int = 0) -> None:
        nonlocal failures
        if own._meta[LONG] and not failures:
            failures += 1
            raise MemoryError
        set_table(own, length, capacity)

    monkeypatch.setattr(KeyMap, "_set_table", set_or_fail)
    with pytest.raises(MemoryError):
        keymap.upsert(keys)
    held = len(keymap)
    assert 0 < held < 30_000
    assert np.array_equal(keymap.find(keys[:held]), np.arange(held))
    assert np.array_equal(keymap.upsert(keys), np.arange(30_000))
    assert keymap._meta[MODE] == 1


@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
def test_memory_is_small_again_after_deleting_everything(order: str) -> None:
    """Deleting in small batches shrinks tables, slots and payloads, at the latest with ``trim``."""
    keymap = KeyMap(2)
    payload = SlotArray(keymap, np.float64, 4)
    keys = np.stack([np.arange(20_000), np.arange(20_000) % 7], axis=1)
    slots = keymap.upsert(keys)
    largest = keymap.nbytes + payload.nbytes
    if order != "forward":
        slots = slots[::-1].copy() if order == "backward" else np.random.default_rng(0).permutation(slots)
    for batch in np.array_split(slots, 200):
        keymap.remove(batch)
    keymap.trim()
    assert keymap.capacity == SMALLEST
    assert keymap.nbytes + payload.nbytes < largest / 100
    assert keymap.upsert(keys[:3]).tolist() == [0, 1, 2]


def test_slots_of_steady_churn_are_reused() -> None:
    """Inserting as much as is deleted needs no more slots than are live at once."""
    zset = WeightMap(1)
    ones = np.ones(1000, dtype=np.int64)
    for step in range(200):
        zset.add_weights(np.arange(step * 1000, step * 1000 + 1000).reshape(-1, 1), ones)
        if step:
            zset.add_weights(np.arange(step * 1000 - 1000, step * 1000).reshape(-1, 1), -ones)
    assert len(zset) == 1000
    assert zset.capacity <= 4096


def test_compact_closes_gaps_below_a_live_slot() -> None:
    """A live entry in a high slot keeps its place until compact moves it."""
    keymap = KeyMap(1)
    slots = keymap.upsert(np.arange(10_000).reshape(-1, 1))
    keymap.remove(slots[:-1])
    keymap.trim()
    assert keymap.find(np.array([[9_999]])).tolist() == [9_999]
    assert keymap.is_sparse
    assert keymap.compact().tolist() == [9_999]
    assert keymap.find(np.array([[9_999]])).tolist() == [0]
    assert keymap.capacity == SMALLEST


def test_removing_a_dead_slot_is_an_error() -> None:
    """Slots that are not live are refused, not followed into the table."""
    keymap = KeyMap(1)
    slots = keymap.upsert(np.array([[1], [2]]))
    keymap.remove(slots[:1])
    with pytest.raises(AssertionError, match="slot 0 is not live"):
        keymap.remove(slots[:1])
    with pytest.raises(AssertionError, match="slot 99 is not live"):
        keymap.remove(np.array([99]))


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("count", [100_000, 140_000, 163_841, 262_145, 327_681])
def test_a_map_takes_at_most_twice_its_data(width: int, count: int) -> None:
    """Keys and weights as NumPy columns, twice; the sizes are those at which a table has just become larger, and others."""
    rows = WeightMap(width)
    keys = np.arange(count * width, dtype=np.int64).reshape(count, width) * 7919
    for start in range(0, count, 10_000):
        part = keys[start : start + 10_000]
        rows.add_weights(part, np.ones(len(part), dtype=np.int64))
    assert len(rows) == count
    assert rows.nbytes <= 2 * (keys.nbytes + 8 * count)
