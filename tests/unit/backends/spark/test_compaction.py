"""Which segments a compaction merges."""

from __future__ import annotations

from everview.backends.spark.compaction import FEWEST, chosen_segments
from everview.backends.spark.segments import Segment


def _segments(*rows: int) -> list[Segment]:
    return [Segment(f"s{i:02d}", n, 100) for i, n in enumerate(rows)]


def test_few_are_left_alone() -> None:
    """Merging a handful of files gains nothing."""
    assert chosen_segments(_segments(*([5] * (FEWEST - 1)))) == []


def test_small_ones_are_merged_and_a_large_one_is_not_rewritten() -> None:
    """Files of about the same size become one; one that is much larger than all of them together stays."""
    segments = _segments(1_000_000, *([10] * FEWEST))
    assert chosen_segments(segments) == segments[1:]


def test_each_row_is_rewritten_rarely() -> None:
    """A stream of single rows leaves few files, and the work is n log n, not n²."""
    segments: list[Segment] = []
    written = 0
    for number in range(2_000):
        segments.append(Segment(f"s{number:05d}", 1, 1))
        taken = chosen_segments(segments)
        if taken:
            rows = sum(s.rows for s in taken)
            written += rows
            segments = [s for s in segments if s not in taken] + [Segment(f"m{number:05d}", rows, 1)]
        assert len(segments) < 24
    assert written < 2_000 * 16
