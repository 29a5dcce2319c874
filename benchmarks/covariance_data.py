"""The features of Housing, Retailer and Favorita, as F-IVM's experiments have them: all continuous, mixed, and all categorical.

For all categorical, a continuous variable is cut into 100 bins of equal width (F-IVM, section 9.3), and the bin stands in its
place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.favorita_data import favorita
from benchmarks.housing_data import POSTCODES, housing
from benchmarks.joins_workload import Workload
from benchmarks.retailer_data import retailer

BINS = 100
FEW_VALUES = 400
"""An integer variable with no more values than that is categorical: all that the generators make as categories."""
KINDS = ("continuous", "mixed", "categorical")
MAKERS: Mapping[str, Callable[[float], Workload]] = {
    "housing": lambda share: housing(round(POSTCODES * share)),
    "retailer": retailer,
    "favorita": favorita,
}
"""Make a share of the data of F-IVM's experiments."""


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """A workload with the features of one kind of covariance, all of them or some."""

    workload: Workload
    kind: str
    continuous: tuple[str, ...]
    categorical: tuple[str, ...]
    is_whole: bool = True

    def first(self, count: int) -> FeatureSet:
        """The same with the first features of each role only."""
        if max(len(self.continuous), len(self.categorical)) <= count:
            return self
        xs, cs = self.continuous[:count], self.categorical[:count]
        return replace(self, continuous=xs, categorical=cs, is_whole=False)


def feature_set(workload: Workload, kind: str) -> FeatureSet:
    """The features of a kind: every variable that joins nothing."""
    names = [name for name in workload.columns if sum(name in t.column_names for t in workload.tables.values()) == 1]
    columns = {name: table[name] for table in workload.tables.values() for name in table.column_names}
    categories = [n for n in names if pa.types.is_integer(columns[n].type) and _values(columns[n]) <= FEW_VALUES]
    if kind == "continuous":
        return FeatureSet(workload, kind, tuple(names), ())
    if kind == "mixed":
        return FeatureSet(workload, kind, tuple(n for n in names if n not in categories), tuple(categories))
    binned = {n for n in names if n not in categories}
    tables = {table: _binned(rows, binned) for table, rows in workload.tables.items()}
    return FeatureSet(replace(workload, tables=tables), kind, (), tuple(names))


def _values(column: pa.ChunkedArray) -> int:
    return int(pc.count_distinct(column.slice(0, 200_000)).as_py())


def _binned(rows: pa.Table, names: set[str]) -> pa.Table:
    columns: Mapping[str, np.ndarray] = {n: rows[n].to_numpy() for n in rows.column_names}
    made = {}
    for name, values in columns.items():
        if name in names:
            low, high = float(values.min()), float(values.max())
            width = (high - low) / BINS or 1.0
            made[name] = np.minimum(((values - low) / width).astype(np.int64), BINS - 1)
        else:
            made[name] = values
    return pa.table(made)
