"""Margins against a dictionary: what turns, after keys came and went, and ranges had something added."""

from __future__ import annotations

import numpy as np
import pytest

from everview.backends.embedded.state import wide
from everview.backends.embedded.state.margins import Margins, rank_by
from everview.backends.embedded.state.ordered_nodes import ABOVE, BELOW, EMPTY, PRIORITY
from everview.backends.embedded.state.ordered_sums import COUNTED, OrderedSums

OPERATIONS = 100_000
LARGE = 1 << 110


class Model:
    """Keys with rows, a mark, a count and a margin, and what should say the same."""

    def __init__(self, seed: int, keys: int) -> None:
        self.rng, self.keys = np.random.default_rng(seed), keys
        self.margins = Margins(1)
        self.held: dict[int, list[int]] = {}
        self.start = (0, 0)

    def put(self, count: int) -> None:
        keys = np.unique(self.rng.integers(0, self.keys, count))
        rows = np.array(
            [-self.held[k][0] if k in self.held and self.rng.random() < 0.6 else 1 for k in keys.tolist()], np.int64
        )
        counts = self.rng.integers(0, 3, len(keys))
        amounts = [int(v) * (LARGE if self.rng.random() < 0.1 else 1) for v in self.rng.integers(-9, 10, len(keys))]
        marks = [self._mark(c, m) for c, m in zip(counts.tolist(), amounts, strict=True)]
        self.margins.put(keys.reshape(-1, 1), rows, np.array(marks), counts, wide.from_ints(amounts))
        for key, row, mark, n, m in zip(keys.tolist(), rows.tolist(), marks, counts.tolist(), amounts, strict=True):
            if key not in self.held:
                self.held[key] = [row, mark, n, m]
            elif self.held[key][0] + row == 0:
                del self.held[key]
            else:
                self.held[key][0] += row

    def _mark(self, count: int, margin: int) -> int:
        if count + self.start[0] <= 0:
            return EMPTY
        return BELOW if margin + self.start[1] < 0 else ABOVE

    def shift(self, count: int) -> None:
        ends = np.sort(self.rng.integers(0, len(self.held) + 1, (count, 2)))
        counts, amounts = self.rng.integers(-1, 2, count), self.rng.integers(-9, 10, count)
        self.margins.shift(ends[:, 0], ends[:, 1], counts, wide.from_int64(amounts))
        keys = sorted(self.held)
        for (first, last), n, m in zip(ends.tolist(), counts.tolist(), amounts.tolist(), strict=True):
            for key in keys[first:last]:
                self.held[key][2] += n
                self.held[key][3] += m

    def turn(self) -> None:
        self.start = int(self.rng.integers(-2, 3)), int(self.rng.integers(-15, 16))
        keys, before, after = self.margins.turned(*self.start)
        found = {k: (a, b) for k, a, b in zip(keys[:, 0].tolist(), before.tolist(), after.tolist(), strict=True)}
        wanted = {}
        for key, held in self.held.items():
            mark = self._mark(held[2], held[3])
            if mark != held[1]:
                wanted[key] = held[1], mark
                held[1] = mark
        assert found == wanted

    def step(self, size: int) -> None:
        kind = self.rng.random()
        if kind < 0.4:
            self.put(size)
        elif kind < 0.75:
            self.shift(size)
        else:
            self.turn()

    def words(self) -> bytes:
        entries = self.margins.entries
        return entries.nodes[entries.select(np.arange(len(entries))), PRIORITY:].tobytes()


@pytest.mark.parametrize("keys", [12, 300])
def test_keys_that_turn_are_those_of_a_dictionary(keys: int) -> None:
    """Whatever comes, goes and is added, the keys whose marks were wrong are all that are on another side of 0."""
    model = Model(keys, keys)
    for _ in range(OPERATIONS // 50):
        model.step(int(model.rng.choice([1, 1, 3, 20])))
        model.margins.commit()
    model.turn()
    assert model.margins.all_keys()[:, 0].tolist() == sorted(model.held)


@pytest.mark.slow
def test_a_hundred_thousand_operations() -> None:
    """The same for 1e5 operations, and trees of some thousand keys."""
    model, done = Model(7, 4_000), 0
    while done < OPERATIONS:
        size = int(model.rng.choice([1, 1, 3, 40]))
        model.step(size)
        model.margins.commit()
        done += size


def test_a_rollback_leaves_no_trace() -> None:
    """After a transaction that is taken back all is as it was, bit for bit."""
    model = Model(3, 60)
    for _ in range(200):
        model.step(8)
    for _ in range(50):
        model.margins.commit()
        words, held, start = model.words(), {k: list(v) for k, v in model.held.items()}, model.start
        for _ in range(6):
            model.step(5)
        model.margins.rollback()
        model.held, model.start = held, start
        assert model.words() == words
        model.turn()


def test_ranks_by_another_word() -> None:
    """Entries of a group may be found by any word that is in order with the first one."""
    entries = OrderedSums(3, (COUNTED,))
    keys = np.array([[g, x, x // 2] for g in (1, 2) for x in range(10)], dtype=np.int64)
    entries.put(keys, np.ones((len(keys), 1), dtype=np.int64))
    bounds = np.array([[1, 2], [2, 2], [2, 9], [0, 0], [1, -1]], dtype=np.int64)
    assert rank_by(entries, bounds, 2, after=False).tolist() == [4, 14, 20, 0, 0]
    assert rank_by(entries, bounds, 2, after=True).tolist() == [6, 16, 20, 0, 0]
