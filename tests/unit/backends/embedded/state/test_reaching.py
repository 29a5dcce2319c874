"""Ranges of an order whose entries reach a value: what joins on two columns are found by."""

from __future__ import annotations

import numpy as np
import pytest

from everview.backends.embedded.state.running_values import RunningExtremes


@pytest.mark.parametrize(
    ("seed", "rounds"), [(0, 30), (1, 30), (2, 30), pytest.param(3, 2_000, marks=pytest.mark.slow)]
)
def test_entries_that_reach_a_value_are_those_of_a_sorted_list(seed: int, rounds: int) -> None:
    """Whatever has been added and removed, for any ranges and limits; going on behind the last one finds the rest."""
    rng = np.random.default_rng(seed)
    entries: set[tuple[int, int, int]] = set()
    tree = RunningExtremes(3)
    for _ in range(rounds):
        new = [(int(a), int(b), int(c)) for a, b, c in rng.integers(-20, 20, (int(rng.integers(1, 60)), 3))]
        new = [e for e in dict.fromkeys(new) if e not in entries]
        gone = [e for e in entries if rng.random() < 0.3]
        for rows, weight in ((new, 1), (gone, -1)):
            if rows:
                tree.add(np.array(rows, dtype=np.int64), np.full((len(rows), 1), weight, dtype=np.int64))
        entries = (entries | set(new)) - set(gone)
        order = sorted(entries)
        first, last = np.sort(rng.integers(0, len(order) + 1, (2, 25)), axis=0)
        least, most = rng.integers(-25, 25, 25), rng.integers(0, 9, 25)
        rows, ranks = tree.reaching(first, last, least, most)
        expected = [[(i, r) for r in range(first[i], last[i]) if order[r][2] >= least[i]][: most[i]] for i in range(25)]
        assert list(zip(rows.tolist(), ranks.tolist(), strict=True)) == [pair for row in expected for pair in row]
        rows, ranks = tree.reaching(first, last, least)
        assert tree.keys_at(tree.at(ranks)).tolist() == [
            list(order[r]) for i in range(25) for r in range(first[i], last[i]) if order[r][2] >= least[i]
        ]
