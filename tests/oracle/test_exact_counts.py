"""Counts, sums and averages of joins whose size is beyond 64 bits, against exact arithmetic in Python.

A row may be inserted any number of times at once, so a join of three tables with one row each has as many rows as one likes,
and no engine can list them. Each answer is exact, or the transaction is rejected and nothing has changed.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st

import everview as ev
from tests.oracle.choices import Choices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_LAW = settings(
    max_examples=200 if _IS_LONG else 15,
    derandomize=not _IS_LONG,
    phases=tuple(Phase) if _IS_LONG else (Phase.explicit, Phase.generate),
)
_TIMES = (1, 2, 3, 2_000, 60_000, 10**9, 2**16, 2**31, 2**32, 2**33)
"""How often a row is inserted: powers of two, because a product of them that is cut to 64 bits is 0."""
_LARGEST = 2**63 - 1

Bag = Counter[tuple[int, int]]
"""The rows (k, v) of a table."""


def test_six_tables_of_2000_rows(spark: SparkSession) -> None:
    """2000^6 rows of one key are beyond 64 bits; five tables have a count that fits."""
    with ev.connect(spark=spark) as db:
        for i in range(6):
            db.create_table(f"t{i}", "k int, v int")
        view = db.create_view("v", _query(6, "SELECT count(*) AS n, avg(t0.v) AS m"), on_error="reject")
        for i in range(5):
            db.table(f"t{i}").insert([(1, v % 7) for v in range(2000)])
        with pytest.raises(ev.EverviewError):
            db.table("t5").insert([(1, 0)] * 2000)
        assert view.rows() == [(0, None)]
        db.table("t5").insert([(1, 0)])
        assert view.rows() == [(2000**5, sum(v % 7 for v in range(2000)) / 2000)]


@_LAW
@given(data=st.data())
def test_aggregates_of_long_joins_are_exact(data: st.DataObject, spark: SparkSession) -> None:
    """After every transaction each group has its exact count and sum, and no group is missing or one too many."""
    choices = Choices.drawn(data.draw)
    tables = [f"t{i}" for i in range(choices.count(2, 6))]
    content: dict[str, Bag] = {name: Counter() for name in tables}
    with ev.connect(spark=spark) as db:
        for name in tables:
            db.create_table(name, "k int, v int")
        strategy = choices.pick(("auto", "first_order", "factorized"))
        grouped = "SELECT t0.k, count(*) AS n, sum(t1.v) AS s, avg(t1.v) AS m"
        query = f"{_query(len(tables), grouped)} GROUP BY t0.k"
        view = db.create_view("v", query, strategy=strategy, on_error="reject")
        for number in range(len(tables) + choices.count(1, 8)):
            name = tables[number] if number < len(tables) else choices.pick(tables)
            change = _change(choices, content[name])
            after = {
                **content,
                name: +Counter({r: content[name][r] + change.get(r, 0) for r in {*content[name], *change}}),
            }
            try:
                db.apply({name: [{"k": k, "v": v, "_weight": n} for (k, v), n in change.items()]})
            except ev.EverviewError:
                event("rejected")
                assert any(_bound(after, k) > _LARGEST for k in (0, 1)), "nothing leaves 64 bits"
            else:
                content = after
            _check({row[0]: row[1:] for row in view.rows()}, content)


def _query(count: int, select: str) -> str:
    return f"{select} FROM t0 " + " ".join(f"JOIN t{i} ON t0.k = t{i}.k" for i in range(1, count))


def _change(choices: Choices, bag: Bag) -> Mapping[tuple[int, int], int]:
    """Some rows more, or some of those that are there gone, all or many of them."""
    if bag and choices.once_in(3):
        row = choices.pick(sorted(bag))
        return {row: -choices.pick((bag[row], -(-bag[row] // 2)))}
    return {(choices.count(0, 1), choices.count(0, 3)): choices.pick(_TIMES) for _ in range(choices.count(1, 2))}


def _bound(content: Mapping[str, Bag], key: int) -> int:
    """No join of some of the tables has more rows, nor a larger sum, for this key."""
    return math.prod(max(1, sum(n for (k, _), n in bag.items() if k == key)) for bag in content.values()) * 3


def _check(found: Mapping[int, tuple[int, int, float]], content: Mapping[str, Bag]) -> None:
    expected = {}
    for key in (0, 1):
        sizes = {name: sum(n for (k, _), n in bag.items() if k == key) for name, bag in content.items()}
        if all(sizes.values()):
            others = math.prod(n for name, n in sizes.items() if name != "t1")
            total = sum(v * n for (k, v), n in content["t1"].items() if k == key)
            expected[key] = (others * sizes["t1"], total * others, total / sizes["t1"])
    assert set(found) == set(expected)
    for key, (count, total, mean) in expected.items():
        assert found[key][:2] == (count, total)
        assert math.isclose(found[key][2], mean, rel_tol=1e-12)
