"""Extremes over all other keys against looking at all entries, and after transactions that are taken back."""

from __future__ import annotations

import numpy as np
import pytest

from everview.backends.embedded.operators.nested_bounds import Within
from everview.backends.embedded.operators.other_extremes import KeyGroups, OtherExtremes
from everview.backends.embedded.state.ordered_nodes import PRIORITY
from everview.backends.embedded.vectors import Vector
from everview.relational.types import INT64

OPERATIONS = 100_000
Entry = tuple[int, int, int]
"""Group, key, value."""


class Model:
    """Entries, and what should say the same of their extremes."""

    def __init__(self, seed: int, *, is_least: bool) -> None:
        self.rng, self.is_least = np.random.default_rng(seed), is_least
        self.values = OtherExtremes(KeyGroups(1), 2, is_least=is_least)
        self.held: list[Entry] = []
        self.within = self._within()

    def _within(self) -> Within:
        low, high = sorted(self.rng.integers(-12, 12, 2).tolist())
        return Within((low, high), bool(self.rng.random() < 0.3))

    def _passes(self, held: list[Entry], group: int, key: int, within: Within) -> bool:
        values = [v for g, k, v in held if g == group and k != key]
        if not values:
            return False
        low, high = within.bounds
        return (low <= (min if self.is_least else max)(values) <= high) != within.is_outside

    def change(self, count: int) -> None:
        """Adds and removes entries: keys and groups that turn are those of which it changes whether they pass."""
        before, entries, weights = list(self.held), [], []
        for _ in range(count):
            if self.held and self.rng.random() < 0.49:
                entries.append(self.held.pop(int(self.rng.integers(len(self.held)))))
                weights.append(-1)
            else:
                group, key, value = (int(self.rng.integers(0, n)) for n in (2, 5, 20))
                self.held.append((group, key, value - 10))
                entries.append(self.held[-1])
                weights.append(1)
        old, self.within = self.within, self._within() if self.rng.random() < 0.3 else self.within
        keys = np.array([e[:2] for e in entries], dtype=np.int64)
        vector = Vector(INT64, np.array([e[2] for e in entries], dtype=np.int64))
        turned = self.values.turn((keys, vector, np.array(weights, dtype=np.int64)), old, self.within)
        signs = {tuple(k): s for k, s in zip(turned.keys.tolist(), turned.signs.tolist(), strict=True)}
        judged = set(map(tuple, turned.judged.tolist()))
        groups = {g: s for (g,), s in zip(turned.groups.tolist(), turned.group_signs.tolist(), strict=True)}
        for group in range(2):
            for key in range(6):
                was = self._passes(before, group, key, old)
                found = signs.get((group, key), 0) if (group, key) in judged else groups.get(group, 0)
                assert found == self._passes(self.held, group, key, self.within) - was

    def check(self) -> None:
        keys = [(g, k) for g in range(2) for k in range(6)]
        wanted = [self._passes(self.held, g, k, self.within) for g, k in keys]
        assert self.values.passes(np.array(keys, dtype=np.int64), self.within).tolist() == wanted

    def words(self) -> list[bytes]:
        trees = self.values._entries, self.values._best
        return [tree.nodes[tree.select(np.arange(len(tree))), PRIORITY:].tobytes() for tree in trees]


def _run(operations: int, *, is_least: bool) -> None:
    model, done = Model(is_least, is_least=is_least), 0
    while done < operations:
        size = int(model.rng.choice([1, 1, 3, 12]))
        model.change(size)
        model.values.commit()
        done += size
        if done % 7 == 0:
            model.check()


@pytest.mark.parametrize("is_least", [False, True])
def test_extremes_of_others_are_those_of_all_entries(is_least: bool) -> None:
    """Whatever comes and goes, keys pass, and turn, as looking at all entries says."""
    _run(OPERATIONS // 50, is_least=is_least)


@pytest.mark.slow
def test_a_hundred_thousand_operations() -> None:
    """The same for 1e5 operations."""
    _run(OPERATIONS, is_least=False)


def test_a_rollback_leaves_no_trace() -> None:
    """After a transaction that is taken back all is as it was, bit for bit."""
    model = Model(3, is_least=True)
    for _ in range(60):
        model.change(9)
        model.values.commit()
        words, held, within = model.words(), list(model.held), model.within
        for _ in range(3):
            model.change(5)
        model.values.rollback()
        model.held, model.within = held, within
        assert model.words() == words
        model.check()
