"""A view map against a dict: payloads of all kinds, indexes, transactions that succeed or fail, growth and shrinking."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.backends.embedded.state.probing import LONG_PROBE
from everview.backends.embedded.tree.kernels.transactions import FEW
from everview.backends.embedded.tree.layout import (
    COUNTED,
    EXACT,
    FLOATING,
    LONGEST,
    MINUS_UNIT,
    MODE,
    NAN_UNIT,
    PLUS_UNIT,
)
from everview.backends.embedded.tree.view_map import SMALLEST
from everview.backends.embedded.vectors import NULL_WORD
from tests.unit.backends.embedded.tree.drive_map import Key, MapDriver, Part, signed

POOLS = {
    "small": tuple(range(6)),
    "extreme": (0, -1, int(NULL_WORD), 2**63 - 1, 1 << 32, 1 << 20),
    "clashing": tuple(i << 20 for i in range(40)),
    "dense": tuple(range(200)),
}
SPECIAL = (0, 0, 0, NAN_UNIT, PLUS_UNIT, MINUS_UNIT)


class Model:
    """What the map should hold: entries stay until the transaction ends, even if they became zero."""

    def __init__(self, kinds: tuple[int, ...]) -> None:
        self.kinds = kinds
        self.now: dict[Key, tuple[Part, ...]] = {}
        self.before: dict[Key, tuple[Part, ...]] = {}

    def add(self, key: Key, parts: tuple[Part, ...]) -> None:
        zero = tuple((0.0, 0) if k == FLOATING else (0,) for k in self.kinds)
        old = self.now.get(key, zero)
        self.now[key] = tuple(self._sum(k, a, b) for k, a, b in zip(self.kinds, old, parts, strict=True))

    @staticmethod
    def _sum(kind: int, a: Part, b: Part) -> Part:
        if kind == FLOATING:
            return (a[0] + b[0], a[1] + b[1])
        return (signed(int(a[0] + b[0]), 64 if kind == COUNTED else 128),)

    def settle(self) -> None:
        """What is exactly zero goes; a float that is left over from rounding does not keep an entry."""
        self.now = {
            k: parts
            for k, parts in self.now.items()
            if any(p[1] if kind == FLOATING else p[0] for kind, p in zip(self.kinds, parts, strict=True))
        }
        self.before = dict(self.now)

    def undo(self) -> None:
        self.now = dict(self.before)


def random_parts(rng: random.Random, kinds: tuple[int, ...]) -> tuple[Part, ...]:
    """A payload of these kinds."""
    parts: list[Part] = []
    for kind in kinds:
        if kind == COUNTED:
            parts.append((rng.choice((0, 1, -1, 2**40, 5)),))
        elif kind == EXACT:
            parts.append((rng.choice((0, 1, -1, 2**63, -(2**63) - 1, 2**100, -(2**100), 17)),))
        else:
            parts.append((rng.choice((0.0, 1.5, -2.25, 2.0**40)), rng.choice(SPECIAL)))
    return tuple(parts)


def opposite(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """What cancels a payload."""
    return tuple(tuple(-x for x in p) for p in parts)


@given(st.integers(0, 2**40))
@settings(max_examples=120, deadline=None)
def test_a_map_is_a_dict(seed: int) -> None:
    """After every step the entries, and what each index finds, are those of the model."""
    check_map(random.Random(seed))


def check_map(rng: random.Random) -> None:
    """A random map through random transactions."""
    kinds = (COUNTED, *(rng.choice((COUNTED, EXACT, FLOATING)) for _ in range(rng.randint(0, 4))))
    width = rng.randint(0, 3)
    pool = POOLS[rng.choice(sorted(POOLS))]
    driver, model = MapDriver(width, kinds, is_result=rng.random() < 0.5), Model(kinds)
    indexes: list[tuple[int, ...]] = []
    for _ in range(rng.randint(1, 8)):
        if width > 1 and rng.random() < 0.4:  # also when there are entries
            words = tuple(rng.sample(range(width), rng.randint(1, width - 1)))
            assert driver.view.index(words, is_kept=rng.random() < 0.5) in range(len(indexes) + 1)
            if words not in indexes:
                indexes.append(words)
        _transaction(rng, driver, model, indexes, pool)


def _transaction(
    rng: random.Random, driver: MapDriver, model: Model, indexes: list[tuple[int, ...]], pool: tuple[int, ...]
) -> None:
    bits = driver.words()
    for _ in range(rng.randint(0, 3)):
        changes = []
        for _ in range(rng.choice((1, 3, 60))):
            key = tuple(rng.choice(pool) for _ in range(driver.width))
            old = model.now.get(key)
            parts = opposite(old) if old is not None and rng.random() < 0.5 else random_parts(rng, model.kinds)
            changes.append((key, parts))
            model.add(key, parts)
        driver.upsert(changes)
        _check(rng, driver, model, indexes, pool)
    if rng.random() < 0.4:
        driver.undo()
        model.undo()
        assert driver.words() == bits
    else:
        driver.settle()
        model.settle()
    _check(rng, driver, model, indexes, pool)


def _check(
    rng: random.Random, driver: MapDriver, model: Model, indexes: list[tuple[int, ...]], pool: tuple[int, ...]
) -> None:
    assert driver.content() == model.now
    assert driver.scan() == set(model.now)
    keys = [tuple(rng.choice(pool) for _ in range(driver.width)) for _ in range(20)]
    slots = driver.lookup(keys)
    assert [s >= 0 for s in slots] == [k in model.now for k in keys]
    assert all(tuple(driver.view.entries[s, : driver.width]) == k for s, k in zip(slots, keys, strict=True) if s >= 0)
    for number, words in enumerate(indexes):
        wanted = [tuple(rng.choice(pool) for _ in words) for _ in range(10)]
        found = driver.slice(number, wanted)
        assert found == [{k for k in model.now if tuple(k[w] for w in words) == want} for want in wanted]


def test_memory_goes_back_after_mass_deletion() -> None:
    """A map of many entries that are all removed is small again, and works on."""
    driver = MapDriver(2, (COUNTED, EXACT))
    driver.view.index((1,))
    keys = [(i, i % 7) for i in range(100_000)]
    driver.upsert([(k, ((1,), (5,))) for k in keys])
    driver.settle()
    full = driver.view.nbytes + driver.view.index_nbytes(0)
    driver.upsert([(k, ((-1,), (-5,))) for k in keys[10:]])
    driver.settle()
    assert driver.view.nbytes + driver.view.index_nbytes(0) < full / 20
    assert driver.content() == dict.fromkeys(keys[:10], ((1,), (5,)))
    assert driver.slice(0, [(3,)]) == [{k for k in keys[:10] if k[1] == 3}]
    driver.upsert([(k, ((1,), (5,))) for k in keys[10:]])
    assert len(driver.view) == len(keys)


def test_a_failed_transaction_gives_rounding_back_too() -> None:
    """Sums that are not exact are bit for bit what they were, although adding the opposite would not restore them."""
    driver = MapDriver(1, (COUNTED, FLOATING), is_result=True)
    driver.upsert([((1,), ((1,), (0.1, 0))), ((2,), ((1,), (1e19, 0)))])
    driver.settle()
    bits = driver.words()
    driver.upsert([((1,), ((1,), (1e18, 0))), ((2,), ((1,), (1.0, NAN_UNIT))), ((3,), ((1,), (1.0, 0)))])
    driver.upsert([((1,), ((-1,), (-1e18, 0))), ((3,), ((-1,), (-1.0, 0)))])
    driver.undo()
    assert driver.words() == bits


def test_a_result_logs_an_entry_once() -> None:
    """What is logged first is what it was before the transaction."""
    driver = MapDriver(1, (COUNTED,), is_result=True)
    driver.upsert([((1,), ((5,),))])
    driver.settle()
    driver.upsert([((1,), ((1,),)), ((2,), ((1,),)), ((1,), ((1,),))])
    driver.upsert([((1,), ((1,),))])
    log = driver.view.logged()
    assert log[:, 1].tolist() == [1, 0]
    assert log[:, 2].tolist() == [5, 0]


@pytest.mark.parametrize("shift", [20, 44])
def test_keys_that_clash_get_a_better_hash(shift: int) -> None:
    """Keys that agree in their low bits are told apart, already while a first load is under way."""
    driver = MapDriver(1, (COUNTED,))
    for start in range(0, 5_000, 500):
        driver.upsert([((i << shift,), ((1,),)) for i in range(start, start + 500)])
    assert driver.view.fields[MODE] == 1
    assert driver.view.fields[LONGEST] < LONG_PROBE
    driver.settle()
    assert len(driver.view) == 5_000 == sum(s >= 0 for s in driver.lookup([(i << shift,) for i in range(5_000)]))


def test_index_keys_that_clash_get_a_better_hash() -> None:
    """The same for the words of an index, while whole keys do not clash."""
    driver = MapDriver(2, (COUNTED,))
    driver.view.index((0,))
    for start in range(0, 5_000, 500):
        driver.upsert([((i << 44, i), ((1,),)) for i in range(start, start + 500)])
    assert driver.view.fields[LONGEST] < LONG_PROBE
    driver.settle()
    driver.upsert([((i << 44, i), ((-1,),)) for i in range(100, 5_000)])
    driver.settle()
    assert driver.slice(0, [(i << 44,) for i in range(200)]) == [
        {(i << 44, i)} if i < 100 else set() for i in range(200)
    ]


@pytest.mark.parametrize("freed", [0, 600])
def test_runs_of_keys_that_clash_in_one_instruction(freed: int) -> None:
    """A second run of dense keys with the places of the first gets a better hash at its first long probe, whatever is free."""
    driver = MapDriver(2, (COUNTED,))
    driver.view.index((0,))
    wide = MapDriver(1, (COUNTED,))
    first, second = range(2_000), range(1 << 30, (1 << 30) + 600)
    gone = random.Random(1).sample(first, freed)
    for keys, weight in ((first, 1), (gone or first[:1], -1 if gone else 1), (second, 1)):
        driver.upsert([((i, i % 7), ((weight,),)) for i in keys])
        wide.upsert([((i,), ((weight,),)) for i in keys])
        if keys is not second:
            assert wide.view.fields[MODE] == 0
            driver.settle()
            wide.settle()
    assert wide.view.fields[MODE] == 1
    assert wide.view.fields[LONGEST] < LONG_PROBE
    left = set(first) - set(gone) | set(second)
    assert wide.scan() == {(i,) for i in left}
    assert [s >= 0 for s in wide.lookup([(i,) for i in first])] == [i in left for i in first]
    asked = [*first, *second]
    assert driver.slice(0, [(i,) for i in asked]) == [{(i, i % 7)} if i in left else set() for i in asked]
    for undone in (driver, wide):
        undone.undo()
    assert wide.scan() == {(i,) for i in left - set(second)}
    assert driver.slice(0, [(i,) for i in asked]) == [{(i, i % 7)} if i in left - set(second) else set() for i in asked]
    late = MapDriver(2, (COUNTED,))
    late.upsert([((i, i % 7), ((1,),)) for i in asked])
    late.view.index((0,))
    assert late.slice(0, [(i,) for i in asked]) == [{(i, i % 7)} for i in asked]


def test_an_index_that_nobody_slices_is_given_up_and_comes_back() -> None:
    """It is not kept up meanwhile, in transactions that succeed or fail; a slice finds the right entries whenever it comes."""
    driver = MapDriver(2, (COUNTED,))
    driver.view.index((1,), is_kept=False)
    kept = [(i, i % 3) for i in range(50)]
    driver.upsert([(k, ((1,),)) for k in kept])
    driver.settle()
    small = driver.view.index_nbytes(0)
    for start in range(0, 2 * FEW, 256):
        batch = [(1000 + i, i % 3) for i in range(start, start + 256)]
        for weight in (1, -1):
            driver.upsert([(k, ((weight,),)) for k in batch])
            driver.settle()
    assert driver.view.index_nbytes(0) < small, "it was not given up"
    driver.upsert([((60, 2), ((1,),)), ((8, 2), ((-1,),))])
    driver.undo()
    assert driver.slice(0, [(2,)]) == [{k for k in kept if k[1] == 2}]
    driver.upsert([((7, 2), ((1,),)), ((8, 2), ((-1,),))])
    driver.settle()
    assert driver.slice(0, [(2,), (5,)]) == [{k for k in kept if k[1] == 2 and k != (8, 2)} | {(7, 2)}, set()]


def test_a_view_without_keys_has_one_entry() -> None:
    """Payloads of the empty key add up, and it goes when it is zero."""
    driver = MapDriver(0, (COUNTED, EXACT))
    driver.upsert([((), ((2,), (2**70,))), ((), ((1,), (1,)))])
    driver.settle()
    assert driver.content() == {(): ((3,), (2**70 + 1,))}
    driver.upsert([((), ((-3,), (-(2**70) - 1,)))])
    driver.settle()
    assert driver.content() == {}


def test_growth_step_by_step() -> None:
    """Capacity is asked for in the middle of things; nothing is lost."""
    driver = MapDriver(3, (COUNTED,))
    driver.view.index((2, 0))
    grid = list(product(range(12), repeat=3))
    for key in grid:
        driver.upsert([(key, ((1,),))])
    assert len(driver.view) == len(grid) > 8 * SMALLEST
    assert driver.slice(0, [(3, 5)]) == [{k for k in grid if k[2] == 3 and k[0] == 5}]
