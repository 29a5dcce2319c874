"""``approx_count_distinct`` as a sketch that grows and shrinks: Spark's estimate, to the digit."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest

import everview as ev
from everview.backends.embedded.operators.distinct_sketch import _leading_zeros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "b": "BOOLEAN",
    "i8": "TINYINT",
    "i": "INT",
    "l": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "m": "DECIMAL(12,3)",
    "w": "DECIMAL(30,3)",
    "s": "STRING",
    "y": "BINARY",
    "da": "DATE",
    "ts": "TIMESTAMP",
    "n": "TIMESTAMP_NTZ",
    "iv": "INTERVAL DAY TO SECOND",
    "a": "ARRAY<INT>",
}
NOON = dt.datetime(1999, 12, 31, 12)
Row = tuple[object, ...]


def _row(chance: random.Random, values: int) -> Row:
    v = chance.randrange(values)
    text = chance.choice(("", "ä", "x" * (v % 90))) + str(v)
    return (
        chance.choice((None, 1, 2)),
        chance.choice((None, True, False)),
        v % 256 - 128,
        v - 5,
        v * 2**33 - 7,
        chance.choice((0.0, -0.0, math.nan, v / 7)),
        chance.choice((0.0, -0.0, math.nan, -v * 1e300)),
        Decimal(v - 300) / 1000,
        Decimal(v) * 10**15,
        chance.choice((None, text)),
        text.encode(),
        NOON.date() + dt.timedelta(days=v % 30000 - 15000),
        NOON + dt.timedelta(seconds=v * 31, microseconds=v),
        NOON - dt.timedelta(seconds=v * 37),
        dt.timedelta(seconds=v, microseconds=3),
        [v, None],
    )


def test_every_type_under_a_stream(spark: SparkSession) -> None:
    """NULLs, -0.0 and NaN, texts of all lengths; also types whose hash is left to Spark; groups that go."""
    chance = random.Random(2)
    with ev.connect(spark=spark) as db:
        table = db.create_table("t", f"g INT, {', '.join(f'{name} {kind}' for name, kind in TYPES.items())}")
        listed = ", ".join(f"approx_count_distinct({name}) AS {name}" for name in TYPES)
        view = db.create_view("v", f"SELECT g, {listed} FROM t GROUP BY g")
        rows = [_row(chance, 500) for _ in range(300)]
        table.insert(rows)
        db.verify()
        with db.transaction() as tx:
            tx.delete("t", [r for r in rows if r[0] == 1] + [r for r in rows if r[0] == 2][:50])
            tx.insert("t", [_row(chance, 10**6) for _ in range(40)])
        db.verify()
        told = view.explain()
        assert "sketches that grow and shrink with their rows:\n  approx_count_distinct(b, 0.05D)" in told
        assert "from all rows of each group that changes:\n  approx_count_distinct(w, 0.05D)" in told
        table.truncate()
        assert view.rows() == []


def test_counts_of_all_sizes(spark: SparkSession) -> None:
    """Empty registers, Spark's corrections and raw estimates, with few registers and many; back down to nothing."""
    deviations = (0.39, 0.2, 0.1, 0.05, 0.01)
    with ev.connect(spark=spark) as db:
        table = db.create_table("t", "x BIGINT, k STRING")
        listed = (
            f"approx_count_distinct({c}, {d}) AS {c}{i}, approx_count_distinct({c}, {d}) FILTER (WHERE x % 3 = 0) AS f{c}{i}"
            for c in "xk"
            for i, d in enumerate(deviations)
        )
        view = db.create_view("v", f"SELECT {', '.join(listed)} FROM t")
        rows: list[tuple[int, str]] = []
        for size in (1, 30, 700, 1500, 6000):
            new = [(i * 7919, f"key {i}") for i in range(len(rows), size)]
            table.insert(new)
            rows += new
            db.verify()
        table.delete(rows[1000:])
        db.verify()
        table.delete(rows[:1000])
        assert view.rows() == [(0,) * 20]


def test_a_rolled_back_transaction_leaves_the_sketch(spark: SparkSession) -> None:
    """What an assertion rejects is not counted."""
    with ev.connect(spark=spark) as db:
        table = db.create_table("t", "g INT, x INT")
        view = db.create_view("v", "SELECT g, approx_count_distinct(x) AS n FROM t GROUP BY g")
        db.create_assertion("small", "SELECT * FROM t WHERE x > 100")
        table.insert([(1, 1), (1, 2), (1, 2)])
        with pytest.raises(ev.AssertionViolated):
            table.insert([(1, 3), (2, 3), (1, 101)])
        table.delete([(1, 2)])
        assert view.rows() == [(1, 2)]
        table.delete([(1, 2)])
        assert view.rows() == [(1, 1)]


def test_leading_zeros_of_words() -> None:
    """As Java counts them."""
    words = [1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
    assert _leading_zeros(np.array(words, dtype=np.uint64)).tolist() == [64 - w.bit_length() for w in words]


def test_no_estimate_by_empty_registers_lies_at_a_half() -> None:
    """So that a last bit by which two libraries' logarithms differ cannot turn a rounding."""
    for bits in range(4, 19):
        size = 1 << bits
        found = size * np.log(size / np.arange(1, size + 1))
        assert np.abs(found - np.floor(found) - 0.5).min() > 1e-9
