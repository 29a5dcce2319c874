"""The choice of refresh='auto' on Spark: by costs that were measured, and sane before any were."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from everview.backends.spark.refresh_costs import COLD, KEPT, RefreshCosts, read_costs, write_costs


def warm(stage: str = "v") -> RefreshCosts:
    """Costs that have seen the first refreshes of a process."""
    costs = RefreshCosts()
    for _ in range(COLD):
        costs.note("incremental", {stage: 1}, 100, {stage: 99.0})
    return costs


def test_before_anything_is_measured_the_share_decides() -> None:
    """A fifth of the rows, whatever a cold refresh took."""
    costs = warm()
    assert costs.choose({"v": 200}, 200, 1000).how == "incremental"
    assert costs.choose({"v": 201}, 201, 1000).how == "full"
    costs.note("full", {}, 1000, {"v": 3.0})
    assert (
        costs.choose({"v": 49}, 49, 1000).reason
        == "auto: 49 rows changed, 1,000 held, and computing anew pays above 200"
    )


def test_stages_are_added_up() -> None:
    """A stage that nothing below changes costs nothing; the dearest one is named."""
    costs = RefreshCosts()
    costs.note("full", {}, 1000, {"a": 1.0, "b": 1.0})
    for _ in range(COLD + 1):
        costs.note("incremental", {"a": 10, "b": 10}, 1000, {"a": 0.5, "b": 3.0})
    assert costs.choose({"a": 10, "b": 0}, 10, 1000).how == "incremental"
    chosen = costs.choose({"a": 10, "b": 10}, 10, 1000)
    assert chosen.how == "full"
    assert "(most of it stage 'b', 3.00 s), and computing anew 2.00 s" in chosen.reason


def test_old_measurements_are_forgotten() -> None:
    """A way that was too dear is tried again in the end."""
    costs = warm()
    costs.note("incremental", {"v": 10}, 1000, {"v": 50.0})
    ways = []
    for _ in range(KEPT + 1):
        costs.note("full", {}, 1000, {"v": 1.0})
        ways.append(costs.choose({"v": 10}, 10, 1000).how)
    assert (set(ways[: KEPT - 2]), ways[-1]) == ({"full"}, "incremental")


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_near_the_better_one(seed: int) -> None:
    """Where both ways cost a fixed part and a part a row, with noise, many refreshes take at most 1.3 times the best."""
    chance = random.Random(seed)
    full_fixed, full_each = chance.uniform(0.2, 2.0), 10 ** chance.uniform(-7, -5)
    held, taken, best = 10**6, 0.0, 0.0
    fixed, each = chance.uniform(0.05, 1.0), (full_fixed / held + full_each) * 10 ** chance.uniform(-1, 1.5)
    costs = warm()
    costs.note("full", {}, held, {"v": full_fixed + full_each * held})
    for _ in range(300):
        rows = int(10 ** chance.uniform(1, 5.9))
        move, full = (s * chance.uniform(0.9, 1.1) for s in (fixed + each * rows, full_fixed + full_each * held))
        how = costs.choose({"v": rows}, rows, held).how
        spent = full if how == "full" else move
        costs.note(how, {"v": rows}, held, {"v": spent})
        taken, best = taken + spent, best + min(move, full)
    assert taken <= 1.3 * best


def test_costs_survive_on_disk(tmp_path: Path) -> None:
    """What was measured is known to the next process; a file that cannot be read is as if there were none."""
    costs = warm()
    costs.note("full", {}, 100, {"v": 3.0})
    costs.note("incremental", {"v": 10}, 100, {"v": 1.0})
    write_costs(tmp_path / "costs", {"v": costs})
    again = read_costs(tmp_path / "costs")
    assert again["v"].stages == costs.stages
    assert again["v"].choose({"v": 10}, 10, 100) == costs.choose({"v": 10}, 10, 100)
    (tmp_path / "costs").write_text("{")
    assert read_costs(tmp_path / "costs") == read_costs(tmp_path / "none") == {}
