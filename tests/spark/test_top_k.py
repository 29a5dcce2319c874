"""The first rows of an order on the Spark backend: from the change alone as long as nothing of them is lost."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev
from everview.backends.spark import stage_plans
from everview.backends.spark.stages import Partitioned
from everview.backends.spark.terms import Term
from everview.relational.nodes import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOTALS = "SELECT g, sum(v) AS total FROM t GROUP BY g ORDER BY total DESC LIMIT {k}"
_ROWS = "SELECT g, v FROM t ORDER BY v DESC LIMIT {k}"
_Row = tuple[int | None, int | None]


def _descending(row: _Row) -> tuple[bool, int]:
    return row[1] is None, -(row[1] or 0)


def _first(rows: list[_Row], k: int) -> list[_Row]:
    """The first k rows by their second column, NULLs last, and then by the whole row, NULLs first."""
    whole = sorted(rows, key=lambda r: tuple((v is not None, v or 0) for v in r))
    return sorted(whole, key=_descending)[:k]


def _totals(content: Counter[_Row]) -> list[_Row]:
    total: dict[int | None, int | None] = {}
    for (g, v), n in content.items():
        if n:
            total[g] = total.get(g) if v is None else (total.get(g) or 0) + v * n
    return list(total.items())


@pytest.mark.parametrize("k", [3, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 50))])
def test_the_first_rows_follow_every_change(spark: SparkSession, tmp_path: Path, k: int) -> None:
    """Rows come and go above, below and at the last of the first k, with duplicates, ties and NULLs."""
    rng = random.Random(k)
    content: Counter[_Row] = Counter()
    with ev.connect(tmp_path / "db", backend="spark", spark=spark) as db:
        db.create_table("t", "g int, v int")
        rows, totals = db.create_view("first_rows", _ROWS.format(k=k)), db.create_view("totals", _TOTALS.format(k=k))
        for _ in range(20):
            change: Counter[_Row] = Counter()
            for _ in range(rng.randint(1, 4)):
                change[rng.choice([None, *range(4)]), rng.choice([None, *range(6)])] += rng.randint(1, 3)
            there = [row for row, n in content.items() if n]
            for row in rng.sample(there, min(len(there), rng.randint(0, 4))):
                change[row] -= rng.randint(1, content[row])
            content.update(change)
            db.apply({"t": [{"g": g, "v": v, "_weight": n} for (g, v), n in change.items() if n]})
            assert Counter(rows.rows()) == Counter(_first(list(content.elements()), k))
            assert Counter(totals.rows()) == Counter(_first(_totals(content), k))


def test_only_what_is_lost_is_looked_for(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups are read again when one of the first has left, and not when others change or come before them."""
    with ev.connect(tmp_path / "db", backend="spark", spark=spark) as db:
        db.create_table("t", "g int, v int")
        db.apply({"t": [(g, g) for g in range(100)]})
        view = db.create_view("totals", _TOTALS.format(k=3))
        reread: list[str] = []
        real = stage_plans.touched_plan

        def noted(stage: Partitioned) -> tuple[tuple[Term, ...], Relation]:
            reread.append(stage.name)
            return real(stage)

        monkeypatch.setattr(stage_plans, "touched_plan", noted)
        assert "else from the change alone" in view.explain()
        db.apply({"t": [(5, 20)]})
        db.apply({"t": [(200, 500), (98, 1)]})
        assert sorted(view.rows()) == [(98, 99), (99, 99), (200, 500)]
        assert not reread
        db.table("t").delete([(200, 500)])
        assert sorted(view.rows()) == [(97, 97), (98, 99), (99, 99)]
        assert len(reread) == 1
