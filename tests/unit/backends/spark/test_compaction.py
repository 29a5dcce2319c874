"""Which segments a compaction merges."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from everview.backends.spark.compaction import FEWEST, chosen_segments, merged_by_key
from everview.backends.spark.local_engine import run_locally
from everview.backends.spark.segments import Segment, by_position
from everview.backends.spark.term_plans import consolidated, weighted
from everview.relational.nodes import Field, Scan
from everview.relational.types import INT64, STRING


def _segments(*rows: int) -> list[Segment]:
    return [Segment(f"s{i:02d}", n, 100) for i, n in enumerate(rows)]


def test_few_are_left_alone() -> None:
    """Merging a handful of files gains nothing."""
    assert chosen_segments(_segments(*([5] * (FEWEST - 1)))) == []


def test_small_ones_are_merged_and_a_large_one_is_not_rewritten() -> None:
    """Files of about the same size become one; one that is much larger than all of them together stays."""
    segments = _segments(1_000_000, *([10] * FEWEST))
    assert chosen_segments(segments) == segments[1:]


def test_files_of_one_job_are_one_run() -> None:
    """However many files a load wrote, small changes do not make executors rewrite it before they add up to it."""
    load = [Segment(f"load/part-{i:03d}", 1_000, 100) for i in range(100)]
    assert chosen_segments(load) == []
    assert chosen_segments([*load, *_segments(10)]) == []
    assert chosen_segments([*load, *_segments(*([10] * FEWEST))]) == _segments(*([10] * FEWEST))
    assert len(chosen_segments([*load, *_segments(*([12_500] * FEWEST))])) == 100 + FEWEST


def test_smaller_runs_go_with_a_tier() -> None:
    """A few runs that are much smaller than others do not keep these from being merged."""
    assert len(chosen_segments(_segments(1, 1, *([100] * FEWEST), 10_000))) == 2 + FEWEST
    assert chosen_segments(_segments(*([1] * 4), *([100] * 4), *([10_000] * 4))) == []


@pytest.mark.parametrize("most", [1, 30, 1_000])
def test_each_row_is_rewritten_rarely(most: int) -> None:
    """A stream of small changes, alike or of any size, leaves few files, and the work is n log n, not n²."""
    draw = random.Random(most)
    segments: list[Segment] = []
    written = given = 0
    for number in range(2_000):
        segments.append(Segment(f"s{number:05d}", draw.randint(1, most), 1))
        given += segments[-1].rows
        taken = chosen_segments(segments)
        if taken:
            rows = sum(s.rows for s in taken)
            written += rows
            segments = [s for s in segments if s not in taken] + [Segment(f"m{number:05d}", rows, 1)]
        assert len(segments) < 24
    assert written < given * 16


def test_rows_of_a_key_are_summed_up_only_where_one_was_deleted() -> None:
    """With rows updated, deleted, inserted again, and deletes of rows that are in other segments: the sum of all rows."""
    draw = random.Random(3)
    scan = Scan("t", weighted((Field("a", INT64, False), Field("x", STRING, True), Field("b", INT64, False))))
    for _ in range(5):
        held: dict[tuple[int, int], str | None] = {(9, b): "elsewhere" for b in range(3)}
        rows: list[tuple[int, str | None, int, int]] = []
        for _ in range(200):
            key = (draw.randrange(10), draw.randrange(6))
            if key in held:
                rows.append((key[0], held.pop(key), key[1], -1))
            if draw.random() < 0.7:
                held[key] = draw.choice([None, "p", "q"])
                rows.append((key[0], held[key], key[1], 1))
        columns = [
            pa.array(c, t)
            for c, t in zip(zip(*rows, strict=True), (pa.int64(), pa.string(), pa.int64(), pa.int64()), strict=True)
        ]
        table = by_position(pa.table(columns, names=list("axbw")))
        found = run_locally(merged_by_key(scan, (0, 2)), {"t": table}).to_pylist()
        expected = run_locally(consolidated(scan), {"t": table}).to_pylist()
        assert sorted(found, key=repr) == sorted(expected, key=repr)
        assert 0 < len(expected) < len(rows)
