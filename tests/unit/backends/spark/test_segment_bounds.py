"""Row groups are left out only where their bounds show that they cannot have a key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from everview.backends.spark import segments
from everview.backends.spark.segment_bounds import groups_with
from everview.backends.spark.segments import write_segment
from everview.errors import CorruptDatabase
from everview.relational.nodes import Field
from everview.relational.types import INT32, INT64, STRING

FIELDS = (Field("k", INT64, True), Field("s", STRING, True), Field("none", INT32, True))


def test_groups_by_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group with a key is named, and none whose bounds have none; texts and NULL are looked for everywhere."""
    monkeypatch.setattr(segments, "GROUP_ROWS", 10)
    values = np.random.default_rng(5).integers(-100, 100, 60)
    values[:30] = np.sort(values[:30])
    rows = pa.table([values, [str(v) for v in values], pa.nulls(60, pa.int32())], names=["k", "s", "none"])
    segment = write_segment(tmp_path, rows, FIELDS)
    path, groups = tmp_path / segment.path, values.reshape(6, 10)
    for key in (*range(-101, 102), -(2**63), 2**63 - 1):
        found = groups_with(path, segment, FIELDS, 0, pa.chunked_array([pa.array([key])]))
        assert found == [g for g, own in enumerate(groups) if own.min() <= key <= own.max()]
    far_apart = pa.chunked_array([pa.array([-1000, 1000])])
    assert groups_with(path, segment, FIELDS, 0, far_apart) == []
    everywhere = list(range(6))
    assert groups_with(path, segment, FIELDS, 0, pa.chunked_array([pa.array([1000, None])])) == everywhere
    assert groups_with(path, segment, FIELDS, 1, pa.chunked_array([["zzz"]])) == everywhere
    assert groups_with(path, segment, FIELDS, 2, pa.chunked_array([pa.array([7], pa.int32())])) == everywhere


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """A segment that is gone is no segment without the key."""
    segment = write_segment(tmp_path, pa.table([[1], ["a"], [2]], names=["k", "s", "none"]), FIELDS)
    (tmp_path / segment.path).unlink()
    with pytest.raises(CorruptDatabase):
        groups_with(tmp_path / segment.path, segment, FIELDS, 0, pa.chunked_array([[1]]))
