"""How skewed some columns of a table are: a statistic that the planner asks for where a choice depends on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.backends.embedded.tables.stored_table import StoredTable


def mean_matches(table: StoredTable, columns: Sequence[int]) -> float:
    """How many rows agree with a row on some columns, on average: Σ d² / Σ d over their values, d rows each; 0 without rows.

    It reads these columns whole.
    """
    rows, weights = table.content(columns)
    if not len(rows):
        return 0.0
    names = [f"c{i}" for i in range(len(columns))]
    counted = pa.Table.from_arrays([*rows.columns, pa.array(weights)], names=[*names, "n"])
    sums = counted.group_by(names).aggregate([("n", "sum")])["n_sum"].to_numpy().astype(np.float64)
    return float((sums * sums).sum() / sums.sum())
