"""Running sums and running extremes against lists that are summed anew."""

from __future__ import annotations

import math
from bisect import insort
from fractions import Fraction

import numpy as np
import pytest

from everview.backends.embedded.operators.nested_averages import NestedAverages
from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.nested_floats import FloatSums
from everview.backends.embedded.operators.nested_values import (
    ExactSums,
    NestedExtremes,
    NestedValues,
    Order,
    Steps,
)
from everview.backends.embedded.state.float_order import float_order
from everview.backends.embedded.state.ordered_nodes import PRIORITY
from everview.backends.embedded.state.ordered_sums import OrderedSums
from everview.backends.embedded.state.running_values import ANY
from everview.backends.embedded.vectors import Ints, Vector
from everview.relational.types import FLOAT64, INT64, Decimal

Entry = tuple[int, int, float]
"""Group, place, value."""
OPERATIONS = 100_000
NAMES = ("sum", "max", "min", "float", "average", "decimal", "large")
"""Averages: of integers, of decimals, and of integers whose sums floats do not hold."""
AVERAGED = Decimal(13, 6)
SPECIAL = (math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 1e22, 0.0)


def _made(name: str, *, is_strict: bool) -> NestedValues:
    order = Order(1, is_strict=is_strict)
    if name == "sum":
        return ExactSums(order, ANY)
    if name in ("average", "decimal", "large"):
        return NestedAverages(order, AVERAGED if name == "decimal" else FLOAT64)
    return FloatSums(order) if name == "float" else NestedExtremes(order, is_least=name == "min")


def _word(value: float) -> int:
    return int(float_order(np.array([value]))[0])


def _nested(name: str, values: list[float]) -> int | None:
    """The nested value by definition, as what bounds are given in."""
    if not values:
        return None
    if name == "decimal":
        double = 20_000 * Fraction(sum(map(int, values)), len(values))
        return int((abs(double) + 1) // 2) * (1 if double > 0 else -1)
    if name in ("average", "large"):
        return _word(float(sum(int(float(v)) for v in values)) / len(values))
    if name != "float":
        return int({"sum": sum, "max": max, "min": min}[name](values))
    if any(not math.isfinite(v) for v in values):
        return _word(sum(v for v in values if not math.isfinite(v)))
    total = sum(map(Fraction, values))
    try:
        return _word(float(total))
    except OverflowError:
        return _word(math.inf if total > 0 else -math.inf)


class Model:
    """Sorted entries, and the running values that should say the same."""

    def __init__(self, name: str, rng: np.random.Generator, *, is_strict: bool) -> None:
        self.name, self.rng, self.is_strict = name, rng, is_strict
        self.values = _made(name, is_strict=is_strict)
        self.held: list[Entry] = []

    def change(self, count: int) -> None:
        entries, weights = [], []
        for _ in range(count):
            if self.held and self.rng.random() < 0.48:
                entries.append(self.held.pop(int(self.rng.integers(len(self.held)))))
                weights.append(-1)
            else:
                entry = int(self.rng.integers(3)), int(self.rng.integers(-9, 9)), self._value()
                insort(self.held, entry, key=lambda e: e[:2])
                entries.append(entry)
                weights.append(1)
        self.add(entries, weights)

    def add(self, entries: list[Entry], weights: list[int]) -> None:
        keys = np.array([e[:2] for e in entries], dtype=np.int64).reshape(-1, 2)
        is_float = self.name == "float"
        numbers = np.array([e[2] for e in entries], dtype=np.float64 if is_float else np.int64)
        self.values.add(keys, Vector(FLOAT64 if is_float else INT64, numbers), np.array(weights, dtype=np.int64))

    def _value(self) -> float:
        if self.name == "large" and self.rng.random() < 0.1:
            return int(self.rng.choice([2**53 + 1, 2**62 + 1, -(2**53) - 1]))
        if self.name != "float":
            return int(self.rng.integers(-20, 20))
        if self.rng.random() < 0.02:
            return float(self.rng.choice(SPECIAL))
        return float(self.rng.integers(-99, 99)) / 10

    def within(self) -> Within:
        low, high = sorted(self.rng.integers(-30, 30, 2).tolist())
        if self.name == "decimal":
            low, high = low * 2_500, high * 2_500 + int(self.rng.integers(-1, 2))
        if self.name in ("float", "average", "large"):
            low, high = _word(low / 10), _word(high / 10)
            low = _word(-math.inf) if self.rng.random() < 0.2 else low
            high = _word(math.nan) if self.rng.random() < 0.2 else high
        return Within((low, high), bool(self.rng.random() < 0.3))

    def check(self) -> None:
        within = self.within()
        places = range(-10, 11)
        for group in range(3):
            keys: Ints = np.array([[group, p] for p in places], dtype=np.int64)
            wanted = [self._passes(group, p, within) for p in places]
            assert self.values.passes(keys, within).tolist() == wanted
            turns: Steps = self.values.turns(np.array([group]), within)
            assert [sum(self._is_behind(t, p) for t in turns) % 2 == 1 for p in places] == wanted

    def _is_behind(self, turn: int, place: int) -> bool:
        return turn < place if self.is_strict else turn <= place

    def _passes(self, group: int, place: int, within: Within) -> bool:
        values = [v for g, p, v in self.held if g == group and self._is_behind(p, place)]
        nested = _nested(self.name, values)
        low, high = within.bounds
        return nested is not None and (low <= nested <= high) != within.is_outside

    def state(self) -> list[tuple[list[bool], Steps]]:
        is_float = self.name in ("float", "average", "large")
        every = [Within((_word(v) - 1, _word(v))) for v in (0.3, -2.5)] if is_float else []
        keys = np.array([[g, p] for g in range(3) for p in range(-10, 11)], dtype=np.int64)
        every += [Within(ANY), Within((-3, 4)), Within((-3, 4), is_outside=True)]
        return [(self.values.passes(keys, w).tolist(), self.values.turns(np.array([1]), w)) for w in every]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_strict", [False, True])
def test_running_values_are_those_of_sorted_lists(name: str, is_strict: bool) -> None:
    """Whatever comes and goes, which places pass, and where that turns, is what summing the entries again says."""
    rng = np.random.default_rng(NAMES.index(name) + 10 * is_strict)
    model = Model(name, rng, is_strict=is_strict)
    for step in range(OPERATIONS // 2_000):
        model.change(int(rng.choice([1, 1, 3, 40])))
        model.values.commit()
        if step % 5 == 0:
            model.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_hundred_thousand_operations(name: str) -> None:
    """The same for 1e5 operations."""
    rng = np.random.default_rng(5)
    model = Model(name, rng, is_strict=True)
    done = 0
    while done < OPERATIONS:
        size = int(rng.choice([1, 1, 3, 40]))
        model.change(size)
        model.values.commit()
        done += size
        if done % 61 == 0:
            model.check()


def _words(values: NestedValues) -> list[bytes]:
    """All that the nodes of the trees behind running values hold, in order, but for where they lie."""
    match values:
        case NestedExtremes():
            trees: tuple[OrderedSums, ...] = (values._entries,)
        case FloatSums():
            trees = (values.finite.sums, *values.specials)
        case NestedAverages():
            trees = (values._sums.sums,)
        case ExactSums():
            trees = (values.sums,)
        case _:
            raise AssertionError(values)
    return [tree.nodes[tree.select(np.arange(len(tree))), PRIORITY:].tobytes() for tree in trees]


@pytest.mark.parametrize("name", NAMES)
def test_a_rollback_leaves_no_trace(name: str) -> None:
    """After a transaction that is taken back all is as it was, bit for bit, also where the unit of floats had changed in it."""
    rng = np.random.default_rng(3)
    model = Model(name, rng, is_strict=False)
    for _ in range(20):
        model.change(10)
        model.values.commit()
        words, before = _words(model.values), model.state()
        model.values.rollback()
        tiny = [(1, 0, 5e-324), (1, 1, 1e300), (2, 0, math.nan)] if name == "float" else [(1, 0, 7), (1, -9, -50)]
        model.add([(*e[:2], e[2]) for e in tiny], [1] * len(tiny))
        model.add([(0, 3, 2)], [1])
        model.values.rollback()
        assert _words(model.values) == words
        assert model.state() == before


def test_sums_beyond_128_bits_are_right() -> None:
    """Numbers that 128 bits do not hold are summed by definition, and forgotten when they go."""
    sums = FloatSums(Order(0, is_strict=False))

    def add(places: list[int], values: list[float], weight: int) -> None:
        keys = np.array(places, dtype=np.int64).reshape(-1, 1)
        sums.add(keys, Vector(FLOAT64, np.array(values)), np.full(len(values), weight, dtype=np.int64))

    add([1, 2, 3], [1e-300, 1e300, -1e300], 1)
    keys = np.array([[1], [2], [3]], dtype=np.int64)
    exactly = Within((_word(1e-300), _word(1e-300)))
    assert sums.passes(keys, exactly).tolist() == [True, False, True]
    add([2, 3], [1e300, -1e300], -1)
    assert sums.passes(keys, exactly).tolist() == [True, True, True]


def test_an_average_follows_a_bound_that_moves() -> None:
    """However far a bound moves from where averages were kept relative to, turns are those of the definition."""
    averages, rng = NestedAverages(Order(0, is_strict=False), FLOAT64), np.random.default_rng(1)
    numbers = rng.integers(0, 1_000, 3_000)
    places = np.arange(len(numbers), dtype=np.int64).reshape(-1, 1)
    averages.add(places, Vector(INT64, numbers), np.ones(len(numbers), dtype=np.int64))
    running = np.cumsum(numbers) / np.arange(1, len(numbers) + 1)
    for bound in (*rng.uniform(400, 600, 300).tolist(), 0.0, 1e-9, 1e300, -1.0, *running[-3:].tolist()):
        within = Within((_word(bound), _word(math.nan)))
        assert (averages.passes(places, within) == (running >= bound)).all()
        turned = np.zeros(len(numbers), dtype=np.int64)
        turned[list(averages.turns(np.zeros(0, dtype=np.int64), within))] = 1
        assert (np.cumsum(turned) % 2 == (running >= bound)).all()
