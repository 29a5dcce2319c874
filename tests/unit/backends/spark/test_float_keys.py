"""Keys of floats: -0.0 finds 0.0 and NaN finds NaN, whoever compares."""

from __future__ import annotations

import pyarrow as pa
import pytest

from everview.backends.spark.restrict import matching
from everview.backends.spark.table_changes import rows_with_keys
from everview.relational.nodes import Field
from everview.relational.types import FLOAT64


@pytest.mark.parametrize(("stored", "wanted"), [(0.0, -0.0), (-0.0, 0.0), (float("nan"), float("nan")), (None, None)])
def test_equal_floats_are_found(stored: float | None, wanted: float | None) -> None:
    """In few rows and in many, where they are filtered before they are compared."""
    others = [float(i) for i in range(1, 100_000)]
    rows = pa.table({"c0": pa.array([stored, *others]), "c1": pa.array([1] * 100_000)})
    keys = pa.table({"c0": pa.array([wanted], pa.float64())})
    assert matching(rows, (0,), keys).num_rows == 1
    fields = (Field("x", FLOAT64, True),)
    assert rows_with_keys(rows.slice(0, 3), fields, (0,), keys).num_rows == 1
