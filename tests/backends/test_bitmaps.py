"""``bitmap_construct_agg`` and ``bitmap_or_agg`` under deletes: the bits that some row still sets."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

import everview as ev
from everview.backends.embedded.operators.bitmaps import _BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONSTRUCTED = "SELECT g, bitmap_construct_agg(x) AS m FROM t GROUP BY g"
MERGED = f"SELECT g % 2 AS p, bitmap_or_agg(m) AS m, count(*) AS n FROM ({CONSTRUCTED}) GROUP BY g % 2"


def _bitmap(bits: set[int]) -> bytes:
    number = sum(1 << bit for bit in bits)
    return number.to_bytes(_BYTES, "little")


def test_bits_come_and_go_with_their_rows(spark: SparkSession) -> None:
    """A bit that two rows set stays when one goes; merged bitmaps follow; Spark agrees in the end."""
    chance = random.Random(5)
    with ev.connect(spark=spark) as db:
        table = db.create_table("t", "g INT, x BIGINT")
        view, merged = db.create_view("v", CONSTRUCTED), db.create_view("w", MERGED)
        whole = db.create_view("a", "SELECT bitmap_construct_agg(x) FILTER (WHERE x > 5) AS m FROM t")
        assert whole.rows() == [(_bitmap(set()),)]
        held: list[tuple[int, int | None]] = []
        for _ in range(8):
            gone = [held.pop(chance.randrange(len(held))) for _ in range(len(held) // 3)]
            new = [
                (chance.randrange(4), chance.choice((None, 0, 7, 8, 32767, chance.randrange(40)))) for _ in range(12)
            ]
            held += new
            with db.transaction() as tx:
                tx.delete("t", gone)
                tx.insert("t", new)
            groups: dict[int, set[int]] = defaultdict(set)
            pairs: dict[int, set[int]] = defaultdict(set)
            for g, x in held:
                groups[g] |= set() if x is None else {x}
                pairs[g % 2] |= set() if x is None else {x}
            assert dict(view.rows()) == {g: _bitmap(bits) for g, bits in groups.items()}
            assert {p: m for p, m, _ in merged.rows()} == {p: _bitmap(bits) for p, bits in pairs.items()}
        db.verify()
        table.truncate()
        assert (view.rows(), merged.rows(), whole.rows()) == ([], [], [(_bitmap(set()),)])
        told = merged.explain()
        assert "bitmaps that grow and shrink with their rows:" in told
        assert "Spark's own code" not in told


def test_merged_bitmaps_of_any_length(spark: SparkSession) -> None:
    """Shorter ones count from the first byte, the same one may come twice, NULL is none."""
    with ev.connect(spark=spark) as db:
        table = db.create_table("t", "g INT, m BINARY")
        view = db.create_view("v", "SELECT g, bitmap_or_agg(m) AS m, count(*) AS n FROM t GROUP BY g")
        table.insert(
            [(1, b"\x01\x80"), (1, b"\x01\x80"), (1, b"\x02"), (1, None), (2, b""), (2, bytes(_BYTES - 1) + b"\xff")]
        )
        db.verify()
        table.delete([(1, b"\x01\x80"), (1, None), (2, b"")])
        db.verify()
        table.delete([(1, b"\x01\x80")])
        assert sorted(view.rows()) == [(1, _bitmap({1}), 1), (2, bytes(_BYTES - 1) + b"\xff", 1)]


def test_a_position_that_no_bitmap_has(spark: SparkSession) -> None:
    """Spark's error, while a row is there that sets it; what is rejected is not counted."""
    with ev.connect(spark=spark) as db:
        table = db.create_table("t", "g INT, x BIGINT")
        view = db.create_view("v", CONSTRUCTED)
        db.create_assertion("small", "SELECT * FROM t WHERE x > 100000")
        table.insert([(1, 3)])
        with pytest.raises(ev.AssertionViolated):
            table.insert([(1, 4), (2, 100001)])
        assert view.rows() == [(1, _bitmap({3}))]
        for outside in (-1, 8 * _BYTES):
            table.insert([(1, outside)])
            with pytest.raises(ev.ViewSuspended, match="is out of bounds"):
                view.rows()
            table.delete([(1, outside)])
            assert view.rows() == [(1, _bitmap({3}))]
